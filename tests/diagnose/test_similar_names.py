"""Entities whose names look alike."""

from __future__ import annotations

import json
from pathlib import Path

import hopfuse as hf
import pytest
from cli.cli_files import hopfuse
from hopfuse.diagnose import look_alikes
from hypothesis import given
from hypothesis import strategies as st

PAIRS = [
    ("US", "U.S.", "name"),
    ("Straße", "STRASSE", "name"),
    ("Beyoncé", "Beyonce", "accents"),
    ("Łódź", "Lodz", "accents"),
    ("Пётр", "Петр", "accents"),
    ("St. John's", "St Johns", "signs"),
    ("Jean-Luc", "JeanLuc", "signs"),
    ("Ada Lovelace", "Lovelace, Ada", "order"),
    ("electron", "electrons", "letter"),
    ("Tchaikovsky", "Tchaikowsky", "letter"),
    ("Tchaikovsky", "Chaikovsky", "letter"),
    ("1973 war", "1974 war", None),
    ("Rome", "Roma", None),
    ("London", "Paris", None),
    ("sailor", "tailors", None),
]


def of(names: list[str], aliases: dict[int | str, list[str]] | None = None, counts: int = 0) -> hf.Index:
    graph = [{"src": at, "dst": max(counts, 1) + len(names) - 1} for at in range(counts)]
    rows = [{"text": "-"}] * max(counts, 1)
    return hf.Index.build(passages=rows, entities=names, aliases=aliases or {}, graph=graph)


@pytest.mark.parametrize(("one", "other", "why"), PAIRS)
def test_names_that_look_alike_are_listed_once_by_what_they_differ_in(one: str, other: str, why: str | None) -> None:
    found = look_alikes(of([one, "Quetzalcoatl", other], counts=2))
    assert [(row.why, row.entities, row.names, row.passages) for row in found] == (
        [] if why is None else [(why, (2, 0), (other, one), (2, 0))]
    )


def test_aliases_count_and_words_do_not() -> None:
    found = look_alikes(of(["United States", "America", "Canada"], {0: ["USA", "US"], 1: ["U.S.", "The USA"]}))
    assert [(row.why, row.entities) for row in found] == [("name", (0, 1))]
    rows = [{"text": "the river rivers"}]
    words = hf.Index.build(passages=rows, reader=hf.extract.WordReader(language=None))
    assert {"river", "rivers"} <= set(words.entity_names)
    assert look_alikes(words) == []


def distance(a: str, b: str) -> int:
    """Return the edit distance."""
    row = list(range(len(b) + 1))
    for i, one in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (one != other))
    return row[-1]


@given(st.lists(st.text("ab", min_size=4, max_size=9), min_size=2, max_size=8, unique=True))
def test_pairs_that_differ_in_a_letter_are_those_of_edit_distance_one(names: list[str]) -> None:
    index = of(names)
    found = {
        (a, b)
        for row in look_alikes(index)
        if row.why == "letter"
        for a in row.entities
        for b in row.entities
        if a < b and distance(names[a], names[b]) == 1
    }
    long = [at for at, name in enumerate(names) if len(name) >= 6]
    assert found == {(a, b) for a in long for b in long if a < b and distance(names[a], names[b]) == 1}
    groups = [row.entities for row in look_alikes(index)]
    assert all(distance(names[a], names[b]) <= 1 for group in groups for a in group for b in group)


def test_the_command_lists_names_alone(tmp_path: Path) -> None:
    of(["St. John's", "[b]", "St Johns"], counts=1).save(tmp_path / "index")
    text = hopfuse("diagnose", tmp_path / "index", "--names").stdout
    assert "St Johns (1), St. John's (0)" in text
    assert "Verdict" not in text
    found = json.loads(hopfuse("diagnose", tmp_path / "index", "--names", "--json").stdout)
    assert [one["names"] for one in found["look_alikes"]] == [["St Johns", "St. John's"]]
    of(["Rome"]).save(tmp_path / "other")
    assert json.loads(hopfuse("diagnose", tmp_path / "other", "--names", "--json").stdout) == {"look_alikes": []}


def test_many_entities_of_one_name_are_one_group():
    """No pair of them is looked at, of which there are millions."""
    names = ["Unknown"] * 5000
    index = hf.Index.build(passages=[{"text": "-"}], entities=names)
    (found,) = look_alikes(index)
    assert (found.why, len(found.names)) == ("name", 5000)
