"""The SIMT emulator: CUDA kernels compiled by the host compiler and run thread by thread, for tests."""

from hopfuse_simt.arguments import Pointer, Struct
from hopfuse_simt.build import BUILDS
from hopfuse_simt.driver import SimtDriver
from hopfuse_simt.errors import SimtBuildError, SimtError
from hopfuse_simt.launcher import Counters
from hopfuse_simt.module import MATRIX_UNITS, ORDERS, SHARED_LIMIT, SimtModule

__all__ = [
    "BUILDS",
    "MATRIX_UNITS",
    "ORDERS",
    "SHARED_LIMIT",
    "Counters",
    "Pointer",
    "SimtBuildError",
    "SimtDriver",
    "SimtError",
    "SimtModule",
    "Struct",
]
