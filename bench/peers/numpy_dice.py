"""Sørensen-Dice in NumPy: mark a question's bigrams, then sum the marks over all labels of its candidates."""

from __future__ import annotations

from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ..cases.dice import Dice
from .base import ONE, Peer
from .python_dice import bigrams


class NumpyDice(Peer):
    """A few NumPy calls per question; each label is counted once, even if several candidates have it."""

    packages = ("numpy",)
    remark = "labels as numbers of bigrams beforehand; one thread"
    runs_on = ONE

    def __init__(self, workload: Dice, threads: int) -> None:
        self.texts, self.candidates = workload.texts, workload.candidates
        sets = [bigrams(name) for name in workload.names]
        self.number = {bigram: at for at, bigram in enumerate(sorted(set(chain.from_iterable(sets))))}
        self.sizes = np.array([len(own) for own in sets])
        self.begin = np.cumsum(self.sizes) - self.sizes
        self.members = np.array([self.number[bigram] for own in sets for bigram in own])

    def run(self, batch: int) -> NDArray[np.float64]:
        pairs = zip(self.texts[:batch], self.candidates[:batch], strict=True)
        return np.concatenate([self._scores(text, rows) for text, rows in pairs])

    def _scores(self, text: str, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        query = bigrams(text)
        marks = np.zeros(len(self.number))
        marks[[self.number[bigram] for bigram in query if bigram in self.number]] = 1.0
        labels, place = np.unique(rows, return_inverse=True)
        sizes = self.sizes[labels]
        ends = np.cumsum(sizes)
        entries = np.arange(ends[-1]) + np.repeat(self.begin[labels] - (ends - sizes), sizes)
        totals = np.concatenate([[0.0], np.cumsum(marks[self.members[entries]])])
        shared = totals[ends] - totals[ends - sizes]  # exact, because the sums are integers
        dice = 2.0 * shared / np.maximum(len(query) + sizes, 1)
        return np.asarray(dice[place.reshape(rows.shape)].mean(axis=1))
