"""The fusion methods by name."""

from .boltzmann import BOLTZMANN
from .linear import LINEAR
from .max import MAX
from .method import FusionMethod
from .rrf import RRF

METHODS: dict[str, FusionMethod] = {method.name: method for method in (BOLTZMANN, LINEAR, RRF, MAX)}
