"""Stores by their places: a URL whose scheme names the store, or a folder of Parquet files."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from ..errors import InputError
from ..io.source import Source
from .arrow import ParquetSource
from .tables import check_whole_place

POSTGRESQL = ("postgresql", "postgres")
#: Packages name their stores in this group of entry points: a scheme, and a function of ``(url, queries)`` that returns
#: the source.
ENTRY_POINTS = "hopfuse.stores"
OpenPlace = Callable[[str, dict[str, list[str]]], Source]


def store_of(scheme: str) -> OpenPlace | None:
    """Return what opens the places of a scheme: ``open_place`` of a module here, or a function of another package.

    Examples
    --------
    >>> from hopfuse.stores.places import store_of
    >>> store_of("sqlite") is not None, store_of("tables") is None
    (True, True)
    """
    module = "postgres" if scheme == "postgresql" else scheme
    if module.isidentifier() and find_spec(f"{__package__}.{module}") is not None:
        opens: OpenPlace | None = getattr(import_module(f"{__package__}.{module}"), "open_place", None)
        return opens
    for point in entry_points(group=ENTRY_POINTS, name=scheme):
        loaded: OpenPlace = point.load()
        return loaded
    return None


def schemes() -> list[str]:
    """Return the schemes of all stores.

    Examples
    --------
    >>> from hopfuse.stores.places import schemes
    >>> {"postgresql", "sqlite"} <= set(schemes())
    True
    """
    modules = [module.name for module in pkgutil.iter_modules(import_module(__package__).__path__)]
    own = [name for name in (*modules, "postgresql") if store_of(name) is not None]
    return sorted({*own, *(point.name for point in entry_points(group=ENTRY_POINTS))})


def is_place(text: str) -> bool:
    """Return whether a text names a store: the URL of one, or an existing folder.

    Examples
    --------
    >>> from hopfuse.stores import is_place
    >>> is_place("facts.jsonl")
    False
    """
    return _opening(text) is not None or Path(text).is_dir()


def open_source(place: str, queries: Mapping[str, Sequence[str]] | None = None) -> Source:
    """Return the store at a place.

    Parameters
    ----------
    place : str
        A URL, or a folder of Parquet files (:class:`hopfuse.stores.ParquetSource`).
    queries : mapping of str to sequence of str, optional
        Queries of each table (``passages``, ``entities``, ``edges``, ``facts``), in the store's own language.

    Raises
    ------
    InputError
        ``place`` is not a store, or the store takes no queries.
    MissingExtraError
        The store's library is not installed.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet, hopfuse as hf
    >>> folder = tempfile.mkdtemp()
    >>> pa.parquet.write_table(pa.table({"id": [1], "text": ["one"]}), f"{folder}/passages.parquet")
    >>> hf.Index.build(hf.stores.open_source(folder)).num_passages
    1
    """
    given = {table: list(texts) for table, texts in (queries or {}).items() if texts}
    opens = _opening(place)
    if opens is not None:
        return opens(place, given)
    if not Path(place).is_dir():
        raise InputError(
            "unknown",
            "place",
            "{field} is {given!r}, which is not a store; allowed: {allowed}",
            given=place,
            allowed=", ".join(("a folder with passages.parquet", *(f"{known}:" for known in schemes()))),
        )
    check_whole_place(place, given)
    return ParquetSource(place)


def check_followed(place: str) -> None:
    """Refuse a place whose changes cannot be followed: any store but PostgreSQL.

    Raises
    ------
    InputError

    Examples
    --------
    >>> from hopfuse.stores.places import check_followed
    >>> check_followed("postgresql:///news")
    """
    if is_place(place) and place.partition(":")[0] not in POSTGRESQL:
        raise InputError(
            "unsupported",
            "place",
            "{field} is {given!r}, which reports no changes, only PostgreSQL does; build the index anew (hopfuse build "
            "--from), or change it by hopfuse add and delete",
            given=place,
        )


def _opening(place: str) -> OpenPlace | None:
    """Return what opens a URL; None for a path."""
    scheme, colon, _ = place.partition(":")
    return store_of(scheme) if colon else None
