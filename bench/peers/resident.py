"""The base of peers that are hopfuse in another process: at another commit, or on another instruction set."""

from __future__ import annotations

import contextlib
import pickle
import subprocess
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from ..cases.base import Workload
from ..errors import UnavailableError
from ..gate import Rankings
from .base import Peer

WORKER = Path(__file__).parents[1] / "resident_worker.py"


class Resident(Peer):
    """A resident process of another Python, or with another environment.

    Attributes
    ----------
    title : str
        What runs in the process, for messages.
    """

    own = True
    title: ClassVar[str]

    def __init__(self, workload: Workload, threads: int) -> None:
        python, environment = self.program()
        command = (python, "-P", str(WORKER))
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        except OSError as wrong:
            raise UnavailableError(self.refusal(python, wrong)) from None
        self.batch, self.turn = 0, 0
        self._send(workload.task() | {"threads": workload.threads})

    @abstractmethod
    def program(self) -> tuple[str, Mapping[str, str]]:
        """Return the Python that has this hopfuse, and the variables of its environment."""

    def refusal(self, python: str, wrong: OSError) -> str:
        """Return what to do about a Python that cannot be run."""
        return f"{python!r} cannot be run ({wrong.strerror})"

    def run(self, batch: int) -> Any:
        self.batch, self.turn = batch, self.turn + 1 if batch == self.batch else 0
        self._send((batch, self.turn))

    def answer(self, found: Any) -> Any:
        kept = self._send(None)
        return Rankings(*kept) if isinstance(kept, tuple) else kept

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
            raise UnavailableError(f"the process of {self.title} ended with status {self.process.wait()}") from None
