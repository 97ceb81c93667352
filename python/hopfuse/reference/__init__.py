"""The float64 oracle: the definition of every operation, in plain NumPy.

Kernels are tested against these functions, which are written for clarity: each implements the formula of its docstring,
one query at a time. No other room calls them. May import ``fusion`` (its formulas),
``types``, ``errors``, the checks and ``_arrays``.
"""

from .calibration import calibrate
from .canonical import canonical_dot, canonical_scores, dense_topk_canonical, fma32
from .dense import dense_scores, dense_topk
from .fusion import fuse
from .ising import ising_rerank, mean_field, shared_neighbours
from .pagerank import ppr, ppr_residual, ppr_topk
from .passages import (
    boost_weights,
    dice,
    dice_scores,
    elements,
    project,
    project_topk,
    similarity_weights,
)
from .ranking import Ranking
from .seeding import add_entity_seeds, add_passage_seeds, cover_seeds

__all__ = [
    "Ranking",
    "add_entity_seeds",
    "add_passage_seeds",
    "boost_weights",
    "calibrate",
    "canonical_dot",
    "canonical_scores",
    "cover_seeds",
    "dense_scores",
    "dense_topk",
    "dense_topk_canonical",
    "dice",
    "dice_scores",
    "elements",
    "fma32",
    "fuse",
    "ising_rerank",
    "mean_field",
    "ppr",
    "ppr_residual",
    "ppr_topk",
    "project",
    "project_topk",
    "shared_neighbours",
    "similarity_weights",
]
