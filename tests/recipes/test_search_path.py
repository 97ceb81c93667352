"""The way from a search to the kernels: few calls, one check of the vectors, one choice of a backend."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.backends import cpu
from recipes.policy_world import PASSAGES, PolicyWorld
from recipes.worlds import lists_of, random_questions, random_world

BINDINGS = ("dense_topk", "ppr_topk", "fuse")
MAX_CALLS = 4
"""search, the core, the operation, the backend; the next call is the binding's."""


class Spy:
    """The native module, which counts what Python called between a search and each binding."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self.depths: dict[str, set[int]] = {name: set() for name in BINDINGS}

    def __getattr__(self, name: str) -> Any:
        binding = getattr(self._native, name)
        if name not in self.depths:
            return binding

        def called(*args: Any, **kwargs: Any) -> Any:
            frame, depth = sys._getframe(1), 1
            while frame.f_code.co_name != "search" or "recipes" not in frame.f_code.co_filename:
                assert frame.f_back is not None
                frame, depth = frame.f_back, depth + 1
            self.depths[name].add(depth)
            return binding(*args, **kwargs)

        return called


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    monkeypatch.setenv("HOPFUSE_BACKEND", "cpu")
    spied = Spy(cpu._native)
    monkeypatch.setattr(cpu, "_native", spied)
    return spied


@pytest.mark.parametrize("make", [hf.recipes.PhaseGraph, hf.recipes.HybridRRF])
@pytest.mark.parametrize("scope", [None, "isolated", "results"])
def test_a_search_is_four_calls_from_the_bindings(spy: Spy, make: Any, scope: Any) -> None:
    recipe, how = make(random_world(1).index()), {}
    if scope is not None:
        how = {"allow": [[0, 1, 2], [3], [4, 5], [], [1]], "allow_scope": scope}
    recipe.search(**random_questions(2), **how)
    assert set(spy.depths) == set(BINDINGS)
    assert all(depths and max(depths) <= MAX_CALLS for depths in spy.depths.values()), spy.depths


OTHERS = {
    hf.recipes.PolicyRAG: ("dense_topk", "ppr", "project_topk", "dice"),
    hf.recipes.TripleHybrid: ("dense_topk", "dice", "fuse"),
}


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("scope", [None, "isolated", "results"])
def test_so_is_one_of_the_recipes_of_facts(spy: Spy, kind: Any, scope: Any) -> None:
    world, named = PolicyWorld(3), kind is hf.recipes.PolicyRAG
    spy.depths = {name: set() for name in OTHERS[kind]}
    how: dict[str, Any] = {"entities": world.mentions} if named else {}
    if scope is not None:
        how |= {"allow": np.arange(PASSAGES) % 3 > 0, "allow_scope": scope}
    kind(world.index).search(world.questions, vectors=world.encoder.encode_queries(world.questions), **how)
    walked = {name: depths for name, depths in spy.depths.items() if name != "dice" or not named}
    assert all(depths and max(depths) <= MAX_CALLS for depths in walked.values()), spy.depths


@pytest.mark.parametrize("make", [hf.recipes.PhaseGraph, hf.recipes.HybridRRF, hf.recipes.TripleHybrid])
def test_vectors_are_checked_once_and_the_backend_is_chosen_once(monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    from hopfuse import backends
    from hopfuse.ops import capture, dense

    calls: Counter[str] = Counter()

    def counted(module: Any, name: str) -> None:
        whole = getattr(module, name)

        def count(*args: Any, **kwargs: Any) -> Any:
            calls[name] += 1
            return whole(*args, **kwargs)

        monkeypatch.setattr(module, name, count)

    monkeypatch.setenv("HOPFUSE_BACKEND", "cpu")
    if make is hf.recipes.TripleHybrid:
        world = PolicyWorld(3)
        recipe = make(world.index)
        ask = {"queries": world.questions, "vectors": world.encoder.encode_queries(world.questions)}
    else:
        recipe, ask = make(random_world(1).index()), random_questions(2)
    for module, name in ((dense, "read_queries"), (capture, "automatic"), (backends, "automatic")):
        counted(module, name)
    monkeypatch.setattr(capture.Captured, "__call__", lambda *_: pytest.fail("a core was wrapped on the CPU"))
    recipe.search(**ask)
    assert calls == {"read_queries": 1, "automatic": 1}


def test_what_a_search_was_given_is_not_kept() -> None:
    """Cores are kept for a device alone: searches of many widths and k leave nothing on the CPU."""
    recipe = hf.recipes.PhaseGraph(random_world(1).index())
    for k in range(1, 6):
        assert set(lists_of(recipe.search(**random_questions(2), k=k))) == {"hits", "dense", "graph"}
    assert recipe._recorded._captured == {}
