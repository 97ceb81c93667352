"""Exact dense top-k on a device: a matrix product finds candidates, canonical scores rank them, a bound proves them.

Queries whose list the bound cannot prove, and searches where it would rule out nothing, score every allowed row
canonically. The kernels and the bound's derivation are in ``kernels/cuda/topk.cu`` and ``dense_topk.cu``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...types import Corpus
from .runtime import DeviceArray, Runtime, blocks

MOST_ROWS = 2**31 - 1
"""Rows that a key has room for."""
MOST_DIMS = 2**20
"""Dimensions up to which the bound is worth a matrix product."""
SHORT_LIST = 8
"""Id lists below a part of the corpus this small are scored row by row."""

_SELECT_THREADS, _SELECT_STEP = 128, 512
_THREADS, _ROWS_PER_BLOCK, _QUERIES_PER_ROW = 256, 16, 4
_UNIT = 2.0**-24


@dataclass(frozen=True)
class Sizes:
    """Units of work; no answer depends on them.

    Attributes
    ----------
    tile_rows : int
        Corpus rows whose scores are held at a time.
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
    batch: int = 512
    split_rows: int = 1 << 10
    split_blocks: int = 264
    widest: int = 1 << 11
    sort_chunk: int = 1 << 12
    sort_keys: int = 1 << 25


def dense_topk(
    runtime: Runtime,
    queries: NDArray[np.float32],
    corpus: Corpus,
    k: int,
    *,
    mask: NDArray[np.uint8] | None,
    indptr: NDArray[np.int64] | None,
    ids: NDArray[np.int64] | None,
    shared: bool,
    sizes: Sizes | None = None,
) -> tuple[dict[str, Any], int]:
    """ids, scores and counts of the k best rows for each query, and how many rows were scored canonically."""
    batch = queries.shape[0]
    hits: dict[str, Any] = {
        "ids": np.full((batch, k), -1, np.int64),
        "scores": np.full((batch, k), -np.inf, np.float32),
        "counts": np.zeros(batch, np.int64),
    }
    allowed = _Allowed(mask, indptr, ids, shared)
    k = min(k, allowed.most_rows(corpus.num_vectors))
    if not (batch and k):
        return hits, 0
    search = _Search(runtime, _resident(runtime, corpus), allowed, k, sizes or Sizes())
    return hits, sum(search.run(queries, chosen, hits) for chosen in search.batches(batch))


class _Allowed(NamedTuple):
    """Which rows may be hits, on the host or uploaded, as :func:`dense_topk` takes it."""

    mask: Any
    indptr: Any
    ids: Any
    shared: bool

    def most_rows(self, n: int) -> int:
        """Rows that the least restricted query may have."""
        return n if self.indptr is None else int(np.diff(self.indptr).max(initial=0))

    def total(self, queries: int, n: int) -> int:
        """Allowed rows of so many queries together."""
        each = queries if self.shared else 1
        if self.indptr is not None:
            return each * int(self.indptr[-1])
        return each * int(np.count_nonzero(self.mask)) if self.mask is not None else queries * n

    def of(self, chosen: NDArray[np.int64]) -> _Allowed:
        """The part that concerns some queries."""
        if self.shared:
            return self
        if self.indptr is None:
            return self._replace(mask=np.ascontiguousarray(self.mask[chosen]))
        lists = [self.ids[self.indptr[b] : self.indptr[b + 1]] for b in chosen]
        indptr = np.zeros(chosen.size + 1, np.int64)
        np.cumsum([part.size for part in lists], out=indptr[1:])
        return self._replace(indptr=indptr, ids=np.concatenate(lists))

    def upload(self, runtime: Runtime) -> _Allowed:
        def copy(array: Any) -> DeviceArray | None:
            return None if array is None else runtime.upload(array)

        return _Allowed(copy(self.mask), copy(self.indptr), copy(self.ids), self.shared)


class _Resident(NamedTuple):
    """A corpus on a device."""

    runtime: Runtime  # held, so that no other runtime gets its id
    vectors: DeviceArray  # (N, d) float32, or float16 by its bits
    norms: DeviceArray  # (N,) canonical
    rows: int
    dim: int
    cosine: bool
    suffix: str


