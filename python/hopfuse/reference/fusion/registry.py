"""The fusion methods, by name."""

from .boltzmann import BOLTZMANN
from .comb import COMB_ANZ, COMB_MAX, COMB_MED, COMB_MIN, COMB_MNZ, COMB_SUM, WMNZ
from .condorcet import CONDORCET
from .gumbel import GUMBEL
from .linear import LINEAR
from .max import MAX
from .method import FusionMethod
from .mixtures import QUANTUM, TSALLIS
from .products import LOG_LINEAR, PLACKETT_LUCE, POWER_MEAN
from .ranks import BORDA, ISR, LOG_ISR, RBC
from .rrf import RRF

_MANY = (
    BOLTZMANN,
    LINEAR,
    RRF,
    MAX,
    COMB_SUM,
    COMB_MNZ,
    COMB_ANZ,
    COMB_MIN,
    COMB_MAX,
    COMB_MED,
    ISR,
    LOG_ISR,
    BORDA,
    RBC,
    LOG_LINEAR,
    POWER_MEAN,
    TSALLIS,
    QUANTUM,
    PLACKETT_LUCE,
    GUMBEL,
    CONDORCET,
    WMNZ,
)
METHODS: dict[str, FusionMethod] = {method.name: method for method in _MANY}
