"""Run the walk of fast-graphrag's ``IGraphStorage.score_nodes`` by hopfuse's kernels."""

from __future__ import annotations

from functools import cache
from typing import Any

from .._validation import wrong_type
from .igraph import accelerate as accelerate_graph

__all__ = ["accelerate"]


def accelerate(storage: Any) -> Any:
    """Make ``storage.score_nodes`` walk by hopfuse's kernels.

    The storage's own ``score_nodes`` runs, over a graph that :func:`hopfuse.adapters.igraph.accelerate` has patched.
    Each call patches the current graph, since the storage loads a new one when queries start. The object's class is
    replaced by a subclass; the files that it writes do not change.

    Parameters
    ----------
    storage : IGraphStorage
        fast-graphrag's graph storage: ``rag.state_manager.graph_storage`` of a ``GraphRAG``.

    Returns
    -------
    IGraphStorage
        The same object.

    Raises
    ------
    InputError
        ``storage`` has another type.

    References
    ----------
    The interface: https://github.com/circlemind-ai/fast-graphrag, ``IGraphStorage.score_nodes``.

    Examples
    --------
    >>> from hopfuse.adapters.fast_graphrag import accelerate
    >>> accelerate(3)
    Traceback (most recent call last):
    hopfuse.errors.InputError: storage is of the type int; it must be fast-graphrag's IGraphStorage
    """
    known = any(kind.__name__ == "IGraphStorage" for kind in type(storage).__mro__)
    if not known or not hasattr(storage, "_graph") or not callable(getattr(storage, "score_nodes", None)):
        raise wrong_type(storage, "storage", "fast-graphrag's IGraphStorage")
    base: Any = type(storage)
    if not getattr(base, "_is_accelerated", False):
        storage.__class__ = _accelerated_class(base)
    return storage


@cache
def _accelerated_class(base: Any) -> Any:
    """Return a subclass that accelerates its graph before each walk."""

    class AcceleratedStorage(base):  # type: ignore[misc]
        _is_accelerated = True

        async def score_nodes(self, initial_weights: Any) -> Any:
            if self._graph is not None:
                accelerate_graph(self._graph)
            return await super().score_nodes(initial_weights)

    return AcceleratedStorage
