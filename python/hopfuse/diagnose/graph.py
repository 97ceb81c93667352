"""Properties of the graph: components, shared names, hubs, and the spread of walks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_length, check_number, check_shape, check_weights
from ..errors import InputError, MissingExtraError
from ..evaluate.answers import normalise_answer
from ..types import Graph


def connected_components(graph: Graph) -> NDArray[np.int64]:
    """Return, for each node, the smallest node id of its connected component; edge directions are ignored.

    Parameters
    ----------
    graph : Graph
        N nodes.

    Returns
    -------
    ndarray of int64, shape (N,)
        Indexed by the caller's node ids.

    Raises
    ------
    MissingExtraError
        SciPy is not installed.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import connected_components
    >>> connected_components(hf.Graph.from_edges([0, 3], [2, 4], num_nodes=6))
    array([0, 1, 0, 3, 3, 5])
    """
    try:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components as label_components
    except ModuleNotFoundError as error:
        raise MissingExtraError("scipy", "eval", "finding a graph's components") from error
    ones = np.ones(graph.indices.size, np.int8)
    matrix = csr_array((ones, graph.indices, graph.indptr), shape=(graph.num_nodes, graph.num_nodes))
    count, component = label_components(matrix, directed=False)
    smallest = np.full(count, graph.num_nodes, np.int64)
    np.minimum.at(smallest, component, graph.node_of)
    return smallest[component[graph.internal_of]]


def shared_names(names: Iterable[str], aliases: Iterable[Sequence[str]] | None = None) -> dict[str, tuple[int, ...]]:
    """Return the names that several entities share, which may split the mass of a walk.

    Parameters
    ----------
    names : iterable of str, E entries
    aliases : iterable of sequences of str, E entries, optional
        Other names of each entity.

    Returns
    -------
    dict of str to tuple of int
        The entities of each name that at least two have, in ascending order, by name after
        :func:`hopfuse.evaluate.normalise_answer`. Names without a letter or digit are left out.

    Raises
    ------
    InputError
        The numbers of names and rows of aliases differ.

    Examples
    --------
    >>> from hopfuse.diagnose import shared_names
    >>> shared_names(["The Beatles", "Ada", "Beatles"], [[], ["A. Lovelace"], []])
    {'beatles': (0, 2)}
    """
    own = [[name] for name in names]
    others = [()] * len(own) if aliases is None else [tuple(row) for row in aliases]
    check_length(len(others), "aliases", len(own), "name")
    entities: dict[str, list[int]] = {}
    for entity, row in enumerate(zip(own, others, strict=True)):
        for key in {normalise_answer(name) for part in row for name in part}:
            if any(map(str.isalnum, key)):
                entities.setdefault(key, []).append(entity)
    return {key: tuple(found) for key, found in sorted(entities.items()) if len(found) > 1}


@dataclass(frozen=True, eq=False)
class MassSpread:
    """Results of :func:`mass_spread`.

    Attributes
    ----------
    entropy : ndarray of float64, shape (B,)
        Shannon entropy in bits.
    effective_nodes : ndarray of float64, shape (B,)
        2 ** entropy: the number of nodes with equal mass that have this entropy.
    reach : ndarray of int64, shape (B,)
        The smallest number of nodes that hold the given share of the mass.
    """

    entropy: NDArray[np.float64]
    effective_nodes: NDArray[np.float64]
    reach: NDArray[np.int64]


def mass_spread(scores: ArrayLike, *, share: float = 0.9) -> MassSpread:
    """Measure entropy and reach of Personalized PageRank scores.

    Parameters
    ----------
    scores : array_like of float, shape (B, N)
        At least 0, with a positive sum in every row; they need not be normalised.
    share : float, in (0, 1]
        Share of the mass for ``reach``.

    Returns
    -------
    MassSpread

    Raises
    ------
    InputError
        Scores have another shape, are negative or not finite, or a row is all zeros; share is outside (0, 1].

    References
    ----------
    Shannon, Bell Syst. Tech. J. 27 (1948); effective number of order 1: Hill, Ecology 54 (1973).

    Examples
    --------
    >>> from hopfuse.diagnose import mass_spread
    >>> spread = mass_spread([[0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0]])
    >>> spread.entropy.tolist(), spread.reach.tolist()
    ([2.0, 0.0], [4, 1])
    """
    check_number(share, "share", above=0, high=1)
    mass = np.asarray(scores, np.float64)
    check_shape(mass.shape, "scores", ("B", "N"))
    check_weights(mass, "scores")
    for row in np.flatnonzero(~mass.any(axis=1))[:1].tolist():
        raise InputError("zero", f"scores[{row}]", "{field} is all zeros; give each row a number above 0")
    mass = mass / mass.sum(axis=1, keepdims=True)
    entropy = -np.sum(mass * np.log2(mass, where=mass > 0, out=np.zeros_like(mass)), axis=1)
    held = np.cumsum(-np.sort(-mass, axis=1), axis=1)
    enough = share * (1 - 1e-12)  # the order of a sum changes its last bits
    reach = np.minimum((held < enough).sum(axis=1) + 1, mass.shape[1])
    # Adding 0.0 turns -0.0, the entropy of a single node, into 0.0.
    return MassSpread(entropy + 0.0, np.exp2(entropy), reach.astype(np.int64))


def hub_nodes(graph: Graph, *, share: float = 0.01) -> NDArray[np.int64]:
    """Return the nodes of highest degree.

    Parameters
    ----------
    graph : Graph
        N nodes.
    share : float, in (0, 1]
        Share of the nodes to return, rounded up.

    Returns
    -------
    ndarray of int64, shape (ceil(share * N),)
        In descending order of summed edge weight, ties by ascending id.

    Raises
    ------
    InputError
        share is outside (0, 1].

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import hub_nodes
    >>> hub_nodes(hf.Graph.from_edges([2, 2, 2, 0], [0, 1, 3, 1]), share=0.5)
    array([2, 0])
    """
    check_number(share, "share", above=0, high=1)
    degree = graph.degree.sum(axis=1)[graph.internal_of]
    return np.argsort(-degree, kind="stable")[: ceil(share * graph.num_nodes)].astype(np.int64)
