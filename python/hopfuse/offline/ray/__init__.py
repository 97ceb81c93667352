"""Make parts by Ray Data: a pool of actors over the same plan, on one machine or a cluster.

The contract is the one of :mod:`hopfuse.offline`: a part exists whole or not at all, and its bytes do not depend on its
maker. So no row is lost or repeated: the death of an actor, a node or the driver costs only the parts in progress.
"""

from .actors import copied, error_of_row, row_of_error
from .cluster import connected, cpus_of_actor
from .runs import run, score

__all__ = ["connected", "copied", "cpus_of_actor", "error_of_row", "row_of_error", "run", "score"]
