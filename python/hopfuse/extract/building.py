"""Build an index of passages by readers, which find their entities, facts and words.

:meth:`hopfuse.Index.build` imports this module by name if it is given a reader.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._validation import check_choice, check_excludes, check_needs, counted, wrong_type
from ..encoders import Encoder, as_encoder
from ..errors import InputError
from ..index import EncoderInfo, Index
from ..index.contents import check_encodable
from ..index.derive import ENGLISH, Terms, terms_of
from ..index.input import Inputs
from ..io.readers import read_table
from ..io.source import ORDERED, Snapshot, Source
from ..text import language_named, language_of, resembles
from ..types import Facts
from .document_order import DocumentOrder
from .extraction import Extraction, Progress, listed_extractions
from .memory import Memory
from .memory_build import build_memory
from .spacy_reader import SpacyReader
from .synonyms import Bounds, abbreviations, synonym_bounds, synonym_pairs
from .words import WordReader, has_rules

WORDS, SPACY = "words", "spacy"
#: The most passages that a warning names.
MOST_NAMED = 10
#: The share of text in languages that no reader is for, from which a build warns.
MANY = 0.2
#: Shows progress while something, which is named, is read.
Bar = Callable[[str], AbstractContextManager[Progress | None]]


class Reader(Protocol):
    """An object that finds the entities and facts of passages, such as :class:`SpacyReader`.

    If it is for one language, its attribute ``language`` has the name of it.
    """

    def read(self, passages: Any, *, progress: Progress | None = None) -> list[Extraction]:
        """Return an extraction for each passage, in their order; see :meth:`SpacyReader.read`."""
        ...


class ReaderResult(NamedTuple):
    """What readers found in passages, the languages of these, and the share of their text that no reader is for."""

    memory: Memory
    languages: PassageLanguages
    unread: float


class Readers(NamedTuple):
    """A reader of facts and a reader of words, or one of them.

    ``guess`` says that nobody chose the language of words, so that the passages do (:meth:`PassageLanguages.words`).
    """

    facts: Reader | None = None
    words: WordReader | None = None
    guess: bool = False

    def read(self, passages: Any, bar: Bar) -> tuple[ReaderResult, Readers]:
        """Return what they find in passages, and the readers in the language that they read."""
        found: Sequence[Extraction]
        if self.facts is None:
            found = listed_extractions(passages)
        else:
            with bar("Reading") as progress:
                found = self.facts.read(passages, progress=progress)
        shares, words = PassageLanguages(found), self.words
        if words is not None:
            if self.guess and (language := shares.words(ENGLISH)) != words.language:
                words = WordReader(language)
            with bar("Reading words") if self.facts is None else nullcontext() as progress:
                found = words.add(found, progress=progress)
        languages = [getattr(one, "language", None) for one in (self.facts, words) if one is not None]
        known = [language for language in languages if language is not None]
        alike = [] if words is None else [language for language in shares.shares if not has_rules(language)]
        # A reader without a language is for any.
        unread = shares.unread([*known, *alike]) if len(known) == len(languages) else 0.0
        return ReaderResult(build_memory(found), shares, unread), self._replace(words=words)

    @property
    def terms(self) -> Terms:
        """Return how BM25 reads texts by default: as the reader of words, else in English."""
        if self.words is None:
            return Terms()
        info, language = self.words.info, self.words.language
        if language is None:
            return Terms(info.stopwords, info.stemmer)
        return Terms.of(language)


@dataclass(frozen=True)
class Built:
    """An index, and what it was made of.

    Attributes
    ----------
    index : Index
    memory : Memory
    joined : mapping of str to int
        How many pairs of entities were joined, by the reason.
    languages : PassageLanguages
        The languages of the passages.
    unread : float
        The share of the text in languages that no reader is for.
    language : str or None
        The language in which words were read.
    """

    index: Index
    memory: Memory
    joined: Mapping[str, int]
    languages: PassageLanguages
    unread: float
    language: str | None

    def warn(self) -> None:
        """Warn of passages that the reader left out."""
        failures = self.memory.failures
        if failures:
            at, reason = next(iter(failures.items()))
            ids = ", ".join(repr(self.memory.ids[one]) for one in list(failures)[:MOST_NAMED])
            more = len(failures) - MOST_NAMED
            warnings.warn(
                f"{len(failures):,} of {counted(len(self.memory.ids), 'passage')} could not be read, and have no "
                f"facts: {ids}{f' and {more:,} more' if more > 0 else ''}. The reason for {self.memory.ids[at]!r}: "
                f"{reason}. read() of the reader returns it for each (Extraction.failure)",
                UserWarning,
                stacklevel=4,
            )


def readers_of(reader: Any, language: str | None = None) -> Readers:
    """Return the readers that the arguments ``reader`` and ``language`` of :meth:`hopfuse.Index.build` name.

    Raises
    ------
    InputError
        An unknown name, an object without a method ``read``, or two readers of words or of facts.
    MissingExtraError
        The packages of a reader are not installed.

    Examples
    --------
    >>> readers_of("words", "german").words.language
    'german'
    """
    given = list(reader) if isinstance(reader, (list, tuple)) else [reader]
    names = [check_choice(one, "reader", (WORDS, SPACY)) if isinstance(one, str) else one for one in given]
    check_needs("language", language, "reader", WORDS if WORDS in names else None, "'words', whose language it is")
    words = [one for one in names if one == WORDS or isinstance(one, WordReader)]
    facts = [one for one in names if one != WORDS and not isinstance(one, WordReader)]
    for one in facts:
        if one != SPACY and not callable(getattr(one, "read", None)):
            raise wrong_type(one, "reader", "'words', 'spacy', a reader of hopfuse.extract, or a list of them")
    if not names or max(len(words), len(facts)) > 1:
        raise InputError(
            "conflict" if names else "empty",
            "reader",
            "{field} has {words} readers of words and {facts} of facts; give one of each kind at most",
            words=len(words),
            facts=len(facts),
        )
    of_facts: Reader | None = None
    if facts:
        of_facts = SpacyReader() if isinstance(facts[0], str) else facts[0]
    of_words: WordReader | None = None
    if words:
        chosen = None if language == "none" else language or ENGLISH
        of_words = words[0] if isinstance(words[0], WordReader) else WordReader(chosen)
    return Readers(of_facts, of_words, guess=WORDS in names and language is None)


def build_index(given: Inputs, readers: Readers, bar: Bar = lambda what: nullcontext()) -> Built:
    """Build an index of what readers find in passages.

    Everything is checked before a reader begins, which may take long.

    Parameters
    ----------
    given : Inputs
        ``passages`` are None if the reader of facts knows them; ``entity_vectors`` are None or an encoder.
    readers : Readers
    bar : callable, optional
        Returns a context that gives a reader its ``progress``.

    Raises
    ------
    InputError
        As :meth:`hopfuse.Index.build`; or labels of ``synonyms`` that the reader does not give.
    """
    if given.source is not None:
        stored = given.some("metadata_types", "scratch", "metric", "storage", "left_out")
        given = given.of_passages(stored_passages(given.source, **stored))
    maker, namer = _encoders(given)
    synonyms = given.synonyms
    if synonyms is not None:
        check_needs("synonyms", synonyms, "reader", readers.facts, "which finds the names that it joins")
        check_needs("synonyms", synonyms, "encoder", namer, "which gives the names their vectors")
        synonyms = synonym_bounds(synonyms, getattr(readers.facts, "labels", ()))
    terms = terms_of(given.lexical, readers.terms)
    about = given.some("metric", "storage")
    own: dict[str, Any] = given.some("vectors", "encoder")
    plain, passages = None, given.passages
    if passages is not None:
        passages = passages if isinstance(passages, Index) else read_table(passages, ORDERED)
        own = {"encoder": given.encoder} if maker is not None else {}
        plain = Index.build(
            passages,
            vectors=given.vectors,
            encoder=given.encoder if maker is None else None,
            metadata_types=given.metadata_types,
            **about,
        )
        if maker is not None:
            check_encodable(maker, plain.texts_to_index(), plain.passage_ids)
    found, readers = readers.read(_rows(passages), bar)
    memory = found.memory
    if terms is not None and given.lexical in (None, True):
        terms = readers.terms if readers.words is not None else Terms.of(found.languages.words(ENGLISH))
    names = None
    if namer is not None and memory.num_names:
        names = np.asarray(namer.encode_passages(list(memory.entities)))  # of words, too: one for each entity
    pairs, similarities, joined = _synonyms(memory, names, synonyms)
    graph = memory.graph(pairs, similarities)
    index = memory.index(graph, passages=plain, entity_vectors=names, failed=given.failed, **own, **about)
    if readers.facts is not None and index.facts is None:  # no name yet, beside words: later passages may have some
        index = index.with_facts(Facts.from_numbers((), index.num_entities, index.num_passages))
    if terms is not None:
        index = index.with_lexical(terms.matrix(index.texts_to_index()))
    language = None if readers.words is None else readers.words.language
    return Built(index, memory, joined, found.languages, found.unread, language)


def _consequence(language: str | None, readers: Readers) -> str:
    """Return what it means that no reader is for a part of the text, and what can be done."""
    if readers.words is None:
        return "the reader may miss their names and facts; give one that is for them, or reader='words'"
    return f"their words are found, read as {language}; give language= if most questions are in another language"


class _PassagesAlone:
    """A store whose passages are read; readers make what its other tables would have.

    Raises
    ------
    InputError
        In the context of :meth:`snapshot`: the store has another table.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Return the store's passages."""
        with self._source.snapshot() as snapshot:
            for table in ("entities", "edges", "facts"):
                check_excludes(table, getattr(snapshot, table)(), "reader", True, "which makes its own")
            yield _Alone(snapshot.passages)


