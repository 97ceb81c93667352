"""Check that a wheel is under 10 MB and has the native module, its stubs, py.typed and the kernels' sources."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

LIMIT = 10_000_000
KERNELS = Path(__file__).parents[1] / "kernels"


def kernel_sources() -> set[str]:
    """Return the paths in the wheel of the sources that NVRTC compiles on a user's machine."""
    own = [path for path in (KERNELS / "cuda").iterdir() if path.suffix in (".cu", ".h")]
    paths = [*own, *(KERNELS / "include").rglob("*.h")]
    return {f"hopfuse/kernels/{path.relative_to(KERNELS).as_posix()}" for path in paths}


def main(path: Path) -> None:
    size = path.stat().st_size
    print(f"{path.name}: {size:,} bytes")
    if size >= LIMIT:
        raise SystemExit(f"the wheel has {size:,} bytes; it must stay below {LIMIT:,}")
    names = zipfile.ZipFile(path).namelist()
    if not any(name.startswith("hopfuse/_native.") and name.endswith(".so") for name in names):
        raise SystemExit("the wheel has no native module")
    for name in ("hopfuse/py.typed", "hopfuse/_native.pyi", *sorted(kernel_sources())):
        if name not in names:
            raise SystemExit(f"the wheel lacks {name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
