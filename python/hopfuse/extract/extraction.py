"""Passages, and the entities, facts and words that were read in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import (
    check_id,
    check_length,
    check_list,
    check_type,
    check_whole,
    checked_texts,
    is_whole,
    wrong_type,
    wrong_value,
)
from ..errors import InputError
from ..index import WordInfo
from ..index.contents import PassageId
from ..io.readers import read_table
from ..io.source import ORDERED
from ..io.tables import integers_or_none, language_tag, languages, names_or_numbers, row_ids, texts
from ..text import canonical_key

Triple = tuple[str, str, str]
Progress = Callable[[int, int], None]


class Passage(NamedTuple):
    """A text with its id and title, its position in a document or conversation, and its language."""

    id: PassageId
    title: str
    text: str
    document: str | int | None = None
    position: int | None = None
    language: str | None = None


class Words(NamedTuple):
    """The distinct words of a passage: the key of each, and its first form in the passage.

    ``info`` describes how they were read; its ``first`` is 0.
    """

    info: WordInfo
    keys: tuple[str, ...]
    forms: tuple[str, ...]


@dataclass(frozen=True)
class Extraction:
    """A passage, the entities that it mentions and the facts that it states.

    Parameters
    ----------
    id : str or int
        Ids must be distinct, and all strings or all integers.
    title, text : str
        ``title`` may be empty.
    entities : tuple of str
        Names as written in the passage. The ends of triples and links also count as mentioned.
    triples : tuple of (str, str, str)
        Head, relation and tail.
    malformed : int
        Number of facts that were left out because they were not three texts, and of names that were none.
    labels : tuple of str
        The kind of thing of each entity, such as "PERSON", or ``""`` if unknown. Empty if the source has no labels.
    links : tuple of (str, str, str)
        Type, entity and entity: pairs joined by an edge of that type without a fact.
    words : Words, optional
        The passage's words, from :class:`WordReader`.
    document : str or int, optional
        The document or conversation that contains the passage.
    position : int, optional
        The position in the document; consecutive passages are joined. By default passages are in the given order.
    language : str, optional
        The BCP 47 tag of the passage's language, such as "en".
    failure : str, optional
        Why the reader left out the passage or a part of it, such as its facts.

    Raises
    ------
    InputError
        A value of the wrong type, or another number of labels than entities.

    Examples
    --------
    >>> from hopfuse.extract import Extraction
    >>> Extraction("0", "Ada", "Ada wrote notes.", ("Ada",), (("Ada", "wrote", "notes"),)).triples
    (('Ada', 'wrote', 'notes'),)
    """

    id: PassageId
    title: str
    text: str
    entities: tuple[str, ...] = ()
    triples: tuple[Triple, ...] = ()
    malformed: int = 0
    labels: tuple[str, ...] = ()
    links: tuple[Triple, ...] = ()
    words: Words | None = None
    document: str | int | None = None
    position: int | None = None
    language: str | None = None
    failure: str | None = None

    def __post_init__(self) -> None:
        check_id(self.id, "id")
        try:
            self._check()
        except InputError as error:
            raise error.at(f"passage {self.id!r}") from None

    def _check(self) -> None:
        for name in ("title", "text"):
            check_type(getattr(self, name), name, str, "a string")
        for name, noun in (("entities", "names"), ("triples", "triples"), ("labels", "labels"), ("links", "links")):
            object.__setattr__(self, name, tuple(check_list(getattr(self, name), name, f"a list of {noun}")))
        checked_texts(self.entities, "entities")
        checked_texts(self.labels, "labels")
        if self.labels:
            check_length(len(self.labels), "labels", len(self.entities), "entity")
        for name, parts in (("triples", "(head, relation, tail)"), ("links", "(type, entity, entity)")):
            for at, row in enumerate(getattr(self, name)):
                if not is_triple(row):
                    raise wrong_value(row, f"{name}[{at}]", f"{parts}, three strings that are not blank", "shape")
        if self.words is not None:
            check_type(self.words, "words", Words, "Words")
        if self.document is not None:
            check_id(self.document, "document")
        if self.position is not None and not is_whole(self.position):
            raise wrong_type(self.position, "position", "an integer")
        if self.language is not None:
            object.__setattr__(self, "language", _language(self.language))
        check_whole(self.malformed, "malformed", least=0)
        if self.failure is not None:
            check_type(self.failure, "failure", str, "a string")


def extracted(passage: Passage, **found: Any) -> Extraction:
    """Return the extraction of a passage; ``found`` are the arguments of :class:`Extraction` that it does not have."""
    return Extraction(**passage._asdict(), **found)


def _language(given: Any) -> str | None:
    try:
        return language_tag(given)
    except (TypeError, ValueError, AttributeError):
        raise wrong_value(given, "language", "a tag such as 'en', or None", "syntax") from None


def is_triple(row: Any) -> bool:
    """Return whether a row is three strings, none of them blank."""
    three = isinstance(row, Sequence) and not isinstance(row, str) and len(row) == 3
    return three and all(isinstance(name, str) and name.strip() for name in row)


def well_formed(rows: Iterable[Any]) -> tuple[tuple[Triple, ...], int]:
    """Return the triples in a language model's rows, and the number of rows that are none.

    A row is a list of three texts or numbers, or an object of them whose keys say which is which.

    Examples
    --------
    >>> well_formed([["Alien", "released in", 1979], {"subject": "A", "predicate": "b", "object": "C"}, ["A", "b"]])
    ((('Alien', 'released in', '1979'), ('A', 'b', 'C')), 1)
    """
    listed = check_list(rows, "triples", "a list of triples")
    kept = tuple(triple for row in listed if (triple := _triple_of(row)) is not None)
    return kept, len(listed) - len(kept)


def names_in(rows: Iterable[Any]) -> tuple[tuple[str, ...], int]:
    """Return the names in a language model's rows, without blank ones, and the number of rows that are none.

    A row is a text, a number, or an object with the name as one of :data:`NAME_KEYS`.

    Examples
    --------
    >>> names_in(["Ada ", 1843, {"name": "London", "type": "city"}, None, " "])
    (('Ada', '1843', 'London'), 1)
    """
    listed = check_list(rows, "entities", "a list of names")
    names = [name_of(row) for row in listed]
    return tuple(name for name in names if name), names.count(None)


#: Keys of a name in an object, the best first.
NAME_KEYS = ("name", "entity", "text", "value")
#: Keys of a triple's parts.
_PARTS = (("head", "subject", "source"), ("relation", "predicate", "relationship"), ("tail", "object", "target"))


def name_of(row: Any) -> str | None:
    """Return the name that a row of a language model is, ``""`` if it is blank, or None if it is none."""
    if isinstance(row, Mapping):
        row = next((row[key] for key in NAME_KEYS if key in row), None)
    if isinstance(row, str):
        return row.strip()
    return None if isinstance(row, bool) or not isinstance(row, int | float) else str(row)


def _triple_of(row: Any) -> Triple | None:
    if isinstance(row, Mapping):
        row = [next((row[key] for key in keys if key in row), None) for keys in _PARTS]
    if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != 3:
        return None
    head, relation, tail = map(name_of, row)
    return (head, relation, tail) if head and relation and tail else None


class WordExtractions(list[Extraction]):
    """Extractions with words; ``info`` describes how words are read, even if there are no passages."""

    def __init__(self, found: Iterable[Extraction], info: WordInfo) -> None:
        super().__init__(found)
        self.info = info


def listed_extractions(source: Any) -> list[Extraction]:
    """Return passages in which nothing was read yet.

    Examples
    --------
    >>> listed_extractions([{"text": "Ada wrote notes."}])[0].entities
    ()
    """
    return [
        Extraction(one.id, one.title, one.text, document=one.document, position=one.position, language=one.language)
        for one in listed_passages(source)
    ]


def listed_passages(source: Any) -> list[Passage]:
    """Return passages from a path, an Arrow table or mappings, as for :meth:`hopfuse.Index.build`.

    The column ``position`` is also read.

    Raises
    ------
    InputError
        The argument is not such a table, an id occurs twice, a text is not a string, a position is given without a
        document, or the positions in a document are repeated or incomplete.

    Examples
    --------
    >>> listed_passages([{"text": "Ada wrote notes."}])
    [Passage(id=0, title='', text='Ada wrote notes.', document=None, position=None, language=None)]
    """
    table = read_table(source, ORDERED)
    ids: Sequence[PassageId] = row_ids(table)
    documents, positions = names_or_numbers(table, "document"), integers_or_none(table, "position")
    neighbours(ids, documents, positions)  # raise errors before texts are read
    about = (documents, positions, languages(table, "language"))
    columns = (ids, texts(table, "title", default=""), texts(table, "text"), *about)
    return [Passage(*row) for row in zip(*columns, strict=True)]


# ---- Passages that follow each other ---------------------------------------------------------------------------------


def neighbours(
    ids: Sequence[str | int], documents: Sequence[str | int | None], positions: Sequence[int | None]
) -> NDArray[np.int64]:
    """Return pairs of consecutive passages of a document.

    A passage without a document has no neighbours. Passages without positions are in the order of the rows. Positions
    need not be consecutive numbers.

    Parameters
    ----------
    ids : sequence of str or of int, P entries
        For error messages.
    documents : sequence of str, int or None, P entries
    positions : sequence of int or None, P entries

    Returns
    -------
    ndarray of int64, shape (S, 2)
        Rows of passages, the earlier one first; documents are in the order of first occurrence.

    Raises
    ------
    InputError
        A position without a document, or positions in a document that are repeated or incomplete.

    Examples
    --------
    >>> neighbours("abcd", ["x", "y", "x", "x"], [2, None, 9, 1]).tolist()
    [[3, 0], [0, 2]]
    """
    rows_of: dict[str | int, list[int]] = {}
    for row, (document, position) in enumerate(zip(documents, positions, strict=True)):
        if document is not None:
            rows_of.setdefault(document, []).append(row)
        elif position is not None:
            raise InputError(
                "missing",
                "document",
                "{field} of passage {passage!r} is missing, and its position {position} needs it; give both or none",
                passage=ids[row],
                position=position,
            )
    pairs = [pair for document, rows in rows_of.items() for pair in pairwise(_in_order(document, rows, ids, positions))]
    return np.array(pairs, np.int64).reshape(-1, 2)


def _in_order(
    document: str | int, rows: list[int], ids: Sequence[str | int], positions: Sequence[int | None]
) -> list[int]:
    at = {row: position for row in rows if (position := positions[row]) is not None}
    if not at:
        return rows
    for row in rows:
        if row not in at:
            other = next(iter(at))
            raise InputError(
                "missing",
                "position",
                "{field} of passage {passage!r} of document {document!r} is missing, and that of passage {other!r} is "
                "{position}; give positions to all passages of a document, or to none",
                passage=ids[row],
                other=ids[other],
                document=document,
                position=at[other],
            )
    ordered = sorted(rows, key=at.__getitem__)
    for one, other in pairwise(ordered):
        if at[one] == at[other]:
            raise InputError(
                "duplicate",
                "position",
                "passages {passage!r} and {other!r} of document {document!r} have the {field} {given}; give one each",
                given=at[one],
                document=document,
                passage=ids[one],
                other=ids[other],
            )
    return ordered


# ---- Names and labels by majority ------------------------------------------------------------------------------------


class NameCounts:
    """Numbers names by their keys, in the order of first occurrence."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._surfaces: list[Counter[str]] = []

    def __len__(self) -> int:
        return len(self._surfaces)

    def add(self, name: str) -> int:
        """Count an occurrence of a name, and return its number."""
        surface = " ".join(name.split())
        number = self._number.setdefault(canonical_key(surface), len(self._surfaces))
        if number == len(self._surfaces):
            self._surfaces.append(Counter())
        self._surfaces[number][surface] += 1
        return number

    def number(self, name: str) -> int:
        """Return the number of a name without counting it; a new name is added."""
        known = self._number.get(canonical_key(name))
        return self.add(name) if known is None else known

    def names(self) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """Return each number's most frequent spelling (in a tie the first one), and the others."""
        ordered = [tuple(_by_frequency(counts)) for counts in self._surfaces]
        return tuple(row[0] for row in ordered), tuple(row[1:] for row in ordered)


class LabelCounts:
    """Counts labels of things, and returns the most frequent one.

    Examples
    --------
    >>> labels = LabelCounts()
    >>> for label in ("ORG", "PERSON", "", "", "", "PERSON"):
    ...     labels.add("Ada", label)
    >>> labels.of("Ada"), labels.of("Bob")
    ('PERSON', '')
    """

    def __init__(self) -> None:
        self._counts: dict[Hashable, Counter[str]] = {}

    def add(self, key: Hashable, label: str) -> None:
        """Count a label; blank labels are ignored."""
        if label.strip():
            self._counts.setdefault(key, Counter())[label] += 1

    def of(self, key: Hashable) -> str:
        """Return the most frequent label, in a tie the first one, or ``""``."""
        counts = self._counts.get(key)
        return "" if counts is None else counts.most_common(1)[0][0]


def _by_frequency(counts: Counter[str]) -> Iterable[str]:
    return (name for name, _ in counts.most_common())  # most_common keeps the order of first occurrence in ties
