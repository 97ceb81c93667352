"""What the tests of the frameworks' adapters share: a small index, its recipe, and ``hopfuse serve`` as a process."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import hopfuse as hf
import processes
from hopfuse.client import Client
from hopfuse.errors import EndpointError

CITIES = ["Ankara", "Bergen", "Cusco", "Dakar", "Erfurt", "Fes", "Graz", "Hanoi"]
TEXTS = [f"The road from {a} leads to {b}." for a, b in zip(CITIES, CITIES[3:] + CITIES[:3], strict=True)]
QUESTIONS = ["Which road leads from Ankara?", "Where does the road from Graz lead?", "What is near Fes and Hanoi?"]


def small_index() -> hf.Index:
    """Eight passages that name two cities each, with a graph and metadata; without vectors, so without an encoder."""
    edges = [(at, len(TEXTS) + CITIES.index(city)) for at, text in enumerate(TEXTS) for city in CITIES if city in text]
    return hf.Index.build(
        passages=[
            {"id": f"p{at}", "title": f"No. {at}", "text": text, "metadata": {"tenant": "ab"[at % 2], "number": at}}
            for at, text in enumerate(TEXTS)
        ],
        entities=CITIES,
        graph=[{"src": a, "dst": b, "type": "context"} for a, b in edges],
    )


@contextlib.contextmanager
def served(folder: Path, *options: str) -> Iterator[str]:
    """The address of ``hopfuse serve`` on loopback, a process of its own, while it runs."""
    command = [sys.executable, "-m", "hopfuse", "serve", str(folder), "--port", "0", "--threads", "1", *options]
    process = processes.Popen(command, stderr=subprocess.PIPE, text=True)
    lines: list[str] = []
    try:
        for line in process.stderr or ():
            lines.append(line)
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found:
                break
        else:
            raise AssertionError("".join(lines))
        with Client(found[0]) as client:
            while not _is_ready(client):
                time.sleep(0.01)
        yield found[0]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=600)


def _is_ready(client: Client) -> bool:
    try:
        return bool(client.indexes())
    except EndpointError:  # nothing listens yet
        return False
