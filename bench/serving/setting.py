"""The index, requests, servers and durations that the measurements of a run share."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import hopfuse as hf

from ..errors import UnavailableError
from ..machine import ROOT
from . import client, library
from .inputs import INDEX_VARIABLE, Questions, arrow_bodies, json_bodies
from .processes import Server, serving
from .wrk import Bodies

#: Questions in a request of many, and in an Arrow request.
MANY, ARROW_ROWS = 32, 64
ARROW = "application/vnd.apache.arrow.stream"
#: Questions in the largest request that a server accepts by default.
VERY_MANY = 256
#: Timeout of the requests of an overload, in milliseconds.
TIMEOUT_MS = 1000
#: The limits of servers whose clients all have one address.
ONE_ADDRESS = "[limits]\naddress_connections = 1024\n"
#: Seconds of a batch, and of the timeout, with which a server refuses every request.
REFUSING_SECONDS, REFUSED_MS = 0.03, 1


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """Durations of the parts: seconds, turns, or requests."""

    turns: int = 3
    closed: float = 6.0
    library: float = 3.0
    open: float = 20.0
    overload: float = 60.0
    requests: int = 1_000_000
    sample: int = 10_000
    reloaded: int = 100_000


QUICK = Lengths(turns=1, closed=1.0, library=0.3, open=1.0, overload=1.5, requests=2000, sample=200, reloaded=200)


class Setting:
    """A run.

    Parameters
    ----------
    folder : Path
        For files.
    index : Path
    questions : Questions
    lengths : Lengths
    """

    def __init__(self, folder: Path, index: Path, questions: Questions, lengths: Lengths) -> None:
        self.folder, self.index, self.questions, self.lengths = folder, index, questions, lengths
        self.passages = hf.Index.open(index).num_passages
        self._file = folder / "questions.npz"
        questions.save(self._file)

    # ---- Requests ----------------------------------------------------------------------------------------------------

    @cached_property
    def one(self) -> Bodies:
        """Requests of one question."""
        return Bodies(self.folder / "one", json_bodies(self.questions, 1))

    @cached_property
    def many(self) -> Bodies:
        """Requests of 32 questions."""
        return Bodies(self.folder / "many", json_bodies(self.questions, MANY))

    @cached_property
    def very_many(self) -> Bodies:
        """Requests of 256 questions."""
        return Bodies(self.folder / "very-many", json_bodies(self.questions, VERY_MANY))

    @cached_property
    def one_hurried(self) -> Bodies:
        """Requests of one question, with a short timeout."""
        return Bodies(self.folder / "one-hurried", json_bodies(self.questions, 1, timeout_ms=TIMEOUT_MS))

    @cached_property
    def many_hurried(self) -> Bodies:
        """Requests of 32 questions, with a short timeout."""
        return Bodies(self.folder / "many-hurried", json_bodies(self.questions, MANY, timeout_ms=TIMEOUT_MS))

    @cached_property
    def refused(self) -> Bodies:
        """Requests of one question that a server with a delay in each search cannot answer in time."""
        return Bodies(self.folder / "refused", json_bodies(self.questions, 1, timeout_ms=REFUSED_MS))

    @cached_property
    def arrow(self) -> Bodies:
        """Requests of 64 questions in Arrow."""
        if find_spec("pyarrow") is None:
            raise UnavailableError("pyarrow is absent: pip install 'hopfuse[arrow]'")
        return Bodies(self.folder / "arrow", arrow_bodies(self.questions, ARROW_ROWS), ARROW)

    # ---- Servers -----------------------------------------------------------------------------------------------------

    def hopfuse(self, index: Path | None = None, batch: int | None = None) -> AbstractContextManager[Server]:
        """Run ``hopfuse serve`` over the run's or another index; ``batch`` sets ``limits.batch``.

        The other limits are the defaults, except that one address may have all connections: all clients have it.
        """
        config = self.folder / f"batch-{batch or 'default'}.toml"
        config.write_text(ONE_ADDRESS + ("" if batch is None else f"batch = {batch}\n"))
        about = [f"bench={index or self.index}", "--recipe", "phase-graph", "--port", "{port}", "--config", str(config)]
        return serving(["hopfuse", "serve", *about], "/health/ready")

    def still(self, seconds: float = 0.0) -> AbstractContextManager[Server]:
        """Run it over a recipe that sleeps for some seconds instead of searching."""
        return serving(["bench.serving.still_app", str(self.index), "{port}", str(seconds)], "/health/ready")

    def fastapi(self) -> AbstractContextManager[Server]:
        """Run the recipe in FastAPI."""
        _require("fastapi")
        return serving(["bench.serving.fastapi_app", str(self.index), "{port}"], "/health/ready")

    def mosec(self) -> AbstractContextManager[Server]:
        """Run the recipe in mosec."""
        _require("mosec")
        arguments = ["bench.serving.mosec_app", "--address", "127.0.0.1", "--port", "{port}", "--timeout", "30000"]
        return serving(arguments, "/metrics", {INDEX_VARIABLE: str(self.index)})

    # ---- Programs ----------------------------------------------------------------------------------------------------

    def library(self, *batches: int, seconds: float | None = None) -> dict[str, Any]:
        """Return the figures of the library alone, by the number of queries in a call."""
        task = {
            "index": str(self.index),
            "questions": str(self._file),
            "batches": batches,
            "seconds": self.lengths.library if seconds is None else seconds,
            "threads": None,
        }
        with program(library.__name__, json.dumps(task)) as process:
            done = process.communicate(timeout=600)[0]
        return json.loads(done)  # type: ignore[no-any-return]


class OpenLoop:
    """A running open loop; :meth:`counted` waits for its end."""

    def __init__(self, task: client.Task, process: subprocess.Popen[str]) -> None:
        self._task, self._process = task, process

    def counted(self) -> dict[str, Any]:
        """Return its figures."""
        seconds = self._task.seconds + self._task.grace + 60
        return json.loads(self._process.communicate(timeout=seconds)[0])  # type: ignore[no-any-return]


@contextmanager
def open_loop(task: client.Task) -> Iterator[OpenLoop]:
    """Run an open loop; it is stopped when the block ends."""
    with program(client.__name__, task.as_json()) as process:
        yield OpenLoop(task, process)


@contextmanager
def program(module: str, task: str) -> Iterator[subprocess.Popen[str]]:
    """Run a module of the bench with its task on standard input; it is stopped when the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", module], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdin is not None
        process.stdin.write(task)
        process.stdin.close()
        process.stdin = None
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _require(package: str) -> None:
    if find_spec(package) is None:
        raise UnavailableError(f"{package} is absent: pip install {package}")
