"""The adapter with a stand-in model; the real one is in test_sentence_transformer_real.py."""

import sys

import numpy as np
import pytest
from hopfuse.encoders import Encoder, SentenceTransformerEncoder
from hopfuse.errors import InputError, MissingExtraError
from refusals import refused


class Plain:
    """A model that only has encode."""

    def __init__(self):
        self.calls = []

    def encode(self, texts, prompt=None, **options):
        self.calls.append(("encode", list(texts), prompt, options))
        return np.array([[len((prompt or "") + text), 1, 0] for text in texts], np.float16)


class Asymmetric(Plain):
    """A model with prompts of its own, as sentence-transformers 5 has."""

    def encode_query(self, texts, prompt=None, **options):
        return self.encode(texts, "query: " if prompt is None else prompt, **options)

    def encode_document(self, texts, prompt=None, **options):
        return self.encode(texts, "passage: " if prompt is None else prompt, **options)

    def get_embedding_dimension(self):
        return 3


def lengths(encode, *texts):
    return encode(list(texts))[:, 0].tolist()


def test_shape_dtype_and_length():
    encoder = SentenceTransformerEncoder(Plain())
    assert isinstance(encoder, Encoder)
    assert encoder.dim == 3
    out = encoder.encode_passages(["ab", "abcd"])
    assert (out.shape, out.dtype, out.flags.c_contiguous) == ((2, 3), np.float32, True)
    np.testing.assert_allclose(out, [[2 / 5**0.5, 1 / 5**0.5, 0], [4 / 17**0.5, 1 / 17**0.5, 0]], rtol=1e-6)


def test_prompts():
    plain = SentenceTransformerEncoder(Plain(), query_prompt="q:", passage_prompt="", normalize=False)
    assert lengths(plain.encode_queries, "ab") == [4]
    assert lengths(plain.encode_passages, "ab") == [2]


def test_the_models_own_prompts_hold_unless_replaced():
    own = SentenceTransformerEncoder(Asymmetric(), normalize=False)
    assert lengths(own.encode_queries, "ab") == [len("query: ab")]
    assert lengths(own.encode_passages, "ab") == [len("passage: ab")]
    none = SentenceTransformerEncoder(Asymmetric(), query_prompt="", passage_prompt=">", normalize=False)
    assert lengths(none.encode_queries, "ab") == [2]
    assert lengths(none.encode_passages, "ab") == [3]


def test_batch_size_is_handed_on():
    model = Asymmetric()
    SentenceTransformerEncoder(model, batch_size=7).encode_queries(["a"])
    assert model.calls[-1][3] == {"batch_size": 7, "show_progress_bar": False, "convert_to_numpy": True}


def test_no_texts_do_not_reach_the_model():
    model = Asymmetric()
    out = SentenceTransformerEncoder(model).encode_queries([])
    assert (out.shape, out.dtype) == ((0, 3), np.float32)
    assert model.calls == []


@pytest.mark.parametrize("name", ["sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2", ""])
@pytest.mark.usefixtures("offline")
def test_a_name_that_is_not_a_folder_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if not name:
        name = tmp_path / "nowhere"
    with refused(InputError, "missing", "model"):
        SentenceTransformerEncoder(name)


def test_the_extra_is_named_where_the_package_is_absent(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with refused(MissingExtraError, "missing_extra", extra="encode"):
        SentenceTransformerEncoder(tmp_path)


@pytest.mark.parametrize(
    ("model", "options", "refusal"),
    [
        (object(), {}, ("type", "model")),
        (Plain(), {"device": "cpu"}, ("unused", "device")),
        (Plain(), {"batch_size": 0}, ("range", "batch_size")),
        (Plain(), {"batch_size": 1.5}, ("range", "batch_size")),
    ],
)
def test_bad_arguments(model, options, refusal):
    with refused(InputError, *refusal):
        SentenceTransformerEncoder(model, **options)


def test_bad_texts():
    encoder = SentenceTransformerEncoder(Plain())
    with refused(InputError, "type", "texts", given="str"):
        encoder.encode_queries("who?")
    with refused(InputError, "type", "texts[0]", given="NoneType"):
        encoder.encode_passages([None])


def test_a_model_that_breaks_its_word_is_caught():
    class Wrong(Plain):
        def encode(self, texts, prompt=None, **options):
            return np.zeros((len(texts) + 1, 3))

    with refused(InputError, "shape", "vectors"):
        SentenceTransformerEncoder(Wrong()).encode_queries(["a"])


def test_the_name_is_the_models_or_the_given_one():
    assert SentenceTransformerEncoder(Plain()).name == "Plain"
    assert SentenceTransformerEncoder(Plain(), name="mine").name == "mine"
    model = Plain()
    model.model_card_data = type("Card", (), {"model_id": "org/model"})
    assert SentenceTransformerEncoder(model).name == "sentence-transformers/model"


def test_the_name_of_a_folder(tmp_path, monkeypatch):
    package = type("Package", (), {"SentenceTransformer": lambda folder, **options: Plain()})
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    encoder = SentenceTransformerEncoder(tmp_path / "all-MiniLM-L6-v2", normalize=False)
    assert (encoder.name, encoder.dim, encoder.normalize) == ("sentence-transformers/all-MiniLM-L6-v2", 3, False)
    snapshot = tmp_path / "models--org--all-MiniLM-L6-v2" / "snapshots" / "c9745ed1d9f2"
    snapshot.mkdir(parents=True)
    assert SentenceTransformerEncoder(snapshot).name == "sentence-transformers/all-MiniLM-L6-v2"
