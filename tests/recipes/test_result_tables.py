"""A result prints as a table, also in a notebook; what an index holds is escaped."""

from __future__ import annotations

from html.parser import HTMLParser

import hopfuse as hf
import pytest
from hopfuse.errors import InputError
from hopfuse.recipes import SearchResult
from recipes.worlds import random_questions, random_world

ROWS = [
    {"id": "a", "title": "<b>Thames</b>", "text": "A river."},
    {"id": "b\x1b[31m", "text": "The sea,\nwide\u202e and " + "long " * 200},
]
INDEX = hf.Index.build(passages=ROWS)


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def result(*rows: list[tuple[int, float]]) -> SearchResult:
    return SearchResult(hf.Hits.from_lists(rows), INDEX)


def test_a_table_has_rank_score_id_and_title_or_text() -> None:
    found = result([(0, 0.75), (1, 0.5)], [])
    lines = str(found).split("\n")
    assert lines[0] == "question 0"
    assert lines[1].split() == ["rank", "score", "id", "title", "or", "text"]
    assert lines[2].split() == ["1", "0.75000", "a", "<b>Thames</b>"]
    assert lines[3].split()[:6] == ["2", "0.50000", r"b\x1b[31m", "The", "sea,", "wide\\u202e"]
    assert lines[3].endswith("…")
    assert len(lines[3]) < 120
    assert lines[4:] == ["question 1: nothing was found"]
    assert repr(found) == "SearchResult(questions=2, k=2, valid=2)"
    assert str(result()) == ""


def test_a_notebook_gets_escaped_html() -> None:
    page = Tags(result([(0, 0.75), (1, 0.5)], [])._repr_html_())
    assert set(page.tags) == {"table", "caption", "tr", "th", "td"}
    assert "<b>Thames</b>" in page.texts
    assert "nothing was found" in page.texts


def test_notes_stand_below_the_hits() -> None:
    note = InputError("unknown", "entities[0]", "{field} is {given!r}", given="<Atlantis>")
    found = SearchResult(hf.Hits.from_lists([[(0, 0.75)], []]), INDEX, notes=[[note], [note]])
    assert str(found).split("\n")[3] == "      note: entities[0] is '<Atlantis>'"
    assert str(found).split("\n")[4:] == ["question 1: nothing was found", "      note: entities[0] is '<Atlantis>'"]
    page = Tags(found._repr_html_())
    assert page.texts.count("note: entities[0] is '<Atlantis>'") == 2


def test_long_results_are_cut_and_say_so() -> None:
    index = hf.Index.from_texts([f"text {n}" for n in range(12)])
    found = SearchResult(hf.Hits.from_lists([[(n, 1.0) for n in range(12)]] * 11), index)
    lines = str(found).split("\n")
    assert lines[-1] == "… 1 more question"
    assert lines.count("      … 2 more hits") == 10
    assert found._repr_html_().count("… 2 more hits") == 10


@pytest.mark.parametrize("recipe", [hf.recipes.GuidedWalk, hf.recipes.PhaseGraph, hf.recipes.HybridRRF])
def test_results_of_recipes_print_so(recipe: type) -> None:
    found = recipe(random_world(4).index()).search(**random_questions(5), k=3)
    assert repr(found).startswith(f"{type(found).__name__}(questions=5, k=3, valid=")
    first = found[0][0]
    assert f"{first.score:#.5g}  {first.id}  {first.title}".split() == str(found).split("\n")[2].split()[1:]
