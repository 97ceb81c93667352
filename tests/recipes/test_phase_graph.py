"""PhaseGraph: its composition over the oracle, its traces, its collaborators, its refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse import reference
from hopfuse.errors import InputError
from numpy.typing import NDArray
from refusals import refused

PASSAGES, ENTITIES, DIM = 40, 25, 8


class NamedVectors:
    """An encoder that looks texts up."""

    def __init__(self, vectors: dict[str, NDArray[np.float32]]) -> None:
        self.vectors = vectors
        self.asked: list[str] = []

    def encode_queries(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        self.asked += texts
        return np.stack([self.vectors[text] for text in texts])


@pytest.fixture(scope="module")
def index() -> hf.Index:
    rng = np.random.default_rng(7)
    vectors = rng.standard_normal((PASSAGES, DIM)).astype(np.float32)
    edges = [
        {"src": int(p), "dst": PASSAGES + int(e), "type": "context", "weight": 1.0}
        for p in range(PASSAGES)
        for e in rng.choice(ENTITIES, 3, replace=False)
    ]
    edges += [
        {"src": PASSAGES + int(a), "dst": PASSAGES + int(b), "type": "relation", "weight": 2.0}
        for a, b in rng.choice(ENTITIES, (30, 2))
        if a != b
    ]
    return hf.Index.build(
        passages=[{"id": f"p{i}", "title": f"Title {i}", "text": f"text {i}"} for i in range(PASSAGES)],
        vectors=vectors,
        entities=[f"Entity {e}" for e in range(ENTITIES)],
        aliases={3: ["Third", "№ 3"], 4: ["Third"]},
        entity_vectors=rng.standard_normal((ENTITIES, DIM)).astype(np.float32),
        graph=edges,
        metric="cosine",
    )


@pytest.fixture(scope="module")
def questions() -> tuple[NDArray[np.float32], list[list[Any]]]:
    rng = np.random.default_rng(8)
    vectors = rng.standard_normal((6, DIM)).astype(np.float32)
    mentions: list[list[Any]] = [["Entity 1"], ["entity  2", "Third"], [5, 6, 7], ["nobody"], [], ["ENTITY 9", 9]]
    return vectors, mentions


def oracle_search(
    index: hf.Index, vectors: Any, seeds: list[dict[int, float]], config: Any, *, k: int, **options: Any
) -> Any:
    """The recipe's composition, written out over the float64 oracle."""
    assert index.graph is not None
    dense = reference.dense_topk(vectors, index.corpus, config.dense_k)
    walked = [b for b, row in enumerate(seeds) if row]
    ids, scores = reference.ppr_topk(
        index.graph,
        [seeds[b] for b in walked],
        config.graph_k,
        candidates=np.arange(index.num_passages),
        damping=config.damping,
    )
    above = [[hit for hit in dense.row(b) if hit[1] > 0][: config.graph_k] for b in range(len(seeds))]
    rows = above if config.dense_fallback else [[] for _ in seeds]
    for b, i, s in zip(walked, ids, scores, strict=True):
        rows[b] = [(int(x), float(y)) for x, y in zip(i, s, strict=True)]
    weights = (config.alpha, 1 - config.alpha)
    return reference.fuse([dense, hf.Hits.from_lists(rows)], method="boltzmann", weights=weights, k=k, **options)


def seeds_by_hand(index: hf.Index) -> list[dict[int, float]]:
    frequency = index.passage_frequency
    assert frequency is not None
    entities = [[1], [2, 3, 4], [5, 6, 7], [], [], [9]]
    return [{PASSAGES + e: 1.0 / max(1, int(frequency[e])) for e in row} for row in entities]


@pytest.mark.parametrize("consensus", [0.0, 0.5])
@pytest.mark.parametrize("change", [{}, {"dense_fallback": True}, {"dense_fallback": True, "dense_k": 7}])
def test_search_is_its_composition_over_the_oracle(
    index: hf.Index, questions: Any, consensus: float, change: dict[str, Any]
) -> None:
    vectors, mentions = questions
    recipe = hf.recipes.PhaseGraph(index, hf.recipes.PhaseGraph.paper(), consensus=consensus, **change)
    found = recipe.search(vectors=vectors, entities=mentions, k=10)
    expected = oracle_search(index, vectors, seeds_by_hand(index), recipe.config, k=10, consensus=consensus)
    np.testing.assert_array_equal(found.hits.ids, expected.ids)
    np.testing.assert_allclose(found.hits.scores, expected.scores, atol=1e-5)


