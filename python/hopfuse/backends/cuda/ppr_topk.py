"""The best nodes of each query on a device, and their proof; see kernels/include/hopfuse/ppr_proof.h."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..calls import Evidence
from .arguments import (
    ANSWERS,
    CANDIDATES,
    FINISH,
    ITERATE,
    LIST,
    NODE_ERROR,
    OUTSIDE,
    PROOFS,
    RANK,
    ROUNDS,
    TRY,
    TURN,
    TWINS,
    Arguments,
)
from .ppr_block import PprBlock
from .ppr_certificate import Certificate, Certifier
from .ppr_graph import DeviceGraph
from .runtime import DeviceArray, Runtime

SELECT_THREADS, SELECT_KEPT = 128, 512  # threads of the kernels, and the most hits that ppr_rank finds in a round
#: Candidates are split among at most this many blocks, with at least this many candidates each.
SPLIT_BLOCKS, SPLIT_CANDIDATES = 1056, 1 << 10
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
        self._lists: _Lists | None = None

    def attempt(self, block: PprBlock, number: int, measured: DeviceArray) -> None:
        """End lanes whose hits seem proven by the iterate that pass ``number`` read."""
        current, following = block.buffers(number)
        turn = TURN(rows=None, walking=block.walking, next_try=block.next_try, number=number)
        error = NODE_ERROR(
            measured=measured, damping=block.d_damping, slack=None, residual=None, bound=None, per_degree=None,
            refined=False, lanes=block.lanes,
        )  # fmt: skip
        candidates = self._candidates(block, ITERATE(even=current, odd=None, last_pass=None), final=False)
        outside = self._rank(block, candidates, turn, error)
        arguments = TRY(
            outside=outside, damping=block.d_damping, accelerates=block.accelerates, walking=block.walking,
            passes=block.passes, next_try=block.next_try, unproven=block.unproven, left=block.left,
            last_pass=block.last_pass,
        )  # fmt: skip
        self._launch(block, "ppr_try", self._splits(block), arguments)
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
        turn = TURN(rows=upload(row_of), walking=None, next_try=None, number=0)
        error = NODE_ERROR(
            measured=None, damping=block.d_damping, slack=block.slack, residual=residual, bound=bound,
            per_degree=per_degree, refined=refined is not None, lanes=block.lanes,
        )  # fmt: skip
        outside = self._rank(block, self._candidates(block, iterate, final=True), turn, error, local)
        arguments = FINISH(
            outside=outside, residual=residual, bound=bound,
            polished=None if polished is None else upload(polished), walking=block.walking, limit=block.limit,
            passes=passes, seed_status=block.status, tol=block.queries.tol, goes_on=goes_on, answers=answers.arguments,
        )  # fmt: skip
        self._launch(block, "ppr_finish", self._splits(block), arguments)

    def _candidates(self, block: PprBlock, iterate: Arguments, *, final: bool) -> Arguments:
        return CANDIDATES(
            iterate=iterate, final=final, degree=block.unscale32, per_lane=block.per_lane, node_of=self.graph.node_of,
            among=self.candidates, count=self.count, lanes=block.lanes,
        )  # fmt: skip

    def _splits(self, block: PprBlock) -> int:
        """Return the number of blocks that share a lane's candidates, few enough that their lists are soon merged."""
        most = min(SPLIT_BLOCKS // block.lanes, self.count // SPLIT_CANDIDATES, math.isqrt(self.count // self.kept))
        return max(1, most)

    def _rank(
        self,
        block: PprBlock,
        candidates: Arguments,
        turn: Arguments,
        error: Arguments,
        local: DeviceArray | None = None,
    ) -> Arguments:
        """Rank the candidates, and prove what the lists show; return what the kernels read that complete the proof."""
        lists, splits = self._lists_of(block), self._splits(block)
        parts, join = self._parts(block, splits), block.join.arrived_of_lane
        listed = self._list(block, ROUNDS(keys=lists.keys, stride=self.stride, kept=self.kept, parts=parts), local)
        if self.k:
            shares = 1 if parts is None else splits
            arguments = RANK(
                candidates=candidates, list=listed, turn=turn, error=error, splits=shares, others=lists.others,
                arrived=join, proofs=lists.proofs,
            )  # fmt: skip
            self._launch(block, "ppr_rank", shares, arguments)
        return OUTSIDE(
            candidates=candidates, list=listed, turn=turn, splits=splits, largest=lists.largest, arrived=join,
            proofs=lists.proofs,
        )  # fmt: skip

    def _parts(self, block: PprBlock, splits: int) -> DeviceArray | None:
        """Allocate the best keys of each split; None where one block per lane reads all candidates, in rounds."""
        if splits == 1 or self.stride > self.kept or not self.k:
            return None
        return self.runtime.empty((block.lanes, splits, self.kept), np.uint64)

    def _lists_of(self, block: PprBlock) -> _Lists:
        if self._lists is None or self._lists.keys.shape[0] < block.lanes:
            self._lists = _Lists(self.runtime, block.lanes, self.stride, self._splits(block))
        return self._lists

    def _list(self, block: PprBlock, rounds: Arguments, local: DeviceArray | None = None) -> Arguments:
        graph = self.graph
        twins = TWINS(
            indptr=graph.indptr, indices=graph.indices, weight=graph.weight, edge_type=graph.edge_type,
            mask=block.mask, attraction=block.attraction, restart_rows=block.restart_set(), restart=block.restart64,
            lanes=block.lanes,
        )  # fmt: skip
        return LIST(
            rounds=rounds, internal_of=graph.internal_of, unscale=block.unscale64, locals=local, k=self.k,
            order=self.prove_order, twins=twins,
        )  # fmt: skip

    def _launch(self, block: PprBlock, kernel: str, splits: int, arguments: Arguments) -> None:
        self.runtime.launch(kernel, block.lanes * splits, SELECT_THREADS, [arguments])


class _Lists:
    """The list of each lane, and how far its proof is."""

    def __init__(self, runtime: Runtime, lanes: int, stride: int, splits: int) -> None:
        self.keys = runtime.empty((lanes, stride), np.uint64)
        self.others = runtime.empty((lanes, splits), np.int32)
        self.largest = runtime.empty((lanes, splits), np.float32)
        self.proofs = PROOFS(
            lanes=lanes,
            errors=runtime.empty((3, lanes), np.float64), evidence=runtime.empty((2, lanes), np.float64),
            found=runtime.empty(lanes, np.int64), flags=runtime.empty((2, lanes), np.int32),
        )  # fmt: skip
