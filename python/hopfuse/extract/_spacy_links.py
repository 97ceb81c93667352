"""Links between entities of a passage without a fact: from its title to all others, and within sentences."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from ..text import canonical_key
from ._spacy_names import Mention
from .extraction import Triple

TITLE, SENTENCE = "title", "sentence"
LINKS = (TITLE, SENTENCE)
MAX_APART = 8  # names between the ends of a link: a list of 100 names then has 772 pairs, not 4,950


def links_of(
    types: Sequence[str], title: str, sentence_ends: Sequence[int], mentions: Sequence[Mention], facts: Iterable[Triple]
) -> list[Triple]:
    """Return the links (type, entity, entity) of a passage, each pair once per type.

    Parameters
    ----------
    types : sequence of str
        The types of links to return, of ``LINKS``.
    title : str
        The entity of the passage's title, or ``""``.
    sentence_ends : sequence of int
        Offsets of the ends of the sentences, ascending.
    mentions : sequence of Mention
        By ascending start.
    facts : iterable of (str, str, str)
        The facts of the passage; the pairs of their ends get no ``"sentence"`` link.

    Examples
    --------
    >>> ada, bob = Mention(0, 3, "Ada"), Mention(8, 11, "Bob")
    >>> links_of(LINKS, "Engine", [12], [ada, bob], [])
    [('title', 'Engine', 'Ada'), ('title', 'Engine', 'Bob'), ('sentence', 'Ada', 'Bob')]
    """
    found: dict[tuple[str, frozenset[str]], Triple] = {}
    stated = {frozenset((canonical_key(head), canonical_key(tail))) for head, _, tail in facts}

    def add(kind: str, head: str, tail: str) -> None:
        pair = frozenset((canonical_key(head), canonical_key(tail)))
        if len(pair) == 2 and not (kind == SENTENCE and pair in stated):
            found.setdefault((kind, pair), (kind, head, tail))

    if TITLE in types and title:
        for one in mentions:
            add(TITLE, title, one.name)
    if SENTENCE in types:
        for names in _by_sentence(sentence_ends, mentions):
            for at, name in enumerate(names):
                for other in names[at + 1 : at + 1 + MAX_APART]:
                    add(SENTENCE, name, other)
    return list(found.values())


def _by_sentence(ends: Sequence[int], mentions: Sequence[Mention]) -> list[list[str]]:
    """Return the distinct names of each sentence, in order; a name belongs to the sentence in which it begins."""
    rows: dict[int, dict[str, None]] = {}
    for one in mentions:
        rows.setdefault(bisect_right(ends, one.start), {})[one.name] = None
    return [list(names) for names in rows.values()]
