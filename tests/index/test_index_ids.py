"""Passages keep their own ids, an index what encoded it, and texts are encoded with their titles."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hopfuse import Index
from hopfuse.errors import FormatError, InputError
from hopfuse.index import EncoderInfo
from hopfuse.lexical import FTS5
from index.index_files import Forge, assert_same, forged, full_index, typed_graph, vectors
from refusals import refused


class Lengths:
    """A user's encoder, without a name: the length of a text, and 1."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode_query(self, texts: list[str]) -> np.ndarray:
        return np.array([[len(text), 1.0] for text in texts]).reshape(-1, 2)

    def encode_document(self, texts: list[str]) -> np.ndarray:
        self.seen += texts
        return self.encode_query(texts)


@pytest.mark.parametrize("ids", [["b", "a", "é"], [7, -3, 2**63 - 1], list(np.array([5, 6, 0], np.uint8))])
def test_ids_come_back_as_they_were_given(tmp_path: Path, ids: list[Any]) -> None:
    built = Index.from_texts(["one", "two", "three"], ids=ids)
    built.save(tmp_path)
    for index in (built, Index.open(tmp_path), Index.open(tmp_path, verify="full")):
        assert list(index.passage_ids) == ids
        assert {type(one) for one in index.passage_ids} == {str if isinstance(ids[0], str) else int}
        assert [index.passage_ids[-1], index.passage_ids[:2]] == [ids[2], ids[:2]]
        assert [index.row_of(one) for one in ids] == [0, 1, 2]
        rows = index.rows_of(ids[::-1])
        assert rows.dtype == np.int64
        assert rows.tolist() == [2, 1, 0]
        assert index.rows_of([]).shape == (0,)
    json.dumps(list(built.passage_ids))
    assert_same(built, Index.open(tmp_path))


def test_ids_are_row_numbers_by_default() -> None:
    assert list(Index.from_texts(["one", "two"]).passage_ids) == [0, 1]
    assert Index.from_texts([]).rows_of([]).tolist() == []


@pytest.mark.parametrize(
    ("ids", "asked", "expected"),
    [
        (["a", "b"], "c", ("unknown", "ids", {"given": "c"})),
        (["a", "b"], 0, ("type", "ids", {"given": 0})),
        ([1, 0], "1", ("type", "ids", {"given": "1"})),
        ([1, 0], True, ("type", "ids", {"given": True})),
        ([1, 0], 1.0, ("type", "ids", {"given": 1.0})),
        ([1, 0], 2, ("unknown", "ids", {"given": 2})),
        ([1, 0], [1], ("type", "ids", {"given": [1]})),
    ],
)
def test_an_unknown_id_is_named(ids: list[Any], asked: Any, expected: tuple[Any, ...]) -> None:
    index = Index.from_texts(["one", "two"], ids=ids)
    with refused(InputError, *expected):
        index.row_of(asked)
    with refused(InputError, *expected):
        index.rows_of([ids[0], asked])


def test_rows_of_takes_a_list() -> None:
    index = Index.from_texts(["one"], ids=["a"])
    for wrong in ("a", 5):
        with refused(InputError, "type", "ids", allowed="a list of passage ids"):
            index.rows_of(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("texts", "options", "expected"),
    [
        ("one", {}, ("type", "texts", {"given": "str"})),
        ({"text": "a"}, {}, ("type", "texts", {"given": "dict"})),
        (["one", 5], {}, ("type", "passages", {"given": "int", "place": "passages[1]"})),
        (["one", "two"], {"ids": ["a"]}, ("length", "ids", {"allowed": "2 texts", "count": "1 entry", "given": 1})),
        (["one"], {"ids": "a"}, ("type", "ids", {"given": "str"})),
        (
            ["one", "two"],
            {"titles": ["a", "b", "c"]},
            ("length", "titles", {"allowed": "2 texts", "count": "3 entries", "given": 3}),
        ),
        (
            ["one", "two"],
            {"ids": ["a", "a"]},
            ("duplicate", "id", {"given": "a", "other": "passages[0]", "place": "passages[1]"}),
        ),
        (
            ["one", "two"],
            {"ids": [1, 1]},
            ("duplicate", "id", {"given": 1, "other": "passages[0]", "place": "passages[1]"}),
        ),
        (
            ["one", "two"],
            {"ids": ["a", 1]},
            ("type", "id", {"first": "passages[0]", "given": 1, "other": "a", "place": "passages[1]"}),
        ),
        (["one", "two"], {"ids": [1.5, 2.5]}, ("type", "id", {"given": 1.5})),
        (["one", "two"], {"ids": [2**63, 1]}, ("type", "id")),
        (
            [{"text": "one", "id": "a"}],
            {"ids": ["b"]},
            ("conflict", "texts[0]", {"given": "a", "key": "id", "other": "ids"}),
        ),
        (["one"], {"encoder": object()}, ("type", "encoder")),
        (["one"], {"metric": "l2"}, ("choice", "metric", {"given": "l2"})),
    ],
)
def test_texts_that_make_no_index_are_refused(texts: Any, options: dict[str, Any], expected: tuple[Any, ...]) -> None:
    with refused(InputError, *expected):
        Index.from_texts(texts, **options)


