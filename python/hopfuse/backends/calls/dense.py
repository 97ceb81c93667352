"""Exact dense top-k, and weights of vectors by their similarity to a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ..._arrays.rows import entries_of, indptr_of_counts
from ..._arrays.vectors import dense_types, vector_bits
from ...types.continued_corpus import ContinuedCorpus, CorpusPart
from ...types.hits import PAD_ID, PAD_SCORE
from ..call import Array, HitArrays
from ..cpu import record

if TYPE_CHECKING:
    from ...types import Corpus
    from ..cuda import DeviceOps

#: Suffixes of the names of kernels, by the precision of the vectors.
SUFFIXES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
_NO_CODES: dict[str, Any] = dict.fromkeys(("codes", "scale", "error", "norm_code", "norm"))


class RowFilter(NamedTuple):
    """A filter of rows: a mask (N,) or (B, N), or ascending ids in CSR rows, of which a shared filter has one."""

    mask: Array | None = None  # uint8
    indptr: Array | None = None  # int64
    ids: Array | None = None  # int64
    shared: bool = True

    @property
    def is_given(self) -> bool:
        """Return whether it leaves rows out."""
        return self.mask is not None or self.indptr is not None

    def masks(self, n: int) -> NDArray[np.bool_]:
        """Return one mask for all queries, (1, N), or one per query, (B, N)."""
        if self.mask is not None:
            return np.atleast_2d(self.mask.view(np.bool_))
        assert self.indptr is not None
        masks = np.zeros((self.indptr.size - 1, n), np.bool_)
        masks[np.repeat(np.arange(len(masks)), np.diff(self.indptr)), self.ids] = True
        return masks

    def of(self, queries: NDArray[np.int64]) -> RowFilter:
        """Return the filter of a subset of the queries."""
        if self.shared:
            return self
        if self.mask is not None:
            return self._replace(mask=np.ascontiguousarray(self.mask[queries]))
        assert self.indptr is not None
        assert self.ids is not None
        ids, counts = entries_of(self.indptr, self.ids, queries)
        return self._replace(indptr=indptr_of_counts(counts), ids=ids)

    def of_segment(self, segment: CorpusPart) -> RowFilter:
        """Return the filter of a corpus as a filter of its segment, which also leaves out what was removed from it."""
        rows, place, size = segment.rows, segment.place, segment.corpus.num_vectors
        if self.indptr is not None:
            assert self.ids is not None
            own = (self.ids >= rows.start) & (self.ids < rows.stop)
            kept = self.ids[own] - rows.start
            before = np.concatenate([[0], np.cumsum(own)])
            return RowFilter(None, before[self.indptr], kept if place is None else place[kept], self.shared)
        if place is None:
            return self if self.mask is None else self._replace(mask=np.ascontiguousarray(self.mask[..., rows]))
        if self.mask is None:
            return RowFilter(segment.mask)
        mask = np.zeros((*self.mask.shape[:-1], size), np.uint8)
        mask[..., place] = self.mask[..., rows]
        return self._replace(mask=mask)


class DenseCall(NamedTuple):
    """Find the k best allowed rows of a corpus for each query; ``allow`` is on the host.

    If not ``is_checked``, the corpus wraps an array for this call only: its codes are not worth keeping, and the
    backend checks its values.
    """

    queries: Array  # (B, d) float32
    corpus: Corpus
    k: int
    allow: RowFilter
    threads: int
    on_device: bool = False
    is_checked: bool = True

    def run_on_host(self, rescored: NDArray[np.int64] | None = None) -> HitArrays:
        """Return ids, scores and counts; set the numbers of rescored rows, if given."""
        corpus, batch = self.corpus, self.queries.shape[0]
        rescored, is_sound = np.zeros(batch, np.int64) if rescored is None else rescored, False
        if isinstance(corpus, ContinuedCorpus) and corpus.segments:
            hits, is_sound = _best_of_segments(self, corpus, rescored), True
        else:
            hits = {
                "ids": np.empty((batch, self.k), np.int64),
                "scores": np.empty((batch, self.k), np.float32),
                "counts": np.zeros(batch, np.int64),
            }
            if batch and self.k:
                mask, indptr, ids, shared = self.allow
                is_sound = _native.dense_topk(
                    vector_bits(corpus.vectors, corpus.precision),
                    type=dense_types()[corpus.precision],
                    cosine=corpus.metric == "cosine",
                    queries=self.queries,
                    k=self.k,
                    allow_mask=mask,
                    allow_indptr=indptr,
                    allow_ids=ids,
                    allow_shared=shared,
                    threads=self.threads,
                    rescored=rescored,
                    **(corpus.codes(self.threads) if self.is_checked else _NO_CODES),
                    **hits,
                )
                corpus.release()
        if not self.is_checked and (self.allow.is_given or not is_sound):  # otherwise the kernel has read every row
            corpus.checked()
            if not is_sound:
                return self._replace(is_checked=True).run_on_host(rescored)
        name = f"dense_topk_{SUFFIXES[corpus.precision]}"
        record(name, self.threads, storage=corpus.storage, queries=batch, rescored_rows=rescored)
        return hits

    def run_on_device(self, device: DeviceOps) -> HitArrays:
        corpus = self.corpus
        if not self.is_checked:
            corpus.checked()
        found = _native.device_dense_topk(
            device.queue(),
            device.corpus(corpus),
            queries=self.queries,
            k=self.k,
            **self.allow._asdict(),
            on_device=self.on_device,
        )
        how: dict[str, Any] = {"storage": corpus.storage}
        if corpus.storage == "int8":
            how["resident"] = f"the original vectors, in {corpus.precision}; the CPU has their 8-bit codes alone"
        name, rescored = f"dense_topk_{SUFFIXES[corpus.precision]}", found.pop("rescored_rows")
        device.record(name, **how, queries=self.queries.shape[0], rescored_rows=rescored)
        return found


def _best_of_segments(call: DenseCall, corpus: ContinuedCorpus, rescored: NDArray[np.int64]) -> HitArrays:
    """Return the k best rows of all segments, which are among the k best of each, and set ``rescored`` to the sums."""
    ids, scores, total = list[NDArray[np.int64]](), list[NDArray[np.float32]](), np.zeros_like(rescored)
    for segment in corpus.segments:
        k, rescored[:] = min(call.k, segment.corpus.num_vectors), 0
        own = call._replace(corpus=segment.corpus, k=k, allow=call.allow.of_segment(segment))
        found = own.run_on_host(rescored)
        is_valid = np.arange(k) < found["counts"][:, None]
        rows = found["ids"] if segment.place is None else np.searchsorted(segment.place, found["ids"])
        ids.append(np.where(is_valid, rows + segment.rows.start, PAD_ID))
        scores.append(np.where(is_valid, found["scores"], PAD_SCORE))
        total += rescored
    rescored[:] = total
    all_ids, all_scores = np.concatenate(ids, axis=1), np.concatenate(scores, axis=1)
    # ids ascend from segment to segment, and equal scores of a segment are in the order of ids
    best = np.argsort(-all_scores, axis=1, kind="stable")[:, : call.k]
    kept = np.take_along_axis(all_ids, best, axis=1)
    return {
        "ids": kept,
        "scores": np.take_along_axis(all_scores, best, axis=1),
        "counts": np.count_nonzero(kept != PAD_ID, axis=1),
    }


class SimilarityCall(NamedTuple):
    """Weigh all vectors by their cosines (kernels/include/hopfuse/similarity.h), (B, N); ``allow`` is on the host."""

    queries: Array  # (B, d) float32
    corpus: Corpus
    tau: float
    floor: float
    allow: RowFilter
    threads: int
    on_device: bool = False

    def run_on_host(self) -> NDArray[np.float32]:
        corpus, batch = self.corpus, self.queries.shape[0]
        if isinstance(corpus, ContinuedCorpus):  # the vectors that remain, as if the others were not allowed
            whole = corpus.concatenated
            found = self._replace(corpus=whole.corpus, allow=self.allow.of_segment(whole)).run_on_host()
            return found if whole.place is None else np.take(found, whole.place, axis=1)
        out = np.empty((batch, corpus.num_vectors), np.float32)
        _native.similarity(
            vector_bits(corpus.vectors, corpus.precision),
            type=dense_types()[corpus.precision],
            queries=self.queries,
            allow_mask=self.allow.masks(corpus.num_vectors).view(np.uint8) if self.allow.is_given else None,
            allow_shared=self.allow.shared,
            tau=self.tau,
            floor=self.floor,
            threads=self.threads,
            out=out,
        )
        corpus.release()
        record("similarity_f32", self.threads, queries=batch, passages=corpus.num_vectors)
        return out

    def run_on_device(self, device: DeviceOps) -> Array:
        found = _native.device_similarity_weights(
            device.queue(),
            device.corpus(self.corpus),
            queries=self.queries,
            **self.allow._asdict(),
            tau=self.tau,
            floor=self.floor,
            on_device=self.on_device,
        )
        device.record("similarity_f32", queries=self.queries.shape[0], passages=self.corpus.num_vectors)
        return found["weights"]
