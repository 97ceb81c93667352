"""The peers by name."""

from .base import Peer
from .faiss_flat import FaissFlat
from .igraph_ppr import IgraphPpr
from .numpy_fusion import NumpyFusion
from .numpy_matmul import NumpyMatmul
from .oracle_fusion import OracleFusion
from .scipy_ppr import ScipyPpr

PEERS: dict[str, type[Peer]] = {
    "faiss": FaissFlat,
    "igraph": IgraphPpr,
    "numpy-fusion": NumpyFusion,
    "numpy-matmul": NumpyMatmul,
    "oracle-fusion": OracleFusion,
    "scipy": ScipyPpr,
}

__all__ = ["PEERS", "Peer"]
