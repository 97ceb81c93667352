"""Join entities of a passage that no fact joins: its title with all, and those of one sentence with each other."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from ._spacy_names import Mention
from .canonical import canonical_key
from .extraction import Triple

TITLE, SENTENCE = "title", "sentence"
LINKS = (TITLE, SENTENCE)
MAX_APART = 8  # names in a sentence: a list of a hundred has 772 pairs, not 4,950


def links_of(
    types: Sequence[str], title: str, sentence_ends: Sequence[int], mentions: Sequence[Mention], facts: Iterable[Triple]
) -> list[Triple]:
    """Return (type, entity, entity) of a passage, each pair once for a type.

    Parameters
    ----------
    types : sequence of str
        Those of ``LINKS`` that are wanted.
    title : str
        The entity that the passage is titled by, or ``""``.
    sentence_ends : sequence of int
        Where each sentence ends in the text, ascending.
    mentions : sequence of Mention
        By their start.
    facts : iterable of (str, str, str)
        Those of the passage; the pairs of their ends get no ``"sentence"`` edge.

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
    """Return the distinct names of each sentence, in their order; a name belongs where it begins."""
    rows: dict[int, dict[str, None]] = {}
    for one in mentions:
        rows.setdefault(bisect_right(ends, one.start), {})[one.name] = None
    return [list(names) for names in rows.values()]
