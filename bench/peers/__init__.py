"""The peers by name."""

from .base import Peer
from .cugraph_ppr import CugraphPpr
from .cupy_spmm import CupySpmm
from .cuvs_brute_force import CuvsBruteForce
from .faiss_flat import FaissFlat
from .faiss_gpu import FaissGpu
from .igraph_ppr import IgraphPpr
from .numpy_fusion import NumpyFusion
from .numpy_matmul import NumpyMatmul
from .oracle_fusion import OracleFusion
from .scipy_ppr import ScipyPpr
from .torch_topk import TorchTopk

PEERS: dict[str, type[Peer]] = {
    "cugraph": CugraphPpr,
    "cupy-spmm": CupySpmm,
    "cuvs": CuvsBruteForce,
    "faiss": FaissFlat,
    "faiss-gpu": FaissGpu,
    "igraph": IgraphPpr,
    "numpy-fusion": NumpyFusion,
    "numpy-matmul": NumpyMatmul,
    "oracle-fusion": OracleFusion,
    "scipy": ScipyPpr,
    "torch-cuda": TorchTopk,
}

__all__ = ["PEERS", "Peer"]
