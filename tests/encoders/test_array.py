import numpy as np
import pytest
from hopfuse.encoders import ArrayEncoder, Encoder
from hopfuse.errors import InputError
from refusals import refused


def test_it_is_an_encoder():
    assert isinstance(ArrayEncoder(3), Encoder)
    assert ArrayEncoder(3).dim == 3


def test_texts_are_looked_up_queries_and_passages_apart():
    encoder = ArrayEncoder(2, queries={"a": [3, 4], "b": [0, 2]}, passages={"a": [1, 0]})
    np.testing.assert_array_equal(encoder.encode_queries(["b", "a", "b"]), np.float32([[0, 1], [0.6, 0.8], [0, 1]]))
    np.testing.assert_array_equal(encoder.encode_passages(["a"]), np.float32([[1, 0]]))


def test_arrays_go_straight_through():
    rows = np.array([[3.0, 4.0], [0.0, -2.0]], np.float16)
    out = ArrayEncoder(2).encode_passages(rows)
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, np.float32([[0.6, 0.8], [0, -1]]))
    assert rows.dtype == np.float16


def test_a_ready_array_is_not_copied():
    rows = np.array([[3.0, 4.0]], np.float32)
    assert ArrayEncoder(2, normalize=False).encode_queries(rows) is rows


def test_output_is_contiguous():
    rows = np.arange(1, 13, dtype=np.float64).reshape(3, 4).T
    out = ArrayEncoder(3, normalize=False).encode_queries(rows)
    assert out.flags.c_contiguous
    np.testing.assert_array_equal(out, rows)


def test_rows_of_extreme_size_have_length_one():
    rows = np.float32([[1e38, 1e38], [1e-40, 0], [3e-30, 4e-30]])
    lengths = np.linalg.norm(ArrayEncoder(2).encode_queries(rows).astype(np.float64), axis=1)
    np.testing.assert_allclose(lengths, 1, rtol=1e-6)


@pytest.mark.parametrize("nothing", [[], (), np.zeros((0, 5), np.float32)])
def test_nothing_gives_no_rows(nothing):
    out = ArrayEncoder(5).encode_queries(nothing)
    assert out.shape == (0, 5)
    assert out.dtype == np.float32


@pytest.mark.parametrize(
    ("texts", "refusal"),
    [
        (["a", "c"], ("unknown", "texts[1]")),
        (["b"], ("shape", "queries['b']")),
        ("a", ("type", "texts")),
        (["a", 7], ("type", "texts[1]")),
        (["z"], ("zero", "texts[0]")),
        (np.ones((2, 3)), ("shape", "vectors")),
        (np.ones(2), ("shape", "vectors")),
        (np.ones(()), ("shape", "vectors")),
        (None, ("type", "texts")),
        (np.array([[1, 0], [np.nan, 1]]), ("finite", "texts[1]")),
        (np.array([[1e300, 0]]), ("finite", "texts[0]")),
        (np.array([[1, 0], [0, 0]]), ("zero", "texts[1]")),
    ],
)
def test_bad_input_is_named(texts, refusal):
    encoder = ArrayEncoder(2, queries={"a": [1, 2], "b": [1, 2, 3], "z": [0, 0]})
    with refused(InputError, *refusal):
        encoder.encode_queries(texts)


@pytest.mark.parametrize("dim", [0, -1, 2.0, True, None])
def test_bad_dim(dim):
    with refused(InputError, "range", "dim"):
        ArrayEncoder(dim)


def test_zero_rows_pass_without_normalization():
    out = ArrayEncoder(2, normalize=False).encode_queries(np.zeros((1, 2)))
    np.testing.assert_array_equal(out, np.zeros((1, 2), np.float32))
