"""``python -m experiments.live [PART ...] [--out FILE]``: the cost of changes to an index.

Prints times relative to the disk and to a static index, of one run. The parts, by default all:

- writes: with 2,000 passages, a batch of 100 passages, and single commits of 8 threads, relative to a write and fsync
  of the same bytes; and opening a log of 100 MiB, relative to reading it and computing its checksum.
- logs: opening and refreshing after 10 to 29,600 commits of a passage, with 1,000 and with 100,000 passages.
- large: with 100,000 passages, BM25 and a million edges, the CPU seconds until a batch can be searched, the memory of a
  snapshot, searches relative to an index of the same rows in one generation, and a compaction relative to writing its
  bytes.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import hopfuse as hf
import numpy as np
from hopfuse.lexical import BM25
from numpy.typing import NDArray

from bench.result_file import ResultFile, add_out_option

DIM, ROUNDS = 384, 15
SMALL, LARGE = (2_000, 10_000, 20_000), (100_000, 50_000, 1_000_000)  # passages, entities, edges
VOCABULARY, LENGTH = 50_000, 80


def texts(rng: np.random.Generator, count: int) -> list[str]:
    """Return texts with a skewed distribution of words, as in a language."""
    words = (VOCABULARY * rng.random((count, LENGTH)) ** 3).astype(np.int64)
    return [" ".join(f"w{word}" for word in row) for row in words.tolist()]


def make(folder: Path, passages: int, entities: int, edges: int, *, lexical: bool) -> None:
    """Save an index of passages with vectors, a graph of edges to entities, and optionally BM25."""
    rng = np.random.default_rng(0)
    src = rng.integers(0, passages, edges)
    dst = passages + (entities * rng.random(edges) ** 2).astype(np.int64)
    index = hf.Index.build(
        passages=[{"id": f"p{at}", "text": text} for at, text in enumerate(texts(rng, passages))],
        vectors=rng.standard_normal((passages, DIM), dtype=np.float32),
        entities=[f"e{at}" for at in range(entities)],
        graph=hf.Graph.from_edges(src, dst, num_nodes=passages + entities),
    )
    if lexical:
        index = index.with_lexical(BM25.build(list(index.texts), stopwords=None, stemmer=None).matrix)
    index.save(folder)


class Batch(NamedTuple):
    """The contents of a commit: passages with a vector and three edges each, and an entity for every ten."""

    rows: list[dict[str, str]]
    vectors: NDArray[np.float64]
    names: list[str]
    edges: list[dict[str, tuple[str, str]]]


def made(tag: str, count: int, entities: int) -> Batch:
    """Return the contents of a commit."""
    rng = np.random.default_rng(count)
    ids = [f"{tag} {at}" for at in range(count)]
    rows = [{"id": id, "text": text} for id, text in zip(ids, texts(rng, count), strict=True)]
    ends = rng.integers(0, entities, (count, 3)).tolist()
    edges = [(id, f"e{end}") for id, row in zip(ids, ends, strict=True) for end in row]
    stated = [{"src": ("passage", a), "dst": ("entity", b)} for a, b in edges]
    return Batch(rows, rng.normal(size=(count, DIM)), [f"new {tag} {at}" for at in range(0, count, 10)], stated)


def commit(live: hf.LiveIndex[Any], one: Batch) -> None:
    """Commit a batch."""
    with live.change() as change:
        change.add_passages(one.rows, vectors=one.vectors)
        change.add_entities(one.names)
        change.add_edges(one.edges)


def seconds(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return how long a call takes, by a clock."""
    start = clock()
    work()
    return clock() - start


def cpu_seconds(work: Callable[[], Any]) -> float:
    """Return the CPU time of a call."""
    return seconds(work, time.process_time)


def write(file: Any, data: bytes, times: int = 1) -> None:
    """Append bytes to a file and fsync it, a number of times."""
    for _ in range(times):
        file.write(data)
        os.fsync(file.fileno())


def noted(file: ResultFile, what: str, value: float, unit: str = "", **sizes: int) -> None:
    """Print a figure, and add it to the file."""
    about = "".join(f", {count:,} {name}" for name, count in sizes.items())
    print(f"{what}{about}: {value:.4g} {unit}".rstrip(), flush=True)
    file.add(what=what, value=value, unit=unit, **sizes)


