"""Derive what a build was not given from texts and names: vectors by an encoder, and BM25."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from .._validation import check_type
from ..encoders import Encoder
from ..errors import InputError, MissingExtraError
from ..lexical import BM25, stemmer_of
from ..text import common_words, language_named
from ..types import Corpus, TermMatrix
from . import parts
from .contents import Contents, Failed, passage_vectors
from .parts.encoder import EncoderInfo

#: Values of ``lexical=`` beside languages: without BM25, and BM25 with neither stop words nor stems.
NO_WORDS, PLAIN = "none", "plain"
ENGLISH = "english"


class Terms(NamedTuple):
    """The stop words and the stemmer of BM25, as :meth:`hopfuse.lexical.BM25.build` takes them."""

    stopwords: str | Sequence[str] | None = ENGLISH
    stemmer: str | None = ENGLISH

    @classmethod
    def of(cls, language: str) -> Terms:
        """Return the stop words and the stemmer of a language, given by its name or code.

        Stop words are few in every language: more would lose phrases of common words, which idf weighs anyway.
        """
        named = language_named(language, "lexical")
        return cls(ENGLISH if named == ENGLISH else common_words(named), stemmer_of(named))

    def matrix(self, texts: Sequence[str]) -> TermMatrix:
        """Return the matrix of BM25 over texts."""
        return BM25.build(texts, stopwords=self.stopwords, stemmer=self.stemmer).matrix


def terms_of(lexical: Any, default: Terms | None = None) -> Terms | None:
    """Return how BM25 reads texts by the argument ``lexical`` of a build, or None if there is none to make.

    Parameters
    ----------
    lexical : str, bool or None
    default : Terms, optional
        For True and, where the packages are installed, for None.

    Raises
    ------
    InputError
        Not a bool or a string, or a language without stop words or stems.
    MissingExtraError
        BM25 is asked for, and its packages are not installed.

    Warns
    -----
    UserWarning
        BM25 would be made by default, and its packages are not installed.
    """
    if lexical is False or lexical == NO_WORDS or (lexical is None and default is None):
        return None
    if lexical is not None and not isinstance(lexical, bool):
        check_type(lexical, "lexical", str, f"a language such as 'english', {PLAIN!r}, {NO_WORDS!r}, a bool or None")
        default = Terms(None, None) if lexical == PLAIN else Terms.of(lexical)
    found = Terms() if default is None else default
    try:
        found.matrix([])
    except MissingExtraError as error:
        if lexical is not None:
            raise
        warnings.warn(f"the index has no BM25: {error}", UserWarning, stacklevel=4)
        return None
    except InputError as error:
        raise error.about("lexical") from None
    return found


def derived_vectors(
    contents: Contents, passages: Encoder | None, names: Encoder | None, failed: Failed | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the sections and parts of the vectors that an index lacks.

    ``passages`` is recorded as the encoder of the passages' vectors, and makes them if there are none. ``names`` makes
    vectors of the entities, unless there are some or all entities are words, which are matched exactly. ``failed`` is
    called for passages that the encoder refuses.
    """
    arrays: dict[str, Any] = {}
    made: dict[str, Any] = {}

    def add(section: str, part: str, vectors: Any) -> None:
        made[part] = Corpus.from_array(vectors, metric=contents.metric, storage=contents.storage)
        arrays[section] = made[part].vectors

    if passages is not None:
        info = EncoderInfo.of(passages)
        if contents.dim is None:
            texts, ids = contents.texts_to_index(), contents.passage_ids
            vectors = passage_vectors(passages, texts, ids, failed, contents.metric)
            add("passage.vectors", "corpus", vectors)
        parts.encoder.check_dim(info, made["corpus"].dim if made else contents.dim, None)
        made["encoder"] = info
        arrays |= parts.encoder.build(info)
    named = contents.num_entities if contents.words is None else contents.words.first
    if names is not None and named and "entity.vectors" not in contents.sections:
        add("entity.vectors", "entity_corpus", names.encode_passages(list(contents.entity_names)))
    return arrays, made
