"""``--allow``, ``--where`` and ``--at``: the passages that a search may return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import Index, Where, where
from .._validation import counted
from ..errors import InputError
from ..index.filters import LISTS, split_condition
from ..index.parts.metadata_build import FROM, TO
from ..io.files import read_text
from .config_options import assigned

_BOOLS = {"true": True, "false": False}


def read_filter(options: Mapping[str, Any], index: Index) -> NDArray[np.bool_] | None:
    """Return the mask of ``--allow``, ``--where`` and ``--at`` over passages, of shape (P,); None if none is given."""
    ids, conditions = options.get("allow"), options.get("where", ())
    masks = [] if ids is None else [read_allow(ids, index)]
    masks += [index.mask(read_condition(one, index)) for one in conditions]
    if options.get("at") is not None:
        kind = next((index.metadata.types[name] for name in (FROM, TO) if name in index.metadata), "string")
        masks.append(index.mask(index.valid_at(_value(options["at"], kind))))
    return np.logical_and.reduce(masks) if masks else None


def read_allow(given: str, index: Index) -> NDArray[np.bool_]:
    """Return the mask of the passages that ``--allow`` names, of shape (P,)."""
    path = Path(given)
    ids = read_text(path, "allow").splitlines() if path.is_file() else given.split(",")
    wanted = {id.strip() for id in ids} - {""}
    known = [str(id) for id in index.passage_ids]
    strangers = sorted(wanted.difference(known))
    if strangers:
        raise InputError(
            "unknown",
            "allow",
            "{field} names {count} that the index does not have, such as {given!r}; give ids "
            "separated by commas, or a file with an id on each line",
            count=counted(len(strangers), "passage"),
            given=strangers[0],
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
            "syntax",
            "where",
            "{field} is {given!r}; give column=value or column__operator=value, such as year__ge=2020",
            given=given,
        )
    column, operator = split_condition(name)
    kind = "bool" if operator == "exists" else index.metadata.types.get(column, "string")
    if operator in ("in", *LISTS):
        return where(**{name: [_value(part, kind) for part in text.split(",")] if text else []})
    return where(**{name: _value(text, kind)})


def _value(text: str, kind: str) -> Any:
    """Parse text as a value of a column's type; a time, and what is of no such type, stay text for the filter."""
    try:
        if kind in ("int64", "float64"):
            return int(text) if kind == "int64" else float(text)
    except ValueError:
        return text
    return _BOOLS.get(text.lower(), text) if kind == "bool" else text


def read_types(given: Sequence[str]) -> dict[str, str]:
    """Return types by column, from the ``column=type`` of each ``--metadata-type``."""
    return dict(assigned(given, "metadata_types", "year=int64"))
