"""Select the best keys of each query on a device, with the kernels of ``kernels/cuda/topk.cu``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..calls import HitArrays
from .arguments import HITS, KEY_COLUMNS, RUNNING_LISTS, Arguments
from .runtime import DeviceArray, Runtime, blocks

THREADS = 256
_SELECT_THREADS, _SELECT_STEP = 128, 512


@dataclass(frozen=True)
class Sizes:
    """Sizes of units of work; results do not depend on them.

    Attributes
    ----------
    tile_rows, tile_scores : int
        A tile has at least ``tile_rows`` rows, or as many as give ``tile_scores`` scores.
    batch : int
        Queries searched together.
    scored_at_once : int
        For up to this many queries, rows of 16 bits are all scored canonically: a matrix product would take longer.
    split_rows, split_blocks, most_splits : int
        Queries' tiles are split among up to ``split_blocks`` blocks of at least ``split_rows`` rows; one tile among at
        most ``most_splits``, whose lists one block merges.
    widest : int
        The most candidates of a query that a block keeps in shared memory; at most 2048.
    sort_chunk : int
        Keys that a block sorts in shared memory; a power of two, at most 4096.
    sort_keys : int
        Keys sorted in device memory at a time, unless one query has more.
    """

    tile_rows: int = 1 << 14
    tile_scores: int = 1 << 23
    batch: int = 512
    scored_at_once: int = 4
    split_rows: int = 1 << 10
    split_blocks: int = 1056
    most_splits: int = 264
    widest: int = 1 << 11
    sort_chunk: int = 1 << 12
    sort_keys: int = 1 << 25

    def splits(self, queries: int, columns: int) -> int:
        """Return the number of blocks that share a query's tile."""
        return max(1, min(self.split_blocks // queries, columns // self.split_rows, self.most_splits))

    def sort_length(self, k: int, rows: int) -> int:
        """Return the number of keys of a query sorted together: its best k and a tile."""
        return power_of_two(k + min(max(rows, 1), max(self.tile_rows, k)))

    def batches(self, count: int, k: int, rows: int) -> Iterator[tuple[int, int]]:
        """Yield (begin, end) of the queries searched together."""
        size = self.batch
        if k > self.widest:
            size = min(size, max(1, self.sort_keys // self.sort_length(k, rows)))
        for begin in range(0, count, size):
            yield begin, min(begin + size, count)


class TopkHits(NamedTuple):
    """Hits on the device, with each query's status (kernels/include/hopfuse/query_status.h).

    ``rescored`` has the candidates scored for each query where a bound selects them; otherwise it is uninitialised.
    """

    ids: DeviceArray  # (B, k) int64
    scores: DeviceArray  # (B, k) float32
    counts: DeviceArray  # (B,) int64
    status: DeviceArray  # (B,) int32
    rescored: DeviceArray  # (B,) int64

    @classmethod
    def empty(cls, runtime: Runtime, batch: int, k: int) -> TopkHits:
        hits, row = (batch, k), (batch,)
        return cls(*runtime.empty_all(
            [(hits, np.int64), (hits, np.float32), (row, np.int64), (row, np.int32), (row, np.int64)]
        ))  # fmt: skip

    @classmethod
    def without_hits(cls, runtime: Runtime, batch: int, k: int) -> TopkHits:
        ids, scores = np.full((batch, k), -1, np.int64), np.full((batch, k), -np.inf, np.float32)
        arrays = ids, scores, np.zeros(batch, np.int64), np.ones(batch, np.int32), np.zeros(batch, np.int64)
        return cls(*runtime.upload_all(arrays))

    def arrays(self) -> HitArrays:
        """Return the hits alone."""
        return {"ids": self.ids, "scores": self.scores, "counts": self.counts}

    def rows(self, begin: int, end: int) -> TopkHits:
        return TopkHits(*(array[begin:end] for array in self))


class Lists:
    """Running lists, (queries, splits, width), of the best keys so far."""

    def __init__(self, runtime: Runtime, queries: int, splits: int, width: int) -> None:
        self.runtime, self.queries, self.splits, self.width = runtime, queries, splits, width
        self.room = power_of_two(width + max(width, _SELECT_STEP))
        one = queries * width if splits > 1 else 0
        self.keys, self._merged = runtime.empty_all([((queries * splits * width,), np.uint64), ((one,), np.uint64)])
        self._fresh = True

    def launch(self, kernel: str, arguments: list[Any]) -> None:
        self._launch(kernel, arguments, self.keys, self.splits, self._fresh)
        self._fresh = False

    def keep(self, keys: DeviceArray, columns: int) -> None:
        """Merge (queries, columns) keys into the lists."""
        self.launch(*_keep(keys, columns))

    def merged(self) -> DeviceArray:
        """Merge the splits into one list per query, (queries, width)."""
        if self._fresh:  # no keys yet
            self.keep(self.runtime.empty(1, np.uint64), 0)
        if self.splits == 1:
            return self.keys
        self._launch(*_keep(self.keys, self.splits * self.width), self._merged, 1, True)
        return self._merged

    def _launch(self, kernel: str, arguments: list[Any], keys: DeviceArray, splits: int, fresh: bool) -> None:
        lists = RUNNING_LISTS(splits=splits, keys=keys, fresh=fresh, width=self.width, room=self.room)
        self.runtime.launch(kernel, self.queries * splits, _SELECT_THREADS, [*arguments, lists], 8 * self.room)


def _keep(keys: DeviceArray, columns: int) -> tuple[str, list[Any]]:
    return "dense_keep_u64", [keys, np.int64(columns), np.int32(columns)]


#: (first row, rows, columns): writes keys of rows, 0 for none, to columns of each query.
MakeKeys = Callable[[int, int, Arguments], None]


def key_columns(keys: DeviceArray, stride: int, first: int, columns: int) -> Arguments:
    """Return columns first .. first + columns - 1 of each query's keys, (queries, stride)."""
    return KEY_COLUMNS(keys=keys, stride=stride, first=first, columns=columns)


@dataclass(frozen=True)
class Selection:
    """Selection of the best ``k`` rows of each query, whose keys are made tile by tile.

    k is at most the number of rows. ``status`` holds errors of queries found earlier.
    """

    runtime: Runtime
    sizes: Sizes
    k: int
    status: DeviceArray
    hits: TopkHits

    @property
    def queries(self) -> int:
        return int(self.status.shape[0])

    def of_all(self, rows: int, make_keys: MakeKeys) -> None:
        """Select among all rows and write the hits."""
        if self.k <= self.sizes.widest:
            self._keep_all(rows, make_keys)
        else:
            self._sort_all(rows, make_keys)

    def _keep_all(self, rows: int, make_keys: MakeKeys) -> None:
        """Select tile by tile, with running lists."""
        columns = max(1, min(max(self.sizes.tile_rows, self.sizes.tile_scores // self.queries), rows))
        keys = self.runtime.empty(self.queries * columns, np.uint64)
        lists = Lists(self.runtime, self.queries, self.sizes.splits(self.queries, columns), self.k)
        for first, count in tiles(rows, columns):
            make_keys(first, count, key_columns(keys, columns, 0, columns))
            lists.keep(keys, columns)
        self.emit(lists.merged(), self.k)

    def _sort_all(self, rows: int, make_keys: MakeKeys) -> None:
        """Select by sorting each tile together with the best k so far."""
        length = self.sizes.sort_length(self.k, rows)
        columns = length - self.k
        keys = self.runtime.zeros(self.queries * length, np.uint64)
        for first, count in tiles(rows, columns):
            make_keys(first, count, key_columns(keys, length, self.k, columns))
            self.sort(keys, length)
        self.emit(keys, length)

    def sort(self, keys: DeviceArray, length: int) -> None:
        """Sort each query's keys, a power of two of them, descending."""
        chunk = min(length, self.sizes.sort_chunk)
        self._sort_chunks(keys, length, chunk, 2, chunk)
        size = 2 * chunk
        while size <= length:
            distance = size // 2
            while distance >= chunk:
                pairs = self.queries * length // 2
                arguments = [keys, np.int64(pairs), np.int64(length), np.int64(size), np.int64(distance)]
                self.runtime.launch("dense_sort_step_u64", blocks(pairs, THREADS), THREADS, arguments)
                distance //= 2
            self._sort_chunks(keys, length, chunk, size, size)
            size *= 2

    def _sort_chunks(self, keys: DeviceArray, length: int, chunk: int, first: int, last: int) -> None:
        arguments = [keys, np.int64(length), np.int32(chunk), np.int64(first), np.int64(last)]
        self.runtime.launch("dense_sort_chunk_u64", self.queries * length // chunk, THREADS, arguments, 8 * chunk)

    def emit(
        self,
        keys: DeviceArray,
        stride: int,
        sorts: bool = False,
        bounds: DeviceArray | None = None,
        width: int = 0,
    ) -> None:
        """Write the first keys of each query as hits; see ``topk_emit`` for the arguments."""
        ids, scores, counts, status, rescored = self.hits
        arguments = [keys, np.int64(stride), np.int32(sorts), np.int64(self.k), np.int64(ids.shape[1])]
        hits = HITS(ids=ids, scores=scores, counts=counts, status=status)
        arguments += [bounds, np.int32(width), self.status, hits, rescored]
        self.runtime.launch("topk_emit", self.queries, _SELECT_THREADS, arguments, 8 * stride if sorts else 16)


def tiles(rows: int, tile_rows: int) -> Iterator[tuple[int, int]]:
    """Yield the first row and the number of rows of each tile."""
    for first in range(0, rows, tile_rows):
        yield first, min(tile_rows, rows - first)


def power_of_two(least: int) -> int:
    return 1 << max(1, (least - 1).bit_length())
