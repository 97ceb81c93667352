"""The benchmark cases, by name."""

from functools import partial

import hopfuse as hf

from .base import Case
from .busy import Busy
from .dense import Dense, FirstSearch, RawArray
from .dice import Dice
from .fusion import Fusion, MinMaxSum, ReciprocalRanks, ThousandHits, ThreeLists
from .graphs import atlas, musique
from .guided_walk import GuidedWalkWhole
from .hipporag import HippoRag
from .phase_graph import OneThread, PhaseGraphWhole, SmallMemory
from .ppr import Ppr
from .ppr_dense import DenseRestarts
from .ppr_passes import PprBatches, PprStored
from .ppr_topk import PprTopk
from .ppr_weighted import WeightedPpr
from .projection import Projection
from .python_threads import PythonThreads
from .similarity import Similarity
from .small import SmallPpr, TinyDense, TinyFusion, twelve, two_hundred

WALKS = ("igraph", "scipy", "numba", "scikit-network", "fast-pagerank", "networkx", "graphblas", "torch-sparse")
FEW_WALKS = ("igraph", "scipy")
SEARCHES = ("faiss", "numpy-matmul", "usearch", "scikit-learn", "torch-matmul")
FEW_SEARCHES = ("faiss", "numpy-matmul")
WALKS_ON_GPU = ("cugraph", "cupy-spmm")
EARLIER = ("earlier-commit",)
SEARCHES_ON_GPU = ("faiss-gpu", "torch-cuda", "cuvs")

CASES: dict[str, Case] = {
    "ppr-hotpotqa": Case((*WALKS, *EARLIER), Ppr, WALKS_ON_GPU),
    "ppr-hotpotqa-085": Case(FEW_WALKS, partial(Ppr, damping=0.85)),
    "ppr-weighted-hotpotqa": Case(("plain-walk",), WeightedPpr),
    "ppr-topk-hotpotqa": Case(FEW_WALKS, PprTopk, WALKS_ON_GPU),
    "ppr-topk-10": Case(("ppr-out",), partial(PprTopk, k=10)),
    "ppr-topk-100": Case(("ppr-out",), PprTopk),
    "ppr-topk-100-set": Case(("ppr-out",), partial(PprTopk, prove="set")),
    "ppr-dense-restarts": Case(FEW_WALKS, DenseRestarts),
    "ppr-musique": Case(FEW_WALKS, partial(Ppr, load=musique)),
    "ppr-atlas": Case(FEW_WALKS, partial(Ppr, load=atlas)),
    "ppr-200": Case(("igraph",), partial(SmallPpr, load=two_hundred)),
    "ppr-batches": Case(("scipy",), PprBatches),
    "ppr-1e4": Case(FEW_WALKS, partial(PprStored, stored=10**4)),
    "ppr-1e5": Case(FEW_WALKS, partial(PprStored, stored=10**5)),
    "ppr-1e6": Case(FEW_WALKS, partial(PprStored, stored=10**6), WALKS_ON_GPU),
    "ppr-1e7": Case((*FEW_WALKS, *EARLIER), partial(PprStored, stored=10**7)),
    "ppr-1e8": Case(EARLIER, partial(PprStored, stored=10**8, batches=(1, 8)), by_name=True),
    "dense-200k": Case(SEARCHES, Dense, SEARCHES_ON_GPU),
    "dense-11k-4096": Case((*FEW_SEARCHES, "torch-matmul"), partial(Dense, count=11_656, dim=4096), SEARCHES_ON_GPU),
    "dense-1m": Case(FEW_SEARCHES, partial(Dense, count=1_000_000, batches=(1, 32)), SEARCHES_ON_GPU),
    "dense-raw-200k": Case(("numpy-matmul",), RawArray),
    "dense-raw-11k-4096": Case(("numpy-matmul",), partial(RawArray, count=11_656, dim=4096)),
    "dense-first-200k": Case(("numpy-matmul",), FirstSearch),
    "fusion": Case(("numpy-fusion", "oracle-fusion"), Fusion),
    "fusion-rrf": Case(("ranx",), ReciprocalRanks),
    "fusion-rrf-1000": Case(EARLIER, ThousandHits),
    "fusion-min-max": Case(("ranx",), MinMaxSum),
    "project": Case(("scipy-product",), Projection),
    "similarity": Case(("numpy-weights",), Similarity),
    "dice": Case(("python-dice", "numpy-dice"), Dice),
    "hipporag-hotpotqa": Case(("hipporag-igraph",), HippoRag),
    "phasegraph-hotpotqa": Case((), PhaseGraphWhole),
    "phasegraph-one-thread": Case(EARLIER, OneThread),
    "phasegraph-200": Case((), SmallMemory),
    "guided-walk": Case(("phase-graph",), GuidedWalkWhole),
    "guided-walk-dense": Case(("phase-graph",), partial(GuidedWalkWhole, first="dense")),
    "python-threads": Case(("one-thread",), PythonThreads),
    "tiny-dense": Case((), TinyDense),
    "tiny-fusion": Case((), TinyFusion),
    "tiny-ppr": Case((), partial(SmallPpr, load=twelve)),
    "busy-dense-tiny": Case(("one-thread",), partial(Busy, case=TinyDense, batch=1)),
    "busy-dense": Case(("one-thread",), partial(Busy, case=Dense, batch=32)),
    "busy-ppr": Case(("one-thread",), partial(Busy, case=Ppr, batch=64)),
    "busy-fusion": Case(("one-thread",), partial(Busy, case=Fusion, batch=1_000)),
    "busy-phasegraph": Case(("one-thread", *EARLIER), partial(Busy, case=PhaseGraphWhole, batch=32)),
}

#: Cases that ``--isa`` measures by default, beside hopfuse on the best instruction set as well.
BESIDE_BEST_ISA = (
    *("ppr-hotpotqa", "ppr-topk-hotpotqa", "ppr-1e7"),
    *("dense-200k", "dense-11k-4096", "fusion", "phasegraph-hotpotqa"),
)

#: Methods that ranx defines in the same way; its condorcet differs (docs/dialects.md).
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
