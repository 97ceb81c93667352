"""Vectors that are torch tensors: of any dtype and layout, in the place of arrays, from encoders and for lookups."""

from __future__ import annotations

import numpy as np
import pytest
from hopfuse.encoders import ArrayEncoder, SentenceTransformerEncoder, as_encoder

torch = pytest.importorskip("torch", reason="tensors are torch's: pip install torch")

ROWS = [[3.0, 4.0], [0.5, 0.25]]
#: Values that all of these hold exactly.
DTYPES = ["float64", "float32", "float16", "bfloat16"]
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def tensors():
    for device in DEVICES:
        for name in DTYPES:
            yield torch.tensor(ROWS, dtype=getattr(torch, name), device=device)
        yield torch.tensor(ROWS, requires_grad=True, device=device)
        yield torch.tensor(ROWS, device=device).T.contiguous().T  # columns are contiguous


def test_an_encoder_that_gives_tensors():
    for made in tensors():

        class Model:
            def encode_query(self, texts, made=made):
                return made

            encode_document = encode_query

        encoder = as_encoder(Model())
        rows = encoder.encode_queries(["a", "b"])
        assert (rows.dtype, rows.flags.c_contiguous, rows.tolist()) == (np.float32, True, ROWS)
        assert encoder.encode_passages(["a", "b"]).tolist() == ROWS


def test_a_list_of_tensors():
    class Model:
        def get_embedding_dimension(self):
            return 2

        def encode(self, texts, **options):
            return [torch.tensor(row, dtype=torch.bfloat16) for row in ROWS]

    encoder = SentenceTransformerEncoder(Model(), normalize=False)
    assert encoder.encode_queries(["a", "b"]).tolist() == ROWS


def test_tensors_are_looked_up_and_handed_through():
    for made in tensors():
        raw = ArrayEncoder(2, queries={"a": made[0], "b": made[1]}, normalize=False)
        assert raw.encode_queries(["b", "a"]).tolist() == ROWS[::-1]
        assert raw.encode_passages(made).tolist() == ROWS
        np.testing.assert_allclose(ArrayEncoder(2).encode_passages(made)[0], [0.6, 0.8], rtol=1e-7)


def test_normalisation_is_in_float64():
    made = torch.tensor([[1.0, 1e-3]], dtype=torch.float64) / 3
    expected = (made.numpy().astype(np.float32).astype(np.float64)).copy()
    expected /= np.linalg.norm(expected)
    np.testing.assert_array_equal(ArrayEncoder(2).encode_passages(made), expected.astype(np.float32))
