"""What one run of the bench is asked for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Settings:
    """Options that every measurement of a run shares.

    Attributes
    ----------
    quick : bool
        Small synthetic inputs: proves that the bench works; its times mean nothing.
    repeats : int
        Interleaved repetitions of each measurement.
    threads : int
        Threads that hopfuse and the peer each may use.
    backend : {"cpu", "cuda", "auto"}
        Where hopfuse runs. Beside another than "cpu" the peers on a GPU are measured too.
    """

    quick: bool = False
    repeats: int = 15
    threads: int = 2
    backend: str = "cpu"

    def as_dict(self) -> dict[str, Any]:
        """The options by name, for a child process."""
        return asdict(self)


BACKENDS = ("cpu", "cuda", "auto")
#: hopfuse's own setting: it reaches recipes too, which have no ``backend=``.
BACKEND_VARIABLE = "HOPFUSE_BACKEND"
#: Variables that bound the thread pools of the libraries a child process loads.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "HOPFUSE_NUM_THREADS",
)
