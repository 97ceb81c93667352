"""Passages that name one another: titles in texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from .gazetteer import Gazetteer, Match

_IN_PARENTHESES = re.compile(r"\s*\([^()]*\)\s*$")


class Mention(NamedTuple):
    """A name's place in a text."""

    start: int
    end: int
    name: str


def bare(title: str) -> str:
    """A title without what tells it from its namesakes: "Alien (film)" is called "Alien".

    Examples
    --------
    >>> bare("Alien (film)"), bare("(500)")
    ('Alien', '(500)')
    """
    return _IN_PARENTHESES.sub("", title) or title


class TitleLinks:
    """Finds titles in texts, as they are written; of several that a mention may be, only one that is sure.

    Parameters
    ----------
    titles : iterable of str
        Blank ones are left out.
    """

    def __init__(self, titles: Iterable[str]) -> None:
        self._titles = list(dict.fromkeys(title.strip() for title in titles if title.strip()))
        short = {at: [bare(title)] for at, title in enumerate(self._titles) if bare(title) != title}
        self._gazetteer = Gazetteer(self._titles, short, case_sensitive=True)

    def find(self, text: str, own: str) -> list[Mention]:
        """Mentions in the text of the passage that is titled ``own``."""
        matches = self._gazetteer.match([text])[0]
        groups = groupby(matches, key=lambda match: (match.start, match.end))
        return [Mention(*place, name) for place, group in groups if (name := self._sure(list(group), own))]

    def _sure(self, matches: list[Match], own: str) -> str | None:
        """The passage's own title, else a whole title, else the one title that the mention may be short for.

        One word is short for too much: "Marley" is a person more often than "Marley (soundtrack)".
        """
        names = [self._titles[match.entity] for match in matches]
        whole = [name for name, match in zip(names, matches, strict=True) if match.kind == "exact"]
        if own in names:
            return own
        if whole:
            return whole[0]
        return names[0] if len(names) == 1 and len(matches[0].surface.split()) > 1 else None
