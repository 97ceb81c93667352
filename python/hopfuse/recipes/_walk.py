"""The walk of a recipe: over the whole graph, or over what each question may see of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..ops._checks import is_real
from ..ops.calibration import calibrate
from ..ops.ppr import ppr_topk
from ..ops.seeding import seed_hits
from ..types import Graph, Hits, PprHits, Seeds
from ._allowed import View

if TYPE_CHECKING:
    from .phase_graph import PhaseGraph


def checked_mass(mass: Any) -> float:
    """Restart mass on passages for each unit on entities."""
    if not is_real(mass) or not 0 <= mass < np.inf:
        raise InputError(f"passage_seeds is {mass!r}; it must be a finite number, at least 0")
    return float(mass)


def read_type_weights(graph: Graph, weights: Mapping[str, float] | None) -> NDArray[np.float64] | None:
    """A weight for each edge type of the graph, 1 where none is given."""
    if weights is None:
        return None
    if not isinstance(weights, Mapping):
        raise InputError(f'edge_weights is {weights!r}; it must map names of edge types to numbers: {{"synonym": 0.5}}')
    names = graph.edge_type_names
    for name, weight in weights.items():
        if name not in names:
            raise InputError(f"edge_weights has the type {name!r}; the graph has {', '.join(names)}")
        if not is_real(weight) or not 0 <= weight < np.inf:
            raise InputError(f"edge_weights[{name!r}] is {weight!r}; it must be a finite number, at least 0")
    return np.array([weights.get(name, 1.0) for name in names], np.float64)


def walk(recipe: PhaseGraph, seeds: Seeds, dense: Hits, view: View | None) -> PprHits:
    """The graph pool: passages by Personalized PageRank from the seeds; empty where there are none.

    By a view, of the passages that each question may see.
    """
    passages = np.arange(recipe.index.num_passages)
    if recipe.passage_seeds > 0:
        seeds = seed_hits(seeds, calibrate(dense, "min_max", threads=recipe.threads), recipe.passage_seeds)
    if view is None or view.frequency is not None or not len(view.of):
        return _walk(recipe, seeds, among=passages, allowed_nodes=None if view is None else view.nodes)
    groups = [np.flatnonzero(view.of == group) for group in range(len(view.passages))]
    parts = [
        _walk(recipe, Seeds(seeds.nodes[rows], seeds.weights[rows]), among=passages[seen])
        for rows, seen in zip(groups, view.passages, strict=True)
    ]
    return _joined(parts, np.argsort(np.concatenate(groups)))


def _walk(recipe: PhaseGraph, seeds: Seeds, **options: Any) -> PprHits:
    assert recipe.index.graph is not None
    return ppr_topk(
        recipe.index.graph,
        seeds,
        recipe.graph_k,
        stop="tol",
        empty="skip",
        damping=recipe.damping,
        edge_type_weights=recipe.type_weights,
        threads=recipe.threads,
        **options,
    )


def _joined(parts: list[PprHits], order: NDArray[np.int64]) -> PprHits:
    """The rows of several results, in another order."""
    names = [field.name for field in fields(PprHits)]
    arrays = {name: np.concatenate([getattr(part, name) for part in parts])[order] for name in names}
    joined = PprHits._trusted(**arrays)
    assert isinstance(joined, PprHits)
    return joined
