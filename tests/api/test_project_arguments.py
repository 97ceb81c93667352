"""Every argument of project and project_topk."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise
from hopfuse.errors import InputError
from refusals import refused

INCIDENCE = hf.Incidence.from_pairs([0, 0, 2], [1, 3, 0], [0.5, 2.0, 1.0], num_rows=3, num_columns=4)
SCORES = np.array([[1.0, 2.0, 3.0, 4.0], [0.5, 0.0, -1.0, 2.0]], np.float32)

BAD: list[tuple[dict[str, Any], tuple[str, str | None]]] = [
    ({"incidence": [[0, 1]]}, ("type", "incidence")),
    ({"scores": SCORES[:, :3]}, ("shape", "scores")),
    ({"scores": SCORES[None]}, ("shape", "scores")),
    ({"scores": 1.0}, ("shape", "scores")),
    ({"scores": SCORES.astype(complex)}, ("dtype", "scores")),
    ({"scores": [["a", "b", "c", "d"]]}, ("dtype", "scores")),
    ({"scores": [[1.0], [1.0, 2.0]]}, ("shape", "scores")),
    ({"scores": [[1, 2, 3, 4], [1, 2, np.nan, np.inf]]}, ("finite", "scores[1, 2]")),
    ({"scores": [1, 2, 3, -np.inf]}, ("finite", "scores[0, 3]")),
    ({"scores": [1, 1e39, 3, 4]}, ("finite", "scores[0, 1]")),
    ({"scale": [1.0, 2.0]}, ("shape", "scale")),
    ({"scale": 2.0}, ("shape", "scale")),
    ({"scale": [1.0, -2.0, 0.0]}, ("range", "scale[1]")),
    ({"scale": [np.nan, 1.0, 0.0]}, ("range", "scale[0]")),
    ({"scale": [1.0, 1.0, 1e39]}, ("range", "scale[2]")),
    ({"scale": ["a", "b", "c"]}, ("dtype", "scale")),
    ({"threads": 0}, ("range", "threads")),
    ({"backend": "tpu"}, ("choice", "backend")),
]


@pytest.mark.parametrize("op", ["project", "project_topk"])
@pytest.mark.parametrize(("change", "refusal"), BAD, ids=[str(next(iter(change.items())))[:40] for change, _ in BAD])
def test_invalid_input_is_named(op: str, change: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    given: dict[str, Any] = {"scores": SCORES, "incidence": INCIDENCE} | change
    first = [given.pop("scores"), given.pop("incidence"), *([2] if op == "project_topk" else [])]
    with refused(InputError, *refusal):
        getattr(hf, op)(*first, **given)


@pytest.mark.parametrize("k", [-1, 2.0, True, None])
def test_k_is_a_whole_number(k: Any) -> None:
    with refused(InputError, "range", "k", given=k):
        hf.project_topk(SCORES, INCIDENCE, k)


def test_scores_above_the_budget_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hopfuse.ops.projection.SCORES_BUDGET", 4 * 2 * 3)
    assert hf.project(SCORES, INCIDENCE).shape == (2, 3)
    with refused(InputError, "limit"):
        hf.project(np.ones((3, 4)), INCIDENCE)


def test_lists_above_the_budget_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hf.project_topk(SCORES, INCIDENCE, 2**62).shape == (2, 3)
    monkeypatch.setattr("hopfuse.ops.projection.SCORES_BUDGET", 12 * 2 * 2)
    assert hf.project_topk(SCORES, INCIDENCE, 2).shape == (2, 2)
    with refused(InputError, "limit"):
        hf.project_topk(SCORES, INCIDENCE, 3)


def test_any_numbers_will_do_and_inputs_are_left_alone() -> None:
    before = SCORES.copy()
    expected = hf.project(SCORES, INCIDENCE, scale=[2, 1, 1])
    for same in (SCORES.astype(np.float64), SCORES.tolist(), SCORES.astype(np.float16), np.asfortranarray(SCORES)):
        assert_bitwise(hf.project(same, INCIDENCE, scale=np.array([2, 1, 1], np.int8)), expected)
    whole = np.array([[1, 2, 3, 4]])
    assert_bitwise(hf.project(whole[0], INCIDENCE), hf.project(SCORES[:1], INCIDENCE))
    assert hf.project_topk(whole[0], INCIDENCE, np.int64(1)).ids.tolist() == [[0]]
    np.testing.assert_array_equal(SCORES, before)


def test_a_walks_scores_are_taken_as_they_are() -> None:
    graph = hf.Graph.from_edges([0, 1, 2], [1, 2, 3])
    walked = hf.ppr(graph, [{0: 1.0}, {3: 1.0}])
    found = hf.project_topk(walked.scores, INCIDENCE.normalised(), 2)
    assert found.ids.tolist() == [[2, 0], [0, 2]]
