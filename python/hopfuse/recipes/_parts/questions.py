"""The questions of a batch: what they are given, and what the encoder and the matcher make of their texts."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays.convert import to_numpy
from ..._validation import check_length, check_shape, check_type, check_unused, wrong_type
from ...encoders import Encoder
from ...encoders.protocol import first_unencodable
from ...errors import HopfuseError, InputError
from ...index import Index
from ...types import Hits
from ..protocol import Needs
from .config import needed
from .mentions import Matcher, read_mentions, read_row
from .spelling import is_one_case, spelled

_LISTS = (list, tuple)
#: Codes of the operations' errors about vectors.
_OF_VECTORS = ("dtype", "finite", "shape", "zero")


class QuestionBatch(NamedTuple):
    """The questions of a batch. None stands for what a question is asked without; what a search reads is complete.

    Attributes
    ----------
    size : int
        B, the number of questions.
    texts : list of (str or None), or None
    vectors : ndarray (B, d), list of (ndarray (d,) or None), or None
    mentions : list of (list or None), or None
        Names, entity numbers and matches in each question. A None among them stands for an entity that a part of the
        index does not have.
    matched : collection of int
        Questions whose mentions the matcher found.
    encoded : ndarray (B, d), or None
        The encoder's vectors of the texts, whatever vectors are given; for a recipe that compares other things with
        them than what it ranks.
    edge_weights : ndarray (n,) or (B, n), or None
        Weights of edge types, for a recipe that takes them.
    """

    size: int
    texts: Sequence[Any] | None
    vectors: Any
    mentions: Sequence[Any] | None
    matched: Collection[int] = ()
    encoded: NDArray[Any] | None = None
    edge_weights: NDArray[Any] | None = None

    def with_names(self, matcher: Matcher | None, num_entities: int) -> QuestionBatch:
        """Return the questions with the matcher's mentions where none are given."""
        rows = _gaps(self.mentions, self.size)
        if not rows and self.mentions is not None:
            return self
        assert matcher is not None
        assert self.texts is not None
        found = matcher.match([self.texts[b] for b in rows])
        mentions = [None] * self.size if self.mentions is None else list(self.mentions)
        for b, row in zip(rows, found, strict=True):
            mentions[b] = read_row(row, f"entities[{b}]", num_entities)
        return self._replace(mentions=mentions, matched=frozenset(rows))

    def with_vectors(self, encoder: Encoder | None, index: Index, *, encoded: bool) -> QuestionBatch:
        """Return the questions with the encoder's vectors where none are given; ``encoded``: and with all of its own.

        The encoder reads texts with the names among their mentions (:func:`spelled`).
        """
        rows = self._to_encode(encoded)
        if self.encoded is not None or (not rows and self.vectors is not None):
            return self
        assert encoder is not None
        assert self.texts is not None
        texts = [self.texts[b] for b in rows]
        if self.mentions is not None:
            texts = spelled(texts, [self.mentions[b] or () for b in rows], index)
        made = encoder.encode_queries(texts) if rows else np.zeros((0, encoder.dim), np.float32)
        made = np.atleast_2d(to_numpy(made, "vectors"))
        check_length(len(made), "vectors", len(rows), "query")
        whole = made if encoded else None
        if self.vectors is None:
            return self._replace(vectors=made, encoded=whole)
        if isinstance(self.vectors, np.ndarray):
            return self._replace(encoded=whole)
        own = dict(zip(rows, made, strict=True))
        stacked = [own[b] if row is None else row for b, row in enumerate(self.vectors)]
        return self._replace(vectors=np.stack(stacked), encoded=whole)

    def waits_for_names(self, *, encoded: bool) -> bool:
        """Return whether the encoder is to read a text with the names in it: one in one case."""
        return self.texts is not None and any(is_one_case(self.texts[b]) for b in self._to_encode(encoded))

    def check(self, needs: Needs, encoder: Encoder | None, matcher: Matcher | None, *, encoded: bool) -> None:
        """Refuse questions that lack what a search reads and nothing makes."""
        if needs.texts:
            if self.texts is None:
                raise needed("queries", "the search", "the questions as text")
            self._check_texts(range(self.size), "the search")
        if needs.vectors:
            fix = "or queries= and a recipe with encoder="
            self._check_maker("vectors", self.vectors, encoder, "the encoder", fix)
        if needs.entities:
            fix = "or queries= and a recipe with matcher=hopfuse.extract.QuestionMatcher(index)"
            self._check_maker("entities", self.mentions, matcher, "the matcher", fix)
        rows = self._to_encode(encoded) if needs.vectors or encoded else ()
        if self.texts is not None and encoder is not None and rows:
            empty = first_unencodable(encoder.encode_queries, [self.texts[b] for b in rows])
            if empty is not None:
                raise InputError(
                    "empty",
                    f"queries[{rows[empty]}]",
                    "{field} is empty, and the encoder has no vector for it; give it words, or leave it out",
                )

    def _check_maker(self, field: str, given: Any, maker: Any, name: str, fix: str) -> None:
        """Refuse an input that is missing where nothing makes it, or has no text to make it of."""
        if given is None and (self.texts is None or maker is None):
            raise needed(field, "search", fix)
        rows = _gaps(given, self.size)
        if rows and maker is None:
            raise needed(field, "search", fix).about(f"{field}[{rows[0]}]")
        self._check_texts(rows, name)

    def _check_texts(self, rows: Sequence[int], reader: str) -> None:
        """Refuse questions without a text that is read."""
        for b in rows:
            if self.texts is None or self.texts[b] is None:
                raise needed("queries", reader, "the questions as text").about(f"queries[{b}]")

    def _to_encode(self, encoded: bool) -> Sequence[int]:
        return range(self.size) if encoded else _gaps(self.vectors, self.size)


