"""Cases of the self-test: small, seeded, and together reaching every kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native, fusion
from .._arrays.rows import indptr_of_counts
from ..fusion import METHODS, FusionMethod
from ..types import Corpus, Graph, Incidence, LabelSets
from ..types.corpus import STORAGES, Metric, Storage
from .calls import (
    Backend,
    BoostCall,
    CalibrateCall,
    CoverCall,
    DenseCall,
    DeviceSeeds,
    DiceCall,
    EntitySeedCall,
    FuseCall,
    IsingCall,
    IsingModel,
    KernelOptions,
    NodeRanking,
    PassageSeedCall,
    PprQueries,
    ProjectCall,
    RowFilter,
    SimilarityCall,
)
from .node_weights import NodeWeightCall, NodeWeights, order_weights
from .walks import Restart

Answer = list[NDArray[Any]]

#: Batch sizes that use 4, 8, 16 and 32 lanes of a device block.
BATCHES = (3, 6, 11, 20)
_NODES, _HUB, _TYPES = 140, 7, 3
_LISTS = ((30, 30), (12, 40), (5, 20))  # hits of each list, and the number of ids to draw from
#: A method for each kernel: by default options, or by those that reach more of it.
_METHODS: dict[str, FusionMethod] = {
    **{str(method.kernel): method() for method in METHODS.values()},
    "boltzmann": fusion.Boltzmann(temperature=0.5, wasserstein=2.0),
    "max": fusion.Max(bias=(0.25, 0.25, 0.25)),
    "tsallis": fusion.Tsallis(q=(0.5, 1.0, 1.5)),
    "quantum": fusion.Quantum(form="sqrt", temperature=0.5),
}
_TIES = sorted(_native.ties(), key=_native.ties().__getitem__)
#: Calibrations without a rule for ties, by number.
_CALIBRATIONS = sorted(_native.calibrations().keys() - {"pit"}, key=_native.calibrations().__getitem__)


def _calibration_option(lists: int) -> KernelOptions:
    """Return the options of a calibration of this many lists."""
    return {
        "single": math.nan,  # not given, as equal and upper
        "equal": math.nan,
        "temperature": 0.5,
        "lower": np.full(lists, -1.0, np.float32),
        "upper": np.full(lists, np.nan, np.float32),
    }


@dataclass(frozen=True)
class Case:
    name: str
    run: Callable[[Backend], Answer]


def quick_cases() -> Iterator[Case]:
    """Yield a case of each op; all together take about a second."""
    batch = BATCHES[0]
    yield ppr_case("ppr typed, masked, node weights", batch, types=_TYPES, masks=batch, decades=3.0)
    yield topk_case("ppr_topk", batch, weighted=True)
    for storage in STORAGES:
        yield dense_case(f"dense_topk {storage}", storage=storage)
    yield dense_case("dense_topk by codes", storage="float32", coded=True)
    yield from _product_cases()
    yield similarity_case("similarity_weights", storage="float16")
    yield fuse_case("boltzmann")
    yield calibrate_case("pit", "mean")
    yield ising_case("ising", weighted=True)
    yield Case("dice", _dice)
    yield from _projections()
    yield search_case()


def walk_cases() -> list[Case]:
    """Return walks that a device can run in one launch of many blocks, of few queries and of more."""
    named = (("ppr in one launch, by slices", BATCHES[0]), ("ppr in one launch", BATCHES[1]))
    return [ppr_case(name, batch, weighted=True, tol=0.3, nodes_in_all=1 << 13) for name, batch in named]


def every_case() -> Iterator[Case]:
    """Yield cases that reach every kernel."""
    for batch in BATCHES:
        yield from _ppr_cases(batch)
        yield from _topk_cases(batch)
    yield from _dense_cases()
    for storage in STORAGES:
        yield similarity_case(f"similarity_weights {storage}", storage=storage)
    for kind in ("mask", "few ids"):
        yield similarity_case(f"similarity_weights, a filter each, {kind}", storage="float32", allow=kind)
    for method in _METHODS:
        yield fuse_case(method)
        yield fuse_case(method, long_lists=True)
    for method in _CALIBRATIONS:
        yield calibrate_case(method, "strict")
    for ties in _TIES:
        yield calibrate_case("pit", ties)
    yield ising_case("ising", weighted=True)
    yield ising_case("ising typed, below the critical temperature", types=_TYPES, temperature=0.5)
    yield Case("add_passage_seeds", _passage_seeds)
    yield Case("add_entity_seeds", _entity_seeds)
    yield Case("cover_seeds", _cover)
    yield Case("boost_weights", _boost)
    yield Case("dice", _dice)
    yield from _projections()
    yield search_case()
    yield from walk_cases()


# ---- Personalized PageRank -------------------------------------------------------------------------------------


def _ppr_cases(batch: int) -> Iterator[Case]:
    yield ppr_case(f"ppr plain, {batch} queries", batch)
    yield ppr_case(f"ppr weighted, polished, {batch} queries", batch, weighted=True, damping=0.95, tol=1e-7)
    for directed in (False, True):
        way = "directed" if directed else "undirected"
        yield ppr_case(f"ppr typed, {way}, {batch} queries", batch, types=_TYPES, directed=directed)
        for masks in (1, batch):
            name = f"ppr typed, {way}, {masks} mask{'s' if masks > 1 else ''}, {batch} queries"
            yield ppr_case(name, batch, types=_TYPES, directed=directed, masks=masks)
    yield ppr_case(f"ppr per type, {batch} queries", batch, types=_TYPES, per_type=True)
    yield ppr_case(f"ppr per type, masks, {batch} queries", batch, types=_TYPES, per_type=True, masks=batch)
    for per_type in (False, True):
        how = "per type" if per_type else "typed"
        options: dict[str, Any] = {"types": _TYPES, "per_type": per_type, "directed": True, "decades": 30.0}
        yield ppr_case(f"ppr {how}, directed, node weights, {batch} queries", batch, **options)


def _topk_cases(batch: int) -> Iterator[Case]:
    yield topk_case(f"ppr_topk proven, {batch} queries", batch, weighted=True)
    yield topk_case(f"ppr_topk proven, among some, {batch} queries", batch, some=True)
    yield topk_case(f"ppr_topk refined, {batch} queries", batch, k=_NODES - 20, weighted=True, tol=1e-4)
    for k in (80, 100):  # bounds from a node's neighbours, and from two steps around it
        yield topk_case(f"ppr_topk of {k}, a set, {batch} queries", batch, k=k, order=False, weighted=True, tol=1e-4)
    for decades in (2.0, 12.0):  # with Chebyshev acceleration, and without
        name = f"ppr_topk refined, node weights of {decades:.0f} decades, {batch} queries"
        yield topk_case(name, batch, k=_NODES - 20, weighted=True, tol=1e-4, decades=decades)
    yield topk_case(f"ppr_topk to tol, {batch} queries", batch, proven=False, types=_TYPES, directed=True)
    yield topk_case(
        f"ppr_topk of nodes that blocks share, {batch} queries", batch, proven=False, tol=0.3, nodes_in_all=1 << 14
    )
    yield topk_case(f"ppr_topk of all nodes, masks, {batch} queries", batch, k=_NODES, types=_TYPES, masks=batch)


def ppr_case(name: str, batch: int, **options: Any) -> Case:
    def run(backend: Backend) -> Answer:
        graph, queries = _walk(batch, **options)
        scores = np.empty((batch, graph.num_nodes), np.float32)
        evidence = backend.ppr(graph, queries, scores)
        return [scores, *evidence]

    return Case(name, run)


def topk_case(
    name: str,
    batch: int,
    *,
    k: int = 10,
    proven: bool = True,
    order: bool = True,
    some: bool = False,
    **options: Any,
) -> Case:
    def run(backend: Backend) -> Answer:
        graph, queries = _walk(batch, **options)
        candidates = np.arange(0, graph.num_nodes, 3, dtype=np.int32) if some else None
        hits, evidence = backend.ppr_topk(graph, queries, NodeRanking(k, candidates, proven, order))
        return [hits[name] for name in ("ids", "scores", "counts", "score_bounds", "proven")] + list(evidence)

    return Case(name, run)


def _walk(
    batch: int,
    *,
    weighted: bool = False,
    types: int = 1,
    directed: bool = False,
    per_type: bool = False,
    masks: int = 0,
    decades: float = 0.0,
    damping: float = 0.5,
    tol: float = 1e-6,
    nodes_in_all: int = _NODES,
) -> tuple[Graph, PprQueries]:
    """Return a graph with a hub longer than a segment, self-loops and isolated nodes, and a batch of queries on it.

    The unweighted graph has no parallel edges, which would be summed to weights. If ``decades`` is given, half of the
    nodes have node weights spread over that many decades.
    """
    rng = np.random.default_rng(batch)
    plain = types == 1 and not weighted
    pairs = rng.integers(0, nodes_in_all - 10, (4 * nodes_in_all, 2))
    pairs = np.concatenate([pairs, [(node, _HUB) for node in range(nodes_in_all - 10)]])
    src, dst = (np.unique(np.sort(pairs, axis=1), axis=0) if plain else pairs).T
    graph = Graph.from_edges(
        src,
        dst,
        None if plain else rng.random(src.size) + 0.01,
        num_nodes=nodes_in_all,
        directed=directed,
        edge_type=rng.integers(0, types, src.size) if types > 1 else None,
        edge_type_names=[f"type {t}" for t in range(types)] if types > 1 else None,
    )
    nodes = [np.sort(rng.choice(nodes_in_all - 10, 3, replace=False)).astype(np.int32) for _ in range(batch)]
    allowed = np.asarray(rng.random((masks, nodes_in_all)) < 0.7, np.uint8) if masks else None
    if allowed is not None:
        for query, seeds in enumerate(nodes):
            allowed[query % masks, seeds] = 1
    weights = None
    if types > 1:
        weights = rng.random((batch, types)) + 0.1
        weights /= weights.sum(axis=1, keepdims=True) if per_type else weights.max(axis=1, keepdims=True)
    restart = Restart(np.arange(batch + 1, dtype=np.int64) * 3, np.concatenate(nodes), rng.random(3 * batch) + 0.1)
    node_weights = None
    if decades:
        own = np.arange(0, nodes_in_all, 2, dtype=np.int32)
        drawn = 10.0 ** (-decades * rng.random((batch, own.size)))
        node_weights = order_weights(NodeWeightCall(graph, drawn, own, per_type=False, allow=allowed, lightest=None))
    return graph, PprQueries(
        *restart,
        damping=np.where(np.arange(batch) % 4 == 3, 0.85, damping),
        edge_type_weights=weights,
        per_type=per_type,
        allow=allowed,
        tol=tol,
        max_iter=0,
        threads=1,
        node_weights=node_weights,
    )


# ---- Dense top-k -----------------------------------------------------------------------------------------------


def _product_cases() -> Iterator[Case]:
    """Yield cases that a device fails if its matrix products are less exact than is assumed."""
    yield Case("dense_topk, scores closer than TF32 tells apart", _close_scores)
    for storage, step in ((STORAGES[1], 2.0**-19), (STORAGES[2], 5 * 2.0**-21)):
        yield close_case(f"dense_topk, scores closer than {storage} tells apart", storage=storage, step=step)
    yield Case("dense_topk, subnormal float16 rows", _subnormal_rows)


def _dense_cases() -> Iterator[Case]:
    yield from _product_cases()
    for storage in STORAGES:
        for metric in ("ip", "cosine"):
            yield dense_case(f"dense_topk {storage}, {metric}", storage=storage, metric=metric)
        for shared in (True, False):
            whose = "one filter" if shared else "a filter each"
            for kind in ("mask", "ids", "few ids"):
                name = f"dense_topk {storage}, {whose}, {kind}"
                yield dense_case(name, storage=storage, allow=kind, shared=shared)
        for batch in (3, 9, 33):
            yield dense_case(
                f"dense_topk {storage} by codes, {batch} queries", storage=storage, batch=batch, coded=True
            )
        yield dense_case(f"dense_topk {storage}, ties that no bound orders", storage=storage, levels=2)
        yield dense_case(f"dense_topk {storage}, every row", storage=storage, k=300, batch=1)
        yield dense_case(
            f"dense_topk {storage}, more hits than a block holds", storage=storage, rows=2200, k=2100, batch=1
        )


def dense_case(
    name: str,
    *,
    storage: Storage,
    metric: Metric = "ip",
    rows: int = 300,
    k: int = 5,
    allow: str | None = None,
    shared: bool = True,
    levels: int | None = None,
    batch: int = 5,  # a device scores up to four queries at once
    coded: bool = False,
) -> Case:
    def run(backend: Backend) -> Answer:
        rng = np.random.default_rng(rows + k)
        vectors, queries = rng.standard_normal((rows, 24)), rng.standard_normal((batch, 24))
        if levels is not None:  # few distinct values, so many ties
            vectors, queries = np.sign(vectors) * levels, np.sign(queries)
        corpus = Corpus.from_array(vectors.astype(np.float32), metric=metric, storage=storage)
        allowed = _filter(rng, allow, batch, rows, shared)
        with _small_corpora_coded(backend) if coded else nullcontext():
            hits = backend.dense_topk(DenseCall(queries.astype(np.float32), corpus, k, allowed, threads=1))
        return [hits["ids"], hits["scores"], hits["counts"]]

    return Case(name, run)


@contextmanager
def _small_corpora_coded(backend: Backend) -> Iterator[None]:
    """Make codes of corpora of any size on a device meanwhile."""
    if backend.device is None:
        yield
        return
    sizes = backend.device.runtime.device.sizes
    least, sizes.coded_bytes = sizes.coded_bytes, 0
    try:
        yield
    finally:
        sizes.coded_bytes = least


def _close_scores(backend: Backend) -> Answer:
    """Search 512 rows whose scores differ by steps of 2⁻¹⁹, all within 2⁻¹⁰ (relative).

    float32 products distinguish them within the assumed error bound and prove the best 5 from 37 candidates. If inputs
    were rounded to TF32's 11 bits or fewer, rows within 2⁻¹¹ would get equal scores, and wrong candidates would seem
    proven.
    """
    rows, dim = 512, 24
    steps = np.random.default_rng(12).permutation(rows)
    vectors = np.full((rows, dim), 1.25, np.float32) * (1 + steps[:, None] * np.float32(2.0**-19))
    corpus = Corpus.from_array(vectors)
    # More queries than a device scores canonically at once, without a product.
    queries = np.repeat(np.stack([np.ones(dim, np.float32), -np.ones(dim, np.float32)]), 3, axis=0)
    hits = backend.dense_topk(DenseCall(queries, corpus, 5, RowFilter(), threads=1))
    return [hits["ids"], hits["scores"], hits["counts"]]


def close_case(name: str, *, storage: Storage, step: float) -> Case:
    """Return a search of 512 rows of 16 bits whose scores differ by ``step``, all within 2⁻⁹ of 1.

    Four numbers add the digits of a row's steps to a product of 1. Matrix units that keep 22 bits and queries of two
    16-bit parts prove the best 5 from 37 candidates. If units kept 14 bits, the best 64 rows would get equal products,
    and wrong candidates would seem proven.
    """

    def run(backend: Backend) -> Answer:
        rows = 512
        steps = np.random.default_rng(13).permutation(rows)
        vectors, queries = np.zeros((rows, 24), np.float32), np.zeros((5, 24), np.float32)
        vectors[:, 0] = 1.0
        vectors[:, 1:5] = 16 * step * (steps[:, None] // [1, 4, 16, 64] % [4, 4, 4, 8] * [1, 4, 16, 64])
        queries[:, 0], queries[:, 1:5] = 1.0, 1 / 16
        queries *= np.array([1, -1, 1, -1, 1], np.float32)[:, None] * np.float32(1 + 2.0**-10 + 2.0**-12)
        corpus = Corpus.from_array(vectors, storage=storage)
        hits = backend.dense_topk(DenseCall(queries, corpus, 5, RowFilter(), threads=1))
        return [hits["ids"], hits["scores"], hits["counts"]]

    return Case(name, run)


def _subnormal_rows(backend: Backend) -> Answer:
    """Search rows of subnormal float16 numbers: products of 0 in their place would prove wrong candidates."""
    rng = np.random.default_rng(14)
    vectors = rng.integers(-512, 513, (300, 24)).astype(np.float32) * np.float32(2.0**-24)
    queries = rng.standard_normal((5, 24)).astype(np.float32)
    corpus = Corpus.from_array(vectors, storage="float16")
    hits = backend.dense_topk(DenseCall(queries, corpus, 5, RowFilter(), threads=1))
    return [hits["ids"], hits["scores"], hits["counts"]]


def similarity_case(name: str, *, storage: Storage, allow: str | None = None) -> Case:
    def run(backend: Backend) -> Answer:
        rng = np.random.default_rng(11)
        batch, rows = 6, 300
        corpus = Corpus.from_array(rng.standard_normal((rows, 24)).astype(np.float32), storage=storage)
        queries = rng.standard_normal((batch, 24)).astype(np.float32)
        allowed = _filter(rng, allow, batch, rows, shared=False)
        return [backend.similarity_weights(SimilarityCall(queries, corpus, 1.0, 1e-4, allowed, threads=1))]

    return Case(name, run)


def _filter(rng: np.random.Generator, kind: str | None, batch: int, rows: int, shared: bool) -> RowFilter:
    if kind is None:
        return RowFilter()
    chosen = rng.random((1 if shared else batch, rows)) < (0.05 if kind == "few ids" else 0.6)
    if kind == "mask":
        mask = chosen.astype(np.uint8)
        return RowFilter(mask=mask[0] if shared else mask, shared=shared)
    ids = np.nonzero(chosen)[1].astype(np.int64)
    return RowFilter(indptr=indptr_of_counts(chosen.sum(axis=1)), ids=ids, shared=shared)


# ---- Calibration and fusion ------------------------------------------------------------------------------------


def fuse_case(method: str, *, long_lists: bool = False) -> Case:
    """Return a case; long lists exceed what a block sorts in shared memory."""

    def run(backend: Backend) -> Answer:
        rng = np.random.default_rng(5)
        sizes = tuple((60 * width, 60 * documents) for width, documents in _LISTS) if long_lists else _LISTS
        lists = [_list(rng, 2 if long_lists else 9, *size) for size in sizes]
        call = FuseCall(
            lists,
            method=method,
            calibration="none" if _METHODS[method].calibrations == () else "pit",
            ties="strict",
            calibration_option=_calibration_option(len(lists)),
            pools=np.array([ids.shape[1] - 1 for ids, _, _ in lists], np.int64),
            option=_METHODS[method].kernel_options(len(lists)),
            weights=np.array([0.5, 0.25, 0.25], np.float32),
            consensus=0.5,
            prior=np.linspace(0.5, 1.0, 40, dtype=np.float32),
            k=20,
            threads=1,
        )
        hits = backend.fuse(call)
        return [hits["ids"], hits["scores"], hits["counts"]]

    return Case(f"fuse {method}{', long lists' if long_lists else ''}", run)


def calibrate_case(method: str, ties: str) -> Case:
    def run(backend: Backend) -> Answer:
        _, scores, counts = _list(np.random.default_rng(6), 9, 70, 80)
        return [backend.calibrate(CalibrateCall(scores, counts, method, ties, _calibration_option(1), threads=1))]

    return Case(f"calibrate {method}{f', {ties} ties' if method == 'pit' else ''}", run)


def ising_case(name: str, *, temperature: float = 2.0, **options: Any) -> Case:
    def run(backend: Backend) -> Answer:
        graph, _ = _walk(3, **options)
        hits = _list(np.random.default_rng(9), 5, 70, _NODES)
        model = IsingModel(coupling=1.0, temperature=temperature, relaxation=0.5, steps=10, blend=0.25)
        best = backend.ising(IsingCall(graph, hits, model, k=30, threads=1))
        return [best["ids"], best["scores"], best["counts"]]

    return Case(name, run)


def _passage_seeds(backend: Backend) -> Answer:
    rng = np.random.default_rng(7)
    hits = _list(rng, 9, 12, 40)
    node = np.stack([rng.permutation(40)[:4] for _ in range(9)]).astype(np.int64)
    node[3:, 3] = -1
    weight = np.where(node < 0, 0.0, rng.random(node.shape) + 0.1)
    return list(backend.add_passage_seeds(PassageSeedCall(node, weight, *hits, mass=0.5)))


def _entity_seeds(backend: Backend) -> Answer:
    """Add entities of hits to seeds, with overlaps, weights of all sizes and a query without seeds."""
    rng = np.random.default_rng(8)
    pairs = np.unique(rng.integers(0, 30 * 20, 150))
    weights = 10.0 ** rng.integers(-9, 9, pairs.size)
    mentions = Incidence.from_pairs(pairs // 20, pairs % 20, weights, num_rows=30, num_columns=20)
    node = np.stack([rng.permutation(20)[:4] for _ in range(9)]).astype(np.int64)
    node[3:, 3], node[8] = -1, -1
    weight = np.where(node < 0, 0.0, rng.random(node.shape) + 0.1)
    ids, _, counts = _list(rng, 9, 3, 30)
    often = rng.integers(0, 5, (9, 20))
    nodes, shares = backend.add_entity_seeds(EntitySeedCall(node, weight, ids, counts, mentions, often, mass=0.5))
    kept = 4 + int(np.diff(mentions.indptr)[ids].sum(axis=1).max())  # a device returns more columns than the host
    return [_to_width(nodes, kept, -1), _to_width(shares, kept, 0.0)]


def _cover(backend: Backend) -> Answer:
    """Cover seeds with ties of weight, below the floor, without a mention, and a query without seeds."""
    rng = np.random.default_rng(12)
    pairs = np.unique(rng.integers(0, 30 * 20, 150))
    weights = rng.integers(0, 3, pairs.size)
    mentions = Incidence.from_pairs(pairs // 20, pairs % 20, weights, num_rows=30, num_columns=20)
    node = np.stack([rng.permutation(24)[:6] for _ in range(9)]).astype(np.int64)
    node[3:, 3], node[8] = -1, -1
    weight = np.where(node < 0, 0.0, rng.integers(0, 5, node.shape) / 4)
    hits = backend.cover_seeds(CoverCall(node, weight, *_list(rng, 9, 12, 30), mentions, k=3, least=0.3))
    return [hits["ids"], hits["scores"], hits["counts"]]


def _boost(backend: Backend) -> Answer:
    """Boost weights by scores of both signs and all sizes, and by an empty list."""
    rng = np.random.default_rng(11)
    ids, scores, counts = _list(rng, 9, 300, 700)
    size = 10.0 ** rng.integers(-40, 30, scores.shape)
    scores = (scores * np.where(rng.random(scores.shape) < 0.2, -size, size)).astype(np.float32)
    weights = rng.random((9, 700), np.float32)
    return [backend.boost_weights(BoostCall(weights, ids, scores, counts, 2.5))]


def _to_width(array: NDArray[Any], width: int, padding: float) -> NDArray[Any]:
    """Pad or cut an array to ``width`` columns."""
    short = ((0, 0), (0, max(0, width - array.shape[1])))
    return np.ascontiguousarray(np.pad(array, short, constant_values=padding)[:, :width])


def _dice(backend: Backend) -> Answer:
    """Score labels of all lengths from 0, texts with elements that no label has, and queries without candidates."""
    rng = np.random.default_rng(9)
    labels = LabelSets.from_labels([_drawn_text(rng, length) for length in rng.integers(0, 40, 50)])
    sets = labels.sets_of([_drawn_text(rng, length) + " é€" for length in (0, 5, 30, 30, 200)])
    candidates = rng.integers(0, len(labels), (700, 3)).astype(np.int32)
    return [backend.dice(DiceCall(labels, *sets, candidates, np.array([0, 0, 1, 300, 300, 700]), threads=1))]


def _drawn_text(rng: np.random.Generator, length: int) -> str:
    return "".join(rng.choice(list("abcde "), length))


def _projections() -> Iterator[Case]:
    yield Case("project", lambda backend: _project(backend, None))
    yield Case("project_topk", lambda backend: _project(backend, 30))


def _project(backend: Backend, k: int | None) -> Answer:
    """Project onto empty rows and a row of all columns, with ties and denormal weights."""
    rng = np.random.default_rng(10)
    rows, columns, batch = 300, 150, 11
    pairs = np.unique(np.concatenate([rng.integers(0, rows * columns, 900), _HUB * columns + np.arange(columns)]))
    weights = rng.random(pairs.size) * 10.0 ** rng.integers(-42, 2, pairs.size)
    incidence = Incidence.from_pairs(*np.divmod(pairs, columns), weights, num_rows=rows, num_columns=columns)
    scores = (rng.integers(-4, 9, (batch, columns)) / 8).astype(np.float32)
    scale = rng.random(rows).astype(np.float32)
    if k is None:
        return [backend.project(ProjectCall(incidence, scores, scale, rows, threads=1))]
    hits = backend.project_topk(ProjectCall(incidence, scores, scale, k, threads=1))
    return [hits["ids"], hits["scores"], hits["counts"]]


def search_case() -> Case:
    """Return a case that a device records and replays."""
    return Case("search, recorded and replayed", _search)


def _search(backend: Backend) -> Answer:
    """Fuse dense hits with a walk guided by similarity weights; a device runs it as a recording."""
    batch, rng = 5, np.random.default_rng(8)
    graph, queries = _walk(batch, weighted=True)
    corpus = Corpus.from_array(rng.standard_normal((_NODES, 24)).astype(np.float32))
    vectors = rng.standard_normal((batch, 24)).astype(np.float32)
    queries = queries._replace(damping=np.full(batch, 0.5))
    dense_call = DenseCall(vectors, corpus, 20, RowFilter(), threads=1)
    fuse_call = FuseCall(
        [],
        method="boltzmann",
        calibration="pit",
        ties="strict",
        calibration_option=_calibration_option(2),
        pools=np.array([20, 10]),
        option={},
        weights=np.array([0.7, 0.3], np.float32),
        consensus=0.0,
        prior=np.ones(1, np.float32),
        k=10,
        threads=1,
    )

    def search(call: DenseCall, starts: PprQueries) -> list[Any]:
        dense, limits = backend.dense_topk(call), (1.0, 0.01, RowFilter())
        similar = SimilarityCall(call.queries, corpus, *limits, threads=1, on_device=call.on_device)
        weights = weigh(backend.similarity_weights(similar))
        walked, _ = backend.ppr_topk(graph, starts._replace(node_weights=weights), NodeRanking(10))
        lists = [(hits["ids"], hits["scores"], hits["counts"]) for hits in (dense, walked)]
        hits = backend.fuse(fuse_call._replace(lists=lists, on_device=call.on_device))
        return [hits["ids"], hits["scores"], hits["counts"], walked["scores"]]

    def weigh(weights: Any) -> NodeWeights:
        given = NodeWeightCall(graph, weights, graph.internal_of, per_type=False, allow=None, lightest=None)
        return backend.order_weights(given)

    device = backend.device
    if device is None:
        return search(dense_call, queries)
    from .cuda import Recordings

    def core(vectors: Any, node: Any, weight: Any) -> tuple[Any, ...]:
        runtime = device.runtime
        seeds = DeviceSeeds(runtime.adopt(node), runtime.adopt(weight), False)
        chosen = queries._replace(
            indptr=np.zeros(seeds.node.shape[0] + 1, np.int64),
            damping=np.full(seeds.node.shape[0], 0.5),
            seeds=seeds,
        )
        call = dense_call._replace(queries=runtime.adopt(vectors), on_device=True)
        return tuple(runtime.export(array, None) for array in search(call, chosen))

    shapes = [((24,), np.float32), ((3,), np.int64), ((3,), np.float64)]
    node = graph.node_of[queries.node].reshape(batch, 3).astype(np.int64)
    recorded = Recordings(device, core, shapes, (batch,))
    answers = [recorded.on_host([vectors, node, queries.value.reshape(batch, 3)]) for _ in range(2)]
    return list(answers[1])


def _list(
    rng: np.random.Generator, batch: int, width: int, documents: int
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """Draw sorted hits with ties; the lists of all queries but the first are partly empty."""
    ids = np.stack([rng.permutation(documents)[:width] for _ in range(batch)]).astype(np.int64)
    scores = np.sort(rng.integers(1, 40, ids.shape) / 8, axis=1)[:, ::-1].astype(np.float32)
    counts = rng.integers(0, width + 1, batch)
    counts[0] = width
    ids[np.arange(width) >= counts[:, None]] = -1
    scores[np.arange(width) >= counts[:, None]] = -np.inf
    return ids, scores, counts
