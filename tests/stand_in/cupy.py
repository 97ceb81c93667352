"""``import cupy`` in a process that has this folder in PYTHONPATH: a machine with a card, all of it the stand-ins'.

This is the one place where such a process differs from one on a real card: no program that runs in it knows.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "tests"), str(ROOT / "kernels" / "simt")]

import fake_cupy  # noqa: E402
from fake_cublas import FakeCublas  # noqa: E402
from hopfuse.backends.cuda import cublas, found_device  # noqa: E402
from hopfuse_simt.module import SimtModule  # noqa: E402
from names_only import NamesOnly  # noqa: E402

#: Small: a program that fills the memory touches all of it, and nothing gives it back before the process ends.
MEMORY = 192 * 2**20

simt = SimtModule(sorted((ROOT / "kernels" / "cuda").glob("*.cu")))
cupy = fake_cupy.FakeCupy(simt)
fake_cupy.cuda.memory = MEMORY
found_device.FoundNvrtc = lambda capability, driver: NamesOnly(simt)
cublas.load_library = FakeCublas
cupy.__spec__ = __spec__
sys.modules[__name__] = cupy
