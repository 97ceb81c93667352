"""Describe the ``hopfuse`` backend to NetworkX, which calls this at its own import; so nothing heavy is imported."""

from __future__ import annotations

from typing import Any

__all__ = ["get_info"]

#: NetworkX appends this to the docstring of ``nx.pagerank``.
_PAGERANK = """\
The result is within ``len(G) * tol`` in NetworkX's own measure, and within 1e-6 in the L1 norm if ``max_iter`` allows:
scores are float32. ``nstart`` has no effect. Weights and restarts below 0, and ``alpha`` of 1 and above, are left to
NetworkX."""


def get_info() -> dict[str, Any]:
    """Return the value for NetworkX's entry point ``networkx.backend_info``.

    Returns
    -------
    dict
        The backend's names, summary, and functions with their documentation.

    Examples
    --------
    >>> from hopfuse.adapters.networkx_info import get_info
    >>> sorted(get_info()["functions"])
    ['pagerank']
    """
    return {
        "backend_name": "hopfuse",
        "project": "hopfuse",
        "package": "hopfuse",
        "short_summary": "Personalized PageRank by CPU and CUDA kernels.",
        "functions": {"pagerank": {"additional_docs": _PAGERANK}},
    }
