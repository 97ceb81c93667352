"""Find the names in a passage: titles of passages, as texts write them, and what a spaCy document recognises."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Any, NamedTuple

from .canonical import canonical_key
from .gazetteer import Gazetteer, Match

NUMBERS = ("CARDINAL", "ORDINAL", "PERCENT", "QUANTITY")
#: What a title that a text names may not be taken for: a year is no novel.
UNNAMED = frozenset(("", "DATE", "TIME", "MONEY", *NUMBERS))
EDGES = " \t\n\"'“”‘’.,;:"
_IN_PARENTHESES = re.compile(r"\s*\([^()]*\)\s*$")


class Mention(NamedTuple):
    """A name's place in a text, and what kind of thing it names, where that is known."""

    start: int
    end: int
    name: str
    label: str = ""


def bare(title: str) -> str:
    """Return a title without what tells it from its namesakes: "Alien (film)" is called "Alien".

    Examples
    --------
    >>> bare("Alien (film)"), bare("(500)")
    ('Alien', '(500)')
    """
    return _IN_PARENTHESES.sub("", title) or title


class TitleLinks:
    """Names of titled passages, and where texts name them, as they are written.

    A title's name is what it is called (:func:`bare`), where no other title is called so, else the whole title.

    Parameters
    ----------
    titles : iterable of str
        Blank ones are left out.
    """

    def __init__(self, titles: Iterable[str]) -> None:
        self._titles = list(dict.fromkeys(title.strip() for title in titles if title.strip()))
        called = Counter(name for title in self._titles for name in {title, bare(title)})
        self._name = {title: bare(title) if called[bare(title)] == 1 else title for title in self._titles}
        short = {at: [bare(title)] for at, title in enumerate(self._titles) if bare(title) != title}
        self._gazetteer = Gazetteer(self._titles, short, case_sensitive=True)

    def names_of(self, title: str) -> list[str]:
        """Return the name of a title; where others are called so too, also what they are all called."""
        return list(dict.fromkeys((self._name[title], bare(title)))) if title else []

    def find(self, text: str, own: str) -> list[Mention]:
        """Return mentions in the text of the passage that is titled ``own``."""
        matches = self._gazetteer.match([text])[0]
        groups = groupby(matches, key=lambda match: (match.start, match.end))
        found = ((place, self._sure(list(group), own)) for place, group in groups)
        return [Mention(*place, self._name[title]) for place, title in found if title]

    def _sure(self, matches: list[Match], own: str) -> str | None:
        """Return the passage's own title, else a whole title, else the one title that the mention may be short for.

        One word is short for too much: "Marley" is a person more often than "Marley (soundtrack)".
        """
        titles = [self._titles[match.entity] for match in matches]
        whole = [title for title, match in zip(titles, matches, strict=True) if match.kind == "exact"]
        if own in titles:
            return own
        if whole:
            return whole[0]
        return titles[0] if len(titles) == 1 and len(matches[0].surface.split()) > 1 else None


def places(doc: Any, linked: list[Mention], recognised: list[Mention]) -> dict[int, str]:
    """Return the name that each word is part of: of mentions that overlap the longest, of equal ones the title."""
    named: dict[int, str] = {}
    for start, end, name, _ in sorted([*linked, *recognised], key=lambda one: one.start - one.end):
        words = [word.i for word in doc.char_span(start, end, alignment_mode="expand")]
        if not any(at in named for at in words):
            named.update(dict.fromkeys(words, name))
    return named


def label_at(place: Mention, surface: str, recognised: list[tuple[Any, str]]) -> str:
    """Return the label of what is called the same at this place: "Harry" says nothing of "When Harry Met Sally"."""
    key = canonical_key(surface)
    same = (
        ent.label_
        for ent, name in recognised
        if ent.start_char < place.end and place.start < ent.end_char and canonical_key(name) == key
    )
    return next(same, "")


def says_something(name: str) -> bool:
    return any(map(str.isalnum, name)) and name.lower() not in ("the", "a", "an")


def is_within(ent: Any, linked: list[Mention]) -> bool:
    """Return whether an entity is a title, or a part of one: no "Harry" in "When Harry Met Sally"."""
    return any(one.start <= ent.start_char and ent.end_char <= one.end for one in linked)


def is_name(doc: Any, start: int, end: int) -> bool:
    """Return whether a title in the text is a name there: "Home" in "Home is where the heart is" is none."""
    return any(
        word.pos_ == "PROPN" or word.ent_type_ not in UNNAMED
        for word in doc.char_span(start, end, alignment_mode="expand")
    )


def trimmed(ent: Any) -> str:
    """Return an entity without the possessive's ending and quotation marks."""
    name = ent[:-1].text if len(ent) > 1 and ent[-1].tag_ == "POS" else ent.text
    return " ".join(name.strip(EDGES).split())


def in_full(name: str, persons: list[str]) -> str:
    """Return for a surname the one person of the passage who has it."""
    full = dict.fromkeys(one for one in persons if one.split()[-1:] == [name] and one != name)
    return next(iter(full)) if len(full) == 1 else name
