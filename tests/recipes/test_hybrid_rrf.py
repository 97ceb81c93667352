"""The lexical, dense and graph hybrid: its composition over the oracle, on every backend; empty legs, prior, traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_hits_equal
from hopfuse import reference
from hopfuse.errors import InputError
from hopfuse.lexical import FTS5
from refusals import refused

PASSAGES, ENTITIES, DIM, BATCH = 40, 25, 8, 6
WORDS = ["sea", "river", "stone", "night", "red", "engine", "light", "tower"]


class Case:
    """Drawn texts, vectors and a graph; questions of the same words, one without entities, one without a known word."""

    def __init__(self, seed: int) -> None:
        draw = np.random.default_rng(seed)
        self.texts = [" ".join(draw.choice(WORDS, int(draw.integers(1, 9)))) for _ in range(PASSAGES)]
        self.passages = [{"title": f"The {WORDS[i % 8]} no {i}", "text": text} for i, text in enumerate(self.texts)]
        self.vectors = draw.standard_normal((PASSAGES, DIM)).astype(np.float32)
        self.edges = [
            {"src": p, "dst": PASSAGES + int(e)}
            for p in range(PASSAGES)
            for e in draw.choice(ENTITIES, 3, replace=False)
        ]
        self.names = [f"Entity {e}" for e in range(ENTITIES)]
        self.questions = ["the river no 9, the tower no 7", "stone light", "red engine", "sea", "zzz", "night night"]
        self.asked = draw.standard_normal((BATCH, DIM)).astype(np.float32)
        self.mentions: list[list[int]] = [[1], [2, 3], [5, 6, 7], [], [4], [9]]
        self.leg = FTS5.build(self.texts)

    def index(self, *parts: str) -> hf.Index:
        whole = {"vectors": self.vectors, "graph": self.edges, "entities": self.names, "metric": "cosine"}
        kept = {"dense": ("vectors", "metric"), "graph": ("graph", "entities")}
        return hf.Index.build(passages=self.passages, **{name: whole[name] for part in parts for name in kept[part]})

    def recipe(self, parts: Sequence[str] = ("dense", "graph"), **options: Any) -> hf.recipes.HybridRRF:
        return hf.recipes.HybridRRF(self.index(*parts), **({"lexical": self.leg} | options))

    def ask(self, recipe: hf.recipes.HybridRRF, **how: Any) -> hf.recipes.SearchResult:
        """With what the index has a leg for."""
        vectors = None if recipe.index.corpus is None else self.asked
        entities = None if recipe.index.graph is None else self.mentions
        return recipe.search(self.questions, vectors=vectors, entities=entities, **how)


@pytest.fixture
def case() -> Case:
    return Case(3)


def oracle_lists(case: Case, recipe: hf.recipes.HybridRRF) -> dict[str, list[list[tuple[int, float]]]]:
    """Each leg by the oracle, but for the words, whose leg is checked by itself."""
    words = case.leg.search(case.questions, recipe.config.lexical_k)
    near = reference.dense_topk(case.asked, case.vectors, recipe.config.dense_k, metric="cosine")
    src, dst = np.array([(edge["src"], edge["dst"]) for edge in case.edges]).T
    graph = hf.Graph.from_edges(src, dst, num_nodes=PASSAGES + ENTITIES, directed=False)
    degree = np.bincount(dst, minlength=PASSAGES + ENTITIES)
    walked = []
    for b, row in enumerate(case.mentions):
        if not row:
            above = [hit for hit in near.row(b) if hit[1] > 0][: recipe.config.graph_k]
            walked.append(above if recipe.config.dense_fallback else [])
            continue
        start = np.zeros((1, PASSAGES + ENTITIES))
        start[0, [PASSAGES + e for e in row]] = 1.0 / degree[[PASSAGES + e for e in row]]
        scores = reference.ppr(graph, start, damping=recipe.config.damping)[0, :PASSAGES]
        best = sorted(np.flatnonzero(scores > 0), key=lambda p: (-scores[p], p))[: recipe.config.graph_k]
        walked.append([(int(p), float(scores[p])) for p in best])
    return {
        "lexical": [words.row(b) for b in range(BATCH)],
        "dense": [near.row(b) for b in range(BATCH)],
        "graph": walked,
    }


def rarest(case: Case, b: int) -> int | None:
    """Return how many passages have the rarest entity of a question."""
    often = np.bincount([edge["dst"] - PASSAGES for edge in case.edges], minlength=ENTITIES)
    return min((int(often[e]) for e in case.mentions[b]), default=None)


def weights_by_hand(case: Case, recipe: hf.recipes.HybridRRF, legs: Sequence[str], b: int) -> dict[str, float]:
    """The weight of each list, given or by the rarest entity of the question."""
    if recipe.config.weights is not None:
        return dict(zip(("lexical", "dense", "graph"), recipe.config.weights, strict=True))
    often = rarest(case, b) if "graph" in legs else None
    w = 1.0 if often is None else often / (often + 12)
    if {"lexical", "dense"} <= set(legs):
        return {"lexical": 0.2 + 0.6 * w, "dense": 0.4 + 0.6 * w, "graph": 1 - w}
    return {"lexical": 0.75 + 0.25 * w, "dense": 0.6 + 0.4 * w, "graph": 1 - w}


def by_hand(
    case: Case, recipe: hf.recipes.HybridRRF, rows: dict[str, list[tuple[int, float]]], b: int
) -> dict[int, float]:
    """The docstring's formulas, in plain Python."""
    weights = weights_by_hand(case, recipe, list(rows), b)
    fused: dict[int, float] = {}
    for leg, row in rows.items():
        least = -1.0 if leg == "dense" else 0.0
        for rank, (passage, score) in enumerate(row, 1):
            part = 1.0 / (recipe.config.rank_constant + rank)
            if recipe.config.fusion == "convex":
                part = (score - least) / (row[0][1] - least)
            fused[passage] = fused.get(passage, 0.0) + weights[leg] * part
    if recipe.config.importance is None:
        return fused
    factors = recipe.config.importance.factors.astype(np.float64)
    return {passage: score * factors[passage] for passage, score in fused.items()}


