"""The cases by name."""

from .base import Case
from .dense import Dense
from .fusion import Fusion
from .phase_graph import PhaseGraphWhole
from .ppr import Ppr
from .ppr_topk import PprTopk

WALKS = ("igraph", "scipy", "numba", "scikit-network", "fast-pagerank")
SEARCHES = ("faiss", "numpy-matmul", "usearch", "scikit-learn")
WALKS_ON_GPU = ("cugraph", "cupy-spmm")

CASES: dict[str, Case] = {
    "ppr-hotpotqa": Case(WALKS, Ppr, WALKS_ON_GPU),
    "ppr-topk-hotpotqa": Case(("igraph", "scipy"), PprTopk, WALKS_ON_GPU),
    "dense-200k": Case(
        ("faiss", "numpy-matmul", "usearch", "scikit-learn"), Dense, ("faiss-gpu", "torch-cuda", "cuvs")
    ),
    "fusion": Case(("numpy-fusion", "oracle-fusion"), Fusion),
    "phasegraph-hotpotqa": Case((), PhaseGraphWhole),
}

__all__ = ["CASES"]
