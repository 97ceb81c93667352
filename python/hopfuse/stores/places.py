"""Stores by their places: a URL whose scheme names the store, or a folder of Parquet files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from ..errors import InputError
from ..io.source import Source
from .parquet import ParquetSource
from .tables import check_whole_place

POSTGRESQL = ("postgresql", "postgres")
#: The module for each scheme; its function ``open_place(url, queries)`` returns the source.
SCHEMES: dict[str, str] = {
    **dict.fromkeys(POSTGRESQL, "hopfuse.stores.postgres"),
    **{
        name: f"hopfuse.stores.{name}"
        for name in ("apoc", "chroma", "duckdb", "ladybug", "lancedb", "qdrant", "sqlite")
    },
}


def is_place(text: str) -> bool:
    """Return whether a text names a store: the URL of one, or an existing folder.

    Examples
    --------
    >>> from hopfuse.stores import is_place
    >>> is_place("facts.jsonl")
    False
    """
    return _scheme(text) is not None or Path(text).is_dir()


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
    scheme = _scheme(place)
    if scheme is not None:
        opened: Source = import_module(SCHEMES[scheme]).open_place(place, given)
        return opened
    if not Path(place).is_dir():
        raise InputError(
            "unknown",
            "place",
            "{field} is {given!r}, which is not a store; allowed: {allowed}",
            given=place,
            allowed=", ".join(("a folder with passages.parquet", *(f"{known}:" for known in SCHEMES))),
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
    if is_place(place) and _scheme(place) not in POSTGRESQL:
        raise InputError(
            "unsupported",
            "place",
            "{field} is {given!r}, which reports no changes, only PostgreSQL does; build the index anew (hopfuse build "
            "--from), or change it by hopfuse add and delete",
            given=place,
        )


def _scheme(place: str) -> str | None:
    scheme = place.partition(":")[0]
    return scheme if ":" in place and scheme in SCHEMES else None