def test_titles_are_encoded_with_texts_as_words_read_both() -> None:
    encoder = Lengths()
    rows = [{"title": "Thames", "text": "A river."}, {"text": "The sea.\nIt is salt."}, {"title": "Nile", "text": ""}]
    index = Index.from_texts(iter(rows), encoder=encoder)
    expected = ["Thames\nA river.", "The sea.\nIt is salt.", "Nile\n"]
    assert encoder.seen == index.texts_to_index() == expected
    assert index.vectors is not None
    assert index.vectors.tolist() == [[len(text), 1.0] for text in expected]
    leg = FTS5.build(index.texts_to_index())
    assert leg.search(["Thames", "river", "salt", "Nile"], 1).ids.tolist() == [[0], [0], [1], [2]]
    same = Index.from_texts([row["text"] for row in rows], titles=["Thames", "", "Nile"], encoder=encoder)
    assert_same(index, same)
    assert Index.from_texts([]).texts_to_index() == []


def test_the_encoder_of_an_index_is_kept(tmp_path: Path) -> None:
    index = Index.from_texts(["one", "three"], encoder=Lengths())
    assert (index.metric, index.encoder) == ("cosine", EncoderInfo("Lengths", 2, False))
    index.save(tmp_path)
    opened = Index.open(tmp_path, verify="full")
    assert_same(index, opened)
    assert opened.info()["encoder"] == {"name": "Lengths", "dim": 2, "normalize": False}
    anew = opened.with_vectors(vectors(2, 3), encoder=EncoderInfo("other", 3, True))
    assert (anew.dim, anew.encoder, opened.dim) == (3, EncoderInfo("other", 3, True), 2)
    assert opened.with_vectors(None).encoder is None
    assert opened.with_vectors(None).vectors is None
    assert Index.from_texts(["one"]).encoder is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"encoder": EncoderInfo("x", 4, True)}, ("shape", "encoder", {"allowed": 5, "given": 4, "name": "x"})),
        ({"encoder": EncoderInfo("x", 5, True), "vectors": None}, ("shape", "encoder", {"allowed": 2, "given": 5})),
        (
            {"encoder": EncoderInfo("x", 5, True), "vectors": None, "entity_vectors": None},
            ("unused", "encoder", {"other": "vectors"}),
        ),
        ({"encoder": "x"}, ("choice", "encoder")),
        ({"encoder": 5}, ("type", "encoder")),
    ],
)
def test_an_encoder_that_did_not_make_the_vectors_is_refused(
    changes: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    with refused(InputError, *expected):
        full_index(**changes)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (("", 1, True), ("empty", "name")),
        ((5, 1, True), ("type", "name", {"given": 5})),
        (("a", 0, True), ("range", "dim", {"given": 0})),
        (("a", 1.5, True), ("range", "dim", {"given": 1.5})),
        (("a", 1, 1), ("type", "normalize", {"given": 1})),
    ],
)
def test_an_encoder_is_described_by_its_attributes(fields: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    with refused(InputError, *expected):
        EncoderInfo(*fields)


@pytest.mark.parametrize(
    ("section", "at", "value", "expected"),
    [
        ("encoder.setting", 0, 4, ("shape", "encoder", {"allowed": 5, "given": 4})),
        ("encoder.setting", 0, -1, ("range", "dim", {"given": -1})),
        ("encoder.setting", 1, 2, ("range", "normalize", {"given": 2})),
    ],
)
def test_a_forged_encoder_is_a_format_error(
    tmp_path: Path, section: str, at: int, value: int, expected: tuple[Any, ...]
) -> None:
    full_index().save(tmp_path)

    def change(forge: Forge) -> None:
        forge.array(section)[at] = value

    forged(tmp_path, change)
    with refused(FormatError, *expected, place="section 'encoder.setting'"):
        _ = Index.open(tmp_path).encoder
    with refused(FormatError, *expected):
        Index.open(tmp_path, verify="full")


def test_an_id_twice_in_a_file_is_a_format_error(tmp_path: Path) -> None:
    Index.from_texts(["one", "two"], ids=[4, 5]).save(tmp_path)

    def change(forge: Forge) -> None:
        forge.array("passage.id.number")[1] = 4

    forged(tmp_path, change)
    with refused(FormatError, "duplicate", place="section 'passage.id.number'"):
        Index.open(tmp_path, verify="full")
    with refused(FormatError, "duplicate"):
        Index.open(tmp_path).row_of(4)


def test_an_index_in_memory_pickles_whole() -> None:
    index = full_index(graph=typed_graph())
    assert_same(pickle.loads(pickle.dumps(index)), index)
    _ = index.graph, index.corpus, index.row_of("ada")
    assert_same(pickle.loads(pickle.dumps(index)), index)


def test_an_opened_index_pickles_by_directory_and_generation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full_index().save(tmp_path / "index")
    monkeypatch.chdir(tmp_path)
    opened = Index.open("index")
    pickled = pickle.dumps(opened)
    assert len(pickled) < 500
    monkeypatch.chdir("/")
    again = pickle.loads(pickled)
    assert_same(again, opened)
    assert again.info()["generation"] == 1
    Index.from_texts(["new"]).save(tmp_path / "index")
    with refused(FormatError, "changed", generation=1, place="index"):
        pickle.loads(pickled)
