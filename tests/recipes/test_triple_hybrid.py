"""The Dice-Sørensen hybrid: its composition over the oracle, on every backend; modes, hops, traces, refusals."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_hits_equal
from hopfuse import reference
from hopfuse.errors import InputError
from hopfuse.recipes import TripleHybridConfig
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from refusals import refused

ENTITIES, DIM, BATCH, PASSAGES = 30, 6, 5, 12
WORDS = ["film", "actor", "the", "sea", "night", "day", "red", "river", "of", "stone"]


class Lists:
    """A lexical leg that looks lists up."""

    def search(self, questions: Sequence[str], k: int, /) -> hf.Hits:
        return hf.Hits.from_lists([[(3, 2.0), (1, 1.0)][:k] for _ in questions])


class Case:
    """Names of drawn words, facts among them with loops and parallels, and questions of the same words."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        names = [f"{' '.join(rng.choice(WORDS, int(rng.integers(1, 4))))} {e}" for e in range(ENTITIES)]
        relations = ["directed by", "starred actors", "written by"]
        self.rows = [
            (names[int(h)], relations[int(r)], names[int(t)])
            for h, r, t in zip(*(rng.integers(0, most, 45) for most in (25, 3, 25)), strict=True)
        ]
        self.names, self.vectors = names, rng.standard_normal((ENTITIES, DIM)).astype(np.float32)
        stated = rng.integers(0, PASSAGES, len(self.rows)).tolist()
        self.stated = [(*row, p) for row, p in zip(self.rows, stated, strict=True)]
        self.stated += [(*row, p) for row, p in zip(self.rows[:9], stated[9:], strict=False)]
        self.index = self.built(list(range(PASSAGES)), whole=True)
        self.questions = ["Who directed the RED river"] + [
            " ".join(rng.choice([*WORDS, "written", "by"], 5)) for _ in range(BATCH - 1)
        ]
        self.asked = rng.standard_normal((BATCH, DIM)).astype(np.float32)

    def built(self, passages: list[int], *, whole: bool = False) -> hf.Index:
        """An index of some passages, with their facts in the whole's order; only the whole has every entity."""
        order = list(dict.fromkeys(self.rows))
        rows = [row for row in self.stated if row[3] in passages]
        rows.sort(key=lambda row: order.index(row[:3]))
        said = {name for row in rows for name in (row[0], row[2])}
        kept = [e for e, name in enumerate(self.names) if whole or name in said]
        names = [self.names[e] for e in kept]
        facts = [(*row[:3], passages.index(row[3])) for row in rows]
        return hf.Index.build(
            passages=[{"text": "one"}] * len(passages),
            entities=names,
            entity_vectors=self.vectors[kept],
            facts=hf.Facts.from_names(facts, names, len(passages)),
            metric="cosine",
        )

    def recipe(self, config: TripleHybridConfig | None = None, **options: Any) -> hf.recipes.TripleHybrid:
        return hf.recipes.TripleHybrid(self.index, config, **options)

    def ask(self, recipe: hf.recipes.TripleHybrid, **how: Any) -> hf.recipes.TripleHybridResult:
        return recipe.search(self.questions, vectors=self.asked if recipe.needs.vectors else None, **how)


@pytest.fixture
def case() -> Case:
    return Case(4)


def cosines(case: Case) -> NDArray[np.float64]:
    x, q = case.vectors.astype(np.float64), case.asked.astype(np.float64)
    return np.asarray((q @ x.T) / np.linalg.norm(q, axis=1)[:, None] / np.linalg.norm(x, axis=1))


