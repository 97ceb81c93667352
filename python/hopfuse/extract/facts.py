"""Facts that passages state, and conflicts between them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

#: (head, relation, tail) and the passages that state it.
Stated = Mapping[tuple[int, str, int], list[int]]


@dataclass(frozen=True)
class Fact:
    """A fact that some passages state.

    Attributes
    ----------
    head, tail : int
        Entities.
    relation : str
        The most frequent spelling.
    family : str
        The family of the predicate, which is the type of its edge.
    passages : tuple of int
        The passages that state it, ascending.
    """

    head: int
    relation: str
    tail: int
    family: str
    passages: tuple[int, ...]


@dataclass(frozen=True)
class FactConflict:
    """A functional predicate of a head with several tails in different passages, resolved by majority.

    Attributes
    ----------
    head : int
    relation : str
        The key of the predicate.
    kept : int
        The tail that most passages state, in a tie the first one.
    passages : tuple of int
        The passages that state it.
    dropped : dict of int to tuple of int
        The other tails, with the passages that state them.
    """

    head: int
    relation: str
    kept: int
    passages: tuple[int, ...]
    dropped: dict[int, tuple[int, ...]]


def resolve_conflicts(
    stated: Stated, is_functional: Callable[[str], bool]
) -> tuple[dict[tuple[int, str, int], list[int]], tuple[FactConflict, ...]]:
    """Return the facts that are kept, in order, and the conflicts.

    Several tails in one passage are not a conflict: the passage means all of them.
    """
    tails: dict[tuple[int, str], list[int]] = defaultdict(list)
    for head, relation, tail in stated:
        if is_functional(relation):
            tails[head, relation].append(tail)
    conflicts, lost = [], set[tuple[int, str, int]]()
    for (head, relation), several in tails.items():
        times = Counter(passage for tail in several for passage in stated[head, relation, tail])
        if len(several) == 1 or max(times.values()) > 1:
            continue
        kept = max(several, key=lambda tail: len(stated[head, relation, tail]))  # the first of equal ones
        dropped = {tail: tuple(stated[head, relation, tail]) for tail in several if tail != kept}
        conflicts.append(FactConflict(head, relation, kept, tuple(stated[head, relation, kept]), dropped))
        lost |= {(head, relation, tail) for tail in dropped}
    return {fact: passages for fact, passages in stated.items() if fact not in lost}, tuple(conflicts)
