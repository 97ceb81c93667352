"""Rewrite questions so that they call an entity by another of its names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import check_ids, check_number, checked_texts
from .rewriting import Mentions, Rewriting, draw, paraphrase

if TYPE_CHECKING:
    from ..extract import Match
    from ..index import Index


_NUMBER = re.compile(r"\d+")


class OtherName(NamedTuple):
    """Another name of an entity, the rule that gives it, and the suffix that the mention it replaces must have."""

    rule: str
    name: str
    suffix: str = ""


class OtherNames:
    """The other names of an index's entities, and the rule that gives each.

    Parameters
    ----------
    index : Index
    synonyms : float or None
        Minimum weight of a synonym edge that gives a name; None for aliases only, without abbreviations.
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
        """Return other names of an entity mentioned as ``surfaces``, except those with a key in ``taken``."""
        own = [OtherName("alias", name) for name in self.called[entity] if self.is_own(name)]
        found: dict[str, OtherName] = {}
        for other in (*own, *self._further.get(entity, ())):
            if self._key(other.name) not in taken and all(surface.endswith(other.suffix) for surface in surfaces):
                found.setdefault(other.name, other)
        return list(found.values())

    def _add_abbreviations(self, index: Index) -> None:
        """Add long forms of short ones and back, if the texts explain neither form in another way."""
        from ..extract import abbreviations

        pairs = {(self._key(short), self._key(long)): (short, long) for short, long in abbreviations(index.texts)}
        times = Counter(key for pair in pairs for key in pair)
        for (short_key, long_key), (short, long) in pairs.items():
            if times[short_key] == times[long_key] == 1 and sum(map(str.isupper, short)) > 1:
                self._add(short_key, OtherName("abbreviation", long, short))
                self._add(long_key, OtherName("abbreviation", short))

    def _add(self, key: str, other: OtherName) -> None:
        """Add another name for the entity that alone has the name ``key``, unless several entities have the other."""
        owners = self._owners.get(key, set())
        if len(owners) == 1 and len(self._owners.get(self._key(other.name), ())) <= 1:
            self._further.setdefault(next(iter(owners)), []).append(other)

    def _add_synonyms(self, index: Index, threshold: float) -> None:
        for one, two in _synonym_pairs(index, threshold).tolist():
            for entity, other in ((one, two), (two, one)):
                keys = [self._key(name) for name in self.called[entity]]
                for name in self.called[other][:1]:
                    if self.is_own(name) and all(_equivalent(key, self._key(name)) for key in keys):
                        self._further.setdefault(entity, []).append(OtherName("synonym", name))


def _synonym_pairs(index: Index, threshold: float) -> NDArray[np.int64]:
    """Return the pairs of entities joined by a ``"synonym"`` edge of at least this weight, shape (S, 2)."""
    graph = index.graph
    if graph is None or "synonym" not in graph.edge_type_names:
        return np.zeros((0, 2), np.int64)
    chosen = np.ones(graph.num_stored, bool) if graph.weight is None else graph.weight >= np.float32(threshold)
    if graph.edge_type is not None:
        chosen &= graph.edge_type == graph.edge_type_names.index("synonym")
    at = np.flatnonzero(chosen)
    into = graph.node_of[np.searchsorted(graph.indptr, at, side="right") - 1].astype(np.int64)
    ends = np.sort(np.stack([into, graph.node_of[graph.indices[at]]], axis=1), axis=1) - index.num_passages
    return np.unique(ends[(ends[:, 0] >= 0) & (ends[:, 0] < ends[:, 1])], axis=0)


def _equivalent(one: str, other: str) -> bool:
    """Return whether two names have the same numbers and neither contains the other, which would be more specific."""
    same_numbers = sorted(_NUMBER.findall(one)) == sorted(_NUMBER.findall(other))
    return same_numbers and f" {one} " not in f" {other} " and f" {other} " not in f" {one} "


