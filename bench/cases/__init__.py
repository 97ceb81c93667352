"""The cases by name."""

from .base import Case
from .dense import Dense
from .fusion import Fusion
from .phase_graph import PhaseGraphWhole
from .ppr import Ppr
from .ppr_topk import PprTopk

CASES: dict[str, Case] = {
    "ppr-hotpotqa": Case(("igraph", "scipy"), Ppr),
    "ppr-topk-hotpotqa": Case(("igraph", "scipy"), PprTopk),
    "dense-200k": Case(("faiss", "numpy-matmul"), Dense),
    "fusion": Case(("numpy-fusion", "oracle-fusion"), Fusion),
    "phasegraph-hotpotqa": Case((), PhaseGraphWhole),
}

__all__ = ["CASES"]
