"""Cases of the self-test: small, seeded, and together reaching every kernel.

Those of walks and dense search, which are many, and of a whole search stand here, others beside their calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from ..types import Corpus
from ..types.corpus import STORAGES, Metric, Storage
from . import calls
from .call import Answer, Backend, Case, hits_of
from .calls.dense import DenseCall, RowFilter, SimilarityCall
from .calls.fusion import FuseCall, calibration_option
from .calls.ppr import NodeWeightCall, PprCall, PprTopkCall
from .node_weights import NodeWeights
from .selftest_data import NODES, draw_filter, draw_walks
from .walk_queries import DeviceSeeds, NodeRanking, PprQueries

#: Batch sizes that use 4, 8, 16 and 32 lanes of a device block.
BATCHES = (3, 6, 11, 20)
_TYPES = 3


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
    yield from (case for case in _cases_of_calls() if case.is_quick)
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
    yield from _similarity_cases()
    yield from _cases_of_calls()
    yield search_case()
    yield from walk_cases()


def _cases_of_calls() -> Iterator[Case]:
    """Yield the cases that stand beside their calls."""
    for module in calls.modules():
        yield from getattr(module, "cases", tuple)()


# ---- Personalized PageRank -------------------------------------------------------------------------------------


def _ppr_cases(batch: int) -> Iterator[Case]:
    yield ppr_case(f"ppr plain, {batch} queries", batch)
    yield ppr_case(f"ppr plain, masks, {batch} queries", batch, masks=batch)
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
    yield topk_case(f"ppr_topk refined, {batch} queries", batch, k=NODES - 20, weighted=True, tol=1e-4)
    yield topk_case(f"ppr_topk refined, masks, {batch} queries", batch, k=NODES - 20, tol=1e-4, masks=batch)
    for k in (80, 100):  # bounds from a node's neighbours, and from two steps around it
        yield topk_case(f"ppr_topk of {k}, a set, {batch} queries", batch, k=k, order=False, weighted=True, tol=1e-4)
    for decades in (2.0, 12.0):  # with Chebyshev acceleration, and without
        name = f"ppr_topk refined, node weights of {decades:.0f} decades, {batch} queries"
        yield topk_case(name, batch, k=NODES - 20, weighted=True, tol=1e-4, decades=decades)
    yield topk_case(f"ppr_topk to tol, {batch} queries", batch, proven=False, types=_TYPES, directed=True)
    yield topk_case(
        f"ppr_topk of nodes that blocks share, {batch} queries", batch, proven=False, tol=0.3, nodes_in_all=1 << 14
    )
    yield topk_case(f"ppr_topk of all nodes, masks, {batch} queries", batch, k=NODES, types=_TYPES, masks=batch)


def ppr_case(name: str, batch: int, **options: Any) -> Case:
    def run(backend: Backend) -> Answer:
        graph, queries = draw_walks(batch, **options)
        scores = np.empty((batch, graph.num_nodes), np.float32)
        evidence = backend.run(PprCall(graph, queries, scores))
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
        graph, queries = draw_walks(batch, **options)
        candidates = np.arange(0, graph.num_nodes, 3, dtype=np.int32) if some else None
        hits, evidence = backend.run(PprTopkCall(graph, queries, NodeRanking(k, candidates, proven, order)))
        return [hits[name] for name in ("ids", "scores", "counts", "score_bounds", "proven")] + list(evidence)

    return Case(name, run)


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
        allowed = draw_filter(rng, allow, batch, rows, shared)
        with _small_corpora_coded(backend) if coded else nullcontext():
            hits = backend.run(DenseCall(queries.astype(np.float32), corpus, k, allowed, threads=1))
        return hits_of(hits)

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
    hits = backend.run(DenseCall(queries, corpus, 5, RowFilter(), threads=1))
    return hits_of(hits)


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
        hits = backend.run(DenseCall(queries, corpus, 5, RowFilter(), threads=1))
        return hits_of(hits)

    return Case(name, run)


def _subnormal_rows(backend: Backend) -> Answer:
    """Search rows of subnormal float16 numbers: products of 0 in their place would prove wrong candidates."""
    rng = np.random.default_rng(14)
    vectors = rng.integers(-512, 513, (300, 24)).astype(np.float32) * np.float32(2.0**-24)
    queries = rng.standard_normal((5, 24)).astype(np.float32)
    corpus = Corpus.from_array(vectors, storage="float16")
    hits = backend.run(DenseCall(queries, corpus, 5, RowFilter(), threads=1))
    return hits_of(hits)


def _similarity_cases() -> Iterator[Case]:
    for storage in STORAGES:
        yield similarity_case(f"similarity_weights {storage}", storage=storage)
    for kind in ("mask", "few ids"):
        yield similarity_case(f"similarity_weights, a filter each, {kind}", storage="float32", allow=kind)


def similarity_case(name: str, *, storage: Storage, allow: str | None = None) -> Case:
    def run(backend: Backend) -> Answer:
        rng = np.random.default_rng(11)
        batch, rows = 6, 300
        corpus = Corpus.from_array(rng.standard_normal((rows, 24)).astype(np.float32), storage=storage)
        queries = rng.standard_normal((batch, 24)).astype(np.float32)
        allowed = draw_filter(rng, allow, batch, rows, shared=False)
        return [backend.run(SimilarityCall(queries, corpus, 1.0, 1e-4, allowed, threads=1))]

    return Case(name, run)


# ---- A search ----------------------------------------------------------------------------------------------------


def search_case() -> Case:
    """Return a case that a device records and replays."""
    return Case("search, recorded and replayed", _search)


def _search(backend: Backend) -> Answer:
    """Fuse dense hits with a walk guided by similarity weights; a device runs it as a recording."""
    batch, rng = 5, np.random.default_rng(8)
    graph, queries = draw_walks(batch, weighted=True)
    corpus = Corpus.from_array(rng.standard_normal((NODES, 24)).astype(np.float32))
    vectors = rng.standard_normal((batch, 24)).astype(np.float32)
    queries = queries._replace(damping=np.full(batch, 0.5))
    dense_call = DenseCall(vectors, corpus, 20, RowFilter(), threads=1)
    fuse_call = FuseCall(
        [],
        method="boltzmann",
        calibration="pit",
        ties="strict",
        calibration_option=calibration_option(2),
        pools=np.array([20, 10]),
        option={},
        weights=np.array([0.7, 0.3], np.float32),
        consensus=0.0,
        prior=np.ones(1, np.float32),
        k=10,
        threads=1,
    )

    def search(call: DenseCall, starts: PprQueries) -> list[Any]:
        dense, limits = backend.run(call), (1.0, 0.01, RowFilter())
        similar = SimilarityCall(call.queries, corpus, *limits, threads=1, on_device=call.on_device)
        weights = weigh(backend.run(similar))
        walked, _ = backend.run(PprTopkCall(graph, starts._replace(node_weights=weights), NodeRanking(10)))
        lists = [(hits["ids"], hits["scores"], hits["counts"]) for hits in (dense, walked)]
        hits = backend.run(fuse_call._replace(lists=lists, on_device=call.on_device))
        return [hits["ids"], hits["scores"], hits["counts"], walked["scores"]]

    def weigh(weights: Any) -> NodeWeights:
        given = NodeWeightCall(graph, weights, graph.internal_of, per_type=False, allow=None, lightest=None)
        return backend.run(given)

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
