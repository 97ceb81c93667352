"""Real compilers for the CUDA kernels: NVRTC from its wheel (no driver, no GPU), and nvcc where it is installed.

The helpers are imported by their own names: a package called ``cuda`` would hide NVIDIA's.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import nvrtc
import pytest
from tiers import FULL

#: The architectures of this run.
ARCHITECTURES = nvrtc.ARCHITECTURES if FULL else (90,)
#: Those of compilers that do not make the wheels' images: the oldest and the newest.
SOME = tuple(sorted({min(ARCHITECTURES), max(ARCHITECTURES)}))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "architecture" in metafunc.fixturenames:
        metafunc.parametrize("architecture", ARCHITECTURES, ids=[f"sm_{number}" for number in ARCHITECTURES])
    if "some_architecture" in metafunc.fixturenames:
        metafunc.parametrize("some_architecture", SOME, ids=[f"sm_{number}" for number in SOME])
    if "source" in metafunc.fixturenames:
        metafunc.parametrize("source", nvrtc.SOURCES, ids=[path.stem for path in nvrtc.SOURCES])


def the_release(package: str) -> nvrtc.Nvrtc:
    found = nvrtc.find(package)
    if found is None:
        pytest.skip(f"NVRTC is not installed: pip install {package}")
    return found


@pytest.fixture(scope="session")
def compiler() -> nvrtc.Nvrtc:
    """The NVRTC of the wheels' images, which the budgets are stated for."""
    return the_release("nvidia-cuda-nvrtc-cu12")


@pytest.fixture(scope="session")
def cuda13_compiler() -> nvrtc.Nvrtc:
    """What compiles at first use beside a driver of CUDA 13."""
    return the_release("nvidia-cuda-nvrtc")


@pytest.fixture(scope="session")
def cubins(compiler: nvrtc.Nvrtc) -> nvrtc.Nvrtc:
    """The same, with all that this run needs compiled."""
    compiler.build_all(nvrtc.SOURCES, ARCHITECTURES)
    return compiler


@pytest.fixture(scope="session")
def nvcc() -> str:
    path = shutil.which("nvcc")
    if path is None:
        pytest.skip("nvcc is not installed")
    return path
