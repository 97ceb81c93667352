"""The adapter with a stand-in model; a real one is in test_cross_encoder_real.py."""

import sys

import numpy as np
import pytest
from hopfuse.encoders import CrossEncoderReranker, Reranker
from hopfuse.errors import InputError, MissingExtraError
from refusals import refused


class Overlap:
    """Words that a pair shares."""

    def __init__(self):
        self.calls = []

    def predict(self, pairs, **options):
        self.calls.append((list(pairs), options))
        return np.array([len(set(query.split()) & set(text.split())) for query, text in pairs], np.float64)


def constant(scores):
    class Constant:
        def predict(self, pairs, **options):
            return scores

    return CrossEncoderReranker(Constant())


def test_every_query_gets_the_scores_of_its_own_texts():
    reranker = CrossEncoderReranker(Overlap())
    assert isinstance(reranker, Reranker)
    found = reranker.score(["a b", "c", "d"], [["b a", "a", "x"], [], ["d"]])
    assert [row.tolist() for row in found] == [[2, 1, 0], [], [1]]
    assert all(row.dtype == np.float32 for row in found)


def test_all_pairs_are_one_call():
    model = Overlap()
    CrossEncoderReranker(model, batch_size=7).score(["a", "b"], [["x", "y"], ["z"]])
    options = {"batch_size": 7, "show_progress_bar": False, "convert_to_numpy": True}
    assert model.calls == [([("a", "x"), ("a", "y"), ("b", "z")], options)]


@pytest.mark.parametrize(("queries", "candidates"), [([], []), (["a"], [[]])])
def test_no_pairs_do_not_reach_the_model(queries, candidates):
    model = Overlap()
    found = CrossEncoderReranker(model).score(queries, candidates)
    assert [row.shape for row in found] == [(0,)] * len(queries)
    assert model.calls == []


def test_one_output_may_have_a_column_of_its_own():
    found = constant(np.array([[0.5], [0.25]], np.float16)).score(["a"], [["x", "y"]])
    np.testing.assert_array_equal(found[0], np.array([0.5, 0.25], np.float32))


@pytest.mark.parametrize(
    ("scores", "refusal"),
    [
        (np.zeros((2, 3)), ("shape", "scores")),
        (np.zeros(3), ("shape", "scores")),
        (np.array(["a", "b"]), ("dtype", "scores")),
        (np.array([0.0, np.nan]), ("finite", "scores")),
        (np.array([0.0, 1e300]), ("finite", "scores")),
    ],
)
def test_a_model_that_breaks_its_word_is_caught(scores, refusal):
    with refused(InputError, *refusal):
        constant(scores).score(["a"], [["x", "y"]])


@pytest.mark.parametrize(
    ("queries", "candidates", "refusal"),
    [
        ("a", [["x"]], ("type", "texts")),
        (["a"], "x", ("type", "candidates")),
        (["a"], ["x"], ("type", "candidates[0]")),
        (["a"], [["x"], ["y"]], ("length", "candidates")),
        (["a"], [[None]], ("type", "candidates[0][0]")),
    ],
)
def test_bad_texts(queries, candidates, refusal):
    with refused(InputError, *refusal):
        CrossEncoderReranker(Overlap()).score(queries, candidates)


@pytest.mark.parametrize(
    ("model", "options", "refusal"),
    [
        (object(), {}, ("type", "model")),
        (Overlap(), {"device": "cpu"}, ("unused", "device")),
        (Overlap(), {"batch_size": 0}, ("range", "batch_size")),
    ],
)
def test_bad_arguments(model, options, refusal):
    with refused(InputError, *refusal):
        CrossEncoderReranker(model, **options)


@pytest.mark.usefixtures("offline")
def test_a_name_that_is_not_a_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with refused(InputError, "missing", "model"):
        CrossEncoderReranker("cross-encoder/ms-marco-MiniLM-L6-v2")


def test_the_extra_is_named_where_the_package_is_absent(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with refused(MissingExtraError, "missing_extra", extra="encode"):
        CrossEncoderReranker(tmp_path)
