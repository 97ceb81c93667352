"""Measure what decides whether a graph helps: the graph, its names, the questions' seeds, the walks and the legs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..evaluate.comparison import compare
from ..evaluate.metrics import full_support
from ..evaluate.qrels import Qrels
from ..evaluate.runs import join_hits
from ..index import Index
from ..ops.ppr import ppr, ppr_topk
from ..retriever import Retriever
from ..types import Candidates, Graph, Hits
from .measures import connected_components, error_correlation, hub_nodes, mass_spread, overlap, pool_loss, shared_names
from .rankings import RANKINGS, WALK, Questions, retriever_of

if TYPE_CHECKING:
    from ..extract import Match

HUBS = 0.01
REACH = 0.9
SIZES = (5, 10, 20, 50, 100, 200, 500, 1000)
WALKS_AT_ONCE = 64
EXAMPLES = 5
Section = dict[str, Any]


class Legs(NamedTuple):
    """The dense (None without vectors) and the graph list of each question, and its seeds: restart weights by node."""

    dense: Hits | None
    graph: Hits
    seeds: list[dict[int, float]]


def search_legs(
    retriever: Retriever | Index,
    questions: Sequence[str | None] | None = None,
    *,
    vectors: Any = None,
    entities: Sequence[Sequence[str | int | Match] | None] | None = None,
    length: int,
    damping: float = 0.5,
) -> Legs:
    """Search the dense and the graph leg for each question.

    Parameters
    ----------
    retriever : Retriever or Index
        Has a graph.
    questions, vectors, entities : optional
        As of :meth:`hopfuse.Retriever.search`.
    length : int
        Hits per leg.
    damping : float
        Probability of walking on.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import search_legs
    >>> passages = [{"text": "Ada wrote."}, {"text": "The sea."}]
    >>> edges = [{"src": 0, "dst": 2}]
    >>> index = hf.Index.build(passages=passages, vectors=[[1, 0], [0, 1]], entities=["Ada"], graph=edges)
    >>> search_legs(index, ["Who is Ada?"], vectors=[[0.0, 1.0]], length=2).seeds
    [{2: 1.0}]
    """
    whole, asked = retriever_of(retriever), Questions(questions, vectors, entities)
    if whole.index.corpus is None:
        walk = whole.variant("hybrid-rrf", words="none", graph_k=length, damping=damping)
        results = [walk.search(part.texts, entities=part.entities, k=1, trace=True) for part in asked.batches()]
        first = whole.index.num_passages
        traces = [trace for one in results for trace in one.traces or ()]
        seeds = [{first + seed["entity"]: seed["weight"] for seed in trace["seeds"]} for trace in traces]
        return Legs(None, join_hits([one.lists["graph"] for one in results]), seeds)
    walk = RANKINGS[WALK].over(whole, dense_k=length, graph_k=length, damping=damping)
    found: list[Any] = [part.by(walk, 1) for part in asked.batches()]
    rows = (row for one in found for row in zip(one.seeds.nodes.tolist(), one.seeds.weights.tolist(), strict=True))
    seeds = [{node: weight for node, weight in zip(*row, strict=True) if node >= 0} for row in rows]
    dense, graph = (join_hits([one.lists[leg] for one in found]) for leg in ("dense", "graph"))
    return Legs(dense, graph, seeds)


def diagnose(
    index: Index,
    legs: Legs | None = None,
    qrels: Qrels | None = None,
    *,
    k: int = 10,
    damping: float = 0.5,
    threads: int | None = None,
) -> dict[str, Any]:
    """Measure what decides whether the graph of an index helps with a set of questions.

    Parameters
    ----------
    index : Index
    legs : Legs, optional
        From :func:`search_legs`; without them, only the graph and its names are measured.
    qrels : Qrels, optional
        Judgements of the same questions.
    k : int
        Number of hits per leg that are compared.
    damping : float
        Probability of walking on.
    threads : int, optional

    Returns
    -------
    dict
        Numbers by section, without those that the index or the arguments have nothing for: ``graph``, ``names``,
        ``seeds``, ``mass``, ``local walks``, ``legs`` and, with judgements, ``pools``: the share of gold passages lost
        by pools of each size. Words of a graph are not among the ``names``.

    Raises
    ------
    MissingExtraError
        SciPy is not installed.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import diagnose, search_legs
    >>> passages = [{"text": "Ada wrote."}, {"text": "The sea."}]
    >>> edges = [{"src": 0, "dst": 2}]
    >>> index = hf.Index.build(passages=passages, vectors=[[1, 0], [0, 1]], entities=["Ada"], graph=edges)
    >>> found = diagnose(index, search_legs(index, ["Ada?"], vectors=[[0.0, 1.0]], length=2), k=1)
    >>> found["graph"]["components"], found["seeds"]["with seeds"]
    (2, 1.0)
    """
    sections: dict[str, Any] = {}
    if index.graph is None:
        return sections
    component = connected_components(index.graph)
    sections["graph"] = _graph(index, index.graph, component)
    names = index.num_entities if index.words is None else index.words.first
    if names:
        sections["names"] = _names(index, names)
    if legs is None:
        return sections
    sections |= {"seeds": _seeds(index, legs, qrels, component), "mass": _mass(index.graph, legs, damping, threads)}
    local = _local_walks(index, legs, k, damping, threads)
    sections |= {"local walks": local} if local else {}
    if legs.dense is None:
        return sections
    sections["legs"] = _legs(legs.dense, legs.graph, qrels, k)
    return sections if qrels is None else {**sections, "pools": _pools(legs.dense, legs.graph, qrels)}


def _graph(index: Index, graph: Graph, component: NDArray[np.int64]) -> Section:
    """Count components, and nodes without an edge."""
    sizes = np.bincount(component)
    largest = component == sizes.argmax()
    stored = np.diff(graph.indptr)[graph.internal_of]
    return {
        "passages": index.num_passages,
        "entities": index.num_entities,
        "components": int(np.count_nonzero(sizes)),
        "nodes in the largest": float(largest.mean()),
        "passages without an edge": int((stored[: index.num_passages] == 0).sum()),
        "entities without an edge": int((stored[index.num_passages :] == 0).sum()),
    }


def _names(index: Index, names: int) -> Section:
    """Count names of a single passage, and those that several entities have, which may be one thing."""
    shared = shared_names(islice(index.entity_names, names), islice(index.entity_aliases, names))
    most = sorted((name for name in shared if len(shared[name]) > 2), key=lambda name: (-len(shared[name]), name))
    assert index.passage_frequency is not None
    return {
        "names": names,
        "of a single passage": float((index.passage_frequency[:names] == 1).mean()),
        "shared by several entities": len(shared),
        **({"most shared": {name: len(shared[name]) for name in most[:EXAMPLES]}} if most else {}),
    }


def _seeds(index: Index, legs: Legs, qrels: Qrels | None, component: NDArray[np.int64]) -> Section:
    """Count questions with seeds, how rare these are, and whether a walk from them can reach the gold passages."""
    counts = np.array([len(row) for row in legs.seeds])
    section: Section = {
        "questions": counts.size,
        "with seeds": float((counts > 0).mean()),
        "seeds of a question, median": float(np.median(counts)),
    }
    rarest = _rarest(index, legs)
    if rarest.size:
        section["passages of the rarest seed, median"] = float(np.median(rarest))
    if qrels is not None:
        reached = [
            bool({component[node] for node in seeds} >= {component[passage] for passage in gold})
            for seeds, gold in zip(legs.seeds, qrels.gold, strict=True)
            if gold
        ]
        section["all gold passages connected to a seed"] = float(np.mean(reached))
    return section


def _rarest(index: Index, legs: Legs) -> NDArray[np.int64]:
    """Return in how many passages the rarest seed of each question is, for those with seeds among the entities."""
    frequency = index.passage_frequency
    assert frequency is not None
    passages = index.num_passages
    rows = ([frequency[node - passages] for node in row if node >= passages] for row in legs.seeds)
    return np.array([min(row) for row in rows if row], np.int64)


def _mass(graph: Graph, legs: Legs, damping: float, threads: int | None) -> Section:
    """Measure how far the walks spread, and how much of their mass is on hubs."""
    seeded = [dict(row) for row in legs.seeds if row]
    hubs = hub_nodes(graph, share=HUBS)
    degree = graph.degree.sum(axis=1)[graph.internal_of]
    section: Section = {"walks": len(seeded), "hubs": hubs.size, "hubs' share of the edges": _share(degree, hubs)}
    parts: list[tuple[NDArray[Any], ...]] = []
    for start in range(0, len(seeded), WALKS_AT_ONCE):
        walked = ppr(graph, seeded[start : start + WALKS_AT_ONCE], damping=damping, threads=threads)
        scores = np.asarray(walked.scores, np.float64)
        spread = mass_spread(scores, share=REACH)
        parts.append((spread.entropy, spread.effective_nodes, spread.reach, scores[:, hubs].sum(1) / scores.sum(1)))
    if parts:
        entropy, effective, reach, on_hubs = (np.concatenate(column) for column in zip(*parts, strict=True))
        section |= {
            "hubs' share of the mass, mean": float(on_hubs.mean()),
            "entropy in bits, median": float(np.median(entropy)),
            "effective nodes, median": float(np.median(effective)),
            f"nodes with {REACH:.0%} of the mass, median": float(np.median(reach)),
        }
    return section


def _local_walks(index: Index, legs: Legs, k: int, damping: float, threads: int | None) -> Section:
    """Measure how much of the graph a proof of the k best passages reads; empty where local walks are not defined."""
    graph, seeded = index.graph, [dict(row) for row in legs.seeds if row]
    if graph is None or graph.directed or not graph.num_stored or not seeded:
        return {}
    walk: dict[str, Any] = {
        "candidates": Candidates(graph, np.arange(index.num_passages)),
        "damping": damping,
        "threads": threads,
    }
    hits = ppr_topk(graph, seeded, k, walk="local", **walk)
    if hits.walks is None:
        return {}
    read = hits.walks.entries / graph.num_stored
    chosen = ppr_topk(graph, seeded[:1], k, walk="auto", **walk)
    return {
        f"lists of {k} proven": float(hits.proven.mean()),
        "passes over the graph read, median": float(np.median(read)),
        "passes read, 95th percentile": float(np.percentile(read, 95)),
        "ppr_topk walks locally": chosen.walks is not None and bool(chosen.walks.entries.any()),
    }


def _legs(dense_hits: Hits, graph_hits: Hits, qrels: Qrels | None, k: int) -> Section:
    """Measure whether the legs find the same passages, and fail on the same questions."""
    shared = overlap(dense_hits, graph_hits, k)
    section: Section = {f"overlap@{k}, mean": float(np.nanmean(shared))}
    if qrels is not None:
        dense, graph = (full_support(hits, qrels, k) for hits in (dense_hits, graph_hits))
        c = compare(graph, dense, binary=True)
        correlation = error_correlation(dense, graph)
        section |= {
            f"full_support@{k} judged": c.n,
            "both": c.both,
            "dense alone": c.losses,
            "graph alone": c.wins,
            "neither": c.neither,
            "correlation of errors": None if np.isnan(correlation) else correlation,
        }
    return section


def _pools(dense: Hits, graph: Hits, qrels: Qrels) -> list[Section]:
    """Return the mean share of gold passages that each pool, and both together, lose at each size."""
    width = min(dense.shape[1], graph.shape[1])
    return [
        {
            "size": size,
            **{
                name: float(np.nanmean(pool_loss(pools, qrels, size)))
                for name, pools in {"dense": [dense], "graph": [graph], "either": [dense, graph]}.items()
            },
        }
        for size in sorted({*(size for size in SIZES if size < width), width})
    ]


def _share(values: NDArray[np.float64], rows: NDArray[np.int64]) -> float:
    return float(values[rows].sum() / max(float(values.sum()), 1e-300))
