"""Writing ranked evidence, part by part: JSON Lines or Parquet."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from ..errors import InputError, MissingExtraError

Row = dict[str, Any]  # {"id": str, "hits": [{"id": str, "score": float}, ...]}, and where asked for "answer": str


class Writer(Protocol):
    """How a kind of file is written: in parts that are joined at the end."""

    def write(self, path: Path, rows: Sequence[Row]) -> None:
        """Write one part."""
        ...

    def join(self, path: Path, parts: Iterable[Path]) -> None:
        """Put the parts one after another, holding one of them at a time."""
        ...


class JsonlWriter:
    """A JSON object a line."""

    def write(self, path: Path, rows: Sequence[Row]) -> None:
        """Write one part."""
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path.write_text(text, encoding="utf-8")

    def join(self, path: Path, parts: Iterable[Path]) -> None:
        """Put the parts one after another."""
        with open(path, "wb") as whole:
            for part in parts:
                with open(part, "rb") as file:
                    shutil.copyfileobj(file, whole)


class ParquetWriter:
    """A row group a part: ``id`` and ``hits``, a list of structs of ``id`` and ``score``; and any ``answer``."""

    def __init__(self, *, answers: bool = False) -> None:
        try:
            self._arrow, self._parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ModuleNotFoundError as error:
            raise MissingExtraError("pyarrow", "arrow", "writing results to a Parquet file") from error
        hit = self._arrow.struct([("id", self._arrow.string()), ("score", self._arrow.float32())])
        columns = [("id", self._arrow.string()), ("hits", self._arrow.list_(hit))]
        self._schema = self._arrow.schema([*columns, ("answer", self._arrow.string())] if answers else columns)

    def write(self, path: Path, rows: Sequence[Row]) -> None:
        """Write one part."""
        self._parquet.write_table(self._arrow.Table.from_pylist(list(rows), schema=self._schema), path)

    def join(self, path: Path, parts: Iterable[Path]) -> None:
        """Put the parts one after another."""
        with self._parquet.ParquetWriter(path, self._schema) as whole:
            for part in parts:
                whole.write_table(self._parquet.read_table(part, schema=self._schema))


def writer_for(path: Path, *, answers: bool = False) -> Writer:
    """The writer for a file's suffix; ``answers``: of rows that have one."""
    if path.suffix == ".jsonl":
        return JsonlWriter()
    if path.suffix == ".parquet":
        return ParquetWriter(answers=answers)
    raise InputError(f"--out is {str(path)!r}; its suffix must be one of .jsonl, .parquet")
