"""Sørensen-Dice scores of the triples around a question's seeds."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
from numpy.typing import NDArray

from .. import gate
from ..settings import Settings
from .base import Workload, ends, proof

#: Error of a score in [0, 1]: half a unit in the last place of float32, plus float64 rounding.
TOLERANCE = 3e-8
RELATIONS = 9
#: Triples to compare with each question.
CANDIDATES = 100


class Dice(Workload):
    """As many names and triples as in MetaQA; questions of eight words, each with 100 candidate triples.

    Names have one to three words of three to nine letters, drawn with Zipf's frequencies. Labels are split into bigrams
    beforehand, questions in every call.

    Attributes
    ----------
    names : list of str
        Names of entities, then of relations.
    texts : list of str
        Questions, one for each query of the largest batch.
    candidates : ndarray of int64, shape (B, 100, 3)
        Positions of head, relation and tail in ``names``.
    """

    ops = ("dice_f32",)
    data = "synthetic"

    def __init__(self, settings: Settings) -> None:
        entities, triples = (300, 900) if settings.quick else (43_000, 129_000)
        self.batches = (1, 4) if settings.quick else (1, 32, 256)
        self.threads = settings.threads
        rng = np.random.default_rng(15)
        words = _words(rng, 3_000)
        self.names = _phrases(rng, words, rng.integers(1, 4, entities + RELATIONS))
        self.texts = _phrases(rng, words, np.full(max(self.batches), 8))
        relations = entities + rng.integers(0, RELATIONS, triples)
        facts = np.stack([rng.integers(0, entities, triples), relations, rng.integers(0, entities, triples)], axis=1)
        self.candidates = facts[rng.integers(0, triples, (max(self.batches), CANDIDATES))]
        self.labels = hf.LabelSets.from_labels(self.names)
        self.sizes = {"labels": len(self.names), "triples": triples, "candidates": CANDIDATES}

    def run(self, batch: int, turn: int) -> Any:
        rows, bounds = self.candidates[:batch].reshape(-1, 3), CANDIDATES * np.arange(batch + 1)
        return hf.dice_scores(self.texts[:batch], self.labels, rows, indptr=bounds, threads=self.threads)

    def check(self, batch: int, ours: Any) -> dict[str, Any]:
        """Compare with the oracle, which reads only the labels of these questions."""
        rows = ends(batch)
        used, numbers = np.unique(self.candidates[rows], return_inverse=True)
        exact = hf.reference.dice_scores(
            [self.texts[row] for row in rows],
            [self.names[label] for label in used],
            numbers.reshape(-1, 3).tolist(),
            (CANDIDATES * np.arange(len(rows) + 1)).tolist(),
        )
        sampled = ours.reshape(batch, CANDIDATES)[rows].ravel()
        return proof(len(rows), _worst("hopfuse against the oracle", sampled, exact), TOLERANCE)

    def compare(self, batch: int, ours: Any, theirs: NDArray[Any]) -> dict[str, Any]:
        queries = theirs.size // CANDIDATES
        return proof(queries, _worst("the peer against hopfuse", theirs, ours[: theirs.size]), TOLERANCE)


def _worst(what: str, actual: NDArray[Any], expected: NDArray[Any]) -> float:
    """Return the largest error of a score, each score being a row."""
    return gate.rows_l1(what, actual[:, None], expected[:, None], TOLERANCE)


def _words(rng: np.random.Generator, count: int) -> list[str]:
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    drawn = rng.choice(letters, 9 * count, p=_zipf(letters.size))
    lengths = rng.integers(3, 10, count)
    return ["".join(drawn[9 * at : 9 * at + length]) for at, length in enumerate(lengths)]


def _phrases(rng: np.random.Generator, words: list[str], lengths: NDArray[np.int64]) -> list[str]:
    drawn = iter(rng.choice(len(words), int(lengths.sum()), p=_zipf(len(words))).tolist())
    return [" ".join(words[next(drawn)] for _ in range(length)) for length in lengths]


def _zipf(count: int) -> NDArray[np.float64]:
    weights = 1.0 / np.arange(1.0, count + 1)
    return np.asarray(weights / weights.sum())
