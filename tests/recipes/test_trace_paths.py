"""Paths in traces: walks from the restart, with their strengths, and the facts between entities on them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.extract import Extraction, build_memory
from hopfuse.recipes import GuidedWalk, HybridRRF, PhaseGraph
from recipes.worlds import random_questions, random_world

WALKS: list[tuple[Any, dict[str, Any]]] = [
    (PhaseGraph, {}),
    (PhaseGraph, {"passage_seeds": 0.5, "damping": 0.5}),
    (PhaseGraph, {"edge_weights": {"relation": 0.2, "next": 0.0}, "graph_k": 4}),
    (HybridRRF, {"graph_k": 6}),
]


def restart_of(recipe: Any, found: Any, b: int) -> dict[int, float]:
    """The restart's mass by node, from what a result shows."""
    named = [one for one in found.traces[b]["seeds"] if one["weight"] > 0]
    nodes = [recipe.index.num_passages + one["entity"] for one in named]
    starts = hf.Seeds([[*nodes, -1]], [[*(one["weight"] for one in named), 0.0]])
    if getattr(recipe.config, "passage_seeds", 0):
        dense = found.lists["dense"]
        near = hf.calibrate(hf.Hits(dense.ids[b : b + 1], dense.scores[b : b + 1]), "min_max")
        starts = hf.add_passage_seeds(starts, near, recipe.config.passage_seeds)
    mass = dict(zip(starts.nodes[0].tolist(), starts.weights[0].tolist(), strict=True))
    return {node: weight / sum(mass.values()) for node, weight in mass.items() if node >= 0 and weight > 0}


def transitions(graph: hf.Graph, given: dict[str, float]) -> np.ndarray:
    """P by its definition: all types together, rows of sum 1."""
    w = np.zeros((graph.num_nodes, graph.num_nodes))
    for a, b, weight, kind in zip(*graph.edges(), strict=True):
        eta = given.get(graph.edge_type_names[kind], 1.0)
        w[a, b] += eta * weight
        w[b, a] += eta * weight * (a != b)
    total = w.sum(1, keepdims=True)
    return np.divide(w, total, out=np.zeros_like(w), where=total > 0)


@pytest.mark.parametrize(("kind", "options"), WALKS, ids=repr)
def test_paths_are_walks_from_the_restart(kind: Any, options: dict[str, Any]) -> None:
    recipe = kind(random_world(21).index(), **options)
    found = recipe.search(**random_questions(22, batch=6), k=9, trace=True)
    p = recipe.config.damping * transitions(recipe.index.graph, getattr(recipe.config, "edge_weights", None) or {})
    first = {"passage": 0, "entity": recipe.index.num_passages}
    walked = 0
    for b, trace in enumerate(found.traces):
        starts = restart_of(recipe, found, b)
        for hit in trace["hits"]:
            assert ("paths" in hit) == ("graph" in hit["ranks"])
            if trace["fell_back"]:
                assert hit.get("paths", []) == []
                continue
            assert ("graph" in hit["ranks"]) == bool(hit.get("paths"))
            for path in hit.get("paths", []):
                walked += 1
                nodes = [first[step["kind"]] + step["number"] for step in path]
                strength = [starts[nodes[0]]]
                for before, after in pairwise(nodes):
                    strength.append(strength[-1] * p[before, after])
                assert [step["strength"] for step in path] == pytest.approx(strength, rel=1e-5)
                assert nodes[-1] == hit["passage"]
                assert path[0]["edge"] is None
                assert all(step["edge"] in recipe.index.graph.edge_type_names for step in path[1:])
            strengths = [path[-1]["strength"] for path in hit.get("paths", [])]
            assert strengths == sorted(strengths, reverse=True)
    assert walked > 10


DIRECTED = ("Ridley Scott", "directed", "Alien")


@pytest.fixture(scope="module")
def films() -> hf.Index:
    memory = build_memory(
        [
            Extraction("a", "Alien", "...", (), (DIRECTED,)),
            Extraction("b", "Prizes", "...", (), (DIRECTED, ("Alien", "won for", "Ridley Scott"))),
            Extraction("c", "Tyneside", "...", (), (("Ridley Scott", "was born in", "South Shields"),)),
            Extraction("d", "The sea", "...", ("South Shields",), ()),
        ]
    )
    return memory.index(memory.graph()).with_vectors(np.eye(4, dtype=np.float32))


@pytest.mark.parametrize("kind", [GuidedWalk, PhaseGraph, HybridRRF])
@pytest.mark.parametrize("allow", [None, ["b", "c", "d"]])
def test_steps_between_entities_have_the_facts_of_both(films: hf.Index, kind: Any, allow: Any) -> None:
    found = kind(films).search(
        vectors=np.eye(4, dtype=np.float32)[:1], entities=[["Alien"]], k=4, allow=allow, trace=True
    )
    told = {}
    for hit in found.traces[0]["hits"]:
        for path in hit.get("paths", []):
            for before, step in pairwise(path):
                assert ("facts" in step) <= (before["kind"] == step["kind"] == "entity")
                if "facts" in step:
                    told[before["name"], step["name"]] = step["facts"]
    facts = told["Alien", "Ridley Scott"]
    stated = [["a", "b"], ["b"]] if allow is None else [["b"], ["b"]]
    assert [(fact["relation"], fact["forward"]) for fact in facts] == [("directed", False), ("won for", True)]
    assert [[passage["id"] for passage in fact["passages"]] for fact in facts] == stated
    assert [fact["num_passages"] for fact in facts] == [len(ids) for ids in stated]
    (born,) = told["Ridley Scott", "South Shields"]
    assert (born["head"], born["tail"], born["forward"]) == ("Ridley Scott", "South Shields", True)
    for fact in (*facts, born):
        head, _, tail = films.facts.rows[fact["fact"]].tolist()
        assert (films.entity_names[head], films.entity_names[tail]) == (fact["head"], fact["tail"])
