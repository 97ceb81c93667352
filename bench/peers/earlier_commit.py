"""hopfuse at an earlier commit, in its own environment, to show what has become faster or slower."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
from pathlib import Path
from typing import Any

from ..cases.base import Workload
from ..errors import UnavailableError
from ..gate import Rankings
from .base import Peer

#: The Python of an environment in which the earlier commit is installed.
VARIABLE = "HOPFUSE_BENCH_EARLIER"
#: The name of the commit in the rows.
COMMIT = "HOPFUSE_BENCH_EARLIER_COMMIT"
WORKER = Path(__file__).parents[1] / "earlier_worker.py"


class EarlierCommit(Peer):
    """A resident process of the Python that ``HOPFUSE_BENCH_EARLIER`` names."""

    own = True

    @classmethod
    def require(cls) -> None:
        if not os.environ.get(VARIABLE):
            raise UnavailableError(
                f"{VARIABLE} is not set; install the earlier commit in its own environment, and set the variable to "
                "that environment's bin/python"
            )

    def __init__(self, workload: Workload, threads: int) -> None:
        # The earlier commit must not import modules of this checkout.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = (os.environ[VARIABLE], "-P", str(WORKER))
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        except OSError as wrong:
            raise UnavailableError(
                f"{VARIABLE} is {command[0]!r}, which cannot be run ({wrong.strerror}); set it to the bin/python of an "
                "environment in which the earlier commit is installed"
            ) from None
        self.turn = 0
        self.commit = os.environ.get(COMMIT, f"of {COMMIT}, which is not set")
        self._send(workload.task() | {"threads": workload.threads})

    def run(self, batch: int) -> Any:
        self._send((batch, self.turn))
        self.turn += 1

    def answer(self, found: Any) -> Any:
        kept = self._send(None)
        return Rankings(*kept) if isinstance(kept, tuple) else kept

    def note(self, batch: int) -> str:
        return f"commit {self.commit}, in a process of its own"

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):  # data that it did not read
                if pipe is not None:
                    pipe.close()

    def _send(self, message: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            pickle.dump(message, self.process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
            self.process.stdin.flush()
            return pickle.load(self.process.stdout)
        except (BrokenPipeError, EOFError):
            raise UnavailableError(f"the earlier commit's process ended with status {self.process.wait()}") from None
