"""The cases by name."""

from functools import partial

import hopfuse as hf

from .base import Case
from .dense import Dense
from .dice import Dice
from .fusion import Fusion, MinMaxSum, ReciprocalRanks, ThreeLists
from .graphs import atlas, musique
from .hipporag import HippoRag
from .phase_graph import PhaseGraphWhole
from .ppr import Ppr
from .ppr_dense import DenseRestarts
from .ppr_passes import PprBatches, PprStored
from .ppr_topk import PprTopk
from .projection import Projection

WALKS = ("igraph", "scipy", "numba", "scikit-network", "fast-pagerank", "networkx", "graphblas", "torch-sparse")
FEW_WALKS = ("igraph", "scipy")
SEARCHES = ("faiss", "numpy-matmul", "usearch", "scikit-learn", "torch-matmul")
FEW_SEARCHES = ("faiss", "numpy-matmul")
WALKS_ON_GPU = ("cugraph", "cupy-spmm")
SEARCHES_ON_GPU = ("faiss-gpu", "torch-cuda", "cuvs")

CASES: dict[str, Case] = {
    "ppr-hotpotqa": Case(WALKS, Ppr, WALKS_ON_GPU),
    "ppr-hotpotqa-085": Case(FEW_WALKS, partial(Ppr, damping=0.85)),
    "ppr-topk-hotpotqa": Case(FEW_WALKS, PprTopk, WALKS_ON_GPU),
    "ppr-dense-restarts": Case(FEW_WALKS, DenseRestarts),
    "ppr-musique": Case(FEW_WALKS, partial(Ppr, load=musique)),
    "ppr-atlas": Case(FEW_WALKS, partial(Ppr, load=atlas)),
    "ppr-batches": Case(("scipy",), PprBatches),
    "ppr-1e4": Case(FEW_WALKS, partial(PprStored, stored=10**4)),
    "ppr-1e5": Case(FEW_WALKS, partial(PprStored, stored=10**5)),
    "ppr-1e6": Case(FEW_WALKS, partial(PprStored, stored=10**6)),
    "ppr-1e7": Case(FEW_WALKS, partial(PprStored, stored=10**7)),
    "ppr-1e8": Case((), partial(PprStored, stored=10**8, batches=(1, 8)), by_name=True),
    "dense-200k": Case(SEARCHES, Dense, SEARCHES_ON_GPU),
    "dense-11k-4096": Case((*FEW_SEARCHES, "torch-matmul"), partial(Dense, count=11_656, dim=4096), SEARCHES_ON_GPU),
    "dense-1m": Case(FEW_SEARCHES, partial(Dense, count=1_000_000, batches=(1, 32)), SEARCHES_ON_GPU),
    "fusion": Case(("numpy-fusion", "oracle-fusion"), Fusion),
    "fusion-rrf": Case(("ranx",), ReciprocalRanks),
    "fusion-min-max": Case(("ranx",), MinMaxSum),
    "project": Case(("scipy-product",), Projection),
    "dice": Case(("python-dice", "numpy-dice"), Dice),
    "hipporag-hotpotqa": Case(("hipporag-igraph",), HippoRag),
    "phasegraph-hotpotqa": Case((), PhaseGraphWhole),
}

#: Of ranx's methods those that mean the same; its condorcet does not (docs/dialects.md).
IN_RANX = (
    *("rrf", "linear", "max", "comb_sum", "comb_mnz", "comb_anz", "comb_min", "comb_max", "comb_med"),
    *("wmnz", "isr", "log_isr", "borda", "rbc"),
)
CASES |= {
    f"fuse-{method.replace('_', '-')}": Case(
        ("ranx" if method in IN_RANX else "oracle-fusion",), partial(ThreeLists, method=method), by_name=True
    )
    for method in hf.fusion.METHODS
}

__all__ = ["CASES"]
