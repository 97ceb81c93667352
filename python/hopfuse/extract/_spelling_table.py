"""Find folded spellings in folded texts with an Aho-Corasick automaton."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from importlib import import_module

from ..errors import MissingExtraError
from ..text import FoldedText, splits_word

_IN_WORD = frozenset(string.ascii_letters + string.digits + "_")


def between_words(folded: str, start: int, end: int) -> bool:
    """Return whether a place begins and ends at a word boundary.

    Examples
    --------
    >>> between_words("an art", 3, 6), between_words("artist", 0, 3)
    (True, False)
    """
    return not (splits_word(folded, start) or splits_word(folded, end))


class SpellingTable:
    """Spellings, each with a number.

    Parameters
    ----------
    numbers : mapping of str to int
        A number for each folded spelling.
    may_stand : callable (text, start, end) -> bool
        Whether a spelling may stand at a place of a folded text. In ASCII, it must begin and end at a word boundary.

    Raises
    ------
    MissingExtraError
        ``pyahocorasick`` is not installed.
    """

    def __init__(self, numbers: Mapping[str, int], may_stand: Callable[[str, int, int], bool] = between_words) -> None:
        try:
            library = import_module("ahocorasick")
        except ModuleNotFoundError as error:
            raise MissingExtraError("pyahocorasick", "text", "Gazetteer") from error
        self._may_stand, self._count = may_stand, len(numbers)
        self._automaton = library.Automaton()
        for spelling, number in numbers.items():
            self._automaton.add_word(spelling, (number, len(spelling)))
        self._automaton.make_automaton()

    def __len__(self) -> int:
        return self._count

    def __contains__(self, spelling: str) -> bool:
        return spelling in self._automaton

    def places(self, folded: FoldedText) -> list[tuple[int, int, int]]:
        """Return the places of spellings, also overlapping ones, in original offsets: start, end, and number."""
        if not self._count or not folded.text:
            return []
        if isinstance(folded.start_at, range):
            return self._ascii_places(folded.text)
        text, found = folded.text, []
        for last, (number, length) in self._automaton.iter(text):
            first = last - length + 1
            start, end = folded.start_at[first], folded.end_at[last]
            if min(start, end) >= 0 and self._may_stand(text, first, last + 1):
                found.append((start, end, number))
        return found

    def _ascii_places(self, text: str) -> list[tuple[int, int, int]]:
        """Return the same for an ASCII text, whose offsets equal the original's."""
        size, found = len(text), []
        for last, (number, length) in self._automaton.iter(text):
            end = last + 1
            if end < size and text[end] in _IN_WORD and text[last] in _IN_WORD:
                continue
            first = end - length
            if first == 0 or text[first - 1] not in _IN_WORD or text[first] not in _IN_WORD:
                found.append((first, end, number))
        return found
