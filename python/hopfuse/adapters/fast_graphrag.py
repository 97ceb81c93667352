"""Answer the walk of fast-graphrag's ``IGraphStorage.score_nodes`` by hopfuse's kernels."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..errors import InputError
from .igraph import accelerate as accelerate_graph

__all__ = ["accelerate"]


def accelerate(storage: Any) -> Any:
    """Make ``storage.score_nodes`` walk by hopfuse from now on: one line for a GraphRAG that keeps its graph in igraph.

    Its own ``score_nodes`` runs, over a graph of :func:`hopfuse.adapters.igraph.accelerate`. That is asked for in every
    call, since the storage loads another graph when queries start. The object gets a subclass of its class, and files
    that it writes are its own.

    Parameters
    ----------
    storage : IGraphStorage
        Of fast-graphrag: a ``GraphRAG`` has it as ``rag.state_manager.graph_storage``.

    Returns
    -------
    IGraphStorage
        The same object.

    Raises
    ------
    InputError
        Another object.

    References
    ----------
    The interface: https://github.com/circlemind-ai/fast-graphrag, ``IGraphStorage.score_nodes``.

    Examples
    --------
    >>> from hopfuse.adapters.fast_graphrag import accelerate
    >>> accelerate(3)
    Traceback (most recent call last):
    hopfuse.errors.InputError: storage is a int; it must be fast-graphrag's IGraphStorage
    """
    known = any(kind.__name__ == "IGraphStorage" for kind in type(storage).__mro__)
    if not known or not hasattr(storage, "_graph") or not callable(getattr(storage, "score_nodes", None)):
        raise InputError(f"storage is a {type(storage).__name__}; it must be fast-graphrag's IGraphStorage")
    base: Any = type(storage)
    if not getattr(base, "_is_accelerated", False):
        storage.__class__ = _accelerated_class(base)
    return storage


@cache
def _accelerated_class(base: Any) -> Any:
    """Return a subclass whose graph is accelerated when it is walked over."""

    class AcceleratedStorage(base):  # type: ignore[misc]
        _is_accelerated = True

        async def score_nodes(self, initial_weights: Any) -> Any:
            if self._graph is not None:
                accelerate_graph(self._graph)
            return await super().score_nodes(initial_weights)

    return AcceleratedStorage
