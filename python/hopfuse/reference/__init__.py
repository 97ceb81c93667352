"""The float64 oracle: the definition of every operation, in plain NumPy.

Kernels are tested against these functions, which are written for clarity: each implements the formula of its docstring,
one query at a time. No other package calls them. May import ``fusion`` (its formulas), ``types``, ``errors``, the
checks and ``_arrays``.
"""

from . import calibration, canonical, dense, fusion, ising, pagerank, passages, ranking, seeding
from .calibration import *  # noqa: F403
from .canonical import *  # noqa: F403
from .dense import *  # noqa: F403
from .fusion import *  # noqa: F403
from .ising import *  # noqa: F403
from .pagerank import *  # noqa: F403
from .passages import *  # noqa: F403
from .ranking import *  # noqa: F403
from .seeding import *  # noqa: F403

__all__: list[str] = []
__all__ += calibration.__all__
__all__ += canonical.__all__
__all__ += dense.__all__
__all__ += fusion.__all__
__all__ += ising.__all__
__all__ += pagerank.__all__
__all__ += passages.__all__
__all__ += ranking.__all__
__all__ += seeding.__all__
