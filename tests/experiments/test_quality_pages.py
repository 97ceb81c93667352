"""The pages about quality: they are what the recorded results give, and refuse what the results do not support."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from experiments.pages.about import SETS
from experiments.pages.advice import recall
from experiments.pages.files import files, recorded, write
from experiments.pages.flow import WIDTH, flowed
from experiments.pages.numbers import ClaimError, Comparisons, csv_of, percent, points
from experiments.pages.sets import page
from experiments.pages.tables import tables

DOCS = Path(__file__).parents[2] / "docs"
LARGEST = 25_000  # bytes that a reader gets through


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return recorded()


def test_the_committed_pages_are_those_of_the_committed_results(results: dict[str, Any]) -> None:
    stale = [
        str(path)
        for path, text in files(results).items()
        if not (DOCS / path).exists() or (DOCS / path).read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run: python -m experiments.pages"


def test_no_page_or_table_is_left_over(results: dict[str, Any]) -> None:
    made = {DOCS / path for path in files(results)}
    assert [path for folder in ("quality", "results/quality") for path in (DOCS / folder).iterdir()] != []
    assert {path for folder in ("quality", "results/quality") for path in (DOCS / folder).iterdir()} <= made


def test_every_page_is_short_and_its_prose_fits_the_lines(results: dict[str, Any]) -> None:
    for path, text in files(results).items():
        if path.suffix == ".md":
            assert len(text.encode()) < LARGEST, path
            assert [line for line in text.splitlines() if len(line) > WIDTH and not line.startswith("|")] == [], path


def test_writing_twice_changes_nothing(tmp_path: Path) -> None:
    assert len(write(tmp_path)) > len(SETS)
    assert write(tmp_path) == []
    (tmp_path / "quality.md").write_text("stale", encoding="utf-8")
    assert write(tmp_path) == [Path("quality.md")]


def test_every_set_has_a_page_with_the_recorded_figures(results: dict[str, Any]) -> None:
    measured = results["side-by-side"]
    assert set(measured) <= {name for one in SETS for name in one.folders}
    for one in SETS:
        text = page(one, results)
        for name in (name for name in one.folders if name in measured):
            for found in measured[name].values():
                for run in ("dense", "guided-walk+words"):
                    assert percent(found["means"][run]["recall@5"]) in text, (name, run)


def test_the_table_of_recall_has_a_row_for_each_set_and_the_best_in_bold() -> None:
    def graph(dense: float, plain: float, default: float) -> dict[str, Any]:
        values = {"dense": dense, "plain-hybrid": plain, "guided-walk+words": default}
        return {"questions": 9, "means": {run: {"recall@5": value} for run, value in values.items()}}

    made = {"hotpotqa": {"words": graph(0.5, 0.6, 0.55), "folder": graph(0.5, 0.6, 0.75)}}
    (row,) = recall(made).splitlines()[2:]
    assert row == "| [hotpotqa](quality/hotpotqa.md) | several hops | 9 | 50.0 | 60.0 | **75.0** | – | 55.0 |"


def test_tables_have_a_cell_for_every_column(results: dict[str, Any]) -> None:
    made = tables(results)
    for name, text in made.items():
        head, *rows = csv.reader(StringIO(text))
        assert rows, name
        assert {len(row) for row in rows} == {len(head)}, name
        assert all(head), name
    pairs = list(csv.DictReader(StringIO(made["fusion-pairs.csv"])))
    studies = [*results["fusion"]["questions"], results["reranking"]["question"]]
    assert len(pairs) == sum(len(study["comparisons"]) for study in studies)


def row(first: str, p: float, difference: float, **more: Any) -> dict[str, Any]:
    base = {"first": first, "second": "z", "folder": "f", "metric": "ndcg@10", "detects": 0.031}
    return {**base, "difference": difference, "p_holm": p, **more}


def test_a_claim_needs_a_significant_difference_of_its_sign() -> None:
    c = Comparisons([row("a", 0.01, 0.052), row("b", 0.2, 0.052), row("a", 0.04, -0.02, metric="recall@5")])
    assert c.better("a", "z", "f") == "5.2"
    assert c.worse("a", "z", "f", "recall@5") == "2.0"
    for first, claim in (("b", c.better), ("a", c.worse)):
        with pytest.raises(ClaimError, match="differ"):
            claim(first, "z", "f")


def test_undecided_names_what_would_have_been_seen_and_refuses_what_was() -> None:
    c = Comparisons([row("a", 0.3, 0.0), row("b", 1.0, 0.0, detects=0.05), row("c", 0.01, 0.1, folder="g")])
    assert c.undecided(folders=["f"]) == "5.0 on f"
    assert c.undecided(["a"]) == "3.1 on f"
    for asked in ({}, {"firsts": ["c"]}, {"firsts": ["d"]}):
        with pytest.raises(ClaimError):
            c.undecided(**asked)


def test_a_sentence_that_results_no_longer_support_stops_the_page(results: dict[str, Any]) -> None:
    studies = [
        {**one, "comparisons": [{**c, "p_holm": 1.0} for c in one["comparisons"]]}
        for one in results["fusion"]["questions"]
    ]
    with pytest.raises(ClaimError):
        files({**results, "fusion": {**results["fusion"], "questions": studies}})


def test_numbers_are_shown_with_one_digit() -> None:
    assert (percent(0.80556), percent(None), percent(float("nan"))) == ("80.6", "", "")
    assert (points(0.054), points(-0.0004), points(-0.12)) == ("+5.4", "+0.0", "-12.0")
    assert csv_of(["a"], [["x, y"]]) == 'a\n"x, y"\n'


def test_paragraphs_flow_and_tables_and_code_stay() -> None:
    words = "word " * 60
    text = f"# A\n\n{words}\n{words}\n\n- {words}\n- b\n\n| {words} |\n\n```sh\na  b\n\n- c\n```\n"
    made = flowed(text)
    assert f"| {words} |\n" in made
    assert made.endswith("\n\n```sh\na  b\n\n- c\n```\n")
    lines = [line for line in made.splitlines() if not line.startswith("|")]
    assert max(map(len, lines)) <= WIDTH
    assert made.split() == text.split()
    assert flowed(made) == made
