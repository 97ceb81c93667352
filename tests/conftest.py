"""Fixtures and settings that all tests share.

There are two tiers. In the quick one, the default, property tests draw 25 examples, the same in every run; tests of
every variant run one case in 21 on the emulator (none if marked ``emulator_full``); tests of kernels and operations run
a sample of their cases (``tiers.SAMPLED``); and tests marked ``full`` do not run. ``HOPFUSE_TESTS=full`` runs every
case, with 100 examples, and ``HOPFUSE_TESTS=rest`` of these only what is more than in the quick tier.
``HOPFUSE_TESTS=sample`` is the quick tier with a smaller sample, where only the build of the native module is new.
``HOPFUSE_DRAWS`` is another number of examples; ``.ci/soak`` counts further ones.

Calls run on one thread unless a test sets ``threads=``, so that tests may run in parallel.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.util
import os
import signal
import ssl
from collections.abc import Generator, Iterator
from pathlib import Path
from unittest.mock import patch

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

# A shell that starts the tests in the background has SIGINT ignored, which their own processes would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The only function-scoped fixture used with @given is the kernel variant, which examples do not change.
_common = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=int(DRAWS or 25), derandomize=DRAWS is None, **_common)
settings.register_profile("full", max_examples=int(DRAWS or 100), **_common)
settings.load_profile("full" if FULL else "quick")


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Give ``-n auto`` one worker more than there are cores, since tests of servers wait for much of their time."""
    count = yield
    return count if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else count + 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that are not of this tier."""
    kept = tiers.selected(items, full=FULL, rest=REST)
    left_out = set(items) - set(kept)
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = kept


def pytest_collection_finish(session: pytest.Session) -> None:
    """Open the emulated driver, before a test looks for a real one: a process has one, or none for good.

    What was collected is taken from the garbage collector, which would look at it for a third of a second each time.
    """
    if variants.missing(variants.SIMT) is None and any(item.get_closest_marker("emulator") for item in session.items):
        variants.open_emulator()
    gc.collect()
    gc.freeze()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the fixture ``variant`` on each; on the emulator in every order of threads if marked so."""
    if "variant" in metafunc.fixturenames:
        in_every_order = metafunc.definition.get_closest_marker("every_order") is not None
        metafunc.parametrize("variant", variants.params(in_every_order=in_every_order), indirect=True)


@pytest.fixture(scope="session", autouse=True)
def certificates_are_read_once() -> Iterator[None]:
    """Let clients of HTTP share the certificates of https, which each reads: that takes longer than most requests."""
    with patch.object(ssl, "create_default_context", functools.cache(ssl.create_default_context)):
        yield


@pytest.fixture(scope="session")
def model_in_memory() -> Iterator[None]:
    """Load WordLlama's model once in this process, where it is installed, and not for each command."""
    with contextlib.ExitStack() as stack:
        if importlib.util.find_spec("wordllama") is not None:
            from wordllama import WordLlama

            stack.enter_context(patch.object(WordLlama, "load", functools.cache(WordLlama.load)))
        yield


@pytest.fixture(scope="module")
def garbage_of_these_tests() -> None:
    """Take what earlier tests left alive from the garbage collector, where tests call it often."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def variant(request: pytest.FixtureRequest) -> Iterator[str]:
    """The CPU, the CUDA kernels on the emulator and on a GPU, in turn.

    On the CPU every kernel is called on every instruction set that runs here, on a device it is called on the CPU too;
    all must leave the same bits. On the emulator a test runs in an order of threads that its name chooses, and if
    marked ``every_order`` in each, and in the full tier in the sanitizers' builds. The quick tier takes one case in
    21 of other tests to the emulator, at least one of each.
    """
    name, _, threads = request.param.partition("-")
    reason = variants.missing(name)
    if reason is not None:
        pytest.skip(reason)
    with contextlib.ExitStack() as stack:
        if name == variants.SIMT:
            stack.enter_context(variants.emulated(threads or variants.order_of(request.node.nodeid)))
        else:
            stack.callback(variants.use, _native.isa())
            on_cpu = name == variants.CPU
            stack.enter_context(variants.every_instruction_set() if on_cpu else variants.same_bits_as_the_cpu())
            if not on_cpu:
                variants.use(name)
        yield name


@pytest.fixture
def every_isa() -> Iterator[list[str]]:
    """The CPU variants that can run, best first; the choice is restored after a test that changes it."""
    before = _native.isa()
    yield _native.runnable_isas()
    variants.use(before)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets, beside the repository or as HOPFUSE_DATA says; skips if there is none."""
    from bench.data_sets import data_root  # absent where the tests come without benchmarks

    folder = data_root()
    if not folder.is_dir():
        pytest.skip(f"the real data is not at {folder}; set HOPFUSE_DATA")
    return folder
