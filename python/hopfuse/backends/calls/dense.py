"""Exact dense top-k."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ..._arrays.vectors import dense_types, vector_bits
from ...types.continued_corpus import ContinuedCorpus
from ...types.hits import PAD_ID, PAD_SCORE
from ..call import Array, HitArrays
from ..cpu import record
from ..row_filter import RowFilter

if TYPE_CHECKING:
    from ...types import Corpus
    from ..cuda import DeviceOps

#: Suffixes of the names of kernels, by the precision of the vectors.
SUFFIXES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
_NO_CODES: dict[str, Any] = dict.fromkeys(("codes", "scale", "error", "norm_code", "norm"))


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
