"""The questions of a batch: gaps in what is given, what is not read, notes as errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._arrays.convert import to_numpy
from .._validation import check_length, check_type
from ..errors import InputError
from .state import RetrieverState, is_there

#: The argument of a search by the field of one question.
_COLUMNS = {"text": "questions", "vector": "vectors", "entities": "entities"}


def has_gaps(rows: Any) -> bool:
    """Return whether some questions are asked without this input, perhaps since their text has no words."""
    return isinstance(rows, list | tuple) and not all(map(is_there, rows))


def check_rows(state: RetrieverState, texts: Any, vectors: Any, entities: Any) -> None:
    """Refuse the first question that lacks an input which cannot be made."""
    columns = [rows if rows is None or has_gaps(rows) else True for rows in (texts, vectors, entities)]
    batch = max((len(one) for one in columns if isinstance(one, list | tuple)), default=0)
    for b in range(max(1, batch)):
        text, vector, named = (
            next(iter(one[b : b + 1]), None) if isinstance(one, list | tuple) else one for one in columns
        )
        try:
            state.check_inputs(text, vector, named)
        except InputError as error:
            place = f"[{b}]" if batch else ""
            raise error.about(_COLUMNS[str(error.field)] + place) from None
        lack = state.lack(vector, named)
        if lack is not None:
            raise lack[1].about()


def unread_rows(state: RetrieverState, batch: int, vectors: Any, entities: Any) -> list[tuple[int, InputError]]:
    """Return a note for each of a batch of questions with an input that the recipe does not read."""
    needs, unread = state.needs, dict[str, Any]()
    if vectors is not None and not needs.vectors:
        unread["vector"] = vectors if has_gaps(vectors) else np.atleast_2d(to_numpy(vectors, "vectors"))
    if entities is not None and not needs.entities:
        check_type(entities, "entities", Sequence, "the mentions of each question: [[name, ...], ...]")
        unread["entities"] = entities
    for field, rows in unread.items():
        check_length(len(rows), _COLUMNS[field], batch, "question")
    return [(b, _unread(field)) for field, rows in unread.items() for b, one in enumerate(rows) if one is not None]


def _unread(field: str) -> InputError:
    return InputError("unused", field, "{field} is given, and the recipe reads none over this index; leave it out")


def read_inputs(state: RetrieverState, texts: Any, vectors: Any, entities: Any) -> tuple[Any, Any]:
    """Return the vectors and entities that the recipe reads; refuse questions that lack an input nothing makes."""
    needs = state.needs
    vectors, entities = vectors if needs.vectors else None, entities if needs.entities else None
    check_rows(state, texts, vectors, entities)
    if needs.entities and state.parts.names is None:  # questions without entities have none
        rows = entities if entities is not None else [None for _ in (vectors if texts is None else texts)]
        entities = [[] if row is None else row for row in rows]
    return vectors, entities


def raise_first(notes: Sequence[Sequence[InputError]]) -> None:
    """Raise the first note, with its place among the questions."""
    for b, own in enumerate(notes):
        for note in own:
            field, bracket, rest = str(note.field).partition("[")
            raise note.about(f"{_COLUMNS.get(field, field)}[{b}]{bracket}{rest}")


def prepared(state: RetrieverState, texts: Any, vectors: Any, entities: Any) -> tuple[Any, list[Any] | None]:
    """Return the vectors and the entities that a search would read, None for what it does not read."""
    vectors, entities = read_inputs(state, texts, vectors, entities)
    for b, vector in enumerate(() if vectors is None else vectors):
        if vector is not None:
            try:
                state.check_vector(np.asarray(vector))
            except InputError as error:
                raise error.about(f"vectors[{b}]") from None
    return state.recipe.prepare(texts, vectors=vectors, entities=entities)
