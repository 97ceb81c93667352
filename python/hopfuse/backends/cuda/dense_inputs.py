"""What a dense search on a device reads: the corpus that stays there, which rows may be hits, a product's bound."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...types import Corpus
from ..arguments import DENSE_SUFFIXES
from .residents import require, resident_key
from .runtime import DeviceArray, Runtime, blocks

MOST_ROWS = 2**31 - 1
"""Rows that a key has room for."""
THREADS, ROWS_PER_BLOCK = 256, 16
UNIT = 2.0**-24


class Allowed(NamedTuple):
    """Which rows may be hits, on the host or uploaded, as :func:`.dense.dense_topk` takes it."""

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

    def of(self, chosen: NDArray[np.int64]) -> Allowed:
        """The part that concerns some queries."""
        if self.shared:
            return self
        if self.indptr is None:
            return self._replace(mask=np.ascontiguousarray(self.mask[chosen]))
        lists = [self.ids[self.indptr[b] : self.indptr[b + 1]] for b in chosen]
        indptr = np.zeros(chosen.size + 1, np.int64)
        np.cumsum([part.size for part in lists], out=indptr[1:])
        return self._replace(indptr=indptr, ids=np.concatenate(lists))

    def upload(self, runtime: Runtime) -> Allowed:
        def copy(array: Any) -> DeviceArray | None:
            return None if array is None else runtime.upload(array)

        return Allowed(copy(self.mask), copy(self.indptr), copy(self.ids), self.shared)


class Resident(NamedTuple):
    """A corpus on a device."""

    runtime: Runtime  # held, so that no other runtime gets its id
    vectors: DeviceArray  # (N, d) float32, or float16 and bfloat16 by their bits
    norms: DeviceArray  # (N,) canonical
    rows: int
    dim: int
    cosine: bool
    suffix: str


def resident(runtime: Runtime, corpus: Corpus) -> Resident:
    """The corpus where the runtime can read it, uploaded at its first search there."""
    key = resident_key(runtime)
    if key not in corpus._prepared:
        if corpus.num_vectors > MOST_ROWS:
            raise InputError(f"the corpus has {corpus.num_vectors} rows; a device searches up to {MOST_ROWS}")
        suffix = DENSE_SUFFIXES[corpus.precision]
        require(runtime, corpus.vectors.nbytes + 4 * corpus.num_vectors, "the corpus")
        with runtime.resident():
            vectors = runtime.upload(corpus.vectors if suffix == "f32" else corpus.vectors.view(np.uint16))
            norms = runtime.empty(corpus.num_vectors, np.float32)
            arguments = [vectors, np.int64(corpus.num_vectors), np.int32(corpus.dim), norms]
            runtime.launch(f"dense_norms_{suffix}", blocks(corpus.num_vectors, ROWS_PER_BLOCK), THREADS, arguments)
        corpus._prepared[key] = Resident(
            runtime, vectors, norms, corpus.num_vectors, corpus.dim, corpus.metric == "cosine", suffix
        )
    resident: Resident = corpus._prepared[key]
    return resident


class Bound(NamedTuple):
    """What a matrix product's dot may differ by from the canonical one; derived at dense_select_f32.

    It holds for float32 products and sums in any order, not for narrower ones such as TF32.
    """

    slack: np.float32
    norm_floor: np.float32
    underflow: np.float32

    @classmethod
    def of(cls, dim: int) -> Bound:
        n = dim + 8
        gamma = n * UNIT / (1 - n * UNIT)
        slack = 1.01 * (2 * gamma + 8 * UNIT * (1 + gamma)) * (1 + gamma) ** 2
        values = (slack, math.sqrt(n) * 2.0**-74, 8 * n * 2.0**-126)
        return cls(*(np.nextafter(np.float32(value), np.float32(np.inf)) for value in values))
