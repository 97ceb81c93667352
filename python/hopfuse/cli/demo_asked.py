"""What a demo asks: questions with what answers them, for a recipe that reads their texts, vectors and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..encoders import Encoder
from ..evaluate import Qrels
from .names import NameFinder
from .recipe_choice import Chosen

Rows = Sequence[int] | NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Asked:
    """Questions of a collection.

    Attributes
    ----------
    texts : sequence of str
    qrels : Qrels
        By passage, or by entity where a recipe ranks entities.
    groups : mapping of str to ndarray of bool
        Questions whose numbers are shown by themselves; the first has all.
    needs : sequence of str
        What each question needs, for a person.
    vectors : ndarray, optional
        Given with the data; else the encoder makes them.
    mentions : sequence of sequence of str, optional
        Likewise; else names are found in the texts.
    """

    texts: Sequence[str]
    qrels: Qrels
    groups: Mapping[str, NDArray[np.bool_]]
    needs: Sequence[str]
    vectors: NDArray[Any] | None = None
    mentions: Sequence[Sequence[str]] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def evenly(self, most: int | None) -> Asked:
        """At most so many, spread over all of them."""
        count = min(most or len(self), len(self))
        rows = [at * len(self) // count for at in range(count)]
        return Asked(
            [self.texts[row] for row in rows],
            self.qrels.take(rows),
            {name: held[rows] for name, held in self.groups.items()},
            [self.needs[row] for row in rows],
            None if self.vectors is None else self.vectors[rows],
            None if self.mentions is None else [self.mentions[row] for row in rows],
        )


def groups_by_hops(qrels: Qrels) -> dict[str, NDArray[np.bool_]]:
    """All questions, and those of each number of hops.

    Examples
    --------
    >>> {name: held.tolist() for name, held in groups_by_hops(Qrels(["a", "b"], [[1], [2]], [[[1]], []])).items()}
    {'all': [True, True], 'hops unknown': [False, True], '1 hop': [True, False]}
    """
    hops = qrels.num_hops
    labels = {n: "hops unknown" if n == 0 else "1 hop" if n == 1 else f"{n} hops" for n in np.unique(hops).tolist()}
    return {"all": np.ones(len(qrels), bool)} | {label: hops == n for n, label in labels.items()}


@dataclass(frozen=True, eq=False)
class Contest:
    """A recipe and what it is asked."""

    chosen: Chosen
    asked: Asked
    encoder: Encoder
    names: NameFinder | None

    def arguments(self, rows: Rows) -> tuple[list[str], NDArray[Any], Sequence[Sequence[str]] | None]:
        """Texts, vectors and names of some questions; what is not given is made of the texts."""
        texts = [self.asked.texts[row] for row in rows]
        given = self.asked.vectors
        vectors = self.encoder.encode_queries(texts) if given is None else given[np.asarray(rows, np.int64)]
        if not self.chosen.reads_entities:
            return texts, vectors, None
        if self.asked.mentions is not None:
            return texts, vectors, [self.asked.mentions[row] for row in rows]
        assert self.names is not None
        return texts, vectors, self.names.find(texts)

    def search(self, rows: Rows, k: int, **options: Any) -> Any:
        """The recipe's result."""
        return self.chosen.search(*self.arguments(rows), k, **options)
