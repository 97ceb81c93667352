"""Options of a run of the benchmarks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Settings:
    """Options that all measurements of a run share.

    Attributes
    ----------
    quick : bool
        Use small synthetic inputs, to check that the benchmarks work; the times are meaningless.
    repeats : int
        Interleaved repetitions of each measurement.
    threads : int
        Threads of hopfuse and of the peer.
    backend : {"cpu", "cuda", "auto"}
        Backend of hopfuse. Except with "cpu", GPU peers are measured too.
    isa : str
        Instruction set of hopfuse; empty for the best that the processor has.
    """

    quick: bool = False
    repeats: int = 15
    threads: int = 2
    backend: str = "cpu"
    isa: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the options by name, for a child process."""
        return asdict(self)


BACKENDS = ("cpu", "cuda", "auto")
#: hopfuse's own variable, which also applies to recipes, which have no ``backend=``.
BACKEND_VARIABLE = "HOPFUSE_BACKEND"
ISA_VARIABLE = "HOPFUSE_ISA"
#: Variables that limit the thread pools of libraries in a child process.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "HOPFUSE_NUM_THREADS",
)