def graph_scores(case: Case, b: int, seeds: int, hops: int, **how: Any) -> dict[int, float]:
    """Entity by entity, in plain loops over names and the oracle's dice."""
    facts = list(dict.fromkeys(case.rows))
    names = case.names
    frontier = {names[e] for e in np.argsort(-cosines(case)[b], kind="stable")[:seeds]}
    seen, best = set(frontier), dict[str, float]()
    for _ in range(hops):
        reached = set()
        for head, relation, tail in facts:
            score = reference.dice_scores([case.questions[b]], [head, relation, tail], [[0, 1, 2]], [0, 1], **how)[0]
            for end, other in ((head, tail), (tail, head)):
                if end in frontier:
                    reached.add(other)
                    best[other] = max(best.get(other, 0.0), score)
        frontier = reached - seen
        seen |= frontier
    return {names.index(name): score for name, score in best.items() if score > 0}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options",
    [
        {"seeds": 3},
        {"seeds": 2, "hops": 2, "unit": "words"},
        {"seeds": 1, "hops": 3, "repeats": True, "vector_k": 4, "graph_k": 5},
    ],
)
def test_every_mode_is_its_composition_over_the_oracle(variant: str, seed: int, options: dict[str, Any]) -> None:
    case = Case(seed)
    options = {"calibration": "none", **options}
    recipe = case.recipe(**options)
    config = recipe.config
    how = {name: options[name] for name in ("unit", "repeats") if name in options}
    near, k = cosines(case), 8
    modes = ("hybrid", "graph", "vector")
    found = {mode: case.ask(case.recipe(TripleHybridConfig(mode=mode, **options)), k=k).hits for mode in modes}
    for b in range(BATCH):
        graph = graph_scores(case, b, options["seeds"], options.get("hops", 1), **how)
        pooled = sorted(graph, key=lambda e: (-graph[e], e))[: config.graph_k]
        closest = np.argsort(-near[b], kind="stable")[: config.vector_k].tolist()
        union = {e: float(near[b, e]) for e in closest}
        for e in pooled:
            union[e] = max(union.get(e, -np.inf), graph[e] + 1e-6)
        wanted = {"graph": graph, "vector": dict(enumerate(near[b].tolist())), "hybrid": union}
        for mode, scores in wanted.items():
            row = found[mode].row(b)
            assert len(row) == min(k, len(scores))
            assert [score for _, score in row] == pytest.approx(sorted(scores.values(), reverse=True)[:k], abs=1e-5)
            for entity, score in row:  # equal scores may differ in order by float64's last bit
                assert score == pytest.approx(scores[entity], abs=1e-5)


def test_the_millionth_survives_float32() -> None:
    """Where both lists say 1, the graph's is ahead by 1e-6, and of what it leads to the vectors alone are behind."""
    index = hf.Index.build(
        passages=[{"text": "one"}],
        entities=["x y", "Y x"],
        entity_vectors=[[1.0, 0.0], [1.0, 0.0]],
        facts=[{"head": "x y", "relation": "y x", "tail": "Y x", "passage": 0}],
    )
    recipe = hf.recipes.TripleHybrid(index, hf.recipes.TripleHybrid.paper(), seeds=1, unit="words")
    found = recipe.search(["X, y?"], vectors=[[2.0, 0.0]], k=2, trace=True)
    assert found.lists["vector"].row(0) == [(0, 1.0), (1, 1.0)]
    assert found.lists["graph"].row(0) == [(1, 1.0)]
    assert found.hits.ids.tolist() == [[1, 0]]
    assert found.hits.scores[0, 0] - 1.0 == pytest.approx(1e-6, rel=0.06)
    assert found.hits.scores[0, 1] == 1.0
    assert found.traces is not None
    assert [hit["by"] for hit in found.traces[0]["hits"]] == ["graph", "vector"]


@pytest.mark.parametrize("mode", ["hybrid", "graph", "vector", "lexical"])
def test_a_question_does_not_know_its_batch(case: Case, mode: Any) -> None:
    recipe = case.recipe(TripleHybridConfig(mode=mode, hops=2, seeds=2), lexical=Lists())
    whole = case.ask(recipe, k=12).hits
    for b in range(BATCH):
        vectors = case.asked[b : b + 1] if recipe.needs.vectors else None
        alone = recipe.search([case.questions[b]], vectors=vectors, k=12).hits
        assert alone.row(0) == whole.row(b)
    assert whole.shape == (BATCH, 12)


@pytest.mark.emulator
def test_the_emulator_gives_the_same(case: Case, emulated: Any) -> None:
    recipe = case.recipe(seeds=3)
    expected = case.ask(recipe)
    emulated()
    found = case.ask(recipe)
    assert_hits_equal(found.hits, expected.hits)
    assert_hits_equal(found.lists["graph"], expected.lists["graph"])


@pytest.mark.parametrize("calibration", ["min_max", "max"])
def test_lists_may_be_calibrated_before_the_maximum(case: Case, calibration: Any) -> None:
    recipe = case.recipe(seeds=3, calibration=calibration)
    found = case.ask(recipe, k=12, trace=True)
    lists = [found.lists["vector"], found.lists["graph"]]
    expected = reference.fuse(lists, method="max", bias=(0.0, 1e-6), calibration=calibration, k=12)
    assert found.hits.ids.tolist() == expected.ids.tolist()
    assert found.traces is not None
    for b, trace in enumerate(found.traces):
        scaled = {
            name: dict(hf.calibrate(hits, calibration).row(b))
            for name, hits in zip(("vector", "graph"), lists, strict=True)
        }
        for hit in trace["hits"]:
            lift = 1e-6 if hit["by"] == "graph" else 0.0
            assert hit["score"] == pytest.approx(scaled[hit["by"]][hit["entity"]] + lift, abs=2e-7)
            assert hit["scores"] == {
                name: dict(lists[at].row(b))[hit["entity"]]
                for at, name in enumerate(scaled)
                if hit["entity"] in scaled[name]
            }


