"""Read the content words of passages and questions, for a graph without an entity recogniser."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from .._arrays.rows import RowNumbers
from .._validation import check_whole, checked_texts
from ..errors import InputError
from ..index import Index, IndexPart, WordInfo
from ..index.numbers import Entity, EntityTable, entity_numbers, family_of
from ..io.skips import SKIP_FAILED, Skips, check_share
from ..lexical import ENGLISH_PLUS, Keys, asking_words, listed_stopwords, snowball_stemmer, stemmer_named, stemmer_of
from ..text import FoldedText, fold, fold_with_offsets, language_named, read_words, segment, unaccented
from ..types.derived import Continued
from ._spacy_model import loaded_model, too_long
from .extraction import (
    Extraction,
    Passage,
    Progress,
    WordExtractions,
    Words,
    extracted,
    listed_passages,
)
from .gazetteer import Kind, Match

P = TypeVar("P", Passage, Extraction)

LANGUAGE = "english"
#: Parts of speech of content words.
CONTENT = frozenset(("NOUN", "PROPN", "VERB", "NUM"))


def has_rules(language: str) -> bool:
    """Return whether words of a language are read by stems or stop words of its own, not alike by every reader.

    Examples
    --------
    >>> from hopfuse.extract.words import has_rules
    >>> has_rules("german"), has_rules("japanese")
    (True, False)
    """
    return stemmer_of(language) is not None or bool(listed_stopwords(language))


class Word(NamedTuple):
    """A word of a text: its key, which all forms share, its folded form, and its place."""

    key: str
    form: str
    start: int
    end: int


class WordReader:
    """Reads the content words of passages, as stems by a stemmer or as lemmas by a tagger.

    Texts are folded (:func:`hopfuse.text.fold`) and cut into words (:func:`hopfuse.text.segment`): runs of letters,
    marks and digits with at least two characters or one digit, numbers with points or commas and, in scripts without
    spaces, pairs of characters. Stop words are left out. Forms of a word have the same stem, accents apart. With a
    tagger, words are the lemmas of nouns, names, verbs and numbers.

    Parameters
    ----------
    language : str or None
        A language by its name or code (:func:`hopfuse.text.language_named`): its Snowball stemmer, if there is one, and
        its stop words. With ``stopwords``, also another algorithm of Snowball. None for folded words.
    stopwords : str, sequence of str, or None, optional
        Words to leave out: a language, or a list of words. By default the list of ``language``, for English the longer
        one of bm25s's two lists, which has question words.
    tagger : str, optional
        An installed spaCy model with a tagger and a lemmatizer, or its path. Nothing is stemmed then, and ``language``
        determines the stop words only.
    batch_size : int, at least 1
        Texts in one pass of the tagger.
    skip_failed : float in [0, 100]
        Per cent of the passages that may be left out, because they are longer than the tagger's ``max_length``; one
        passage always may be, unless this is 0.

    Raises
    ------
    InputError
        An unknown language or model, or stop words that are not a list of strings.
    MissingExtraError
        PyStemmer or bm25s is not installed; with a tagger spaCy.

    References
    ----------
    Porter, Snowball: A language for stemming algorithms, 2001.

    Examples
    --------
    >>> from hopfuse.extract import WordReader
    >>> (found,) = WordReader().read([{"text": "The capital of France is Paris, a city of 2 rivers."}])
    >>> found.words.forms, found.words.keys
    (('capital', 'france', 'paris', 'city', '2', 'rivers'), ('capit', 'franc', 'pari', 'citi', '2', 'river'))
    """

    def __init__(
        self,
        language: str | None = LANGUAGE,
        *,
        stopwords: str | Sequence[str] | None = None,
        tagger: str | None = None,
        batch_size: int = 256,
        skip_failed: float = SKIP_FAILED,
    ) -> None:
        stemmer: str | None = None
        self._language: str | None = None
        if language is not None and stopwords is None:
            self._language = language_named(language)
            stopwords = ENGLISH_PLUS if self._language == LANGUAGE else self._language
            stemmer = None if tagger else stemmer_of(self._language)
        elif not tagger:
            stemmer = stemmer_named(language)
        info = WordInfo(0, stemmer, tagger, listed_stopwords(stopwords))
        self._begin(info, check_whole(batch_size, "batch_size"), check_share(skip_failed))

    @classmethod
    def like(cls, info: WordInfo) -> WordReader:
        """Return a reader that reads words as those of an index were read, given ``index.words``.

        Examples
        --------
        >>> from hopfuse.extract import WordReader
        >>> WordReader.like(WordReader("german").info).info.stemmer
        'german'
        """
        reader = cls.__new__(cls)
        reader._language = None
        reader._begin(replace(info, first=0), 256, SKIP_FAILED)
        return reader

    def _begin(self, info: WordInfo, batch_size: int, skip_failed: float) -> None:
        self._info, self._batch_size, self._skip_failed = info, batch_size, skip_failed
        self._stopwords = frozenset(fold(word, rule=info.rule) for word in info.stopwords)
        self._model = None
        if info.tagger is None:
            snowball_stemmer(info.stemmer)  # raise errors now, not at the first text
        else:
            needed = ("tagger", "lemmatizer")
            self._model = loaded_model(info.tagger, "WordReader", needed, exclude=("parser", "ner", "senter"))

    @property
    def info(self) -> WordInfo:
        """How words are read, as an index stores it."""
        return self._info

    @property
    def language(self) -> str | None:
        """The language that the reader was made for; None if there is none, or the stop words are the caller's own."""
        return self._language

    def read(self, passages: Any, *, progress: Progress | None = None, skips: Skips | None = None) -> list[Extraction]:
        """Return the words in the title and text of each passage.

        Parameters
        ----------
        passages : path, Arrow table, or iterable of mappings
            Rows of ``text`` and, optionally, ``id``, ``title``, ``document``, ``position`` and ``language``.
        progress : callable, optional
            Called with the number of passages that were read and the number of all.
        skips : Skips, optional
            Counts the passages that are left out over several calls; by default in this one.

        Returns
        -------
        list of Extraction
            In the order of the passages; its ``info`` is the reader's.

        Raises
        ------
        InputError
            The argument is not a table of passages, or more texts than ``skip_failed`` allows are longer than the
            tagger's ``max_length``.
        """
        return self._with_words(
            listed_passages(passages),
            lambda one, words, failure: extracted(one, words=words, failure=failure),
            progress,
            skips,
        )

    def add(
        self, extractions: Iterable[Extraction], *, progress: Progress | None = None, skips: Skips | None = None
    ) -> list[Extraction]:
        """Return extractions of another reader with the words of their passages added.

        Examples
        --------
        >>> from hopfuse.extract import Extraction, WordReader
        >>> (found,) = WordReader().add([Extraction("a", "Ada", "Ada wrote notes.", ("Ada",))])
        >>> found.entities, found.words.forms
        (('Ada',), ('ada', 'wrote', 'notes'))
        """
        return self._with_words(
            list(extractions),
            lambda one, words, failure: replace(one, words=words, failure=one.failure or failure),
            progress,
            skips,
        )

    def _with_words(
        self,
        listed: Sequence[P],
        made: Callable[[P, Words, str | None], Extraction],
        progress: Progress | None,
        skips: Skips | None,
    ) -> list[Extraction]:
        """Return what ``made`` returns for each passage, its words, and why they could not be read."""
        texts = [f"{one.title}\n{one.text}" for one in listed]
        failed: dict[int, str] = {}
        if self._model is not None:
            about = zip((one.id for one in listed), texts, strict=True)
            failed = too_long(about, self._model, skips or Skips(self._skip_failed, len(listed)))
            texts = ["" if at in failed else text for at, text in enumerate(texts)]
        found: list[Extraction] = []
        for one, words in zip(listed, self._read(texts), strict=True):
            forms = dict[str, str]()
            for key, form in words:
                forms.setdefault(key, form)
            found.append(made(one, Words(self._info, tuple(forms), tuple(forms.values())), failed.get(len(found))))
            if progress is not None:
                progress(len(found), len(listed))
        return WordExtractions(found, self._info)

    def words(self, texts: Sequence[str], *, questions: bool = False) -> list[list[Word]]:
        """Return the words of each text, in order: ``key``, ``form``, ``start`` and ``end`` in the text.

        Parameters
        ----------
        texts : sequence of str
        questions : bool
            Leave out words that only ask, by the language of each question (:func:`hopfuse.text.question_words`),
            unless a question has no others. If the reader has no stop words, none is left out.

        Raises
        ------
        InputError
            A single string, or an entry that is not a string.

        Examples
        --------
        >>> from hopfuse.extract import WordReader
        >>> WordReader().words(["Who is the King?"])
        [[Word(key='king', form='king', start=11, end=15)]]
        """
        listed = checked_texts(texts)
        if self._model is not None:
            found = [list(self._lemmas(doc)) for doc in self._docs(listed)]
        else:
            keys, rule = _keys(self._info), self._info.rule
            found = [list(_stems(fold_with_offsets(text, rule=rule), keys, rule)) for text in listed]
        return [self._telling(words, text) for words, text in zip(found, listed, strict=True)] if questions else found

    def keys(self, names: Sequence[str]) -> list[str]:
        """Return the keys of words, given by their names in an index."""
        return word_keys(self._info, names)

    def _read(self, texts: Sequence[str]) -> Iterator[Iterator[tuple[str, str]]]:
        """Yield the words of each text: their keys and forms."""
        if self._model is not None:
            return (((word.key, word.form) for word in self._lemmas(doc)) for doc in self._docs(texts))
        keys, rule = _keys(self._info), self._info.rule
        return (
            ((key, form) for form in read_words(text, rule=rule) if (key := keys[form]) is not None) for text in texts
        )

    def _telling(self, words: list[Word], question: str) -> list[Word]:
        """Return the words of a question that do not only ask, or all if there are no others."""
        info = self._info
        asking = asking_words(question, info.stopwords, info.stemmer, info.rule)
        if not asking:
            return words
        return [word for word in words if unaccented(fold(question[word.start : word.end])) not in asking] or words

    def _docs(self, texts: Sequence[str]) -> Iterator[Any]:
        assert self._model is not None
        found: Iterator[Any] = self._model.pipe(texts, batch_size=self._batch_size)
        return found

    def _lemmas(self, doc: Any) -> Iterator[Word]:
        rule = self._info.rule
        for one in doc:
            form, lemma = fold(one.text, rule=rule), fold(one.lemma_, rule=rule)
            if one.pos_ in CONTENT and form not in self._stopwords and segment(lemma, rule=rule):
                yield Word(lemma, lemma, one.idx, one.idx + len(one.text))


