"""Labels as sets of bigrams or words, which Sørensen-Dice coefficients compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import check_array, check_ascending, check_indptr, check_range, indptr_of_counts
from .._validation import check_choice, check_flag, checked_texts
from .derived import KeepsDerived
from .term_matrix import check_words

Unit = Literal["bigrams", "words"]
UNITS: tuple[Unit, ...] = ("bigrams", "words")


@dataclass(frozen=True, eq=False, repr=False)
class LabelSets(KeepsDerived):
    """Each label's set of elements, as vocabulary numbers. Immutable; build it with :meth:`from_labels`.

    Parameters
    ----------
    vocabulary : sequence of str, V entries
        The elements of all labels, distinct, ascending by code point.
    indptr : ndarray of int64, shape (L + 1,)
        Label l has the entries ``indptr[l]`` .. ``indptr[l + 1] - 1``.
    members : ndarray of int32, shape (Z,)
        Vocabulary numbers, ascending within a label. Arrays are referenced, not copied: do not change them.
    unit : {"bigrams", "words"}
    repeats : bool
        As in :meth:`from_labels`.

    Raises
    ------
    InputError
        Any of the above does not hold.

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.LabelSets.from_labels(["directed by", "written by"])
    LabelSets(labels=2, vocabulary=13, members=15, unit='bigrams', repeats=False)
    """

    vocabulary: Sequence[str]
    indptr: NDArray[np.int64]
    members: NDArray[np.int32]
    unit: Unit = "bigrams"
    repeats: bool = False
    _number: dict[str, int] = field(default_factory=dict, init=False)
    derived: dict[str, Any] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        _check_options(self.unit, self.repeats)
        object.__setattr__(self, "vocabulary", check_words(self.vocabulary, "vocabulary"))
        _check_members(self)
        self._number.update({element: number for number, element in enumerate(self.vocabulary)})

    @classmethod
    def from_labels(cls, labels: Sequence[str], *, unit: Unit = "bigrams", repeats: bool = False) -> LabelSets:
        """Split labels into elements.

        Parameters
        ----------
        labels : sequence of str, L entries
            Folded (:func:`hopfuse.text.fold`). A label without elements has an empty set.
        unit : {"bigrams", "words"}
            ``"bigrams"``: pairs of adjacent characters (code points), neither of them white space. ``"words"``: runs of
            letters, digits, underscores and marks; in scripts without spaces, pairs of characters.
        repeats : bool
            Whether repeated occurrences are separate elements, so that multisets are compared.

        Returns
        -------
        LabelSets

        Raises
        ------
        InputError
            Labels that are not strings, an unknown unit.

        Examples
        --------
        >>> from hopfuse import LabelSets
        >>> LabelSets.from_labels(["Ada Lovelace", "Ada"]).vocabulary
        ('ac', 'ad', 'ce', 'da', 'el', 'la', 'lo', 'ov', 've')
        >>> LabelSets.from_labels(["New York, New York"], unit="words", repeats=True).vocabulary
        ('new', 'new 2', 'york', 'york 2')
        """
        _check_options(unit, repeats)
        rows = [list(elements(label, unit, repeats)) for label in checked_texts(labels, "labels")]
        vocabulary = sorted({element for row in rows for element in row})
        number = {element: at for at, element in enumerate(vocabulary)}
        indptr, members = _numbered([[number[element] for element in row] for row in rows])
        return cls(vocabulary, indptr, members, unit, repeats)

    def sets_of(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the sets of other texts, split in the same way as the labels.

        Parameters
        ----------
        texts : sequence of str, B entries

        Returns
        -------
        indptr : ndarray of int64, shape (B + 1,)
        members : ndarray of int32
            Ascending within a text. An element that no label has gets a number of V or more, so that it counts only in
            the size of the set.

        Examples
        --------
        >>> from hopfuse import LabelSets
        >>> LabelSets.from_labels(["Ada"]).sets_of(["Adam"])
        (array([0, 3]), array([0, 1, 2], dtype=int32))
        """
        rows = []
        for text in checked_texts(texts):
            known, total = [], 0
            for element in elements(text, self.unit, self.repeats):
                total += 1
                if element in self._number:
                    known.append(self._number[element])
            rows.append(known + [len(self.vocabulary) + i for i in range(total - len(known))])
        return _numbered(rows)

    def __len__(self) -> int:
        return int(self.indptr.size - 1)

    def __repr__(self) -> str:
        return (
            f"LabelSets(labels={len(self)}, vocabulary={len(self.vocabulary)}, members={self.members.size}, "
            f"unit={self.unit!r}, repeats={self.repeats})"
        )


def elements(text: str, unit: Unit, repeats: bool) -> Iterable[str]:
    """Return the distinct elements of a text; with ``repeats``, later occurrences are numbered."""
    from ..text import fold, runs_in, spaced  # at the first use: they take long to import

    folded = fold(text)
    if unit == "words":
        every: Iterator[str] = iter(runs_in(spaced(folded)))
    else:
        every = (word[i : i + 2] for word in folded.split() for i in range(len(word) - 1))
    if not repeats:
        return set(every)
    # Elements have no white space, so "element 2" cannot be mistaken for another element.
    return [
        element if nth == 1 else f"{element} {nth}"
        for element, count in Counter(every).items()
        for nth in range(1, count + 1)
    ]


def _numbered(rows: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    members = np.array([number for row in rows for number in sorted(row)], np.int32)
    return indptr_of_counts([len(row) for row in rows]), members


def _check_options(unit: Any, repeats: Any) -> None:
    check_choice(unit, "unit", UNITS)
    check_flag(repeats, "repeats")


def _check_members(sets: LabelSets) -> None:
    indptr, members = sets.indptr, sets.members
    for name, array, dtype in (("indptr", indptr, np.int64), ("members", members, np.int32)):
        check_array(array, name, dtype)
    check_indptr(indptr, members.size)
    check_range(members, "members", len(sets.vocabulary))
    check_ascending(members, "members", indptr)