def test_a_trace_says_where_each_hit_comes_from(case: Case) -> None:
    recipe = case.recipe(seeds=3, calibration="none")
    found = case.ask(recipe, k=6, trace=True)
    assert found.traces is not None
    by = set()
    for b, trace in enumerate(found.traces):
        names = case.names
        assert [seed["entity"] for seed in trace["seeds"]] == found.lists["vector"].ids[b, :3].tolist()
        assert [(hit["entity"], hit["score"]) for hit in trace["hits"]] == found.hits.row(b)
        for hit in trace["hits"]:
            by.add(hit["by"])
            lift = 1e-6 if hit["by"] == "graph" else 0.0
            assert hit["score"] == pytest.approx(hit["scores"][hit["by"]] + lift, abs=1e-7)
            assert hit["scores"] == {
                name: dict(hits.row(b))[hit["entity"]]
                for name, hits in found.lists.items()
                if hit["entity"] in dict(hits.row(b))
            }
            fact = hit["triple"]
            assert ("graph" in hit["scores"]) == (fact is not None)
            if fact is not None:
                ends = fact["head"], fact["tail"]
                assert (fact["head"], fact["relation"], fact["tail"]) == list(dict.fromkeys(case.rows))[fact["triple"]]
                assert hit["name"] in ends
                assert {names[seed["entity"]] for seed in trace["seeds"]} & set(ends)
                labels = [*ends, fact["relation"]]
                score = reference.dice_scores([case.questions[b]], labels, [[0, 1, 2]], [0, 1])[0]
                assert fact["score"] == hit["scores"]["graph"] == pytest.approx(score, abs=1e-6)
    assert by == {"graph", "vector"}


def test_the_lexical_mode_needs_no_vectors(case: Case) -> None:
    recipe = case.recipe(mode="lexical", lexical=Lists())
    found = recipe.search(case.questions, k=3, trace=True)
    assert found.hits.row(0) == [(3, 2.0), (1, 1.0)]
    assert found.hits.shape == (BATCH, 3)
    assert found.traces is not None
    assert found.traces[0]["hits"][0]["by"] == "lexical"
    assert found.traces[0]["seeds"] == []


def test_an_encoder_gives_the_vectors(case: Case) -> None:
    class Encoder:
        def encode_queries(self, texts: Sequence[str], /) -> NDArray[np.float32]:
            assert list(texts) == case.questions
            return case.asked

    recipe = case.recipe(encoder=Encoder())
    assert_hits_equal(recipe.search(case.questions).hits, case.ask(recipe).hits)


def test_no_facts_and_no_questions() -> None:
    nothing = hf.Facts.from_numbers([], 2, 1)
    one = {"passages": [{"text": "one"}], "entities": ["a", "b"], "entity_vectors": np.eye(2)}
    recipe = hf.recipes.TripleHybrid(hf.Index.build(**one, facts=nothing))
    found = recipe.search(["a question"], vectors=[[1.0, 0.0]], k=3)
    assert found.hits.row(0) == [(0, 1.0), (1, 0.0)]
    assert found.hits.shape == (1, 2)
    assert found.lists["graph"].counts.tolist() == [0]
    assert recipe.search([], vectors=np.zeros((0, 2))).hits.shape == (0, 2)


def test_hits_are_entities_by_name(case: Case) -> None:
    found = case.ask(case.recipe(seeds=3), k=4)
    assert len(found) == BATCH
    for b, hits in enumerate(found):
        assert [(hit.row, hit.score) for hit in hits] == found.hits.row(b)
        assert all(hit.id == hit.title == case.names[hit.row] and hit.text == "" for hit in hits)
    assert case.ask(case.recipe(), k=10**12).hits.shape == (BATCH, ENTITIES)


def test_vectors_alone_need_no_texts(case: Case) -> None:
    recipe = case.recipe(mode="vector")
    assert_hits_equal(recipe.search(vectors=case.asked).hits, case.ask(recipe).hits)
    assert recipe.needs == hf.recipes.Needs(vectors=True)
    assert case.recipe().needs == hf.recipes.Needs(vectors=True, texts=True, facts=True)


MODES = [{"mode": "hybrid", "hops": 2, "seeds": 3}, {"mode": "graph", "seeds": 4}, {"mode": "vector"}]


