"""A long run that may be killed: finished parts stay, and the next run goes on after them."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import InputError
from .files import sync_directory, write_whole
from .results import Row, Writer

STATE = "state.json"
LOCK = "lock"


class Job:
    """Parts of a result in ``OUT.partial``, and what they are the result of.

    Parameters
    ----------
    out : Path
        The file that will be there at the end, and not before.
    identity : mapping
        Inputs and options: parts of another identity are not taken up.
    writer : Writer
    """

    def __init__(self, out: Path, identity: Mapping[str, Any], writer: Writer) -> None:
        self.out = out
        self.directory = out.with_name(f"{out.name}.partial")
        self._identity = dict(identity)
        self._writer = writer

    @contextmanager
    def started(self, *, restart: bool) -> Iterator[int]:
        """Take the directory for this process; gives the number of parts that are there already.

        Raises
        ------
        InputError
            Another process works on it, or it holds parts of another run and ``restart`` is False.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        with open(self.directory / LOCK, "w") as lock:
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
        write_whole(self._part(number), lambda path: self._writer.write(path, rows))

    def finish(self, parts: int) -> None:
        """Join the parts to the result, and drop them."""
        write_whole(self.out, lambda path: self._writer.join(path, map(self._part, range(parts))))
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
            write_whole(state, lambda path: _write_text(path, text))
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


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
