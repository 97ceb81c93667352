"""The languages of passages, and how much of their text no reader is for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from ..errors import InputError
from ..text import language_named, language_of, resembles
from .extraction import Extraction

#: Passages, evenly spaced, whose language is told.
SAMPLE = 2_000
#: A language is that of an index's words if it has this share of the letters whose language is told, and these are at
#: least the other share of all.
MOST, LEAST = 0.5, 0.1


class _Told(NamedTuple):
    text: str
    letters: int
    language: str | None


class Spoken:
    """The languages of passages: of their tags or, for a passage without one, told by its words and its script.

    Parameters
    ----------
    extractions : sequence of Extraction
        At most :data:`SAMPLE` of them are read, evenly spaced.

    Examples
    --------
    >>> from hopfuse.extract import Extraction, Spoken
    >>> spoken = Spoken([Extraction("a", "", "Le port de la ville est plus vieux que la ville, et il est sur la mer.")])
    >>> spoken.shares, spoken.main("english"), spoken.unread(["english"]), spoken.unread(["french"])
    ({'french': 1.0}, 'french', 1.0, 0.0)
    """

    def __init__(self, extractions: Sequence[Extraction]) -> None:
        self._extractions = extractions[:: -(-len(extractions) // SAMPLE) or 1]

    @cached_property
    def _told(self) -> list[_Told]:
        return list(map(_told, self._extractions))

    @cached_property
    def _letters(self) -> int:
        return sum(one.letters for one in self._told)

    @cached_property
    def shares(self) -> Mapping[str, float]:
        """The share of each language in the letters of all passages, the largest first; the rest is not told."""
        counts = Counter[str]()
        for one in self._told:
            if one.language is not None:
                counts[one.language] += one.letters
        return {language: count / self._letters for language, count in counts.most_common() if count}

    def main(self, default: str) -> str:
        """Return the language of most of what is told, if that is enough to tell, else ``default``."""
        told = sum(self.shares.values())
        language, share = next(iter(self.shares.items()), (default, 0.0))
        return language if told >= LEAST and share >= MOST * told else default

    def unread(self, languages: Collection[str]) -> float:
        """Return the share of letters in passages whose language is told, and is like none of these."""
        letters = sum(one.letters for one in self._of_others(languages))
        return letters / self._letters if letters else 0.0

    def _of_others(self, languages: Collection[str]) -> Iterator[_Told]:
        for one in self._told:
            if one.language is not None and not any(resembles(one.text, each, one.language) for each in languages):
                yield one


def _told(one: Extraction) -> _Told:
    text = f"{one.title}\n{one.text}"
    return _Told(text, sum(map(str.isalpha, text)), _tagged(one.language) or language_of(text))


def _tagged(tag: str | None) -> str | None:
    """Return the language of a tag, or None for one that is not listed."""
    try:
        return None if tag is None else language_named(tag)
    except InputError:
        return None
