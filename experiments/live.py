"""Time the changes of an index, each beside what the disk alone takes: ``python -m experiments.live``.

Ratios of one run: a batch of 100 passages and single commits of 8 threads against a write and an fsync of the same
bytes, and opening a log against reading it and its checksum. Also the seconds of a refresh.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import hopfuse as hf
import numpy as np

DIM, NAMES, ROUNDS = 384, 10_000, 15


def make(folder: Path) -> None:
    """Save an index of 2,000 passages with vectors and a graph."""
    rng = np.random.default_rng(0)
    graph = hf.Graph.from_edges(rng.integers(0, 2000, 20_000), rng.integers(2000, 12_000, 20_000), num_nodes=12_000)
    hf.Index.build(
        passages=[{"id": f"p{at}", "text": "A passage."} for at in range(2000)],
        vectors=rng.normal(size=(2000, DIM)).astype(np.float32),
        entities=[f"e{at}" for at in range(NAMES)],
        graph=graph,
    ).save(folder)


def commit(live: hf.LiveIndex[Any], tag: str, count: int) -> None:
    """Add passages with vectors and three edges each, and an entity for every ten."""
    rng = np.random.default_rng(count)
    with live.change() as change:
        ids = [f"{tag} {at}" for at in range(count)]
        change.add_passages(
            [{"id": id, "text": "A text of a few words. " * 20} for id in ids], vectors=rng.normal(size=(count, DIM))
        )
        change.add_entities([f"new {tag} {at}" for at in range(0, count, 10)])
        ends = rng.integers(0, NAMES, (count, 3)).tolist()
        edges = [(id, f"e{end}") for id, row in zip(ids, ends, strict=True) for end in row]
        change.add_edges([{"src": ("passage", a), "dst": ("entity", b)} for a, b in edges])


def seconds(work: Callable[[], Any]) -> float:
    """Return how long something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def write(file: Any, data: bytes) -> None:
    """Append bytes, and put them on the disk."""
    file.write(data)
    os.fsync(file.fileno())


def main() -> None:
    """Print the ratios."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        make(folder / "index")
        log = folder / "index" / "log-000000000001.hopfuse"
        with hf.Index.open(folder / "index", writable=True) as live, (folder / "raw").open("wb", 0) as raw:
            commit(live, "first", 100)
            ours, theirs = [], []
            for at in range(ROUNDS):
                before = log.stat().st_size
                ours.append(seconds(lambda: commit(live, f"batch {at}", 100)))  # noqa: B023
                size = log.stat().st_size - before
                theirs.append(seconds(lambda: write(raw, os.urandom(size))))  # noqa: B023
            print(f"batch of 100 passages, {size:,} bytes: {median(ours) / median(theirs):.2f}x of a write and fsync")
            before = log.stat().st_size
            ours = [seconds(lambda: eight(live, at)) for at in range(3)]  # noqa: B023
            size = (log.stat().st_size - before) // 240
            theirs = [seconds(lambda: [write(raw, bytes(size)) for _ in range(80)]) for _ in range(3)]
            print(f"80 commits of 8 threads, {size:,} bytes each: {median(ours) / median(theirs):.2f}x of 80 in turn")
            at = 0
            while log.stat().st_size < 100 << 20:
                commit(live, f"more {at}", 1000)
                at += 1
        opened = seconds(lambda: hf.Index.open(folder / "index"))
        read = seconds(lambda: zlib.crc32(log.read_bytes()))
        print(f"opening with a log of {log.stat().st_size >> 20} MiB: {opened / read:.2f}x of reading and its checksum")
        print(f"merging it: {seconds(hf.Index.open(folder / 'index').load):.2f} s")


def eight(live: hf.LiveIndex[Any], tag: int) -> None:
    """Commit ten single passages in each of eight threads."""

    def work(thread: int) -> None:
        for at in range(10):
            commit(live, f"thread {tag} {thread} {at}", 1)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
