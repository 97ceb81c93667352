import logging
import sys

import numpy as np
import processes
import pytest
from hopfuse.encoders import Encoder, WordLlamaEncoder
from hopfuse.errors import InputError, MissingExtraError
from refusals import refused

TEXTS = ["Who founded Rome?", "a", "The Seine flows through Paris, and then to the sea at Le Havre.", "été 東京 🎉"]


@pytest.fixture(scope="module")
def encoder():
    pytest.importorskip("wordllama")
    return WordLlamaEncoder()


def test_shape_dtype_and_length(encoder):
    assert isinstance(encoder, Encoder)
    assert encoder.dim == 256
    out = encoder.encode_passages(TEXTS)
    assert (out.shape, out.dtype, out.flags.c_contiguous) == ((4, 256), np.float32, True)
    np.testing.assert_allclose(np.linalg.norm(out.astype(np.float64), axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(out, encoder.encode_queries(TEXTS))


def test_a_vector_does_not_depend_on_its_batch(encoder):
    together = encoder.encode_queries(TEXTS)
    for at, text in enumerate(TEXTS):
        np.testing.assert_array_equal(encoder.encode_queries([text])[0], together[at])
    np.testing.assert_array_equal(WordLlamaEncoder(batch_size=1).encode_queries(TEXTS), together)


def test_without_normalization_it_is_the_packages_own_output(encoder):
    wordllama = pytest.importorskip("wordllama")
    folder = wordllama.__file__.rsplit("/", 1)[0]
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    raw = WordLlamaEncoder(normalize=False).encode_queries(TEXTS)
    np.testing.assert_array_equal(raw, model.embed(TEXTS))
    np.testing.assert_allclose(encoder.encode_queries(TEXTS), model.embed(TEXTS, norm=True), atol=1e-6)


@pytest.mark.parametrize("dim", [64, 128])
def test_a_smaller_model_is_the_leading_entries(encoder, dim):
    small = WordLlamaEncoder(dim, normalize=False)
    assert small.dim == dim
    large = WordLlamaEncoder(normalize=False)
    np.testing.assert_array_equal(small.encode_queries(TEXTS), large.encode_queries(TEXTS)[:, :dim])


def test_meaning(encoder):
    query = encoder.encode_queries(["What is the capital of France?"])
    passages = encoder.encode_passages(
        ["Bananas are rich in potassium.", "Paris is the capital and largest city of France."]
    )
    assert np.argmax(query @ passages.T) == 1


def test_no_texts(encoder):
    out = encoder.encode_queries([])
    assert (out.shape, out.dtype) == ((0, 256), np.float32)


def test_an_empty_text_has_no_direction(encoder):
    with refused(InputError, "zero", "texts[1]"):
        encoder.encode_queries(["a", ""])
    assert not WordLlamaEncoder(normalize=False).encode_queries([""]).any()


def test_bad_input(encoder):
    with refused(InputError, "type", "texts", given="str"):
        encoder.encode_queries("a")
    with refused(InputError, "choice", "dim", given=512):
        WordLlamaEncoder(512)
    with refused(InputError, "range", "batch_size", given=0):
        WordLlamaEncoder(batch_size=0)


@pytest.mark.usefixtures("offline")
def test_nothing_is_downloaded():
    pytest.importorskip("wordllama")
    assert WordLlamaEncoder(64).encode_queries(["a"]).shape == (1, 64)


def test_the_root_logger_is_left_alone():
    pytest.importorskip("wordllama")
    code = (
        "import logging; from hopfuse.encoders import WordLlamaEncoder; WordLlamaEncoder(64); "
        "print(logging.getLogger().handlers, logging.getLogger().level)"
    )
    out = processes.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == f"[] {logging.WARNING}"


def test_the_extra_is_named_where_the_package_is_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with refused(MissingExtraError, "missing_extra", extra="demo"):
        WordLlamaEncoder()
