"""The peers, by name."""

from .base import Peer
from .best_isa import BestIsa
from .cugraph_ppr import CugraphPpr
from .cupy_spmm import CupySpmm
from .cuvs_brute_force import CuvsBruteForce
from .earlier_commit import EarlierCommit
from .faiss_flat import FaissFlat
from .faiss_gpu import FaissGpu
from .fast_pagerank_ppr import FastPagerankPpr
from .graphblas_ppr import GraphblasPpr
from .hipporag_igraph import HippoRagIgraph
from .igraph_ppr import IgraphPpr
from .networkx_ppr import NetworkxPpr
from .numba_ppr import NumbaPpr
from .numpy_dice import NumpyDice
from .numpy_fusion import NumpyFusion
from .numpy_matmul import NumpyMatmul
from .numpy_weights import NumpyWeights
from .one_thread import OneThread
from .oracle_fusion import OracleFusion
from .phase_graph import PhaseGraph
from .plain_walk import PlainWalk
from .ppr_out import PprOut
from .python_dice import PythonDice
from .ranx_fusion import RanxFusion
from .scipy_ppr import ScipyPpr
from .scipy_product import ScipyProduct
from .sklearn_brute import SklearnBrute
from .sknetwork_ppr import SknetworkPpr
from .torch_matmul import TorchMatmul
from .torch_sparse import TorchSparse
from .torch_topk import TorchTopk
from .usearch_exact import UsearchExact

PEERS: dict[str, type[Peer]] = {
    "best-isa": BestIsa,
    "cugraph": CugraphPpr,
    "cupy-spmm": CupySpmm,
    "cuvs": CuvsBruteForce,
    "earlier-commit": EarlierCommit,
    "faiss": FaissFlat,
    "faiss-gpu": FaissGpu,
    "fast-pagerank": FastPagerankPpr,
    "graphblas": GraphblasPpr,
    "hipporag-igraph": HippoRagIgraph,
    "igraph": IgraphPpr,
    "networkx": NetworkxPpr,
    "numba": NumbaPpr,
    "numpy-dice": NumpyDice,
    "numpy-fusion": NumpyFusion,
    "numpy-matmul": NumpyMatmul,
    "numpy-weights": NumpyWeights,
    "one-thread": OneThread,
    "oracle-fusion": OracleFusion,
    "phase-graph": PhaseGraph,
    "plain-walk": PlainWalk,
    "ppr-out": PprOut,
    "python-dice": PythonDice,
    "ranx": RanxFusion,
    "scipy": ScipyPpr,
    "scipy-product": ScipyProduct,
    "scikit-learn": SklearnBrute,
    "scikit-network": SknetworkPpr,
    "torch-cuda": TorchTopk,
    "torch-matmul": TorchMatmul,
    "torch-sparse": TorchSparse,
    "usearch": UsearchExact,
}

__all__ = ["PEERS", "Peer"]
