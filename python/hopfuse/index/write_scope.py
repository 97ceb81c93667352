"""Checks of a change with a filter: it may affect only passages that the filter allows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .file.sections import Section
from .filters import Where
from .parts.metadata import Metadata
from .parts.metadata_build import metadata_arrays


def meets(only: Where, rows: Sequence[Mapping[str, Any]], types: Mapping[str, str]) -> NDArray[np.bool_]:
    """Return which rows of metadata a filter allows: bool, shape (rows,).

    Raises
    ------
    InputError
        A value of another type than its column's, or a filter on a column that does not exist.
    """
    arrays = metadata_arrays(rows, types, lambda row: f"passages[{row}]")
    sections = {name: Section(name, array) for name, array in arrays.items()}
    return only.mask(Metadata(sections, len(rows)))


def check_added(
    only: Where, ids: Sequence[Any], rows: Sequence[Mapping[str, Any] | None], types: Mapping[str, str]
) -> None:
    """Refuse passages that a filter does not allow, and new columns, whose type would apply to all passages."""
    known = [row or {} for row in rows]
    allowed = meets(only, known, types)
    for id, row in zip(ids, known, strict=True):
        for name in row:
            if name not in types:
                raise InputError(
                    "denied",
                    "passages",
                    "the passage {id!r} has the metadata {given!r}, which the index does not have; a change with "
                    "a filter cannot add a column: add it without a filter first",
                    id=id,
                    given=name,
                )
    for id, is_allowed in zip(ids, allowed, strict=True):
        if not is_allowed:
            raise InputError(
                "denied",
                "passages",
                "this change may not add the passage {given!r}: {only} does not allow it",
                given=id,
                only=only,
            )


def check_edges(only: Where, edges: Iterable[tuple[Any, Any, str, float, Any]], types: Collection[str]) -> None:
    """Refuse edges that no passage states, which all walks would use, and new edge types."""
    for at, (src, dst, kind, _, by) in enumerate(edges):
        if by is None and "passage" not in (src[0], dst[0]):
            raise InputError(
                "denied",
                f"edges[{at}]",
                "{field} joins two entities, and the change has the filter {only}: give stated_by, the passage that "
                "states it",
                only=only,
            )
        _check_type(kind, f"edges[{at}]", types)


def check_kinds(kinds: Iterable[str], types: Collection[str]) -> None:
    """Refuse new types of edges that were read in passages."""
    for kind in kinds:
        _check_type(kind, "memory", types)


def _check_type(kind: str, field: str, types: Collection[str]) -> None:
    if kind not in types:
        raise InputError(
            "denied",
            field,
            "{field} has the edge type {given!r}; a change with a filter cannot add a type, allowed: {allowed}",
            given=kind,
            allowed=", ".join(types),
        )
