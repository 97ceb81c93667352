"""The peers by name."""

from .base import Peer
from .cugraph_ppr import CugraphPpr
from .cupy_spmm import CupySpmm
from .cuvs_brute_force import CuvsBruteForce
from .faiss_flat import FaissFlat
from .faiss_gpu import FaissGpu
from .fast_pagerank_ppr import FastPagerankPpr
from .igraph_ppr import IgraphPpr
from .numba_ppr import NumbaPpr
from .numpy_fusion import NumpyFusion
from .numpy_matmul import NumpyMatmul
from .oracle_fusion import OracleFusion
from .scipy_ppr import ScipyPpr
from .sklearn_brute import SklearnBrute
from .sknetwork_ppr import SknetworkPpr
from .torch_topk import TorchTopk
from .usearch_exact import UsearchExact

PEERS: dict[str, type[Peer]] = {
    "cugraph": CugraphPpr,
    "cupy-spmm": CupySpmm,
    "cuvs": CuvsBruteForce,
    "faiss": FaissFlat,
    "faiss-gpu": FaissGpu,
    "fast-pagerank": FastPagerankPpr,
    "igraph": IgraphPpr,
    "numba": NumbaPpr,
    "numpy-fusion": NumpyFusion,
    "numpy-matmul": NumpyMatmul,
    "oracle-fusion": OracleFusion,
    "scipy": ScipyPpr,
    "scikit-learn": SklearnBrute,
    "scikit-network": SknetworkPpr,
    "torch-cuda": TorchTopk,
    "usearch": UsearchExact,
}

__all__ = ["PEERS", "Peer"]
