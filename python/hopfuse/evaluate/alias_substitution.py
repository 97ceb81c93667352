"""Questions that call an entity by another of its names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import InputError
from ..ops._checks import is_real
from ._other_names import OtherNames
from .rewriting import Mentions, Rewriting, checked_questions, drawn

if TYPE_CHECKING:
    from ..extract import Match
    from ..index import Index


def substitute_aliases(
    questions: Sequence[str], index: Index, entities: Mentions | None = None, *, synonyms: float | None = 0.95
) -> Rewriting:
    """Each question with one of the entities that it mentions called by another of its names.

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
    >>> from hopfuse.evaluate import substitute_aliases
    >>> from hopfuse.index import Index
    >>> index = Index.build(passages=[{"text": "-"}], entities=["New York", "Ada"], aliases={"New York": ["NYC"]})
    >>> made = substitute_aliases(["Was Ada in New York?", "Who is Ada?"], index, [["Ada", "New York"], ["Ada"]])
    >>> made.rewritten, made.rules
    (('Was Ada in NYC?', 'Who is Ada?'), ('alias', ''))
    >>> made.rewritten_entities[0]
    ['Ada', 'NYC']
    """
    asked = checked_questions(questions)
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
        """One of the question's entities that have another name, where there is one."""
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
        entity = able[drawn(question, "entity", len(able))]
        chosen = others[entity][drawn(question, "alias", len(others[entity]))]
        return _Swap(mentions[entity], chosen.name, chosen.rule)


def _replaced(question: str, matches: list[Match], name: str) -> str:
    for match in reversed(matches):
        question = question[: match.start] + name + question[match.end :]
    return question


def _renamed(mentions: Sequence[str], question: str, text: str, matches: list[Match], name: str) -> list[str]:
    """Distinct mentions of the question as it is now."""
    surfaces = sorted({match.surface for match in matches}, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, surfaces))})(?!\w)")
    now = []
    for mention in mentions:
        kept = pattern.sub(lambda _: name, mention)
        gone = kept == mention and mention in question and mention not in text
        now.append(name if gone else kept)
    return list(dict.fromkeys(now))
