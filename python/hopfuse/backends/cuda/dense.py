"""Exact dense top-k on a device: a matrix product finds candidates, canonical scores rank them, a bound proves them.

Queries whose list the bound cannot prove, and searches where it would rule out nothing, score every allowed row
canonically. The kernels and the bound's derivation are in ``kernels/cuda/topk.cu`` and ``dense_topk.cu``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...types import Corpus
from .dense_inputs import ROWS_PER_BLOCK, THREADS, Allowed, Bound, Resident, resident
from .rows import put_rows, take_rows
from .runtime import DeviceArray, Runtime, blocks

MOST_DIMS = 2**20
"""Dimensions up to which the bound is worth a matrix product."""
SHORT_LIST = 8
"""Id lists below a part of the corpus this small are scored row by row."""

_SELECT_THREADS, _SELECT_STEP, _QUERIES_PER_ROW = 128, 512, 4


@dataclass(frozen=True)
class Sizes:
    """Units of work; no answer depends on them.

    Attributes
    ----------
    tile_rows, tile_scores : int
        Corpus rows whose scores are held at a time: so many, or as many as make that many scores.
    batch : int
        Queries searched together.
    split_rows, split_blocks : int
        Few queries share a tile among blocks, up to ``split_blocks`` in all, of ``split_rows`` rows at least.
    widest : int
        Candidates of a query that a block keeps in shared memory, at most 2048.
    sort_chunk : int
        Keys that a block sorts in shared memory; a power of two, at most 4096.
    sort_keys : int
        Keys that are sorted in device memory at a time, where that many are more than a query's.
    """

    tile_rows: int = 1 << 14
    tile_scores: int = 1 << 23
    batch: int = 512
    split_rows: int = 1 << 10
    split_blocks: int = 264
    widest: int = 1 << 11
    sort_chunk: int = 1 << 12
    sort_keys: int = 1 << 25


class DenseHits(NamedTuple):
    """On the device; ``status`` as kernels/include/hopfuse/query_status.h has it."""

    ids: DeviceArray  # (B, k) int64
    scores: DeviceArray  # (B, k) float32
    counts: DeviceArray  # (B,) int64
    status: DeviceArray  # (B,) int32

    @classmethod
    def empty(cls, runtime: Runtime, batch: int, k: int) -> DenseHits:
        arrays = runtime.empty((batch, k), np.int64), runtime.empty((batch, k), np.float32)
        return cls(*arrays, runtime.empty(batch, np.int64), runtime.empty(batch, np.int32))

    @classmethod
    def of_nothing(cls, runtime: Runtime, batch: int, k: int) -> DenseHits:
        ids, scores = np.full((batch, k), -1, np.int64), np.full((batch, k), -np.inf, np.float32)
        arrays = ids, scores, np.zeros(batch, np.int64), np.ones(batch, np.int32)
        return cls(*(runtime.upload(array) for array in arrays))

    def rows(self, begin: int, end: int) -> DenseHits:
        return DenseHits(*(array[begin:end] for array in self))


def dense_topk(
    runtime: Runtime,
    queries: DeviceArray,
    corpus: Corpus,
    k: int,
    *,
    mask: NDArray[np.uint8] | None,
    indptr: NDArray[np.int64] | None,
    ids: NDArray[np.int64] | None,
    shared: bool,
    sizes: Sizes | None = None,
) -> tuple[DenseHits, int]:
    """The k best rows for each query, (B, d) float32 on the device, and how many rows were scored canonically.

    With a fixed order of work (:attr:`.Runtime.fixed`) a query that the bound cannot prove is left with its status, and
    the rows are not counted.
    """
    batch = int(queries.shape[0])
    allowed = Allowed(mask, indptr, ids, shared)
    kept = min(k, allowed.most_rows(corpus.num_vectors))
    if not (batch and kept):
        hits = DenseHits.of_nothing(runtime, batch, k)
        if batch:
            _check(runtime, queries, corpus.metric == "cosine", hits.status)
        return hits, 0
    hits = DenseHits.empty(runtime, batch, k)
    search = _Search(runtime, resident(runtime, corpus), allowed, kept, sizes or Sizes())
    return hits, sum(search.run(queries, begin, end, hits.rows(begin, end)) for begin, end in search.batches(batch))


def _check(runtime: Runtime, queries: DeviceArray, cosine: bool, status: DeviceArray) -> DeviceArray:
    """The queries' canonical norms; ``status`` says what is wrong with them."""
    count, dim = queries.shape
    norms = runtime.empty(count, np.float32)
    arguments = [queries, np.int64(count), np.int32(dim), np.int32(cosine), norms, status]
    runtime.launch("dense_queries_f32", blocks(count, ROWS_PER_BLOCK), THREADS, arguments)
    return norms