def test_without_a_walk_the_dense_list_serves_and_the_result_says_so(index: hf.Index, questions: Any) -> None:
    vectors, mentions = questions
    without = [row in (["nobody"], []) for row in mentions]
    found = hf.recipes.PhaseGraph(index, graph_k=5).search(vectors=vectors, entities=mentions, trace=True)
    assert (found.lists["dense"].scores[:, :5] > 0).all()
    assert found.fell_back is not None
    assert found.fell_back.tolist() == [trace["fell_back"] for trace in found.traces] == without
    assert [found.lists["graph"].row(b) == found.lists["dense"].row(b)[:5] for b in range(6)] == without
    assert found.hits.ids[without].tolist() == found.lists["dense"].ids[without, :10].tolist()
    walks = hf.recipes.PhaseGraph(index, graph_k=5, dense_fallback=False).search(vectors=vectors, entities=mentions)
    assert walks.fell_back is not None
    assert not walks.fell_back.any()
    assert walks.lists["graph"].counts.tolist() == [0 if none else 5 for none in without]
    for b in np.flatnonzero(~np.array(without)).tolist():
        assert walks.hits.row(b) == found.hits.row(b)
    assert vars(found.lists["graph"]).keys() == vars(walks.lists["graph"]).keys()


def test_a_question_alone_gets_the_answer_it_gets_in_a_batch(index: hf.Index, questions: Any) -> None:
    vectors, mentions = questions
    recipe = hf.recipes.PhaseGraph(index, passage_seeds=0.2)
    together = recipe.search(vectors=vectors, entities=mentions, k=7)
    for b in range(len(vectors)):
        alone = recipe.search(vectors=vectors[b : b + 1], entities=mentions[b : b + 1], k=7)
        np.testing.assert_array_equal(alone.hits.ids[0], together.hits.ids[b])
        np.testing.assert_array_equal(alone.hits.scores[0], together.hits.scores[b])
        np.testing.assert_array_equal(alone.lists["graph"].ids[0], together.lists["graph"].ids[b])


@pytest.mark.parametrize("temperature", ["auto", None])
def test_traces_add_up_to_the_scores(index: hf.Index, questions: Any, temperature: Any) -> None:
    vectors, mentions = questions
    recipe = hf.recipes.PhaseGraph(index, consensus=0.25, temperature=temperature)
    found = recipe.search(vectors=vectors, entities=mentions, k=5, trace=True)
    assert found.traces is not None
    for b, trace in enumerate(found.traces):
        assert [hit["passage"] for hit in trace["hits"]] == found.hits.ids[b, : found.hits.counts[b]].tolist()
        for hit in trace["hits"]:
            total = sum(hit["contributions"].values()) + hit["consensus"]
            assert total == pytest.approx(hit["score"], rel=1e-6)
        for leg, pool in found.lists.items():
            assert len(trace[leg]) == pool.counts[b]
            if trace[leg]:
                assert sum(row["probability"] for row in trace[leg]) == pytest.approx(1.0, abs=1e-5)
                p = np.array([row["percentile"] for row in trace[leg]])
                energies = -np.log(p + 1e-9)
                expected = 2 / 3 * energies.mean() if temperature == "auto" else 0.1
                assert trace["temperatures"][leg] == pytest.approx(expected, rel=1e-6)
            else:
                assert trace["temperatures"][leg] is None
    assert [seed["match"] for seed in found.traces[1]["seeds"]] == ["exact", "alias", "alias"]
    assert [seed["match"] for seed in found.traces[2]["seeds"]] == ["given"] * 3
    assert found.traces[0]["seeds"][0]["weight"] == seeds_by_hand(index)[0][PASSAGES + 1]
    for trace, nodes, weights in zip(found.traces, found.seeds.nodes, found.seeds.weights, strict=True):
        held = [(PASSAGES + seed["entity"], seed["weight"]) for seed in trace["seeds"]]
        assert [(n, w) for n, w in zip(nodes.tolist(), weights.tolist(), strict=True) if n >= 0] == held


def test_an_entity_mentioned_twice_is_one_seed(index: hf.Index, questions: Any) -> None:
    vectors, mentions = questions
    found = hf.recipes.PhaseGraph(index).search(vectors=vectors, entities=mentions, trace=True)
    assert found.traces is not None
    assert [seed["entity"] for seed in found.traces[5]["seeds"]] == [9]


def test_an_unmatched_mention_goes_to_the_nearest_entity_above_the_threshold(index: hf.Index) -> None:
    assert index.entity_vectors is not None
    encoder = NamedVectors({"close": index.entity_vectors[11] * 2, "far": -index.entity_vectors.sum(axis=0)})
    recipe = hf.recipes.PhaseGraph(index, encoder=encoder, entity_threshold=0.99)
    found = recipe.search(vectors=np.ones((1, DIM)), entities=[["close", "far", "Entity 2"]], trace=True)
    assert found.traces is not None
    assert [(s["entity"], s["match"]) for s in found.traces[0]["seeds"]] == [(11, "nearest"), (2, "exact")]
    assert encoder.asked == ["close", "far"]


