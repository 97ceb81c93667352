"""Float64 oracle of fuse; related methods share a file."""

from .boltzmann import EPSILON, auto_temperature, distance, distribution, mean_distance
from .combine import fuse
from .gumbel import kendall
from .mixtures import q_distribution
from .products import strengths
from .registry import METHODS

__all__ = [
    "EPSILON",
    "METHODS",
    "auto_temperature",
    "distance",
    "distribution",
    "fuse",
    "kendall",
    "mean_distance",
    "q_distribution",
    "strengths",
]
