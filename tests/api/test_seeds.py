"""Seeds: what they accept, and what they refuse."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from refusals import refused


def test_padding_has_no_weight() -> None:
    seeds = hf.Seeds([[2, -1]], [[0.5, np.nan]])
    assert seeds.weights.tolist() == [[0.5, 0.0]]
    assert len(seeds) == 1
    assert repr(seeds) == "Seeds(queries=1, width=2)"


def test_rows_of_a_least_width() -> None:
    seeds = hf.Seeds.from_rows([{3: 1.0, 4: 2.0}, {}], 3)
    assert seeds.nodes.tolist() == [[3, 4, -1], [-1, -1, -1]]
    assert hf.Seeds.from_rows([], 0).nodes.shape == (0, 0)


@pytest.mark.parametrize(
    ("nodes", "weights", "expected"),
    [
        ([[0.5]], None, ("dtype", "nodes", {"allowed": "integers"})),
        ([0, 1], None, ("shape", "nodes")),
        ([[0, 1]], [[1.0]], ("shape", "nodes")),
        ([[-2]], None, ("range", "nodes[0, 0]", {"given": -2})),
        ([[0, 0]], [[1.0, 0.0]], ("duplicate", "nodes[0]")),
        ([[0]], [[-1.0]], ("range", "weights[0]", {"given": -1.0, "node": 0})),
        ([[0]], [[np.inf]], ("range", "weights[0]", {"given": np.inf})),
        ([[0]], [["x"]], ("dtype", "weights", {"allowed": "real numbers"})),
        (np.array([[2**64 - 1]], np.uint64), None, ("range", "nodes", {"given": 2**64 - 1})),
    ],
)
def test_bad_arrays_are_refused(nodes: Any, weights: Any, expected: tuple[Any, ...]) -> None:
    with refused(InputError, *expected):
        hf.Seeds(nodes, weights)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{3.7: 1.0}], ("range", "rows[0]", {"given": 3.7})),
        ([{"3": 1.0}], ("range", "rows[0]", {"given": "3"})),
        ([{True: 1.0}], ("range", "rows[0]", {"given": True})),
        ([{-1: 5.0, 2: 1.0}], ("range", "rows[0]", {"given": -1})),
        ([{2**70: 1.0}], ("range", "rows[0]")),
        ([{0: "x"}], ("type", "rows[0][0]")),
        ([{0: 1.0}, {3: 10**400}], ("finite", "rows[1][3]")),
        ([{3: -(10**5000)}], ("finite", "rows[0][3]")),
        ([[1, 2]], ("type", "rows[0]", {"given": "list"})),
    ],
)
def test_bad_rows_are_refused(rows: Any, expected: tuple[Any, ...]) -> None:
    with refused(InputError, *expected):
        hf.Seeds.from_rows(rows)


def test_a_bad_width_is_refused() -> None:
    with refused(InputError, "range", "width", given=-1):
        hf.Seeds.from_rows([{}], -1)


@pytest.mark.parametrize("width", [2**40, 2**31, 10**30])
def test_a_width_beyond_any_memory_is_refused(width: int) -> None:
    with refused(InputError, "limit", "width", given=width, rows="1 row", longest="1 seed"):
        hf.Seeds.from_rows([{0: 1.0}], width)
