"""The answers of a server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NotRequired, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import HopfuseError, error_of
from ..recipes import Hit, HitTables


class Deletions(NamedTuple):
    """What a deletion of passages deletes, as far as the key sees.

    Attributes
    ----------
    seq : int or None
        Of the change; None after a dry run.
    passages, names, words, facts : int
        As of :class:`hopfuse.index.Deletions`.
    """

    seq: int | None
    passages: int
    names: int
    words: int
    facts: int


@dataclass(frozen=True, eq=False)
class Found(HitTables):
    """The rankings of a batch of questions: ``found[b]`` is a list of :class:`hopfuse.recipes.Hit`, best first.

    Printed, and in a notebook, it is a table of the best hits, with the notes.

    Attributes
    ----------
    hits : list of list of Hit
        ``row`` is -1, since rows are internal to the server.
    seq : int
        The state of the index that was searched.
    timings : mapping
        ``queued_ms``, ``batch`` and ``search_ms``.
    traces : list of dict, or None
        One for each question if ``trace=True``.
    notes : list of list of HopfuseError
        As of :class:`hopfuse.recipes.SearchResult`.
    """

    hits: list[list[Hit]] = field(repr=False)
    seq: int
    timings: Mapping[str, float]
    traces: list[dict[str, Any]] | None = field(default=None, repr=False)
    notes: list[list[HopfuseError]] = field(default_factory=list, repr=False)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, query: int) -> list[Hit]:
        return self.hits[query]

    def __iter__(self) -> Iterator[list[Hit]]:
        return iter(self.hits)

    def _hits(self, query: int, most: int) -> tuple[list[Hit], int]:
        return self.hits[query][:most], len(self.hits[query])


@dataclass(frozen=True, eq=False)
class FoundIds:
    """The rankings of a batch of vectors, as arrays: ``found[b]`` is a list of (id, score), best first.

    Attributes
    ----------
    ids : list of list of str or int
        Ids of passages, best first.
    scores : ndarray of float32, shape (B, K)
        As in :class:`hopfuse.Hits`, with -inf after the hits of a question.
    counts : ndarray of int64, shape (B,)
        Number of hits of each question.
    seq, timings, notes
        As in :class:`Found`.
    """

    ids: list[list[str | int]] = field(repr=False)
    scores: NDArray[np.float32] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)
    seq: int
    timings: Mapping[str, float]
    notes: list[list[HopfuseError]] = field(default_factory=list, repr=False)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, query: int) -> list[tuple[str | int, float]]:
        return list(zip(self.ids[query], self.scores[query].tolist(), strict=False))

    def __iter__(self) -> Iterator[list[tuple[str | int, float]]]:
        return (self[query] for query in range(len(self)))


class Passage(TypedDict):
    """A passage with what is known of it: a mapping, whose other keys are missing.

    Attributes
    ----------
    id : str or int
    text : str
    title : str, optional
    metadata : dict, optional
    document : str or int, optional
    language : str, optional

    Examples
    --------
    >>> from hopfuse.client import Passage
    >>> Passage(id="p7", text="Ridley Scott made Alien.").get("title", "")
    ''
    """

    id: str | int
    text: str
    title: NotRequired[str]
    metadata: NotRequired[dict[str, Any]]
    document: NotRequired[str | int]
    language: NotRequired[str]


@dataclass(frozen=True)
class PassagesPage:
    """Passages in ascending order of their ids, from one state of the index.

    Attributes
    ----------
    passages : list of Passage
    seq : int
        The state of the index.
    after : str or int, or None
        The last id if there is another page, which comes after it.

    Examples
    --------
    >>> from hopfuse.client import PassagesPage
    >>> [one["id"] for one in PassagesPage([{"id": "p7", "text": "A river."}], seq=0, after="p7")]
    ['p7']
    """

    passages: list[Passage] = field(repr=False)
    seq: int
    after: str | int | None

    def __len__(self) -> int:
        return len(self.passages)

    def __iter__(self) -> Iterator[Passage]:
        return iter(self.passages)


def found_of(answer: Any) -> Found:
    """Return the rankings of a JSON response."""
    results = answer["results"]
    hits = [[_hit(one) for one in result["hits"]] for result in results]
    traced = bool(results) and "trace" in results[0]
    traces = [result["trace"] for result in results] if traced else None
    return Found(hits, answer["seq"], answer["timings"], traces, notes_of([one.get("notes", ()) for one in results]))


def ids_of(answer: Any) -> FoundIds:
    """Return the ids and scores of a JSON response."""
    rankings = [result["hits"] for result in answer["results"]]
    with np.errstate(over="ignore"):
        scores = np.array([hit["score"] for ranking in rankings for hit in ranking], np.float32)
    ids = [[hit["id"] for hit in ranking] for ranking in rankings]
    return padded(ids, scores, {**answer, "notes": [one.get("notes", ()) for one in answer["results"]]})


def passage_of(answer: Any) -> Passage:
    """Return the passage of a JSON response."""
    return cast(Passage, {"id": answer["id"], "text": answer["text"], **answer})


def page_of(answer: Any) -> PassagesPage:
    """Return the page of a JSON response."""
    return PassagesPage([passage_of(one) for one in answer["passages"]], answer["seq"], answer["after"])


def deletions_of(answer: Any) -> Deletions:
    """Return what a JSON response says of a deletion."""
    return Deletions(**answer)


def padded(ids: list[list[Any]], scores: NDArray[np.float32], about: Mapping[str, Any]) -> FoundIds:
    """Return rankings from ids and the scores of all hits, one ranking after another."""
    counts = np.array([len(row) for row in ids], np.int64)
    held = np.arange(counts.max(initial=0)) < counts[:, None]
    table = np.full(held.shape, -np.inf, np.float32)
    table[held] = scores
    notes = notes_of(about.get("notes", [()] * len(ids)))
    return FoundIds(ids, table, counts, about["seq"], about["timings"], notes)


def notes_of(sent: Iterable[Iterable[Mapping[str, str]]]) -> list[list[HopfuseError]]:
    """Return the notes of each question."""
    return [[error_of({"class": "InputError", **note}) for note in row] for row in sent]


def _hit(one: Mapping[str, Any]) -> Hit:
    return Hit(one["id"], -1, one["score"], one.get("title", ""), one.get("text", ""), one.get("metadata", {}))
