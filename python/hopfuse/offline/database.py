"""Write the hits of a run, or of a finished file, into a table of PostgreSQL, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .._validation import check_suffix, is_real
from ..errors import InputError
from ..io.json_lines import json_objects
from ..io.parquet import open_parquet, read_groups
from .folder import Folder
from .merge import MergeCounts, merged_counts

#: How the URLs of databases begin.
SCHEMES = ("postgresql://", "postgres://")
#: The table, if none is named.
TABLE = "hits"


class HitsTable(NamedTuple):
    """A table of a database, in place of the file of a result.

    Rows of the same questions are replaced, so that a run that is written twice is there once.
    """

    url: str
    table: str = TABLE

    def __str__(self) -> str:
        from ..stores.postgres.connection import place_of  # its room imports the readers

        return f"table {self.table} of {place_of(self.url)}"

    @property
    def folder(self) -> Path:
        """The folder of a run whose hits go to the table."""
        return Path(f"{self.table}.partial")

    def check(self) -> None:
        """Refuse a table that cannot take hits; errors as of :func:`hopfuse.stores.postgres.check_hits_table`."""
        from ..stores.postgres import check_hits_table

        check_hits_table(self.url, self.table)

    def write(self, rows: Callable[[], Iterable[Mapping[str, Any]]]) -> int:
        """Write the rows of a result, each with ``id`` and ``hits``; return how many hits there are."""
        from ..stores.postgres import write_rankings

        def rankings() -> Iterator[tuple[Any, list[tuple[Any, float]]]]:
            return ((row["id"], [(hit["id"], hit["score"]) for hit in row["hits"]]) for row in rows())

        return write_rankings(self.url, self.table, rankings, replace=True, create=True)


def write_run(folder: Path, out: HitsTable) -> MergeCounts:
    """Write all parts of a plan into a table, in one transaction; the folder stays.

    Raises
    ------
    InputError
        A part is missing or belongs to another plan, or the table cannot take the hits.
    FormatError
        A part is damaged.
    StoreError
        The server cannot be reached, or the connection is lost. Nothing is written.

    Examples
    --------
    >>> from hopfuse.offline import HitsTable, write_run
    >>> write_run(Path("run"), HitsTable("postgresql:///news"))  # doctest: +SKIP
    """
    place = Folder(folder)
    place.plan.check_versions()
    with place.lock(alone=True):
        found = place.check_seals()
        out.write(place.rows)
    return merged_counts(place, found)


def write_file(path: Path, out: HitsTable) -> int:
    """Write a finished result of ``hopfuse score`` into a table, and return the number of hits.

    Parameters
    ----------
    path : Path
        ``.jsonl`` or ``.parquet``.
    out : HitsTable

    Raises
    ------
    InputError
        The file is no such result, or the table cannot take the hits. Nothing is written.

    Examples
    --------
    >>> from hopfuse.offline import HitsTable, write_file
    >>> write_file(Path("ranked.jsonl"), HitsTable("postgresql:///news", "hits"))  # doctest: +SKIP
    10
    """
    check_suffix(path, "file", ".jsonl", ".parquet")
    return out.write(lambda: _rows(path))


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    if path.suffix == ".parquet":
        file = open_parquet(path, "reading hits")
        for group in read_groups(file, path, ("id", "hits")):
            yield from group.to_pylist()
        return
    for number, row in json_objects(path, ("id", "hits")):
        if not isinstance(row["hits"], list) or not all(map(_is_hit, row["hits"])):
            raise InputError(
                "type",
                "hits",
                "{field} is {given!r}; it must be a list of objects with an id and a score",
                given=row["hits"],
            ).at(f"{path}, line {number}")
        yield row


def _is_hit(hit: Any) -> bool:
    return isinstance(hit, Mapping) and isinstance(hit.get("id"), str | int) and is_real(hit.get("score"))
