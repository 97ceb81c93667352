"""GuidedWalk where calls go to a device, and its core as one unit: the CPU's bits."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise, assert_hits_equal
from hopfuse.recipes.guided_walk.core import guided_walk
from recipes.worlds import DIM, lists_of, random_questions, random_world


@pytest.mark.emulator
@pytest.mark.parametrize("allow", [None, list(range(3, 20))])
def test_a_device_has_the_hosts_answers(emulated: Any, allow: Any) -> None:
    ask, recipe = random_questions(6), hf.recipes.GuidedWalk(random_world(5).index())
    expected = recipe.search(**ask, k=7, allow=allow, trace=True)
    runtime = emulated()
    found = recipe.search(**ask, k=7, allow=allow, trace=True)
    assert {"ppr_mask_l8", "ppr_volume_l8"} <= {kernel for kernel, _, _ in runtime.launches}  # the guided walk is there
    for name, hits in lists_of(expected).items():
        assert_hits_equal(lists_of(found)[name], hits)
    assert_bitwise(found.starts.weights, expected.starts.weights, "restart")
    assert found.traces == expected.traces


def test_the_core_is_one_unit() -> None:
    ask, recipe = random_questions(6), hf.recipes.GuidedWalk(random_world(5).index())
    expected = recipe.search(**ask, k=7)
    mentions = hf.Incidence.from_graph(recipe.index.graph, 24)
    fixed: dict[str, Any] = {"config": recipe.config, "corpus": recipe.index.corpus, "graph": recipe.index.graph}

    def core(vectors: Any, nodes: Any, weights: Any) -> dict[str, Any]:
        seeds = hf.Seeds(nodes, weights)
        return guided_walk(vectors, seeds, None, k=7, view=None, mentions=mentions, threads=None, **fixed)

    captured = hf.capture(core, [((DIM,), np.float32), ((8,), np.int64), ((8,), np.float64)], backend="cpu")
    found = captured(ask["vectors"], expected.seeds.nodes, expected.seeds.weights)
    for name, hits in lists_of(expected).items():
        assert_hits_equal(found[name], hits)
    assert_bitwise(found["weights"], expected.starts.weights, "restart")
