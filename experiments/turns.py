"""``python -m experiments.turns [--sizes N ...] [--http N ...] [--out FILE] [--plot FILE]``: a memory by its size.

A memory of N turns, of one conversation after another, is built with the words reader, WordLlama's vectors and BM25.
Then :data:`TURNS` turns are added one by one, each followed by a question. Printed, and written as rows, are the
medians of the CPU milliseconds of a turn's steps:

- ``add``: reading, encoding and committing the turn (on a file system in memory if there is one, so without a disk);
- ``refresh``: the new snapshot;
- ``searcher``: the recipe over it, and the first question's share that a second question does not have;
- ``search``: the second question, and ``static``: the same questions on a retriever over an index that does not change.

``http`` is the wall time of adding a turn and asking for it with ``at_least``, through a server of another process.
"""

from __future__ import annotations

import argparse
import json
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import hopfuse as hf
import matplotlib as mpl
import numpy as np
from hopfuse.client import Client
from hopfuse.extract import WordReader, build_memory
from matplotlib.figure import Figure

from bench.plots import STABLE
from bench.result_file import ResultFile, add_out_option

SIZES = (100, 300, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
OVER_HTTP = (100, 2_000, 20_000)
ENCODER = "wordllama:64"
WARM, TURNS, CONVERSATION = 5, 40, 40
VOCABULARY, LENGTH = 30_000, 20
STEPS = ("add", "refresh", "searcher", "search", "static")
LABELS = {
    "add": "add and commit",
    "refresh": "refresh",
    "searcher": "searcher, with the first question's share",
    "search": "one question",
    "static": "one question, index that does not change",
    "http": "over HTTP: add, and find with at_least (wall time)",
}
#: A file system in memory, so that the disk's time of a commit is not measured.
MEMORY = Path("/dev/shm")
TITLE = "A turn of a memory: words, WordLlama vectors and BM25"


def conversation(count: int) -> Iterator[dict[str, Any]]:
    """Yield turns with a skewed distribution of words, as in a language, by 100 users."""
    rng = np.random.default_rng(0)
    syllables = ["ba", "do", "ke", "li", "mu", "na", "po", "ri", "su", "ta", "ve", "zo", "gra", "fel", "hin", "jor"]
    for at in range(count):
        numbers = (VOCABULARY * rng.random(LENGTH) ** 3).astype(np.int64).tolist()
        words = ["".join(syllables[number >> shift & 15] for shift in (0, 4, 8, 12)) for number in numbers]
        yield {
            "id": f"t{at}",
            "text": " ".join(words),
            "document": f"s{at // CONVERSATION}",
            "metadata": {"user": f"u{at // CONVERSATION % 100}", "speaker": "user" if at % 2 else "agent"},
        }


def question(turn: dict[str, Any], at: int) -> str:
    """Return a question about a turn; ``at`` makes questions about one turn differ."""
    return " ".join(turn["text"].split()[at : at + 4])


def built(size: int, folder: Path) -> list[dict[str, Any]]:
    """Save a memory of some turns, and return the turns to be added."""
    turns = list(conversation(size + WARM + TURNS))
    hf.Index.build(passages=turns[:size], reader="words", encoder=ENCODER, metric="cosine").save(folder)
    return turns[size:]


def in_process(size: int, folder: Path) -> dict[str, Any]:
    """Return the medians of the steps of a turn."""
    turns = built(size, folder)
    times: dict[str, list[float]] = {step: [] for step in STEPS}
    with hf.Index.open(folder, writable=True, encoder=hf.encoders.open_encoder(ENCODER)) as live:
        reader, retriever = WordReader.like(live.index.words), hf.Retriever(live)
        for turn in turns:
            at = [time.process_time()]
            with live.change() as change:
                change.add_passages([turn])
                change.add_memory(build_memory(reader.read([turn])))
            at.append(time.process_time())
            live.refresh()
            at.append(time.process_time())
            found = retriever.search(question(turn, 0), k=5)
            at.append(time.process_time())
            retriever.search(question(turn, 1), k=5)
            at.append(time.process_time())
            assert turn["id"] in [hit.id for hit in found[0]], turn
            steps = np.diff(at) * 1e3
            steps[2] -= steps[3]
            for step, ms in zip(STEPS, steps.tolist(), strict=False):
                times[step].append(ms)
        static = hf.Retriever(live.index)
    for turn in turns:
        begin = time.process_time()
        static.search(question(turn, 1), k=5)
        times["static"].append((time.process_time() - begin) * 1e3)
    return {"turns": size} | {step: round(median(own[WARM:]), 3) for step, own in times.items()}


@contextmanager
def served(folder: Path) -> Iterator[Client]:
    """Yield a client of a server that writes to the index of a folder, in a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "hopfuse", "serve", str(folder), "--writable", "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            assert server.stderr is not None
            assert any(url in line for line in server.stderr), "the server ended"
            with Client(url) as client:
                yield client
        finally:
            server.terminate()


def over_http(size: int, folder: Path) -> dict[str, Any]:
    """Return the median wall time of adding a turn and of finding it, by a client of a server."""
    times = []
    turns = built(size, folder)
    with served(folder) as client:
        for turn in turns:
            begin = time.perf_counter()
            seq = client.add_passages([turn])
            found = client.search([question(turn, 0)], k=5, at_least=seq)
            times.append((time.perf_counter() - begin) * 1e3)
            assert turn["id"] in [hit.id for hit in found[0]], turn
    return {"turns": size, "http": round(median(times[WARM:]), 2)}


def plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the milliseconds of a turn's steps by the number of turns."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for step in (*STEPS, "http"):
        points = [(row["turns"], row[step]) for row in rows if step in row]
        if points:
            axes.plot(*zip(*points, strict=True), marker="o", label=LABELS[step])
    axes.set(title=TITLE, xlabel="turns in the memory", ylabel="milliseconds", xscale="log", yscale="log")
    axes.grid(alpha=0.3)
    axes.legend()
    with mpl.rc_context(STABLE):
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure, print and write the rows; draw them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, metavar="N")
    parser.add_argument("--http", type=int, nargs="*", default=OVER_HTTP, metavar="N")
    add_out_option(parser)
    parser.add_argument("--plot", type=Path, help="draw the rows as this SVG file")
    given = parser.parse_args()
    result, rows = ResultFile("python -m experiments.turns"), list[dict[str, Any]]()
    for sizes, measured in ((given.sizes, in_process), (given.http, over_http)):
        for size in sizes:
            with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
                row = measured(size, Path(place) / "memory")
            print(json.dumps(row), flush=True)
            result.add(**row)
            rows.append(row)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    result.write(given.out, children=used.ru_utime + used.ru_stime)
    if given.plot is not None:
        plot(rows, given.plot)


if __name__ == "__main__":
    main()
