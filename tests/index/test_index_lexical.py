"""The lexical part of an index: kept with it, checked before it is used, and never another index's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_hits_equal
from hopfuse.errors import FormatError, InputError
from hopfuse.index import Index
from hopfuse.text import RULE
from index.index_files import (
    Forge,
    assert_same,
    assert_same_terms,
    forged,
    full_index,
    generation_file,
    is_mapped,
    term_matrix,
)
from refusals import refused


def test_a_matrix_comes_back_mapped(tmp_path: Path) -> None:
    matrix = term_matrix()
    full_index().save(tmp_path)
    opened = Index.open(tmp_path).lexical
    assert opened is not None
    assert_same_terms(opened, matrix)
    for array in (opened.indptr, opened.passages, opened.scores):
        assert is_mapped(array)
        assert not array.flags.writeable


def test_a_part_is_added_replaced_and_taken_out(tmp_path: Path) -> None:
    plain = full_index(parts=())
    assert (plain.lexical, plain.info()["lexical"]) == (None, None)
    first, other = term_matrix(), term_matrix(method="atire", stemmer=None, stopwords=[])
    with_first = plain.with_lexical(first)
    assert plain.lexical is None
    assert with_first.lexical is first
    assert with_first.corpus is plain.corpus
    with_first.save(tmp_path)
    opened = Index.open(tmp_path)
    assert opened.with_lexical(other).save(tmp_path) == 2
    assert_same_terms(Index.open(tmp_path, verify="full").lexical, other)
    assert_same_terms(opened.lexical, first)
    assert_same(opened.with_lexical(None), plain)
    opened.with_lexical(None).save(tmp_path)
    assert_same(Index.open(tmp_path, verify="full"), plain)


def test_info_counts_without_reading_the_entries(tmp_path: Path) -> None:
    full_index().save(tmp_path)
    path = generation_file(tmp_path)
    forge = Forge(path.read_bytes())
    forge.data[forge.row("lexical.score")[5]] ^= 0x01
    path.write_bytes(bytes(forge.data))
    index = Index.open(tmp_path)
    assert index.info()["lexical"] == {
        "method": "lucene",
        "k1": 1.2,
        "b": 0.75,
        "stemmer": "english",
        "rule": RULE,
        "stopwords": 2,
        "terms": 3,
        "entries": 4,
    }
    assert "lexical=True" in repr(index)
    with refused(FormatError, "damaged", place="section 'lexical.score'"):
        _ = index.lexical


@pytest.mark.parametrize("passages", [[], [{"text": ""}]])
def test_an_empty_matrix_round_trips(tmp_path: Path, passages: list[dict[str, str]]) -> None:
    empty: dict[str, Any] = {
        "terms": [],
        "indptr": np.zeros(1, np.int64),
        "passages": np.zeros(0, np.int32),
        "scores": np.zeros(0, np.float32),
        "num_passages": len(passages),
        "stopwords": [],
        "stemmer": None,
    }
    built = Index.build(passages=passages).with_lexical(term_matrix(**empty))
    built.save(tmp_path)
    assert_same(Index.open(tmp_path, verify="full"), built)


def test_a_matrix_of_other_passages_is_refused() -> None:
    index = full_index(parts=())
    with refused(InputError, "length", "matrix", allowed=3, given=4):
        index.with_lexical(term_matrix(num_passages=4))
    with refused(InputError, "type", "matrix", given="dict"):
        index.with_lexical({})  # type: ignore[arg-type]


def _poke(section: str, at: Any, value: Any) -> Callable[[Forge], None]:
    def change(forge: Forge) -> None:
        forge.array(section)[at] = value

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_poke("lexical.indptr", 0, 1), ("order", "indptr", {"entries": 4})),
        (_poke("lexical.indptr", 1, -1), ("order", "indptr", {"entries": 4})),
        (_poke("lexical.indptr", 1, 2**62), ("order", "indptr", {"entries": 4})),
        (_poke("lexical.indptr", -1, 3), ("order", "indptr", {"entries": 4})),
        (_poke("lexical.passage", 0, -1), ("range", "passages", {"last": 2})),
        (_poke("lexical.passage", 1, 3), ("range", "passages", {"last": 2})),
        (_poke("lexical.passage", 0, 2), ("order", "passages")),
        (_poke("lexical.score", 0, np.nan), ("range", "scores", {"allowed": "above 0"})),
        (_poke("lexical.score", 1, np.inf), ("range", "scores", {"allowed": "above 0"})),
        (_poke("lexical.score", 2, -1.0), ("range", "scores", {"allowed": "above 0"})),
        (_poke("lexical.score", 3, 0.0), ("range", "scores", {"allowed": "above 0"})),
        (_poke("lexical.parameter", 0, np.nan), ("range", "k1")),
        (_poke("lexical.parameter", 1, 1.5), ("range", "b", {"given": 1.5})),
        (_poke("lexical.setting.bytes", 0, ord("x")), ("choice", "method", {"given": "xucene"})),
        (_poke("lexical.term.bytes", 0, ord("z")), ("order", "terms[1]")),
        (_poke("lexical.stopword.bytes", 0, ord("z")), ("order", "stopwords[1]")),
        (_poke("lexical.term.bytes", -1, 0xFF), ("syntax",)),
        (_poke("lexical.term.offsets", 1, 2**62), ("order",)),
        (_poke("lexical.term.offsets", -1, 2**62), ("order",)),
    ],
)
def test_a_forged_part_is_refused_before_its_first_use(
    tmp_path: Path, change: Callable[[Forge], None], expected: tuple[Any, ...]
) -> None:
    full_index().save(tmp_path)
    index = Index.open(forged(tmp_path, change))
    assert index.num_passages == 3
    with refused(FormatError, *expected):
        _ = index.lexical
    with pytest.raises(FormatError):
        Index.open(tmp_path, verify="full")


def test_full_verification_reads_all_offsets(tmp_path: Path) -> None:
    full_index().save(tmp_path)
    forged(tmp_path, _poke("lexical.term.offsets", 0, 1))
    with refused(FormatError, "order", place="section 'lexical.term.offsets'"):
        Index.open(tmp_path, verify="full")


def test_another_number_of_settings_is_refused(tmp_path: Path) -> None:
    def change(forge: Forge) -> None:
        for name, more in (("lexical.setting.offsets", 2), ("lexical.parameter", 1)):
            row = forge.row(name)
            row[3], row[6] = more, more * 8
            forge.data[row[5] + row[6] : row[5] + 64] = bytes(64 - row[6])  # what is no payload is padding

    full_index().save(tmp_path)
    with refused(FormatError, "length", allowed=2, given=1):
        Index.open(forged(tmp_path, change))


def test_the_leg_of_an_index_is_the_leg_that_it_was_given(tmp_path: Path) -> None:
    pytest.importorskip("bm25s", reason="BM25 needs bm25s (extra text)")
    pytest.importorskip("Stemmer", reason="the default stemmer is PyStemmer's (extra text)")
    texts = ["Ada wrote a program.", "The sea.", "Programs of the engine, and the sea"]
    questions = ["Which program?", "the sea", "nothing", ""]
    bm25 = hf.lexical.BM25.build(texts)
    full_index(parts=()).with_lexical(bm25.matrix).save(tmp_path)
    opened = Index.open(tmp_path).lexical
    assert opened is not None
    assert_hits_equal(hf.lexical.BM25(opened).search(questions, 3), bm25.search(questions, 3))


@pytest.mark.parametrize("name", ["englisX", "no such", "\x1b[31m"])
def test_a_forged_stemmer_is_a_format_error(tmp_path: Path, name: str) -> None:
    """With right checksums: nothing that reads the part may take it for the caller's mistake."""
    full_index(parts=()).with_lexical(term_matrix(stemmer="english")).save(tmp_path)

    def change(forge: Forge) -> None:
        setting = forge.array("lexical.setting.bytes")
        setting[-7:] = np.frombuffer(name.encode()[:7].ljust(7), np.uint8)

    index = Index.open(forged(tmp_path, change))
    with refused(FormatError, "choice", "stemmer", place="section 'lexical.indptr'"):
        _ = index.lexical
    with refused(FormatError, "choice", "stemmer"):
        Index.open(tmp_path, verify="full")


def test_a_stemmer_that_no_reader_would_take_is_not_kept() -> None:
    with refused(InputError, "choice", "stemmer", given="klingon"):
        full_index().with_lexical(term_matrix(stemmer="klingon"))