def read_questions(
    queries: Any, vectors: Any, entities: Any, needs: Needs, *, dim: int | None, num_entities: int, name: str
) -> QuestionBatch:
    """Return the questions of a batch as they are given.

    Parameters
    ----------
    queries, vectors, entities
        As of a recipe's ``search``.
    needs : Needs
    dim : int or None
        Of the vectors that the questions are compared with.
    num_entities : int
    name : str
        Of the recipe, for refusals.
    """
    if not (needs.vectors or _is_nothing(vectors)):
        check_unused("vectors", vectors, f"this {name} does not read it")
    if not (needs.entities or _is_nothing(entities)):
        check_unused("entities", entities, f"this {name} does not read it")
    texts = None if queries is None else _read_texts(queries)
    rows = None if vectors is None else _read_vectors(vectors, dim)
    mentions = None if entities is None else read_mentions(entities, num_entities)
    size = -1
    for field, given in (("queries", texts), ("vectors", rows), ("entities", mentions)):
        if given is not None:
            size = len(given) if size < 0 else size
            check_length(len(given), field, size, "query")
    return QuestionBatch(
        max(size, 0), texts, None if _is_nothing(rows) else rows, None if _is_nothing(mentions) else mentions
    )


def _read_texts(queries: Any) -> list[Any]:
    if not isinstance(queries, list) and (
        isinstance(queries, str | bytes) or not isinstance(queries, Sequence | np.ndarray)
    ):
        raise wrong_type(queries, "queries", "a list of strings: [question]")
    listed = list(queries)
    for b, text in enumerate(listed):
        if not isinstance(text, str) and text is not None:
            check_type(text, f"queries[{b}]", str, "a string")
    return listed


def _read_vectors(vectors: Any, dim: int | None) -> Any:
    """Return vectors (B, d), or a list of vectors (d,) and None. The operations check their values."""
    if isinstance(vectors, _LISTS) and not vectors:
        return np.zeros((0, dim or 0), np.float32)
    if not isinstance(vectors, _LISTS) or not any(row is None for row in vectors):
        return np.atleast_2d(to_numpy(vectors, "vectors"))
    rows = [None if row is None else to_numpy(row, f"vectors[{b}]") for b, row in enumerate(vectors)]
    for b, row in enumerate(rows):
        if row is not None:
            check_shape(row.shape, f"vectors[{b}]", ("d" if dim is None else dim,))
    return rows


def named_as_given(error: InputError, rows: NDArray[np.int64] | None = None) -> HopfuseError:
    """Return an error of a search with the argument that it is about, and the question's number in the batch.

    The operations name vectors ``queries``. ``rows`` are the batch's numbers of the questions that were searched.
    """
    found = re.match(r"(queries|vectors|entities)(?:\[(\d+)\])?", error.field or "")
    if found is None:
        return error
    name = "vectors" if found[1] == "queries" and error.code in _OF_VECTORS else found[1]
    number = None if found[2] is None else int(found[2])
    if number is not None and rows is not None and number < rows.size:
        number = int(rows[number])
    place = "" if number is None else f"[{number}]"
    return error.about(name + place + str(error.field)[found.end() :])


def _is_nothing(rows: Any) -> bool:
    """Return whether every question is asked without."""
    if rows is None or not isinstance(rows, _LISTS):
        return rows is None
    return len(rows) > 0 and all(row is None for row in rows)


def _gaps(rows: Any, size: int) -> Sequence[int]:
    """Return the questions that are asked without."""
    if rows is None:
        return range(size)
    return () if isinstance(rows, np.ndarray) else [b for b, row in enumerate(rows) if row is None]


# ---- Notes -----------------------------------------------------------------------------------------------------------


def notes_of(
    asked: QuestionBatch, seeds: Sequence[Collection[Any]] | None, unknown: Collection[str], *words: Hits | None
) -> list[list[InputError]]:
    """Return the notes of each question.

    Parameters
    ----------
    asked : QuestionBatch
    seeds : sequence of B collections, or None
        The entities that each question names; None for a recipe that reads none.
    unknown : collection of str
        Given names of no entity.
    *words : Hits or None
        The lists of what has words of each question; None for one that is not made.
    """
    notes: list[list[InputError]] = [[] for _ in range(asked.size)]
    if unknown and asked.mentions is not None:
        for b, row in enumerate(asked.mentions):
            if b not in asked.matched:
                notes[b] += [_unknown_name(i, name) for i, name in enumerate(row) if name in unknown]
    lists = [hits for hits in words if hits is not None]
    if asked.texts is None or not (lists or asked.matched):
        return notes
    for b, text in enumerate(asked.texts):
        is_known = bool(seeds and seeds[b]) or any(hits.counts[b] for hits in lists)
        if not is_known and (lists or b in asked.matched) and text and text.strip():
            notes[b].append(_unknown_text(text))
    return notes


def _unknown_name(place: int, name: str) -> InputError:
    return InputError(
        "unknown",
        f"entities[{place}]",
        "{field} is {given!r}, and no entity that is searched has this name; correct the name, or leave it out",
        given=name,
    )


def _unknown_text(text: str) -> InputError:
    return InputError(
        "unknown",
        "text",
        "{field} is {given!r}, and no name and no word of it is known to what is searched",
        given=text,
    )


def nothing_allowed() -> InputError:
    """Return the note for a question whose filter lets no passage through."""
    return InputError("empty", "allow", "{field} lets no passage through, so nothing is found; change the filter")
