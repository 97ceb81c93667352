"""Fixtures and settings that all tests share.

There are two tiers. In the quick one, the default, property tests draw 25 examples, the same in every run; tests of
every variant run one case in eight on the emulator (none if marked ``emulator_full``); and tests marked ``full`` do not
run. ``HOPFUSE_TESTS=full`` runs every case, with 100 examples, and ``HOPFUSE_TESTS=rest`` of these only what is more
than in the quick tier. ``HOPFUSE_DRAWS`` is another number of examples; ``.ci/soak`` counts further ones.

Calls run on one thread unless a test sets ``threads=``, so that tests may run in parallel.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("HOPFUSE_NUM_THREADS", "1")

import pytest
import tiers
import variants
from hopfuse import _native
from hypothesis import HealthCheck, settings
from tiers import DRAWS, FULL, REST

os.environ["COLUMNS"] = "80"  # a terminal's width and colours, wherever the tests are started
for _name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(_name, None)

# The only function-scoped fixture used with @given is the kernel variant, which examples do not change.
_common = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=int(DRAWS or 25), derandomize=DRAWS is None, **_common)
settings.register_profile("full", max_examples=int(DRAWS or 100), **_common)
settings.load_profile("full" if FULL else "quick")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that are not of this tier."""
    kept = tiers.selected(items, full=FULL, rest=REST)
    left_out = set(items) - set(kept)
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
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
    """The CPU variants that can run, best first; the choice is restored after a test that changes it."""
    before = _native.isa()
    yield _native.runnable_isas()
    variants.use(before)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets, beside the repository or as HOPFUSE_DATA says; skips if there is none."""
    folder = Path(os.environ.get("HOPFUSE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the real data is not at {folder}; set HOPFUSE_DATA")
    return folder
