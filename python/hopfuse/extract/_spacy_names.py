"""Names in a passage: mentions of other passages' titles, and entities that spaCy recognises."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Any, NamedTuple

from ..text import canonical_key
from .gazetteer import Gazetteer, Match

NUMBERS = ("CARDINAL", "ORDINAL", "PERCENT", "QUANTITY")
#: Labels of words that are not names, so that a year is not taken for the title of a novel.
UNNAMED = frozenset(("", "DATE", "TIME", "MONEY", *NUMBERS))
EDGES = " \t\n\"'“”‘’.,;:"
_IN_PARENTHESES = re.compile(r"\s*\([^()]*\)\s*$")


class SpacyMention(NamedTuple):
    """A name's place in a text, and the kind of thing that it names, if known."""

    start: int
    end: int
    name: str
    label: str = ""


def bare(title: str) -> str:
    """Return a title without its last parenthesis: "Alien (film)" becomes "Alien".

    Examples
    --------
    >>> bare("Alien (film)"), bare("(500)")
    ('Alien', '(500)')
    """
    return _IN_PARENTHESES.sub("", title) or title


class TitleLinks:
    """Finds mentions of passages' titles in texts, respecting case.

    The name of a title is its bare form (:func:`bare`) if no other title has the same, else the whole title.

    Parameters
    ----------
    titles : iterable of str
        Blank titles are ignored.
    """

    def __init__(self, titles: Iterable[str]) -> None:
        self._titles = list(dict.fromkeys(title.strip() for title in titles if title.strip()))
        called = Counter(name for title in self._titles for name in {title, bare(title)})
        self._name = {title: bare(title) if called[bare(title)] == 1 else title for title in self._titles}
        short = {at: [bare(title)] for at, title in enumerate(self._titles) if bare(title) != title}
        self._gazetteer = Gazetteer(self._titles, short, case_sensitive=True)

    def names_of(self, title: str) -> list[str]:
        """Return the name of a title and, if titles share their bare form, that form too."""
        return list(dict.fromkeys((self._name[title], bare(title)))) if title else []

    def find(self, text: str, own: str) -> list[SpacyMention]:
        """Return the mentions in the text of the passage with the title ``own``."""
        matches = self._gazetteer.match([text])[0]
        groups = groupby(matches, key=lambda match: (match.start, match.end))
        found = ((place, self._sure(list(group), own)) for place, group in groups)
        return [SpacyMention(*place, self._name[title]) for place, title in found if title]

    def _sure(self, matches: list[Match], own: str) -> str | None:
        """Return the passage's own title, else a whole title, else the only title with this bare form.

        A bare form of one word is too ambiguous: "Marley" is more often a person than "Marley (soundtrack)".
        """
        titles = [self._titles[match.entity] for match in matches]
        whole = [title for title, match in zip(titles, matches, strict=True) if match.kind == "exact"]
        if own in titles:
            return own
        if whole:
            return whole[0]
        return titles[0] if len(titles) == 1 and len(matches[0].surface.split()) > 1 else None


def places(doc: Any, linked: list[SpacyMention], recognised: list[SpacyMention]) -> dict[int, str]:
    """Return the name that each word is part of; the longest mention wins, and a title wins a tie."""
    named: dict[int, str] = {}
    for start, end, name, _ in sorted([*linked, *recognised], key=lambda one: one.start - one.end):
        words = [word.i for word in doc.char_span(start, end, alignment_mode="expand")]
        if not any(at in named for at in words):
            named.update(dict.fromkeys(words, name))
    return named


def label_at(place: SpacyMention, surface: str, recognised: list[tuple[Any, str]]) -> str:
    """Return the label of a recognised entity with the same name at this place, else an empty string."""
    key = canonical_key(surface)
    same = (
        ent.label_
        for ent, name in recognised
        if ent.start_char < place.end and place.start < ent.end_char and canonical_key(name) == key
    )
    return next(same, "")


def is_meaningful(name: str) -> bool:
    """Return whether a name is more than punctuation or an article."""
    return any(map(str.isalnum, name)) and name.lower() not in ("the", "a", "an")


def is_within(ent: Any, linked: list[SpacyMention]) -> bool:
    """Return whether an entity is a title or part of one, like "Harry" in "When Harry Met Sally"."""
    return any(one.start <= ent.start_char and ent.end_char <= one.end for one in linked)


def is_name(doc: Any, start: int, end: int) -> bool:
    """Return whether a title in the text is a name there, unlike "Home" in "Home is where the heart is"."""
    return any(
        word.pos_ == "PROPN" or word.ent_type_ not in UNNAMED
        for word in doc.char_span(start, end, alignment_mode="expand")
    )


def trimmed(ent: Any) -> str:
    """Return the text of an entity without a possessive ending and quotation marks."""
    name = ent[:-1].text if len(ent) > 1 and ent[-1].tag_ == "POS" else ent.text
    return " ".join(name.strip(EDGES).split())


def in_full(name: str, persons: list[str]) -> str:
    """Return, for a surname, the full name of the only person in the passage with it, else the name itself."""
    full = dict.fromkeys(one for one in persons if one.split()[-1:] == [name] and one != name)
    return next(iter(full)) if len(full) == 1 else name
