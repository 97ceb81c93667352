"""GuidedWalk where calls go to a device, and its core as one unit: the CPU's bits."""

from __future__ import annotations

from collections import Counter
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise, assert_hits_equal
from hopfuse import backends
from hopfuse.recipes.guided_walk import SecondShares, guided_walk
from recipes.worlds import DIM, lists_of, random_questions, random_world
from variants import SIMT, use_sizes


def assert_alike(found: Any, expected: Any) -> None:
    for name, hits in lists_of(expected).items():
        assert_hits_equal(lists_of(found)[name], hits)
    assert_hits_equal(found.first, expected.first)
    assert_bitwise(found.starts.nodes, expected.starts.nodes, "nodes of the restart")
    assert_bitwise(found.starts.weights, expected.starts.weights, "restart")
    assert found.traces == expected.traces


def asked_again() -> int:
    """Queries that recordings have left to the plain core, so far."""
    return int(backends.resolve(SIMT).device.last.get("capture", {}).get("queries_rerun", 0))


@pytest.mark.emulator
@pytest.mark.parametrize(
    ("options", "allow"),
    [({}, None), ({}, list(range(3, 20))), ({"first": "dense", "depth": 2}, None), ({"damping": 0.9}, None)],
)
def test_a_device_has_the_hosts_answers(emulated: Any, options: dict[str, Any], allow: Any) -> None:
    ask, recipe = random_questions(6), hf.recipes.GuidedWalk(random_world(5).index(), **options)
    expected = recipe.search(**ask, k=7, allow=allow, trace=True)
    runtime = emulated()
    found = recipe.search(**ask, k=7, allow=allow, trace=True)
    assert {"ppr_mask_l8", "ppr_volume_l8"} <= {kernel for kernel, _, _ in runtime.launches}  # the guided walk is there
    assert_alike(found, expected)


@pytest.mark.emulator
@pytest.mark.parametrize("both", [False, True])
def test_a_search_is_one_replay_whatever_its_batch(emulated: Any, both: bool) -> None:
    """Questions without seeds and without words among them, and a lexical leg's lists, which enter as arrays."""
    ask, index = (
        random_questions(7, 11),
        random_world(5).index(),
    )  # no walk ends by a step in float64, outside recordings
    ask["entities"][2] = []
    ask["queries"] = [f"text {q} of {q % 3}" for q in range(11)]
    ask["queries"][5] = "nothing"
    texts = [f"text {p} of {p % 3}" for p in range(index.num_passages)]
    options = {"lexical_weight": 0.3} if both else {}
    recipe = hf.recipes.GuidedWalk(index, lexical=hf.lexical.BM25.build(texts), **options)
    expected = recipe.search(**ask, k=7)
    textless = recipe.search(vectors=ask["vectors"], entities=ask["entities"], k=7, trace=True)
    runtime = emulated()
    recipe.warmup(7, batch_sizes=[11, 2, 1])
    before = asked_again()
    for rows in (slice(0, 11), slice(3, 5), slice(2, 3)):
        runtime.events.clear()
        found = recipe.search(**{name: given[rows] for name, given in ask.items()}, k=7)
        assert Counter(event.kind for event in runtime.events) == {"replay": 1, "wait": 1}
        for name, hits in lists_of(expected).items():
            for part in ("ids", "scores", "counts"):
                assert_bitwise(getattr(lists_of(found)[name], part), getattr(hits, part)[rows], f"{part} of {name}")
    assert_alike(recipe.search(vectors=ask["vectors"], entities=ask["entities"], k=7, trace=True), textless)
    assert asked_again() == before


@pytest.mark.emulator
def test_more_second_seeds_than_a_recording_holds_are_asked_again(emulated: Any) -> None:
    ask, recipe = random_questions(6), hf.recipes.GuidedWalk(random_world(5).index(), second_top=4)
    expected = recipe.search(**ask, k=7, trace=True)
    emulated()
    before = asked_again()
    use_sizes(most_places=4)
    assert_alike(recipe.search(**ask, k=7, trace=True), expected)
    several = int((expected.first.counts > 1).sum())  # passages of three entities each
    assert several > 0
    assert asked_again() - before == several


def test_the_core_is_one_unit() -> None:
    ask, recipe = random_questions(6), hf.recipes.GuidedWalk(random_world(5).index())
    expected, index = recipe.search(**ask, k=7), recipe.index
    mentions = hf.Incidence.from_graph(index.graph, 24)
    fixed: dict[str, Any] = {
        "config": recipe.config,
        "corpus": index.corpus,
        "graph": index.graph,
        "mentions": mentions,
        "shares": SecondShares(mentions, index).whole,
        "threads": None,
    }

    def core(vectors: Any, nodes: Any, weights: Any) -> dict[str, Any]:
        given = vectors, hf.Seeds(nodes, weights), vectors, weights, None
        return guided_walk(*given, k=7, view=None, backend="auto", **fixed)

    captured = hf.capture(core, [((DIM,), np.float32), ((8,), np.int64), ((8,), np.float64)], backend="cpu")
    found = captured(ask["vectors"], expected.seeds.nodes, expected.seeds.weights)
    for name, hits in expected.lists.items():
        assert_hits_equal(found[name], hits)
    assert_hits_equal(found["first"], expected.first)
