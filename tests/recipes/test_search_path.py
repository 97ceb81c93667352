"""The way from a search to the kernels: at most four rooms, one check of the vectors, one choice of a backend."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from pkgutil import resolve_name
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.backends import calls
from hopfuse.extract import Match
from native_kernels import KERNELS
from recipes.policy_world import PASSAGES, PolicyWorld
from recipes.worlds import Encoder, lists_of, random_questions, random_world

MAX_ROOMS = 4
"""Recipes, operations, backends and bindings."""
CASES: list[tuple[Any, dict[str, Any], set[str]]] = [
    (hf.recipes.PhaseGraph, {"passage_seeds": 0.1}, {"dense_topk", "calibrate", "ppr_topk", "fuse"}),
    (hf.recipes.HybridRRF, {}, {"dense_topk", "ppr_topk", "fuse"}),
    (hf.recipes.GuidedWalk, {}, {"dense_topk", "similarity", "ppr_topk", "fuse"}),
    (hf.recipes.PolicyRAG, {}, {"dense_topk", "dice", "calibrate", "ppr", "project_topk"}),
    (hf.recipes.PolicyRAG, {"fact_vectors": ...}, {"dense_topk", "dice", "calibrate", "ppr", "project_topk"}),
    (hf.recipes.TripleHybrid, {}, {"dense_topk", "dice", "fuse"}),
]
"""Recipes, options, and the kernels that they run."""
SEEDS = hf.recipes.Policy.from_toml("version = 1\n[seeds]\nsource = 'both'\nthreshold = -1")
#: A name that only vectors can match, and two entities of one name, told apart by the vectors of their passages.
NAMES = ["a stranger", *(Match(entity, "a name of two", 0, 5, "exact") for entity in (3, 5))]


class Spy:
    """The native module, which notes the rooms between a search and each kernel; its own, the bindings, is the last."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self.rooms: dict[str, set[str]] = defaultdict(lambda: {"bindings"})

    def __getattr__(self, name: str) -> Any:
        binding = getattr(self._native, name)
        if name not in KERNELS:
            return binding

        def called(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            while frame.f_globals["__name__"].startswith("hopfuse."):
                self.rooms[name].add(frame.f_globals["__name__"].split(".")[1])
                assert frame.f_back is not None
                frame = frame.f_back
            return binding(*args, **kwargs)

        return called


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    monkeypatch.setenv("HOPFUSE_BACKEND", "cpu")
    files: list[Any] = list(calls.modules())
    spied = Spy(files[0]._native)
    for file in files:
        monkeypatch.setattr(file, "_native", spied)
    return spied


def recipe_and_questions(kind: Any, options: dict[str, Any], scope: str | None) -> tuple[Any, dict[str, Any]]:
    """A recipe with all that it can read, and questions."""
    how: dict[str, Any] = {} if scope is None else {"allow_scope": scope}
    if kind in (hf.recipes.PolicyRAG, hf.recipes.TripleHybrid):
        world = PolicyWorld(3)
        how |= {"queries": world.questions, "vectors": world.encoder.encode_queries(world.questions)}
        how |= {} if scope is None else {"allow": np.arange(PASSAGES) % 3 > 0}
        if kind is hf.recipes.TripleHybrid:
            return kind(world.index), how
        facts = {"fact_vectors": world.encoder.encode_passages(world.fact_texts)} if "fact_vectors" in options else {}
        return kind(world.index, SEEDS, encoder=world.encoder, **facts), how | {"entities": world.mentions}
    how |= {} if scope is None else {"allow": [[0, 1, 2], [3], [4, 5], [], [1]]}
    drawn = random_world(1)
    return kind(drawn.index(), encoder=Encoder(drawn), entity_threshold=-1, **options), how | random_questions(2)


@pytest.mark.parametrize(("kind", "options", "kernels"), CASES)
@pytest.mark.parametrize("scope", [None, "isolated", "results"])
def test_a_search_is_four_rooms_from_the_kernels(
    spy: Spy, kind: Any, options: dict[str, Any], kernels: set[str], scope: Any
) -> None:
    recipe, how = recipe_and_questions(kind, options, scope)
    if "entities" in how:
        how["entities"] = [[*row, *NAMES] for row in how["entities"]]
    spy.rooms.clear()
    recipe.search(**how)
    assert kernels <= set(spy.rooms)
    assert all(len(rooms) <= MAX_ROOMS for rooms in spy.rooms.values()), dict(spy.rooms)
    assert all("recipes" in rooms for rooms in spy.rooms.values())


@pytest.mark.parametrize("kind", dict.fromkeys(kind for kind, _, _ in CASES))
def test_vectors_are_checked_once_and_a_backend_is_chosen_once(monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    calls: Counter[str] = Counter()

    def counted(module: str, name: str) -> None:
        whole = resolve_name(f"{module}:{name}")

        def count(*args: Any, **kwargs: Any) -> Any:
            calls[name] += 1
            return whole(*args, **kwargs)

        monkeypatch.setattr(f"{module}.{name}", count)

    monkeypatch.setenv("HOPFUSE_BACKEND", "cpu")
    recipe, how = recipe_and_questions(kind, {}, None)
    if kind is not hf.recipes.TripleHybrid:
        how["entities"] = [[mention for mention in row if isinstance(mention, int)] for row in how["entities"]]
    counted("hopfuse.ops.dense", "check_scorable")
    counted("hopfuse.ops.capture", "automatic")
    counted("hopfuse.backends", "automatic")
    monkeypatch.setattr(
        "hopfuse.ops.capture.Captured.__call__", lambda *_: pytest.fail("a core was wrapped on the CPU")
    )
    recipe.search(**how)
    spaces = 2 if kind is hf.recipes.PolicyRAG else 1  # of the vectors given, and of the encoder
    assert calls == {"check_scorable": spaces, "automatic": 1}


def test_a_search_keeps_no_reference_to_its_inputs() -> None:
    """Cores are kept for a device alone: searches of many widths and k leave nothing on the CPU."""
    recipe = hf.recipes.PhaseGraph(random_world(1).index())
    for k in range(1, 6):
        assert set(lists_of(recipe.search(**random_questions(2), k=k))) == {"hits", "dense", "graph"}
    assert recipe._recorded._captured == {}
