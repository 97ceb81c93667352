"""Compile the CUDA kernels ahead of time, as CMakeLists.txt does with HOPFUSE_CUDA=ON.

Usage::

    build_images.py check               print the NVRTC that is used, or say what to install
    build_images.py unit FILE.cu FILE.images

Needs Python and NVIDIA's wheel of NVRTC, but no toolkit, driver or GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

#: The compiler of the shipped code; its budgets of registers are those of the kernels' comments.
NVRTC = "12.9.86"
PACKAGE = f"nvidia-cuda-nvrtc-cu12=={NVRTC}"
#: The compute capabilities of cubins, and those of PTX, which drivers compile for all others.
CUBINS, PTX = (75, 80, 86, 89, 90, 100, 120), (75, 120)

_ROOT = Path(__file__).resolve().parents[2]


def package_module(name: str) -> Any:
    """Return a module of ``hopfuse.backends.cuda`` without the ``__init__`` files, which need the native module."""
    for package in ("hopfuse", "hopfuse.backends", "hopfuse.backends.cuda"):
        if package not in sys.modules:
            bare = ModuleType(package)
            bare.__path__ = [str(_ROOT / "python" / package.replace(".", "/"))]
            sys.modules[package] = bare
    return import_module(f"hopfuse.backends.cuda.{name}")


def find_nvrtc() -> Any:
    """Return the first NVRTC of the stated release."""
    nvrtc = package_module("nvrtc")
    found = []
    for path in nvrtc.library_paths():
        try:
            one = nvrtc.Nvrtc(path)
            if one.version == NVRTC:
                return one
            found.append(f"{path} is {one.version}")
        except nvrtc.NvrtcError:
            continue
    others = f" ({'; '.join(found)})" if found else ""
    sys.exit(f"HOPFUSE_CUDA=ON needs NVRTC {NVRTC}, which was not found{others}. Install it: pip install {PACKAGE}")


def compile_unit(unit: Path, out: Path) -> None:
    """Write a unit's images; any message of the compiler is an error."""
    nvrtc, sources = find_nvrtc(), package_module("kernel_sources").KernelSources(unit.parent, include_of(unit), Path())
    images: dict[str, bytes] = {}
    for number in CUBINS:
        made = nvrtc.compile(unit, f"sm_{number}", sources.compiler_options(unit))
        if made.log:
            sys.exit(f"{unit.name} for sm_{number}: {made.log}")
        images[f"sm_{number}"] = made.cubin
        if number in PTX:  # that of sm_N is that of compute_N
            images[f"compute_{number}"] = made.ptx
    packed = package_module("kernel_images").pack(unit.name, sources.unit_hash(unit), NVRTC, images)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(packed)


def include_of(unit: Path) -> Path:
    """Return the folder of the contracts beside the folder of a unit."""
    return unit.resolve().parents[1] / "include"


def main(arguments: Sequence[str]) -> None:
    """Run a command of the usage above."""
    match arguments:
        case ["check"]:
            print(f"NVRTC {NVRTC}, {find_nvrtc().path}")
        case ["unit", unit, out]:
            compile_unit(Path(unit), Path(out))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
