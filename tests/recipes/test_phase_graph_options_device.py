"""PhaseGraph's options by the CUDA kernels on the emulator: the CPU's bits, recorded or one by one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise
from hopfuse import fusion
from recipes.worlds import lists_of, random_questions, random_world

pytestmark = pytest.mark.emulator
MASKS = np.random.default_rng(3).random((5, 24)) < 0.5

RECORDED: list[dict[str, Any]] = [
    {"method": "rrf", "edge_weights": {"synonym": 0.0}},
    {"method": fusion.Tsallis(q=(1.0, 1.5))},
    {"method": "linear", "calibration": "min_max", "edge_weights": {"relation": 0.5}, "passage_seeds": 0.1},
]
ONE_BY_ONE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"method": "power_mean", "calibration": "max", "alpha": 0.3}, {}),
    ({"consensus": 0.5}, {"allow": MASKS, "allow_scope": "results"}),
    ({"passage_seeds": 0.2}, {"allow": MASKS[0], "allow_scope": "results"}),
    ({"method": "rrf"}, {"allow": MASKS, "allow_scope": "results"}),
]


def assert_same(result: Any, expected: Any) -> None:
    for pool, hits in lists_of(expected).items():
        for name, array in vars(hits).items():
            assert_bitwise(getattr(lists_of(result)[pool], name), array, f"{name} of {pool}")
    assert result.traces == expected.traces


@pytest.mark.parametrize("options", RECORDED, ids=repr)
def test_a_recording_gives_the_cpus_answers(emulated: Any, options: dict[str, Any]) -> None:
    recipe, ask = hf.recipes.PhaseGraph(random_world(2).index(), **options), random_questions(3)
    expected = recipe.search(**ask, k=6, trace=True)
    runtime = emulated()
    recipe.warmup(6, batch_sizes=[5])
    assert_same(recipe.search(**ask, k=6, trace=True), expected)
    runtime.events.clear()
    recipe.search(**ask, k=6)
    assert Counter(event.kind for event in runtime.events) == {"replay": 1, "wait": 1}


@pytest.mark.parametrize(("options", "asked"), ONE_BY_ONE, ids=repr)
def test_operations_one_by_one_give_the_cpus_answers(
    emulated: Any, options: dict[str, Any], asked: dict[str, Any]
) -> None:
    world, ask = random_world(2), random_questions(3)
    world.vectors[:], ask["vectors"] = np.abs(world.vectors), np.abs(ask["vectors"])  # scores that every method takes
    recipe = hf.recipes.PhaseGraph(world.index(), **options)
    expected = recipe.search(**ask, **asked, k=6, trace=True)
    runtime = emulated()
    recipe.warmup(6, batch_sizes=[5])
    runtime.events.clear()
    assert_same(recipe.search(**ask, **asked, k=6, trace=True), expected)
    assert "replay" not in {event.kind for event in runtime.events}
