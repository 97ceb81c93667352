"""Fixtures and settings that all tests share.

Property tests draw 25 examples each. ``HOPFUSE_TESTS=full`` draws 400, for a longer run.
Calls run on one thread unless a test says ``threads=``, and waiting threads sleep, so that tests may run side by side.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when the OpenMP runtime loads
os.environ.setdefault("HOPFUSE_NUM_THREADS", "1")

import pytest
import variants
from hopfuse import _native
from hypothesis import HealthCheck, settings

# The only function-scoped fixture beside @given is the kernel variant, which examples do not change.
_common = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]}
settings.register_profile("default", max_examples=25, **_common)
settings.register_profile("full", max_examples=400, **_common)
settings.load_profile("full" if os.environ.get("HOPFUSE_TESTS") == "full" else "default")


_DEVICES = [pytest.param(variants.SIMT, marks=pytest.mark.emulator)]
if variants.missing(variants.CUDA) is None:  # elsewhere test_a_gpu_has_the_cpus_bits is the skip that says why not
    _DEVICES.append(pytest.param(variants.CUDA, marks=pytest.mark.gpu))


@pytest.fixture(params=[*_native.built_isas(), *_DEVICES])
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each kernel variant in turn, the CUDA kernels on the emulator and on a GPU among them.

    A variant of the CPU that cannot run here is a skip.
    """
    reason = variants.missing(request.param)
    if reason is not None:
        pytest.skip(reason)
    before = _native.isa()
    variants.use(request.param)
    yield request.param
    variants.use(before)


@pytest.fixture
def every_isa() -> Iterator[list[str]]:
    """The runnable CPU variants, best first; the test switches among them, and the first choice is restored."""
    before = _native.isa()
    yield _native.runnable_isas()
    variants.use(before)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The real data sets beside the repository, or where HOPFUSE_DATA says; a skip where there are none."""
    folder = Path(os.environ.get("HOPFUSE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the real data is not at {folder}; set HOPFUSE_DATA")
    return folder
