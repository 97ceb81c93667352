"""Find entities whose names look alike: they may be one, or need names that tell them apart."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..text import canonical_key, unaccented

if TYPE_CHECKING:
    from ..index import Index

#: Letters of names that are listed because they differ in one letter; names with a digit are not.
LEAST_LETTERS, MOST_LETTERS = 6, 100


class LookAlikes(NamedTuple):
    """Entities whose names look alike.

    Attributes
    ----------
    why : str
        ``"name"``: a name or alias of one equals that of another, but for case, punctuation and articles;
        ``"accents"``; ``"signs"``: equal without spaces, apostrophes and hyphens; ``"order"``: of words; ``"letter"``:
        one letter more, less or another.
    entities : tuple of int
        The one of most passages first.
    names : tuple of str
    passages : tuple of int
        Number of passages of each.
    """

    why: str
    entities: tuple[int, ...]
    names: tuple[str, ...]
    passages: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        return {name: list(one) if isinstance(one, tuple) else one for name, one in self._asdict().items()}


def look_alikes(index: Index) -> list[LookAlikes]:
    """Return the groups of entities, apart from words, whose names look alike, those of most passages first.

    Entities that one relation joins are not listed again for a weaker one. Names that differ in a digit, or in a letter
    of fewer than 6, are left out.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import look_alikes
    >>> names = ["St. John's", "St Johns", "São Paulo", "Sao Paulo", "electron", "electrons", "Ada Lovelace"]
    >>> index = hf.Index.build(passages=[{"text": "-"}], entities=[*names, "Lovelace, Ada"])
    >>> for found in look_alikes(index):
    ...     print(found.why, found.names)
    accents ('São Paulo', 'Sao Paulo')
    signs ("St. John's", 'St Johns')
    order ('Ada Lovelace', 'Lovelace, Ada')
    letter ('electron', 'electrons')
    """
    named = index.num_entities if index.words is None else index.words.first
    names, rule = list(islice(index.entity_names, named)), index.name_rule
    counts = [0] * named if index.passage_frequency is None else index.passage_frequency[:named].tolist()
    keys = [
        list(dict.fromkeys(canonical_key(one, rule=rule) for one in (name, *others) if one.strip()))
        for name, others in zip(names, islice(index.entity_aliases, named), strict=True)
    ]
    groups_of: dict[int, set[int]] = {entity: set() for entity in range(named)}
    found: list[LookAlikes] = []
    for why, forms in _RELATIONS.items():
        for group in _groups(keys, forms):
            if set.intersection(*(groups_of[entity] for entity in group)):  # they are in a group already
                continue
            for entity in group:
                groups_of[entity].add(len(found))
            order = sorted(group, key=lambda entity: (-counts[entity], entity))
            found.append(LookAlikes(why, tuple(order), tuple(names[e] for e in order), tuple(counts[e] for e in order)))
    rank = {why: at for at, why in enumerate(_RELATIONS)}
    return sorted(found, key=lambda one: (-sum(one.passages), rank[one.why], one.entities))


def _groups(keys: Sequence[Sequence[str]], forms: Callable[[str], Iterable[str]]) -> list[tuple[int, ...]]:
    """Return the distinct groups of entities that share a form of a key.

    Most forms are those of one entity, so hashes are counted first, and only forms that may be shared are kept.
    """
    hashes = array("q", (hash(form) for own in keys for form in {form for key in own for form in forms(key)}))
    values, times = np.unique(np.frombuffer(hashes, np.int64), return_counts=True)
    shared = set(values[times > 1].tolist())
    groups: dict[str, list[int]] = {}
    for entity, own in enumerate(keys if shared else ()):
        for form in dict.fromkeys(form for key in own for form in forms(key)):
            if hash(form) in shared:
                groups.setdefault(form, []).append(entity)
    return list(dict.fromkeys(tuple(group) for group in groups.values() if len(group) > 1))


def _letters(key: str) -> Iterator[str]:
    """Yield forms of a key, of which keys that differ in one letter, or by one more, share one."""
    plain = unaccented(key)
    if not LEAST_LETTERS <= len(plain) <= MOST_LETTERS or any(map(str.isdigit, plain)):
        return
    yield from (f"{plain[:at]}+{plain[at + 1 :]}" for at in range(len(plain)))  # without a letter
    yield from (f"{plain[:at]}+{plain[at:]}" for at in range(len(plain) + 1))  # as if without one more


_RELATIONS: dict[str, Callable[[str], Iterable[str]]] = {
    "name": lambda key: [key],
    "accents": lambda key: [unaccented(key)],
    "signs": lambda key: [unaccented(key).replace(" ", "")],
    "order": lambda key: [" ".join(sorted(unaccented(key).split()))],
    "letter": _letters,
}
