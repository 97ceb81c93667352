"""Passages, and the entities, facts and words that were read in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..errors import InputError
from ..index import WordInfo
from ..index.build import PASSAGES
from ..index.contents import PassageId
from ..io.languages import language_tag
from ..io.readers import read_table
from ..io.tables import integers_or_none, languages, names_or_numbers, row_ids, texts
from ._sequence import neighbours

Triple = tuple[str, str, str]
Progress = Callable[[int, int], None]
ORDERED = replace(PASSAGES, optional=(*PASSAGES.optional, "position"))


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
        Number of facts that were left out because they were not three strings.
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

    def __post_init__(self) -> None:
        if isinstance(self.id, bool) or not isinstance(self.id, str | int):
            raise InputError("type", "id", "{field} is {given!r}; it must be a string or an integer", given=self.id)
        for name in ("title", "text"):
            if not isinstance(getattr(self, name), str):
                raise InputError("type", name, "{field} is {given!r}; it must be a string", given=getattr(self, name))
        for name in ("entities", "triples", "labels", "links"):
            rows = getattr(self, name)
            if isinstance(rows, str) or not isinstance(rows, Sequence):
                raise InputError(
                    "UNSORTED",
                    name,
                    "{field} of passage {id!r} are a {kind}; give a tuple",
                    id=self.id,
                    kind=type(rows).__name__,
                )
            object.__setattr__(self, name, tuple(rows))
        if not all(isinstance(name, str) for name in self.entities):
            raise InputError(
                "type",
                "entities",
                "{field} of passage {id!r} are {entities!r}; they must be strings",
                id=self.id,
                entities=self.entities,
            )
        if not all(isinstance(label, str) for label in self.labels):
            raise InputError(
                "type",
                "labels",
                "{field} of passage {id!r} are {labels!r}; they must be strings",
                id=self.id,
                labels=self.labels,
            )
        if self.labels and len(self.labels) != len(self.entities):
            raise InputError(
                "length",
                None,
                "passage {id!r} has {number} labels for {number_2} entities; give one for each, or none",
                id=self.id,
                number=len(self.labels),
                number_2=len(self.entities),
            )
        if not all(is_triple(row) for row in self.triples):
            raise InputError(
                "shape",
                "triples",
                "{field} of passage {id!r} must be (head, relation, tail), three strings each, none of them blank",
                id=self.id,
            )
        if not all(is_triple(row) for row in self.links):
            raise InputError(
                "shape",
                "links",
                "{field} of passage {id!r} must be (type, entity, entity), three strings each, none of them blank",
                id=self.id,
            )
        if self.words is not None and not isinstance(self.words, Words):
            raise InputError(
                "UNSORTED",
                "words",
                "{field} of passage {id!r} are a {kind}; give Words, or None",
                id=self.id,
                kind=type(self.words).__name__,
            )
        if isinstance(self.document, bool) or not isinstance(self.document, str | int | None):
            raise InputError(
                "type",
                "document",
                "{field} of passage {id!r} is {document!r}; give a string, an integer or None",
                id=self.id,
                document=self.document,
            )
        if isinstance(self.position, bool) or not isinstance(self.position, int | None):
            raise InputError(
                "UNSORTED",
                "position",
                "{field} of passage {id!r} is {position!r}; give an integer or None",
                id=self.id,
                position=self.position,
            )
        try:
            object.__setattr__(self, "language", None if self.language is None else language_tag(self.language))
        except (TypeError, ValueError, AttributeError):
            raise InputError(
                "syntax",
                "language",
                "{field} of passage {id!r} is {given!r}; give a tag such as 'en', or None",
                id=self.id,
                given=self.language,
            ) from None
        if isinstance(self.malformed, bool) or not isinstance(self.malformed, int) or self.malformed < 0:
            raise InputError(
                "range", "malformed", "{field} is {given!r}; it must be an integer, at least 0", given=self.malformed
            )


def is_triple(row: Any) -> bool:
    """Return whether a row is three strings, none of them blank."""
    three = isinstance(row, Sequence) and not isinstance(row, str) and len(row) == 3
    return three and all(isinstance(name, str) and name.strip() for name in row)


def well_formed(rows: Iterable[Any]) -> tuple[tuple[Triple, ...], int]:
    """Return the valid triples in a language model's rows, and the number of other rows."""
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise InputError(
            "type",
            "triples",
            "{field} are a {kind}; they must be a list of [head, relation, tail]",
            kind=type(rows).__name__,
        )
    listed = list(rows)
    kept = tuple((row[0].strip(), row[1].strip(), row[2].strip()) for row in listed if is_triple(row))
    return kept, len(listed) - len(kept)


class WordExtractions(list[Extraction]):
    """Extractions with words; ``info`` describes how words are read, even if there are no passages."""

    def __init__(self, found: Iterable[Extraction], info: WordInfo) -> None:
        super().__init__(found)
        self.info = info


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
