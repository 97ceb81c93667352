"""Fusion methods in Python: a function, or an object that has a formula and no kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise
from hopfuse import fusion, reference
from hopfuse.errors import InputError
from hopfuse.fusion import ScoredList
from refusals import refused

Lists = Sequence[ScoredList]


def drawn(seed: int = 1, queries: int = 5) -> list[hf.Hits]:
    """Return three lists with documents in common, some of them empty."""
    rng = np.random.default_rng(seed)
    made = []
    for width in (6, 9, 3):
        rows = [rng.permutation(14)[: rng.integers(0, width + 1)] for _ in range(queries)]
        ids = np.array([[*row, *[-1] * (width - len(row))] for row in rows])
        made.append(hf.Hits(ids, rng.integers(0, 5, ids.shape) / 4))
    return made


def weighted(lists: Lists, weights: Any) -> dict[int, float]:
    found: dict[int, float] = {}
    for one, weight in zip(lists, weights, strict=True):
        for document, score in zip(one.ids.tolist(), one.scores.tolist(), strict=True):
            found[document] = found.get(document, 0.0) + weight * score
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"calibration": "min_max", "weights": [2.0, 1.0, 0.5]},
        {"calibration": "none", "pool": (3, None, 2), "consensus": 0.25},
        {"weights": np.linspace(0.1, 1, 15).reshape(5, 3), "prior": [0.0, 1.0, np.nan, 0.5], "k": 4},
        {"calibration": fusion.Calibration("pit", ties="mean", single=0.5), "k": 40},
    ],
)
def test_a_function_fuses_as_the_method_that_it_spells_out(options: dict[str, Any]) -> None:
    lists = drawn()
    rule = {"weights": [1.0] * 3, "calibration": "pit", "k": 10, **options}
    ours, theirs = hf.fuse(lists, method=weighted, **{"k": 10, **options}), hf.fuse(lists, method="linear", **rule)
    assert ours.ids.shape == theirs.ids.shape
    assert_bitwise(ours.counts, theirs.counts, "counts")
    held = np.arange(ours.ids.shape[1]) < ours.counts[:, None]
    np.testing.assert_allclose(ours.scores[held], theirs.scores[held], rtol=3e-6)
    for b in range(len(ours)):
        assert dict(ours.row(b)).keys() == dict(theirs.row(b)).keys()


@pytest.mark.parametrize("name", sorted(fusion.METHODS))
def test_every_formula_is_a_method_in_python(name: str) -> None:
    """Run as a function, a formula gives what the oracle gives."""
    lists, method = drawn(2), fusion.METHODS[name]()
    calibration = {} if method.calibrations == () else {"calibration": method.default_calibration}
    weights = list(method.default_weights(3)) if method.weighted else [1.0] * 3
    called = calibration or {"calibration": "none"}
    ours = hf.fuse(lists, method=method.formula, weights=weights, **called, k=20)
    theirs = reference.fuse(lists, method=name, **calibration, k=20)
    for b in range(len(ours)):
        expected = dict(theirs.row(b))
        assert dict(ours.row(b)) == pytest.approx(expected, rel=1e-5, abs=1e-9)


@dataclass(frozen=True)
class Longest(fusion.FusionMethod):
    """The number of lists that hold a document, times a factor."""

    factor: float = 1.0

    name = "longest"
    kernel = None
    weighted = False

    def formula(self, lists: Lists, weights: Any) -> dict[int, float]:
        return {document: self.factor * count for document, count in fusion.held_by(lists).items()}


def test_an_object_with_a_formula_is_a_method() -> None:
    a, b = hf.Hits([[4, 2]], [[1.0, 0.5]]), hf.Hits([[2]], [[1.0]])
    assert hf.fuse([a, b], method=Longest(factor=2.0), k=5).row(0) == [(2, 4.0), (4, 2.0)]
    with refused(InputError, "unused", "weights"):
        hf.fuse([a, b], method=Longest(), weights=[1.0, 1.0])


def test_options_reach_the_function_and_documents_may_be_left_out() -> None:
    def first(lists: Lists, weights: Any, *, of: int) -> dict[int, float]:
        one = lists[of]
        return dict(zip(one.ids.tolist()[:1], one.scores.tolist()[:1], strict=True))

    a, b = hf.Hits([[4, 2], [-1, -1]], [[1.0, 0.5], [0, 0]]), hf.Hits([[2], [7]], [[1.0], [3.0]])
    fused = hf.fuse([a, b], method=first, calibration="none", of=0, k=3)
    assert [fused.row(at) for at in range(2)] == [[(4, 1.0)], []]
    assert hf.fuse([a, b], method=first, calibration="none", of=1, k=3).row(1) == [(7, 3.0)]


@pytest.mark.parametrize(
    ("returns", "code"),
    [([(4, 1.0)], "type"), ({5: 1.0}, "unknown"), ({4: np.nan}, "finite"), ({4: 1e39}, "finite"), ({4: "x"}, "finite")],
)
def test_what_a_function_may_not_return_is_refused(returns: Any, code: str) -> None:
    with refused(InputError, code, "method", row=0):
        hf.fuse([hf.Hits([[4, 2]], [[1.0, 0.5]])], method=lambda lists, weights: returns)


def test_scores_beyond_float32_are_refused_after_consensus() -> None:
    lists = [hf.Hits([[4, 2]], [[1.0, 0.5]]), hf.Hits([[4]], [[1.0]])]
    with refused(InputError, "finite", "method", given=4, row=0):
        hf.fuse(lists, method=lambda lists, weights: {4: 3e38}, consensus=3e38)


def test_default_weights_of_a_method_may_be_a_list() -> None:
    class Listed(Longest):
        weighted = True

        def default_weights(self, count: int) -> Any:
            return [1.0] * count

    lists = [hf.Hits([[4]], [[1.0]]), hf.Hits([[4]], [[1.0]])]
    assert hf.fuse(lists, method=Listed(), k=1).row(0) == [(4, 2.0)]