def writes(folder: Path, file: ResultFile) -> None:
    """Note the time of commits and of opening, relative to the disk."""
    make(folder / "index", *SMALL, lexical=False)
    names = SMALL[1]
    log = folder / "index" / "log-000000000001.hopfuse"
    with hf.Index.open(folder / "index", writable=True) as live, (folder / "raw").open("wb", 0) as raw:
        commit(live, made("first", 100, names))
        ours, theirs = [], []
        for at in range(ROUNDS):
            before, batch = log.stat().st_size, made(f"batch {at}", 100, names)
            ours.append(seconds(lambda: commit(live, batch)))  # noqa: B023
            size = log.stat().st_size - before
            theirs.append(seconds(lambda: write(raw, os.urandom(size))))  # noqa: B023
        noted(file, "batch of 100 passages, of a write and fsync", median(ours) / median(theirs), "x", bytes=size)
        noted(file, "fsync of its bytes", 1e3 * median(theirs), "ms", bytes=size)
        before = log.stat().st_size
        ours = []
        for turn in range(3):
            each = [[made(f"thread {turn} {t} {at}", 1, names) for at in range(10)] for t in range(8)]
            ours.append(seconds(lambda: eight(live, each)))  # noqa: B023
        size = (log.stat().st_size - before) // 240
        theirs = [seconds(lambda: write(raw, bytes(size), times=80)) for _ in range(3)]
        noted(file, "80 commits of 8 threads, of 80 writes in turn", median(ours) / median(theirs), "x", bytes=size)
        at = 0
        while log.stat().st_size < 100 << 20:
            commit(live, made(f"more {at}", 1000, names))
            at += 1
    turns = [
        (cpu_seconds(lambda: hf.Index.open(folder / "index")), cpu_seconds(lambda: zlib.crc32(log.read_bytes())))
        for _ in range(5)
    ]
    opened, read = (median(each) for each in zip(*turns, strict=True))
    noted(file, "opening a log, of reading it and its checksum", opened / read, "x", MiB=log.stat().st_size >> 20)


def eight(live: hf.LiveIndex[Any], each: list[list[Batch]]) -> None:
    """Commit single passages in each of eight threads."""

    def work(mine: list[Batch]) -> None:
        for one in mine:
            commit(live, one)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in each]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def logs(folder: Path, file: ResultFile) -> None:
    """Note the CPU time to open an index, and to refresh it after a commit, by the length of the log."""
    small = (1_000, 500, 10_000)
    for sizes, lexical, counts in ((small, False, (10, 100, 1000, 5000, 29_600)), (LARGE, True, (10, 100, 1000, 5000))):
        place = folder / f"{sizes[0]}"
        make(place, *sizes, lexical=lexical)
        log, done = place / "log-000000000001.hopfuse", 0
        for count in counts:
            with hf.Index.open(place, writable=True) as live:
                for at in range(done, count - 3):
                    commit(live, made(f"turn {at}", 1, sizes[1]))
                live.refresh()
                spent = []
                for at in range(count - 3, count):
                    commit(live, made(f"turn {at}", 1, sizes[1]))
                    spent.append(cpu_seconds(live.refresh))
                done = count
            opened, merged, read = (
                min(cpu_seconds(work) for _ in range(3))
                for work in (
                    lambda: hf.Index.open(place),  # noqa: B023
                    lambda: hf.Index.open(place).load(),  # noqa: B023
                    lambda: zlib.crc32(log.read_bytes()),  # noqa: B023
                )
            )
            length = {"passages": sizes[0], "commits": count, "bytes": log.stat().st_size}
            noted(file, "opened", opened * 1e3, "ms", **length)
            noted(file, "opened, of reading the log and its checksum", opened / read, "x", **length)
            noted(file, "opened and merged", merged * 1e3, "ms", **length)
            noted(file, "refreshed after one more", median(spent) * 1e3, "ms", **length)


def searcher(index: hf.Index) -> Any:
    """Return a recipe with dense, graph and lexical legs."""
    assert index.lexical is not None
    return hf.recipes.PhaseGraph(index, lexical=BM25(index.lexical), threads=1)


def asked(batch: int) -> dict[str, Any]:
    """Return questions with three words, two entities and a vector each."""
    rng = np.random.default_rng(batch)
    return {
        "queries": [" ".join(text.split()[:3]) for text in texts(rng, batch)],
        "entities": [[f"e{name}" for name in row] for row in rng.integers(0, LARGE[1], (batch, 2)).tolist()],
        "vectors": rng.standard_normal((batch, DIM), dtype=np.float32),
        "k": 10,
    }


def refreshes(live: hf.LiveIndex[Any], file: ResultFile) -> None:
    """Note the time until a batch of 100 passages can be searched."""
    recipe, one = live.follow(searcher), asked(1)
    recipe.search(**one)
    merged, found = [], []
    for at in range(6):
        commit(live, made(f"seen {at}", 100, LARGE[1]))
        merged.append(cpu_seconds(live.refresh))
        found.append(cpu_seconds(lambda: recipe.search(**one)))
    noted(file, "first refresh after 100 passages", 1e3 * merged[0], "ms")
    noted(file, "later refreshes after 100 passages", 1e3 * median(merged[1:]), "ms")
    noted(file, "first search of a snapshot, with its recipe", 1e3 * median(found[1:]), "ms")


