"""Scorers that worker processes import: what they answer depends on a query's id alone."""

from __future__ import annotations

import os
import signal
import time
import zlib
from pathlib import Path

import numpy as np
from hopfuse.errors import InputError


class HashScorer:
    """Three hits a query, made of its id; every tenth query has none."""

    def score(self, queries, first):
        return [{"id": query.id, "hits": self._hits(query.id)} for query in queries]

    def _hits(self, id):
        number = zlib.crc32(id.encode())
        scores = (float(np.float32((number >> shift) % 1000 / 7)) for shift in range(3))
        return [] if number % 10 == 0 else [{"id": f"p{at}", "score": score} for at, score in enumerate(scores)]


class DyingScorer(HashScorer):
    """Kills its process over the first query of a part, so many times: each time leaves a file."""

    def __init__(self, folder, times, row):
        self._folder, self._times, self._row = Path(folder), times, row

    def score(self, queries, first):
        if first == self._row and len(list(self._folder.iterdir())) < self._times:
            (self._folder / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().score(queries, first)


class HeldScorer(HashScorer):
    """Waits for a file before it scores a query of the file of queries from a row on."""

    def __init__(self, gate, row):
        self._gate, self._row = Path(gate), row

    def score(self, queries, first):
        while first >= self._row and not self._gate.exists():
            time.sleep(0.02)
        return super().score(queries, first)


class FailingScorer(HashScorer):
    def __init__(self, error):
        self._error = error

    def score(self, queries, first):
        raise self._error


class SlowScorer(HashScorer):
    def __init__(self, seconds):
        self._seconds = seconds

    def score(self, queries, first):
        time.sleep(self._seconds)
        return super().score(queries, first)


def open_hash(plan, threads):
    return HashScorer()


def open_dying(plan, threads):
    return DyingScorer(**plan.scoring)


def open_held(plan, threads):
    return HeldScorer(**plan.scoring)


def open_refusing(plan, threads):
    return FailingScorer(InputError("unknown", "text", "query {given!r} is refused", given="q1"))


def open_broken(plan, threads):
    return FailingScorer(ZeroDivisionError("a bug"))


def open_slow(plan, threads):
    """Leaves a file for each process, with its number as name."""
    if "pids" in plan.scoring:
        Path(plan.scoring["pids"], str(os.getpid())).touch()
    return SlowScorer(plan.scoring.get("seconds", 0.002))
