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
        shape, row = (batch, width), (batch,)
        self.width = width
        (
            self.ids, self.scores, self.score_bounds, self.counts, self.proven,
            self.iterations, self.residual, self.bound, self.converged, self.status,
            self.shortfall,  # how far the list is from being proven
        ) = runtime.empty_all([
            (shape, np.int64), (shape, np.float32), (shape, np.float32), (row, np.int64), (row, np.uint8),
            (row, np.int64), (row, np.float64), (row, np.float64), (row, np.uint8), (row, np.int32),
            (row, np.float64),
        ])  # fmt: skip

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

    def attempts(self, block: PprBlock, measured: DeviceArray) -> Attempts:
        """Return the attempts at a proof by the passes of a block, which measure into ``measured``."""
        return Attempts(self, block, measured)

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
        row_of = np.full(block.lanes, -1, np.int64)
        row_of[: rows.size] = rows
        given = {"rows": row_of, "passes": more_passes, "polished": polished}
        if certificate is not None:
            given |= vars(certificate)
        arrays = {name: array for name, array in given.items() if array is not None}
        there = dict(zip(arrays, self.runtime.upload_all(list(arrays.values())), strict=True))
        residual, bound, per_degree = (there.get(name, getattr(block, name)) for name in Certificate.FIELDS)
        iterate = block.iterate if refined is None else ITERATE(even=refined, odd=None, last_pass=None)
        turn = TURN(rows=there["rows"], walking=None, next_try=None, number=0)
        error = NODE_ERROR(
            measured=None, damping=block.d_damping, bound=bound, per_degree=per_degree, refined=refined is not None,
            lanes=block.lanes,
        )  # fmt: skip
        candidates = self.candidates_of(block, iterate, final=True)
        ranks, outside = self.ranking(block, candidates, turn, error, local)
        arguments = FINISH(
            outside=outside, residual=residual, bound=bound, polished=there.get("polished"), walking=block.walking,
            limit=block.limit, passes=there.get("passes", block.passes), seed_status=block.status,
            tol=block.queries.tol, goes_on=goes_on, answers=answers.arguments,
        )  # fmt: skip
        self.rank(block, ranks)
        self.launch(block, "ppr_finish", outside.values["splits"], arguments)

    def candidates_of(self, block: PprBlock, iterate: Arguments, *, final: bool) -> Arguments:
        return CANDIDATES(
            iterate=iterate, final=final, degree=block.unscale32, per_lane=block.per_lane, node_of=self.graph.node_of,
            among=self.candidates, count=self.count, lanes=block.lanes,
        )  # fmt: skip

    def _splits(self, block: PprBlock) -> int:
        """Return the number of blocks that share a lane's candidates, few enough that their lists are soon merged."""
        most = min(SPLIT_BLOCKS // block.lanes, self.count // SPLIT_CANDIDATES, math.isqrt(self.count // self.kept))
        return max(1, most)

    def ranking(
        self,
        block: PprBlock,
        candidates: Arguments,
        turn: Arguments,
        error: Arguments,
        local: DeviceArray | None = None,
    ) -> tuple[Arguments | None, Arguments]:
        """Return what ranks the candidates (None if k is 0), and what the kernels read that complete the proof."""
        splits, join = self._splits(block), block.join.arrived_of_lane
        lists = self._lists_of(block, splits)
        rounds = ROUNDS(keys=lists.keys, stride=self.stride, kept=self.kept, parts=lists.parts)
        listed = self._list(block, rounds, local)
        ranks = None
        if self.k:
            ranks = RANK(
                candidates=candidates, list=listed, turn=turn, error=error,
                splits=1 if lists.parts is None else splits, others=lists.others, arrived=join, proofs=lists.proofs,
            )  # fmt: skip
        outside = OUTSIDE(
            candidates=candidates, list=listed, turn=turn, splits=splits, largest=lists.largest, arrived=join,
            proofs=lists.proofs,
        )  # fmt: skip
        return ranks, outside

    def rank(self, block: PprBlock, ranks: Arguments | None) -> None:
        """Rank the candidates, and prove what the lists show."""
        if ranks is not None:
            self.launch(block, "ppr_rank", ranks.values["splits"], ranks)

    def _lists_of(self, block: PprBlock, splits: int) -> _Lists:
        if self._lists is None or self._lists.keys.shape[0] < block.lanes:
            # One block per lane reads all candidates, in rounds, if they are few or the list is long.
            kept = self.kept if splits > 1 and self.stride <= self.kept and self.k else 0
            self._lists = _Lists(self.runtime, block.lanes, self.stride, splits, kept)
        return self._lists

    def _list(self, block: PprBlock, rounds: Arguments, local: DeviceArray | None = None) -> Arguments:
        graph = self.graph
        twins = TWINS(
            indptr=graph.indptr, indices=graph.indices, weight=graph.weight, edge_type=graph.edge_type,
            mask=block.mask, attraction=block.attraction, restart_rows=block.restart_set(), restart=block.restart64,
            lanes=block.lanes, symmetric=block.symmetric,
        )  # fmt: skip
        return LIST(
            rounds=rounds, internal_of=graph.internal_of, unscale=block.unscale64, locals=local, k=self.k,
            order=self.prove_order, twins=twins,
        )  # fmt: skip

    def launch(self, block: PprBlock, kernel: str, splits: int, arguments: Arguments) -> None:
        self.runtime.launch(kernel, block.lanes * splits, SELECT_THREADS, [arguments])


class Attempts:
    """Attempts to end lanes of a block whose hits seem proven, with the arguments that all have in common."""

    def __init__(self, search: TopkSearch, block: PprBlock, measured: DeviceArray) -> None:
        self._search, self._block = search, block
        self._turn = TURN(rows=None, walking=block.walking, next_try=block.next_try, number=0)
        error = NODE_ERROR(
            measured=measured, damping=block.d_damping, bound=None, per_degree=None, refined=False, lanes=block.lanes,
        )  # fmt: skip
        iterate = ITERATE(even=block.odd, odd=None, last_pass=None)
        candidates = search.candidates_of(block, iterate, final=False)
        ranks, outside = search.ranking(block, candidates, self._turn, error)
        proof = TRY(
            outside=outside, damping=block.d_damping, accelerates=block.accelerates, walking=block.walking,
            passes=block.passes, next_try=block.next_try, unproven=block.unproven, left=block.left,
            last_pass=block.last_pass,
        )  # fmt: skip
        of_even = candidates.replace(iterate=iterate.replace(even=block.even))
        #: By the parity of a pass: odd ones read the first buffer.
        self._ranks = ranks, None if ranks is None else ranks.replace(candidates=of_even)
        self._outside = outside, outside.replace(candidates=of_even)
        self._proof = proof

    def make(self, number: int) -> None:
        """End lanes whose hits seem proven by the iterate that pass ``number`` read."""
        search, block, parity = self._search, self._block, number % 2
        turn, ranks = self._turn.replace(number=number), self._ranks[parity]
        search.rank(block, None if ranks is None else ranks.replace(turn=turn))
        proof = self._proof.replace(outside=self._outside[parity].replace(turn=turn))
        search.launch(block, "ppr_try", self._outside[parity].values["splits"], proof)
        block.launch_states("ppr_keep", [*block.buffers(number), block.unproven, block.nodes])


class _Lists:
    """The list of each lane, how far its proof is, and the ``kept`` best keys of each split; 0: no splits."""

    def __init__(self, runtime: Runtime, lanes: int, stride: int, splits: int, kept: int) -> None:
        self.keys, self.others, self.largest, errors, evidence, found, flags, parts = runtime.empty_all([
            ((lanes, stride), np.uint64), ((lanes, splits), np.int32), ((lanes, splits), np.float32),
            ((3, lanes), np.float64), ((2, lanes), np.float64), ((lanes,), np.int64), ((2, lanes), np.int32),
            ((lanes, splits, kept), np.uint64),
        ])  # fmt: skip
        self.parts = parts if kept else None
        self.proofs = PROOFS(errors=errors, evidence=evidence, found=found, flags=flags, lanes=lanes)