class _Alone:
    """The passages of a snapshot."""

    def __init__(self, passages: Callable[[], Iterable[Any] | None]) -> None:
        self.passages = passages

    def entities(self) -> None:
        """Return no table."""

    edges = facts = entities


def stored_passages(source: Source, **options: Any) -> Index:
    """Return the index of a store's passages, for readers.

    Parameters
    ----------
    source : Source
        A store with no other table.
    **options
        Of :meth:`hopfuse.Index.build`.

    Raises
    ------
    InputError
        The store has entities, edges or facts, which readers make themselves; or a row is invalid.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hopfuse.extract.building import stored_passages
    >>> from hopfuse.stores import ArrowSource
    >>> stored_passages(ArrowSource(passages=pa.table({"id": [1], "text": ["Ada wrote."]}))).num_passages
    1
    """
    return Index.build(_PassagesAlone(source), **options)


def index_of(given: Inputs) -> Index:
    """Return an index of what the readers of the arguments find in the passages, as :func:`build_index`.

    Warns
    -----
    UserWarning
        The reader left passages out, or a fifth of the text or more is in languages that no reader is for.
    """
    readers = readers_of(given.reader, given.language)
    built = build_index(given, readers)
    built.warn()
    if built.unread >= MANY:
        told = ", ".join(f"{language} {share:.0%}" for language, share in built.languages.shares.items())
        warnings.warn(
            f"{built.unread:.0%} of the text is in languages that no reader is for ({told}): "
            f"{_consequence(built.language, readers)}",
            UserWarning,
            stacklevel=3,
        )
    return built.index


