"""``--allow`` and ``--where``: the passages that a search may return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import Index, Where, where
from .._validation import counted
from ..errors import InputError
from ..index.filters import LISTS, split_condition, unknown_column
from ..io.files import read_text

_BOOLS = {"true": True, "false": False}


def read_filter(options: Mapping[str, Any], index: Index) -> NDArray[np.bool_] | None:
    """Return the mask of ``--allow`` and ``--where`` over passages, of shape (P,); None if neither is given."""
    ids, conditions = options.get("allow"), options.get("where", ())
    masks = [] if ids is None else [read_allow(ids, index)]
    masks += [index.mask(read_condition(one, index)) for one in conditions]
    return np.logical_and.reduce(masks) if masks else None


def read_allow(given: str, index: Index) -> NDArray[np.bool_]:
    """Return the mask of the passages that ``--allow`` names, of shape (P,)."""
    path = Path(given)
    ids = read_text(path, "--allow").splitlines() if path.is_file() else given.split(",")
    wanted = {id.strip() for id in ids} - {""}
    known = [str(id) for id in index.passage_ids]
    strangers = sorted(wanted.difference(known))
    if strangers:
        raise InputError(
            "UNSORTED",
            "allow",
            "{field} names {count} that the index does not have, such as {strangers!r}; give ids "
            "separated by commas, or a file with an id on each line",
            count=counted(len(strangers), "passage"),
            strangers=strangers[0],
        )
    return np.array([id in wanted for id in known], bool)


def read_condition(given: str, index: Index) -> Where:
    """Return the filter of a ``--where``: ``column=value`` or ``column__operator=value``, as in :func:`where`.

    The value is parsed by the column's type; items of a list are separated by commas.

    Examples
    --------
    >>> import hopfuse as hf
    >>> rows = [{"text": "one", "metadata": {"year": 2019, "tags": ["a", "b"]}}]
    >>> index = hf.Index.build(passages=rows)
    >>> read_condition("year__ge=2018", index), read_condition("tags__any=b,c", index)
    (where(year__ge=2018), where(tags__any=('b', 'c')))
    """
    name, equals, text = given.partition("=")
    if not equals or not name:
        raise InputError(
            "UNSORTED",
            "where",
            "{field} is {given!r}; give column=value or column__operator=value, such as year__ge=2020",
            given=given,
        )
    column, operator = split_condition(name)
    if column not in index.metadata:
        raise unknown_column(index.metadata, column).at(given, "where")
    kind = "bool" if operator == "exists" else index.metadata.types[column]
    if operator in ("in", *LISTS):
        return where(**{name: [_value(part, kind, given) for part in text.split(",")] if text else []})
    return where(**{name: _value(text, kind, given)})


def _value(text: str, kind: str, given: str) -> Any:
    """Parse text as a value of a column's type; a time stays text, which filters accept."""
    try:
        if kind == "bool":
            return _BOOLS[text.lower()]
        if kind in ("int64", "float64"):
            return int(text) if kind == "int64" else float(text)
    except (KeyError, ValueError):
        allowed = {"bool": "true or false", "int64": "an integer", "float64": "a number"}[kind]
        raise InputError(
            "UNSORTED", "where", "{field} {given}: {text!r} must be {allowed}", given=given, text=text, allowed=allowed
        ) from None
    return text


def read_types(given: Sequence[str]) -> dict[str, str]:
    """Return types by column, from the ``column=type`` of each ``--metadata-type``."""
    types = {}
    for one in given:
        name, equals, kind = one.partition("=")
        if not equals:
            raise InputError(
                "UNSORTED", "metadata_type", "{field} is {given!r}; give column=type, such as year=int64", given=one
            )
        types[name] = kind
    return types
