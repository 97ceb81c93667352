"""Every figure that a page publishes is that of its result file, and no two pages state it differently."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))
import figures  # noqa: E402

PAGES = {page: (ROOT / page).read_text(encoding="utf-8") for page in figures.pages(ROOT)}


def test_figures_are_those_of_their_files() -> None:
    stated = [figure for page, text in PAGES.items() for figure in figures.figures_of(page, text)]
    assert [fault for figure in stated if (fault := figures.wrong(figure))] == []
    assert [fault for page, text in PAGES.items() for fault in figures.comments_without_figure(page, text)] == []
    assert [fault for page, text in PAGES.items() for fault in figures.named_without_figure(page, text)] == []
    assert figures.from_two_files(stated) == []


@pytest.mark.parametrize("page", figures.STRICT)
def test_every_figure_of_the_first_pages_has_a_source(page: str) -> None:
    assert figures.without_source(page, PAGES[page]) == [], "say where each stands, as CONTRIBUTING.md shows"


def test_no_two_pages_say_the_same_with_other_figures() -> None:
    assert figures.contradictions(PAGES) == []


# ---- The checks find planted errors -----------------------------------------------------------------------


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    rows = [
        {"case": "walk", "peer": "igraph", "sizes": {"batch": 1}, "time": {"median": 0.0267}},
        {"case": "walk", "peer": "igraph", "sizes": {"batch": 64}, "time": {"median": 1.533}},
    ]
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    (folder / "means.json").write_text('{"set": {"a/b": {"recall@5": 0.936}}}', encoding="utf-8")
    (folder / "table.csv").write_text("# two cores\ncalls,ms\n1 question,84.04\n", encoding="utf-8")
    return tmp_path


RIGHT = [
    "1.53 s<!-- from results/rows.jsonl case=walk batch=64 time/median -->",
    "**1,533 ms**<!-- from results/rows.jsonl\ncase=walk batch=64 time/median *1000 -->",
    "| 93.6 <!-- from results/means.json set/a/b/recall@5 *100 --> |",
    "84.0 ms <!-- from results/table.csv 'calls=1 question' ms -->",
]
WRONG = [
    ("1.54 s<!-- from results/rows.jsonl case=walk batch=64 time/median -->", "1.54 is 1.533"),
    ("1,532 ms<!-- from results/rows.jsonl case=walk batch=64 time/median *1000 -->", "1,532 is 1533"),
    ("93.60<!-- from results/means.json set/a/b/recall@5 -->", "93.60 is 0.936"),
    ("-84.0 ms<!-- from results/table.csv 'calls=1 question' ms -->", "-84.0 is 84.04"),
    ("1.53 s<!-- from results/rows.jsonl case=walk time/median -->", "2 rows"),
    ("1.53 s<!-- from results/rows.jsonl case=gone time/median -->", "0 rows"),
    ("1.53 s<!-- from results/rows.jsonl case=walk batch=64 time/mean -->", "mean"),
    ("1.53 s<!-- from results/rows.jsonl case=walk batch=64 peer -->", "igraph"),
    ("1.53 s<!-- from results/gone.jsonl case=walk batch=64 time/median -->", "gone.jsonl"),
]


@pytest.mark.parametrize("text", RIGHT)
def test_a_figure_of_its_file_passes(text: str, results: Path) -> None:
    (figure,) = figures.figures_of("page.md", text)
    assert figures.wrong(figure, results) is None
    assert figures.comments_without_figure("page.md", text) == []
    assert figures.without_source("page.md", text) == []


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_another_figure_is_found(text: str, says: str, results: Path) -> None:
    (figure,) = figures.figures_of("page.md", text)
    fault = figures.wrong(figure, results)
    assert fault is not None
    assert says in fault
    assert fault.startswith("page.md:1: ")


@pytest.mark.parametrize("source", ["results/rows.jsonl", "results/rows.jsonl case=walk", "means.json a b"])
def test_a_source_without_one_path_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="path"):
        figures.figures_of("page.md", f"1.53 s<!-- from {source} -->")


def test_a_source_behind_no_number_is_found() -> None:
    text = "fast<!-- from results/rows.jsonl case=walk batch=64 time/median -->"
    assert figures.comments_without_figure("page.md", text) == ["page.md: a source stands behind no number"]


def test_a_result_file_without_a_figure_is_found() -> None:
    text = "The rows are in `bench/results/rows.jsonl`."
    assert figures.named_without_figure("page.md", text) == ["page.md has no figure from bench/results/rows.jsonl"]
    marked = f"{text} 1 s<!-- from bench/results/rows.jsonl case=walk time/median -->"
    assert figures.named_without_figure("page.md", marked) == []
    assert figures.named_without_figure("page.md", f"This page is written by `python -m bench`. {text}") == []


@pytest.mark.parametrize("figure", ["19.4 ms", "79×", "3 points", "93.6", "210 MB", "6,694", "12 minutes", "40 %"])
def test_a_figure_without_a_source_is_found(figure: str) -> None:
    assert figures.without_source("page.md", f"One\nof {figure}, here.") == [f"page.md:2: {figure}"]


def test_code_links_releases_sizes_and_lists_need_no_source() -> None:
    text = (
        "Python 3.11 and GCC 12+, `1.5 s`, [a](b-1.5.md) of 200 × 384\n```\n19.4 ms\n```\n"
        "<!-- speed: python docs/tables.py -->\n19.4 ms\n<!-- end of speed -->\n"
    )
    assert figures.without_source("page.md", text) == []


def test_one_measure_of_two_files_is_found() -> None:
    stated = [
        *figures.figures_of("one.md", "1 s<!-- from results/a.jsonl case=walk batch=64 time/median -->"),
        *figures.figures_of("two.md", "2 s<!-- from results/b.jsonl batch=64 case=walk time/median -->"),
    ]
    (fault,) = figures.from_two_files(stated)
    assert "one.md" in fault
    assert "two.md" in fault
    assert figures.from_two_files(stated[:1]) == []


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (
            "A search of 32 questions over the whole graph takes 16.5 ms on two cores.",
            "A search of 32 questions\nover the whole graph takes 20.4 ms on two cores.",
        ),
        (
            "| system | time of one batch |\n|---|---|\n| walk over the graph | 4.1 ms |",
            "| system | time of one batch |\n|---|---|\n| walk over the graph | 4.2 ms |",
        ),
    ],
)
def test_the_same_words_with_other_figures_are_found(one: str, two: str) -> None:
    (fault,) = figures.contradictions({"one.md": one, "two.md": two})
    assert "one.md" in fault
    assert "two.md" in fault
    assert figures.contradictions({"one.md": one, "two.md": one}) == []
    assert figures.contradictions({"one.md": one, "two.md": two.replace("graph", "index")}) == []
