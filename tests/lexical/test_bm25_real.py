"""BM25 on HotpotQA's own passages and questions: the formula, and the quality that the data's README gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare import assert_hits_close, assert_hits_equal
from hopfuse.evaluate import Qrels, evaluate
from hopfuse.index import Index
from hopfuse.lexical import BM25, Tokenizer
from lexical.bm25_oracle import oracle_scores, terms_of

from bench.data_sets import data_root

pytest.importorskip("bm25s", reason="BM25 needs bm25s (extra text)")
Stemmer = pytest.importorskip("Stemmer", reason="the default stemmer is PyStemmer's (extra text)")
DATA = data_root() / "hotpotqa"
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="no HotpotQA data; set HOPFUSE_DATA to the folder that has it"
)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    index = Index.build(passages=DATA / "passages.jsonl")
    return [f"{title}\n{text}" for title, text in zip(index.titles, index.texts, strict=True)]


@pytest.fixture(scope="module")
def questions() -> list[str]:
    return [json.loads(line)["question"] for line in (DATA / "queries.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def bm25(texts: list[str]) -> BM25:
    return BM25.build(texts)


@pytest.mark.full
def test_real_questions_score_as_the_formula_says(bm25: BM25, texts: list[str], questions: list[str]) -> None:
    stem, tokenizer = Stemmer.Stemmer("english").stemWord, Tokenizer(bm25.matrix.stopwords, bm25.matrix.stemmer)
    asked, passages = tokenizer.terms_of_questions(questions[:40]), tokenizer.terms_of(texts)
    english = [at for at, text in enumerate(texts) if text.isascii()]
    assert len(english) > 4000
    assert all(passages[at] == terms_of(texts[at], bm25.matrix.stopwords, stem) for at in english)
    exact = oracle_scores(passages, asked, k1=1.5, b=0.75, method="lucene")
    for k in (10, 1000):
        assert_hits_close(bm25.search(questions[:40], k), exact, atol=0.0, rtol=4e-6)


def test_the_quality_is_the_one_that_the_data_came_with(bm25: BM25, questions: list[str]) -> None:
    """recall@5, last-hop@5 and last-hop@10 of another implementation, in percent: the README of the data."""
    hits = bm25.search(questions, 10)
    metrics = {"recall@5": 84.4, "last_hop@5": 72.6, "last_hop@10": 87.8}
    result: Any = evaluate(Qrels.read_jsonl(DATA / "queries.jsonl"), {"bm25": hits}, list(metrics))
    for metric, theirs in metrics.items():
        assert abs(100 * result.estimate("bm25", metric).mean - theirs) <= 0.5, metric


def test_an_index_on_disk_finds_the_same(bm25: BM25, questions: list[str], tmp_path: Path) -> None:
    Index.build(passages=DATA / "passages.jsonl").with_lexical(bm25.matrix).save(tmp_path)
    opened = Index.open(tmp_path, verify="full")
    assert opened.lexical is not None
    assert not isinstance(opened.lexical.scores.base, type(None))  # a view of the mapped file
    again = BM25(opened.lexical)
    assert_hits_equal(again.search(questions, 20), bm25.search(questions, 20))
    halves = [again.search(questions[:7], 20), again.search(questions[7:], 20)]
    whole = bm25.search(questions, 20)
    assert np.array_equal(np.concatenate([h.scores for h in halves]), whole.scores)
    assert np.array_equal(np.concatenate([h.ids for h in halves]), whole.ids)
