"""An answer depends on the query and the data alone: the same bits on every kernel variant, on any number of threads,
alone or anywhere in a batch among strangers, and for every k."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import PprCase, awkward_graph, grid_graph, ppr_cases, random_graph, random_lists, random_restart
from compare import assert_bitwise, assert_hits_equal
from hypothesis import given
from numpy.typing import NDArray
from variants import use

EVIDENCE = ("iterations", "residual", "bound", "converged")
THREADS = (1, 2, 3)


def each(every_isa: list[str]) -> Any:
    """Each (variant, threads), the variant selected."""
    for name, threads in itertools.product(every_isa, THREADS):
        use(name)
        yield f"{name}, {threads} threads", threads


def assert_same(actual: Any, expected: Any, names: tuple[str, ...], where: str) -> None:
    for name in names:
        assert_bitwise(getattr(actual, name), getattr(expected, name), f"{name} ({where})")


def rows_of(result: Any, rows: Any, names: tuple[str, ...]) -> Any:
    class Rows:
        pass

    picked = Rows()
    for name in names:
        setattr(picked, name, getattr(result, name)[rows])
    return picked


# ---- Personalized PageRank ------------------------------------------------------------------------------------------


GRAPHS: dict[str, Callable[[np.random.Generator], hf.Graph]] = {
    "undirected, unweighted": lambda rng: random_graph(rng, 150, 500, weights="none", hub=3),
    "undirected, weighted": lambda rng: random_graph(rng, 150, 500, hub=3),
    "directed, weighted": lambda rng: random_graph(rng, 150, 500, directed=True, hub=3),
    "undirected, typed": lambda rng: random_graph(rng, 150, 500, types=3, hub=3),
    "directed, typed": lambda rng: random_graph(rng, 150, 500, types=3, directed=True, hub=3),
    "torus of ties": lambda rng: grid_graph(9),
    "awkward, directed": lambda rng: awkward_graph(True),
    "awkward, undirected": lambda rng: awkward_graph(False),
}


def make(name: str) -> hf.Graph:
    return GRAPHS[name](np.random.default_rng(1))


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("norm", ["joint", "per_type"])
def test_ppr_is_the_same_on_every_variant_and_thread_count(every_isa: list[str], name: str, norm: str) -> None:
    graph = make(name)
    rng = np.random.default_rng(2)
    restart = random_restart(rng, graph.num_nodes, 11)
    damping = rng.choice([0.0, 0.3, 0.5, 0.85, 0.95], 11)
    expected = None
    for where, threads in each(every_isa):
        result = hf.ppr(graph, restart, damping=damping, edge_type_norm=norm, threads=threads)
        expected = expected or result
        assert_same(result, expected, ("scores", *EVIDENCE), where)


class Batch:
    """Queries that differ in damping, type weights and masks, to be asked alone and together."""

    def __init__(self, graph: hf.Graph, size: int, norm: str, *, typed: bool, masked: bool, seed: int) -> None:
        rng = np.random.default_rng(seed)
        n, types = graph.num_nodes, graph.num_edge_types
        self.graph, self.norm, self.size = graph, norm, size
        self.damping = rng.choice([0.0, 0.3, 0.5, 0.85, 0.9], size)
        self.eta = None
        if typed:
            self.eta = rng.choice([0.0, 0.3, 1.0, 2.0], (size, types)) + 0.125
            self.eta[0] = 1.0  # alone this is no weighting at all
            if norm == "per_type":
                self.eta = self.eta / self.eta.sum(axis=1, keepdims=True) * rng.choice([0.5, 1.0], (size, 1))
        self.masks = None
        if masked:
            self.masks = rng.random((size, n)) < 0.7
            self.masks[:, 0] = True
            self.masks[0] = True  # alone this is no mask at all
        self.restart = random_restart(rng, n, size, self.masks)

    def together(self, rows: list[int]) -> dict[str, Any]:
        options: dict[str, Any] = {"damping": self.damping[rows], "edge_type_norm": self.norm}
        if self.eta is not None:
            options["edge_type_weights"] = self.eta[rows]
        if self.masks is not None:
            options["allow"] = self.masks[rows]
        return {"restart": [self.restart[b] for b in rows], **options}

    def alone(self, b: int) -> dict[str, Any]:
        """Query b as one would ask it by itself."""
        options: dict[str, Any] = {"damping": float(self.damping[b]), "edge_type_norm": self.norm}
        if self.eta is not None and (self.norm == "per_type" or (self.eta[b] != 1).any()):
            options["edge_type_weights"] = self.eta[b]
        if self.masks is not None and not self.masks[b].all():
            options["allow"] = self.masks[b]
        return {"restart": [self.restart[b]], **options}


COMPOSITIONS = [
    lambda b, size: [b],
    lambda b, size: [b, *[i for i in range(size) if i != b]],
    lambda b, size: [*[i for i in range(size) if i != b], b],
    lambda b, size: [(b + 3 + i) % size for i in range(size)],
    lambda b, size: [b] * 5,
    lambda b, size: [(b + i) % size for i in range(size)] * 3,
]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(("norm", "typed"), [("joint", False), ("joint", True), ("per_type", True)])
@pytest.mark.parametrize("masked", [False, True])
def test_a_query_gets_the_same_scores_alone_and_anywhere_among_strangers(
    every_isa: list[str], name: str, norm: str, typed: bool, masked: bool
) -> None:
    graph = make(name)
    batch = Batch(graph, 13, norm, typed=typed, masked=masked, seed=3)
    threads = itertools.cycle(THREADS)
    for b in range(0, 13, 4):
        alone = hf.ppr(graph, **batch.alone(b))
        for compose in COMPOSITIONS:
            rows = compose(b, 13)
            result = hf.ppr(graph, **batch.together(rows), threads=next(threads))
            here = [at for at, row in enumerate(rows) if row == b]
            for at in here:
                picked = rows_of(result, slice(at, at + 1), ("scores", *EVIDENCE))
                assert_same(picked, alone, ("scores", *EVIDENCE), f"query {b} at {at} of {len(rows)}")


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(("norm", "typed"), [("joint", False), ("joint", True), ("per_type", True)])
@pytest.mark.parametrize("stop", ["proven", "tol"])
def test_a_query_gets_the_same_hits_alone_and_anywhere_among_strangers(
    every_isa: list[str], name: str, norm: str, typed: bool, stop: str
) -> None:
    graph = make(name)
    names = ("ids", "scores", "counts", "score_bounds", "proven", *EVIDENCE)
    threads = itertools.cycle(THREADS)
    for masked in (False, True):
        batch = Batch(graph, 9, norm, typed=typed, masked=masked, seed=4)
        for b in range(0, 9, 4):
            for k in (1, 5):
                alone = hf.ppr_topk(graph, k=k, stop=stop, **batch.alone(b))
                for compose in COMPOSITIONS:
                    rows = compose(b, 9)
                    hits = hf.ppr_topk(graph, k=k, stop=stop, **batch.together(rows), threads=next(threads))
                    at = rows.index(b)
                    picked = rows_of(hits, slice(at, at + 1), names)
                    assert_same(picked, alone, names, f"query {b} at {at} of {len(rows)}, k = {k}")


@given(case=ppr_cases((2, 3, 5, 9)))
def test_drawn_queries_get_the_same_scores_alone(every_isa: list[str], case: PprCase) -> None:
    batch = len(case.restart)
    together = hf.ppr(case.graph, case.restart, threads=2, **case.options)
    per_query = {
        name: np.broadcast_to(value, (batch, *np.shape(value)[np.ndim(value) - dims :]))
        for name, dims in (("damping", 0), ("edge_type_weights", 1), ("allow", 1))
        if (value := case.options.get(name)) is not None
    }
    shared = {name: value for name, value in case.options.items() if name not in per_query}
    for b in range(batch):
        options = {name: value[b] for name, value in per_query.items()}
        alone = hf.ppr(case.graph, [case.restart[b]], **shared, **options)
        picked = rows_of(together, slice(b, b + 1), ("scores", *EVIDENCE))
        assert_same(picked, alone, ("scores", *EVIDENCE), f"query {b}")


# ---- Dense top-k ----------------------------------------------------------------------------------------------------


def dense_inputs(kind: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    rng = np.random.default_rng(6)
    x, q = rng.standard_normal((430, 20)), rng.standard_normal((14, 20))
    if kind == "ties":
        x, q = np.round(x), np.round(q)
        x[:, 0] = q[:, 0] = 1.0
        x[200:] = x[:230]
    return x.astype(np.float32), q.astype(np.float32)


@pytest.mark.parametrize("kind", ["random", "ties"])
@pytest.mark.parametrize("metric", ["ip", "cosine"])
@pytest.mark.parametrize("storage", ["float32", "float16", "bfloat16", "int8"])
def test_dense_hits_are_the_same_everywhere(every_isa: list[str], kind: str, metric: Any, storage: Any) -> None:
    x, q = dense_inputs(kind)
    allow = np.random.default_rng(7).random((14, 430)) < 0.8
    corpus = hf.Corpus.from_array(x, metric=metric, storage=storage)
    widest = hf.dense_topk(q, corpus, 430)
    filtered = hf.dense_topk(q, corpus, 9, allow=allow)
    for where, threads in each(every_isa):
        fresh = hf.Corpus.from_array(x, metric=metric, storage=storage)  # codes made by this variant
        for searched in (corpus, fresh):
            for k in (1, 9, 53, 54, 430):
                assert_hits_equal(hf.dense_topk(q, searched, k, threads=threads), widest.head(k))
            assert_hits_equal(hf.dense_topk(q, searched, 9, allow=allow, threads=threads), filtered)
        for b in (0, 5, 13):
            alone = hf.dense_topk(q[b], fresh, 9, threads=threads)
            assert alone.row(0) == widest.head(9).row(b), where
            alone = hf.dense_topk(q[b], fresh, 9, allow=allow[b], threads=threads)
            assert alone.row(0) == filtered.row(b), where
        rolled = hf.dense_topk(np.roll(q, 3, axis=0), fresh, 9, threads=threads)
        assert_bitwise(rolled.ids, np.roll(widest.ids[:, :9], 3, axis=0), where)


# ---- Calibration and fusion -----------------------------------------------------------------------------------------

METHODS: list[dict[str, Any]] = [
    {"method": "boltzmann"},
    {"method": "boltzmann", "temperature": 0.05, "calibration": "min_max"},
    {"method": "linear", "calibration": "z_score"},
    {"method": "linear", "calibration": "l2", "consensus": 0.5},
    {"method": "rrf"},
    {"method": "max"},
    {"method": "comb_mnz", "calibration": "three_sigma"},
    {"method": "comb_med"},
    {"method": "log_isr"},
    {"method": "borda"},
    {"method": "rbc", "prior": np.linspace(0.0, 1.0, 15)},
    {"method": "log_linear", "calibration": "softmax", "pool": (5, None, 7)},
    {"method": "power_mean", "p": -1.0},
    {"method": "tsallis", "q": (1.5, 0.5, 1.0)},
    {"method": "quantum", "form": "sqrt"},
    {"method": "plackett_luce"},
    {"method": "gumbel"},
    {"method": "boltzmann", "wasserstein": 2.0, "calibration": "min_max"},
    {"method": "condorcet"},
    {"method": "wmnz"},
    {"method": "linear", "calibration": "gaussian"},
]


@pytest.mark.parametrize("options", METHODS, ids=lambda o: "-".join(map(str, o)) + "-" + str(o["method"]))
@pytest.mark.parametrize("grid", [None, 3])
def test_fused_lists_are_the_same_everywhere(every_isa: list[str], options: dict[str, Any], grid: int | None) -> None:
    rng = np.random.default_rng(8)
    lists = random_lists(rng, 40, 3, grid=grid)
    weights = rng.random((40, 3)) if hf.fusion.METHODS[options["method"]].weighted else None
    widest = hf.fuse(lists, k=25, weights=weights, **options)
    for _, threads in each(every_isa):
        for k in (0, 1, 7, 24):
            assert_hits_equal(hf.fuse(lists, k=k, weights=weights, threads=threads, **options), widest.head(k))
        for b in (0, 17, 39):
            alone = [hf.Hits(one.ids[b], one.scores[b], one.counts[b : b + 1]) for one in lists]
            own = None if weights is None else weights[b]
            assert hf.fuse(alone, k=25, weights=own, threads=threads, **options).row(0) == widest.row(b)


@pytest.mark.parametrize("method", hf.fusion.calibration.CALIBRATIONS)
@pytest.mark.parametrize("grid", [None, 3])
def test_calibrated_lists_are_the_same_everywhere(every_isa: list[str], method: Any, grid: int | None) -> None:
    method = hf.fusion.Calibration(method, lower=-0.5 if method == "theoretical_min_max" else None)
    (hits,) = random_lists(np.random.default_rng(9), 60, 1, width=50, ids=80, grid=grid)
    expected = hf.calibrate(hits, method)
    for where, threads in each(every_isa):
        done = hf.calibrate(hits, method, threads=threads)
        assert_bitwise(done.scores, expected.scores, where)
        for b in (0, 30, 59):
            alone = hf.calibrate(hf.Hits(hits.ids[b], hits.scores[b], hits.counts[b : b + 1]), method, threads=threads)
            assert_bitwise(alone.scores[0], expected.scores[b], where)
