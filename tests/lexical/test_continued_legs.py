"""Legs of words over passages of which some are left and some are new: those that are built from all texts."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.lexical import BM25, FTS5

WORDS = [
    "river",
    "rivers",
    "sea",
    "seas",
    "town",
    "the",
    "of",
    "été",
    "ete",
    "naïve",
    "艾瑞克",
    "12",
    "ant",
    "bee",
    "cat",
]
QUESTIONS = ["the river of the sea", "Which town?", "ete", "naive bee 12", "艾瑞克", "seas and rivers of ants", "none"]


def text(random: np.random.Generator) -> str:
    return " ".join(random.choice(WORDS, random.integers(0, 7)))


def assert_same(leg: Any, built: Any, k: int) -> None:
    found, wanted = leg.search(QUESTIONS, k), built.search(QUESTIONS, k)
    assert np.array_equal(found.counts, wanted.counts)
    assert np.array_equal(found.ids, wanted.ids)
    assert np.array_equal(found.scores.view(np.int32), wanted.scores.view(np.int32))


@pytest.mark.parametrize("kind", [BM25, FTS5])
@pytest.mark.parametrize("seed", range(6))
def test_a_continued_leg_is_one_that_is_built_from_all_texts(kind: Any, seed: int) -> None:
    if kind is BM25:
        pytest.importorskip("bm25s", reason="BM25 reads texts by bm25s")
    random = np.random.default_rng(seed)
    texts = [text(random) for _ in range(random.integers(0, 12))]
    leg = kind.build(texts)
    for _ in range(8):
        stays = random.random(len(texts)) < 0.8
        order: list[str | None] = [one for one, is_kept in zip(texts, stays, strict=True) if is_kept]
        for _ in range(random.integers(0, 4)):  # new ones are anywhere, as new names are before the words
            order.insert(int(random.integers(len(order) + 1)), None)
        rows = np.array([at for at, one in enumerate(order) if one is None], np.int64)
        kept = np.full(len(texts), -1, np.int64)
        kept[stays] = np.setdiff1d(np.arange(len(order)), rows)
        texts = [text(random) if one is None else one for one in order]
        leg = leg.continued(kept, rows, [texts[row] for row in rows.tolist()])
        built = kind.build(texts)
        assert leg.num_passages == len(texts)
        assert_same(leg, built, 4)
        some = np.flatnonzero(random.random(len(texts)) < 0.5)
        assert_same(leg.part(some), built.part(some), 3)
        if kind is BM25:
            assert list(leg.matrix.terms) == list(built.matrix.terms)
            for name in ("indptr", "passages", "counts"):
                assert np.array_equal(getattr(leg.matrix, name), getattr(built.matrix, name))


def test_a_database_is_built_anew_when_most_of_its_rows_are_deleted() -> None:
    leg = FTS5.build(["A river."])
    for step in range(5):
        fresh = [f"town {step} ant {at}" for at in range(499)]
        kept = np.full(leg.num_passages, -1)
        kept[0] = 0
        leg = leg.continued(kept, np.arange(1, 500), fresh)
        assert_same(leg, FTS5.build(["A river.", *fresh]), 4)


@pytest.mark.parametrize("words", ["bm25", "fts5", "fts5:trigram"])
def test_a_retriever_continues_its_leg(words: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if words == "bm25":
        pytest.importorskip("bm25s", reason="BM25 reads texts by bm25s")
    kind, built = BM25 if words == "bm25" else FTS5, list[int]()
    build = kind.build

    def counted(texts: Any, **options: Any) -> Any:
        built.append(len(texts))
        return build(texts, **options)

    monkeypatch.setattr(kind, "build", counted)
    random = np.random.default_rng(4)
    rows = [{"id": f"{at}", "text": text(random) + " sea"} for at in range(9)]
    hf.Index.build(rows, lexical=False).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        retriever = hf.Retriever(live, "hybrid-rrf", words=words)
        for step in range(8):
            with live.change() as change:
                change.add_passages([{"id": f"new {step}", "title": "Ant", "text": text(random)}])
                if step % 2:
                    change.delete_passages([f"{step}"])
                if step % 3 == 1:
                    change.replace_passages([{"id": "8", "text": text(random) + " town"}])
            before = len(built)
            found = retriever.search(QUESTIONS, k=5)
            assert len(built) == before  # no text is read again
            wanted = hf.Retriever(live.refresh(), "hybrid-rrf", words=words).search(QUESTIONS, k=5)
            assert np.array_equal(found.hits.ids, wanted.hits.ids)
            assert np.array_equal(found.hits.scores, wanted.hits.scores)
