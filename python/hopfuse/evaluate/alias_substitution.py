"""Questions that call an entity by another of its names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .rewriting import Mentions, Rewriting, checked_questions, drawn

if TYPE_CHECKING:
    from ..extract import Match
    from ..index import Index


def substitute_aliases(questions: Sequence[str], index: Index, entities: Mentions | None = None) -> Rewriting:
    """Each question with one of the entities that it mentions called by another of its names.

    Mentions are found as :class:`hopfuse.extract.Gazetteer` finds them: names and aliases of the index, the longest
    first. What several entities are called is neither replaced nor put in, for the question would then ask for another
    thing; nor are names that differ in case, punctuation or a leading article alone
    (:func:`hopfuse.extract.canonical_key`), for that is no other name. The MD5 of the question decides which entity is
    renamed and how, not the others or their order. All its mentions become the same name.

    Parameters
    ----------
    questions : sequence of str, B entries
    index : Index
        With ``entity_names`` and ``entity_aliases``. A name is put in where the question has an alias.
    entities : sequence of sequences of str, B entries, optional
        The questions' mentions by another extractor. What was replaced in the question is replaced in them, and a
        mention that stood only inside what was replaced becomes the new name.

    Returns
    -------
    Rewriting
        With the rule ``"alias"`` where an entity was renamed, and the mentions of both where they are given.

    Raises
    ------
    InputError
        A question that is not a string, another number of mentions.
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
    names = _Names(index)
    texts, swaps = [], []
    for question, found in zip(asked, names.mentions(asked), strict=True):
        swap = names.swap(question, found)
        swaps.append(swap)
        texts.append(question if swap is None else _replaced(question, *swap))
    rules = ["" if swap is None else "alias" for swap in swaps]
    plain = Rewriting(asked, texts, rules, entities)
    if entities is None:
        return plain
    renamed = [
        list(mentions) if swap is None else _renamed(mentions, question, text, *swap)
        for mentions, question, text, swap in zip(entities, asked, texts, swaps, strict=True)
    ]
    return Rewriting(asked, texts, rules, entities, renamed)


class _Names:
    """The names that only one entity has, and where they stand in texts."""

    def __init__(self, index: Index) -> None:
        from ..extract import Gazetteer, canonical_key  # loads the kernels, which other evaluations do without

        self._key = canonical_key
        rows = zip(index.entity_names, index.entity_aliases, strict=True)
        self._of = [[name for name in (own, *others) if name.strip()] for own, others in rows]
        self._owners: dict[str, set[int]] = {}
        for entity, called in enumerate(self._of):
            for name in called:
                self._owners.setdefault(canonical_key(name), set()).add(entity)
        named = {entity: called for entity, called in enumerate(self._of) if called}
        self._entity = list(named)
        first = [called[0] for called in named.values()]
        self._gazetteer = Gazetteer(first, {row: called[1:] for row, called in enumerate(named.values())})

    def mentions(self, texts: Sequence[str]) -> list[list[Match]]:
        return self._gazetteer.match(texts)

    def swap(self, question: str, found: list[Match]) -> tuple[list[Match], str] | None:
        """The mentions of one entity and its new name, where one of them has another name."""
        mentions: dict[int, list[Match]] = {}
        for match in found:
            if self._is_own(match.surface):
                mentions.setdefault(self._entity[match.entity], []).append(match)
        others = {entity: self._others(entity, matches) for entity, matches in mentions.items()}
        able = [entity for entity, names in others.items() if names]
        if not able:
            return None
        entity = able[drawn(question, "entity", len(able))]
        return mentions[entity], others[entity][drawn(question, "alias", len(others[entity]))]

    def _others(self, entity: int, matches: list[Match]) -> list[str]:
        """The entity's own names that the question does not have already."""
        taken = {self._key(match.surface) for match in matches}
        return [name for name in self._of[entity] if self._is_own(name) and self._key(name) not in taken]

    def _is_own(self, name: str) -> bool:
        return len(self._owners.get(self._key(name), ())) == 1


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
