"""FastEmbed on a tiny ONNX model that is made here, and on a model of your own if the environment names one."""

from __future__ import annotations

import os

import numpy as np
import pytest
from encoders import tiny_onnx
from hopfuse.encoders import Encoder, FastEmbedEncoder
from hopfuse.errors import InputError
from refusals import refused

TEXTS = ["green river", "a stone road by the sea", "sea"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    fastembed = pytest.importorskip("fastembed", reason="needs fastembed (extra fastembed)")
    pytest.importorskip("onnx", reason="the tiny model is made by onnx: pip install onnx")
    from fastembed.common.model_description import ModelSource, PoolingType

    fastembed.TextEmbedding.add_custom_model(
        "hopfuse/tiny",
        pooling=PoolingType.MEAN,
        normalization=False,
        sources=ModelSource(hf="hopfuse/tiny"),
        dim=tiny_onnx.DIM,
        model_file="model.onnx",
    )
    return tiny_onnx.save(tmp_path_factory.mktemp("fastembed") / "tiny")


@pytest.mark.usefixtures("offline")
def test_vectors_of_a_local_folder(folder):
    raw = FastEmbedEncoder("hopfuse/tiny", folder=folder, batch_size=2, threads=1, normalize=False)
    assert isinstance(raw, Encoder)
    assert (raw.name, raw.dim, raw.normalize) == ("fastembed/hopfuse/tiny", tiny_onnx.DIM, False)
    expected = np.array([tiny_onnx.mean(text) for text in TEXTS])
    for encode in (raw.encode_queries, raw.encode_passages):
        rows = encode(TEXTS)
        assert (rows.dtype, rows.flags.c_contiguous) == (np.float32, True)
        np.testing.assert_allclose(rows, expected, atol=1e-6)
        assert encode([]).shape == (0, tiny_onnx.DIM)
    unit = FastEmbedEncoder("hopfuse/tiny", folder=folder, threads=1).encode_queries(TEXTS)
    np.testing.assert_allclose(unit, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)


def test_a_loaded_model_is_accepted(folder):
    from fastembed import TextEmbedding

    model = TextEmbedding("hopfuse/tiny", specific_model_path=str(folder), threads=1)
    encoder = FastEmbedEncoder(model, name="mine")
    assert (encoder.name, encoder.dim) == ("mine", tiny_onnx.DIM)
    with refused(InputError, "unused", "folder"):
        FastEmbedEncoder(model, folder=folder)


def test_invalid_models_are_refused(tmp_path):
    with refused(InputError, "missing", "folder"):
        FastEmbedEncoder("BAAI/bge-small-en-v1.5")
    with refused(InputError, "missing", "folder"):
        FastEmbedEncoder("BAAI/bge-small-en-v1.5", folder=tmp_path / "none")
    with refused(InputError, "type", "model", given="int", methods="query_embed"):
        FastEmbedEncoder(3)
    pytest.importorskip("fastembed", reason="needs fastembed (extra fastembed)")
    with refused(InputError, "failed", "model", given="nobody/none"):
        FastEmbedEncoder("nobody/none", folder=tmp_path)


def test_a_listed_model():
    name, folder = os.environ.get("HOPFUSE_FASTEMBED_MODEL"), os.environ.get("HOPFUSE_FASTEMBED_FOLDER")
    if not (name and folder):
        pytest.skip("HOPFUSE_FASTEMBED_MODEL and HOPFUSE_FASTEMBED_FOLDER name no model and its folder")
    encoder = FastEmbedEncoder(name, folder=folder)
    rows = encoder.encode_passages(["A river in France.", "The Loire.", "A stock exchange."])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    assert rows[0] @ rows[1] > rows[0] @ rows[2]
