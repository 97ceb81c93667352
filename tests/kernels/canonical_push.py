"""The local walk of hopfuse/ppr_push.h, spelled out in Python floats, with the proof of hopfuse/ppr_proof.h."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import hopfuse as hf
import numpy as np

UNIT, WAVERS = 2.0**-53, 2.0**-22
STEP, LEAST, MOST = 0.35, 0.1, 0.6
LOOK, FREE_LOOK = 0.5, 16.0


@dataclass
class Bounds:
    """A candidate with the bounds of its score."""

    node: int
    id: int
    least: float
    width: float

    @property
    def score(self) -> float:
        return self.least + 0.5 * self.width


@dataclass
class Found:
    """What a local walk returns."""

    ids: list[int]
    scores: list[np.float32]
    bound: float
    proven: bool
    rounds: int
    rows: int
    entries: int


@dataclass
class Walk:
    """The walk of one query on an undirected graph.

    ``eta`` are weights of edge types, ``weights`` those of internal nodes, as hopfuse/ppr.h scales them.
    """

    graph: hf.Graph
    seeds: dict[int, float]
    k: int
    candidates: list[int] | None = None
    damping: float = 0.5
    eta: list[float] | None = None
    order: bool = True
    weights: list[float] | None = None
    budget: int = 1 << 15
    residual: dict[int, float] = field(default_factory=dict)
    estimate: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        g = self.graph
        self.rows = [range(int(g.indptr[v]), int(g.indptr[v + 1])) for v in range(g.num_nodes)]
        self.degree = [self._degree(v) for v in range(g.num_nodes)]
        linked = [v for v in range(g.num_nodes) if self.rows[v]]
        self.guided = self.weights is not None and any(self.weights[v] != 1 for v in linked)
        self.known: dict[int, float] = {}  # K_v of node weights
        self.read: dict[int, float] = {}  # D_v
        among = range(g.num_nodes) if self.candidates is None else self.candidates
        self.all_among = {int(g.internal_of[v]) for v in among}
        self.among = {v for v in self.all_among if self.rows[v]}
        self.rounds = self.pushed = self.entries = self.contributions = self.longest = 0
        self.taken = self.walks = self.kth = 0.0

    def _degree(self, v: int) -> float:
        types = [float(d) for d in self.graph.degree[v]]
        if len(types) == 1 and self.eta is None:
            return types[0]
        total = 0.0
        for t, of_type in enumerate(types):
            total += of_type if self.eta is None else self.eta[t] * of_type
        return total

    def _weight(self, e: int) -> float:
        w = 1.0 if self.graph.weight is None else float(self.graph.weight[e])
        if self.eta is None:
            return w
        return w * self.eta[0 if self.graph.edge_type is None else int(self.graph.edge_type[e])]

    def _of(self, v: int) -> float:
        return 1.0 if self.weights is None else self.weights[v]

    def _reach_up(self, v: int) -> float:
        """deg_v, or an upper bound of it."""
        if not self.guided:
            return self.degree[v]
        return self._of(v) * (self.read[v] if v in self.read else self.degree[v])

    def _reach_down(self, v: int) -> float:
        """deg_v, or a lower bound of it."""
        if not self.guided:
            return self.degree[v]
        return self._of(v) * (self.read[v] if v in self.read else self.known.get(v, 0.0))

    def _read(self, v: int) -> None:
        if v not in self.read:
            total = 0.0
            for e in self.rows[v]:
                total += self._weight(e) * self._of(int(self.graph.indices[e]))
            self.read[v] = total
            self.longest = max(self.longest, len(self.rows[v]))

    def run(self) -> Found:
        d, seeds = self.damping, sorted((int(self.graph.internal_of[v]), w) for v, w in self.seeds.items())
        total = 0.0
        for _, weight in seeds:
            total += weight
        self.restarts, self.apart, lost, rho = {v for v, _ in seeds}, [], 0.0, 0.0
        for v, weight in seeds:
            share = weight / total
            if self.degree[v] == 0:
                self.apart.append((v, share))
                lost += share
            else:
                self.residual[v] = share
                self.walks += share
                if self.guided:
                    self.entries += len(self.rows[v])
                    self._read(v)
                rho = max(rho, share / self._reach_down(v))
        self.rho = rho
        self.num_seeds, self.scale = len(seeds), 1.0 / (1.0 - d * lost)
        self.possible = len(self.among) + sum(v in self.all_among for v, _ in self.apart)
        self.k = min(self.k, self.possible)
        threshold = rho * STEP
        while True:
            goes_on = self._drain(threshold)
            shortfall = self._attempt()
            spent = d == 0 or self.walks - (1.0 - d) * self.taken <= self._rounding() / self.scale
            if shortfall < 1 or not goes_on or spent:
                break
            wanted = 1.0 / (1.25 * shortfall) if shortfall < 1e30 else STEP
            threshold = self.rho * min(max(wanted, LEAST), MOST)
            if not threshold > 0:
                break
        best = sorted(self.bounds, key=lambda one: (-one.score, one.id))[: self.k]
        best = [one for one in best if np.float32(one.score) > 0]
        shown = sorted(best, key=lambda one: (-np.float32(one.score), one.id))
        scores = [np.float32(one.score) for one in shown]
        open_ = self.scale * self.damping * self._left()
        bound = (open_ + self._rounding()) * (1.0 + 4.0 * UNIT)
        return Found([one.id for one in shown], scores, bound, shortfall < 1, self.rounds, self.pushed, self.entries)

    def _drain(self, threshold: float) -> bool:
        front = [v for v, r in self.residual.items() if r > threshold * self._reach_down(v)]
        while front:
            volume = sum(len(self.rows[v]) * (2 if self.guided and v not in self.read else 1) for v in front)
            if self.entries + volume > self.budget:
                self.rho = max(r / self._reach_down(v) for v, r in self.residual.items()) * self._above()
                return False
            factor, gain, touched = {}, {}, set()
            for v in sorted(front):
                taken = self.residual[v]
                gain[v] = 0.0 if self.estimate.get(v, 0.0) > 0 else self._of(v)
                self.estimate[v] = self.estimate.get(v, 0.0) + (1.0 - self.damping) * taken
                self.taken += taken
                self.residual[v] = 0.0
                if self.guided:
                    self._read(v)
                factor[v] = self.damping * taken / (self.read[v] if self.guided else self.degree[v])
                self.longest = max(self.longest, len(self.rows[v]))
            front = []
            for v, f in factor.items():
                for e in self.rows[v]:
                    to, w = int(self.graph.indices[e]), self._weight(e)
                    share = f * (w * self._of(to)) if self.guided else f * w
                    if share == 0:
                        continue
                    before = self.residual.get(to, 0.0)
                    self.residual[to] = before + share
                    touched.add(to)
                    if self.guided and to not in self.read:
                        self.known[to] = self.known.get(to, 0.0) + w * gain[v]
            front = sorted(v for v in touched if self.residual[v] > threshold * self._reach_down(v))
            self.rounds, self.pushed = self.rounds + 1, self.pushed + len(factor)
            self.entries, self.contributions = self.entries + volume, self.contributions + volume
        self.rho = threshold * self._above()
        return True

    def _above(self) -> float:
        return 1.0 + (float(8 + self.pushed) if self.guided else 4.0) * UNIT

    def _is_closed(self) -> bool:
        return all(v in self.estimate for v in self.residual) or self.damping == 0

    def _rounding(self) -> float:
        relative = float(2 * self.longest + 264) / (1.0 - self.damping)
        return self.scale * (UNIT * (float(self.contributions + 2 * self.pushed + 2 * self.num_seeds) + relative))

    def _left(self) -> float:
        return max(self.walks - (1.0 - self.damping) * self.taken, 0.0) + self._rounding() / self.scale

    def _width(self, degree: float, rest: float) -> float:
        return self.scale * rest * min(degree * self.rho, self.left)

    def _are_all_reached(self) -> bool:
        return self._is_closed() or sum(v in self.among for v in self.residual) == len(self.among)

    def _attempt(self) -> float:
        d = self.damping
        self.bounds: list[Bounds] = []
        if self.k == 0:
            return 0.0
        self.left = self._left()
        hits = [v for v in self.residual if v in self.among]
        all_of = [self._bounds(v, self.estimate.get(v, 0.0), self.residual[v], d) for v in hits]
        apart = [Bounds(v, self._id(v), self.scale * (1.0 - d) * s, 0.0) for v, s in self.apart if v in self.all_among]
        lows = sorted((one.least for one in all_of + apart), reverse=True)
        if len(lows) >= self.k:
            self.kth = lows[self.k - 1]
        self.bounds = apart + [one for one in all_of if one.least + 1.25 * one.width >= self.kth]
        outside = max((one.least + one.width for one in all_of if one.least + 1.25 * one.width < self.kth), default=0.0)
        if not self._are_all_reached():
            outside = max(outside, self._width(self._largest_degree(), d))
        volume = sum(len(self.rows[one.node]) for one in self.bounds)
        if volume > LOOK * self.entries + FREE_LOOK * (self.k + 4) or self.entries + volume > self.budget:
            return math.inf
        self.entries += volume
        self.longest = max([self.longest, *(len(self.rows[one.node]) for one in self.bounds)])
        for at, one in enumerate(self.bounds):
            if self.guided and self.degree[one.node]:
                self.bounds[at] = self._looked(one)
            elif self.degree[one.node]:
                near = 0.0
                for e in self.rows[one.node]:
                    source = int(self.graph.indices[e])
                    if self.residual.get(source, 0.0) > 0:
                        near += self._weight(e) * (self.residual[source] / self.degree[source])
                own = self.residual[one.node] + d * near
                self.bounds[at] = self._bounds(one.node, self.estimate.get(one.node, 0.0), own, d * d)
        self.bounds.sort(key=lambda one: (-one.score, one.id))
        self._join_twins()
        return self._shortfall(outside)

    def _looked(self, one: Bounds) -> Bounds:
        """Narrow the bounds of a candidate by its row, with node weights."""
        d, v, low, high = self.damping, one.node, 0.0, 0.0
        self._read(v)
        for e in self.rows[v]:
            source = int(self.graph.indices[e])
            if self.residual.get(source, 0.0) > 0:
                flow = self._weight(e) * self.residual[source] * self._of(source)
                low, high = low + flow / self._reach_up(source), high + flow / self._reach_down(source)
        rounding = 2.0 * float(8 + self.pushed) * UNIT
        low, high = low * (1.0 - rounding), high * (1.0 + rounding)
        x, r, a = self.estimate.get(v, 0.0), self.residual[v], self._of(v)
        least = self.scale * (x + (1.0 - d) * (r + d * (a * low)))
        looked = self.scale * (x + (1.0 - d) * (r + d * (a * high))) + self._width(self._reach_up(v), d * d)
        most = min(looked, one.least + self._width(self._reach_up(v), d))
        least = max(one.least, least)
        return Bounds(v, one.id, least, max(most - least, 0.0))

    def _id(self, v: int) -> int:
        return int(self.graph.node_of[v])

    def _bounds(self, v: int, x: float, own: float, rest: float) -> Bounds:
        least = self.scale * (x + (1.0 - self.damping) * own)
        return Bounds(v, self._id(v), least, self._width(self._reach_up(v), rest))

    def _largest_degree(self) -> float:
        columns = self.graph.degree[sorted(self.among)]
        if self.eta is None:
            return max(self.degree[v] for v in self.among)
        return sum((eta * float(column.max()) for eta, column in zip(self.eta, columns.T, strict=True)), 0.0)

    def _row(self, v: int) -> dict[tuple[int, int], float]:
        g, kind = self.graph, self.graph.edge_type
        return {
            (int(g.indices[e]), 0 if kind is None else int(kind[e])): 1.0 if g.weight is None else float(g.weight[e])
            for e in self.rows[v]
        }

    def _are_twins(self, a: int, b: int) -> bool:
        """Whether the rows are equal, or become equal by exchanging a with b and the one other node that differs."""
        if self.restarts & {a, b} or self._of(a) != self._of(b):
            return False
        first, second = self._row(a), self._row(b)
        if first == second:
            return True
        lacking = [v for v, _ in first if v not in {u for u, _ in second}]
        of_other = [v for v, _ in second if v not in {u for u, _ in first}]
        for c, e in {(c, e) for c in (min(lacking, default=-1), max(lacking, default=-1)) for e in of_other}:
            if self._is_symmetry(a, b, c, e):
                return True
        return False

    def _is_symmetry(self, a: int, b: int, c: int, d: int) -> bool:
        if c < 0 or self.restarts & {c, d} or self._of(c) != self._of(d):
            return False
        swap = {a: b, b: a, c: d, d: c}
        if len({a, b, c, d}) not in (2, 4):
            return False
        return all(
            {(swap.get(u, u), t): w for (u, t), w in self._row(v).items()} == self._row(swap[v]) for v in (a, b, c, d)
        )

    def _join_twins(self) -> None:
        at = 0
        while at < min(len(self.bounds), self.k + 1):
            first, end = self.bounds[at], at + 1
            while end < len(self.bounds):
                other = self.bounds[end]
                near = other.least + other.width >= first.least * (1.0 - WAVERS)
                if not near or not self._are_twins(first.node, other.node):
                    break
                other.least, other.width = first.least, first.width
                end += 1
            self.bounds[at:end] = sorted(self.bounds[at:end], key=lambda one: one.id)
            at = end

    def _shortfall(self, outside: float) -> float:
        """prove_list of hopfuse/ppr_proof.h, for errors of a quarter of the widths."""
        shown, k = self.bounds[: self.k + 1], self.k
        kept, stays = min(len(shown), k), self._rounding()
        if not kept:
            return 0.0 if self._are_all_reached() else math.inf
        if (kept < k and not self._are_all_reached()) or np.float32(shown[kept - 1].score) == 0:
            return math.inf

        def parts(one: Bounds) -> tuple[float, float]:
            share = 0.25 * one.width
            return (0.0 if share == 0 else share * (1.0 + 1e-6)), stays + WAVERS * one.score

        def ratio(error: tuple[float, float], gap: float) -> float:
            if gap - error[1] > 0:
                return error[0] / (gap - error[1])
            return 2.0 * error[0] / error[1] if error[0] > error[1] > 0 else math.inf

        def between(a: Bounds, b: Bounds) -> tuple[float, float]:
            (x, y), (u, v) = parts(a), parts(b)
            return 2.0 * (x + u), 2.0 * (y + v)

        found, worst = 0.0, math.inf
        equal = True
        for i in reversed(range(len(shown))):
            one = shown[i]
            if i < k:
                found = max(found, ratio(parts(one), one.score))
                least = one.score - 2.0 * sum(parts(one))
                worst = least if self.order and i == kept - 1 else min(worst, least)
            if self.order and i > 0:
                above = shown[i - 1]
                if one.score != above.score or not self._are_twins(above.node, one.node):
                    found = max(found, ratio(between(above, one), above.score - one.score))
            if not self.order and i < k < len(shown):
                below = shown[k]
                equal = equal and one.score == below.score and self._are_twins(one.node, shown[i + 1].node)
                if not equal:
                    found = max(found, ratio(between(one, below), one.score - below.score))
        if self.order and kept:
            worst = shown[kept - 1].score - 2.0 * sum(parts(shown[kept - 1]))
        if found >= 1 or kept < k or self.possible <= k:
            return found
        for one in self.bounds[k + 1 :]:
            last = shown[k - 1]
            if one.score != last.score or not self._are_twins(last.node, one.node):
                outside = max(outside, one.least + one.width)
        reach = outside * (1.0 + 2.0 * WAVERS) + 2.0 * stays
        return 2.0 if outside > 0 and not worst > reach else found
