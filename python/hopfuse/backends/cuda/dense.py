"""Exact dense top-k on a device: a matrix product finds candidates, canonical scores rank them, a bound proves them.

Every allowed row is scored canonically for queries that the bound cannot prove, and in searches where it would rule out
nothing. The kernels and the derivation of the bound are in ``kernels/cuda/topk.cu`` and ``dense_topk.cu``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...types import Corpus
from ..calls import DENSE_SUFFIXES, DenseCall, RowFilter
from .arguments import DOT_BOUND, LISTED, QUERIES, TILE_MASK, Arguments
from .residents import require, resident_key
from .runtime import DeviceArray, Runtime, blocks, put_rows, take_rows
from .selection import Lists, Selection, Sizes, TopkHits, key_columns, power_of_two, tiles

__all__ = ["Sizes", "dense_topk"]

MAX_ROWS = 2**31 - 1
"""The most rows that a key can number."""
THREADS, ROWS_PER_BLOCK = 256, 16
UNIT = 2.0**-24
MAX_DIMS = 2**20
"""The most dimensions for which the bound justifies a matrix product."""
SHORT_LIST = 8
"""Id lists shorter than N / SHORT_LIST are scored row by row."""

QUERIES_PER_ROW = 4
#: Rows, as many as threads, and queries of a block of dense_product, and the dimensions that it multiplies at a time.
PRODUCT_ROWS, PRODUCT_QUERIES, PRODUCT_DEPTH = 128, {"f32": 64, "f16": 32, "bf16": 32}, 32
#: The largest relative error of rounding to a type of rows.
LAST_BIT = {"f16": 2.0**-11, "bf16": 2.0**-8}
#: The assumed error of a matrix unit's step of 16 products, relative to the sum of all magnitudes.
STEP_ERROR = 2.0**-17


class Found(NamedTuple):
    """The k best rows for each query on the device, the number of rows scored canonically, and what was read back.

    In a capture (:attr:`.Runtime.fixed`) a query that the bound cannot prove keeps its status, and rows are not
    counted.
    """

    hits: TopkHits
    rescored: int
    read: TopkHits | None = None


def dense_topk(runtime: Runtime, call: DenseCall, sizes: Sizes | None = None) -> Found:
    """Find the k best rows for each query."""
    queries, corpus, k, allowed = call.queries, call.corpus, call.k, call.allow
    batch = int(queries.shape[0])
    kept = min(k, allowed.max_rows(corpus.num_vectors))
    if not (batch and kept):
        hits = TopkHits.without_hits(runtime, batch, k)
        if batch:
            norms = runtime.empty(batch, np.float32)
            check_queries(runtime, queries, corpus.metric == "cosine", norms, hits.status)
        return Found(hits, 0)
    hits = TopkHits.empty(runtime, batch, k)
    search = _Search(runtime, resident(runtime, corpus), allowed, kept, sizes or Sizes())
    batches = list(search.sizes.batches(batch, kept, corpus.num_vectors))
    if len(batches) == 1:
        return search.run(queries, 0, batch, hits, reads=not call.on_device)
    return Found(hits, sum(search.run(queries, begin, end, hits.rows(begin, end)).rescored for begin, end in batches))


def check_queries(
    runtime: Runtime, queries: DeviceArray, cosine: bool, norms: DeviceArray, status: DeviceArray
) -> None:
    """Write the canonical norms of the queries, and their errors to ``status``."""
    count, dim = queries.shape
    arguments = [queries, np.int64(count), np.int32(dim), np.int32(cosine), norms, status]
    runtime.launch("dense_queries_f32", blocks(count, ROWS_PER_BLOCK), THREADS, arguments)


def _tile_mask(mask: DeviceArray | None, shared: bool, stride: int, first: int) -> Arguments:
    """Return the mask of a tile: the bytes, the stride between queries, and the first row of the tile."""
    return TILE_MASK(bytes=mask, stride=0 if shared else stride, first=first)


_MaskReader = Callable[[int, int], Arguments]


@dataclass(frozen=True)
class _Queries:
    """A batch on the device, with its filter and the arrays for its hits."""

    count: int
    vectors: DeviceArray
    norms: DeviceArray
    status: DeviceArray
    allowed: RowFilter
    hits: TopkHits


class _Search:
    """A search of a resident corpus for k hits, with k at most the number of allowed rows."""

    def __init__(self, runtime: Runtime, corpus: Resident, allowed: RowFilter, k: int, sizes: Sizes) -> None:
        self.runtime, self.corpus, self.allowed, self.k, self.sizes = runtime, corpus, allowed, k, sizes
        self.shared = upload_filter(runtime, allowed) if allowed.shared else None
        # More candidates than k, because rounding may have moved rows whose scores are within the bound of the k-th.
        self.width = k + k // 8 + 32

    def run(self, queries: DeviceArray, begin: int, end: int, hits: TopkHits, *, reads: bool = False) -> Found:
        """Write the hits of queries begin .. end - 1, and read them back with their status if ``reads``."""
        chosen = np.arange(begin, end)
        allowed = self.allowed.of(chosen)
        if not self._is_bound_worth_it(allowed) or self._reads_once(end - begin):
            self._exhaustively(self._read(queries[begin:end], allowed, hits), allowed)
            return Found(hits, 0 if self.runtime.fixed else allowed.total(end - begin, self.corpus.rows))
        self._by_bound(self._read(queries[begin:end], allowed, hits))
        if self.runtime.fixed:
            return Found(hits, 0)
        wanted: Sequence[DeviceArray] = hits if reads else [hits.status, hits.rescored]
        read = self.runtime.download_all(wanted)
        status, rescored = read[-2:]
        count, left = int(rescored.sum()), np.flatnonzero(status == 0)
        if left.size:
            return Found(hits, count + self._widen(queries, chosen, left, hits))
        return Found(hits, count, TopkHits(*read) if reads else None)

    def _widen(self, queries: DeviceArray, chosen: NDArray[np.int64], left: NDArray[np.int64], hits: TopkHits) -> int:
        """Score every row for the queries ``left`` that the bound cannot prove."""
        runtime, allowed = self.runtime, self.allowed.of(chosen[left])
        vectors = take_rows(runtime, queries, chosen[left].tolist())
        found = TopkHits.empty(runtime, left.size, int(hits.ids.shape[1]))
        self._exhaustively(self._read(vectors, allowed, found), allowed)
        for mine, theirs in zip(hits[:4], found[:4], strict=True):
            put_rows(runtime, mine, left.tolist(), theirs)
        return allowed.total(left.size, self.corpus.rows)

    def _is_bound_worth_it(self, allowed: RowFilter) -> bool:
        """Return whether candidates fit in shared memory and are fewer than the allowed rows."""
        n = self.corpus.rows
        longest = allowed.max_rows(n)
        is_short = allowed.indptr is not None and longest < n // SHORT_LIST
        return self.width <= self.sizes.widest and self.width < longest and not is_short and self.corpus.dim <= MAX_DIMS

    def _reads_once(self, queries: int) -> bool:
        """Return whether to score all rows canonically."""
        return queries <= self.sizes.scored_at_once

    def _read(self, vectors: DeviceArray, allowed: RowFilter, hits: TopkHits) -> _Queries:
        count = int(vectors.shape[0])
        norms, status = self.runtime.empty_all([((count,), np.float32), ((count,), np.int32)])
        check_queries(self.runtime, vectors, self.corpus.cosine, norms, status)
        may_hit = upload_filter(self.runtime, allowed) if self.shared is None else self.shared
        return _Queries(count, vectors, norms, status, may_hit, hits)

    # ---- With the bound ----------------------------------------------------------------------------------------

    def _by_bound(self, queries: _Queries) -> None:
        """Write the hits and status of each query, and the number of candidates scored."""
        tile_rows = self._tile_rows(queries.count)
        scores = self.runtime.empty(queries.count * tile_rows, np.float32)
        splits = self.sizes.splits(queries.count, tile_rows)
        lists = Lists(self.runtime, queries.count, splits, self.width)
        mask_of = self._tile_masks(queries, tile_rows)
        for first, rows in tiles(self.corpus.rows, tile_rows):
            out = scores[: queries.count * rows]
            self._multiply(queries, first, rows, out)
            self._select(queries, out, first, rows, mask_of(first, rows), lists)
        self._rank_candidates(queries, lists.merged())

    def _tile_rows(self, queries: int) -> int:
        return min(max(self.sizes.tile_rows, self.sizes.tile_scores // queries), self.corpus.rows)

    def _multiply(self, queries: _Queries, first: int, rows: int, out: DeviceArray) -> None:
        """Write the dot products of a tile, (queries, rows), with errors that the bound covers."""
        corpus, tile = self.corpus, self.corpus.vectors[first : first + rows]
        floor = dot_bound(corpus.dim, corpus.suffix).values["norm_floor"]
        arguments = [tile, np.int64(rows), self._query_arguments(queries), floor, out]
        grid = blocks(rows, PRODUCT_ROWS) * blocks(queries.count, PRODUCT_QUERIES[corpus.suffix])
        self.runtime.launch(f"dense_product_{corpus.suffix}", grid, PRODUCT_ROWS, arguments)

    def _select(
        self, queries: _Queries, scores: DeviceArray, first: int, rows: int, mask: Arguments, lists: Lists
    ) -> None:
        corpus, bound = self.corpus, dot_bound(self.corpus.dim, self.corpus.suffix)
        arguments = [scores, np.int32(rows), np.int64(first), queries.norms, corpus.norms]
        lists.launch("dense_select_f32", [*arguments, np.int32(corpus.cosine), bound, mask])

    def _rank_candidates(self, queries: _Queries, bounds: DeviceArray) -> None:
        length = power_of_two(self.width)
        keys = self.runtime.empty(queries.count * length, np.uint64)
        candidates = LISTED(keys=bounds, width=self.width, indptr=None, ids=None, shared=False, first=0)
        self._rescore(queries, candidates, key_columns(keys, length, 0, length))
        selection, sorts = self._selection(queries), length <= self.sizes.sort_chunk
        if not sorts:
            selection.sort(keys, length)
        selection.emit(keys, length, sorts, bounds, self.width)

    def _tile_masks(self, queries: _Queries, tile_rows: int) -> _MaskReader:
        allowed, runtime, n = queries.allowed, self.runtime, self.corpus.rows
        if allowed.indptr is None:
            return lambda first, rows: _tile_mask(allowed.mask, allowed.shared, n, first)
        lists = 1 if allowed.shared else queries.count
        mask = runtime.empty(lists * tile_rows, np.uint8)

        def fill(first: int, rows: int) -> Arguments:
            arguments = [allowed.indptr, allowed.ids, np.int64(first), np.int32(rows), mask]
            runtime.launch("dense_mask_ids", lists, THREADS, arguments)
            return _tile_mask(mask, allowed.shared, rows, 0)

        return fill

    # ---- Every allowed row ---------------------------------------------------------------------------------------

    def _exhaustively(self, queries: _Queries, allowed: RowFilter) -> None:
        self._selection(queries).of_all(allowed.max_rows(self.corpus.rows), partial(self._score, queries))

    def _selection(self, queries: _Queries) -> Selection:
        return Selection(self.runtime, self.sizes, self.k, queries.status, queries.hits)

    def _score(self, queries: _Queries, first: int, rows: int, out: Arguments) -> None:
        """Write the canonical keys of rows, or of positions in id lists, from ``first`` on."""
        allowed, corpus = queries.allowed, self.corpus
        if allowed.indptr is not None:
            listed = LISTED(
                keys=None, width=0, indptr=allowed.indptr, ids=allowed.ids, shared=allowed.shared, first=first
            )
            self._rescore(queries, listed, out)
            return
        arguments = [corpus.vectors[first : first + rows], corpus.norms[first : first + rows], np.int32(rows)]
        mask = _tile_mask(allowed.mask, allowed.shared, corpus.rows, first)
        arguments += [np.int64(first), self._query_arguments(queries), mask, out]
        grid = blocks(out.values["columns"], ROWS_PER_BLOCK) * blocks(queries.count, QUERIES_PER_ROW)
        self.runtime.launch(f"dense_score_{corpus.suffix}", grid, THREADS, arguments)

    # ---- Launches --------------------------------------------------------------------------------------------------

    def _rescore(self, queries: _Queries, listed: Arguments, out: Arguments) -> None:
        corpus = self.corpus
        arguments = [corpus.vectors, corpus.norms, self._query_arguments(queries), listed, out]
        grid = blocks(out.values["columns"], ROWS_PER_BLOCK) * queries.count
        self.runtime.launch(f"dense_rescore_{corpus.suffix}", grid, THREADS, arguments)

    def _query_arguments(self, queries: _Queries) -> Arguments:
        return QUERIES(
            data=queries.vectors, norm=queries.norms, batch=queries.count, dim=self.corpus.dim,
            cosine=self.corpus.cosine,
        )  # fmt: skip


# ---- Inputs of a search: the resident corpus, its filter, the bound of a product -------------------------------------


def upload_filter(runtime: Runtime, rows: RowFilter) -> RowFilter:
    """Copy a filter to the device."""
    names = [name for name in ("mask", "indptr", "ids") if getattr(rows, name) is not None]
    there = runtime.upload_all([getattr(rows, name) for name in names])
    return RowFilter(**dict(zip(names, there, strict=True)), shared=rows.shared)


class Resident(NamedTuple):
    """A corpus on a device."""

    runtime: Runtime  # kept alive so that its id is not reused
    vectors: DeviceArray  # (N, d) float32, or float16 and bfloat16 by their bits
    norms: DeviceArray  # (N,) canonical
    rows: int
    dim: int
    cosine: bool
    suffix: str


def resident(runtime: Runtime, corpus: Corpus) -> Resident:
    """Return the corpus on the device; its first search uploads it."""
    key = resident_key(runtime)
    if key not in corpus.derived:
        if corpus.num_vectors > MAX_ROWS:
            raise InputError(
                "limit",
                "corpus",
                "{field} has {given:,} rows; a device searches up to {allowed:,}",
                given=corpus.num_vectors,
                allowed=MAX_ROWS,
            )
        suffix = DENSE_SUFFIXES[corpus.precision]
        given = corpus.vectors
        require(runtime, given.nbytes + 4 * corpus.num_vectors, "the corpus")
        with runtime.resident():
            vectors = runtime.upload(given if suffix == "f32" else given.view(np.uint16))
            norms = runtime.empty(corpus.num_vectors, np.float32)
            arguments = [vectors, np.int64(corpus.num_vectors), np.int32(corpus.dim), norms]
            runtime.launch(f"dense_norms_{suffix}", blocks(corpus.num_vectors, ROWS_PER_BLOCK), THREADS, arguments)
        corpus.derived[key] = Resident(
            runtime, vectors, norms, corpus.num_vectors, corpus.dim, corpus.metric == "cosine", suffix
        )
    resident: Resident = corpus.derived[key]
    return resident


class Bound(NamedTuple):
    """Bound of the difference between a matrix product's dot and the canonical one; derived at dense_select_f32.

    For float32 rows it holds for float32 products and sums in any order, but not for narrower types such as TF32. For
    16-bit rows it is that of matrix units (kernels/include/hopfuse/dense_topk.h).
    """

    slack: np.float32
    norm_floor: np.float32
    underflow: np.float32

    @classmethod
    def of(cls, dim: int, suffix: str) -> Bound:
        n = dim + 8
        gamma = _gamma(n)
        product = gamma if suffix == "f32" else _units_error(dim, LAST_BIT[suffix])
        slack = 1.01 * (gamma + product + 8 * UNIT * (1 + gamma + product)) * (1 + gamma) ** 2
        values = (slack, math.sqrt(n) * 2.0**-74, 8 * n * 2.0**-126)
        return cls(*(np.nextafter(np.float32(value), np.float32(np.inf)) for value in values))


@lru_cache(maxsize=64)
def dot_bound(dim: int, suffix: str) -> Arguments:
    """Return the bound for vectors of this dimension and type as kernels read it."""
    return DOT_BOUND(**Bound.of(dim, suffix)._asdict())


def _gamma(additions: int) -> float:
    """Return the bound of the relative error of this many float32 operations."""
    return additions * UNIT / (1 - additions * UNIT)


def _units_error(dim: int, last_bit: float) -> float:
    """Return h of kernels/include/hopfuse/dense_topk.h: the error of a matrix unit's dot product over both norms."""
    split = last_bit**2 + 2.0**-27 * math.sqrt(dim)
    return 1.01 * (2.02 * STEP_ERROR + split + _gamma(-(-dim // PRODUCT_DEPTH) + 1))
