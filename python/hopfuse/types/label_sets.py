"""Sets of the parts of labels: the sets that Sørensen-Dice coefficients compare."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import ascends, check_array, check_indptr
from .._validation import checked_texts
from ..errors import InputError
from .derived import KeepsDerived
from .term_matrix import check_words

Unit = Literal["bigrams", "words"]
UNITS: tuple[Unit, ...] = ("bigrams", "words")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, eq=False, repr=False)
class LabelSets(KeepsDerived):
    """The set of each label's elements, as numbers. Immutable; build it with :meth:`from_labels`.

    Parameters
    ----------
    vocabulary : sequence of str, V entries
        Every element that a label has, distinct, ascending by code points.
    indptr : ndarray of int64, shape (L + 1,)
        Label l has the entries ``indptr[l]`` .. ``indptr[l + 1] - 1``.
    members : ndarray of int32, shape (Z,)
        Numbers in the vocabulary, ascending within a label. Arrays are referenced, not copied: do not change them.
    unit : {"bigrams", "words"}
    repeats : bool

    Raises
    ------
    InputError
        Anything that is not as above.

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
        vocabulary = tuple(self.vocabulary)
        check_words(vocabulary, "vocabulary")
        object.__setattr__(self, "vocabulary", vocabulary)
        _check_members(self)
        self._number.update({element: number for number, element in enumerate(self.vocabulary)})

    @classmethod
    def from_labels(cls, labels: Sequence[str], *, unit: Unit = "bigrams", repeats: bool = False) -> LabelSets:
        """Take labels apart.

        Parameters
        ----------
        labels : sequence of str, L entries
            Lower-cased here. A label may be empty, or have no element: its set is then empty.
        unit : {"bigrams", "words"}
            ``"bigrams"``: two neighbouring characters (code points), neither of them white space. ``"words"``: runs of
            letters, digits and underscores.
        repeats : bool
            Whether a second occurrence is an element of its own, so that multisets are compared.

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
        """Return the sets of other texts, taken apart as the labels were.

        Parameters
        ----------
        texts : sequence of str, B entries

        Returns
        -------
        indptr : ndarray of int64, shape (B + 1,)
        members : ndarray of int32
            Ascending within a text. An element that no label has is V or more: it counts in a set's size alone.

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
    """Return the elements of a text; each once, or numbered where repeats count."""
    lowered = text.lower()
    if unit == "words":
        every: Iterator[str] = iter(_WORD.findall(lowered))
    else:
        every = (word[i : i + 2] for word in lowered.split() for i in range(len(word) - 1))
    if not repeats:
        return set(every)
    # No element has white space, so a number behind it makes another one.
    return [
        element if nth == 1 else f"{element} {nth}"
        for element, count in Counter(every).items()
        for nth in range(1, count + 1)
    ]


def _numbered(rows: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    indptr = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=indptr[1:])
    return indptr, np.array([number for row in rows for number in sorted(row)], np.int32)


def _check_options(unit: Any, repeats: Any) -> None:
    if unit not in UNITS:
        raise InputError(f"unit is {unit!r}; allowed: {', '.join(UNITS)}")
    if not isinstance(repeats, bool | np.bool_):
        raise InputError(f"repeats is {repeats!r}; it must be True or False")


def _check_members(sets: LabelSets) -> None:
    indptr, members = sets.indptr, sets.members
    for name, array, dtype in (("indptr", indptr, np.int64), ("members", members, np.int32)):
        check_array(array, name, dtype)
    check_indptr(indptr, members.size)
    if members.size and (members.min() < 0 or members.max() >= len(sets.vocabulary)):
        raise InputError(f"members holds a number outside 0 .. {len(sets.vocabulary) - 1}")
    if not ascends(members, indptr):
        raise InputError("members do not ascend within a label")
