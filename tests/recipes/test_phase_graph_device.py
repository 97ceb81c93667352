"""PhaseGraph whole by the CUDA kernels on the emulator: ids and scores are the CPU's, bit for bit."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from typing import Any

import hopfuse as hf
import pytest
from compare import assert_bitwise
from recipes.worlds import lists_of

#: Of the synthetic graph and of HotpotQA, whose walks take the emulator seconds each.
QUESTIONS, REAL_QUESTIONS = 64, 9
pytestmark = pytest.mark.emulator


def workload(quick: bool) -> Any:
    """The bench's index and questions: hotpotqa, or a small synthetic graph."""
    case, settings = import_module("bench.cases.phase_graph"), import_module("bench.settings")
    try:
        return case.PhaseGraphWhole(settings.Settings(quick=quick, repeats=1, threads=1))
    except import_module("bench.errors").UnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.full
@pytest.mark.parametrize("quick", [True, False], ids=["synthetic", "hotpotqa"])
def test_real_questions_get_the_cpus_answers(emulated: Any, quick: bool) -> None:
    case = workload(quick)
    rows = range(min(QUESTIONS if quick else REAL_QUESTIONS, len(case.mentions)))
    ask = {"vectors": case.vectors[rows.start : rows.stop], "entities": [case.mentions[q] for q in rows], "k": 10}
    expected = case.recipe.search(**ask)
    runtime = emulated()
    runtime.launches.clear()
    result = case.recipe.search(**ask)
    ran = {kernel.split("_")[0] for kernel, _, _ in runtime.launches}
    assert {"ppr", "dense", "fuse"} <= ran
    assert_same(result, expected)
    runtime.events.clear()
    assert_same(case.recipe.search(**ask), expected)
    assert Counter(event.kind for event in runtime.events) == {"replay": 1, "wait": 1}


def test_a_question_costs_few_launches(emulated: Any) -> None:
    """At most 2 for a pass of 32 questions or the certificate, no more than 14 beside."""
    case, runtime = workload(True), emulated()
    ask = {"vectors": case.vectors[:32], "entities": list(case.mentions[:32]), "k": 10}
    case.recipe.search(**ask)
    runtime.events.clear(), runtime.launches.clear()
    case.recipe.search(**ask)
    ran = Counter(kernel.split("_l")[0] for kernel, _, _ in runtime.launches)
    passes = ("ppr_early", "ppr_pass", "ppr_walk", "ppr_residual")  # the certificate is one, too
    walk = {name: count for name, count in ran.items() if name.startswith((*passes, "ppr_segments"))}
    assert sum(walk.values()) <= 2 * sum(count for name, count in walk.items() if "segments" not in name)
    assert sum(ran.values()) - sum(walk.values()) <= 14, ran


def test_passage_seeds_and_unseeded_questions(emulated: Any) -> None:
    case = workload(True)
    recipe = hf.recipes.PhaseGraph(case.recipe.index, passage_seeds=0.1, ties="mean", graph_k=7, dense_k=9)
    mentions = [[] if q % 3 == 0 else case.mentions[q] for q in range(10)]
    ask = {"vectors": case.vectors[:10], "entities": mentions, "k": 4, "trace": True}
    expected = recipe.search(**ask)
    emulated()
    recipe.warmup(4, batch_sizes=[10])
    result = recipe.search(**ask)
    assert_same(result, expected)
    assert result.traces == expected.traces


def assert_same(result: Any, expected: Any) -> None:
    for pool in ("dense", "graph", "hits"):
        for name, array in vars(lists_of(expected)[pool]).items():
            assert_bitwise(getattr(lists_of(result)[pool], name), array, f"{name} of {pool}")
