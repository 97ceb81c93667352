"""A corpus that continues another one answers as a corpus of its vectors alone, and shares the other's codes."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
import variants
from compare import assert_bitwise, assert_hits_equal
from hopfuse.errors import InputError
from hopfuse.ops import similarity as similarity_module
from hopfuse.types import corpus as corpus_module
from hopfuse.types.continued_corpus import ContinuedCorpus
from refusals import refused
from tiers import FULL

STORAGES = ["float32", "float16", "bfloat16", "int8"]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("metric", ["ip", "cosine"])
def test_answers_are_those_of_its_vectors_alone(variant: str, metric: Any, storage: Any) -> None:
    rng = np.random.default_rng(6)
    shapes = [(40, 9, 0.7), (40, 9, 1.0), (30, 0, 0.5), (0, 12, 0.8), (25, 7, 0.0)]
    if variant != variants.SIMT or FULL:
        shapes.append((300, 80, 0.9))
    for count, added, kept in shapes:
        x = (rng.integers(-2, 3, (count + added, 20)) + np.float32(0.01)).astype(np.float32)  # with equal scores
        whole = hf.Corpus.from_array(x, metric=metric, storage=storage).vectors
        base = hf.Corpus.from_stored(whole[:count], metric=metric, storage=storage)
        rows = np.flatnonzero(rng.random(count + added) < kept)
        continued = ContinuedCorpus(base, whole, None if kept == 1 else rows)
        plain = hf.Corpus.from_stored(whole[rows], metric=metric, storage=storage)
        size = rows.size
        assert (len(continued), continued.dim, continued.precision) == (size, 20, plain.precision)
        assert_bitwise(continued.vectors, plain.vectors)
        assert_bitwise(continued.as_float32(1, size - 1), plain.as_float32(1, size - 1))
        q, masks = rng.standard_normal((9, 20)).astype(np.float32), rng.random((9, size)) < 0.4
        few, lists = np.arange(0, size, 11), [np.flatnonzero(mask) for mask in masks]
        for allow in (None, masks, masks[0], few, few[:0], [few] * 9, lists):
            for k in (0, 1, 7, size // 2, size + 3):
                expected = hf.dense_topk(q, plain, k, allow=allow, backend="cpu")
                assert_hits_equal(hf.dense_topk(q, continued, k, allow=allow), expected)
            right = hf.similarity_weights(q, plain, allow=allow, backend="cpu")
            assert_bitwise(hf.similarity_weights(q, continued, allow=allow), right)


def test_codes_are_those_of_the_corpus_that_it_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    whole = rng.standard_normal((5000, 24)).astype(np.float32)
    base = hf.Corpus.from_array(whole[:4800])
    encoded, encode = list[int](), corpus_module.encode

    def counted(vectors: Any, *rest: Any, **how: Any) -> None:
        encoded.append(len(vectors))
        encode(vectors, *rest, **how)

    monkeypatch.setattr(corpus_module, "encode", counted)
    for rows in (None, np.arange(0, 5000, 3)):
        hf.dense_topk(whole[:3], ContinuedCorpus(base, whole, rows), 5, backend="cpu")
        call = hf.backend_info()["backends"]["cpu"]["last_calls"]["dense_topk_f32"]
        assert call["queries"] == 3
        assert call["rescored_rows"] >= 2 * 3 * 5  # of both pieces
    assert encoded == [200, 200]


def test_another_metric_shares_the_codes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    whole = rng.standard_normal((5000, 24)).astype(np.float32)
    base, encoded, encode = hf.Corpus.from_array(whole[:4800]), list[int](), corpus_module.encode

    def counted(vectors: Any, *rest: Any, **how: Any) -> None:
        encoded.append(len(vectors))
        encode(vectors, *rest, **how)

    monkeypatch.setattr(corpus_module, "encode", counted)
    for rows in (np.arange(5000), np.arange(0, 5000, 3), np.arange(1, 5000, 2)):
        found = ContinuedCorpus(base, whole, rows).with_metric("cosine")
        plain = hf.Corpus.unchecked(whole[rows], metric="cosine")
        assert_hits_equal(*(hf.dense_topk(whole[:3], one, 5, backend="cpu") for one in (found, plain)))
    assert encoded.count(4800) == 1


def test_directions_are_looked_for_in_new_vectors_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    whole = rng.standard_normal((50, 8)).astype(np.float32)
    base, read = hf.Corpus.from_array(whole[:40]), list[int]()
    first = similarity_module.first_unscorable

    def counted(vectors: Any, *rest: Any, **how: Any) -> Any:
        read.append(len(vectors))
        return first(vectors, *rest, **how)

    monkeypatch.setattr(similarity_module, "first_unscorable", counted)
    for end in (42, 45, 50):
        continued, plain = ContinuedCorpus(base, whole[:end]), hf.Corpus.from_array(whole[:end])
        assert_bitwise(hf.similarity_weights(whole[:2], continued), hf.similarity_weights(whole[:2], plain))
    assert read == [40, 2, 42, 5, 45, 10, 50]  # those of the first one once; a plain corpus has only its own


def test_a_vector_that_was_removed_may_have_no_direction() -> None:
    whole = np.eye(4, dtype=np.float32)
    whole[1] = 0
    continued = ContinuedCorpus(hf.Corpus.from_array(whole[:2]), whole, np.array([0, 2, 3]))
    plain = hf.Corpus.from_array(whole[[0, 2, 3]])
    queries = [[0.0, 1.0, 2.0, 3.0]]
    assert_bitwise(hf.similarity_weights(queries, continued), hf.similarity_weights(queries, plain))
    by_cosine = continued.with_metric("cosine"), plain.with_metric("cosine")
    assert_hits_equal(*(hf.dense_topk(queries, one, 3) for one in by_cosine))
    with refused(InputError, "zero", "corpus[1]"):
        hf.similarity_weights(queries, ContinuedCorpus(continued.concatenated.corpus, whole))
    with refused(InputError, "finite", "X[0]"):
        ContinuedCorpus(plain, np.vstack([plain.vectors, np.full((1, 4), np.nan, np.float32)]))
