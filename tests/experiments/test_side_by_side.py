"""The comparison of the recipes on a tiny folder, end to end, and the choice of their defaults."""

from __future__ import annotations

import json
from pathlib import Path

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.evaluate import JudgedSet, Qrels, compare, holm, in_test_half, sweep_sets

from experiments import metaqa, metaqa_files, side_by_side, tuned

NAMES = ["Ada Lovelace", "Charles Babbage", "London", "Analytical Engine", "Luigi Menabrea", "Turin"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder in the format of musique-openie."""
    made = tmp_path / "musique-openie"
    made.mkdir()
    rows = [(i, NAMES[i % 6], NAMES[(i + 1) % 6]) for i in range(12)]
    write(made / "passages.jsonl", [{"id": i, "title": a, "text": f"{a} wrote to {b}, note {i}."} for i, a, b in rows])
    write(made / "openie.jsonl", [{"id": i, "entities": [a, b], "triples": [[a, "wrote to", b]]} for i, a, b in rows])
    asked = [
        {"id": f"q{i}", "question": f"To whom did {a} write?", "answer": b, "gold": [i], "hops": [[i]], "last_hop": [i]}
        for i, a, b in rows
    ]
    write(made / "queries.jsonl", asked)
    return made


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.mark.full
def test_a_folder_is_built_and_compared(folder: Path, tmp_path: Path) -> None:
    numbers = side_by_side.run(folder, "folder", tmp_path)
    runs = {"dense", side_by_side.WALK, "phase-graph", "hybrid-rrf", "policy-rag", "triple-hybrid", "triple-graph"}
    assert runs <= set(numbers["runs"])
    test = int(in_test_half([f"q{i}" for i in range(12)]).sum())
    assert (numbers["questions"], numbers["judged"]) == (test, test)
    for run, means in numbers["means"].items():
        assert set(means) == set(side_by_side.METRICS), run
    assert set(numbers["legs"]) == set(side_by_side.LEGS) & set(numbers["runs"])


def test_the_numbers_are_the_test_halfs_and_the_best_leg_is_the_better_one() -> None:
    ids = [f"q{i}" for i in range(40)]
    test = in_test_half(ids)
    right = {"dense": test, side_by_side.WALK: np.arange(40) % 4 > 0, "phase-graph": np.arange(40) % 2 > 0}
    values = {run: {m: found.astype(float).tolist() for m in side_by_side.METRICS} for run, found in right.items()}
    for row in values.values():
        row["recall@5"][0] = None  # type: ignore[call-overload]
    message = {
        "machine": {},
        "left out": {},
        "runs": list(right),
        "ms per query": {run: {"1": 5, "32": 2} for run in right},
    }
    kept = side_by_side.kept({**message, "per_query": {"ids": ids, "values": values}})
    assert kept["questions"] == test.sum()
    assert kept["means"]["dense"]["recall@5"] == 1.0
    assert kept["ms"] == dict.fromkeys(right, 64)
    leg = kept["legs"]["phase-graph"]
    assert (leg["leg"], leg["difference"]) == ("dense", pytest.approx(right["phase-graph"][test].mean() - 1))
    assert leg["low"] <= leg["difference"] <= leg["high"]
    raw = [
        compare(right[run][test].astype(float), np.ones(test.sum()), binary=False).p_value
        for run in (side_by_side.WALK, "phase-graph")
    ]
    assert list(kept["p"]["dense"].values()) == holm(raw).tolist()


@pytest.mark.full
def test_metaqa_is_compared_by_a_passage_about_each_entity(metaqa_folder: Path, tmp_path: Path) -> None:
    numbers = side_by_side.run(metaqa_folder, "folder", tmp_path)
    assert {"dense", "words", "phase-graph", "hybrid-rrf", "policy-rag", "triple-hybrid"} <= set(numbers["runs"])
    assert numbers["left out"] == {}


def test_the_files_of_metaqa_are_an_index_of_it(metaqa_folder: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    metaqa_files.write_files(metaqa_folder, work)
    index = hf.Index.build(
        passages=work / "passages.jsonl",
        entities=work / "entities.jsonl",
        graph=work / "edges.tsv",
        facts=work / "facts.tsv",
        fact_ends="node",
    )
    assert index.titles[1] == index.entity_names[1] == "Ridley Scott"
    assert index.texts[1] == "Ridley Scott. Alien directed by Ridley Scott"
    assert index.graph is not None
    mentions = hf.Incidence.from_graph(index.graph, index.num_passages)
    assert mentions.indices[mentions.indptr[1] : mentions.indptr[2]].tolist() == [5, 6]  # Alien and himself
    assert index.facts is not None
    assert len(index.facts) == 3
    stated = np.split(index.facts.passages, index.facts.indptr[1:-1])
    assert [told.tolist() for told in stated] == [[0, 1], [0, 2], [3, 4]]
    rows = [json.loads(line) for line in (work / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    asked = {row["question"]: (row["topic"], row["gold"], row["hops"]) for row in rows}
    assert asked["films of the director of Alien"] == ("Alien", [0, 3], [[], [0, 3]])


def test_a_passage_mentions_as_much_as_its_text_has_room_for(
    metaqa_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metaqa, "FACTS_OF_A_TEXT", 1)
    work = tmp_path / "work"
    work.mkdir()
    metaqa_files.write_files(metaqa_folder, work)
    first = json.loads((work / "passages.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert first["text"] == "Alien. Alien directed by Ridley Scott"
    facts = (work / "facts.tsv").read_text(encoding="utf-8").splitlines()[1:]
    assert [line for line in facts if line.startswith("5\thas genre")] == ["5\thas genre\t7\t2"]
    edges = (work / "edges.tsv").read_text(encoding="utf-8").splitlines()
    mentioned = [line for line in edges if line.startswith("0\t")]
    assert mentioned == ["0\t5\tcontext\t1.0", "0\t6\tcontext\t1.0"]


def drawn_lists(seed: int, good: float) -> tuned.Lists:
    """Return lists: the walk's is correct for a share of the questions, the others for a third."""
    draw, ids = np.random.default_rng(seed), [f"{seed}, q{i}" for i in range(60)]

    def leg(share: float) -> hf.Hits:
        found = np.argsort(draw.random((60, 200)), axis=1)[:, : tuned.DEPTH] + 100
        found[draw.random(60) < share, 0] = 7
        return hf.Hits(found, np.tile(np.linspace(0.9, 0.1, tuned.DEPTH), (60, 1)))

    qrels = Qrels(ids, [[7]] * 60, last_hop=[[7]] * 60)
    return tuned.Lists(qrels, leg(0.33), leg(0.33), {damping: leg(good) for damping in tuned.DAMPINGS})


def test_systems_over_lists_are_the_recipes_fusions() -> None:
    lists, rows = drawn_lists(1, 0.8), np.arange(0, 60, 3)
    dense, graph, words = (tuned.part(hits, rows) for hits in (lists.dense, lists.graph[0.5], lists.words))
    options = {"alpha": 0.4, "dense_k": 10, "graph_k": 30, "damping": 0.5, "temperature": 0.2, "ties": "mean"}
    config = hf.recipes.PhaseGraphConfig(alpha=0.4, temperature=0.2, ties="mean")
    expected = hf.fuse([dense.head(10), graph.head(30)], k=10, **config.fusing(("dense", "graph")))
    assert tuned.phase_graph(lists)(options, rows).ids.tolist() == expected.ids.tolist()
    given = {"words": 0.2, "dense": 0.5, "rank_constant": 5, "graph_k": 30, "damping": 0.5}
    hybrid = hf.recipes.HybridRRFConfig(weights=(0.2, 0.5, 1), rank_constant=5)
    legs = ("lexical", "dense", "graph")
    expected = hf.fuse([words, dense, graph.head(30)], k=10, **hybrid.fusing(legs, np.zeros(rows.size)))
    assert tuned.hybrid_rrf(lists)(given, rows).ids.tolist() == expected.ids.tolist()
    alone = tuned.hybrid_rrf(lists)({"leg": "words"}, rows)
    assert alone.ids.tolist() == words.head(10).ids.tolist()


def test_choices_are_recorded_with_the_baseline_alone() -> None:
    sets = {}
    for name, seed, good in (("hotpotqa", 1, 0.5), ("musique-train", 2, 0.9)):
        lists = drawn_lists(seed, good)
        sets[name] = JudgedSet(tuned.hybrid_rrf(lists), lists.qrels)
    trials = [*tuned.legs_alone("dense"), *tuned.grid(words=(0.1, 1), dense=(0.1,), rank_constant=(5,), graph_k=(30,))]
    trials = [trial if "leg" in trial else trial | {"damping": 0.5} for trial in trials]
    base = tuned.BASELINES["hybrid-rrf"]
    found = sweep_sets(sets, trials, baseline=base, metric=tuned.CHOSEN_BY)
    kept = json.loads(json.dumps(tuned.recorded(found)))
    assert kept["num_trials"] == 1 + len(trials)
    assert [trial["options"] for trial in kept["trials"]] == [base]
    for name, one in kept["test"].items():
        assert one["estimates"]["selected"]["mean"] == found.test[name].estimates["selected"].mean
