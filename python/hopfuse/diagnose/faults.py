"""Find what is wrong with the data of an index: each fault with a number, an example and a fix."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

import numpy as np

from .._validation import counted
from ..errors import HopfuseError, MissingExtraError
from ..extract import FUNCTION_WORDS
from ..index import Index
from ..index.contents import text_to_index
from ..lexical import listed_stopwords
from ..retriever import Retriever
from ..text import UNSPACED, function_words, is_told, language_of, resembles, script_of, shares_of
from ..types import Incidence
from .rankings import retriever_of
from .samples import drawn_rows, letters_of

#: Drawn passages whose language and script are told, and those whose vectors are made again.
READ, REMADE = 2_000, 24
#: The longest 1 % of the passages are too long if they have this share of the text, and this ratio to the median.
TEXT, RATIO = 0.1, 6.0
#: Shares of passages, or of names, from which something is a fault.
FEW, MANY, MOST = 0.01, 0.2, 0.9
#: A function word is a fault if so many passages, and this share of them, have it as an entity.
WORD_PASSAGES, WORD_SHARE = 3, 0.005
#: Vectors made again have at least this cosine to those of the index, if the encoder is the same.
SAME = 0.95
#: Names of encoders that were trained on English texts, in lower case.
ENGLISH_ENCODERS = re.compile("^wordllama|all-minilm")


@dataclass(frozen=True)
class Fault:
    """Something that is wrong with the data of an index; ``str()`` says it in sentences.

    Attributes
    ----------
    what : str
        What is wrong, in a few words.
    count, total : int
        How many passages, names or entities it concerns, and of how many.
    why : str
        What it does to searches.
    example : str
    fix : str
        What to do.
    """

    what: str
    count: int
    total: int
    why: str
    example: str
    fix: str

    @property
    def share(self) -> float:
        """``count`` of ``total``."""
        return self.count / self.total

    def __str__(self) -> str:
        share = 100 * self.share
        percent = f"{share:.0f}" if share >= 9.5 else f"{share:.1g}"
        counts = f"{self.count:,} of {self.total:,} ({percent} %)"
        return f"{self.what}: {counts}. {self.why} Example: {self.example}. {self.fix}"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form."""
        return {**asdict(self), "share": self.share}


def find_faults(retriever: Retriever | Index) -> list[Fault]:
    """Return what is wrong with the data of an index.

    Faults of texts are empty ones, equal ones, lengths that differ widely, languages that BM25, the words or the
    encoder were not made for, and scripts without spaces. Faults of passages are missing vectors, vectors that the
    encoder does not make again, and passages in which no reader found anything. Faults of entities are names that only
    one passage has, and function words.

    Parameters
    ----------
    retriever : Retriever or Index
        The encoder of a retriever makes the vectors of a few passages again.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import find_faults
    >>> index = hf.Index.build(passages=[{"id": "a", "text": "The sea."}, {"id": "b", "text": ""}])
    >>> print(*find_faults(index))
    Passages without text: 1 of 2 (50 %). Nothing finds them but their titles. Example: b. Leave them out.
    """
    data = _Data.of(retriever_of(retriever))
    found = (check(data) for check in _CHECKS) if data.index.num_passages else ()
    return [fault for fault in found if fault is not None]


@dataclass(frozen=True, eq=False)
class _Data:
    """The inputs that checks share: titles and texts, the drawn rows, and their languages and scripts by row."""

    retriever: Retriever
    texts: list[str]
    titles: list[str]
    drawn: list[int]
    languages: dict[int, str | None]
    scripts: dict[int, str | None]

    @classmethod
    def of(cls, retriever: Retriever) -> _Data:
        titles, texts = list(retriever.index.titles), list(retriever.index.texts)
        drawn = drawn_rows(retriever.index)[:READ]
        read = {row: f"{titles[row]}\n{texts[row]}" for row in drawn}
        languages = {row: language_of(text) for row, text in read.items()}
        return cls(retriever, texts, titles, drawn, languages, {row: script_of(text) for row, text in read.items()})

    @property
    def index(self) -> Index:
        return self.retriever.index

    def id(self, row: int) -> str:
        return str(self.index.passage_ids[row])

    def fault(self, what: str, rows: Sequence[int], why: str, fix: str, *, total: int | None = None) -> Fault:
        """Return a fault of passages, of which the first is the example."""
        return Fault(what, len(rows), self.index.num_passages if total is None else total, why, self.id(rows[0]), fix)


def _empty_texts(data: _Data) -> Fault | None:
    rows = [row for row, text in enumerate(data.texts) if not text.strip()]
    if not rows:
        return None
    return data.fault("Passages without text", rows, "Nothing finds them but their titles.", "Leave them out.")