class _TileMask(NamedTuple):
    """A kernel's mask arguments: bytes, from one query's to the next, and where the tile begins."""

    mask: DeviceArray | None
    stride: np.int64
    first: np.int64

    @classmethod
    def of(cls, allowed: Allowed, n: int, first: int) -> _TileMask:
        return cls(allowed.mask, np.int64(0 if allowed.shared else n), np.int64(first))


_TileReader = Callable[[int, int], DeviceArray]
_MaskReader = Callable[[int, int], _TileMask]


@dataclass(frozen=True)
class _Queries:
    """A batch on the device, with what it may hit there, and where its hits go."""

    count: int
    vectors: DeviceArray
    norms: DeviceArray
    status: DeviceArray
    allowed: Allowed
    hits: DenseHits


class _Lists:
    """Running lists, (queries, splits, width), of the best keys streamed past them."""

    def __init__(self, runtime: Runtime, queries: int, splits: int, width: int) -> None:
        self.runtime, self.queries, self.splits, self.width = runtime, queries, splits, width
        self.room = _power_of_two(width + max(width, _SELECT_STEP))
        self.keys = runtime.zeros(queries * splits * width, np.uint64)

    def launch(self, kernel: str, arguments: list[Any]) -> None:
        arguments = [*arguments, np.int32(self.splits), self.keys, np.int32(self.width), np.int32(self.room)]
        self.runtime.launch(kernel, self.queries * self.splits, _SELECT_THREADS, arguments, 8 * self.room)

    def keep(self, keys: DeviceArray, columns: int) -> None:
        """Stream (queries, columns) keys past the lists."""
        self.launch("dense_keep_u64", [keys, np.int64(columns), np.int32(columns)])

    def merged(self) -> DeviceArray:
        """(queries, width): one list for each query."""
        if self.splits == 1:
            return self.keys
        one = _Lists(self.runtime, self.queries, 1, self.width)
        one.keep(self.keys, self.splits * self.width)
        return one.keys


