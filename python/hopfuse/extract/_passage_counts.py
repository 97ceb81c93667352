"""Count the passages that contain given words in lower case."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from numpy.typing import NDArray

from ..text import fold, splits_word


class PassageCounts:
    """Concatenated texts in which passages are counted.

    Parameters
    ----------
    texts : sequence of str, P entries
    rule : int
        The reading rule of the words.
    """

    def __init__(self, texts: Sequence[str], rule: int) -> None:
        parts = [fold(text, rule=rule, case_sensitive=True) for text in texts]
        self._begin = list(accumulate((len(text) + 1 for text in parts), initial=0))
        self._text = "\n".join(parts)

    def count(self, words: str, most: int, allow: NDArray[Any] | None = None) -> int:
        """Return the number of passages that contain these words between word boundaries, at most ``most``.

        Parameters
        ----------
        words : str
            In lower case; capitalised occurrences, such as in longer names, are not counted.
        most : int
        allow : ndarray of bool, shape (P,), optional
            Count only these passages.
        """
        text, begin, found = self._text, self._begin, 0
        at = text.find(words)
        while at >= 0 and found < most:
            passage = bisect_right(begin, at) - 1
            end = at + len(words)
            if allow is not None and not allow[passage]:
                at = begin[passage + 1]
            elif splits_word(text, at) or splits_word(text, end):
                at += 1
            else:
                found += 1
                at = begin[passage + 1]
            at = text.find(words, at)
        return found
