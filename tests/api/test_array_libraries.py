"""Arrays of another library come in through DLPack and results go back to it."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise
from hopfuse import backends
from hopfuse.backends import cpu
from hopfuse.errors import InputError
from refusals import refused


class Tensor:
    """The least that an array library does: a shape, DLPack both ways, and a copy for NumPy."""

    def __init__(self, array: Any, device: int = 1) -> None:
        self.array, self.device = np.asarray(array), device
        self.shape = self.array.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.array, dtype)

    def __dlpack__(self, **options: Any) -> Any:
        if self.device != 1:
            raise BufferError("the data is on device 2")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device, 0)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    module = types.ModuleType("tensors")
    module.from_dlpack = lambda array: Tensor(np.from_dlpack(array))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensors", module)
    monkeypatch.setattr(Tensor, "__module__", "tensors")
    return Tensor


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def graph() -> hf.Graph:
    return hf.Graph.from_edges([0, 1, 2], [1, 2, 3], num_nodes=5)


def test_every_result_of_ppr_is_of_the_library_that_restart_came_from(library: Any) -> None:
    dense = np.array([[1.0, 0, 0, 0, 0], [0, 0, 0, 2.0, 0]])
    expected = hf.ppr(graph(), dense)
    result = hf.ppr(graph(), library(dense), damping=library(np.array([0.5, 0.5])))
    for name in ("scores", "iterations", "residual", "bound", "converged"):
        value = getattr(result, name)
        assert isinstance(value, library), name
        assert_bitwise(value.array, getattr(expected, name), name)


def test_every_result_of_ppr_topk_is_of_the_library_that_restart_came_from(library: Any) -> None:
    dense = np.array([[1.0, 0, 0, 0, 0], [0, 0, 0, 2.0, 0]], np.float32)
    among = np.array([True, True, True, False, True])
    expected = hf.ppr_topk(graph(), dense, 3, candidates=among)
    hits = hf.ppr_topk(graph(), library(dense), 3, candidates=library(among), allow=library(np.ones(5, bool)))
    for name in ("ids", "scores", "counts", "score_bounds", "proven", "iterations", "residual", "bound", "converged"):
        value = getattr(hits, name)
        assert isinstance(value, library), name
        assert_bitwise(value.array, getattr(expected, name), name)


def test_dense_hits_are_of_the_library_that_queries_came_from(library: Any) -> None:
    rng = np.random.default_rng(1)
    x, q = rng.standard_normal((50, 4)).astype(np.float32), rng.standard_normal((3, 4)).astype(np.float32)
    expected = hf.dense_topk(q, x, 5, allow=np.arange(0, 50, 2))
    corpus = hf.Corpus.from_array(library(x))
    assert np.shares_memory(corpus.vectors, x)
    hits = hf.dense_topk(library(q), corpus, 5, allow=library(np.arange(0, 50, 2)))
    for name in ("ids", "scores", "counts"):
        assert isinstance(getattr(hits, name), library), name
        assert_bitwise(getattr(hits, name).array, getattr(expected, name), name)


def test_projected_scores_are_of_the_library_that_scores_came_from(library: Any) -> None:
    incidence = hf.Incidence.from_pairs([0, 0, 2], [1, 3, 0], num_rows=3, num_columns=4)
    scores = np.arange(8, dtype=np.float32).reshape(2, 4)
    made, hits = hf.project(library(scores), incidence), hf.project_topk(library(scores), incidence, 2)
    assert isinstance(made, library)
    assert_bitwise(made.array, hf.project(scores, incidence))
    expected = hf.project_topk(scores, incidence, 2)
    for name in ("ids", "scores", "counts"):
        assert isinstance(getattr(hits, name), library), name
        assert_bitwise(getattr(hits, name).array, getattr(expected, name), name)


def test_similarity_weights_are_of_the_library_that_queries_came_from(library: Any) -> None:
    rng = np.random.default_rng(3)
    x, q = rng.standard_normal((20, 4)).astype(np.float32), rng.standard_normal((3, 4)).astype(np.float32)
    made = hf.similarity_weights(library(q), library(x), allow=library(np.arange(9)))
    assert isinstance(made, library)
    assert_bitwise(made.array, hf.similarity_weights(q, x, allow=np.arange(9)))


def test_fused_and_calibrated_hits_stay_in_their_library(library: Any) -> None:
    rng = np.random.default_rng(2)
    x, q = rng.standard_normal((50, 4)).astype(np.float32), rng.standard_normal((3, 4)).astype(np.float32)
    plain, other = hf.dense_topk(q, x, 5), hf.dense_topk(library(q), x, 5)
    calibrated, fused = hf.calibrate(other), hf.fuse([other, plain], k=4)
    assert_bitwise(calibrated.scores.array, hf.calibrate(plain).scores)
    assert_bitwise(fused.ids.array, hf.fuse([plain, plain], k=4).ids)
    assert_bitwise(fused.scores.array, hf.fuse([plain, plain], k=4).scores)


class BFloat16:
    """As torch has it: NumPy cannot read it, but another view of its bits."""

    dtype = types.SimpleNamespace()

    def __init__(self, bits: Any) -> None:
        self.bits = bits
        self.shape = bits.shape

    def view(self, dtype: Any) -> Any:
        assert dtype == "the module's int16"
        return Tensor(self.bits.view(np.int16))


def check_bfloat16(x: Any, q: Any, values: Any) -> None:
    """A bfloat16 array is read exactly under every storage, in place where bfloat16 is kept, and as queries."""
    expected = hf.dense_topk(q, values, 5)
    for storage in ("bfloat16", "int8", "float32"):
        corpus = hf.Corpus.from_array(x, storage=storage)  # type: ignore[arg-type]
        assert corpus.precision == ("float32" if storage == "float32" else "bfloat16")
        assert_bitwise(corpus.as_float32(), values)
        assert_bitwise(hf.dense_topk(q, corpus, 5).scores, expected.scores)
    found = hf.dense_topk(x, values, 2)
    assert_bitwise(np.asarray(found.scores), hf.dense_topk(values, values, 2).scores)


def bfloat16_values(rng: np.random.Generator) -> Any:
    return hf.Corpus.from_array(rng.standard_normal((40, 6)), storage="bfloat16").as_float32()


def test_bfloat16_of_ml_dtypes_is_read_in_place() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(3)
    values, q = bfloat16_values(rng), rng.standard_normal((2, 6)).astype(np.float32)
    x = values.astype(ml_dtypes.bfloat16)
    check_bfloat16(x, q, values)
    for storage in ("bfloat16", "int8"):
        assert np.shares_memory(hf.Corpus.from_array(x, storage=storage).vectors, x)  # type: ignore[arg-type]
    with refused(InputError, "shape", "X", given="bfloat16(6, 40)"):
        hf.Corpus.from_array(x.T, storage="int8")
    x[3] = np.inf
    with refused(InputError, "finite", "X[3]"):
        hf.Corpus.from_array(x, storage="bfloat16")


def test_bfloat16_of_torch_is_read_by_its_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    values, q = bfloat16_values(rng), rng.standard_normal((2, 6)).astype(np.float32)
    module = types.SimpleNamespace(int16="the module's int16")
    monkeypatch.setitem(sys.modules, "torch", module)  # type: ignore[arg-type]
    monkeypatch.setattr(BFloat16, "dtype", type("dtype", (), {"__str__": lambda self: "torch.bfloat16"})())
    check_bfloat16(BFloat16(hf.Corpus.from_array(values, storage="bfloat16").vectors), q, values)


def test_bfloat16_tensors(torch: Any) -> None:
    x, q = torch.randn(40, 6).to(torch.bfloat16), torch.randn(2, 6).numpy()
    check_bfloat16(x, q, x.float().numpy())


def test_arrays_that_are_not_on_the_cpu_are_refused_and_not_copied(
    library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "_backends", {"cpu": cpu})  # without the emulator, if another test has it
    away = library(np.ones((1, 5)), device=2)
    with refused(InputError, "type", "restart"):
        hf.ppr(graph(), away)
    with refused(InputError, "conflict", "queries"):
        hf.dense_topk(away, np.ones((3, 5)), 1, backend="cpu")


class Recorded:
    """A tensor that records gradients, as torch refuses to export it."""

    requires_grad = True

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_a_tensor_that_records_gradients_is_refused_with_the_fix() -> None:
    with refused(InputError, "unsupported", "restart"):
        hf.ppr(graph(), Recorded())
    with refused(InputError, "unsupported", "X"):
        hf.Corpus.from_array(Recorded())


def test_lists_give_numpy_results() -> None:
    assert isinstance(hf.ppr(graph(), [{0: 1.0}]).scores, np.ndarray)
    assert isinstance(hf.dense_topk([[1.0]], [[1.0]], 1).ids, np.ndarray)


def test_torch_tensors_in_torch_tensors_out(torch: Any) -> None:
    dense = torch.zeros(2, 5)
    dense[0, 0] = dense[1, 3] = 1.0
    result, hits = hf.ppr(graph(), dense), hf.ppr_topk(graph(), dense, 3)
    for value in (result.scores, result.converged, hits.ids, hits.proven, hits.score_bounds):
        assert isinstance(value, torch.Tensor)
    assert_bitwise(result.scores.numpy(), hf.ppr(graph(), dense.numpy()).scores)
    found = hf.dense_topk(torch.eye(4), torch.eye(4), 2)
    assert isinstance(found.ids, torch.Tensor)
    assert isinstance(hf.fuse([found, found]).scores, torch.Tensor)
    with refused(InputError, "unsupported", "restart"):
        hf.ppr(graph(), dense.requires_grad_())


def test_results_of_torch_tensors_print(torch: Any) -> None:
    dense = torch.zeros(1, 5)
    dense[0, 0] = 1.0
    assert "PprResult(queries=1" in repr(hf.ppr(graph(), dense))
    assert "PprHits(queries=1" in repr(hf.ppr_topk(graph(), dense, 2))


def test_results_of_another_library_print(library: Any) -> None:
    dense = np.array([[1.0, 0, 0, 0, 0]])
    assert repr(hf.ppr(graph(), library(dense))) == repr(hf.ppr(graph(), dense))
    assert repr(hf.ppr_topk(graph(), library(dense), 2)) == repr(hf.ppr_topk(graph(), dense, 2))
