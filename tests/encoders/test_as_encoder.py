"""Users' objects, fitted to the protocol."""

from types import SimpleNamespace

import numpy as np
from hopfuse.encoders import ArrayEncoder, Encoder, as_encoder
from hopfuse.errors import InputError
from refusals import refused


class Model:
    """Sentence-transformers' own names; queries and documents apart."""

    def __init__(self):
        self.calls = []

    def encode_query(self, texts, **options):
        self.calls.append(texts)
        return np.array([[len(text), 1.0] for text in texts])

    def encode_document(self, texts, **options):
        return -self.encode_query(texts)


class Queries:
    dim = 2

    def encode_queries(self, texts):
        return np.float32([[len(text), 0] for text in texts])


def test_an_encoder_is_returned_as_it_is():
    encoder = ArrayEncoder(2)
    assert as_encoder(encoder) is encoder


def test_sentence_transformers_names_are_accepted():
    encoder = as_encoder(Model())
    assert isinstance(encoder, Encoder)
    assert encoder.encode_queries(("a", "bcd")).tolist() == [[1, 1], [3, 1]]
    assert encoder.encode_passages(["ab"]).tolist() == [[-2, -1]]
    assert encoder.encode_passages(["ab"]).dtype == np.float32
    assert (encoder.name, encoder.dim, encoder.normalize) == ("Model", 2, False)


def test_what_is_missing_is_filled_in_and_what_is_there_is_kept():
    encoder = as_encoder(Queries())
    assert (encoder.name, encoder.dim, encoder.normalize) == ("Queries", 2, False)
    assert encoder.encode_queries(["abc"]).tolist() == [[3, 0]]
    with refused(InputError, "type", "encoder", given="Queries", methods="encode_passages or encode_document"):
        encoder.encode_passages(["a"])
    named = Queries()
    named.name, named.normalize = "mine", True
    assert (as_encoder(named).name, as_encoder(named).normalize) == ("mine", True)


def test_the_name_of_a_loaded_model_and_its_dimension():
    model = Model()
    model.model_card_data = SimpleNamespace(model_id=None, base_model="sentence-transformers/all-MiniLM-L6-v2")
    model.get_embedding_dimension = lambda: 2
    encoder = as_encoder(model)
    assert (encoder.name, encoder.dim) == ("sentence-transformers/all-MiniLM-L6-v2", 2)
    assert encoder.encode_queries([]).shape == (0, 2)
    assert model.calls == []


def test_no_texts_have_the_models_dimension():
    assert as_encoder(Model()).encode_queries([]).shape == (0, 2)


def test_an_object_that_cannot_encode():
    with refused(InputError, "type", "encoder", given="object"):
        as_encoder(object())
    with refused(InputError, "type", "encoder", given="ArrayEncoder"):
        as_encoder(ArrayEncoder)


def test_vectors_of_a_wrong_shape_are_named():
    model = Queries()
    model.dim = 3
    assert isinstance(as_encoder(model).dim, int)
    with refused(InputError, "shape", "vectors"):
        as_encoder(model).encode_queries(["a"])
    with refused(InputError, "type", "texts", given="str"):
        as_encoder(Model()).encode_queries("a")