def test_questions_as_text_go_through_encoder_and_matcher(index: hf.Index) -> None:
    question = "what of Entity 12 and third?"
    encoder = NamedVectors({question: np.arange(1, DIM + 1, dtype=np.float32)})
    pytest.importorskip("ahocorasick", reason="the matcher needs pyahocorasick (extra text)")
    from hopfuse.extract import Gazetteer

    matcher = Gazetteer(list(index.entity_names), {e: a for e, a in enumerate(index.entity_aliases) if a})
    recipe = hf.recipes.PhaseGraph(index, encoder=encoder, matcher=matcher)
    by_text = recipe.search([question], k=5)
    by_hand = recipe.search(vectors=encoder.vectors[question][None], entities=matcher.match([question]), k=5)
    assert sorted(by_text.seeds.nodes[0][by_text.seeds.nodes[0] >= 0] - PASSAGES) == [3, 4, 12]
    np.testing.assert_array_equal(by_text.hits.ids, by_hand.hits.ids)
    np.testing.assert_array_equal(by_text.hits.scores, by_hand.hits.scores)


def test_passage_seeds_reach_questions_without_entities(index: hf.Index, questions: Any) -> None:
    vectors, mentions = questions
    found = hf.recipes.PhaseGraph(index, passage_seeds=0.1).search(vectors=vectors, entities=mentions)
    assert (found.lists["graph"].counts > 0).all()


def test_a_refused_k_leaves_no_trace(index: hf.Index, questions: Any) -> None:
    vectors, mentions = questions
    recipe = hf.recipes.PhaseGraph(index)
    for k in (4.0, True, [1], -1):
        with refused(InputError, "range", "k"):
            recipe.search(vectors=vectors, entities=mentions, k=k)
        with refused(InputError, "range", "k"):
            recipe.warmup(k)
    assert recipe.search(vectors=vectors, entities=mentions, k=4).hits.shape[1] == 4
    with refused(InputError, "range", "max_seeds", given=2.5):
        recipe.warmup(max_seeds=2.5)


def test_an_empty_batch_gives_empty_hits(index: hf.Index) -> None:
    found = hf.recipes.PhaseGraph(index).search(vectors=np.zeros((0, DIM)), entities=[], k=3, trace=True)
    assert found.hits.shape == (0, 3)
    assert found.traces == []


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"alpha": 1.5}, ("range", "alpha")),
        ({"dense_k": 0}, ("range", "dense_k")),
        ({"graph_k": 2.5}, ("range", "graph_k")),
        ({"passage_seeds": -1}, ("range", "passage_seeds")),
    ],
)
def test_bad_options_are_refused_at_once(
    index: hf.Index, options: dict[str, Any], refusal: tuple[str, str | None]
) -> None:
    with refused(InputError, *refusal):
        hf.recipes.PhaseGraph(index, **options)


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        ({"queries": "one question"}, ("type", "queries")),
        ({"vectors": np.ones((2, DIM)), "entities": [["Entity 1"]]}, ("length", "entities")),
        ({"vectors": np.ones((1, DIM)), "entities": ["Entity 1"]}, ("type", "entities[0]")),
        ({"vectors": np.ones((1, DIM)), "entities": [[99]]}, ("unknown", "entities[0][0]")),
        ({"vectors": np.ones((1, DIM)), "entities": [[1.5]]}, ("type", "entities[0][0]")),
        ({"vectors": np.ones((1, DIM))}, ("missing", "entities")),
        ({"entities": [["Entity 1"]]}, ("missing", "vectors")),
    ],
)
def test_bad_searches_say_what_is_missing(
    index: hf.Index, call: dict[str, Any], refusal: tuple[str, str | None]
) -> None:
    with refused(InputError, *refusal):
        hf.recipes.PhaseGraph(index).search(**call)


def test_an_index_without_a_graph_is_refused() -> None:
    index = hf.Index.build(passages=[{"text": "one"}], vectors=[[1.0]])
    with refused(InputError, "missing", "index"):
        hf.recipes.PhaseGraph(index)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"temperature": -1.0}, ("range", "temperature")),
        ({"ties": "foo"}, ("choice", "ties")),
        ({"damping": 7}, ("range", "damping")),
        ({"consensus": -1.0}, ("range", "consensus")),
        ({"entity_threshold": 2.0}, ("range", "entity_threshold")),
    ],
)
def test_options_of_the_operations_are_refused_before_any_search(
    index: hf.Index, options: dict[str, Any], refusal: tuple[str, str | None]
) -> None:
    with refused(InputError, *refusal):
        hf.recipes.PhaseGraph(index, **options)


def test_the_nearest_entity_is_by_cosine_whatever_the_metric_of_the_passages() -> None:
    index = hf.Index.build(
        passages=[{"text": "one"}],
        vectors=[[1.0, 0.0]],
        entities=["near", "long"],
        entity_vectors=[[1.0, 0.05], [30.0, 100.0]],
        graph=[{"src": 0, "dst": 1}, {"src": 0, "dst": 2}],
        metric="ip",
    )
    encoder = NamedVectors({"nearly": np.array([1.0, 0.0], np.float32)})
    recipe = hf.recipes.PhaseGraph(index, encoder=encoder, entity_threshold=0.9)
    found = recipe.search(vectors=[[1.0, 0.0]], entities=[["nearly"]], trace=True)
    assert found.traces is not None
    assert [seed["name"] for seed in found.traces[0]["seeds"]] == ["near"]
