"""A long run that may be killed: finished parts stay, and the next run goes on after them."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from ...errors import InputError, MissingExtraError
from ...io.files import no_link, sync_directory, write_whole

STATE = "state.json"
LOCK = "lock"


class Job:
    """Parts of a result in ``OUT.partial``, and what they are the result of.

    ``out`` is there at the end, and not before. Parts of another ``identity``, inputs and options, are not taken up.
    """

    def __init__(self, out: Path, identity: Mapping[str, Any], writer: Writer) -> None:
        self.out = out
        self.directory = out.with_name(f"{out.name}.partial")
        self._identity = dict(identity)
        self._writer = writer

    @contextmanager
    def started(self, *, restart: bool) -> Iterator[int]:
        """Take the directory for this process; yield the number of parts that are there already.

        Raises
        ------
        InputError
            Another process works on it, or it holds parts of another run and ``restart`` is False.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        with open(self.directory / LOCK, "a", opener=no_link) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"{self.directory}: another process is writing {self.out}") from None
            if restart:
                self._clear()
            self._check_identity()
            yield self._num_parts()

    def add(self, number: int, rows: Sequence[Row]) -> None:
        """Keep part ``number``."""
        write_whole(self._part(number), lambda file: self._writer.write(file, rows))

    def finish(self, parts: int) -> None:
        """Join the parts to the result, and drop them."""
        write_whole(
            self.out, lambda file: self._writer.join(file, map(self._part, range(parts))), drafts=self.directory
        )
        shutil.rmtree(self.directory)
        sync_directory(self.out.parent)

    def _part(self, number: int) -> Path:
        return self.directory / f"part-{number:08d}{self.out.suffix}"

    def _num_parts(self) -> int:
        number = 0
        while self._part(number).exists():
            number += 1
        return number

    def _check_identity(self) -> None:
        state, text = self.directory / STATE, json.dumps(self._identity, indent=1, sort_keys=True)
        if not state.exists():
            self._clear()
            write_whole(state, lambda file: file.write(text.encode()))
            return
        before, now = json.loads(state.read_text(encoding="utf-8")), json.loads(text)
        differ = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
        if differ:
            raise InputError(
                f"{self.directory} holds an unfinished run with other {', '.join(differ)}; "
                "repeat that run, or drop it with --restart"
            )

    def _clear(self) -> None:
        for path in self.directory.iterdir():
            if path.name != LOCK:
                path.unlink()


Row = dict[str, Any]  # {"id": str, "hits": [{"id": str | int, "score": float}, ...]}, and where asked for "answer": str


class Writer(Protocol):
    """Writes a kind of file in parts that are joined at the end."""

    def write(self, file: BinaryIO, rows: Sequence[Row]) -> None:
        """Write one part."""
        ...

    def join(self, file: BinaryIO, parts: Iterable[Path]) -> None:
        """Put the parts one after another, holding one of them at a time."""
        ...


class JsonlWriter:
    """Writes a JSON object a line."""

    def write(self, file: BinaryIO, rows: Sequence[Row]) -> None:
        """Write one part."""
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        file.write(text.encode())

    def join(self, file: BinaryIO, parts: Iterable[Path]) -> None:
        """Put the parts one after another."""
        for part in parts:
            with open(part, "rb") as source:
                shutil.copyfileobj(source, file)


class ParquetWriter:
    """Writes a row group a part: ``id`` and ``hits``, a list of structs of ``id`` and ``score``; and any ``answer``.

    Hits' ids are strings, or ``whole`` numbers.
    """

    def __init__(self, *, whole: bool, answers: bool) -> None:
        try:
            self._arrow, self._parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ModuleNotFoundError as error:
            raise MissingExtraError("pyarrow", "arrow", "writing results to a Parquet file") from error
        hit = self._arrow.struct(
            [("id", self._arrow.int64() if whole else self._arrow.string()), ("score", self._arrow.float32())]
        )
        columns = [("id", self._arrow.string()), ("hits", self._arrow.list_(hit))]
        self._schema = self._arrow.schema([*columns, ("answer", self._arrow.string())] if answers else columns)

    def write(self, file: BinaryIO, rows: Sequence[Row]) -> None:
        """Write one part."""
        self._parquet.write_table(self._arrow.Table.from_pylist(rows, schema=self._schema), file)

    def join(self, file: BinaryIO, parts: Iterable[Path]) -> None:
        """Put the parts one after another."""
        with self._parquet.ParquetWriter(file, self._schema) as whole:
            for part in parts:
                whole.write_table(self._parquet.read_table(part, schema=self._schema))


def writer_for(path: Path, *, whole: bool = False, answers: bool = False) -> Writer:
    """Return the writer for a file's suffix; ``whole``: the hits' ids are integers; ``answers``: rows have one."""
    if path.suffix == ".jsonl":
        return JsonlWriter()
    if path.suffix == ".parquet":
        return ParquetWriter(whole=whole, answers=answers)
    raise InputError(f"--out is {str(path)!r}; its suffix must be one of .jsonl, .parquet")