class WordMatcher:
    """Finds words of an index in questions, which are read as the index's passages were.

    Of several words of a key, the latest is found. The matcher can be a recipe's ``matcher``: each word of the index is
    a seed with weight 1 / (number of passages with it).

    Parameters
    ----------
    index : Index
        With words: :attr:`hopfuse.Index.words`.

    Raises
    ------
    InputError
        An index without words.
    MissingExtraError
        The index's stemmer needs PyStemmer, its tagger spaCy and the model.

    Examples
    --------
    >>> from hopfuse.extract import WordMatcher, WordReader, build_memory
    >>> texts = ["Rivers flow into the sea.", "Ada wrote notes.", "A river is long."]
    >>> index = build_memory(WordReader().read([{"text": text} for text in texts])).index()
    >>> [(index.entity_names[m.entity], m.surface) for m in WordMatcher(index).match(["Who swam in this River?"])[0]]
    [('rivers', 'River')]
    """

    def __init__(self, index: Index) -> None:
        if index.words is None:
            raise InputError(
                "missing",
                "index",
                "{field} has no words; build it with reader='words', or with hopfuse build --reader words",
            )
        self._index, self._reader = index, WordReader.like(index.words)
        self._words, self._numbers = _WORDS.get(index)

    def match(self, texts: Sequence[str]) -> list[list[Match]]:
        """Return the index's words in each text, in order; ``"alias"`` if the form is not the entity's name.

        Raises
        ------
        InputError
            A single string, or an entry that is not a string.
        """
        rows = zip(texts, self._reader.words(texts, questions=True), strict=True)
        return [[match for word in words for match in self._matches(word, text)] for text, words in rows]

    def part(self, part: IndexPart) -> WordMatcher:
        """Return the matcher of a part of the index, for isolated searches; the tables of words are shared."""
        return self.over(part.index)

    def over(self, part: Index) -> WordMatcher:
        """Return the matcher of an index; if it is a part of this matcher's, the tables of words are shared."""
        of = part.part_of
        if of is None or of.whole() is not self._index:
            return WordMatcher(part)
        other = copy(self)
        other._index, other._numbers = part, of.numbers(self._numbers)
        return other

    def of_state(self, index: Index) -> WordMatcher:
        """Return the matcher of another state of the index; the tables of words are continued.

        Examples
        --------
        >>> import tempfile, hopfuse as hf
        >>> from hopfuse.extract import WordMatcher, WordReader, build_memory
        >>> folder, reader = tempfile.mkdtemp(), WordReader()
        >>> saved = build_memory(reader.read([{"id": "a", "text": "The sea."}])).index().save(folder)
        >>> with hf.Index.open(folder, writable=True) as live:
        ...     matcher = WordMatcher(live.index)
        ...     with live.change() as change:
        ...         change.add_passages([{"id": "b", "text": "A river."}])
        ...         change.add_memory(build_memory(reader.read([{"id": "b", "text": "A river."}])))
        ...     later = matcher.of_state(live.refresh())
        >>> [match.surface for match in later.match(["sea or river"])[0]]
        ['sea', 'river']
        """
        if index.words is not None:
            words, numbers = _WORDS.get(index)
            if words is self._words:
                other = copy(self)
                other._index, other._numbers = index, numbers
                return other
        return WordMatcher(index)

    def _matches(self, word: Word, text: str) -> Iterator[Match]:
        """Yield the match of a word, if the index has it."""
        entity = max(self._numbers.of(self._words.numbers.get(word.key, ())), default=-1)
        if entity >= 0:
            kind: Kind = "exact" if self._index.entity_names[entity] == word.form else "alias"
            yield Match(entity, text[word.start : word.end], word.start, word.end, kind)


