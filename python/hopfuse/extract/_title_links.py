"""Passages that name one another: titles in texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from .gazetteer import Gazetteer, Match

_IN_PARENTHESES = re.compile(r"\s*\([^()]*\)\s*$")


class Mention(NamedTuple):
    """A name's place in a text, and what kind of thing it names, where that is known."""

    start: int
    end: int
    name: str
    label: str = ""


def bare(title: str) -> str:
    """A title without what tells it from its namesakes: "Alien (film)" is called "Alien".

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
        """The name of a title; where others are called so too, also what they are all called."""
        return list(dict.fromkeys((self._name[title], bare(title)))) if title else []

    def find(self, text: str, own: str) -> list[Mention]:
        """Mentions in the text of the passage that is titled ``own``."""
        matches = self._gazetteer.match([text])[0]
        groups = groupby(matches, key=lambda match: (match.start, match.end))
        found = ((place, self._sure(list(group), own)) for place, group in groups)
        return [Mention(*place, self._name[title]) for place, title in found if title]

    def _sure(self, matches: list[Match], own: str) -> str | None:
        """The passage's own title, else a whole title, else the one title that the mention may be short for.

        One word is short for too much: "Marley" is a person more often than "Marley (soundtrack)".
        """
        titles = [self._titles[match.entity] for match in matches]
        whole = [title for title, match in zip(titles, matches, strict=True) if match.kind == "exact"]
        if own in titles:
            return own
        if whole:
            return whole[0]
        return titles[0] if len(titles) == 1 and len(matches[0].surface.split()) > 1 else None
