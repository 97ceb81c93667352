"""Where a store is, as text: a URL whose scheme says what it is, or a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from ..errors import InputError
from ..io.source import Source
from .parquet import ParquetSource

#: The module of each scheme, whose function ``open_place(url, queries)`` returns the source.
SCHEMES: dict[str, str] = {
    **dict.fromkeys(("postgresql", "postgres"), "hopfuse.stores.postgres"),
    **{
        name: f"hopfuse.stores.{name}"
        for name in ("apoc", "chroma", "duckdb", "ladybug", "lancedb", "qdrant", "sqlite")
    },
}


def is_place(text: str) -> bool:
    """Return whether a text names a store: a URL of one, or a folder that is there.

    Examples
    --------
    >>> from hopfuse.stores import is_place
    >>> is_place("facts.jsonl")
    False
    """
    return _scheme(text) is not None or Path(text).is_dir()


def open_source(place: str, queries: Mapping[str, Sequence[str]] | None = None) -> Source:
    """Return the store that a text names.

    Parameters
    ----------
    place : str
        A folder of Parquet files (:class:`hopfuse.stores.ParquetSource`), or a URL.
    queries : mapping of str to sequence of str, optional
        By table (``passages``, ``entities``, ``edges``, ``facts``) what is asked of the store, in its own language.

    Raises
    ------
    InputError
        No store, queries to one that takes none.
    MissingExtraError
        What the store needs is not installed.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet, hopfuse as hf
    >>> folder = tempfile.mkdtemp()
    >>> pa.parquet.write_table(pa.table({"id": [1], "text": ["one"]}), f"{folder}/passages.parquet")
    >>> hf.Index.build(hf.stores.open_source(folder)).num_passages
    1
    """
    asked = {table: list(texts) for table, texts in (queries or {}).items() if texts}
    scheme = _scheme(place)
    if scheme is not None:
        opened: Source = import_module(SCHEMES[scheme]).open_place(place, asked)
        return opened
    if not Path(place).is_dir():
        raise InputError(
            f"{place!r} is no store; allowed: a folder with passages.parquet"
            + "".join(f", {known}:" for known in SCHEMES)
        )
    if asked:
        raise InputError(f"{place} is a folder, whose files are read whole; leave out the queries {', '.join(asked)}")
    return ParquetSource(place)


def _scheme(place: str) -> str | None:
    scheme = place.partition(":")[0]
    return scheme if ":" in place and scheme in SCHEMES else None
