"""``hopfuse sweep --sets``: a recipe's options, chosen on two small indexes; and the errors before any work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cli.cli_files import about, hopfuse, write_jsonl
from hopfuse.evaluate import Qrels, parse_metric, split_rows
from recipes.worlds import random_world

QUERIES = 40
SEEDS = {"news": 3, "films": 4}


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of two sets, each with an index, questions about its entities, and their vectors."""
    folder = tmp_path_factory.mktemp("sets")
    for name, seed in SEEDS.items():
        draw, world = np.random.default_rng(seed), random_world(seed)
        world.index().save(folder / f"{name}-index")
        gold = [sorted(draw.choice(world.passages, 2, replace=False).tolist()) for _ in range(QUERIES)]
        rows = [
            {"id": f"{name} {q}", "question": f"text {row[0]}", "gold": row, "entities": [int(draw.integers(16))]}
            for q, row in enumerate(gold)
        ]
        write_jsonl(folder / f"{name}.jsonl", rows)
        np.save(folder / f"{name}.npy", draw.standard_normal((QUERIES, 6)).astype(np.float32))
    tables = [f'[{name}]\nindex = "{name}-index"\nqueries = "{name}.jsonl"\nvectors = "{name}.npy"' for name in SEEDS]
    (folder / "sets.toml").write_text("\n".join(tables), encoding="utf-8")
    return folder / "sets.toml"


def by_hand(sets: Path, name: str, half: str, **options: Any) -> float:
    """Return the recipe's mean on one half of a set."""
    rows = [json.loads(line) for line in sets.with_name(f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    qrels = Qrels([row["id"] for row in rows], [row["gold"] for row in rows])
    at = split_rows(qrels, half)
    recipe = hf.recipes.PhaseGraph(hf.Index.open(sets.with_name(f"{name}-index")), **options)
    vectors = np.load(sets.with_name(f"{name}.npy"))[at]
    hits = recipe.search(vectors=vectors, entities=[rows[row]["entities"] for row in at.tolist()], k=24).hits
    return float(np.mean(parse_metric("recall@5").per_query(hits, qrels.take(at))))


def test_options_are_chosen_for_all_sets(sets: Path, tmp_path: Path) -> None:
    options = ("--option", "graph_k=2,24", "--option", "alpha=0.2,0.9", "--metric", "recall@5")
    output = hopfuse("sweep", "--sets", sets, *options, "--recipe", "phase-graph", "--out", tmp_path / "s.json").stdout
    found = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    tried = [trial["options"] for trial in found["trials"]]
    assert tried == [{}, *({"graph_k": g, "alpha": a} for g in (2, 24) for a in (0.2, 0.9))]
    for trial in found["trials"]:
        for name in SEEDS:
            assert trial["means"][name] == pytest.approx(by_hand(sets, name, "tune", **trial["options"]))
    least = min(found["trials"], key=lambda trial: (trial["worst_loss"], trial["mean_loss"]))
    assert found["selected"] == least
    for name in SEEDS:
        estimates = found["test"][name]["estimates"]
        assert estimates["baseline"]["mean"] == pytest.approx(by_hand(sets, name, "test"))
        assert estimates["selected"]["mean"] == pytest.approx(by_hand(sets, name, "test", **least["options"]))
        assert found["test"][name]["against_best"]["low"] is not None
    assert "of 5 trials" in output
    assert "…" not in output
    assert f"news, test half: {100 * found['test']['news']['estimates']['selected']['mean']:.1f}" in output


def test_values_with_commas_are_one_value_each(sets: Path, tmp_path: Path) -> None:
    weights = ("--option", "weights=0,1,1", "--option", "weights=0,1,0.2", "--words", "none")
    hopfuse("sweep", "--sets", sets, "--recipe", "hybrid-rrf", *weights, "--out", tmp_path / "s.json")
    found = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert [trial["options"] for trial in found["trials"]] == [{}, {"weights": "0,1,1"}, {"weights": "0,1,0.2"}]


def test_words_and_second_seeds_are_chosen_for_all_sets(sets: Path, tmp_path: Path) -> None:
    options = ("word_boost=0,3", "word_k=1,24", "second_mass=0.3,0.9")
    given = [part for option in options for part in ("--option", option)]
    words = ("--recipe", "guided-walk", "--words", "fts5")
    hopfuse("sweep", "--sets", sets, *words, *given, "--out", tmp_path / "s.json")
    found = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    boosts = [{"word_boost": 0}, {"word_boost": 3, "word_k": 1}, {"word_boost": 3, "word_k": 24}]
    tried = [trial["options"] for trial in found["trials"]]
    assert tried == [{}, *({**boost, "second_mass": mass} for boost in boosts for mass in (0.3, 0.9))]
    assert len({tuple(trial["means"].values()) for trial in found["trials"][1:]}) > 2


def test_an_option_that_no_combination_reads_is_refused(sets: Path, refused_here: Any) -> None:
    options = ("--option", "word_boost=0", "--option", "word_k=5,6", "--words", "fts5")
    message = about("unused", "word_k", recipe="guided-walk")
    assert refused_here("sweep", "--sets", sets, "--recipe", "guided-walk", *options) == message


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), about("missing", "option")),
        (("--option", "beta=1"), about("unknown", "beta", recipe="phase-graph")),
        (("--option", "alpha=0.5,2"), about("range", "alpha")),
        (("--option", "alpha=0.5", "--alpha", "0.5"), about("conflict", "alpha", other="sets")),
        (("--option", "alpha=0.5", "--qrels", "q.jsonl"), about("conflict", "qrels", other="sets")),
        (("--option", "alpha=0.5", "--metric", "recal@5"), about("choice", "metric", given="recal@5")),
        (("--option", "alpha=0.5", "--html", "page.html"), about("conflict", "html", other="sets")),
    ],
)
def test_refusals(sets: Path, refused_here: Any, more: tuple[str, ...], message: str) -> None:
    assert refused_here("sweep", "--sets", sets, "--recipe", "phase-graph", *more) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[news", about("syntax", "sets")),
        ("", about("empty", "sets")),
        ('news = "x"', about("type", "sets")),
        ('[news]\nindex = "i"', about("type", "sets")),
        ('[news]\nindex = "i"\nqueries = "q"\nname = "n"', about("type", "sets")),
        ('[news]\nindex = "i"\nqueries = 3', about("type", "sets")),
    ],
)
def test_files_of_another_form_are_refused(refused_here: Any, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "sets.toml").write_text(text, encoding="utf-8")
    assert refused_here("sweep", "--sets", tmp_path / "sets.toml", "--option", "alpha=0.5") == message


def test_nothing_is_written_over_what_is_read(sets: Path, refused_here: Any) -> None:
    more = ("--option", "alpha=0.5", "--overwrite", "--out", sets)
    assert refused_here("sweep", "--sets", sets, *more) == about("conflict", "out", other="sets")


def test_options_of_the_one_kind_alone_are_refused_in_the_other(refused_here: Any) -> None:
    assert refused_here("sweep", "--recipe", "phase-graph", "--qrels", "q") == about("unused", "recipe", other="sets")
    for alone, missing in ((("--run", "a=b.jsonl"), "qrels"), (("--qrels", "q.jsonl"), "run"), ((), "qrels")):
        assert refused_here("sweep", *alone) == about("missing", missing)
