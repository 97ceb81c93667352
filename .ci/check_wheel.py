"""The built wheel: under 10 MB, with the native module, its stubs and the typing marker inside."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

LIMIT = 10_000_000


def main(path: Path) -> None:
    size = path.stat().st_size
    print(f"{path.name}: {size:,} bytes")
    if size >= LIMIT:
        raise SystemExit(f"the wheel has {size:,} bytes; it must stay below {LIMIT:,}")
    names = zipfile.ZipFile(path).namelist()
    if not any(name.startswith("hopfuse/_native.") and name.endswith(".so") for name in names):
        raise SystemExit("the wheel has no native module")
    for name in ("hopfuse/py.typed", "hopfuse/_native.pyi"):
        if name not in names:
            raise SystemExit(f"the wheel lacks {name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
