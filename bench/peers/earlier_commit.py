"""hopfuse at an earlier commit, in its own environment, to show what has become faster or slower."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..cases.base import Workload
from ..errors import UnavailableError
from .resident import Resident

#: The Python of an environment in which the earlier commit is installed.
VARIABLE = "HOPFUSE_BENCH_EARLIER"
#: The name of the commit in the rows.
COMMIT = "HOPFUSE_BENCH_EARLIER_COMMIT"


class EarlierCommit(Resident):
    """A process of the Python that ``HOPFUSE_BENCH_EARLIER`` names."""

    title = "the earlier commit"

    @classmethod
    def require(cls) -> None:
        if not os.environ.get(VARIABLE):
            raise UnavailableError(
                f"{VARIABLE} is not set; install the earlier commit in its own environment, and set the variable to "
                "that environment's bin/python"
            )

    def __init__(self, workload: Workload, threads: int) -> None:
        self.commit = os.environ.get(COMMIT, f"of {COMMIT}, which is not set")
        super().__init__(workload, threads)

    def program(self) -> tuple[str, Mapping[str, str]]:
        # The earlier commit must not import modules of this checkout.
        return os.environ[VARIABLE], {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def refusal(self, python: str, wrong: OSError) -> str:
        return (
            f"{VARIABLE} is {python!r}, which cannot be run ({wrong.strerror}); set it to the bin/python of an "
            "environment in which the earlier commit is installed"
        )

    def note(self, batch: int) -> str:
        return f"commit {self.commit}, in a process of its own"
