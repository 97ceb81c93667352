"""Check a wheel's size, and that it has the native module, its stubs, py.typed and the kernels' sources.

Usage: ``check_wheel.py [--images] WHEEL``. With ``--images`` it must have every kernel's images, too (HOPFUSE_CUDA=ON).
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from pathlib import Path

#: Bytes of a wheel without and with images.
LIMIT, LIMIT_WITH_IMAGES = 10_000_000, 25_000_000
KERNELS = Path(__file__).parents[1] / "kernels"
sys.path[:0] = [str(KERNELS / "cuda"), str(KERNELS.parent / "tests" / "cuda")]

from build_images import CUBINS, PTX, package_module  # noqa: E402
from cubin import kernel_names  # noqa: E402


def kernel_sources() -> set[str]:
    """Return the paths in the wheel of the sources that NVRTC compiles on a user's machine."""
    paths = [*(KERNELS / "cuda").glob("*.cu"), *(KERNELS / "cuda").rglob("*.h"), *(KERNELS / "include").rglob("*.h")]
    return {f"hopfuse/kernels/{path.relative_to(KERNELS).as_posix()}" for path in paths}


def check_images(wheel: zipfile.ZipFile) -> int:
    """Check that each unit has all its images, made from the wheel's own sources; return their bytes in the wheel."""
    expected = {*(f"sm_{number}" for number in CUBINS), *(f"compute_{number}" for number in PTX)}
    with tempfile.TemporaryDirectory() as folder:
        wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith("hopfuse/kernels/")])
        kernels = Path(folder) / "hopfuse" / "kernels"
        sources = package_module("kernel_sources").KernelSources(
            kernels / "cuda", kernels / "include", kernels / "images"
        )
        for unit in sources.units:
            images = sources.prebuilt(unit)
            if images is None or set(images.targets) != expected:
                raise SystemExit(f"the wheel lacks images of its {unit.name} for {', '.join(sorted(expected))}")
            names = {kernel_names(images.image(target)) for target in images.targets}  # raises if one is damaged
            if len(names) > 1 or frozenset() in names:
                raise SystemExit(f"the images of {unit.name} have other kernels for one target than for another")
    return sum(info.compress_size for info in wheel.infolist() if info.filename.startswith("hopfuse/kernels/images/"))


def abi_of(path: Path) -> str:
    """Return the ABI that a wheel's name states, such as abi3 or cp314t."""
    return path.name.split("-")[3]


def main(path: Path, has_images: bool) -> None:
    size, limit = path.stat().st_size, LIMIT_WITH_IMAGES if has_images else LIMIT
    print(f"{path.name}: {size:,} bytes")
    if size >= limit:
        raise SystemExit(f"the wheel has {size:,} bytes; it must stay below {limit:,}")
    wheel = zipfile.ZipFile(path)
    names = wheel.namelist()
    if not any(name.startswith("hopfuse/_native.") and name.endswith(".so") for name in names):
        raise SystemExit("the wheel has no native module")
    if abi_of(path) == "abi3" and "hopfuse/_native.abi3.so" not in names:
        raise SystemExit(
            f"{path.name} is tagged for the stable ABI, and its module is not of it; use CMake 3.26 or later"
        )
    for name in ("hopfuse/py.typed", "hopfuse/_native.pyi", *sorted(kernel_sources())):
        if name not in names:
            raise SystemExit(f"the wheel lacks {name}")
    if has_images:
        print(f"images: {check_images(wheel):,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[-1]), "--images" in sys.argv[1:-1])
