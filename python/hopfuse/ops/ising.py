"""Rerank by the mean field of an Ising model. Experimental."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays.convert import same_library
from .._threads import thread_count
from .._validation import check_k
from ..backends import resolve
from ..backends.calls import IsingCall, IsingModel
from ..backends.placement import device_for
from ..errors import InputError
from ..fusion.base import is_finite_float32, is_positive_float32
from ..types import Graph, Hits
from ._lists import device_list, host_list

if TYPE_CHECKING:
    from ..backends.cuda import DeviceOps

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
    r"""Rerank each query's candidates by the mean field of an Ising model over the neighbours that they share.

    Experimental. Blends of 0.05 and 0.1 showed no gain on two sets of questions, and from 0.25 on it did harm on one of
    them (docs/experiments.md), so that no recipe uses it.

    A candidate moves up where those that it shares entities with stand high, and down where they stand low.
    For the candidates i, j of a query:

    - S_ij = Σ_e w_ie w_je over the nodes e that both are joined to, i ≠ j, w the weights of the graph's edges (all
      types together): without weights, the number of entities that two passages share;
    - A_ij = S_ij / Σ_j S_ij, so that Σ_j A_ij m_j is the mean of a candidate's neighbours among the candidates, however
      many they are. The largest eigenvalue of A is then 1 for any list that shares anything. A candidate that shares
      nothing has no neighbours;
    - h in [-1, 1]: the list's scores by min-max, 2 (s - min)/(max - min) - 1; all 0 where they are equal;
    - m_i = tanh(h_i / T), then ``steps`` times m_i ← (1 - λ) m_i + λ tanh((h_i + J Σ_j A_ij m_j)/T), all at once;
    - the new score is (1 - b) h_i + b m_i, in [-1, 1]. h and m are on one scale, so b means the same for any scores.

    Parameters
    ----------
    hits : Hits (B, n)
        n at most 1024. Ids are nodes of the graph: an index's passages are its first nodes, so that dense, graph and
        fused lists are ready as they are.
    graph : Graph
        Undirected; an index's own graph of passages and entities (``index.graph``). Nothing is made of it beyond the
        candidates: 12 n² bytes a thread and 16 for each stored entry of a query's candidates (fewer threads run
        where that is over 1 GiB), or 4 n² + 64 n a query on a GPU, within 256 MiB.
    coupling : float
        J, at least 0. With 0 the order stays.
    temperature : float
        T, above 0. For T > J the magnetisations m have one fixed point, which follows h; at T < J neighbours may
        hold each other in a state against their own field.
    relaxation : float in (0, 1]
        λ, the share of the new value in a step.
    steps : int
        From 0 to 10,000. For T > J what is left of the distance to the fixed point is at most
        (1 - λ (1 - J/T))^steps: 0.3 % with the defaults.
    blend : float in [0, 1]
        b, the share of m in the new score.
    k : int, optional
        Hits to return for each query, at most as many as the lists have room for; by default all.
    backend : {"auto", "cpu", "cuda"}
    threads : int, optional

    Returns
    -------
    Hits
        ids int64 and scores float32 (B, width), counts (B,). Order: higher score, then lower id.

    Raises
    ------
    InputError
        Documents outside the graph, lists of more than 1024, a directed graph, options out of their range.

    References
    ----------
    Mean-field equations of the Ising model: Opper & Saad (eds.), Advanced Mean Field Methods, MIT Press 2001,
    chapter 2.

    Examples
    --------
    Passages 0 to 3, entities 4 and 5. Passage 3 shares entity 4 with the two best, passage 2 shares nothing:

    >>> import hopfuse as hf
    >>> graph = hf.Graph.from_edges([0, 1, 3, 2], [4, 4, 4, 5])
    >>> hits = hf.Hits([[0, 1, 2, 3]], [[0.9, 0.8, 0.41, 0.4]])
    >>> hf.ising_rerank(hits, graph, blend=0.25).ids
    array([[0, 1, 3, 2]])
    """
    if not isinstance(hits, Hits):
        raise InputError(f"hits is a {type(hits).__name__}; wrap it: hf.Hits(ids, scores)")
    if not isinstance(graph, Graph):
        raise InputError(f"graph is a {type(graph).__name__}; it must be a Graph (index.graph, or hf.Graph.from_edges)")
    if graph.directed:
        raise InputError(
            "the graph is directed, and candidates act on each other both ways; build one with directed=False: "
            "hf.Graph.from_edges(*graph.edges()[:3], num_nodes=graph.num_nodes)"
        )
    room = hits.shape[1]
    if room > MOST_CANDIDATES:
        raise InputError(
            f"the lists have room for {room} candidates, and at most {MOST_CANDIDATES} are reranked; take the first: "
            f"hits.head({MOST_CANDIDATES})"
        )
    model = _model(coupling, temperature, relaxation, steps, blend)
    most = room if k is None else min(check_k(k), room)
    device = device_for(backend, hits.ids, "hits")
    if device is not None:
        return _on_device(device, hits, graph, model, most)
    ids, scores, counts = host_list(hits)
    outside = (ids >= graph.num_nodes) & (np.arange(room) < counts[:, None])
    if outside.any():
        row, at = (int(index) for index in np.argwhere(outside)[0])
        raise InputError(
            f"row {row} has document {ids[row, at]}, which is outside the graph; documents are its nodes, "
            f"0 .. {graph.num_nodes - 1}"
        )
    call = IsingCall(graph, (ids, scores, counts), model, most, thread_count(threads))
    best = resolve(backend).ising(call)
    wrap = same_library(hits.ids)
    return Hits.unchecked(**{name: wrap(array) for name, array in best.items()})


def _on_device(device: DeviceOps, hits: Hits, graph: Graph, model: IsingModel, k: int) -> Hits:
    with device.runtime.on_stream_of(hits.ids):
        call = IsingCall(graph, device_list(device, hits, "hits"), model, k, threads=1, on_device=True)
        best = device.ising(call)
        return Hits.unchecked(**{name: device.runtime.export(array, hits.ids) for name, array in best.items()})


def _model(coupling: Any, temperature: Any, relaxation: Any, steps: Any, blend: Any) -> IsingModel:
    if not is_finite_float32(coupling) or coupling < 0:
        raise InputError(f"coupling is {coupling!r}; it must be a finite float32 number, at least 0")
    if not is_positive_float32(temperature):
        raise InputError(f"temperature is {temperature!r}; it must be a finite float32 number above 0")
    if not is_positive_float32(relaxation) or relaxation > 1:
        raise InputError(f"relaxation is {relaxation!r}; it must be a number above 0 and at most 1")
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or not 0 <= steps <= MAX_STEPS:
        raise InputError(f"steps is {steps!r}; it must be a whole number from 0 to {MAX_STEPS}")
    if not is_finite_float32(blend) or not 0 <= blend <= 1:
        raise InputError(f"blend is {blend!r}; it must be a number from 0 to 1")
    return IsingModel(float(coupling), float(temperature), float(relaxation), int(steps), float(blend))
