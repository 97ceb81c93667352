"""Every argument of project and project_topk."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from api.checks import refused
from compare import assert_bitwise
from hopfuse.ops import projection

INCIDENCE = hf.Incidence.from_pairs([0, 0, 2], [1, 3, 0], [0.5, 2.0, 1.0], num_rows=3, num_columns=4)
SCORES = np.array([[1.0, 2.0, 3.0, 4.0], [0.5, 0.0, -1.0, 2.0]], np.float32)

BAD: list[tuple[dict[str, Any], list[str]]] = [
    ({"incidence": [[0, 1]]}, ["incidence must be an Incidence, got list", "Incidence.from_pairs"]),
    ({"scores": SCORES[:, :3]}, ["(2, 3)", "(B, 4) or (4,)"]),
    ({"scores": SCORES[None]}, ["(1, 2, 4)"]),
    ({"scores": 1.0}, ["shape ()"]),
    ({"scores": SCORES.astype(complex)}, ["complex128", "real numbers"]),
    ({"scores": [["a", "b", "c", "d"]]}, ["real numbers"]),
    ({"scores": [[1.0], [1.0, 2.0]]}, ["scores"]),
    ({"scores": [[1, 2, 3, 4], [1, 2, np.nan, np.inf]]}, ["row 1", "nan", "column 2", "finite"]),
    ({"scores": [1, 2, 3, -np.inf]}, ["row 0", "-inf", "column 3"]),
    ({"scores": [1, 1e39, 3, 4]}, ["row 0", "1e+39", "column 1", "float32"]),
    ({"scale": [1.0, 2.0]}, ["scale has shape (2,)", "(3,)"]),
    ({"scale": 2.0}, ["scale has shape ()"]),
    ({"scale": [1.0, -2.0, 0.0]}, ["scale[1] is -2.0", "at least 0"]),
    ({"scale": [np.nan, 1.0, 0.0]}, ["scale[0] is nan"]),
    ({"scale": [1.0, 1.0, 1e39]}, ["scale[2] is 1e+39", "float32"]),
    ({"scale": ["a", "b", "c"]}, ["scale", "real numbers"]),
    ({"threads": 0}, ["threads is 0"]),
    ({"backend": "tpu"}, ["backend is 'tpu'"]),
]


@pytest.mark.parametrize("op", ["project", "project_topk"])
@pytest.mark.parametrize(("change", "says"), BAD, ids=[str(next(iter(change.items())))[:40] for change, _ in BAD])
def test_invalid_input_is_named(op: str, change: dict[str, Any], says: list[str]) -> None:
    given: dict[str, Any] = {"scores": SCORES, "incidence": INCIDENCE} | change
    first = [given.pop("scores"), given.pop("incidence"), *([2] if op == "project_topk" else [])]
    refused(lambda: getattr(hf, op)(*first, **given), says)


@pytest.mark.parametrize("k", [-1, 2.0, True, None])
def test_k_is_a_whole_number(k: Any) -> None:
    refused(lambda: hf.project_topk(SCORES, INCIDENCE, k), [f"k is {k!r}"])


def test_scores_above_the_budget_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "SCORES_BUDGET", 4 * 2 * 3)
    assert hf.project(SCORES, INCIDENCE).shape == (2, 3)
    refused(lambda: hf.project(np.ones((3, 4)), INCIDENCE), ["3 queries x 3 rows", "project_topk"])


def test_lists_above_the_budget_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hf.project_topk(SCORES, INCIDENCE, 2**62).shape == (2, 3)
    monkeypatch.setattr(projection, "SCORES_BUDGET", 12 * 2 * 2)
    assert hf.project_topk(SCORES, INCIDENCE, 2).shape == (2, 2)
    refused(lambda: hf.project_topk(SCORES, INCIDENCE, 3), ["2 queries with k = 3", "smaller k"])


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
