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
    ("ids", "asked", "message"),
    [
        (["a", "b"], "c", "there is no passage with the id 'c'$"),
        (["a", "b"], 0, "no passage with the id 0: the index's ids are of type str"),
        ([1, 0], "1", "no passage with the id '1': the index's ids are of type int"),
        ([1, 0], True, "no passage with the id True: the index's ids are of type int"),
        ([1, 0], 1.0, "no passage with the id 1.0"),
        ([1, 0], 2, "no passage with the id 2$"),
        ([1, 0], [1], r"no passage with the id \[1\]"),
    ],
)
def test_an_unknown_id_is_named(ids: list[Any], asked: Any, message: str) -> None:
    index = Index.from_texts(["one", "two"], ids=ids)
    with pytest.raises(InputError, match=message):
        index.row_of(asked)
    with pytest.raises(InputError, match=message):
        index.rows_of([ids[0], asked])


def test_rows_of_takes_a_list() -> None:
    index = Index.from_texts(["one"], ids=["a"])
    for wrong in ("a", 5):
        with pytest.raises(InputError, match="give a list of passage ids"):
            index.rows_of(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        ("one", {}, "texts is a str; give a list of strings"),
        ({"text": "a"}, {}, "texts is a dict"),
        (["one", 5], {}, r"passages\[1\] is a int; a row is a mapping"),
        (["one", "two"], {"ids": ["a"]}, "ids has 1 entry for 2 texts"),
        (["one"], {"ids": "a"}, "ids is a str"),
        (["one", "two"], {"titles": ["a", "b", "c"]}, "titles has 3 entries for 2 texts"),
        (["one", "two"], {"ids": ["a", "a"]}, r"passages\[1\]: id 'a' is also that of passages\[0\]"),
        (["one", "two"], {"ids": [1, 1]}, r"passages\[1\]: id 1 is also that of passages\[0\]"),
        (["one", "two"], {"ids": ["a", 1]}, r"passages\[1\] has the id 1, passages\[0\] has 'a'; ids are all strings"),
        (["one", "two"], {"ids": [1.5, 2.5]}, "id = '1.5'; it must be a string or an integer"),
        (["one", "two"], {"ids": [2**63, 1]}, "an integer of 64 bits"),
        ([{"text": "one", "id": "a"}], {"ids": ["b"]}, r"texts\[0\] has the id 'a' of its own; leave ids out"),
        (["one"], {"encoder": object()}, "encoder is a object without an encode_queries method"),
        (["one"], {"metric": "l2"}, "metric is 'l2'"),
    ],
)
def test_texts_that_make_no_index_are_refused(texts: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
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
    ("changes", "message"),
    [
        ({"encoder": EncoderInfo("x", 4, True)}, "the encoder 'x' makes vectors of 4 dimensions, these have 5"),
        ({"encoder": EncoderInfo("x", 5, True), "vectors": None}, "of 5 dimensions, these have 2"),
        (
            {"encoder": EncoderInfo("x", 5, True), "vectors": None, "entity_vectors": None},
            "the encoder 'x' is given without vectors",
        ),
        ({"encoder": "x"}, "encoder is a str without an encode_queries method"),
    ],
)
def test_an_encoder_that_did_not_make_the_vectors_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        full_index(**changes)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (("", 1, True), "name is ''"),
        ((5, 1, True), "name is 5"),
        (("a", 0, True), "dim is 0"),
        (("a", 1.5, True), "dim is 1.5"),
        (("a", 1, 1), "normalize is 1"),
    ],
)
def test_an_encoder_is_described_by_its_attributes(fields: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        EncoderInfo(*fields)


@pytest.mark.parametrize(
    ("section", "at", "value", "message"),
    [
        ("encoder.setting", 0, 4, "makes vectors of 4 dimensions, these have 5"),
        ("encoder.setting", 0, -1, "dim is -1"),
        ("encoder.setting", 1, 2, "normalize is 2; it is 0 or 1"),
    ],
)
def test_a_forged_encoder_is_a_format_error(tmp_path: Path, section: str, at: int, value: int, message: str) -> None:
    full_index().save(tmp_path)

    def change(forge: Forge) -> None:
        forge.array(section)[at] = value

    forged(tmp_path, change)
    with pytest.raises(FormatError, match=rf"encoder\.setting.*{message}"):
        _ = Index.open(tmp_path).encoder
    with pytest.raises(FormatError, match=message):
        Index.open(tmp_path, verify="full")


def test_an_id_twice_in_a_file_is_a_format_error(tmp_path: Path) -> None:
    Index.from_texts(["one", "two"], ids=[4, 5]).save(tmp_path)

    def change(forge: Forge) -> None:
        forge.array("passage.id.number")[1] = 4

    forged(tmp_path, change)
    with pytest.raises(FormatError, match=r"passage\.id\.number.*two passages have the same id"):
        Index.open(tmp_path, verify="full")
    with pytest.raises(FormatError, match="two passages have the same id"):
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
    with pytest.raises(FormatError, match="no longer has generation 1, which this index was pickled as"):
        pickle.loads(pickled)