def _resident(runtime: Runtime, corpus: Corpus) -> _Resident:
    """The corpus where the runtime can read it, uploaded at its first search there."""
    key = f"{runtime.name}:{id(runtime)}"
    if key not in corpus._prepared:
        if corpus.num_vectors > MOST_ROWS:
            raise InputError(f"the corpus has {corpus.num_vectors} rows; a device searches up to {MOST_ROWS}")
        is_half = corpus.storage == "float16"
        vectors = runtime.upload(corpus.vectors.view(np.uint16) if is_half else corpus.vectors)
        suffix = "f16" if is_half else "f32"
        norms = _norms(runtime, vectors, corpus.num_vectors, corpus.dim, suffix)
        corpus._prepared[key] = _Resident(
            runtime, vectors, norms, corpus.num_vectors, corpus.dim, corpus.metric == "cosine", suffix
        )
    resident: _Resident = corpus._prepared[key]
    return resident


def _norms(runtime: Runtime, vectors: DeviceArray, count: int, dim: int, suffix: str) -> DeviceArray:
    norms = runtime.empty(count, np.float32)
    arguments = [vectors, np.int64(count), np.int32(dim), norms]
    runtime.launch(f"dense_norms_{suffix}", blocks(count, _ROWS_PER_BLOCK), _THREADS, arguments)
    return norms


class _Bound(NamedTuple):
    """What a matrix product's dot may differ by from the canonical one; derived at dense_select_f32.

    It holds for float32 products and sums in any order, not for narrower ones such as TF32.
    """

    slack: np.float32
    norm_floor: np.float32
    underflow: np.float32

    @classmethod
    def of(cls, dim: int) -> _Bound:
        n = dim + 8
        gamma = n * _UNIT / (1 - n * _UNIT)
        slack = 1.01 * (2 * gamma + 8 * _UNIT * (1 + gamma)) * (1 + gamma) ** 2
        values = (slack, math.sqrt(n) * 2.0**-74, 8 * n * 2.0**-126)
        return cls(*(np.nextafter(np.float32(value), np.float32(np.inf)) for value in values))


class _Hits(NamedTuple):
    ids: NDArray[np.int64]
    scores: NDArray[np.float32]
    counts: NDArray[np.int64]


class _TileMask(NamedTuple):
    """A kernel's mask arguments: bytes, from one query's to the next, and where the tile begins."""

    mask: DeviceArray | None
    stride: np.int64
    first: np.int64

    @classmethod
    def of(cls, allowed: _Allowed, n: int, first: int) -> _TileMask:
        return cls(allowed.mask, np.int64(0 if allowed.shared else n), np.int64(first))


_TileReader = Callable[[int, int], DeviceArray]
_MaskReader = Callable[[int, int], _TileMask]


@dataclass(frozen=True)
class _Queries:
    """A batch on the device, with what it may hit there."""

    count: int
    vectors: DeviceArray
    norms: DeviceArray
    allowed: _Allowed


