"""What a demo asks: questions with what answers them, for a recipe that reads their texts, vectors and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import Hits
from ..evaluate import Qrels
from .demo_encoder import BatchEncoder
from .mentioned import Mentioned
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
        By passage, or by entity where a recipe's hits are judged as entities.
    groups : mapping of str to ndarray of bool
        Questions whose numbers are shown by themselves; the first has all.
    needs : sequence of str
        What each question needs, for a person.
    vectors : ndarray, optional
        Given with the data; else the encoder makes them.
    mentions : sequence of sequence of str, optional
        Likewise; else names are found in the texts.
    answers : bool
        Whether what is judged relevant are answers; else evidence, all of which is needed.
    """

    texts: Sequence[str]
    qrels: Qrels
    groups: Mapping[str, NDArray[np.bool_]]
    needs: Sequence[str]
    vectors: NDArray[Any] | None = None
    mentions: Sequence[Sequence[str]] | None = None
    answers: bool = False

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
            self.answers,
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
    """A recipe and what it is asked; ``mentioned`` where entities that it finds rank the passages that mention them."""

    chosen: Chosen
    asked: Asked
    encoder: BatchEncoder
    names: NameFinder | None
    mentioned: Mentioned | None = None

    @property
    def embeds(self) -> bool:
        """Whether the encoder makes the questions' vectors: none are given, or those given are of passages alone."""
        return self.asked.vectors is None or self.mentioned is not None

    def arguments(self, rows: Rows) -> tuple[list[str], NDArray[Any], Sequence[Sequence[str]] | None]:
        """Texts, vectors and names of some questions; what is not given is made of the texts."""
        texts = [self.asked.texts[row] for row in rows]
        vectors = self.encoder.encode_queries(texts) if self.embeds else self.passage_vectors(rows)
        if not self.chosen.reads_entities:
            return texts, vectors, None
        if self.asked.mentions is not None:
            return texts, vectors, [self.asked.mentions[row] for row in rows]
        assert self.names is not None
        return texts, vectors, self.names.find(texts)

    def passage_vectors(self, rows: Rows) -> NDArray[Any]:
        """Vectors of some questions in the space of the passages'."""
        if self.asked.vectors is None:
            return self.encoder.encode_queries([self.asked.texts[row] for row in rows])
        return self.asked.vectors[np.asarray(rows, np.int64)]

    def search(self, rows: Rows, k: int, **options: Any) -> Any:
        """The recipe's result."""
        return self.chosen.search(*self.arguments(rows), k, **options)

    def answer(self, rows: Rows, k: int) -> Hits:
        """The hits that are judged."""
        if self.mentioned is not None:
            return self.mentioned.passages(self.search(rows, self.mentioned.entities).hits, k)
        hits: Hits = self.search(rows, k).hits
        return hits