IMPORTANCE = np.where(np.arange(PASSAGES) % 3 == 0, np.nan, np.linspace(0, 1, PASSAGES))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weights": (0.5, 2.0, 1.0), "rank_constant": 1.0, "lexical_k": 7, "dense_k": 9, "graph_k": 5},
        {"importance": IMPORTANCE},
        {"fusion": "convex", "importance": hf.fusion.Prior(IMPORTANCE, weight=0.5)},
        {"dense_fallback": False, "dense_k": 9},
    ],
)
def test_it_equals_its_composition_over_the_oracle(variant: str, seed: int, options: dict[str, Any]) -> None:
    case = Case(seed)
    recipe = case.recipe(**options)
    found = case.ask(recipe, k=12)
    legs = oracle_lists(case, recipe)
    for b in range(BATCH):
        for leg, rows in legs.items():
            assert [passage for passage, _ in found.lists[leg].row(b)] == [passage for passage, _ in rows[b]]
        expected = by_hand(case, recipe, {leg: rows[b] for leg, rows in legs.items()}, b)
        row = found.hits.row(b)
        assert len(row) == min(12, len(expected))
        assert [score for _, score in row] == pytest.approx(sorted(expected.values(), reverse=True)[:12], rel=1e-5)
        for passage, score in row:
            assert score == pytest.approx(expected[passage], rel=1e-5)


@pytest.mark.parametrize("fusion", ["rrf", "convex"])
def test_with_words_alone_the_order_is_exactly_the_lexical_one(case: Case, fusion: Any) -> None:
    """No vectors, no graph; or both, with nothing found by them."""
    expected = case.leg.search(case.questions, 12).ids
    alone = case.recipe((), fusion=fusion)
    np.testing.assert_array_equal(case.ask(alone, k=12).hits.ids, expected)
    assert set(case.ask(alone).lists) == {"lexical"}
    unseeded = case.recipe(("graph",), fusion=fusion).search(case.questions, entities=[[]] * BATCH, k=12)
    np.testing.assert_array_equal(unseeded.hits.ids, expected)
    assert not unseeded.lists["graph"].counts.any()


def test_without_a_walk_the_dense_list_is_the_graphs_where_there_is_one(case: Case) -> None:
    without = [not row for row in case.mentions]
    found = case.ask(case.recipe(graph_k=5), trace=True)
    assert (found.lists["dense"].scores[:, :5] > 0).all()
    assert found.fell_back is not None
    assert found.traces is not None
    assert found.fell_back.tolist() == [trace["fell_back"] for trace in found.traces] == without
    assert [found.lists["graph"].row(b) == found.lists["dense"].row(b)[:5] for b in range(BATCH)] == without
    walks = case.ask(case.recipe(graph_k=5, dense_fallback=False))
    assert [not count for count in walks.lists["graph"].counts] == without
    assert [walks.hits.row(b) for b in range(BATCH)] == [found.hits.row(b) for b in range(BATCH)]  # of weight 0
    given = {"graph_k": 5, "weights": (0.35, 0.5, 1.0)}
    fixed, without_it = (case.ask(case.recipe(**given, dense_fallback=one)) for one in (True, False))
    assert [fixed.hits.row(b) != without_it.hits.row(b) for b in range(BATCH)] == without
    no_vectors, no_graph = (case.ask(case.recipe((part,))).fell_back for part in ("graph", "dense"))
    assert no_vectors is not None
    assert not no_vectors.any()
    assert no_graph is None


