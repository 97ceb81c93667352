"""Passages, and the entities, facts and words that were read in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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
from ._sequence import neighbours

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
        Names as written in the passage. The ends of triples and links count as mentioned too.
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

    The column ``position`` is read too.

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