class _Search:
    """One call's search of a resident corpus for k hits, k at most the rows there can be."""

    def __init__(self, runtime: Runtime, corpus: Resident, allowed: Allowed, k: int, sizes: Sizes) -> None:
        self.runtime, self.corpus, self.allowed, self.k, self.sizes = runtime, corpus, allowed, k, sizes
        self.shared = allowed.upload(runtime) if allowed.shared else None
        # Candidates beyond k: rows within the bound of the k-th, and rounding may have moved some of them.
        self.width = k + k // 8 + 32
        self.length = _power_of_two(k + min(corpus.rows, max(sizes.tile_rows, k)))

    def batches(self, count: int) -> Iterator[tuple[int, int]]:
        """The first query of those that are searched together, and the end."""
        size = self.sizes.batch
        if self.k > self.sizes.widest:
            size = min(size, max(1, self.sizes.sort_keys // self.length))
        for begin in range(0, count, size):
            yield begin, min(begin + size, count)

    def run(self, queries: DeviceArray, begin: int, end: int, hits: DenseHits) -> int:
        """Write the hits of queries begin .. end; return the rows scored canonically."""
        chosen = np.arange(begin, end)
        allowed = self.allowed.of(chosen)
        if not self._is_bound_worth_it(allowed):
            self._exhaustively(self._read(queries[begin:end], allowed, hits), allowed)
            return 0 if self.runtime.fixed else allowed.total(end - begin, self.corpus.rows)
        rescored = self._by_bound(self._read(queries[begin:end], allowed, hits))
        if self.runtime.fixed:
            return 0
        count = int(self.runtime.download(rescored).sum())
        left = np.flatnonzero(self.runtime.download(hits.status) == 0)
        return count + (self._widen(queries, chosen, left, hits) if left.size else 0)

    def _widen(self, queries: DeviceArray, chosen: NDArray[np.int64], left: NDArray[np.int64], hits: DenseHits) -> int:
        """Score every row for the queries that the bound cannot prove."""
        runtime, allowed = self.runtime, self.allowed.of(chosen[left])
        vectors = take_rows(runtime, queries, chosen[left].tolist())
        found = DenseHits.empty(runtime, left.size, int(hits.ids.shape[1]))
        self._exhaustively(self._read(vectors, allowed, found), allowed)
        for mine, theirs in zip(hits, found, strict=True):
            put_rows(runtime, mine, left.tolist(), theirs)
        return allowed.total(left.size, self.corpus.rows)

    def _is_bound_worth_it(self, allowed: Allowed) -> bool:
        """Whether candidates can be kept in shared memory and are fewer than the rows there are."""
        n = self.corpus.rows
        longest = allowed.most_rows(n)
        is_short = allowed.indptr is not None and longest < n // SHORT_LIST
        return (
            self.width <= self.sizes.widest and self.width < longest and not is_short and self.corpus.dim <= MOST_DIMS
        )

    def _read(self, vectors: DeviceArray, allowed: Allowed, hits: DenseHits) -> _Queries:
        count = int(vectors.shape[0])
        status = self.runtime.empty(count, np.int32)
        norms = _check(self.runtime, vectors, self.corpus.cosine, status)
        may_hit = allowed.upload(self.runtime) if self.shared is None else self.shared
        return _Queries(count, vectors, norms, status, may_hit, hits)

    # ---- By the bound ------------------------------------------------------------------------------------------

    def _by_bound(self, queries: _Queries) -> DeviceArray:
        """Hits, and whether each query's are proven; returns how many candidates of each were scored."""
        tile_rows = min(max(self.sizes.tile_rows, self.sizes.tile_scores // queries.count), self.corpus.rows)
        scores = self.runtime.empty(queries.count * tile_rows, np.float32)
        lists = _Lists(self.runtime, queries.count, self._splits(queries.count, tile_rows), self.width)
        tile_of, mask_of = self._tiles_as_float32(tile_rows), self._tile_masks(queries, tile_rows)
        for first, rows in self._tiles(self.corpus.rows, tile_rows):
            out = scores[: queries.count * rows]
            self.runtime.matmul(queries.vectors, tile_of(first, rows), out.reshape((queries.count, rows)))
            self._select(queries, out, first, rows, mask_of(first, rows), lists)
        return self._rank_candidates(queries, lists.merged())

    def _select(
        self, queries: _Queries, scores: DeviceArray, first: int, rows: int, mask: _TileMask, lists: _Lists
    ) -> None:
        corpus, bound = self.corpus, Bound.of(self.corpus.dim)
        arguments = [scores, np.int32(rows), np.int64(first), queries.norms, corpus.norms]
        lists.launch("dense_select_f32", [*arguments, np.int32(corpus.cosine), *bound, *mask])

    def _rank_candidates(self, queries: _Queries, bounds: DeviceArray) -> DeviceArray:
        length = _power_of_two(self.width)
        keys = self.runtime.empty(queries.count * length, np.uint64)
        self._rescore(queries, [bounds, np.int32(self.width), None, None, np.int32(0)], 0, keys, length, 0, length)
        sorts = length <= self.sizes.sort_chunk
        if not sorts:
            self._sort(keys, queries.count, length)
        rescored = self.runtime.empty(queries.count, np.int64)
        self._emit(queries, keys, length, sorts, bounds, rescored)
        return rescored

    def _tiles_as_float32(self, tile_rows: int) -> _TileReader:
        """Slices of a float32 corpus, or copies of one of 16 bits: a matrix product takes one type."""
        corpus, runtime = self.corpus, self.runtime
        if corpus.suffix == "f32":
            return lambda first, rows: corpus.vectors[first : first + rows]
        wide = runtime.empty((tile_rows, corpus.dim), np.float32)

        def widen(first: int, rows: int) -> DeviceArray:
            count = rows * corpus.dim
            arguments = [corpus.vectors[first : first + rows], np.int64(count), wide]
            runtime.launch(f"dense_widen_{corpus.suffix}", blocks(count, THREADS), THREADS, arguments)
            return wide[:rows]

        return widen

    def _tile_masks(self, queries: _Queries, tile_rows: int) -> _MaskReader:
        allowed, runtime, n = queries.allowed, self.runtime, self.corpus.rows
        if allowed.indptr is None:
            return lambda first, rows: _TileMask.of(allowed, n, first)
        lists = 1 if allowed.shared else queries.count
        mask = runtime.empty(lists * tile_rows, np.uint8)

        def fill(first: int, rows: int) -> _TileMask:
            arguments = [allowed.indptr, allowed.ids, np.int64(first), np.int32(rows), mask]
            runtime.launch("dense_mask_ids", lists, THREADS, arguments)
            return _TileMask(mask, np.int64(0 if allowed.shared else rows), np.int64(0))

        return fill

    # ---- Every allowed row ---------------------------------------------------------------------------------------

    def _exhaustively(self, queries: _Queries, allowed: Allowed) -> None:
        rows = allowed.most_rows(self.corpus.rows)
        if self.k <= self.sizes.widest:
            self._keep_all(queries, rows)
        else:
            self._sort_all(queries, rows)

    def _keep_all(self, queries: _Queries, rows: int) -> None:
        """Tile by tile past running lists."""
        columns = max(1, min(self.sizes.tile_rows, rows))
        keys = self.runtime.empty(queries.count * columns, np.uint64)
        lists = _Lists(self.runtime, queries.count, self._splits(queries.count, columns), self.k)
        for first, count in self._tiles(rows, columns):
            self._score(queries, first, count, keys, columns, 0, columns)
            lists.keep(keys, columns)
        self._emit(queries, lists.merged(), self.k)

    def _sort_all(self, queries: _Queries, rows: int) -> None:
        """Tile by tile behind the best k so far, all sorted together."""
        length, columns = self.length, self.length - self.k
        keys = self.runtime.zeros(queries.count * length, np.uint64)
        for first, count in self._tiles(rows, columns):
            self._score(queries, first, count, keys, length, self.k, columns)
            self._sort(keys, queries.count, length)
        self._emit(queries, keys, length)

    def _score(
        self, queries: _Queries, first: int, rows: int, keys: DeviceArray, stride: int, begin: int, columns: int
    ) -> None:
        """Canonical keys of rows, or of positions in id lists, from ``first`` on."""
        allowed, corpus = queries.allowed, self.corpus
        if allowed.indptr is not None:
            lists = [None, np.int32(0), allowed.indptr, allowed.ids, np.int32(allowed.shared)]
            self._rescore(queries, lists, first, keys, stride, begin, columns)
            return
        arguments = [corpus.vectors[first : first + rows], corpus.norms[first : first + rows], np.int32(rows)]
        arguments += [np.int64(first), *self._query_arguments(queries), *_TileMask.of(allowed, corpus.rows, first)]
        arguments += [keys, np.int64(stride), np.int64(begin), np.int32(columns)]
        grid = blocks(columns, ROWS_PER_BLOCK) * blocks(queries.count, _QUERIES_PER_ROW)
        self.runtime.launch(f"dense_score_{corpus.suffix}", grid, THREADS, arguments)

    # ---- Launches --------------------------------------------------------------------------------------------------

    def _rescore(
        self, queries: _Queries, listed: list[Any], first: int, keys: DeviceArray, stride: int, begin: int, columns: int
    ) -> None:
        corpus = self.corpus
        arguments = [corpus.vectors, corpus.norms, *self._query_arguments(queries), *listed, np.int64(first)]
        arguments += [keys, np.int64(stride), np.int64(begin), np.int32(columns)]
        grid = blocks(columns, ROWS_PER_BLOCK) * queries.count
        self.runtime.launch(f"dense_rescore_{corpus.suffix}", grid, THREADS, arguments)

    def _query_arguments(self, queries: _Queries) -> list[Any]:
        numbers = (queries.count, self.corpus.dim, self.corpus.cosine)
        return [queries.vectors, queries.norms, *(np.int32(number) for number in numbers)]

    def _sort(self, keys: DeviceArray, queries: int, length: int) -> None:
        """Sort each query's keys, a power of two of them, descending."""
        chunk = min(length, self.sizes.sort_chunk)
        self._sort_chunks(keys, queries, length, chunk, 2, chunk)
        size = 2 * chunk
        while size <= length:
            distance = size // 2
            while distance >= chunk:
                pairs = queries * length // 2
                arguments = [keys, np.int64(pairs), np.int64(length), np.int64(size), np.int64(distance)]
                self.runtime.launch("dense_sort_step_u64", blocks(pairs, THREADS), THREADS, arguments)
                distance //= 2
            self._sort_chunks(keys, queries, length, chunk, size, size)
            size *= 2

    def _sort_chunks(self, keys: DeviceArray, queries: int, length: int, chunk: int, first: int, last: int) -> None:
        arguments = [keys, np.int64(length), np.int32(chunk), np.int64(first), np.int64(last)]
        self.runtime.launch("dense_sort_chunk_u64", queries * length // chunk, THREADS, arguments, 8 * chunk)

    def _emit(
        self,
        queries: _Queries,
        keys: DeviceArray,
        stride: int,
        sorts: bool = False,
        bounds: DeviceArray | None = None,
        rescored: DeviceArray | None = None,
    ) -> None:
        hits, columns = queries.hits, int(queries.hits.ids.shape[1])
        arguments = [keys, np.int64(stride), np.int32(sorts), np.int64(self.k), np.int64(columns)]
        arguments += [bounds, np.int32(self.width), queries.status, *hits, rescored]
        self.runtime.launch("topk_emit", queries.count, _SELECT_THREADS, arguments, 8 * stride if sorts else 16)

    def _splits(self, queries: int, columns: int) -> int:
        return max(1, min(self.sizes.split_blocks // queries, columns // self.sizes.split_rows))

    @staticmethod
    def _tiles(rows: int, tile_rows: int) -> Iterator[tuple[int, int]]:
        for first in range(0, rows, tile_rows):
            yield first, min(tile_rows, rows - first)


def _power_of_two(least: int) -> int:
    return 1 << max(1, (least - 1).bit_length())
