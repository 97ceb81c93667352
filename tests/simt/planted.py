"""The planted bugs: what each kernel computes, and which build finds what in its ``_bug`` twin.

A finding is a kind of SimtError, or ``wrong``: the plain build's answer differs from the right one in some order,
or ``order``: it is not the same in every order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).parent / "cuda" / "bugs"
Array = NDArray[Any]


@dataclass(frozen=True)
class Planted:
    """One .cu file with ``<name>_bug`` and ``<name>_fixed``, both called as (in, out)."""

    name: str
    answer: Callable[[Array], Array]
    found: dict[str, set[str]]
    values: int = 128
    grid: int = 2
    block: int = 64
    shared: int = 0
    dtype: str = "i4"
    cooperative: bool = False

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.cu"

    def inputs(self) -> Array:
        """Different numbers, so that a misplaced one shows; floats of very different size."""
        values = np.random.default_rng(7).permutation(np.arange(1, self.values + 1)).astype(self.dtype)
        return values if self.dtype == "i4" else (values ** np.float32(5.3)).astype(self.dtype)


def reversed_runs(x: Array) -> Array:
    return x.reshape(-1, 64)[:, ::-1].ravel()


def swapped(x: Array) -> Array:
    return x.reshape(-1, 2)[:, ::-1].ravel()


def next_in_block(x: Array) -> Array:
    runs = x.reshape(-1, 64)
    return np.concatenate([runs[:, 1:], runs[:, -1:]], axis=1).ravel()


def sum_with_next(x: Array) -> Array:
    return np.asarray(x + np.append(x[1:], 0), dtype=x.dtype)


def warp_sums(x: Array) -> Array:
    return np.repeat(x.reshape(-1, 32).sum(axis=1), 32).astype(x.dtype)


def first_of_warp_sums(count: int) -> Callable[[Array], Array]:
    return lambda x: x.reshape(-1, 32)[:, :count].sum(axis=1).astype(x.dtype)


def block_largest(x: Array) -> Array:
    return np.asarray(x.reshape(2, -1).max(axis=1))


def total(x: Array) -> Array:
    return np.array([x.sum()], dtype=x.dtype)


def total_and_block_sums(x: Array) -> Array:
    return np.concatenate([[x.sum(), 0], x.reshape(4, 32).sum(axis=1)]).astype(x.dtype)


def sum_in_order(x: Array) -> Array:
    return np.asarray(np.add.accumulate(x, dtype=np.float32)[-1:])


def halves_added(x: Array) -> Array:
    return np.asarray(x.reshape(-1, 2, 32).sum(axis=1).ravel(), dtype=x.dtype)


def halves_swapped(x: Array) -> Array:
    return x.reshape(-1, 2, 32)[:, ::-1].ravel()


def last_digit(x: Array) -> Array:
    return (x.astype(np.int64) * 100000007 % 10).astype(x.dtype)


def four_from_the_second(x: Array) -> Array:
    return (x[1:-3:4] + x[2:-2:4] + x[3:-1:4] + x[4::4]).astype(x.dtype)


def from_next_block(x: Array) -> Array:
    return np.append(np.roll(x, -64), 0).astype(x.dtype)


def added_firsts(x: Array) -> Array:
    return np.append(x + x[::64].sum(), 0).astype(x.dtype)


def counted_copy(x: Array) -> Array:
    return np.append(x, 2).astype(x.dtype)


PLANTED = [
    Planted("missing_barrier_after_write", reversed_runs, {"plain": {"wrong", "order"}, "tsan": {"race"}}),
    Planted("missing_barrier_before_reuse", reversed_runs, {"plain": {"wrong"}, "tsan": {"race"}}, values=256),
    Planted("missing_wait_for_copies", reversed_runs, {"plain": {"wrong", "order"}}, values=256),
    Planted("copy_into_what_is_read", reversed_runs, {"plain": {"wrong"}, "tsan": {"race"}}, values=256),
    Planted("missing_syncwarp", swapped, {"plain": {"wrong", "order"}, "tsan": {"race"}}),
    Planted("shuffle_as_barrier", swapped, {"tsan": {"race"}}),
    Planted("two_writers", lambda x: x[::2], {"plain": {"wrong", "order"}, "tsan": {"race"}}),
    Planted("cross_block_add", total, {"tsan": {"race"}}, grid=4, block=32),
    Planted("last_block_unordered", total_and_block_sums, {"tsan": {"race"}}, grid=4, block=32),
    Planted("float_atomic_order", sum_in_order, {"plain": {"order"}}, dtype="f4"),
    Planted("uninitialised_static_shared", lambda x: x.reshape(2, -1).sum(axis=1).astype(x.dtype),
            {"plain": {"wrong"}, "asan": {"wrong"}, "tsan": {"wrong"}}),
    Planted("uninitialised_dynamic_shared", block_largest, {"plain": {"wrong"}, "asan": {"wrong"}, "tsan": {"wrong"}},
            values=96, shared=256),
    Planted("global_read_off_by_one", sum_with_next, {"asan": {"address"}}),
    Planted("global_write_off_by_one", lambda x: np.append(0, x[:-1]).astype(x.dtype), {"asan": {"address"}}),
    Planted("static_shared_off_by_one", next_in_block, {"asan": {"undefined"}}),
    Planted("static_shared_write_beyond", reversed_runs, {"asan": {"address"}}),
    Planted("dynamic_shared_off_by_one", next_in_block, {"asan": {"address"}}, shared=256),
    Planted("integer_overflow", last_digit, {"asan": {"undefined"}}),
    Planted("misaligned_vector_load", four_from_the_second, {"asan": {"undefined"}}, values=513),
    Planted("wrong_shuffle_mask", warp_sums, {"plain": {"warp"}, "asan": {"warp"}, "tsan": {"warp"}}),
    Planted("exited_lane_in_mask", first_of_warp_sums(24), {"plain": {"warp"}}),
    Planted("shuffle_from_outside_mask", first_of_warp_sums(16), {"plain": {"warp"}}),
    Planted("mismatched_warp_operation", swapped, {"plain": {"warp"}}),
    Planted("divergent_barrier", halves_added, {"plain": {"barrier"}, "asan": {"barrier"}, "tsan": {"barrier"}}),
    Planted("barrier_in_each_branch", halves_swapped, {"plain": {"barrier"}}),
    Planted("barrier_in_uneven_loop", block_largest, {"plain": {"barrier"}}, values=320),
    Planted("deadlock", lambda x: x, {"plain": {"deadlock"}}),
    Planted("wait_for_later_block", counted_copy, {"plain": {"livelock"}}),
    Planted("missing_grid_barrier", from_next_block, {"plain": {"wrong", "order"}, "tsan": {"race"}}, cooperative=True),
    Planted("missing_grid_barrier_before_reuse", from_next_block, {"plain": {"wrong", "order"}, "tsan": {"race"}},
            values=192, grid=3, cooperative=True),
    Planted("grid_barrier_in_some_blocks", added_firsts, {"plain": {"barrier"}}, values=256, grid=4, cooperative=True),
]  # fmt: skip
