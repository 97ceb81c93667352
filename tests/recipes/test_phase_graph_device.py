"""PhaseGraph whole by the CUDA kernels on the emulator: ids and scores are the CPU's, bit for bit."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import variants
from compare import assert_bitwise

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = 64
pytestmark = pytest.mark.emulator


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """What turns the emulator on, for the rest of the test; its runtime tells what was launched."""
    reason = variants.missing(variants.SIMT)
    if reason is not None:
        pytest.skip(reason)
    monkeypatch.setenv("HOPFUSE_BACKEND", os.environ.get("HOPFUSE_BACKEND", ""))  # put back at the end

    def turn_on() -> Any:
        variants.use(variants.SIMT)
        return variants.simt_runtime()

    return turn_on


def workload(quick: bool) -> Any:
    """The bench's index and questions: hotpotqa, or a small synthetic graph."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    case, settings = import_module("bench.cases.phase_graph"), import_module("bench.settings")
    try:
        return case.PhaseGraphWhole(settings.Settings(quick=quick, repeats=1, threads=1))
    except import_module("bench.errors").UnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("quick", [True, False], ids=["synthetic", "hotpotqa"])
def test_real_questions_get_the_cpus_answers(emulated: Any, quick: bool) -> None:
    case = workload(quick)
    rows = range(min(QUESTIONS, len(case.mentions)))
    ask = {"vectors": case.vectors[rows.start : rows.stop], "entities": [case.mentions[q] for q in rows], "k": 10}
    expected = case.recipe.search(**ask)
    runtime = emulated()
    runtime.launches.clear()
    result = case.recipe.search(**ask)
    ran = {kernel.split("_")[0] for kernel, _, _ in runtime.launches}
    assert {"ppr", "dense", "fuse"} <= ran
    for pool in ("dense", "graph", "hits"):
        for name in ("ids", "scores", "counts"):
            where = f"{name} of {pool}"
            assert_bitwise(getattr(getattr(result, pool), name), getattr(getattr(expected, pool), name), where)
