"""The experiments: choices, comparisons with corrections, and the committed numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.evaluate import Qrels, holm, in_test_half, ndcg

from experiments.fusion import files
from experiments.fusion.arms import convex, fused, walk
from experiments.fusion.design import METRICS, Arm, Question, answer, edges, grid, ratios
from experiments.fusion.legs import EDGE_TYPES, Legs, linked_graph
from experiments.fusion.questions import LINKS, questions
from experiments.fusion.reranking import CANDIDATES, QUESTION, candidates, reranked
from experiments.record import read_results, write_results

PASSAGES, ENTITIES = 60, 20


@pytest.fixture
def legs() -> Legs:
    """Forty questions of two gold passages each; legs that know them to different degrees."""
    draw = np.random.default_rng(0)
    gold = [sorted(draw.choice(PASSAGES, 2, replace=False).tolist()) for _ in range(40)]
    qrels = Qrels(
        [f"q{i}" for i in range(40)], gold, hops=[[[a], [b]] for a, b in gold], last_hop=[[b] for _, b in gold]
    )

    def found(knowing: float, scale: float) -> hf.Hits:
        scores = draw.random((40, PASSAGES))
        for row, two in zip(scores, gold, strict=True):
            row[two] += knowing
        ids = np.argsort(-scores, axis=1)
        return hf.Hits(ids, scale * np.take_along_axis(scores, ids, axis=1))

    ends = draw.integers(0, PASSAGES + ENTITIES, (2, 400))
    types = draw.integers(0, len(EDGE_TYPES), 400)
    graph = hf.Graph.from_edges(*ends, edge_type=types, edge_type_names=EDGE_TYPES, num_nodes=PASSAGES + ENTITIES)
    seeds = hf.Seeds(draw.integers(PASSAGES, PASSAGES + ENTITIES, (40, 1)))
    lists = {"dense": found(0.3, 1.0), "graph": found(0.1, 1e-3), "lexical": found(0.5, 9.0)}
    return Legs(qrels, tuple(qrels.ids), lists, seeds, graph, tuple(f"text {i}" for i in range(PASSAGES)))


def test_weights_are_all_ratios_by_powers_of_two() -> None:
    made = np.array([options["weights"] for options in ratios(3, 6)])
    assert len(made) == len(np.unique(made, axis=0)) == 8**3 - 7**3  # of 0 and seven powers, at least one the largest
    assert made.sum(axis=1) == pytest.approx(1.0)
    relative = made / made.max(axis=1, keepdims=True)
    np.testing.assert_allclose(np.unique(relative.round(9)), [0.0, *(2.0 ** -np.arange(6, -1, -1))], atol=1e-9)
    assert grid(a=[1, 2], b=[3, 4]) == [{"a": 1, "b": 3}, {"a": 1, "b": 4}, {"a": 2, "b": 3}, {"a": 2, "b": 4}]


def test_edges_are_the_ends_of_what_was_tried() -> None:
    arm = Arm("a", lambda legs, _: legs.lists["dense"], [w | k for w in ratios(2, 3) for k in grid(k=(1, 5, 9))])
    least = next(options for options in ratios(2, 3) if options["weights"][0] == pytest.approx(1 / 9))
    inside = {"weights": (0.5, 0.5)}
    assert edges(arm, {**least, "k": 5}) == ["weights"]
    assert edges(arm, {**inside, "k": 9}) == edges(arm, {**inside, "k": 1}) == ["k"]
    assert edges(arm, {**inside, "k": 5}) == edges(arm, {"weights": (0.0, 1.0), "k": 5}) == []
    assert edges(replace(arm, grid=[{**inside, "k": 1}]), {**inside, "k": 1}) == []
    blends = Arm("b", arm.run, grid(blend=(0.0, 0.5, 1.0), temperature=("auto", 1.0, 2.0, 3.0)))
    assert (
        edges(blends, {"blend": 0.0, "temperature": "auto"}) == edges(blends, {"blend": 1.0, "temperature": 2.0}) == []
    )
    assert edges(blends, {"blend": 0.5, "temperature": 3.0}) == ["temperature"]


def test_the_halves_are_those_of_the_ids(legs: Legs) -> None:
    tune, test = legs.halves()
    rows = np.flatnonzero(in_test_half(legs.qrels.ids))
    assert test.qrels.ids == tuple(legs.qrels.ids[row] for row in rows) == test.questions
    assert set(tune.qrels.ids) | set(test.qrels.ids) == set(legs.qrels.ids)
    assert len(tune.qrels) + len(test.qrels) == 40
    np.testing.assert_array_equal(test.lists["lexical"].ids, legs.lists["lexical"].ids[rows])
    np.testing.assert_array_equal(test.seeds.nodes, legs.seeds.nodes[rows])


def test_options_are_chosen_on_the_tune_half_alone(legs: Legs) -> None:
    """The test half is run once, with the best options of the tune half."""
    tune, test = legs.halves()
    calls: list[tuple[str, Any]] = []

    def run(half: Legs, options: Any) -> hf.Hits:
        calls.append(("tune" if half is tune else "test", options["weights"]))
        return hf.fuse(list(half.lists.values()), method="linear", calibration="min_max", k=10, **options)

    tried = ratios(3, 1)
    result = answer(Question("q", "Q", "", (Arm("arm", run, tried),), ()), {"folder": (tune, test)})
    assert calls[:-1] == [("tune", options["weights"]) for options in tried]
    means = [float(ndcg(run(tune, options), tune.qrels, 10).mean()) for options in tried]
    reached = result["arms"]["arm"]["folder"]
    assert calls[len(tried)] == ("test", reached["chosen"]["weights"])
    assert reached["chosen"] == tried[int(np.argmax(means))]
    assert reached["tune"] == max(means) > min(means)
    assert reached["test"]["ndcg@10"]["mean"] == float(ndcg(run(test, reached["chosen"]), test.qrels, 10).mean())


def test_comparisons_are_corrected_over_folders_pairs_and_metrics(legs: Legs) -> None:
    arms = tuple(Arm(leg, lambda half, _, leg=leg: half.lists[leg].head(10)) for leg in legs.lists)
    pairs = (("lexical", "graph"), ("dense", "graph"))
    halves = {"one": legs.halves(), "two": legs.halves()[::-1]}
    found = answer(Question("q", "Q", "", arms, pairs), halves)["comparisons"]
    named = [(c["folder"], (c["first"], c["second"]), c["metric"]) for c in found]
    assert named == list(product(halves, pairs, METRICS))
    assert [c["p_holm"] for c in found] == holm([c["p"] for c in found]).tolist()
    means = {leg: ndcg(halves["two"][1].lists[leg].head(10), halves["two"][1].qrels, 10) for leg in legs.lists}
    one = next(c for c in found if c["folder"] == "two" and c["metric"] == "ndcg@10" and c["first"] == "lexical")
    difference = means["lexical"] - means["graph"]
    assert one["difference"] == pytest.approx(difference.mean())
    assert (one["wins"], one["losses"]) == ((difference > 0).sum(), (difference < 0).sum())
    # (z of 0.05 / 12 two-sided + z of 0.8) standard errors
    assert one["detects"] == pytest.approx(
        (2.8653 + 0.8416) * difference.std(ddof=1) / len(difference) ** 0.5, rel=1e-3
    )


def test_arms_are_what_they_are_called(legs: Legs) -> None:
    half = legs.halves()[0]
    lists = [half.lists[leg] for leg in ("dense", "graph")]
    np.testing.assert_array_equal(
        fused("rrf", "rrf", ("dense", "graph"), rank_constant=7).run(half, {"pool": (5, 3)}).scores,
        hf.fuse(lists, method="rrf", rank_constant=7, pool=(5, 3), k=10).scores,
    )
    by_hand: dict[int, float] = {}
    for hits, weight, least in zip(lists, (0.2, 0.8), (-1.0, 0.0), strict=True):
        top = hits.row(0)[: 100 if least else 30]
        for passage, score in top:
            by_hand[passage] = by_hand.get(passage, 0.0) + weight * (score - least) / (top[0][1] - least)
    found = convex("c", ("dense", "graph"), ()).run(half, {"weights": (0.2, 0.8)}).row(0)
    assert dict(found) == pytest.approx({passage: by_hand[passage] for passage, _ in found}, rel=1e-5)
    assert [p for p, _ in found] == sorted(by_hand, key=lambda p: -by_hand[p])[:10]


def test_an_edge_type_of_weight_0_counts_as_absent(legs: Legs) -> None:
    graph = legs.linked
    src, dst, weight, types = graph.edges()
    kept = np.array(LINKS["at least 0.9"])[types] > 0
    assert 0 < kept.sum() < kept.size
    without = hf.Graph.from_edges(src[kept], dst[kept], weight[kept], num_nodes=graph.num_nodes)
    plain = replace(legs, linked=hf.Graph.from_edges(src, dst, weight, edge_type=types, edge_type_names=EDGE_TYPES))
    found = walk(plain, LINKS["at least 0.9"], 10)
    alone = hf.ppr_topk(without, legs.seeds, 10, candidates=np.arange(PASSAGES), damping=0.5, stop="tol", empty="skip")
    np.testing.assert_array_equal(found.ids[:, :5], alone.ids[:, :5])


def test_edges_by_type_and_name(tmp_path: Path) -> None:
    folder = tmp_path / "graph"
    folder.mkdir()
    nodes = [
        ("passage", "P"),
        ("entity", "The Beatles"),
        ("entity", "Ada"),
        ("entity", "beatles"),
        ("entity", "Beatles!"),
    ]
    (folder / "nodes.tsv").write_text("".join(f"{i}\t{kind}\t{name}\n" for i, (kind, name) in enumerate(nodes)))
    (folder / "edges.tsv").write_text(
        "0\t1\tcontext\t1.0\n1\t2\tsynonym\t0.85\n1\t3\tsynonym\t0.95\n2\t3\trelation\t2\n"
    )
    src, dst, weight, types = linked_graph(tmp_path).edges()
    rows = zip(src, dst, weight.tolist(), types, strict=True)
    found = {(min(a, b), max(a, b), EDGE_TYPES[t], round(w, 2)) for a, b, w, t in rows}
    assert found == {
        (0, 1, "context", 1.0),
        (1, 2, "synonym", 0.85),
        (1, 3, "close synonym", 0.95),
        (2, 3, "relation", 2.0),
        (1, 3, "same name", 1.0),
        (3, 4, "same name", 1.0),
    }


def test_every_question_has_an_answer(legs: Legs) -> None:
    halves = {"hotpotqa": legs.halves()}
    for question in questions():
        assert {name for pair in question.pairs for name in pair} <= {arm.name for arm in question.arms}
        small = replace(question, arms=tuple(replace(arm, grid=arm.grid[:2]) for arm in question.arms))
        found = json.loads(json.dumps(answer(small, halves)))
        assert list(found["arms"]) == [arm.name for arm in question.arms]
        pairs = dict.fromkeys((c["first"], c["second"]) for c in found["comparisons"])
        assert tuple(pairs) == question.pairs


class Knowing:
    """A model that scores gold passages above others."""

    def __init__(self, legs: Legs) -> None:
        self.gold = {q: {legs.passages[i] for i in row} for q, row in zip(legs.questions, legs.qrels.gold, strict=True)}

    def score(self, queries: Any, candidates: Any) -> Any:
        pairs = zip(queries, candidates, strict=True)
        return [np.array([text in self.gold[query] for text in row], np.float32) for query, row in pairs]


def test_the_second_stage_reads_the_candidates_of_the_test_half(legs: Legs) -> None:
    tune, test = legs.halves()
    halves = reranked({"folder": (tune, test)}, Knowing(legs))
    first = candidates(test)
    last = halves["folder"][1].lists["reranked"]
    assert "reranked" not in halves["folder"][0].lists
    assert first.shape == last.shape == (len(test.qrels), CANDIDATES)
    np.testing.assert_array_equal(np.sort(first.ids), np.sort(last.ids))
    result = answer(QUESTION, halves)
    assert set(result["metrics"]) == {*METRICS, "last_hop@5"}
    reached = {name: row["folder"]["test"]["ndcg@10"]["mean"] for name, row in result["arms"].items()}
    assert reached["reranked"] > reached["fused + reranked"] > reached["fused"]


def test_numbers_are_written_short_and_read_back(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    write_results(file, {"a": [0.123456789, 2, (True, None)], "é": "x"})
    assert read_results(file) == {"a": [0.123457, 2, [True, None]], "é": "x"}


def test_the_committed_numbers_are_of_these_questions() -> None:
    recorded = {row["key"]: row for row in read_results(files.RESULTS)["questions"]}
    for question in questions():
        row = recorded[question.key]
        assert (row["title"], row["about"]) == (question.title, question.about)
        assert list(row["arms"]) == [arm.name for arm in question.arms]
        pairs = dict.fromkeys((c["first"], c["second"]) for c in row["comparisons"])
        assert tuple(pairs) == question.pairs
