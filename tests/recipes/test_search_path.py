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

BINDINGS = {
    hf.recipes.PhaseGraph: ("dense_topk", "ppr_topk", "fuse"),
    hf.recipes.HybridRRF: ("dense_topk", "ppr_topk", "fuse"),
    hf.recipes.GuidedWalk: ("dense_topk", "similarity", "ppr_topk", "fuse"),
    hf.recipes.PolicyRAG: ("dense_topk", "ppr", "project_topk"),
    hf.recipes.TripleHybrid: ("dense_topk", "dice", "fuse"),
}
"""The kernels of each recipe. PolicyRAG's finders of facts and of entities stand before its `dice`."""
MAX_CALLS = 4
"""search, the core, the operation, the backend; the next call is the binding's."""


class Spy:
    """The native module, which counts what Python called between a search and each binding."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self.depths: dict[str, set[int]] = {}

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


def recipe_and_questions(kind: Any, scope: str | None = None) -> tuple[Any, dict[str, Any]]:
    how: dict[str, Any] = {} if scope is None else {"allow_scope": scope}
    if kind in (hf.recipes.PolicyRAG, hf.recipes.TripleHybrid):
        world = PolicyWorld(3)
        how |= {"queries": world.questions, "vectors": world.encoder.encode_queries(world.questions)}
        how |= {"entities": world.mentions} if kind is hf.recipes.PolicyRAG else {}
        how |= {} if scope is None else {"allow": np.arange(PASSAGES) % 3 > 0}
        return kind(world.index), how
    how |= {} if scope is None else {"allow": [[0, 1, 2], [3], [4, 5], [], [1]]}
    return kind(random_world(1).index()), how | random_questions(2)


@pytest.mark.parametrize("kind", BINDINGS)
@pytest.mark.parametrize("scope", [None, "isolated", "results"])
def test_a_search_is_four_calls_from_the_bindings(spy: Spy, kind: Any, scope: Any) -> None:
    spy.depths = {name: set() for name in BINDINGS[kind]}
    recipe, how = recipe_and_questions(kind, scope)
    recipe.search(**how)
    assert all(depths and max(depths) <= MAX_CALLS for depths in spy.depths.values()), spy.depths


@pytest.mark.parametrize("kind", BINDINGS)
def test_an_operation_checks_vectors_once_and_a_search_chooses_its_backend_once(
    monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    from hopfuse import backends
    from hopfuse.ops import capture, dense, similarity

    calls: Counter[str] = Counter()

    def counted(module: Any, name: str) -> None:
        whole = getattr(module, name)

        def count(*args: Any, **kwargs: Any) -> Any:
            calls[name] += 1
            return whole(*args, **kwargs)

        monkeypatch.setattr(module, name, count)

    monkeypatch.setenv("HOPFUSE_BACKEND", "cpu")
    recipe, how = recipe_and_questions(kind)
    for module, name in (
        (dense, "read_queries"),
        (similarity, "read_queries"),
        (capture, "automatic"),
        (backends, "automatic"),
    ):
        counted(module, name)
    monkeypatch.setattr(capture.Captured, "__call__", lambda *_: pytest.fail("a core was wrapped on the CPU"))
    recipe.search(**how)
    readers = {"dense_topk", "similarity"} & set(BINDINGS[kind])
    assert calls == {"read_queries": len(readers), "automatic": 1}


def test_what_a_search_was_given_is_not_kept() -> None:
    """Cores are kept for a device alone: searches of many widths and k leave nothing on the CPU."""
    recipe = hf.recipes.PhaseGraph(random_world(1).index())
    for k in range(1, 6):
        assert set(lists_of(recipe.search(**random_questions(2), k=k))) == {"hits", "dense", "graph"}
    assert recipe._recorded._captured == {}
