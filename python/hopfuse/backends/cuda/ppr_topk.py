"""The best nodes of each query on a device, and their proof; see kernels/include/hopfuse/ppr_proof.h."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calls import Evidence
from .ppr_block import PprBlock
from .ppr_certificate import Certificate, Certifier
from .ppr_graph import DeviceGraph
from .runtime import DeviceArray, Runtime

SELECT_THREADS, SELECT_KEPT = 128, 512  # threads of ppr_try and ppr_finish, and the most hits that they find in a round
#: Candidates are split among at most this many blocks, with at least this many candidates each.
SPLIT_BLOCKS, SPLIT_CANDIDATES = 264, 1 << 13
_WARP = 32


class Answers:
    """The results of a batch on the device, (B, width) and (B,), with each query's status (hopfuse/query_status.h)."""

    def __init__(self, runtime: Runtime, batch: int, width: int) -> None:
        shape = (batch, width)
        self.width = width
        self.ids, self.scores = runtime.empty(shape, np.int64), runtime.empty(shape, np.float32)
        self.score_bounds, self.counts = runtime.empty(shape, np.float32), runtime.empty(batch, np.int64)
        self.proven, self.iterations = runtime.empty(batch, np.uint8), runtime.empty(batch, np.int64)
        self.residual, self.bound = runtime.empty(batch, np.float64), runtime.empty(batch, np.float64)
        self.converged, self.status = runtime.empty(batch, np.uint8), runtime.empty(batch, np.int32)
        self.shortfall = runtime.empty(batch, np.float64)  # how far the list is from being proven

    def evidence(self) -> dict[str, DeviceArray]:
        """Return the fields of :class:`..calls.Evidence`, by name."""
        return {name: getattr(self, name) for name in Evidence._fields}

    def hits(self) -> dict[str, DeviceArray]:
        return {name: getattr(self, name) for name in ("ids", "scores", "counts", "score_bounds", "proven")}

    def arguments(self) -> list[Any]:
        return [
            *(np.int64(self.width), self.ids, self.scores, self.score_bounds, self.counts, self.proven),
            *(self.iterations, self.residual, self.bound, self.converged, self.status, self.shortfall),
        ]


class TopkSearch:
    """Selection of the best ``k`` of all nodes or of ``candidates`` (internal nodes); k is at most their number."""

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
        wanted = k + 1  # the first node left out reveals a tie
        self.kept = min(SELECT_KEPT, -(-wanted // _WARP) * _WARP)
        self.stride = -(-wanted // self.kept) * self.kept
        self._keys: DeviceArray = None

    def attempt(self, block: PprBlock, number: int, measured: DeviceArray) -> None:
        """End lanes whose hits seem proven by the iterate that pass ``number`` read."""
        current, following = block.buffers(number)
        passes = [measured, np.int64(number), block.d_damping, block.accelerates]
        state = [block.walking, block.passes, block.next_try, block.unproven, block.left, block.last_pass]
        turn = [block.walking, block.next_try, np.int64(number)]
        parts = self._split(block, [current, None, None, np.int32(0)], turn)
        self._launch(block, "ppr_try", [current, np.int32(0), *self._ranked(block, parts), *passes, *state])
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
        goes_on: bool = False,
        more_passes: NDArray[np.int64] | None = None,
        local: DeviceArray | None = None,
        refined: DeviceArray | None = None,
    ) -> None:
        """Write the hits of x^ and their evidence to ``rows`` of the answers; -1 skips a lane.

        Without a certificate from the host, the device uses the one that it measured. With ``goes_on`` passes are added
        to those in the answers. ``more_passes`` + 1 replaces the number of passes of the walk. ``local`` is a part of
        each node's error. ``refined`` are scores to rank in place of x^.
        """
        upload = self.runtime.upload
        row_of = np.full(block.lanes, -1, np.int64)
        row_of[: rows.size] = rows
        passes = block.passes if more_passes is None else upload(more_passes)
        known: list[Any] = certifier.certified
        if certificate is not None:
            known = [upload(getattr(certificate, name)) for name in ("residual", "bound", "per_degree")]
        known = [block.slack, *known, None if polished is None else upload(polished), np.int32(refined is not None)]
        state = [block.walking, block.limit, passes, block.last_pass, block.status, np.float64(block.queries.tol)]
        ranked = [block.even, block.odd] if refined is None else [refined, refined]
        whole = [*ranked, block.last_pass, np.int32(1)]
        parts = self._split(block, whole, [None, None, np.int64(0)]) if self.k else self._no_parts
        arguments = [
            *ranked,
            *self._ranked(block, parts, local),
            *known,
            *state,
            upload(row_of),
            np.int32(goes_on),
        ]
        self._launch(block, "ppr_finish", [*arguments, *answers.arguments()])

    def _among(self, block: PprBlock) -> list[Any]:
        """Return the kernels' arguments for candidates, which follow the state."""
        return [block.unscale32, np.int32(block.per_lane), self.graph.node_of, self.candidates, self.count]

    @property
    def _no_parts(self) -> list[Any]:
        return [np.int32(self.kept), None, np.int32(1)]

    def _split(self, block: PprBlock, state: list[Any], turn: list[Any]) -> list[Any]:
        """Select the best of each split of many candidates; return the kernels' arguments for them."""
        splits = min(SPLIT_BLOCKS // block.lanes, int(self.count) // SPLIT_CANDIDATES)
        if splits < 2 or self.stride > self.kept:  # with several rounds, kernels read the candidates directly
            return self._no_parts
        parts = self.runtime.empty((block.lanes, splits, self.kept), np.uint64)
        arguments = [*state, *self._among(block), *turn, np.int32(self.kept), np.int32(splits), parts]
        items = block.lanes * splits * SELECT_THREADS
        block.launch("ppr_select", items, arguments, block=SELECT_THREADS)
        return [np.int32(self.kept), parts, np.int32(splits)]

    def _ranked(self, block: PprBlock, parts: list[Any], local: DeviceArray | None = None) -> list[Any]:
        """Return the kernels' arguments for ranking, which follow the state, including HOPFUSE_LIST."""
        if self._keys is None or self._keys.shape[0] < block.lanes:
            self._keys = self.runtime.empty((block.lanes, self.stride), np.uint64)
        candidates = self._among(block)
        found = [self._keys, np.int64(self.stride), *parts, self.graph.internal_of, block.unscale64, local]
        proves = [np.int64(self.k), np.int32(self.prove_order)]
        graph = self.graph
        rows = [graph.indptr, graph.indices, graph.weight, graph.edge_type, block.mask, block.attraction]
        return [*candidates, *found, *proves, *rows, *block.restart_rows, block.restart64]

    @staticmethod
    def _launch(block: PprBlock, kernel: str, arguments: list[Any]) -> None:
        block.launch(kernel, block.lanes * SELECT_THREADS, arguments, block=SELECT_THREADS)
