"""Seeds: what they accept, and what they refuse."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError


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
    ("nodes", "weights", "message"),
    [
        ([[0.5]], None, "must be integers"),
        ([0, 1], None, "one row per query"),
        ([[0, 1]], [[1.0]], "one row per query"),
        ([[-2]], None, "node -2"),
        ([[0, 0]], [[1.0, 0.0]], "more than once"),
        ([[0]], [[-1.0]], "weight -1.0 at node 0"),
        ([[0]], [[np.inf]], "weight inf"),
        ([[0]], [["x"]], "must be real numbers"),
        (np.array([[2**64 - 1]], np.uint64), None, "ids must fit int64"),
    ],
)
def test_bad_arrays_are_refused(nodes: Any, weights: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        hf.Seeds(nodes, weights)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{3.7: 1.0}], "node 3.7"),
        ([{"3": 1.0}], "node '3'"),
        ([{True: 1.0}], "node True"),
        ([{-1: 5.0, 2: 1.0}], "node -1"),
        ([{2**70: 1.0}], "nodes must be whole numbers"),
        ([{0: "x"}], "weight 'x'"),
        ([{0: 1.0}, {3: 10**400}], "row 1 has a weight beyond float64 at node 3"),
        ([{3: -(10**5000)}], "beyond float64 at node 3"),
        ([[1, 2]], "mapping, got list"),
    ],
)
def test_bad_rows_are_refused(rows: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        hf.Seeds.from_rows(rows)


def test_a_bad_width_is_refused() -> None:
    with pytest.raises(InputError, match="width is -1"):
        hf.Seeds.from_rows([{}], -1)


@pytest.mark.parametrize("width", [2**40, 2**31, 10**30])
def test_a_width_beyond_any_memory_is_refused(width: int) -> None:
    with pytest.raises(
        InputError, match=f"width is {width}: 1 rows .* more than 4 GiB, and the longest row has 1 seeds"
    ):
        hf.Seeds.from_rows([{0: 1.0}], width)