def held() -> int:
    """Return the process's memory in bytes without the pages of files."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Anonymous:"))


def memory(live: hf.LiveIndex[Any], folder: Path, what: str, file: ResultFile) -> None:
    """Note the memory of a snapshot beyond its generation, and of the next snapshot beyond that."""
    reader = hf.Index.open(folder, live=True)
    first, now = held(), reader.index
    now.load()
    first = held() - first
    sizes = [sum(path.stat().st_size for path in folder.glob(f"{kind}-*")) >> 20 for kind in ("generation", "log")]
    commit(live, made(f"memory {what}", 100, LARGE[1]))
    more = held()
    reader.refresh()
    more = held() - more
    assert reader.seq > now.seq
    length = {"MiB of the generation": sizes[0], "MiB of the log": sizes[1]}
    noted(file, f"{what}: memory of a snapshot", first >> 20, "MiB", **length)
    noted(file, f"{what}: memory of the next one beside it", more >> 20, "MiB", **length)


def searches(live: hf.LiveIndex[Any], static: Path, what: str, file: ResultFile) -> None:
    """Note the time of searches of a snapshot, relative to one generation of the same rows, in turns."""
    live.refresh().save(static)
    recipes = [searcher(live.index), searcher(hf.Index.open(static))]
    for batch in (1, 32):
        questions = asked(batch)
        taken: list[list[float]] = [[], []]
        for turn in range(ROUNDS + 2):
            for recipe, times in zip(recipes, taken, strict=True):
                spent = cpu_seconds(lambda: recipe.search(**questions))  # noqa: B023
                times += [spent] if turn > 1 else []
        ratio = median(taken[0]) / median(taken[1])
        noted(file, f"{what}: a search, of a static index's", ratio, "x", questions=batch)


def compactions(live: hf.LiveIndex[Any], folder: Path, file: ResultFile) -> None:
    """Note the time of compactions relative to the disk, and of searches during one relative to searches alone."""
    recipe, one = searcher(live.refresh()), asked(1)
    recipe.search(**one)
    alone = [seconds(lambda: recipe.search(**one)) for _ in range(4 * ROUNDS)]
    beside = list[float]()

    def searched() -> None:
        done = live.compact_in_background()
        while not done.done():
            beside.append(seconds(lambda: recipe.search(**one)))

    taken = {"beside searches": seconds(searched)}
    commit(live, made("merged", 100, LARGE[1]))
    taken["beside searches, with a merge"] = seconds(searched)
    commit(live, made("compacted", 100, LARGE[1]))
    live.refresh()
    taken["alone"] = seconds(live.compact)
    data = next(iter(sorted(folder.glob("generation-*"))[-1:])).read_bytes()
    written = []
    for at in range(3):
        with (folder.parent / f"raw {at}").open("wb", 0) as raw:
            written.append(seconds(lambda: write(raw, data)))
    for how, spent in taken.items():
        noted(file, f"compaction {how}, of writing its bytes", spent / median(written), "x", MiB=len(data) >> 20)
    noted(file, "searches beside a compaction, of those alone", median(beside) / median(alone), "x")


def large(place: Path, file: ResultFile) -> None:
    """Note the figures of a large index."""
    folder = place / "index"
    make(folder, *LARGE, lexical=True)
    with hf.Index.open(folder, writable=True) as live:
        refreshes(live, file)
        commit(live, made("delta", LARGE[0] // 10, LARGE[1]))
        searches(live, place / "delta", "10 % added", file)
        memory(live, folder, "10 % added", file)
        with live.change() as change:
            change.delete_passages([f"p{at}" for at in range(0, LARGE[0], 10)])
        searches(live, place / "tombstones", "10 % added and 10 % deleted", file)
        memory(live, folder, "10 % added and 10 % deleted", file)
        compactions(live, folder, file)


PARTS = {"writes": writes, "logs": logs, "large": large}


def main() -> None:
    """Print the figures of some parts, and write them."""
    parser = argparse.ArgumentParser(prog="python -m experiments.live", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=f"{', '.join(PARTS)}")
    add_out_option(parser)
    given = parser.parse_args()
    file = ResultFile(" ".join(["python -m experiments.live", *given.parts]))
    for name in given.parts or PARTS:
        with tempfile.TemporaryDirectory(dir=".") as place:
            PARTS[name](Path(place), file)
    file.write(given.out)


if __name__ == "__main__":
    main()
