"""Projection on the SIMT emulator: the CPU's bits in every order of threads, device arrays, and recordings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph, random_incidence
from compare import assert_bitwise, assert_hits_equal
from devices import on_device, on_host
from hopfuse.backends import cpu
from hopfuse.backends.calls import ProjectCall
from hopfuse.backends.cuda import projection
from hopfuse.backends.cuda.selection import Sizes
from hopfuse.errors import InputError
from hopfuse_simt.runtime import CUDA, SimtArray, SimtRuntime
from numpy.typing import NDArray
from variants import SANITIZERS, SIMT, missing, registered, simt_runtime

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(missing("simt") is not None, reason=str(missing("simt"))),
]
SOURCES = [CUDA / "project_f32.cu", CUDA / "topk.cu"]
ROWS, COLUMNS = 300, 130
#: Several tiles, splits and batches where the usual sizes have one; lists of more than 16 are sorted.
SMALL = Sizes(
    tile_scores=1, tile_rows=64, batch=3, split_rows=16, split_blocks=8, widest=16, sort_chunk=64, sort_keys=512
)


@pytest.fixture(scope="module")
def emulated() -> Iterator[SimtRuntime]:
    with registered("project", "plain", sources=SOURCES) as runtime:
        yield runtime


def case(seed: int, batch: int, *, weighted: bool = True) -> tuple[NDArray[np.float32], hf.Incidence]:
    rng = np.random.default_rng(seed)
    scores = np.round(rng.standard_normal((batch, COLUMNS)) * 8) / 8  # ties
    return scores.astype(np.float32), random_incidence(rng, ROWS, COLUMNS, 900, weighted=weighted, hub=5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("batch", [1, 4, 7])
def test_the_cpus_bits(runtime: SimtRuntime, weighted: bool, batch: int) -> None:
    scores, incidence = case(batch, batch, weighted=weighted)
    for scale in (None, np.linspace(0, 2, ROWS)):
        found = hf.project(scores, incidence, scale=scale, backend="project")
        assert_bitwise(found, hf.project(scores, incidence, scale=scale, backend="cpu"))
        for k in (1, 20, ROWS + 3):
            best = hf.project_topk(scores, incidence, k, scale=scale, backend="project")
            assert_hits_equal(best, hf.project_topk(scores, incidence, k, scale=scale, backend="cpu"))
    assert {"project_check_f32", "project_f32", "project_keys_u64"} <= {name for name, _, _ in runtime.launches}


@pytest.mark.parametrize("k", [1, 16, 17, 40, ROWS])
def test_tiles_splits_and_batches_change_nothing(runtime: SimtRuntime, k: int) -> None:
    scores, incidence = case(k, 7)
    call = ProjectCall(incidence, scores, None, k, threads=1)
    hits = projection.project_topk(runtime, call._replace(scores=runtime.upload(scores)), SMALL)
    expected = cpu.project_topk(call)
    for name, array in expected.items():
        assert_bitwise(runtime.download(getattr(hits, name)), array, name)
    assert (runtime.download(hits.status) == 1).all()
    assert sum(name == "project_keys_u64" for name, _, _ in runtime.launches) > 3


@pytest.mark.parametrize("build", SANITIZERS)
def test_the_sanitizers_find_nothing(build: str) -> None:
    scores, incidence = case(9, 5)
    scores[3, 2] = np.inf
    with registered(build, build, order="shuffle", seed=3, sources=SOURCES) as runtime:
        call = ProjectCall(incidence, runtime.upload(scores), np.ones(ROWS, np.float32), ROWS, threads=1)
        out, status = projection.project(runtime, call)
        few = ProjectCall(incidence, scores[:3], None, 4, threads=1)
        hits = projection.project_topk(runtime, few._replace(scores=runtime.upload(scores[:3])))
        assert runtime.download(status).tolist() == [1, 1, 1, -9, 1]
        kept = [0, 1, 2, 4]
        plain = call._replace(scores=scores[kept], scale=None)
        assert_bitwise(runtime.download(out)[kept], cpu.project(plain))
        expected = cpu.project_topk(few)
        assert_bitwise(runtime.download(hits.ids), expected["ids"])


# ---- Arrays on the device -------------------------------------------------------------------------------------------


def test_device_arrays_give_device_arrays() -> None:
    scores, incidence = case(10, 6)
    made, best = hf.project(on_device(scores), incidence), hf.project_topk(on_device(scores), incidence, 9)
    assert isinstance(made, SimtArray)
    assert_bitwise(made.get(), hf.project(scores, incidence, backend="cpu"))
    assert_hits_equal(on_host(best), hf.project_topk(scores, incidence, 9, backend="cpu"))


def test_an_invalid_query_is_named_by_its_row() -> None:
    scores, incidence = case(11, 4)
    scores[2, 1] = np.nan
    for k in (None, 0, 3):
        with pytest.raises(InputError, match="row 2 has a score that is NaN or infinite"):
            hf.project(on_device(scores), incidence) if k is None else hf.project_topk(on_device(scores), incidence, k)
    scores[2] = np.finfo(np.float32).max
    with pytest.raises(InputError, match="query 2 has a sum beyond float32"):
        hf.project(on_device(scores), incidence)
    with pytest.raises(InputError, match="query 2 has a sum beyond float32"):
        hf.project_topk(on_device(scores), incidence, 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones((2, COLUMNS)), "scores are float64"),
        (np.ones((2, 3), np.float32), r"\(B, 130\)"),
        (np.ones(COLUMNS, np.float32), r"float32\(130,\)"),
    ],
)
def test_other_device_arrays_are_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        hf.project(on_device(given), case(12, 1)[1])
    with pytest.raises(InputError, match="backend='cpu' reads arrays on the host"):
        hf.project(on_device(given), case(12, 1)[1], backend="cpu")


def test_an_incidence_stays_on_a_device_until_it_is_released() -> None:
    runtime = simt_runtime()
    scores, incidence = case(13, 2)
    hf.project(scores, incidence, backend=SIMT)
    (kept,) = incidence.derived.values()
    assert kept.runtime is runtime
    runtime.events.clear()
    hf.project(on_device(scores), incidence, backend=SIMT)
    assert [event for event in runtime.events if event.kind == "upload"] == []
    hf.free_device_memory(incidence, backend=SIMT)
    assert not incidence.derived


# ---- Recordings -----------------------------------------------------------------------------------------------------


class System:
    """A walk, its projection on passages, and the best of them: the core of a recipe."""

    def __init__(self) -> None:
        rng = np.random.default_rng(14)
        self.graph = random_graph(rng, COLUMNS, 500, hub=3)
        self.incidence = random_incidence(rng, ROWS, COLUMNS, 900, weighted=True)
        self.scale = np.linspace(0.5, 1.0, ROWS)

    def core(self, nodes: Any, weights: Any) -> dict[str, Any]:
        walked = hf.ppr(self.graph, hf.Seeds(nodes, weights))
        best = hf.project_topk(walked.scores, self.incidence, 6, scale=self.scale)
        return {"scores": hf.project(walked.scores, self.incidence), "hits": best}


def questions(batch: int) -> list[NDArray[Any]]:
    rng = np.random.default_rng(batch)
    nodes = np.stack([rng.permutation(COLUMNS)[:4] for _ in range(batch)])
    return [nodes, rng.random(nodes.shape) + 0.1]


def test_a_captured_core_has_the_plain_calls_answers() -> None:
    simt_runtime()
    system = System()
    captured = hf.capture(system.core, [((4,), "int64"), ((4,), "float64")], backend=SIMT)
    for batch in (1, 3, 3, 8):
        given = questions(batch)
        expected = system.core(*given)
        made = captured(*given)
        assert_bitwise(made["scores"], expected["scores"])
        assert_hits_equal(made["hits"], expected["hits"])
        there = captured(*(on_device(array) for array in given))
        assert_hits_equal(on_host(there["hits"]), expected["hits"])


def test_a_captured_core_says_what_the_first_op_found_wrong() -> None:
    """The walk's fault, not what its scores, which then mean nothing, are to the projection."""
    simt_runtime()
    captured = hf.capture(System().core, [((4,), "int64"), ((4,), "float64")], backend=SIMT)
    nodes, weights = questions(3)
    nodes[1, 0] = COLUMNS
    with pytest.raises(InputError, match="row 1 has a node outside"):
        captured(nodes, weights)


def test_a_captured_core_says_which_scores_are_not_finite() -> None:
    simt_runtime()
    scores, incidence = case(15, 5)
    captured = hf.capture(lambda x: hf.project(x, incidence), [((COLUMNS,), "float32")], backend=SIMT)
    assert_bitwise(captured(scores), hf.project(scores, incidence, backend="cpu"))
    scores[4, 0] = np.inf
    with pytest.raises(InputError, match="row 4 has a score that is NaN or infinite"):
        captured(scores)
