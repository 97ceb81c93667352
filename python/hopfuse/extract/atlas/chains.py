"""Chains of passages: where a question may start, and what may be asked of the place it leads to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from hashlib import blake2b
from typing import Generic, NamedTuple, TypeVar

from .records import World

WALKS_PER_PLACE = 12

P = TypeVar("P")
Tail = tuple[tuple[str, ...], str] | None  # passages and answer; None where it is not known


@dataclass(frozen=True, slots=True)
class Chain:
    """From an entity over passages, in order, to an answer that stands in the last."""

    start: str
    hops: tuple[str, ...]
    answer: str


class Walk(NamedTuple, Generic[P]):
    """An entity, the passages that lead from it to a place, the place, and what tells places apart."""

    start: str
    hops: tuple[str, ...]
    place: P
    code: str


class QuestionType(NamedTuple):
    """A kind of question, the entity's name left open in its text, and its chains."""

    name: str
    text: str
    chains: list[Chain]


@dataclass(frozen=True)
class Topic(Generic[P]):
    """All ways to a kind of place, times all that is asked of it.

    Attributes
    ----------
    starts : dict of str to (phrase, walks)
        The place in words, with the entity's name left open, and the walks to such places.
    asks : dict of str to (phrase, tail)
        The question, with the place left open, and how to answer it.
    """

    starts: dict[str, tuple[str, Callable[[World], Iterator[Walk[P]]]]]
    asks: dict[str, tuple[str, Callable[[World, P], Tail]]]

    def types(self, world: World, known: Set[str]) -> Iterator[QuestionType]:
        """Every question type, with its chains of 2 or 3 hops that start at one of the known entities."""
        for start, (place, walks) in self.starts.items():
            spread = _spread(walk for walk in walks(world) if walk.start in known)
            for ask, (question, tail) in self.asks.items():
                yield QuestionType(f"{start}-{ask}", question.format(place), list(_chains(world, spread, tail)))


def stable_hash(text: str) -> int:
    """64 bits of a text that are the same in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def _spread(walks: Iterable[Walk[P]]) -> list[Walk[P]]:
    """A few walks to every place, chosen by a hash of where they start."""
    by_place: dict[str, list[tuple[int, Walk[P]]]] = defaultdict(list)
    for walk in walks:
        by_place[walk.code].append((stable_hash(walk.start), walk))
    few = (sorted(group, key=lambda item: item[0])[:WALKS_PER_PLACE] for group in by_place.values())
    return [walk for group in few for _, walk in group]


def _chains(world: World, walks: list[Walk[P]], tail: Callable[[World, P], Tail]) -> Iterator[Chain]:
    for walk in walks:
        found = tail(world, walk.place)
        if found and 2 <= len(walk.hops) + len(found[0]) <= 3:
            yield Chain(walk.start, walk.hops + found[0], found[1])
