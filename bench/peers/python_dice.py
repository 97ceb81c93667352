"""Sørensen-Dice in plain Python: sets of bigrams, one candidate at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..cases.dice import Dice
from .base import ONE, Peer


def bigrams(text: str) -> frozenset[str]:
    """Return the pairs of adjacent characters in the words of a text, with its case folded."""
    return frozenset(word[at : at + 2] for word in text.casefold().split() for at in range(len(word) - 1))


class PythonDice(Peer):
    """``len(x & y)`` of Python's sets."""

    packages = ("numpy",)
    remark = "a loop over sets that are made beforehand, but for the question's; one thread"
    runs_on = ONE

    def __init__(self, workload: Dice, threads: int) -> None:
        self.workload = workload
        self.sets = [bigrams(name) for name in workload.names]
        self.rows = workload.candidates.tolist()

    def run(self, batch: int) -> NDArray[np.float64]:
        scores = []
        for text, rows in zip(self.workload.texts[:batch], self.rows[:batch], strict=True):
            query = bigrams(text)
            for row in rows:
                labels = [self.sets[label] for label in row]
                scores.append(sum(2.0 * len(query & own) / ((len(query) + len(own)) or 1) for own in labels) / len(row))
        return np.array(scores)
