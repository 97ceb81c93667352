"""Reranking of a recipe's fused candidates by the entities that they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from ..ops._checks import check_whole
from ..ops.ising import MOST_CANDIDATES, ising_rerank
from ..types import Graph, Hits


@dataclass(frozen=True, kw_only=True)
class Ising:
    """How :class:`PhaseGraph` reranks its fused candidates by a mean field (:func:`hopfuse.ising_rerank`).

    Parameters
    ----------
    blend : float in [0, 1]
        b, the share of the magnetisation in the new score (1 - b) h + b m. 0: off. Small ones changed nothing that
        could be shown, 0.25 and more did harm on HotpotQA (docs/experiments.md): ndcg@10 fell by 1.6 points at 0.25, by
        5.2 at 0.5 and by 13.0 at 1.
    coupling : float
        J, at least 0: how strongly passages that share entities pull each other.
    temperature : float
        T, above 0. Above J one state follows the scores; below it neighbours may hold each other against theirs.
    relaxation : float in (0, 1]
        λ, the damping of the updates: the share of the new value in each.
    steps : int
        Updates, from 0 to 10,000.
    candidates : int
        How many fused passages are reranked, from 1 to 1,024; no search can ask for more.

    Raises
    ------
    InputError
        An option out of its range.

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.recipes.Ising(blend=0.1, candidates=50)
    Ising(blend=0.1, coupling=1.0, temperature=2.0, relaxation=0.5, steps=20, candidates=50)
    """

    blend: float = 0.0
    coupling: float = 1.0
    temperature: float = 2.0
    relaxation: float = 0.5
    steps: int = 20
    candidates: int = 100

    def __post_init__(self) -> None:
        check_whole(self.candidates, "candidates", MOST_CANDIDATES)
        nothing = Hits(np.zeros((0, 1), np.int64), np.zeros((0, 1), np.float32))
        ising_rerank(nothing, Graph.from_edges([], [], num_nodes=1), **self.options, backend="cpu")

    @property
    def options(self) -> dict[str, Any]:
        """What the operation takes."""
        return {name: getattr(self, name) for name in ("blend", "coupling", "temperature", "relaxation", "steps")}

    def check_k(self, k: int) -> None:
        """Refuse more hits than are reranked."""
        if self.blend and k > self.candidates:
            raise InputError(
                f"k is {k}; with ising= only {self.candidates} candidates are reranked: ask for fewer, or raise "
                f"Ising(candidates=), up to {MOST_CANDIDATES}"
            )

    def graph(self, graph: Graph, num_passages: int) -> Graph:
        """What candidates share neighbours in."""
        return _entity_graph(graph, num_passages) if self.blend else graph


def read_ising(ising: Any) -> Ising:
    """The options; a number is the blend."""
    return ising if isinstance(ising, Ising) else Ising(blend=ising)


def _entity_graph(graph: Graph, num_passages: int) -> Graph:
    """The graph without edges between passages: what two of them share is then entities alone."""
    src, dst, weight, _ = graph.edges()
    linked = (src >= num_passages) | (dst >= num_passages)
    if graph.directed or linked.all():
        return graph
    return Graph.from_edges(src[linked], dst[linked], weight[linked], num_nodes=graph.num_nodes)