@given(seed=st.integers(0, 2**16), share=st.floats(0.1, 0.9), options=st.sampled_from(MODES))
def test_an_isolated_answer_is_that_of_an_index_of_the_passages_alone(seed, share, options) -> None:
    case, mask = Case(seed % 50), np.random.default_rng(seed).random(PASSAGES) < share
    mask[seed % PASSAGES] = True
    passages = np.flatnonzero(mask).tolist()
    alone = case.built(passages)
    kept = np.array([case.names.index(name) for name in alone.entity_names], np.int64)
    expected = case.ask(hf.recipes.TripleHybrid(alone, **options), k=6)
    found = case.ask(case.recipe(**options), k=6, allow=mask)
    assert_hits_equal(case.ask(case.recipe(**options), k=6, allow=passages).hits, found.hits)
    pairs = [(found.hits, expected.hits), *((hits, expected.lists[name]) for name, hits in found.lists.items())]
    for hits, right in pairs:
        renumbered = [[(int(kept[e]), score) for e, score in right.row(b)] for b in range(BATCH)]
        assert [hits.row(b) for b in range(BATCH)] == renumbered


def test_results_alone_are_restricted(case: Case) -> None:
    """Seeds and facts are the whole index's: the graph's list is the whole's without what is not allowed."""
    mask = np.arange(PASSAGES) < 4
    seen = {name for *row, p in case.stated if p < 4 for name in (row[0], row[2])}
    allowed = {case.names.index(name) for name in seen}
    recipe = case.recipe(mode="graph", seeds=3, hops=2)
    whole = case.ask(recipe, k=ENTITIES, trace=True)
    found = case.ask(recipe, k=ENTITIES, allow=mask, allow_scope="results", trace=True)
    for b in range(BATCH):
        assert found.hits.row(b) == [(e, score) for e, score in whole.hits.row(b) if e in allowed]
        assert found.traces[b]["seeds"] == whole.traces[b]["seeds"]


def test_each_question_may_have_its_own_passages(case: Case) -> None:
    masks = np.random.default_rng(1).random((BATCH, PASSAGES)) < 0.5
    masks[3] = False
    for scope in ("isolated", "results"):
        recipe = case.recipe(hops=2, seeds=2)
        found = case.ask(recipe, allow=masks, allow_scope=scope)
        for b in range(BATCH):
            one = {"vectors": case.asked[b : b + 1], "allow": masks[b], "allow_scope": scope}
            assert recipe.search([case.questions[b]], **one).hits.row(0) == found.hits.row(b)
        assert found.hits.counts[3] == 0


def test_bad_input_is_refused(case: Case) -> None:
    recipe = case.recipe()
    bare = hf.Index.build(passages=[{"text": "one"}])
    made: list[tuple[dict[str, Any], str, str]] = [
        ({"index": bare}, "missing", "index"),
        ({"mode": "bm25"}, "choice", "mode"),
        ({"mode": "lexical"}, "missing", "lexical"),
        ({"seeds": 0}, "range", "seeds"),
        ({"hops": 1.5}, "range", "hops"),
        ({"unit": "trigrams"}, "choice", "unit"),
        ({"repeats": 1}, "type", "repeats"),
        ({"lexical": object()}, "type", "lexical"),
        ({"calibration": "z_score"}, "choice", "calibration"),
        ({"depth": 3}, "unknown", "depth"),
    ]
    for change, code, field in made:
        with refused(InputError, code, field):
            hf.recipes.TripleHybrid(**({"index": case.index} | change))
    lacks = hf.recipes.TripleHybrid.missing(bare)
    assert lacks is not None
    assert lacks.allowed == ("facts", "entity_corpus")
    asked: list[tuple[dict[str, Any], str, str]] = [
        ({"queries": "one"}, "type", "queries"),
        ({"queries": None}, "missing", "queries"),
        ({"vectors": None}, "missing", "vectors"),
        ({"vectors": case.asked[:2]}, "length", "vectors"),
        ({"entities": [[]] * 5}, "unused", "entities"),
        ({"k": -1}, "range", "k"),
        ({"allow": [PASSAGES]}, "unknown", "allow"),
        ({"allow": [1], "allow_scope": "shared"}, "choice", "allow_scope"),
    ]
    for change, code, field in asked:
        with refused(InputError, code, field):
            recipe.search(**({"queries": case.questions, "vectors": case.asked} | change))


def test_a_recipe_survives_pickling(case: Case, tmp_path: Path) -> None:
    case.index.save(tmp_path / "index")
    recipe = hf.recipes.TripleHybrid(hf.Index.open(tmp_path / "index"), hops=2, seeds=2)
    again = pickle.loads(pickle.dumps(recipe))
    assert again.config == recipe.config
    assert_hits_equal(case.ask(again).hits, case.ask(recipe).hits)
