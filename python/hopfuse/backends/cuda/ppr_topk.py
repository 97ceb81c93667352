"""The best nodes of each query on a device, and their proof; see kernels/include/hopfuse/ppr_proof.h."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..calls import Evidence
from .arguments import ANSWERS, CANDIDATES, FINISH, ITERATE, LIST, ROUNDS, SELECT, TRY, TWINS, Arguments
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

    @property
    def arguments(self) -> Arguments:
        return ANSWERS(**vars(self))


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
        self.count = graph.num_nodes if candidates is None else candidates.size
        wanted = k + 1  # the first node left out reveals a tie
        self.kept = min(SELECT_KEPT, -(-wanted // _WARP) * _WARP)
        self.stride = -(-wanted // self.kept) * self.kept
        self._keys: DeviceArray = None

    def attempt(self, block: PprBlock, number: int, measured: DeviceArray) -> None:
        """End lanes whose hits seem proven by the iterate that pass ``number`` read."""
        current, following = block.buffers(number)
        candidates = self._candidates(block, ITERATE(even=current, odd=None, last_pass=None), final=False)
        rounds = self._split(block, candidates, block.walking, block.next_try, number)
        arguments = TRY(
            candidates=candidates, list=self._list(block, rounds), measured=measured, number=number,
            damping=block.d_damping, accelerates=block.accelerates, walking=block.walking, passes=block.passes,
            next_try=block.next_try, unproven=block.unproven, left=block.left, last_pass=block.last_pass,
        )  # fmt: skip
        self._launch(block, "ppr_try", arguments)
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
        known = certifier.certified
        if certificate is not None:
            known = [upload(getattr(certificate, name)) for name in ("residual", "bound", "per_degree")]
        residual, bound, per_degree = known
        iterate = block.iterate if refined is None else ITERATE(even=refined, odd=None, last_pass=None)
        candidates = self._candidates(block, iterate, final=True)
        rounds = self._split(block, candidates) if self.k else self._rounds(block)
        arguments = FINISH(
            candidates=candidates, list=self._list(block, rounds, local), slack=block.slack, residual=residual,
            bound=bound, per_degree=per_degree, polished=None if polished is None else upload(polished),
            refined=refined is not None, walking=block.walking, limit=block.limit, passes=passes,
            seed_status=block.status, tol=block.queries.tol, rows=upload(row_of), goes_on=goes_on,
            answers=answers.arguments,
        )  # fmt: skip
        self._launch(block, "ppr_finish", arguments)

    def _candidates(self, block: PprBlock, iterate: Arguments, *, final: bool) -> Arguments:
        return CANDIDATES(
            iterate=iterate, final=final, degree=block.unscale32, per_lane=block.per_lane, node_of=self.graph.node_of,
            among=self.candidates, count=self.count,
        )  # fmt: skip

    def _rounds(self, block: PprBlock, parts: DeviceArray | None = None) -> Arguments:
        """Return where lists are written, and the best of each split of the candidates, if they are split."""
        if self._keys is None or self._keys.shape[0] < block.lanes:
            self._keys = self.runtime.empty((block.lanes, self.stride), np.uint64)
        splits = 1 if parts is None else parts.shape[1]
        return ROUNDS(keys=self._keys, stride=self.stride, kept=self.kept, parts=parts, splits=splits)

    def _split(
        self,
        block: PprBlock,
        candidates: Arguments,
        walking: DeviceArray | None = None,
        next_try: DeviceArray | None = None,
        number: int = 0,
    ) -> Arguments:
        """Select the best of each split of many candidates, in all lanes or in those whose turn it is."""
        splits = min(SPLIT_BLOCKS // block.lanes, self.count // SPLIT_CANDIDATES)
        if splits < 2 or self.stride > self.kept:  # with several rounds, kernels read the candidates directly
            return self._rounds(block)
        parts = self.runtime.empty((block.lanes, splits, self.kept), np.uint64)
        arguments = SELECT(
            candidates=candidates, walking=walking, next_try=next_try, number=number, kept=self.kept, splits=splits,
            parts=parts,
        )  # fmt: skip
        block.launch("ppr_select", block.lanes * splits * SELECT_THREADS, [arguments], block=SELECT_THREADS)
        return self._rounds(block, parts)

    def _list(self, block: PprBlock, rounds: Arguments, local: DeviceArray | None = None) -> Arguments:
        graph = self.graph
        twins = TWINS(
            indptr=graph.indptr, indices=graph.indices, weight=graph.weight, edge_type=graph.edge_type,
            mask=block.mask, attraction=block.attraction, restart_rows=block.restart_set(), restart=block.restart64,
        )  # fmt: skip
        return LIST(
            rounds=rounds, internal_of=graph.internal_of, unscale=block.unscale64, locals=local, k=self.k,
            order=self.prove_order, twins=twins,
        )  # fmt: skip

    @staticmethod
    def _launch(block: PprBlock, kernel: str, arguments: Arguments) -> None:
        block.launch(kernel, block.lanes * SELECT_THREADS, [arguments], block=SELECT_THREADS)
