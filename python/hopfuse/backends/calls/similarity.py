"""Weights of vectors by their similarity to a query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ..._arrays.vectors import dense_types, vector_bits
from ...types.continued_corpus import ContinuedCorpus
from ..call import Answer, Array, Backend, Case
from ..cpu import record
from ..row_filter import RowFilter

if TYPE_CHECKING:
    from ...types import Corpus
    from ...types.corpus import Storage
    from ..cuda import DeviceOps


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


# ---- The self-test ---------------------------------------------------------------------------------------------------


def cases() -> Iterator[Case]:
    from ...types.corpus import STORAGES

    for storage in STORAGES:
        yield _case(f"similarity_weights {storage}", storage, is_quick=storage == "float16")
    for kind in ("mask", "few ids"):
        yield _case(f"similarity_weights, a filter each, {kind}", "float32", kind)


def _case(name: str, storage: Storage, allow: str | None = None, *, is_quick: bool = False) -> Case:
    from ...types import Corpus
    from ..selftest_data import draw_filter

    def run(backend: Backend) -> Answer:
        rng = np.random.default_rng(11)
        batch, rows = 6, 300
        corpus = Corpus.from_array(rng.standard_normal((rows, 24)).astype(np.float32), storage=storage)
        queries = rng.standard_normal((batch, 24)).astype(np.float32)
        allowed = draw_filter(rng, allow, batch, rows, shared=False)
        return [backend.run(SimilarityCall(queries, corpus, 1.0, 1e-4, allowed, threads=1))]

    return Case(name, run, is_quick)
