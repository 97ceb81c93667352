"""BM25 against the formula in float64: scores, ties, filters, and what is refused."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise, assert_hits_close, assert_hits_equal, assert_hits_wellformed
from hopfuse.errors import InputError, MissingExtraError
from hopfuse.lexical import BM25
from hopfuse.types import TermMatrix
from hypothesis import given
from hypothesis import strategies as st
from lexical.bm25_oracle import oracle_scores, terms_of
from refusals import refused

pytest.importorskip("bm25s", reason="BM25 needs bm25s (extra text)")
pytest.importorskip("Stemmer", reason="the default stemmer is PyStemmer's (extra text)")

TEXTS = [
    "Ada Lovelace wrote notes on the Analytical Engine.",
    "Charles Babbage designed engines; the engine was never built.",
    "",
    "The sea, the sea!",
    "The Thames flows through London to the sea.",
    "The sea, the sea!",
    "東京 は 日本 の 首都 です",
    "École des Ponts, naïve cafés",
]
QUESTIONS = [
    "Who designed the engine?",
    "sea",
    "sea sea London",
    "ENGINES engine",
    "首都",
    "école café",
    "the of",
    "zzz",
    "",
]
ROUNDING = 2e-6  # float32: one rounding for idf and for each product, one for each addition of a few terms


def stem(word: str) -> str:
    import Stemmer

    return str(Stemmer.Stemmer("english").stemWord(word))


@pytest.mark.parametrize("method", ["lucene", "robertson", "atire"])
@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (1.2, 0.0), (0.0, 1.0), (3.0, 1.0)])
def test_scores_are_the_formulas(method: str, k1: float, b: float) -> None:
    bm25 = BM25.build(TEXTS, k1=k1, b=b, method=method)
    passages, questions = ([terms_of(t, bm25.matrix.stopwords, stem) for t in some] for some in (TEXTS, QUESTIONS))
    exact = oracle_scores(passages, questions, k1=k1, b=b, method=method)
    for k in (1, 2, 5, 50):
        assert_hits_close(bm25.search(QUESTIONS, k), exact, atol=0.0, rtol=ROUNDING)


@pytest.mark.parametrize("method", ["lucene", "robertson", "atire"])
def test_scores_of_counts_are_those_of_bm25s_bit_for_bit(method: str) -> None:
    import bm25s

    rng = np.random.default_rng(5)
    share = 1 / np.arange(1, 201)
    rows = [rng.choice(200, size, p=share / share.sum()).tolist() for size in rng.integers(0, 50, 300)]
    theirs = bm25s.BM25(method=method, k1=1.3, b=0.6, backend="numpy").build_index_from_ids(
        list(range(200)), rows, show_progress=False
    )
    table = np.zeros((200, 300), np.int32)
    for passage, terms in enumerate(rows):
        np.add.at(table[:, passage], terms, 1)
    terms, passages = np.nonzero(table)
    ours = TermMatrix.from_counts(
        terms=[f"{t:03}" for t in range(200)],
        indptr=np.cumsum([0, *np.bincount(terms, minlength=200)], dtype=np.int64),
        passages=passages.astype(np.int32),
        counts=table[terms, passages],
        num_passages=300,
        method=method,
        k1=1.3,
        b=0.6,
    )
    assert (ours.scores == 0).any() == (method == "robertson")
    for mine, key in ((ours.scores, "data"), (ours.passages, "indices"), (ours.indptr, "indptr")):
        assert mine.tobytes() == theirs[key].astype(mine.dtype).tobytes()


def test_terms_are_words_without_stop_words_stemmed() -> None:
    english = BM25.build(TEXTS)
    assert set(english.matrix.terms) == {s for t in TEXTS for s in terms_of(t, english.matrix.stopwords, stem)}
    assert "the" in english.matrix.stopwords
    plain = BM25.build(TEXTS, stopwords=None, stemmer=None)
    assert list(plain.matrix.terms) == sorted({word for t in TEXTS for word in terms_of(t)})
    own = BM25.build(TEXTS, stopwords=["SEA", "sea", "The"], stemmer=None)
    assert own.matrix.stopwords == ("sea", "the")
    assert own.search(["the sea"], 3).counts.tolist() == [0]
    assert BM25.build(["Die Häuser", "Ein Haus"], stopwords="german", stemmer="german").search(["Haus"], 2).counts == 2


WORDS = st.lists(st.sampled_from(["ant", "bee", "cat", "dog", "eel", "fox"]), max_size=9).map(" ".join)


@given(texts=st.lists(WORDS, max_size=12), questions=st.lists(WORDS, max_size=4), k=st.integers(0, 14), data=st.data())
def test_any_texts_score_as_the_formula_says(texts: Any, questions: Any, k: int, data: st.DataObject) -> None:
    method = data.draw(st.sampled_from(["lucene", "robertson", "atire"]))
    bm25 = BM25.build(texts, k1=0.9, b=0.4, method=method, stopwords=None, stemmer=None)
    exact = oracle_scores(list(map(terms_of, texts)), list(map(terms_of, questions)), k1=0.9, b=0.4, method=method)
    hits = bm25.search(questions, k)
    assert hits.shape == (len(questions), min(k, len(texts)))
    assert_hits_close(hits, exact.reshape(len(questions), len(texts)), atol=1e-9, rtol=ROUNDING)
    for q, question in enumerate(questions):  # a question alone gets what it gets in a batch
        assert_hits_equal(bm25.search([question], k), hf.Hits(hits.ids[q], hits.scores[q], hits.counts[q]))


def test_equal_passages_tie_and_the_lower_id_is_first() -> None:
    bm25 = BM25.build(["other words", *["the same words"] * 5])
    hits = bm25.search(["the same"], 3)
    assert hits.ids.tolist() == [[1, 2, 3]]
    assert len(set(hits.scores[0].tolist())) == 1
    assert bm25.search(["the same"], 9).ids[0].tolist() == [1, 2, 3, 4, 5, -1]


def test_questions_without_a_known_word_find_nothing() -> None:
    hits = BM25.build(TEXTS).search(["", "zzz", "the of", "x", "sea"], 2)
    assert hits.counts.tolist() == [0, 0, 0, 0, 2]
    assert_hits_wellformed(hits)
    assert BM25.build(TEXTS).search([], 4).shape == (0, 4)


@pytest.mark.parametrize("k", [10**8, 2**31 - 1, np.int64(2**31 - 1)])
def test_k_beyond_the_passages_takes_no_more_than_they_do(k: int) -> None:
    bm25 = BM25.build(TEXTS)
    assert_hits_equal(bm25.search(QUESTIONS, k), bm25.search(QUESTIONS, len(TEXTS)))
    assert bm25.search(QUESTIONS, k).shape == (len(QUESTIONS), len(TEXTS))


@pytest.mark.parametrize("texts", [[], [""], ["", "!"], ["the"]])
def test_passages_without_words_are_an_empty_matrix(texts: list[str]) -> None:
    bm25 = BM25.build(texts)
    assert (bm25.num_passages, bm25.matrix.scores.size) == (len(texts), 0)
    assert bm25.search(["the sea", ""], 2).counts.tolist() == [0, 0]


def test_robertson_leaves_out_words_that_half_of_the_passages_have() -> None:
    bm25 = BM25.build(["ant bee", "ant cat", "ant"], method="robertson", stopwords=None, stemmer=None)
    assert list(bm25.matrix.terms) == ["ant", "bee", "cat"]
    assert bm25.search(["ant"], 3).counts.tolist() == [0]
    assert bm25.search(["ant bee"], 3).ids.tolist() == [[0, -1, -1]]


ALLOWED = [1, 3, 5]


@pytest.mark.parametrize(
    "allow",
    [
        ALLOWED,
        np.array([5, 3, 3, 1]),
        np.isin(np.arange(8), ALLOWED),
        np.tile(np.isin(np.arange(8), ALLOWED), (9, 1)),
        [ALLOWED] * 9,
        [np.isin(np.arange(8), ALLOWED)] * 9,
    ],
    ids=["ids", "unsorted", "mask", "masks", "lists", "list of masks"],
)
def test_only_allowed_passages_are_found(allow: Any) -> None:
    bm25 = BM25.build(TEXTS)
    hits = bm25.search(QUESTIONS, 4, allow=allow)
    everything = bm25.search(QUESTIONS, len(TEXTS))
    for q in range(len(QUESTIONS)):
        assert hits.row(q) == [hit for hit in everything.row(q) if hit[0] in ALLOWED]


def test_allowing_none_finds_none() -> None:
    bm25 = BM25.build(TEXTS)
    assert bm25.search(["sea"], 3, allow=[]).counts.tolist() == [0]
    assert bm25.search(["sea", "sea"], 3, allow=[[3], []]).counts.tolist() == [1, 0]


def test_the_matrix_does_not_depend_on_the_seed_of_string_hashes() -> None:
    script = (
        "from hopfuse.lexical import BM25; from lexical.test_bm25 import TEXTS; m = BM25.build(TEXTS).matrix\n"
        "print(m.terms, m.indptr.tobytes().hex(), m.passages.tobytes().hex(), m.scores.tobytes().hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=dict(os.environ, PYTHONHASHSEED="1", PYTHONPATH=os.pathsep.join(sys.path)),
        capture_output=True,
        text=True,
        check=True,
    )
    matrix = BM25.build(TEXTS).matrix  # with the seed of this process
    arrays = " ".join(array.tobytes().hex() for array in (matrix.indptr, matrix.passages, matrix.scores))
    assert done.stdout == f"{matrix.terms} {arrays}\n"


@pytest.mark.parametrize(("module", "options"), [("bm25s", {}), ("Stemmer", {"stemmer": "english"})])
def test_a_missing_library_is_an_extra(monkeypatch: pytest.MonkeyPatch, module: str, options: dict[str, Any]) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with refused(MissingExtraError, "missing_extra", extra="text"):
        BM25.build(["one text"], **options)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"method": "bm25+"}, ("choice", "method")),
        ({"k1": -1.0}, ("range", "k1")),
        ({"k1": np.inf}, ("range", "k1")),
        ({"k1": "1"}, ("range", "k1")),
        ({"b": 1.5}, ("range", "b")),
        ({"b": np.nan}, ("range", "b")),
        ({"b": True}, ("range", "b")),
        ({"stopwords": "klingon"}, ("choice", "stopwords")),
        ({"stopwords": ["a", 1]}, ("type", "stopwords")),
        ({"stemmer": "klingon"}, ("choice", "stemmer")),
        ({"stemmer": 3}, ("choice", "stemmer")),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        BM25.build(["one text"], **options)


@pytest.mark.parametrize(
    ("arguments", "options", "refusal"),
    [
        (("sea", 3), {}, ("type", "texts")),
        (([None], 3), {}, ("type", "texts[0]")),
        ((["sea"], -1), {}, ("range", "k")),
        ((["sea"], 2.0), {}, ("range", "k")),
        ((["sea"], 3), {"allow": [8]}, ("unknown", "allow")),
        ((["sea"], 3), {"allow": [[1], [2]]}, ("length", "allow")),
        ((["sea"], 3), {"allow": np.ones(7, bool)}, ("shape", "allow")),
        ((["sea"], 3), {"allow": np.ones((2, 8), bool)}, ("shape", "allow")),
        ((["sea"], 3), {"allow": [np.ones((1, 8), bool)]}, ("shape", "allow[0]")),
    ],
)
def test_searches_that_cannot_be_are_refused(
    arguments: Any, options: dict[str, Any], refusal: tuple[str, str | None]
) -> None:
    with refused(InputError, *refusal):
        BM25.build(TEXTS).search(*arguments, **options)


def test_texts_and_matrices_of_another_kind_are_refused() -> None:
    with refused(InputError, "type", "texts"):
        BM25.build("one text")
    with refused(InputError, "type", "matrix", given="NoneType"):
        BM25(hf.Index.build(passages=[{"text": "one"}]).lexical)  # type: ignore[arg-type]


GOOD: dict[str, Any] = {
    "terms": ["ant", "bee"],
    "indptr": np.array([0, 2, 3]),
    "passages": np.array([0, 2, 1], np.int32),
    "scores": np.array([0.5, 1.0, 2.0], np.float32),
    "num_passages": 3,
    "method": "lucene",
    "k1": 1.5,
    "b": 0.75,
}


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"terms": ["bee", "ant"]}, ("order", "terms[1]")),
        ({"terms": ["ant", "ant"]}, ("order", "terms[1]")),
        ({"terms": ["ant", 2]}, ("type", "terms[1]")),
        ({"terms": ["ant"]}, ("length", "indptr")),
        ({"counts": np.array([1, 1], np.int32)}, ("length", "passages")),
        ({"counts": np.array([1, 0, 1], np.int32)}, ("range", "counts")),
        ({"counts": np.array([1.0, 1, 1])}, ("dtype", "counts")),
        ({"stopwords": ["z", "a"]}, ("order", "stopwords[1]")),
        ({"indptr": np.array([0, 2, 4])}, ("order", "indptr")),
        ({"indptr": np.array([1, 2, 3])}, ("order", "indptr")),
        ({"indptr": np.array([0, 4, 3])}, ("order", "indptr")),
        ({"indptr": np.array([0, 2, 3], np.int32)}, ("dtype", "indptr")),
        ({"passages": np.array([0, 3, 1], np.int32)}, ("range", "passages")),
        ({"passages": np.array([0, -1, 1], np.int32)}, ("range", "passages")),
        ({"passages": np.array([2, 0, 1], np.int32)}, ("order", "passages")),
        ({"passages": np.array([0, 0, 1], np.int32)}, ("order", "passages")),
        ({"scores": np.array([0.5, np.nan, 2.0], np.float32)}, ("range", "scores")),
        ({"scores": np.array([0.5, np.inf, 2.0], np.float32)}, ("range", "scores")),
        ({"scores": np.array([0.5, 0.0, 2.0], np.float32)}, ("range", "scores")),
        ({"scores": np.array([0.5, 1.0], np.float32)}, ("length", "passages")),
        ({"scores": [0.5, 1.0, 2.0]}, ("dtype", "scores")),
        ({"method": "bm25l"}, ("choice", "method")),
    ],
)
def test_a_matrix_that_cannot_be_is_refused(change: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    assert TermMatrix(**GOOD).terms == ("ant", "bee")
    with refused(InputError, *refusal):
        TermMatrix(**(GOOD | change))


def test_threads_of_one_process_may_share_a_leg() -> None:
    from concurrent.futures import ThreadPoolExecutor

    bm25 = BM25.build(TEXTS)
    expected = bm25.search(QUESTIONS, 5)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: bm25.search(QUESTIONS, 5), itertools.repeat(None, 40)):
            assert_bitwise(found.scores, expected.scores)
            assert_bitwise(found.ids, expected.ids)