def _equal_texts(data: _Data) -> Fault | None:
    first, rows = dict[str, int](), list[int]()
    for row, text in enumerate(data.texts):
        key = letters_of(text)
        if key and first.setdefault(key, row) != row:
            rows.append(row)
    if not rows or len(rows) < FEW * len(data.texts):
        return None
    example = f"{data.id(rows[0])} and {data.id(first[letters_of(data.texts[rows[0]])])}"
    why = "They take the places of other passages in every list."
    fix = "Keep one of each; --per-document 1 lists one of texts that are the same in every letter."
    what = "Passages with the letters of an earlier one, but for case, digits and punctuation"
    return Fault(what, len(rows), len(data.texts), why, example, fix)


def _unequal_lengths(data: _Data) -> Fault | None:
    lengths = np.array([len(text) for text in data.texts], np.int64)
    order = np.argsort(-lengths, kind="stable")
    longest = order[: ceil(0.01 * lengths.size)]
    median = max(1.0, float(np.median(lengths)))
    ratio = float(lengths[longest[-1]]) / median
    share = float(lengths[longest].sum() / max(1, lengths.sum()))
    if ratio < RATIO or share < TEXT:
        return None
    why = (
        f"The longest 1 % of the passages have {100 * share:.0f} % of the text, and at least {ratio:.0f} times the "
        f"median of {median:,.0f} characters. Long passages are found too often by a walk, and too seldom by vectors."
    )
    rows = order[: int((lengths >= RATIO * median).sum())]
    example = f"{data.id(int(order[0]))}, {lengths[order[0]]:,} characters"
    fix = "Cut the texts at headings and paragraphs, into passages of about equal length."
    return Fault(f"Passages of {RATIO:.0f} times the median length or more", rows.size, lengths.size, why, example, fix)


def _no_vectors(data: _Data) -> Fault | None:
    vectors = data.index.vectors
    rows = [] if vectors is None else np.flatnonzero(~np.any(vectors, axis=1)).tolist()
    if not rows:
        return None
    fix = "Encode them again, or leave them out."
    return data.fault("Passages whose vectors are all zeros", rows, "Dense search cannot find them.", fix)


def _other_encoder(data: _Data) -> Fault | None:
    encoder, corpus = data.retriever.encoder, data.index.corpus
    rows = [row for row in data.drawn if data.texts[row].strip()][:REMADE]
    if encoder is None or corpus is None or encoder.dim != corpus.dim or not rows:
        return None
    texts = [text_to_index(data.titles[row], data.texts[row]) for row in rows]
    try:
        made = np.asarray(encoder.encode_passages(texts), np.float64)
    except HopfuseError:  # an endpoint that does not answer, which the verdict's questions meet too
        return None
    kept = np.stack([corpus.as_float32(row, row + 1)[0] for row in rows]).astype(np.float64)
    norms = np.linalg.norm(made, axis=1) * np.linalg.norm(kept, axis=1)
    cosines = (made * kept).sum(axis=1) / np.where(norms > 0, norms, 1)
    wrong = [row for row, cosine in zip(rows, cosines.tolist(), strict=True) if cosine < SAME]
    if 2 * len(wrong) < len(rows):
        return None
    what = f"Passages whose vectors are not those that the encoder {encoder.name!r} makes of them"
    why = f"The mean cosine is {cosines.mean():.2f}, and should be about 1: questions are compared with another space."
    fix = "Give the encoder that made the vectors (--encoder), or make them again."
    return data.fault(what, wrong, why, fix, total=len(rows))


def _other_language(data: _Data) -> Fault | None:
    """Texts in another language than that in which BM25, or the words of the graph, are read."""
    index = data.index
    read = dict[str, str]()
    if index.words is not None and index.words.stemmer is not None:
        read["--language"] = index.words.stemmer
    if index.lexical is not None and index.lexical.stemmer is not None:
        read["--lexical"] = index.lexical.stemmer
    known = {row: own for row, own in data.languages.items() if own is not None}
    for option, language in read.items():
        if not is_told(language):
            continue
        rows = [row for row, own in known.items() if not resembles(data.texts[row], language, own)]
        if rows and len(rows) >= MANY * len(known):
            most = next(iter(shares_of(known[row] for row in rows)))
            rows.sort(key=lambda row: known[row] != most)
            part = "BM25 reads texts" if option == "--lexical" else "the words of the graph were read"
            why = (
                f"By their stop words, most of them are {most}, and {part} as {language}: stop words count, and forms "
                "of a word do not meet."
            )
            what = f"Passages in another language than {language}"
            return data.fault(what, rows, why, f"Build with {option} {most}.", total=len(known))
    return None


