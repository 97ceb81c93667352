"""A command with worker processes, killed at drawn moments and started again until it is done."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked after does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def workers_of(pid: int) -> list[int]:
    """The worker processes of a run."""
    found = []
    with suppress(OSError):
        for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()):
            with suppress(OSError):
                if b"multiprocessing.spawn" in Path(f"/proc/{child}/cmdline").read_bytes() and alive(child):
                    found.append(child)
    return found


def finish_under_kills(
    command: Sequence[Any],
    done: Callable[[], object],
    draw: random.Random,
    kills: int,
    *,
    seconds: float,
    environment: dict[str, str] | None = None,
) -> int:
    """Start a command again until ``done()``; meanwhile kill it or a worker, at most so often; return how often.

    Parameters
    ----------
    seconds : float
        The longest time from one kill to the next.
    """
    killed = 0
    while not done():
        words, variables = [str(word) for word in command], {**os.environ, **(environment or {})}
        with subprocess.Popen(words, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as parent:
            try:
                while parent.poll() is None and killed < kills:
                    time.sleep(draw.uniform(0, seconds))
                    victims = workers_of(parent.pid)
                    if parent.poll() is None and (victims or draw.random() < 0.3):
                        os.kill(draw.choice([*victims, parent.pid]), signal.SIGKILL)
                        killed += 1
                _, said = parent.communicate()
            except BaseException:
                parent.kill()  # its workers end with it
                raise
        assert done() or killed, said.decode()
    return killed
