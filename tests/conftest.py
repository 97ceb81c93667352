"""Fixtures and settings that all tests share.

Two tiers. The quick one, by default: property tests draw 25 examples each, the same in every run, a test of every
variant takes one case in eight to the emulator (none if it is marked ``emulator_full``), and tests marked ``full`` are
left out. ``HOPFUSE_TESTS=full`` takes every case, and draws 400.

Calls run on one thread unless a test says ``threads=``, so that tests may run side by side.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("HOPFUSE_NUM_THREADS", "1")

import pytest
import variants
from hopfuse import _native
from hypothesis import HealthCheck, settings

os.environ["COLUMNS"] = "80"  # a terminal's width and colours, wherever the tests are started
for _name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(_name, None)

# The only function-scoped fixture beside @given is the kernel variant, which examples do not change.
_common = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=25, derandomize=True, **_common)
settings.register_profile("full", max_examples=400, **_common)
FULL = os.environ.get("HOPFUSE_TESTS") == "full"
settings.load_profile("full" if FULL else "quick")
#: Of so many cases of a test, the quick tier takes one to the emulator.
EMULATED = 8


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The quick tier's selection; what is left out is reported as deselected."""
    if FULL:
        return
    kept, left_out, cases = [], [], Counter[str]()
    for item in items:
        takes = item.get_closest_marker("full") is None
        call = getattr(item, "callspec", None)
        if takes and call is not None and call.params.get("variant") == variants.SIMT:
            name = item.nodeid.partition("[")[0]
            takes = cases[name] % EMULATED == 0 and item.get_closest_marker("emulator_full") is None
            cases[name] += 1
        (kept if takes else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


_VARIANTS = [variants.CPU, pytest.param(variants.SIMT, marks=pytest.mark.emulator)]
if variants.missing(variants.CUDA) is None:  # elsewhere test_a_gpu_has_the_cpus_bits is the skip that says why not
    _VARIANTS.append(pytest.param(variants.CUDA, marks=pytest.mark.gpu))


@pytest.fixture(params=_VARIANTS)
def variant(request: pytest.FixtureRequest) -> Iterator[str]:
    """The CPU, the CUDA kernels on the emulator and on a GPU, in turn.

    On the CPU every kernel is called on every instruction set that runs here, and all must leave the same bits.
    The quick tier takes one case in eight of a test to the emulator.
    """
    reason = variants.missing(request.param)
    if reason is not None:
        pytest.skip(reason)
    before = _native.isa()
    try:
        if request.param == variants.CPU:
            with variants.every_instruction_set():
                yield variants.CPU
        else:
            variants.use(request.param)
            yield request.param
    finally:
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