class _Lists:
    """Running lists, (queries, splits, width), of the best keys streamed past them."""

    def __init__(self, runtime: Runtime, queries: int, splits: int, width: int) -> None:
        self.runtime, self.queries, self.splits, self.width = runtime, queries, splits, width
        self.room = _power_of_two(width + max(width, _SELECT_STEP))
        self.keys = runtime.empty(queries * splits * width, np.uint64)
        _clear(runtime, self.keys, queries * splits * width)

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

    def __init__(self, runtime: Runtime, corpus: _Resident, allowed: _Allowed, k: int, sizes: Sizes) -> None:
        self.runtime, self.corpus, self.allowed, self.k, self.sizes = runtime, corpus, allowed, k, sizes
        self.shared = allowed.upload(runtime) if allowed.shared else None
        # Candidates beyond k: rows within the bound of the k-th, and rounding may have moved some of them.
        self.width = k + k // 8 + 32
        self.length = _power_of_two(k + min(corpus.rows, max(sizes.tile_rows, k)))

    def batches(self, count: int) -> Iterator[NDArray[np.int64]]:
        """The queries that are searched together."""
        size = self.sizes.batch
        if self.k > self.sizes.widest:
            size = min(size, max(1, self.sizes.sort_keys // self.length))
        for begin in range(0, count, size):
            yield np.arange(begin, min(begin + size, count))

    def run(self, queries: NDArray[np.float32], chosen: NDArray[np.int64], hits: dict[str, Any]) -> int:
        """Write the hits of the chosen queries; return the rows scored canonically."""
        rescored = 0
        allowed = self.allowed.of(chosen)
        if self._is_bound_worth_it(allowed):
            found, complete, rescored = self._by_bound(self._upload(queries[chosen], allowed))
            self._write(found, chosen[complete], complete, hits)
            if complete.all():
                return rescored
            chosen = chosen[~complete]
            allowed = self.allowed.of(chosen)
        found = self._exhaustively(self._upload(queries[chosen], allowed), allowed)
        self._write(found, chosen, np.ones(chosen.size, np.bool_), hits)
        return rescored + allowed.total(chosen.size, self.corpus.rows)

    def _is_bound_worth_it(self, allowed: _Allowed) -> bool:
        """Whether candidates can be kept in shared memory and are fewer than the rows there are."""
        n = self.corpus.rows
        longest = allowed.most_rows(n)
        is_short = allowed.indptr is not None and longest < n // SHORT_LIST
        return (
            self.width <= self.sizes.widest and self.width < longest and not is_short and self.corpus.dim <= MOST_DIMS
        )

    def _upload(self, vectors: NDArray[np.float32], allowed: _Allowed) -> _Queries:
        count, dim = vectors.shape
        on_device = self.runtime.upload(vectors)
        norms = _norms(self.runtime, on_device, count, dim, "f32")
        may_hit = allowed.upload(self.runtime) if self.shared is None else self.shared
        return _Queries(count, on_device, norms, may_hit)

    def _write(self, found: _Hits, chosen: NDArray[np.int64], rows: NDArray[np.bool_], hits: dict[str, Any]) -> None:
        hits["ids"][chosen, : self.k] = found.ids[rows]
        hits["scores"][chosen, : self.k] = found.scores[rows]
        hits["counts"][chosen] = found.counts[rows]

    # ---- By the bound ------------------------------------------------------------------------------------------

    def _by_bound(self, queries: _Queries) -> tuple[_Hits, NDArray[np.bool_], int]:
        """Hits, whether each query's are proven, and the candidates that were scored."""
        tile_rows = min(self.sizes.tile_rows, self.corpus.rows)
        scores = self.runtime.empty(queries.count * tile_rows, np.float32)
        lists = _Lists(self.runtime, queries.count, self._splits(queries.count, tile_rows), self.width)
        tile_of, mask_of = self._tiles_as_float32(tile_rows), self._tile_masks(queries, tile_rows)
        for first, rows in self._tiles(self.corpus.rows, tile_rows):
            out = scores[: queries.count * rows]
            self.runtime.matmul(queries.vectors, tile_of(first, rows), out.reshape((queries.count, rows)))
            self._select(queries, out, first, rows, mask_of(first, rows), lists)
        bounds = lists.merged()
        return self._rank_candidates(queries, bounds)

    def _select(
        self, queries: _Queries, scores: DeviceArray, first: int, rows: int, mask: _TileMask, lists: _Lists
    ) -> None:
        corpus, bound = self.corpus, _Bound.of(self.corpus.dim)
        arguments = [scores, np.int32(rows), np.int64(first), queries.norms, corpus.norms]
        lists.launch("dense_select_f32", [*arguments, np.int32(corpus.cosine), *bound, *mask])

    def _rank_candidates(self, queries: _Queries, bounds: DeviceArray) -> tuple[_Hits, NDArray[np.bool_], int]:
        length = _power_of_two(self.width)
        keys = self.runtime.empty(queries.count * length, np.uint64)
        self._rescore(queries, [bounds, np.int32(self.width), None, None, np.int32(0)], 0, keys, length, 0, length)
        self._sort(keys, queries.count, length)
        complete = self.runtime.empty(queries.count, np.int32)
        rescored = self.runtime.empty(queries.count, np.int64)
        found = self._emit(queries.count, keys, length, bounds, complete, rescored)
        proven = self.runtime.download(complete).astype(np.bool_)
        return found, proven, int(self.runtime.download(rescored).sum())

    def _tiles_as_float32(self, tile_rows: int) -> _TileReader:
        """Slices of a float32 corpus, or copies of a float16 one: a matrix product takes one type."""
        corpus, runtime = self.corpus, self.runtime
        if corpus.suffix == "f32":
            return lambda first, rows: corpus.vectors[first : first + rows]
        wide = runtime.empty((tile_rows, corpus.dim), np.float32)

        def widen(first: int, rows: int) -> DeviceArray:
            count = rows * corpus.dim
            arguments = [corpus.vectors[first : first + rows], np.int64(count), wide]
            runtime.launch("dense_widen_f16", blocks(count, _THREADS), _THREADS, arguments)
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
            runtime.launch("dense_mask_ids", lists, _THREADS, arguments)
            return _TileMask(mask, np.int64(0 if allowed.shared else rows), np.int64(0))

        return fill

    # ---- Every allowed row ---------------------------------------------------------------------------------------

    def _exhaustively(self, queries: _Queries, allowed: _Allowed) -> _Hits:
        rows = allowed.most_rows(self.corpus.rows)
        if self.k <= self.sizes.widest:
            return self._keep_all(queries, rows)
        return self._sort_all(queries, rows)

    def _keep_all(self, queries: _Queries, rows: int) -> _Hits:
        """Tile by tile past running lists."""
        columns = max(1, min(self.sizes.tile_rows, rows))
        keys = self.runtime.empty(queries.count * columns, np.uint64)
        lists = _Lists(self.runtime, queries.count, self._splits(queries.count, columns), self.k)
        for first, count in self._tiles(rows, columns):
            self._score(queries, first, count, keys, columns, 0, columns)
            lists.keep(keys, columns)
        return self._emit(queries.count, lists.merged(), self.k)

    def _sort_all(self, queries: _Queries, rows: int) -> _Hits:
        """Tile by tile behind the best k so far, all sorted together."""
        length, columns = self.length, self.length - self.k
        keys = self.runtime.empty(queries.count * length, np.uint64)
        _clear(self.runtime, keys, queries.count * length)
        for first, count in self._tiles(rows, columns):
            self._score(queries, first, count, keys, length, self.k, columns)
            self._sort(keys, queries.count, length)
        return self._emit(queries.count, keys, length)

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
        grid = blocks(columns, _ROWS_PER_BLOCK) * blocks(queries.count, _QUERIES_PER_ROW)
        self.runtime.launch(f"dense_score_{corpus.suffix}", grid, _THREADS, arguments)

    # ---- Launches --------------------------------------------------------------------------------------------------

    def _rescore(
        self, queries: _Queries, listed: list[Any], first: int, keys: DeviceArray, stride: int, begin: int, columns: int
    ) -> None:
        corpus = self.corpus
        arguments = [corpus.vectors, corpus.norms, *self._query_arguments(queries), *listed, np.int64(first)]
        arguments += [keys, np.int64(stride), np.int64(begin), np.int32(columns)]
        grid = blocks(columns, _ROWS_PER_BLOCK) * queries.count
        self.runtime.launch(f"dense_rescore_{corpus.suffix}", grid, _THREADS, arguments)

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
                self.runtime.launch("dense_sort_step_u64", blocks(pairs, _THREADS), _THREADS, arguments)
                distance //= 2
            self._sort_chunks(keys, queries, length, chunk, size, size)
            size *= 2

    def _sort_chunks(self, keys: DeviceArray, queries: int, length: int, chunk: int, first: int, last: int) -> None:
        arguments = [keys, np.int64(length), np.int32(chunk), np.int64(first), np.int64(last)]
        self.runtime.launch("dense_sort_chunk_u64", queries * length // chunk, _THREADS, arguments, 8 * chunk)

    def _emit(
        self,
        queries: int,
        keys: DeviceArray,
        stride: int,
        bounds: DeviceArray | None = None,
        complete: DeviceArray | None = None,
        rescored: DeviceArray | None = None,
    ) -> _Hits:
        runtime, k = self.runtime, self.k
        ids, scores = runtime.empty((queries, k), np.int64), runtime.empty((queries, k), np.float32)
        counts = runtime.empty(queries, np.int64)
        arguments = [keys, np.int64(stride), np.int64(k), bounds, np.int32(self.width)]
        arguments += [ids, scores, counts, complete, rescored]
        runtime.launch("topk_emit", queries, _SELECT_THREADS, arguments)
        return _Hits(runtime.download(ids), runtime.download(scores), runtime.download(counts))

    def _splits(self, queries: int, columns: int) -> int:
        return max(1, min(self.sizes.split_blocks // queries, columns // self.sizes.split_rows))

    @staticmethod
    def _tiles(rows: int, tile_rows: int) -> Iterator[tuple[int, int]]:
        for first in range(0, rows, tile_rows):
            yield first, min(tile_rows, rows - first)


def _power_of_two(least: int) -> int:
    return 1 << max(1, (least - 1).bit_length())


def _clear(runtime: Runtime, keys: DeviceArray, count: int) -> None:
    runtime.launch("dense_clear_u64", blocks(count, _THREADS), _THREADS, [keys, np.int64(count)])