def substitute_aliases(
    questions: Sequence[str], index: Index, entities: Mentions | None = None, *, synonyms: float | None = 0.95
) -> Rewriting:
    """Call one of the entities that each question mentions by another of its names.

    Mentions are found by a :class:`hopfuse.extract.Gazetteer`: names and aliases of the index, the longest first. A
    name of several entities is neither replaced nor inserted, because it would change what the question asks for.
    Names that differ only in case, punctuation or a leading article (:func:`hopfuse.extract.canonical_key`) are the
    same name. The MD5 hash of the question decides which entity is renamed and how. All mentions of the entity get the
    same name.

    ================ ==================================================================================================
    rule             the other name
    ================ ==================================================================================================
    ``alias``        the entity's name or an alias in the index
    ``abbreviation`` the long form of a short one, which must be written as in the texts, or the short form of a long
                     one, as the index's texts explain them (:func:`hopfuse.extract.abbreviations`). The short form has
                     at least two capitals, and the texts explain neither form in another way
    ``synonym``      the name of an entity joined by an edge of type ``"synonym"``. Names with different numbers (1973,
                     1937) are left out, and so are names of which one contains the other (Keizer, Keizer area)
    ================ ==================================================================================================

    Parameters
    ----------
    questions : sequence of str, B entries
    index : Index
        Provides ``entity_names`` and ``entity_aliases``; ``texts`` and ``graph`` for abbreviations and synonyms.
    entities : sequence of sequences of str, B entries, optional
        Mentions in the questions by another extractor. They are renamed like the question, and a mention that only
        occurred inside the replaced text becomes the new name.
    synonyms : float or None
        Minimum weight of a synonym edge, which is the cosine for edges by similarity: below 0.95 many edges join
        entities that are merely similar. None for aliases only.

    Returns
    -------
    Rewriting
        Has the rule by which each entity was renamed, and both lists of mentions if ``entities`` is given.

    Raises
    ------
    InputError
        A question is not a string, the number of mentions differs, or the weight is negative or not a number.
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
    asked = tuple(checked_texts(questions, "questions"))
    weight = None if synonyms is None else check_number(synonyms, "synonyms", low=0)
    names = _Names(index, weight)
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


class _Swap(NamedTuple):
    """The mentions of one entity in a question, its new name, and the rule that gave it."""

    matches: list[Match]
    name: str
    rule: str


class _Names:
    """Finds the names of an index's entities in texts, and chooses which to replace."""

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
        """Choose an entity of the question and another name for it; None if no entity has one."""
        mentions: dict[int, list[Match]] = {}
        for match in found:
            if self._others.is_own(match.surface):
                mentions.setdefault(self._entity[match.entity], []).append(match)
        taken = {self._key(match.surface) for match in found}
        others = {
            entity: self._others.of(entity, [match.surface for match in matches], taken)
            for entity, matches in mentions.items()
        }
        candidates = [entity for entity, names in others.items() if names]
        if not candidates:
            return None
        entity = candidates[draw(question, "entity", len(candidates))]
        chosen = others[entity][draw(question, "alias", len(others[entity]))]
        return _Swap(mentions[entity], chosen.name, chosen.rule)


def _replaced(question: str, matches: list[Match], name: str) -> str:
    for match in reversed(matches):
        question = question[: match.start] + name + question[match.end :]
    return question


def _renamed(mentions: Sequence[str], question: str, text: str, matches: list[Match], name: str) -> list[str]:
    """Return the distinct mentions of the rewritten question."""
    surfaces = sorted({match.surface for match in matches}, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, surfaces))})(?!\w)")
    renamed = []
    for mention in mentions:
        replaced = pattern.sub(lambda _: name, mention)
        lost = replaced == mention and mention in question and mention not in text
        renamed.append(name if lost else replaced)
    return list(dict.fromkeys(renamed))


# ---- Questions about one entity --------------------------------------------------------------------------------------


def rewritings(
    questions: Sequence[str], index: Index, entities: Sequence[Sequence[str | int | Match]] | None = None
) -> dict[str, Rewriting]:
    """Return two rewritings of the questions: paraphrases, and other names of an entity.

    Parameters
    ----------
    questions : sequence of str, B entries
    index : Index
        Has the other names.
    entities : sequence of sequences of str, int or Match, B entries, optional
        Entities of the questions by name, by number, or as found in the text. Each question has one mention of each.

    Returns
    -------
    dict of str to Rewriting
        ``"paraphrases"`` is of :func:`paraphrase`, ``"other names"`` of :func:`substitute_aliases`.

    Raises
    ------
    InputError
        The index has no entity of a number; else as those functions.
    MissingExtraError
        ``pyahocorasick`` is not installed.

    Examples
    --------
    >>> from hopfuse.diagnose import rewritings
    >>> from hopfuse.index import Index
    >>> index = Index.build(passages=[{"text": "-"}], entities=["New York"], aliases={"New York": ["NYC"]})
    >>> made = rewritings(["Which city is New York?"], index, [[0]])
    >>> made["other names"].rewritten, made["other names"].rewritten_entities
    (('Which city is NYC?',), [['NYC']])
    >>> made["paraphrases"].entities
    [['New York']]
    """
    mentions = None
    if entities is not None:
        mentions = [
            list(dict.fromkeys(_name_of(one, index, f"entities[{row}]") for one in found))
            for row, found in enumerate(entities)
        ]
    return {
        "paraphrases": paraphrase(questions, mentions),
        "other names": substitute_aliases(questions, index, mentions),
    }


def _name_of(entity: str | int | Match, index: Index, field: str) -> str:
    if isinstance(entity, str):
        return entity
    if isinstance(entity, int):
        check_ids(np.array([entity]), field, index.num_entities)
        return index.entity_names[entity]
    return entity.surface
