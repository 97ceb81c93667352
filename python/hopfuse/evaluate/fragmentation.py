"""Entities that are one thing under several nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import InputError
from .answers import normalised


def shared_names(names: Iterable[str], aliases: Iterable[Sequence[str]] | None = None) -> dict[str, tuple[int, ...]]:
    """Names that several entities have, after :func:`normalised`: where a walk's mass may be split.

    Parameters
    ----------
    names : iterable of str, E entries
    aliases : iterable of sequences of str, E entries, optional
        Other names of each entity.

    Returns
    -------
    dict of str to tuple of int
        For each normalised name of at least two entities, those entities in ascending order. Names
        without a letter or digit are left out.

    Raises
    ------
    InputError
        Another number of aliases than of names.

    Examples
    --------
    >>> from hopfuse.evaluate import shared_names
    >>> shared_names(["The Beatles", "Ada", "Beatles"], [[], ["A. Lovelace"], []])
    {'beatles': (0, 2)}
    """
    own = [[name] for name in names]
    others = [()] * len(own) if aliases is None else [tuple(row) for row in aliases]
    if len(others) != len(own):
        raise InputError(f"{len(others)} rows of aliases for {len(own)} names; give one per entity")
    entities: dict[str, list[int]] = {}
    for entity, row in enumerate(zip(own, others, strict=True)):
        for key in {normalised(name) for part in row for name in part}:
            if any(map(str.isalnum, key)):
                entities.setdefault(key, []).append(entity)
    return {key: tuple(found) for key, found in sorted(entities.items()) if len(found) > 1}
