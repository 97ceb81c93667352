"""Questions that call an entity by another of its names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import is_real
from ..errors import InputError
from .rewriting import Mentions, Rewriting, check_questions, draw

if TYPE_CHECKING:
    from ..extract import Match
    from ..index import Index


_NUMBER = re.compile(r"\d+")


class OtherName(NamedTuple):
    """A name, the rule that gives it, and how the question must write the entity; "" where any way will do."""

    rule: str
    name: str
    written: str = ""


class OtherNames:
    """Names of entities, and by which rule each is another name of one.

    Parameters
    ----------
    index : Index
    synonyms : float or None
        The least weight of a synonym edge that gives a name; None for aliases alone, without abbreviations.
    """

    def __init__(self, index: Index, synonyms: float | None) -> None:
        from ..extract import canonical_key

        self._key = canonical_key
        rows = zip(index.entity_names, index.entity_aliases, strict=True)
        self.called = [[name for name in (own, *others) if name.strip()] for own, others in rows]
        self._owners: dict[str, set[int]] = {}
        for entity, names in enumerate(self.called):
            for name in names:
                self._owners.setdefault(canonical_key(name), set()).add(entity)
        self._further: dict[int, list[OtherName]] = {}
        if synonyms is not None:
            self._add_abbreviations(index)
            self._add_synonyms(index, synonyms)

    def is_own(self, name: str) -> bool:
        """Return whether exactly one entity has the name."""
        return len(self._owners.get(self._key(name), ())) == 1

    def of(self, entity: int, surfaces: Sequence[str], taken: set[str]) -> list[OtherName]:
        """Return names for an entity that the question has as ``surfaces``, but for those ``taken`` (folded)."""
        own = [OtherName("alias", name) for name in self.called[entity] if self.is_own(name)]
        found: dict[str, OtherName] = {}
        for other in (*own, *self._further.get(entity, ())):
            if self._key(other.name) not in taken and all(surface.endswith(other.written) for surface in surfaces):
                found.setdefault(other.name, other)
        return list(found.values())

    def _add_abbreviations(self, index: Index) -> None:
        """Add the long form for a short one and back, where the texts explain neither in another way."""
        from ..extract import abbreviations

        pairs = {(self._key(short), self._key(long)): (short, long) for short, long in abbreviations(index.texts)}
        times = Counter(key for pair in pairs for key in pair)
        for (short_key, long_key), (short, long) in pairs.items():
            if times[short_key] == times[long_key] == 1 and sum(map(str.isupper, short)) > 1:
                self._add(short_key, OtherName("abbreviation", long, short))
                self._add(long_key, OtherName("abbreviation", short))

    def _add(self, key: str, other: OtherName) -> None:
        """Add another name for the one entity of a name; not one that several entities have."""
        owners = self._owners.get(key, set())
        if len(owners) == 1 and len(self._owners.get(self._key(other.name), ())) <= 1:
            self._further.setdefault(next(iter(owners)), []).append(other)

    def _add_synonyms(self, index: Index, least: float) -> None:
        for one, two in _joined_entities(index, least).tolist():
            for entity, other in ((one, two), (two, one)):
                keys = [self._key(name) for name in self.called[entity]]
                for name in self.called[other][:1]:
                    if self.is_own(name) and all(_says_the_same(key, self._key(name)) for key in keys):
                        self._further.setdefault(entity, []).append(OtherName("synonym", name))


def _joined_entities(index: Index, least: float) -> NDArray[np.int64]:
    """Return entities that an edge of type ``"synonym"`` and of at least this weight joins; (S, 2), each pair once."""
    graph = index.graph
    if graph is None or "synonym" not in graph.edge_type_names:
        return np.zeros((0, 2), np.int64)
    chosen = np.ones(graph.num_stored, bool) if graph.weight is None else graph.weight >= np.float32(least)
    if graph.edge_type is not None:
        chosen &= graph.edge_type == graph.edge_type_names.index("synonym")
    at = np.flatnonzero(chosen)
    into = graph.node_of[np.searchsorted(graph.indptr, at, side="right") - 1].astype(np.int64)
    ends = np.sort(np.stack([into, graph.node_of[graph.indices[at]]], axis=1), axis=1) - index.num_passages
    return np.unique(ends[(ends[:, 0] >= 0) & (ends[:, 0] < ends[:, 1])], axis=0)


def _says_the_same(one: str, other: str) -> bool:
    """Return whether a name has the same numbers, and neither name stands in the other, which then says more."""
    same_numbers = sorted(_NUMBER.findall(one)) == sorted(_NUMBER.findall(other))
    return same_numbers and f" {one} " not in f" {other} " and f" {other} " not in f" {one} "


def substitute_aliases(
    questions: Sequence[str], index: Index, entities: Mentions | None = None, *, synonyms: float | None = 0.95
) -> Rewriting:
    """Call one of the entities that each question mentions by another of its names.

    Mentions are found as :class:`hopfuse.extract.Gazetteer` finds them: names and aliases of the index, the longest
    first. What several entities are called is neither replaced nor put in, for the question would then ask for another
    thing; nor are names that differ in case, punctuation or a leading article alone
    (:func:`hopfuse.extract.canonical_key`), for that is no other name. The MD5 of the question decides which entity is
    renamed and how, not the others or their order. All its mentions become the same name.

    ================ ==================================================================================================
    rule             what the other name is
    ================ ==================================================================================================
    ``alias``        one of the entity's own in the index: its name or an alias
    ``abbreviation`` the long form of a short one, written as the texts have it, or the short form of a long one, as
                     the index's texts explain them (:func:`hopfuse.extract.abbreviations`). Two of its characters are
                     capitals, and the texts explain neither form in another way
    ``synonym``      the name of an entity that an edge of the type ``"synonym"`` joins to it. Names with other numbers
                     (1973, 1937) are left out, and those of which one stands in the other (Keizer, Keizer area)
    ================ ==================================================================================================

    Parameters
    ----------
    questions : sequence of str, B entries
    index : Index
        With ``entity_names`` and ``entity_aliases``; ``texts`` and ``graph`` for abbreviations and synonyms.
    entities : sequence of sequences of str, B entries, optional
        The questions' mentions by another extractor. What was replaced in the question is replaced in them, and a
        mention that stood only inside what was replaced becomes the new name.
    synonyms : float or None
        The least weight of a synonym edge, for one by similarity its cosine: below 0.95 many of them join what is
        merely alike. None for aliases alone.

    Returns
    -------
    Rewriting
        With the rule by which an entity was renamed, and the mentions of both where they are given.

    Raises
    ------
    InputError
        A question that is not a string, another number of mentions, a weight that is negative or no number.
    MissingExtraError
        ``pyahocorasick`` is not installed.

    Examples
    --------
    >>> from hopfuse.diagnose import substitute_aliases
    >>> from hopfuse.index import Index
    >>> index = Index.build(passages=[{"text": "-"}], entities=["New York", "Ada"], aliases={"New York": ["NYC"]})
    >>> made = substitute_aliases(["Was Ada in New York?", "Who is Ada?"], index, [["Ada", "New York"], ["Ada"]])
    >>> made.rewritten, made.rules
    (('Was Ada in NYC?', 'Who is Ada?'), ('alias', ''))
    >>> made.rewritten_entities[0]
    ['Ada', 'NYC']
    """
    asked = check_questions(questions)
    names = _Names(index, _checked_weight(synonyms))
    swaps = [names.swap(question, found) for question, found in zip(asked, names.mentions(asked), strict=True)]
    pairs = list(zip(asked, swaps, strict=True))
    texts = [question if swap is None else _replaced(question, swap.matches, swap.name) for question, swap in pairs]
    rules = ["" if swap is None else swap.rule for swap in swaps]
    plain = Rewriting(asked, texts, rules, entities)
    if entities is None:
        return plain
    renamed = [
        list(mentions) if swap is None else _renamed(mentions, question, text, swap.matches, swap.name)
        for mentions, question, text, swap in zip(entities, asked, texts, swaps, strict=True)
    ]
    return Rewriting(asked, texts, rules, entities, renamed)


def _checked_weight(synonyms: float | None) -> float | None:
    if synonyms is None:
        return None
    if not is_real(synonyms) or not 0 <= synonyms < np.inf:
        raise InputError(
            f"synonyms is {synonyms!r}; it is the least weight of a synonym edge, finite and at least 0, or None"
        )
    return float(synonyms)


class _Swap(NamedTuple):
    """The mentions of one entity in a question, its new name, and the rule that gave it."""

    matches: list[Match]
    name: str
    rule: str


class _Names:
    """The names of an index's entities, and where they stand in texts."""

    def __init__(self, index: Index, synonyms: float | None) -> None:
        from ..extract import Gazetteer, canonical_key

        self._key = canonical_key
        self._others = OtherNames(index, synonyms)
        named = {entity: called for entity, called in enumerate(self._others.called) if called}
        self._entity = list(named)
        first = [called[0] for called in named.values()]
        self._gazetteer = Gazetteer(first, {row: called[1:] for row, called in enumerate(named.values())})

    def mentions(self, texts: Sequence[str]) -> list[list[Match]]:
        return self._gazetteer.match(texts)

    def swap(self, question: str, found: list[Match]) -> _Swap | None:
        """Return one of the question's entities that have another name, where there is one."""
        mentions: dict[int, list[Match]] = {}
        for match in found:
            if self._others.is_own(match.surface):
                mentions.setdefault(self._entity[match.entity], []).append(match)
        taken = {self._key(match.surface) for match in found}
        others = {
            entity: self._others.of(entity, [match.surface for match in matches], taken)
            for entity, matches in mentions.items()
        }
        able = [entity for entity, names in others.items() if names]
        if not able:
            return None
        entity = able[draw(question, "entity", len(able))]
        chosen = others[entity][draw(question, "alias", len(others[entity]))]
        return _Swap(mentions[entity], chosen.name, chosen.rule)


def _replaced(question: str, matches: list[Match], name: str) -> str:
    for match in reversed(matches):
        question = question[: match.start] + name + question[match.end :]
    return question


def _renamed(mentions: Sequence[str], question: str, text: str, matches: list[Match], name: str) -> list[str]:
    """Return distinct mentions of the question as it is now."""
    surfaces = sorted({match.surface for match in matches}, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, surfaces))})(?!\w)")
    now = []
    for mention in mentions:
        kept = pattern.sub(lambda _: name, mention)
        gone = kept == mention and mention in question and mention not in text
        now.append(name if gone else kept)
    return list(dict.fromkeys(now))