def test_the_published_settings_have_a_name(case: Case) -> None:
    recipe = hf.recipes.HybridRRF(case.index("dense", "graph"), hf.recipes.HybridRRF.adr(), lexical=case.leg)
    found = case.ask(recipe, k=12)
    fused = hf.fuse(list(found.lists.values()), method="rrf", weights=(1, 1, 0.35), k=12)
    assert_hits_equal(found.hits, fused)
    assert {pool: hits.shape[1] for pool, hits in found.lists.items()} == {"lexical": 40, "dense": 40, "graph": 30}
    assert found.lists["graph"].counts[3] == 0


def test_convex_compares_cosines_whatever_the_metric(case: Case) -> None:
    product = hf.Index.build(passages=case.passages, vectors=case.vectors, metric="ip")
    found = hf.recipes.HybridRRF(product, fusion="convex").search(vectors=case.asked, k=12)
    assert_hits_equal(found.lists["dense"], case.ask(case.recipe(("dense",))).lists["dense"])
    assert found.lists["dense"].scores.max() <= 1.0


@pytest.mark.parametrize("parts", [("dense",), ("graph",), ("dense", "graph")])
def test_a_leg_that_is_not_there_is_an_empty_one(case: Case, parts: tuple[str, ...]) -> None:
    recipe = case.recipe(parts)
    found = case.ask(recipe, k=40)
    assert set(found.lists) == {"lexical", *parts}
    for b in range(BATCH):
        assert dict(found.hits.row(b)) == pytest.approx(
            by_hand(case, recipe, {leg: hits.row(b) for leg, hits in found.lists.items()}, b), rel=1e-6
        )


def test_a_question_does_not_know_its_batch(case: Case) -> None:
    recipe = case.recipe(exact_bonus=0.5)
    whole = case.ask(recipe, k=12).hits
    for b in range(BATCH):
        alone = recipe.search(
            [case.questions[b]], vectors=case.asked[b : b + 1], entities=case.mentions[b : b + 1], k=12
        ).hits
        assert alone.row(0) == whole.row(b)


@pytest.mark.emulator
def test_the_emulator_gives_the_same(case: Case, emulated: Any) -> None:
    recipe = case.recipe(exact_bonus=0.5, importance=IMPORTANCE)
    expected = case.ask(recipe)
    emulated()
    found = case.ask(recipe)
    assert_hits_equal(found.hits, expected.hits)
    for leg, hits in expected.lists.items():
        assert_hits_equal(found.lists[leg], hits)


def test_titles_that_the_question_names_get_a_bonus_the_longest_first() -> None:
    titles = ["Rome", "The Fall of Rome", "rome!", "", "Fall", "C#", "…"]
    index = hf.Index.build(passages=[{"title": title, "text": "words"} for title in titles])
    recipe = hf.recipes.HybridRRF(index, lexical=FTS5.build(["words"] * 7), exact_bonus=2.0, rank_constant=0.0)
    found = recipe.search(["When was THE fall   of Rome?", "words of C", "…"], k=7, trace=True)
    assert found.lists["exact"].row(0) == [(1, 4.0), (0, 1.0), (2, 1.0), (4, 1.0)]
    assert found.lists["exact"].counts.tolist() == [4, 0, 0]
    assert dict(found.hits.row(0)) == pytest.approx({1: 2.0, 0: 1.0, 2: 2 / 3, 4: 0.5})
    assert found.hits.ids[1].tolist() == list(range(7))


def test_titles_are_found_in_any_script_and_spelling() -> None:
    titles = ["艾瑞克", "Cafe\u0301 Daten\u00adbank", "राजधानी", "瑞"]
    index = hf.Index.build(passages=[{"title": title, "text": "words"} for title in titles])
    recipe = hf.recipes.HybridRRF(index, lexical=FTS5.build(["words"] * 4), exact_bonus=2.0)
    asked = ["艾瑞克能打开哪里？", "the cafe datenbank", "भारत की राजधानी", "राजधान"]
    found = recipe.search(asked, k=4, trace=True).lists["exact"]
    assert [[passage for passage, _ in found.row(b)] for b in range(4)] == [[0], [1], [2], []]


