"""Inputs that are no arrays, or no numbers: every one is an error of the library, which says what was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from refusals import refused

RAGGED = [[1], [1, 2]]


class Elsewhere:
    """An array on a device that the CPU cannot read."""

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("this array is on another device")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


def graph() -> hf.Graph:
    return hf.Graph.from_edges([0, 1], [1, 2])


def hits() -> hf.Hits:
    return hf.Hits([[1]], [[1.0]])


REFUSED: dict[str, tuple[Callable[[], Any], str, str]] = {
    "a ragged corpus": (lambda: hf.Corpus.from_array(RAGGED), "shape", "X"),
    "a corpus on another device": (lambda: hf.Corpus.from_array(Elsewhere()), "unavailable", "X"),
    "ragged end points": (lambda: hf.Graph.from_edges(RAGGED, [0, 1]), "shape", "src"),
    "ragged weights": (lambda: hf.Graph.from_edges([0, 1], [1, 2], RAGGED), "shape", "weight"),
    "ragged edge types": (lambda: hf.Graph.from_edges([0, 1], [1, 2], edge_type=RAGGED), "shape", "edge_type"),
    "a number of type names": (lambda: hf.Graph.from_edges([0], [1], edge_type_names=5), "type", "edge_type_names"),
    "one string of type names": (lambda: hf.Graph.from_edges([0], [1], edge_type_names="a"), "type", "edge_type_names"),
    "ragged hits": (lambda: hf.Hits(RAGGED, RAGGED), "shape", "ids"),
    "ragged masks": (
        lambda: hf.dense_topk(np.eye(2), np.eye(2), 1, allow=[[True], [True, False]]),
        "shape",
        "allow[0]",
    ),
    "a number of lists": (lambda: hf.fuse(5), "type", "lists"),
    "a word of bias": (lambda: hf.fuse([hits()], method="max", bias="x"), "range", "bias"),
    "a list of backends": (lambda: hf.ppr(graph(), [{0: 1.0}], backend=["cpu"]), "choice", "backend"),
    "passes beyond an integer": (lambda: hf.ppr(graph(), [{0: 1.0}], max_iter=2**70), "range", "max_iter"),
}


LARGE = np.array([1, 2**64 - 1], np.uint64)
BEYOND_INT64: dict[str, tuple[Callable[[], Any], str, str]] = {
    "ends of edges": (lambda: hf.Graph.from_edges(LARGE, [0, 1]), "range", "src"),
    "rows that are allowed": (lambda: hf.dense_topk(np.eye(2), np.eye(2), 1, allow=LARGE), "unknown", "allow"),
    "candidates": (lambda: hf.ppr_topk(graph(), [{0: 1.0}], 1, candidates=LARGE), "unknown", "candidates"),
    "weighted nodes": (
        lambda: hf.ppr(graph(), [{0: 1.0}], node_weights=[[1.0, 1.0]], weighted_nodes=LARGE),
        "unknown",
        "weighted_nodes",
    ),
}


@pytest.mark.parametrize("name", BEYOND_INT64)
def test_numbers_beyond_int64_are_reported_as_given(name: str) -> None:
    call, code, field = BEYOND_INT64[name]
    with refused(InputError, code, field, given=2**64 - 1):
        call()


def test_missing_values_of_arrow_arrays_are_counted() -> None:
    arrow = pytest.importorskip("pyarrow")
    for numbers in (arrow.array([1, None, None]), arrow.chunked_array([[1], [None, None]])):
        for call, field in (
            (lambda: hf.Hits(numbers, [0.5, 0.2, 0.1]), "ids"),  # noqa: B023 - called at once
            (lambda: hf.Hits([1, 2, 3], numbers), "scores"),  # noqa: B023
            (lambda: hf.Graph.from_edges([0, 1, 2], numbers), "dst"),  # noqa: B023
            (lambda: hf.dense_topk(numbers, np.eye(3), 1), "queries"),  # noqa: B023
            (lambda: hf.dense_topk(np.eye(3), np.eye(3), 1, allow=numbers), "allow"),  # noqa: B023
        ):
            with refused(InputError, "missing", field, given=2):
                call()
    assert hf.Hits(arrow.chunked_array([[4], [9]]), arrow.array([0.5, 0.2])).ids.tolist() == [[4, 9]]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, code, field = REFUSED[name]
    with refused(InputError, code, field):
        call()


def test_a_mask_in_the_graphs_own_order_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks are as large as the graph: one in the right layout goes to the kernel as it is."""
    from hopfuse.backends.calls.ppr import PprCall

    seen: list[Any] = []
    run = PprCall.run_on_host
    monkeypatch.setattr(PprCall, "run_on_host", lambda call: (seen.append(call.queries.allow), run(call))[1])
    for mask in (np.ones(3, np.bool_), np.ones((1, 3), np.bool_)):
        hf.ppr(graph(), [{0: 1.0}], allow=mask)
        assert np.shares_memory(seen.pop(), mask)
