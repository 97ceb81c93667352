"""Each query's best nodes on a device, and the proof that they are the best: kernels/include/hopfuse/ppr_proof.h."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calls import Evidence
from .ppr_block import PprBlock
from .ppr_certificate import Certificate, Certifier
from .ppr_graph import DeviceGraph
from .runtime import DeviceArray, Runtime

SELECT_THREADS, SELECT_KEPT = 128, 512  # of ppr_try and ppr_finish, which find hits in whole rounds


class Answers:
    """The answers of a batch on the device, (B, width) and (B,); ``status``: kernels/include/hopfuse/query_status.h."""

    def __init__(self, runtime: Runtime, batch: int, width: int) -> None:
        shape = (batch, width)
        self.width = width
        self.ids, self.scores = runtime.empty(shape, np.int64), runtime.empty(shape, np.float32)
        self.score_bounds, self.counts = runtime.empty(shape, np.float32), runtime.empty(batch, np.int64)
        self.proven, self.iterations = runtime.empty(batch, np.uint8), runtime.zeros(batch, np.int64)
        self.residual, self.bound = runtime.empty(batch, np.float64), runtime.empty(batch, np.float64)
        self.converged, self.status = runtime.empty(batch, np.uint8), runtime.empty(batch, np.int32)
        self.shortfall = runtime.empty(batch, np.float64)  # how far the list is from being proven

    def evidence(self) -> dict[str, DeviceArray]:
        """Return the evidence by the names of :class:`..calls.Evidence`."""
        return {name: getattr(self, name) for name in Evidence._fields}

    def hits(self) -> dict[str, DeviceArray]:
        return {name: getattr(self, name) for name in ("ids", "scores", "counts", "score_bounds", "proven")}

    def arguments(self) -> list[Any]:
        return [
            *(np.int64(self.width), self.ids, self.scores, self.score_bounds, self.counts, self.proven),
            *(self.iterations, self.residual, self.bound, self.converged, self.status, self.shortfall),
        ]


class TopkSearch:
    """The best ``k`` of all nodes, or of ``candidates`` (internal nodes); k is at most the number of candidates."""

    def __init__(
        self,
        runtime: Runtime,
        graph: DeviceGraph,
        k: int,
        candidates: NDArray[np.int32] | None,
        prove_order: bool = True,
    ) -> None:
        self.runtime, self.graph, self.k, self.prove_order = runtime, graph, k, prove_order
        self.candidates = None if candidates is None else runtime.upload(candidates)
        self.count = np.int64(graph.num_nodes if candidates is None else candidates.size)
        self.stride = -(-(k + 1) // SELECT_KEPT) * SELECT_KEPT
        self._keys: DeviceArray = None

    def attempt(self, block: PprBlock, number: int, tiles: DeviceArray) -> None:
        """End lanes after pass ``number`` whose hits look proven with the iterate that it read."""
        current, following = block.buffers(number)
        passes = [tiles, np.int64(self.graph.num_tiles), np.int64(number), block.d_damping]
        state = [block.walking, block.passes, block.next_try, block.unproven, block.left, block.last_pass]
        self._launch(block, "ppr_try", [current, np.int32(0), *self._ranked(block), *passes, *state])
        block.launch_states("ppr_keep", [current, following, block.unproven, block.nodes])

    def finish(
        self,
        block: PprBlock,
        certifier: Certifier,
        rows: NDArray[np.int64],
        answers: Answers,
        certificate: Certificate | None = None,
        polished: NDArray[np.int64] | None = None,
        *,
        more_passes: NDArray[np.int64] | None = None,
        local: DeviceArray | None = None,
        refined: DeviceArray | None = None,
    ) -> None:
        """Write the hits of x^ and their evidence to the block's ``rows`` of the answers, -1: to none.

        Without a certificate of the host the device reads it from what has been measured. With ``more_passes`` a query
        has so many and one passes more, not those of its walk. With ``local`` that is a part of each node's error,
        ``refined`` are scores to rank instead of x^.
        """
        upload = self.runtime.upload
        row_of = np.full(block.lanes, -1, np.int64)
        row_of[: rows.size] = rows
        passes = block.passes if more_passes is None else upload(more_passes)
        known: list[Any] = [None] * 4
        if certificate is not None:
            known = [upload(getattr(certificate, name)) for name in ("residual", "bound", "per_degree")]
            known.append(None if polished is None else upload(polished))
        known.append(np.int32(refined is not None))
        state = [block.walking, block.limit, passes, block.last_pass, block.status, np.float64(block.queries.tol)]
        ranked = [block.even, block.odd] if refined is None else [refined, refined]
        arguments = [*ranked, *self._ranked(block, local), *certifier.certified, *known, *state, upload(row_of)]
        self._launch(block, "ppr_finish", [*arguments, *answers.arguments()])

    def _ranked(self, block: PprBlock, local: DeviceArray | None = None) -> list[Any]:
        """Return what the kernels rank, after the state itself, and their HOPFUSE_LIST."""
        if self._keys is None or self._keys.shape[0] < block.lanes:
            self._keys = self.runtime.empty((block.lanes, self.stride), np.uint64)
        candidates = [block.unscale32, np.int32(block.per_lane), self.graph.node_of, self.candidates, self.count]
        found = [self._keys, np.int64(self.stride), self.graph.internal_of, block.unscale64, local]
        proves = [np.int64(self.k), np.int32(self.prove_order)]
        graph = self.graph
        rows = [graph.indptr, graph.indices, graph.weight, graph.edge_type, block.mask]
        return [*candidates, *found, *proves, *rows, *block.restart_rows, block.restart64]

    @staticmethod
    def _launch(block: PprBlock, kernel: str, arguments: list[Any]) -> None:
        block.launch(kernel, block.lanes * SELECT_THREADS, arguments, block=SELECT_THREADS)