def _english_encoder(data: _Data) -> Fault | None:
    """Texts of another language or script beside an encoder that was trained on English."""
    encoder = data.index.encoder
    if encoder is None or data.index.corpus is None or ENGLISH_ENCODERS.search(encoder.name.lower()) is None:
        return None
    kinds = {
        row: own if own is not None else f"in {data.scripts[row]} letters"
        for row, own in data.languages.items()
        if own is not None or data.scripts[row] not in (None, "Latin")
    }
    rows = [row for row, kind in kinds.items() if kind != "english"]
    if not rows or len(rows) < MANY * len(kinds):
        return None
    most = next(iter(shares_of(kinds[row] for row in rows)))
    why = f"Most of them are {most}, and the encoder {encoder.name!r} was trained on English."
    fix = "Make the vectors by an encoder of that language, or a multilingual one."
    return data.fault("Passages in another language than that of the encoder", rows, why, fix, total=len(kinds))


def _unspaced_scripts(data: _Data) -> Fault | None:
    index = data.index
    rows = [row for row, script in data.scripts.items() if script in UNSPACED]
    if not rows or len(rows) < FEW * len(data.scripts):
        return None
    if 1 not in (part.rule for part in (index.lexical, index.words) if part is not None):
        return None
    what = f"Passages in a script without spaces between words ({data.scripts[rows[0]]})"
    why = "Their words are read as whole runs of letters, so that no word of a question is found in them."
    fix = "Build the index again: from reading rule 2 on, such texts are cut into pairs of characters."
    return data.fault(what, rows, why, fix, total=len(data.scripts))


def _nothing_read(data: _Data) -> Fault | None:
    index = data.index
    if index.graph is None:
        return None
    names_of = Incidence.from_graph(index.graph, index.num_passages)
    rows = [row for row in np.flatnonzero(np.diff(names_of.indptr) == 0).tolist() if data.texts[row].strip()]
    if not rows or len(rows) < FEW * index.num_passages:
        return None
    fix = "Read them with --reader words, or in their own language (--language)."
    return data.fault("Passages in which no reader found a name or a word", rows, "No walk reaches them.", fix)


def _names_of_one_passage(data: _Data) -> Fault | None:
    index = data.index
    frequency = index.passage_frequency
    if frequency is None:
        return None
    names = index.num_entities if index.words is None else index.words.first
    single = np.flatnonzero(frequency[:names] == 1)
    if not single.size or single.size < MOST * names:
        return None
    why = "A walk from such a name stays in its passage, unless facts or synonyms lead on."
    fix = "Join the spellings of a name (--synonyms, or aliases), or add the words of the texts (--reader words)."
    return Fault("Names of a single passage", single.size, names, why, repr(index.entity_names[int(single[0])]), fix)


def _function_words(data: _Data) -> Fault | None:
    index = data.index
    frequency = index.passage_frequency
    shares = shares_of(data.languages.values())
    if frequency is None or not shares:
        return None
    spoken = [language for language, share in shares.items() if share >= MANY]
    read_as = None if index.words is None else index.words.stemmer  # whose stop words were left out
    of_names, of_words = (
        frozenset[str]().union(*(_stop_words(language) for language in spoken if language != left_out))
        for left_out in (None, read_as)
    )
    names = index.num_entities if index.words is None else index.words.first
    least = max(WORD_PASSAGES, WORD_SHARE * index.num_passages)
    found = []
    for entity in np.flatnonzero(frequency >= least).tolist():
        name = index.entity_names[entity]
        words = letters_of(name).split()
        if name.islower() and words and (of_names if entity < names else of_words).issuperset(words):
            found.append((int(frequency[entity]), name))
    if not found:
        return None
    most, name = max(found)
    language = next(iter(shares))
    fix = f"Read the texts in their own language ({language}): --language, or a model of that language."
    example = f"{name!r}, in {counted(most, 'passage')}"
    why = "A walk from such a word leads anywhere."
    return Fault("Function words among the names and words", len(found), index.num_entities, why, example, fix)


def _stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language: the project's own too for English; without bm25s, function words."""
    try:
        listed = frozenset(listed_stopwords(language))
    except MissingExtraError:
        listed = frozenset(function_words(language))
    return listed | FUNCTION_WORDS if language == "english" else listed


_CHECKS: tuple[Callable[[_Data], Fault | None], ...] = (
    _empty_texts,
    _equal_texts,
    _unequal_lengths,
    _no_vectors,
    _other_encoder,
    _other_language,
    _english_encoder,
    _unspaced_scripts,
    _nothing_read,
    _names_of_one_passage,
    _function_words,
)
