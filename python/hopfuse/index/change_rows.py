"""Check the arguments of a change, and convert them to arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..errors import InputError
from ..io import tables
from ..io.readers import read_table
from .build import PASSAGES
from .columns import string_arrays
from .contents import text_to_index
from .labels import LABELS, label_arrays
from .metadata_build import metadata_arrays

End = tuple[str, Any]
_PAIR = (tuple, list)
EDGE_KEYS = {"src", "dst", "type", "weight", "stated_by"}


def passage_arrays(passages: Any) -> dict[str, Any]:
    """Return the arrays of a table of passages, with their ids, metadata and texts to index."""
    table = read_table(passages, PASSAGES)
    if table.num_rows and "id" not in table.columns:
        raise InputError(
            "unknown", None, "{where} has no id; passages that are added to an index need ids", where=table.where(0)
        )
    texts, titles, ids = tables.texts(table, "text"), tables.texts(table, "title", default=""), tables.row_ids(table)
    are_strings = bool(ids) and isinstance(ids[0], str)
    own: Any = string_arrays("passage.id", ids) if are_strings else {"passage.id.number": np.array(ids, np.int64)}  # type: ignore[arg-type]
    return {
        **own,
        **string_arrays("passage.title", titles),
        **string_arrays("passage.text", texts),
        "passage.length": np.array([len(text.split()) for text in texts], np.int32),
        **{label.codes: label.read(table, label.what) for label in LABELS},
        "ids": ids,
        "metadata": tables.objects(table, "metadata"),
        "where": table.where,
        "texts": [text_to_index(title, text) for title, text in zip(titles, texts, strict=True)],
    }


#: The arrays of passages, in the order of a payload.
_PASSAGE_ARRAYS = (
    *(f"passage.{part}" for part in ("length", "id.number", "vectors")),
    *(f"passage.{of}.{part}" for of in ("id", "title", "text") for part in ("offsets", "bytes")),
)


def joined_arrays(parts: Sequence[Mapping[str, Any]], types: Mapping[str, str]) -> dict[str, Any]:
    """Return the arrays of several tables of passages as one; ``types`` are the index's types of metadata."""
    made = {name: parts[0][name] for name in _PASSAGE_ARRAYS if name in parts[0]}
    for name in made if len(parts) > 1 else ():
        own = [part[name] for part in parts]
        if name.endswith(".offsets"):
            own = [np.zeros(1, np.int64), np.cumsum(np.concatenate([np.diff(offsets) for offsets in own]))]
        made[name] = np.concatenate(own)
    for label in LABELS:
        made |= label_arrays(label, [value for part in parts for value in part[label.codes]])
    return made | metadata_arrays([row for part in parts for row in part["metadata"]], types, partial(place, parts))


def place(parts: Sequence[Mapping[str, Any]], row: int) -> str:
    """Describe a row of several tables of passages in an error message."""
    for part in parts[:-1]:
        if row < len(part["ids"]):
            return str(part["where"](row))
        row -= len(part["ids"])
    return str(parts[-1]["where"](row))


def set_rows(made: dict[str, Any], name: str, rows: Sequence[Any], columns: int = 0) -> None:
    """Set an array of integers, unless it is empty."""
    if rows:
        made[name] = np.array(rows, np.int64).reshape((-1, columns) if columns else -1)


def listed(given: Any, what: str) -> list[Any]:
    """Return an argument as a list."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError("type", what, "{field} is a {kind}; give a list", kind=type(given).__name__)
    return list(given)


def alias_pairs(aliases: Any) -> list[tuple[str, str]]:
    """Return the pairs (name of an entity, alias)."""
    if not isinstance(aliases, Mapping):
        raise InputError(
            "type",
            "aliases",
            "{field} is a {kind}; it must map an entity's name to a list of aliases",
            kind=type(aliases).__name__,
        )
    pairs = [(name, alias) for name, values in aliases.items() for alias in listed(values, f"aliases[{name!r}]")]
    if not all(isinstance(alias, str) for _, alias in pairs):
        raise InputError("UNSORTED", "aliases", "{field} are not all strings")
    return pairs


def fact_rows(given: Any, width: int, what: str) -> list[tuple[Any, ...]]:
    """Return facts as tuples of ``width`` parts; ``what`` describes them in errors."""
    rows = []
    for at, row in enumerate(listed(given, "facts")):
        whole = isinstance(row, Sequence) and not isinstance(row, str) and len(row) == width
        if not whole or not all(isinstance(part, str) for part in row[:3]):
            raise InputError(
                "UNSORTED", None, "facts[{at}] is {row!r}; it must be {allowed}", at=at, row=row, allowed=what
            )
        rows.append(tuple(row))
    return rows


def end_of(end: Any, at: int) -> End:
    """Return the end of edge ``at``: its kind, and its id or name."""
    if not isinstance(end, _PAIR) or len(end) != 2 or end[0] not in ("passage", "entity"):
        raise InputError(
            "shape",
            None,
            "edges[{at}] has the end {end!r}; it must be ('passage', id) or ('entity', name)",
            at=at,
            end=end,
        )
    return (end[0], end[1])


def term_arrays(rows: list[list[str]]) -> dict[str, Any]:
    """Return the counts of each term in each passage, in CSR form by term."""
    number = {term: t for t, term in enumerate(sorted({term for row in rows for term in row}))}
    term = np.array([number[term] for row in rows for term in row], np.int64)
    passage = np.repeat(np.arange(len(rows)), np.array([len(row) for row in rows], np.int64))
    entries, counts = np.unique(term * len(rows) + passage, return_counts=True)
    columns, passages = np.divmod(entries, len(rows))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=len(number)))])
    return {
        **string_arrays("lexical.term", number),
        "lexical.indptr": indptr.astype(np.int64),
        "lexical.passage": passages,
        "lexical.count": counts.astype(np.int32),
    }
