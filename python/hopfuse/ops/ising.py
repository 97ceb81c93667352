"""Rerank candidates by the mean field of an Ising model. Experimental."""

from __future__ import annotations

from typing import Any

from .._validation import check_k, check_number, check_type, check_whole
from ..backends.calls.ising import IsingCall, IsingModel
from ..backends.engine import engine_for
from ..errors import InputError
from ..types import Graph, Hits
from ._arguments import check_hits, check_inside

#: kernels/include/hopfuse/ising.h, ISING_CANDIDATES.
MOST_CANDIDATES = 1024
MAX_STEPS = 10_000


def ising_rerank(
    hits: Hits,
    graph: Graph,
    *,
    coupling: float = 1.0,
    temperature: float = 2.0,
    relaxation: float = 0.5,
    steps: int = 20,
    blend: float = 0.25,
    k: int | None = None,
    backend: str = "auto",
    threads: int | None = None,
) -> Hits:
    r"""Rerank each query's candidates by the mean field of an Ising model over their shared neighbours.

    Experimental. On two question sets, blends of 0.05 and 0.1 gave no gain, and 0.25 and more lowered quality on one of
    them (docs/experiments.md), so no recipe uses it.

    A candidate moves up if the candidates that it shares entities with rank high, and down if they rank low. For the
    candidates i, j of a query:

    - S_ij = Σ_e w_ie w_je over the common neighbours e, i ≠ j, with the edge weights w of the graph (all types
      together): without weights, the number of entities that two passages share;
    - A_ij = S_ij / Σ_j S_ij, so that Σ_j A_ij m_j is the mean over a candidate's neighbours among the candidates. The
      largest eigenvalue of A is 1 if any candidates share a neighbour. A candidate that shares nothing has no
      neighbours;
    - h in [-1, 1]: min-max scores of the list, 2 (s - min)/(max - min) - 1; all 0 if they are equal;
    - m_i = tanh(h_i / T), then ``steps`` times m_i ← (1 - λ) m_i + λ tanh((h_i + J Σ_j A_ij m_j)/T), for all i at once;
    - the new score is (1 - b) h_i + b m_i, in [-1, 1]. h and m have the same scale, so b does not depend on that of the
      scores.

    Parameters
    ----------
    hits : Hits (B, n)
        n at most 1024. Ids are nodes of the graph; an index's passages are its first nodes, so its dense, graph and
        fused lists can be used directly.
    graph : Graph
        Undirected, such as ``index.graph``. Memory beyond the graph: 12 n² bytes per thread and 16 per stored entry of
        a query's candidates; fewer threads are used if that exceeds 1 GiB. On a GPU: 4 n² + 64 n per query, in batches
        of at most 256 MiB.
    coupling : float
        J, at least 0. With 0 the order is unchanged.
    temperature : float
        T, above 0. For T > J the magnetisations m have a unique fixed point, which follows h. For T < J, neighbours may
        hold each other in a state opposed to their own field.
    relaxation : float in (0, 1]
        λ, the share of the new value in a step.
    steps : int
        From 0 to 10,000. For T > J the distance to the fixed point shrinks at least by the factor
        (1 - λ (1 - J/T))^steps: to 0.3 % with the defaults.
    blend : float in [0, 1]
        b, the share of m in the new score.
    k : int, optional
        Hits to return per query, at most n. Default: all.
    backend : {"auto", "cpu", "cuda"}
    threads : int, optional

    Returns
    -------
    Hits
        ids int64 and scores float32 (B, width), counts (B,). Order: higher score, then lower id.

    Raises
    ------
    InputError
        Documents outside the graph, lists of more than 1024, a directed graph, options out of range.

    References
    ----------
    Mean-field equations of the Ising model: Opper & Saad (eds.), Advanced Mean Field Methods, MIT Press 2001,
    chapter 2.

    Examples
    --------
    Passages 0 to 3 and entities 4 and 5. Passage 3 shares entity 4 with the two best passages; passage 2 shares
    nothing.

    >>> import hopfuse as hf
    >>> graph = hf.Graph.from_edges([0, 1, 3, 2], [4, 4, 4, 5])
    >>> hits = hf.Hits([[0, 1, 2, 3]], [[0.9, 0.8, 0.41, 0.4]])
    >>> hf.ising_rerank(hits, graph, blend=0.25).ids
    array([[0, 1, 3, 2]])
    """
    check_hits(hits)
    check_type(graph, "graph", Graph, "a Graph: index.graph, or hf.Graph.from_edges")
    if graph.directed:
        raise InputError(
            "unsupported",
            "graph",
            "{field} is directed, but the coupling of candidates is symmetric; build an undirected one: "
            "hf.Graph.from_edges(*graph.edges()[:3], num_nodes=graph.num_nodes)",
        )
    width = hits.shape[1]
    if width > MOST_CANDIDATES:
        raise InputError(
            "limit",
            "hits",
            "{field} has {given} columns; at most {allowed} candidates can be reranked: pass hits.head({allowed})",
            given=width,
            allowed=MOST_CANDIDATES,
        )
    model = _model(coupling, temperature, relaxation, steps, blend)
    most = width if k is None else min(check_k(k), width)
    with engine_for(backend, hits, "hits") as engine:
        ids, scores, counts = engine.hits(hits, "hits")
        engine.check(check_inside, ids, counts, graph.num_nodes, "the graph's nodes")
        call = IsingCall(graph, (ids, scores, counts), model, most, engine.threads(threads), engine.on_device)
        return engine.give_hits(engine.ops.run(call))


def _model(coupling: Any, temperature: Any, relaxation: Any, steps: Any, blend: Any) -> IsingModel:
    return IsingModel(
        check_number(coupling, "coupling", low=0, float32=True),
        check_number(temperature, "temperature", above=0, float32=True),
        check_number(relaxation, "relaxation", above=0, high=1, float32=True),
        check_whole(steps, "steps", MAX_STEPS, least=0),
        check_number(blend, "blend", low=0, high=1),
    )
