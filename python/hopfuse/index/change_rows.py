"""Check the arguments of a change, and convert them to arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import partial
from typing import Any

import numpy as np

from .._validation import check_list, check_type, checked_texts, wrong_value
from ..io import tables
from ..io.readers import read_table
from . import parts
from .build import PASSAGES
from .contents import text_to_index
from .file.columns import string_arrays
from .parts.metadata_build import metadata_arrays
from .parts.passages import LABELS, label_arrays

End = tuple[str, Any]
_PAIR = (tuple, list)
_ENDS = {"src", "dst"}
EDGE_KEYS = {"src", "dst", "type", "weight", "stated_by"}


def passage_arrays(passages: Any) -> dict[str, Any]:
    """Return the arrays of a table of passages, with their ids, metadata and texts to index."""
    table = read_table(passages, PASSAGES)
    if table.num_rows and "id" not in table.columns:
        tables.refuse_value(table.where(0), "id", None, "a string or an integer: passages of a change need ids")
    texts, titles, ids = tables.texts(table, "text"), tables.texts(table, "title", default=""), tables.row_ids(table)
    return {
        **parts.passages.build(ids, titles, texts),
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


def joined_arrays(added: Sequence[Mapping[str, Any]], types: Mapping[str, str]) -> dict[str, Any]:
    """Return the arrays of several tables of passages as one; ``types`` are the index's types of metadata."""
    made = {name: added[0][name] for name in _PASSAGE_ARRAYS if name in added[0]}
    for name in made if len(added) > 1 else ():
        own = [part[name] for part in added]
        if name.endswith(".offsets"):
            own = [np.zeros(1, np.int64), np.cumsum(np.concatenate([np.diff(offsets) for offsets in own]))]
        made[name] = np.concatenate(own)
    for label in LABELS:
        made |= label_arrays(label, [value for part in added for value in part[label.codes]])
    return made | metadata_arrays([row for part in added for row in part["metadata"]], types, partial(place, added))


def place(added: Sequence[Mapping[str, Any]], row: int) -> str:
    """Describe a row of several tables of passages in an error message."""
    for part in added[:-1]:
        if row < len(part["ids"]):
            return str(part["where"](row))
        row -= len(part["ids"])
    return str(added[-1]["where"](row))


def set_rows(made: dict[str, Any], name: str, rows: Sequence[Any], columns: int = 0) -> None:
    """Set an array of integers, unless it is empty."""
    if rows:
        made[name] = np.array(rows, np.int64).reshape((-1, columns) if columns else -1)


def alias_pairs(aliases: Any) -> list[tuple[str, str]]:
    """Return the pairs (name of an entity, alias)."""
    check_type(aliases, "aliases", Mapping, "a mapping of an entity's name to a list of aliases")
    return [(name, alias) for name, own in aliases.items() for alias in checked_texts(own, f"aliases[{name!r}]")]


def fact_rows(given: Any, width: int, what: str) -> list[tuple[Any, ...]]:
    """Return facts as tuples of ``width`` parts; ``what`` describes them in errors."""
    rows = []
    for at, row in enumerate(check_list(given, "facts")):
        whole = isinstance(row, Sequence) and not isinstance(row, str) and len(row) == width
        if not whole or not all(isinstance(part, str) for part in row[:3]):
            raise wrong_value(row, f"facts[{at}]", what, "type")
        rows.append(tuple(row))
    return rows


def edge_of(edge: Any, field: str, keys: Set[str], first: str) -> tuple[tuple[End, End], str]:
    """Return the ends and the type of an edge, by default the index's first type; it may have these keys."""
    if not isinstance(edge, Mapping) or not _ENDS <= edge.keys() <= keys:
        raise wrong_value(edge, field, f"a mapping with src and dst; allowed: {', '.join(sorted(keys))}", "type")
    kind = check_type(edge.get("type", first), f"{field}.type", str, "a string")
    return (_end(edge["src"], f"{field}.src"), _end(edge["dst"], f"{field}.dst")), kind


def _end(end: Any, field: str) -> End:
    """Return the end of an edge: its kind, and its id or name."""
    if not isinstance(end, _PAIR) or len(end) != 2 or end[0] not in ("passage", "entity"):
        raise wrong_value(end, field, "('passage', id) or ('entity', name)", "type")
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