def _encoders(given: Inputs) -> tuple[Encoder | None, Encoder | None]:
    """Return the encoder of the passages' vectors, unless there are some, and that of the names."""
    known = given.vectors is not None or (isinstance(given.passages, Index) and given.passages.dim is not None)
    maker = None
    if not known and given.encoder is not None and not isinstance(given.encoder, EncoderInfo):
        maker = as_encoder(given.encoder)
    return maker, as_encoder(given.entity_vectors) if given.encodes_names else maker


def _rows(passages: Any) -> Any:
    """Return what readers read: the rows of an index's passages, and anything else as it is."""
    if not isinstance(passages, Index):
        return passages
    names = ("id", "title", "text", "document", "language", "position")
    columns = (passages.passage_ids, passages.titles, passages.texts, passages.documents, passages.languages)
    places = DocumentOrder(passages).positions(passages.passage_ids)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, places, strict=True)]


def _synonyms(
    memory: Memory, vectors: NDArray[Any] | None, synonyms: Bounds | None
) -> tuple[NDArray[np.int64], list[float], Mapping[str, int]]:
    """Return pairs of entities to join, their similarities, and the numbers of pairs by the reason.

    Abbreviations that a passage or a name explains come first, with similarity 1.
    """
    short: NDArray[np.int64] = np.zeros((0, 2), np.int64)
    similar, similarities = short, np.zeros(0, np.float32)
    if synonyms is not None and vectors is not None:
        names = vectors[: memory.num_names]
        explained = [*memory.texts, *memory.entities[: len(names)], *(alias for row in memory.aliases for alias in row)]
        short = memory.abbreviated(abbreviations(explained))
        similar, similarities = synonym_pairs(names, synonyms, memory.labels[: len(names)])
    fresh = ~np.isin(similar @ [len(memory.entities), 1], short @ [len(memory.entities), 1])
    pairs = np.concatenate([short, similar[fresh]])
    weights = np.concatenate([np.ones(len(short)), similarities[fresh]])
    return pairs, weights.tolist(), {"abbreviated": len(short), "similar": int(fresh.sum())}


