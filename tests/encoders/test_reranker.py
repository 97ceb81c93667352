"""A list in a reranker's order."""

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.encoders import rerank
from hopfuse.errors import InputError
from refusals import refused

TEXTS = ["a", "bb", "ccc", "dddd"]


class Lengths:
    """The length of the query and of the text, and what it was asked."""

    def __init__(self):
        self.asked = []

    def score(self, queries, candidates):
        self.asked.append((list(queries), [list(row) for row in candidates]))
        return [
            np.array([len(q) + len(t) for t in row], np.float32) for q, row in zip(queries, candidates, strict=True)
        ]


def test_the_first_k_in_the_rerankers_order():
    hits = hf.Hits([[0, 3, 1, 2], [2, 0, -1, -1], [-1] * 4], [[9, 8, 7, 6], [5, 4, 0, 0], [0] * 4])
    reranker = Lengths()
    found = rerank(hits, ["q", "", "z"], TEXTS, reranker, k=3)
    assert [found.row(b) for b in range(3)] == [[(3, 5.0), (1, 3.0), (0, 2.0)], [(2, 3.0), (0, 1.0)], []]
    assert reranker.asked == [(["q", "", "z"], [["a", "dddd", "bb"], ["ccc", "a"], []])]


def test_equal_scores_stand_by_id():
    class Same:
        def score(self, queries, candidates):
            return [np.zeros(len(row), np.float32) for row in candidates]

    found = rerank(hf.Hits([[3, 1, 2]], [[3, 2, 1]]), ["q"], TEXTS, Same(), k=3)
    assert found.ids.tolist() == [[1, 2, 3]]


def test_it_is_one_more_list_to_fuse():
    hits = hf.Hits([[0, 1, 2, 3]], [[4, 3, 2, 1]])
    found = rerank(hits, ["q"], TEXTS, Lengths(), k=4)
    assert hf.fuse([hits, found], method="rrf", k=4).scores[0].tolist() == pytest.approx(
        [1 / 61 + 1 / 64] * 2 + [1 / 62 + 1 / 63] * 2
    )


def test_k_above_the_width_and_no_queries():
    hits = hf.Hits([[1, 0]], [[2, 1]])
    assert rerank(hits, ["q"], TEXTS, Lengths(), k=9).shape == (1, 2)
    empty = hf.Hits(np.zeros((0, 2), np.int64), np.zeros((0, 2)))
    assert rerank(empty, [], TEXTS, Lengths(), k=2).shape == (0, 2)


@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_bad_k(k):
    with refused(InputError, "range", "k"):
        rerank(hf.Hits([[0]], [[1.0]]), ["q"], TEXTS, Lengths(), k=k)


def test_bad_inputs():
    hits = hf.Hits([[0, 4]], [[2, 1]])
    with refused(InputError, "length", "queries", given=2):
        rerank(hits, ["a", "b"], TEXTS, Lengths(), k=1)
    with refused(InputError, "unknown", "hits", given=4):
        rerank(hits, ["a"], TEXTS, Lengths(), k=2)
    assert rerank(hits, ["a"], TEXTS, Lengths(), k=1).ids.tolist() == [[0]]
    with refused(InputError, "type", "texts"):
        rerank(hits, ["a"], "a long enough string", Lengths(), k=1)


@pytest.mark.parametrize(
    ("scores", "refusal"),
    [
        ([], ("length", "reranker")),
        ([np.zeros(3)], ("shape", "reranker[0]")),
        ([np.array([0.0, np.inf])], ("finite", "scores[0, 1]")),
        ([np.array([0.0, 1e300])], ("finite", "scores[0, 1]")),
        ([[0.0, -1e300]], ("finite", "scores[0, 1]")),
    ],
)
def test_a_reranker_that_breaks_its_word_is_caught(scores, refusal):
    class Wrong:
        def score(self, queries, candidates):
            return scores

    with refused(InputError, *refusal):
        rerank(hf.Hits([[0, 1]], [[2, 1]]), ["a"], TEXTS, Wrong(), k=2)