def test_traces_add_up_to_the_scores(case: Case) -> None:
    recipe = case.recipe(exact_bonus=0.5, importance=IMPORTANCE)
    found = case.ask(recipe, trace=True)
    assert found.traces is not None
    for b, trace in enumerate(found.traces):
        assert [(hit["passage"], hit["score"]) for hit in trace["hits"]] == found.hits.row(b)
        assert [seed["entity"] for seed in trace["seeds"]] == case.mentions[b]
        for leg, hits in found.lists.items():
            assert [(row["passage"], row["score"]) for row in trace[leg]] == hits.row(b)
            assert [row["rank"] for row in trace[leg]] == list(range(1, len(trace[leg]) + 1))
        for hit in trace["hits"]:
            assert hit["score"] == pytest.approx(hit["prior"] * sum(hit["contributions"].values()), rel=1e-6)
            assert hit["title"] == case.passages[hit["passage"]]["title"]
            assert hit["ranks"].keys() == hit["contributions"].keys()
        often = rarest(case, b)
        assert trace["direct"]["weight"] == (1.0 if often is None else pytest.approx(often / (often + 12)))
        said = "names nothing" if often is None else f"in {often} passages: the walk "
        assert said in trace["direct"]["reason"]
    convex = case.ask(case.recipe(fusion="convex"), trace=True)
    assert convex.traces is not None
    assert "contributions" not in convex.traces[0]["hits"][0]
    for given in (case.recipe(weights=(1, 1, 1)), case.recipe(walk=False), case.recipe(("dense",))):
        entities = None if not given.needs.entities else case.mentions
        traced = given.search(case.questions, vectors=case.asked, entities=entities, trace=True)
        assert traced.traces is not None
        assert "direct" not in traced.traces[0]


def test_invalid_input_is_refused(case: Case) -> None:
    made: list[tuple[dict[str, Any], str, str]] = [
        ({"weights": (1.0, 1.0)}, "length", "weights"),
        ({"weights": "abc"}, "type", "weights"),
        ({"weights": (1.0, np.nan, 1.0)}, "range", "weights[1]"),
        ({"weights": (1.0, -1.0, 1.0)}, "range", "weights[1]"),
        ({"lexical": object()}, "type", "lexical"),
        ({"exact_bonus": -1.0}, "range", "exact_bonus"),
        ({"fusion": "linear"}, "choice", "fusion"),
        ({"graph_k": 0}, "range", "graph_k"),
        ({"rank_constant": -1.0}, "range", "rank_constant"),
        ({"importance": [2.0]}, "range", "prior[0]"),
        ({"importance": [0.5]}, "length", "importance"),
        ({"entity_threshold": "x"}, "range", "entity_threshold"),
        ({"entity_threshold": np.nan}, "range", "entity_threshold"),
        ({"damping": [0.5]}, "range", "damping"),
        ({"damping": 1.0}, "range", "damping"),
    ]
    for change, code, field in made:
        with refused(InputError, code, field):
            case.recipe(**change)
    with refused(InputError, "missing", "lexical"):
        hf.recipes.HybridRRF(case.index(), lexical=None)
    recipe = case.recipe(exact_bonus=1.0)
    asked: list[tuple[dict[str, Any], str, str]] = [
        ({"queries": "one"}, "type", "queries"),
        ({"queries": None}, "missing", "queries"),
        ({"vectors": None}, "missing", "vectors"),
        ({"entities": None}, "missing", "entities"),
        ({"entities": [[1]]}, "length", "entities"),
        ({"entities": 5}, "type", "entities"),
        ({"entities": [None] * 6}, "missing", "entities"),
        ({"queries": (q for q in case.questions)}, "type", "queries"),
        ({"vectors": case.asked[:2]}, "length", "vectors"),
        ({"k": -1}, "range", "k"),
    ]
    for change, code, field in asked:
        with refused(InputError, code, field):
            recipe.search(**({"queries": case.questions, "vectors": case.asked, "entities": case.mentions} | change))
    graph_alone = case.recipe(("graph",), lexical=None)
    with refused(InputError, "length", "entities", given=1):
        graph_alone.search(case.questions[:3], entities=[[1]])
    with refused(InputError, "unused", "vectors"):
        graph_alone.search(vectors=case.asked, entities=case.mentions)
    with refused(InputError, "unused", "entities"):
        case.recipe(()).search(case.questions, entities=case.mentions)
    wide = case.ask(case.recipe(lexical_k=10**9, dense_k=10**9, graph_k=10**9), k=10**9)
    assert {hits.shape for hits in (wide.hits, *wide.lists.values())} == {(BATCH, PASSAGES)}
    with refused(InputError, "missing", "queries"):
        case.recipe(lexical=None, exact_bonus=1.0).search(vectors=case.asked, entities=case.mentions)
