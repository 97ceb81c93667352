"""A real CrossEncoder: tiny, of random weights, saved and loaded here."""

import numpy as np
import pytest
import tiny_cross_encoder
from hopfuse.encoders import CrossEncoderReranker
from hopfuse.errors import InputError
from refusals import refused


@pytest.fixture(scope="module")
def save(tmp_path_factory):
    """Saves a model of so many outputs, and says where."""
    torch, tokenizers = pytest.importorskip("torch"), pytest.importorskip("tokenizers")
    pytest.importorskip("sentence_transformers")

    def made(outputs):
        folder = tmp_path_factory.mktemp(f"outputs{outputs}")
        tiny_cross_encoder.save(folder, outputs, torch, tokenizers)
        return folder

    return made


@pytest.fixture(scope="module")
def folder(save):
    return save(1)


def test_scores_are_the_models_own(folder):
    package = pytest.importorskip("sentence_transformers")
    found = CrossEncoderReranker(folder, device="cpu").score(
        ["who founded rome", "the sea"], [["romulus", "a river"], ["a river the sea", "rome", "who"]]
    )
    assert [(row.shape, row.dtype) for row in found] == [((2,), np.float32), ((3,), np.float32)]
    model = package.CrossEncoder(str(folder), device="cpu", local_files_only=True)
    alone = model.predict([("the sea", "rome")], show_progress_bar=False)
    np.testing.assert_allclose(found[1][1], alone[0], rtol=1e-5)
    assert np.ptp(found[1]) > 0
    np.testing.assert_array_equal(CrossEncoderReranker(model).score(["the sea"], [["rome"]])[0], alone)


def test_a_text_longer_than_the_model_reads_is_cut_off(folder):
    reranker = CrossEncoderReranker(folder, device="cpu")
    long, longer = ("the sea " * 40).strip(), ("the sea " * 80).strip()
    found = reranker.score(["who"], [[long, longer]])[0]
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_a_classifier_of_two_classes_is_refused(save):
    with refused(InputError, "shape", "scores", given=(1, 2)):
        CrossEncoderReranker(save(2), device="cpu").score(["who"], [["romulus"]])


@pytest.mark.usefixtures("offline")
def test_loading_opens_no_connection(folder, monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    assert CrossEncoderReranker(folder, device="cpu").score(["a"], [["b"]])[0].shape == (1,)
