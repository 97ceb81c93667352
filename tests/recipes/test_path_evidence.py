"""What the steps of PolicyRAG's paths rest on: a world by hand, and facts and families against a look at them all."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.extract import Extraction, build_memory
from hopfuse.recipes import Policy, PolicyRAG
from hopfuse.recipes.policy_rag import (
    MAX_PASSAGES,
    TYPES,
    PathEvidence,
    PolicyGraph,
    Step,
    facts_between,
    families_between,
)
from hopfuse.report import arrow, fact_words
from hypothesis import given
from hypothesis import strategies as st

WALK = (
    "[walk]\ndamping = 0.5\nrelation = 0.6\nsynonym = 0.2\ncontext = 0.2\nedge_type_norm = 'per_type'\n"
    "[projection]\nsource = 'entities'\n"
)
ALONE = "[seeds]\npassages = 0\n[switches]\ndense_fallback = false\ngate = false\n"
DIRECTED = ("Ridley Scott", "directed", "Alien")


@pytest.fixture(scope="module")
def found() -> tuple[dict[str, Any], dict[int, float]]:
    """The trace of a question with two seeds, and their shares; the award counts three times."""
    memory = build_memory(
        [
            Extraction("a", "Alien", "...", (), (DIRECTED,)),
            Extraction("b", "Prizes", "...", (), (DIRECTED, ("Alien", "won for", "Ridley Scott"))),
            Extraction("c", "Tyneside", "...", (), (("Ridley Scott", "was born in", "South Shields"),)),
            Extraction("d", "Knights", "...", ("Sir Ridley Scott",), ()),
            Extraction("e", "The sea", "...", ("South Shields",), ()),
            Extraction("f", "Ships", "...", ("Alien", "Nostromo"), ()),
            Extraction("g", "Nostromo", "...", ("Nostromo",), ()),
        ]
    )
    number = {name: e for e, name in enumerate(memory.entities)}
    index = memory.index(memory.graph([(number["Ridley Scott"], number["Sir Ridley Scott"])]))
    recipe = PolicyRAG(index, Policy.from_toml(f"version = 1\n{WALK}{ALONE}[families]\naward = 3.0"))
    result = recipe.search(["What of Alien?"], entities=[["Alien", "Nostromo"]], k=7, trace=True)
    assert result.traces is not None
    return result.traces[0], {e: result.seeds[0].get(e, 0.0) for e in number.values()}


def paths_to(trace: dict[str, Any], id: str | int) -> list[list[dict[str, Any]]]:
    (hit,) = [hit for hit in trace["hits"] if hit["id"] == id]
    return hit["paths"]


def from_alien(trace: dict[str, Any], id: str) -> list[dict[str, Any]]:
    (path,) = [path for path in paths_to(trace, id) if path[0]["name"] == "Alien"]
    return path


def test_relations_name_their_facts(found) -> None:
    """Alien -> Scott: all of its relations; Scott -> Shields: 1 of 2 + 3 + 1."""
    trace, seeds = found
    path = from_alien(trace, "e")
    assert [step["name"] for step in path] == ["Alien", "Ridley Scott", "South Shields"]
    share = seeds[path[0]["number"]]
    assert [step["strength"] for step in path] == pytest.approx([share, share * 0.3, share * 0.3 * 0.3 / 6])
    assert "facts" not in path[0]
    scott, shields = path[1:]
    assert scott["families"] == ["award", "creation"]  # 3 of weight 1, and 2
    passages = [
        {"passage": at, "id": id, "title": title} for at, (id, title) in enumerate([("a", "Alien"), ("b", "Prizes")])
    ]
    directed = dict(zip(("head", "relation", "tail"), DIRECTED, strict=True))
    won = {"fact": 1, "head": "Alien", "relation": "won for", "tail": "Ridley Scott", "forward": True}
    assert scott["facts"] == [
        {"fact": 0, **directed, "forward": False, "passages": passages, "num_passages": 2},
        {**won, "passages": passages[1:], "num_passages": 1},
    ]
    assert arrow(scott) == "←directed—", "by the fact that two passages state"
    assert fact_words(path)[:3] == [
        "Alien and Ridley Scott by award, creation",
        "Ridley Scott —directed→ Alien, fact 0, stated in Alien, Prizes",
        "Alien —won for→ Ridley Scott, fact 1, stated in Prizes",
    ]
    assert scott["walked"]
    assert shields["families"] == ["birth"]
    (born,) = shields["facts"]
    assert (born["relation"], born["forward"], born["passages"][0]["id"]) == ("was born in", True, "c")


@pytest.mark.parametrize(
    ("factor", "families_", "said"),
    [(0.0, ["creation"], "—creation→"), (0.1, ["creation", "award"], "—won award for→")],
)
def test_an_arrow_names_no_fact_of_a_family_that_is_not_walked(factor, families_, said) -> None:
    """Two passages state the award, and one who directed."""
    won = ("Alien", "won award for", "Ridley Scott")
    memory = build_memory(
        [
            Extraction("a", "Alien", "...", (), (won, DIRECTED)),
            Extraction("b", "Prizes", "...", (), (won,)),
            Extraction("c", "Scott", "...", ("Ridley Scott",), ()),
        ]
    )
    recipe = PolicyRAG(memory.index(), Policy.from_toml(f"version = 1\n{WALK}{ALONE}[families]\naward = {factor}"))
    (trace,) = recipe.search(["?"], entities=[["Alien"]], k=3, trace=True).traces or []
    _, scott = from_alien(trace, "c")
    assert [fact["relation"] for fact in scott["facts"]] == ["won award for", "directed"]
    assert scott["families"] == families_
    assert scott["walked"] == (factor > 0)
    assert arrow(scott) == said


def test_an_arrow_names_no_fact_against_a_directed_edge() -> None:
    """The walk goes on from Ada to Babbage, and all that is stated leads back."""
    arrows = []
    for ends in ("Ada", "Babbage"), ("Babbage", "Ada"):
        index = hf.Index.build(
            passages=[{"text": "one"}, {"text": "two"}],
            entities=["Ada", "Babbage"],
            graph=hf.Graph.from_edges(
                [0, 2, 1, 3, 2],
                [2, 0, 3, 1, 3],
                num_nodes=4,
                edge_type=[0, 0, 0, 0, 1],
                edge_type_names=["context", "knows"],
                directed=True,
            ),
            facts=[{"head": ends[0], "relation": "wrote to", "tail": ends[1], "passage": 0}],
        )
        recipe = PolicyRAG(index, Policy.from_toml(f"version = 1\n{WALK}{ALONE}"))
        (trace,) = recipe.search(["?"], entities=[[0]], k=2, trace=True).traces or []
        (path,) = paths_to(trace, 1)
        arrows.append(arrow(path[1]))
    assert arrows == ["—wrote to→", "—knows→"]


def test_a_fact_lists_a_few_of_its_passages_and_counts_them_all() -> None:
    memory = build_memory([Extraction(f"p{at}", "", "...", (), (DIRECTED,)) for at in range(40)])
    index, policy = memory.index(), Policy.from_toml(f"version = 1\n{WALK}{ALONE}")
    path = [Step(40, None, 1.0), Step(41, TYPES.index("relation"), 0.5)]
    (fact,) = PathEvidence(index, PolicyGraph.from_index(index, policy), {}, [path]).steps(path)[1]["facts"]
    assert [one["passage"] for one in fact["passages"]] == list(range(MAX_PASSAGES)) == [0, 1, 2, 3, 4]
    assert fact["num_passages"] == 40


def test_context_steps_name_the_passage(found) -> None:
    """Three passages mention Alien, and Ships mentions two entities."""
    trace, seeds = found
    path = from_alien(trace, "g")
    ships = {"passage": 5, "id": "f", "title": "Ships"}
    assert [(step["kind"], step["edge"], step.get("passage")) for step in path] == [
        ("entity", None, None),
        ("passage", "context", ships),
        ("entity", "context", ships),
    ]
    share = seeds[path[0]["number"]]
    assert [step["strength"] for step in path] == pytest.approx([share, share * 0.1 / 3, share * 0.1 / 3 * 0.1 / 2])


def test_synonym_steps_name_the_alias(found) -> None:
    path = from_alien(found[0], "d")
    assert [step["edge"] for step in path] == [None, "relation", "synonym"]
    assert path[-1]["alias"] == path[-1]["name"] == "Sir Ridley Scott"


def test_each_seed_has_its_path_the_strongest_first(found) -> None:
    trace, seeds = found
    assert sum(share > 0 for share in seeds.values()) == 2
    assert [path[0]["name"] for path in paths_to(trace, "g")] == ["Nostromo", "Alien"]
    for hit in trace["hits"]:
        strengths = [path[-1]["strength"] for path in hit["paths"]]
        assert strengths == sorted(strengths, reverse=True)
        starts = [(path[0]["kind"], path[0]["number"]) for path in hit["paths"]]
        assert 1 <= len(starts) == len(set(starts)) <= 3
        assert all(seeds[number] > 0 for _, number in starts)


def test_without_facts_a_relation_has_its_type_and_a_shared_alias_is_found() -> None:
    index = hf.Index.build(
        passages=[{"text": "one"}, {"text": "two"}],
        entities=["Ada Byron", "Ada Lovelace", "Babbage"],
        aliases={0: ["the Countess"], 1: ["Lady L.", "The  countess"]},
        graph=[
            {"src": 0, "dst": 2, "type": "context"},
            {"src": 1, "dst": 4, "type": "context"},
            {"src": 2, "dst": 3, "type": "synonym"},
            {"src": 3, "dst": 4, "type": "knows"},
        ],
    )
    recipe = PolicyRAG(index, Policy.from_toml(f"version = 1\n{WALK}{ALONE}"))
    (trace,) = recipe.search(["?"], entities=[[0]], k=2, trace=True).traces or []
    (path,) = paths_to(trace, 1)
    assert [step["edge"] for step in path] == [None, "synonym", "relation"]
    assert path[1]["alias"] == "The  countess"  # as Ada Lovelace's writes it
    assert (path[2]["families"], path[2]["facts"]) == (["knows"], [])


@given(
    rows=st.lists(st.tuples(*[st.integers(0, 4)] * 3, st.integers(0, 3)), max_size=30),
    pairs=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda pair: pair[0] != pair[1])),
    most=st.integers(1, 4),
)
def test_facts_between_two_entities_are_those_of_a_look_at_all(rows, pairs, most) -> None:
    facts = hf.Facts.from_numbers([(h, f"r{r}", t, p) for h, r, t, p in rows], 5, 4)
    expected = []
    for pair in pairs:
        between = [f for f, (head, _, tail) in enumerate(facts.rows.tolist()) if {head, tail} == set(pair)]
        expected.append(sorted(between, key=lambda f: (-(facts.indptr[f + 1] - facts.indptr[f]), f))[:most])
    assert facts_between(facts, np.array(pairs, np.int64).reshape(-1, 2), np.diff(facts.indptr), most) == expected


@given(
    edges=st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from([0.5, 1.0, 3.0]), st.integers(0, 2))
    ),
    pairs=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda pair: pair[0] != pair[1])),
    directed=st.booleans(),
    typed=st.booleans(),
)
def test_families_are_those_of_a_look_at_all_edges(edges, pairs, directed, typed) -> None:
    factors = np.array([1.0, 0.0, 2.0] if typed else [1.0], np.float32)
    src, dst, weight, kind = (list(part) for part in zip(*edges, strict=True)) if edges else ([], [], [], [])
    types = {"edge_type": kind, "edge_type_names": ["birth", "death", "award"]} if typed else {}
    graph = hf.Graph.from_edges(src, dst, weight if typed else None, num_nodes=5, directed=directed, **types)
    expected = []
    for a, b in pairs:
        worth = dict.fromkeys(range(len(factors)), 0.0)
        for s, d, w, k in zip(*graph.edges(), strict=True):
            if (s, d) == (a, b) or (not directed and (d, s) == (a, b)):
                worth[int(k)] += float(w * factors[k])
        expected.append([graph.edge_type_names[k] for k in sorted(worth, key=lambda k: (-worth[k], k)) if worth[k] > 0])
    assert families_between(graph, np.array(pairs, np.int64).reshape(-1, 2), factors) == expected