# ---- Languages -------------------------------------------------------------------------------------------------------


#: Passages, evenly spaced, whose language is told.
_SAMPLE = 2_000
#: A language is that of an index's words if it has this share of the letters whose language is told, and these are at
#: least the other share of all.
_MOST, _LEAST = 0.5, 0.1


class _PassageLanguage(NamedTuple):
    text: str
    letters: int
    language: str | None


class PassageLanguages:
    """The languages of passages: of their tags or, for a passage without one, told by its words and its script.

    Parameters
    ----------
    extractions : sequence of Extraction
        At most :data:`_SAMPLE` of them are read, evenly spaced.

    Examples
    --------
    >>> from hopfuse.extract import Extraction, PassageLanguages
    >>> text = "Le port de la ville est plus vieux que la ville, et il est sur la mer."
    >>> languages = PassageLanguages([Extraction("a", "", text)])
    >>> languages.shares, languages.main("english"), languages.unread(["english"]), languages.unread(["french"])
    ({'french': 1.0}, 'french', 1.0, 0.0)
    """

    def __init__(self, extractions: Sequence[Extraction]) -> None:
        self._extractions = extractions[:: -(-len(extractions) // _SAMPLE) or 1]

    @cached_property
    def _passages(self) -> list[_PassageLanguage]:
        return list(map(_passage_language, self._extractions))

    @cached_property
    def _letters(self) -> int:
        return sum(one.letters for one in self._passages)

    @cached_property
    def shares(self) -> Mapping[str, float]:
        """The share of each language in the letters of all passages, the largest first; the rest is not told."""
        counts = Counter[str]()
        for one in self._passages:
            if one.language is not None:
                counts[one.language] += one.letters
        return {language: count / self._letters for language, count in counts.most_common() if count}

    def main(self, default: str) -> str:
        """Return the language of most of what is told, if that is enough to tell, else ``default``."""
        told = sum(self.shares.values())
        language, share = next(iter(self.shares.items()), (default, 0.0))
        return language if told >= _LEAST and share >= _MOST * told else default

    def words(self, default: str) -> str:
        """Return the language to read words in: the main one, or another if every reader reads the main one alike.

        Japanese and Thai, for example, have neither stems nor stop words. The other one is the largest that has some,
        if it has at least a fifth of all letters.
        """
        main = self.main(default)
        if has_rules(main):
            return main
        return next((one for one, share in self.shares.items() if share >= MANY and has_rules(one)), main)

    def unread(self, languages: Collection[str]) -> float:
        """Return the share of letters in passages whose language is told, and is like none of these."""
        letters = sum(one.letters for one in self._of_others(languages))
        return letters / self._letters if letters else 0.0

    def _of_others(self, languages: Collection[str]) -> Iterator[_PassageLanguage]:
        for one in self._passages:
            if one.language is not None and not any(resembles(one.text, each, one.language) for each in languages):
                yield one


def _passage_language(one: Extraction) -> _PassageLanguage:
    text = f"{one.title}\n{one.text}"
    return _PassageLanguage(text, sum(map(str.isalpha, text)), _tagged(one.language) or language_of(text))


def _tagged(tag: str | None) -> str | None:
    """Return the language of a tag, or None for one that is not listed."""
    try:
        return None if tag is None else language_named(tag)
    except InputError:
        return None
