"""Passages that are valid from one time to another: ``at=`` searches those that are valid."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from index.live_model import differences
from refusals import refused

DAYS = ["2024-01-01T00:00:00Z", "2024-06-01T00:00:00Z", "2024-12-01T00:00:00Z"]
FORMS: dict[str, list[Any]] = {
    "timestamp": [datetime.fromisoformat(day) for day in DAYS],
    "int64": [10, 20, 30],
    "float64": [0.5, 1.5, 2.5],
    "string": [day[:10] for day in DAYS],
}
#: From and to of passages, as places among three times; None is an open end.
SPANS = [(None, None), (None, 1), (1, None), (0, 2), (1, 1), (2, None)]
VALID = [[0, 1, 3], [0, 2, 3], [0, 2, 5]]


def rows(times: list[Any]) -> list[dict[str, Any]]:
    names = ("valid_from", "valid_to")
    spans = [{name: times[at] for name, at in zip(names, span, strict=True) if at is not None} for span in SPANS]
    return [{"id": f"p{at}", "text": f"text {at}", "metadata": span} for at, span in enumerate(spans)]


@pytest.mark.parametrize("kind", FORMS)
def test_a_passage_is_valid_from_its_first_time_until_before_its_last(kind: str) -> None:
    index = hf.Index.build(passages=rows(FORMS[kind]), metadata_types={"valid_from": kind, "valid_to": kind})
    for at, valid in zip(FORMS[kind], VALID, strict=True):
        assert np.flatnonzero(index.mask(index.valid_at(at))).tolist() == valid
    if kind == "timestamp":
        before = FORMS[kind][0] - timedelta(microseconds=1)
        assert np.flatnonzero(index.mask(index.valid_at(before))).tolist() == [0, 1]
        for form in (DAYS[1], np.datetime64("2024-06-01"), FORMS[kind][1].astimezone()):
            assert np.flatnonzero(index.mask(index.valid_at(form))).tolist() == VALID[1]


@pytest.mark.parametrize("kind", FORMS)
def test_a_passage_that_begins_after_its_end_is_refused(tmp_path: Any, kind: str) -> None:
    """At every door for metadata; nothing is changed."""
    first, second, _ = FORMS[kind]
    good = {"id": "a", "text": "one", "metadata": {"valid_from": first, "valid_to": second}}
    bad = {"id": "b", "text": "two", "metadata": {"valid_from": second, "valid_to": first}}
    types = {"valid_from": kind, "valid_to": kind}
    as_given = ("range", "metadata.valid_from")
    with refused(InputError, *as_given, place="passages[1]") as caught:
        hf.Index.build(passages=[good, bad], metadata_types=types)
    assert DAYS[1][:10] in caught.value.values["given"] or kind in ("int64", "float64")
    index = hf.Index.build(passages=[good], metadata_types=types)
    with refused(InputError, *as_given, place="metadata[0]"):
        index.with_metadata([bad | {"id": "a"}])
    index.save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        for only in (None, hf.where(valid_from__exists=True)):
            with refused(InputError, *as_given, place="passages[0]"), live.change(only=only) as change:
                change.add_passages([bad, {**bad, "id": "c"}])
        assert live.refresh().num_passages == 1


def test_ends_of_different_types_are_not_compared_unless_they_are_numbers() -> None:
    rows = [{"text": "one", "metadata": {"valid_from": 5, "valid_to": "3"}}]
    assert hf.Index.build(passages=rows).num_passages == 1
    with refused(InputError, "range", "metadata.valid_from", given="5"):
        hf.Index.build(passages=[{"text": "one", "metadata": {"valid_from": 5, "valid_to": 3.5}}])


@pytest.mark.parametrize("kind", [*FORMS, "bool", "strings"])
def test_what_a_value_must_be_is_said_without_types_of_python(kind: str) -> None:
    """Errors are read by users of the command line, of HTTP and of tools, too."""
    index = hf.Index.build([], metadata_types={"n": kind})
    given = 1 if kind != "int64" else "x"
    with refused(InputError, "type", "n", given=given if kind != "float64" else "x") as caught:
        value = "x" if kind == "float64" else given
        index.mask(hf.where(n__any=[value]) if kind == "strings" else hf.where(n=value))
    said = str(caught.value)
    assert not any(word in said for word in ("datetime", "tzinfo", "np.", "True", "str ", "**"))


def test_one_column_is_enough_and_the_time_is_of_its_type() -> None:
    index = hf.Index.build(passages=[{"text": "one", "metadata": {"valid_to": 5}}, {"text": "two"}])
    assert index.mask(index.valid_at(4)).tolist() == [True, True]
    assert index.mask(index.valid_at(5)).tolist() == [False, True]
    for at in ("2024-01-01T00:00:00Z", 1.5, True, datetime.now(UTC)):
        with refused(InputError, "type", "at", given=at):
            index.valid_at(at)
    timed = hf.Index.build(passages=rows(FORMS["timestamp"]))
    for at in ("2024-01-01", datetime(2024, 1, 1), 3):
        with refused(InputError, "type", "at", given=at):
            timed.valid_at(at)
    with refused(InputError, "missing", "at"):
        hf.Index.build(passages=[{"text": "one", "metadata": {"year": 5}}]).valid_at(4)
    with refused(InputError, "unsupported", "at"):
        hf.Index.build(passages=[{"text": "one", "metadata": {"valid_to": True}}]).valid_at(True)


def moved() -> hf.Index:
    """Ada lived in Rome until 2020, and in Oslo from then on; Bob always lived in Rome."""
    passages = [
        {"id": "rome", "text": "Ada lives in Rome.", "metadata": {"valid_from": 2010, "valid_to": 2020}},
        {"id": "oslo", "text": "Ada lives in Oslo.", "metadata": {"valid_from": 2020}},
        {"id": "bob", "text": "Bob lives in Rome.", "metadata": {"by": "bob"}},
        {"id": "again", "text": "Ada, Rome.", "metadata": {"valid_to": 2015, "by": "bob"}},
    ]
    entities = ["Ada", "Rome", "Oslo", "Bob"]
    graph = [{"src": at, "dst": 4 + name} for at, own in enumerate(((0, 1), (0, 2), (3, 1), (0, 1))) for name in own]
    facts = [("Ada", "Rome", 0), ("Ada", "Oslo", 1), ("Bob", "Rome", 2), ("Ada", "Rome", 3)]
    listed = [{"head": head, "relation": "lives in", "tail": tail, "passage": by} for head, tail, by in facts]
    vectors = np.eye(4, dtype=np.float32) + 0.1
    return hf.Index.build(passages=passages, vectors=vectors, entities=entities, graph=graph, facts=listed)


@pytest.mark.parametrize(
    ("at", "left", "facts"), [(2012, [0, 2, 3], 2), (2019, [0, 2], 2), (2020, [1, 2], 2), (2000, [2, 3], 2)]
)
def test_a_search_at_a_time_is_one_of_the_index_of_that_time(at: int, left: list[int], facts: int) -> None:
    index = moved()
    part = index.part(index.mask(index.valid_at(at))).index
    assert list(part.passage_ids) == [index.passage_ids[row] for row in left]
    for recipe in ("guided-walk", "hybrid-rrf", "phase-graph"):
        asked: dict[str, Any] = {"vectors": [index.vectors[0]], "entities": [["Ada"]], "k": 4}
        options: dict[str, Any] = {"encoder": "none", "names": "none", "words": "none"}
        found = hf.Retriever(index, recipe, **options).search(**asked, at=at)
        expected = hf.Retriever(part, recipe, **options).search(**asked)
        assert [(hit.id, hit.score) for hit in found[0]] == [(hit.id, hit.score) for hit in expected[0]]
        assert len(found[0]) > 0


def test_a_fact_holds_while_a_valid_passage_states_it() -> None:
    index = moved()
    told = {}
    for at in (2000, 2012, 2019, 2021):
        part = index.part(index.mask(index.valid_at(at))).index
        told[at] = sorted(part.facts.texts(part.entity_names))
    assert told == {
        2000: ["Ada lives in Rome", "Bob lives in Rome"],
        2012: ["Ada lives in Rome", "Bob lives in Rome"],
        2019: ["Ada lives in Rome", "Bob lives in Rome"],
        2021: ["Ada lives in Oslo", "Bob lives in Rome"],
    }


@pytest.mark.parametrize(
    "allow",
    [
        None,
        hf.where(by="bob"),
        ["rome", "again"],
        np.array([True, False, False, True]),
        [hf.where(by="bob"), None],
        [["rome", "oslo"], ["bob"]],
        np.array([[True] * 4, [False, True, True, True]]),
    ],
    ids=["none", "where", "ids", "mask", "filters", "lists", "masks"],
)
@pytest.mark.parametrize("scope", ["isolated", "results"])
def test_the_time_is_added_to_every_form_of_filter(allow: Any, scope: Any) -> None:
    index = moved()
    retriever = hf.Retriever(index, "plain-hybrid", encoder="none", words="none")
    asked: dict[str, Any] = {"vectors": index.vectors[:2], "k": 4, "allow_scope": scope}
    found = retriever.search(**asked, allow=allow, at=2016)
    valid = {"rome", "bob"}
    seen = retriever.search(**asked, allow=allow)
    for own, before in zip(found, seen, strict=True):
        assert [hit.id for hit in own] == [hit.id for hit in before if hit.id in valid]


def test_an_expired_passage_stays_and_its_successor_holds(tmp_path: Any) -> None:
    """Soft deletion: the passage is replaced by one with an end."""
    past, now = FORMS["timestamp"][0], FORMS["timestamp"][1]
    row = {"id": "home", "text": "Ada lives in Rome.", "metadata": {"valid_from": past}}
    hf.Index.build(passages=[row], metadata_types={"valid_to": "timestamp"}).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        with live.change() as change:
            change.replace_passages([{**row, "metadata": {"valid_from": past, "valid_to": now}}])
            change.add_passages([{"id": "home2", "text": "Ada lives in Oslo.", "metadata": {"valid_from": now}}])
        index = live.refresh()
        ids = {
            at: [index.passage_ids[row] for row in np.flatnonzero(index.mask(index.valid_at(at)))] for at in (past, now)
        }
        assert ids == {past: ["home"], now: ["home2"]}
        with live.change() as change:
            change.delete_passages(where=~index.valid_at(now))
        assert change.deleted.passages == 1
        alone = {"id": "home2", "text": "Ada lives in Oslo.", "metadata": {"valid_from": now}}
        types = {"valid_to": "timestamp", "valid_from": "timestamp"}
        assert differences(live.refresh(), hf.Index.build(passages=[alone], metadata_types=types)) == []