class _Words(EntityTable):
    """The numbers of words by their keys."""

    def __init__(self, info: WordInfo) -> None:
        super().__init__()
        self._info = info
        self.numbers = defaultdict[str, list[int]](list)

    def reads_like(self, info: WordInfo) -> bool:
        """Return whether words are read in this way."""
        fields = ("stemmer", "tagger", "rule", "stopwords")
        return all(getattr(info, name) == getattr(self._info, name) for name in fields)

    def _add(self, entities: list[Entity]) -> None:
        words = [one for one in entities if one.is_word]
        for key, word in zip(word_keys(self._info, [one.name for one in words]), words, strict=True):
            self.numbers[key].append(word.number)


def _words_in(index: Index) -> tuple[_Words, RowNumbers]:
    """Return the table of an index's words, and the rows that the words have in it."""
    assert index.words is not None
    numbers = entity_numbers(index)
    return _Words(index.words).fill(index, numbers), numbers


def _words_of_state(index: Index, earlier: Index, known: tuple[_Words, RowNumbers]) -> tuple[_Words, RowNumbers] | None:
    """Return the same for a later state, continued; None if it must be made anew."""
    numbers, (words, before) = entity_numbers(index), known
    assert index.words is not None
    is_continued = words.reads_like(index.words) and words.continued(index, numbers, before)
    return (words, numbers) if is_continued else None


_WORDS: Continued[Index, tuple[_Words, RowNumbers]] = Continued(_words_in, _words_of_state, family_of)


def word_keys(info: WordInfo, names: Sequence[str]) -> list[str]:
    """Return the key of each word: its stem or, with a tagger, the word itself, which is a lemma."""
    return list(names) if info.tagger is not None else _keys(info).all_of(names)


def _keys(info: WordInfo) -> Keys:
    return Keys(info.stopwords, info.stemmer, info.rule)


def _stems(folded: FoldedText, keys: Keys, rule: int) -> Iterator[Word]:
    for start, end in segment(folded.text, rule=rule):
        form = folded.text[start:end]
        key = keys[form]
        if key is not None:
            yield _placed(Word(key, form, start, end), folded)


def _placed(word: Word, folded: FoldedText) -> Word:
    """Return a word with its place in the original text, which covers all segments that it touches."""
    first, last = word.start, word.end - 1
    while folded.start_at[first] < 0:
        first -= 1
    while folded.end_at[last] < 0:
        last += 1
    return word._replace(start=folded.start_at[first], end=folded.end_at[last])
