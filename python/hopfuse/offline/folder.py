"""The folder of a run: its plan, its finished parts, and who works in it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from operator import methodcaller
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..io.files import no_link, sync_directory, write_whole
from .files import check_inputs, stamps
from .parts import Row, Seal, damaged, part_format, seal_of
from .plan import Plan

PLAN, STAMPS, LOCK, DRAFTS, PARTS = "plan.json", "stamps.json", "lock", "drafts", "parts"


class Folder:
    """A plan and the parts of it that are finished. A part is there whole, or not at all.

    Parameters
    ----------
    path : Path

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from hopfuse.offline import Folder, Output, Plan
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = Folder(pathlib.Path(place, "run"))
    ...     folder.create(Plan("q.jsonl", {}, {}, {}, Output("jsonl"), rows=2, part_rows=1))
    ...     folder.add(1, [{"id": "q1", "hits": []}])
    ...     folder.missing()
    [0]
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def plan(self) -> Plan:
        """The plan that the parts are of.

        Raises
        ------
        InputError
            There is none.
        FormatError
            It is damaged.
        """
        try:
            text = (self.path / PLAN).read_bytes()
        except OSError:
            raise InputError(f"{self.path} holds no plan; hopfuse score plan makes one") from None
        return Plan.from_json(text, str(self.path / PLAN))

    @cached_property
    def _format(self) -> Any:
        return part_format(self.plan.output)

    def has_plan(self) -> bool:
        """Return whether a plan was made here."""
        return (self.path / PLAN).exists()

    def create(self, plan: Plan, queries: Path | None = None) -> None:
        """Make the folder, and put the plan there last.

        Parameters
        ----------
        plan : Plan
        queries : Path, optional
            A file that is copied to where the plan has its queries.

        Raises
        ------
        InputError
            It holds another plan, or another process works on it.
        """
        if self.has_plan():
            differ = self.plan.differs(plan)
            if differ:
                raise InputError(
                    f"{self.path} holds a plan with other {', '.join(differ)}; choose another folder, or remove it"
                )
            return
        with self.lock(alone=True):
            self.clear()
            for place in (PARTS, DRAFTS):
                (self.path / place).mkdir(exist_ok=True)
            if queries is not None:
                with open(queries, "rb") as source:
                    write_whole(Path(plan.queries), partial(shutil.copyfileobj, source), drafts=self.path / DRAFTS)
            self._write(self.path / STAMPS, stamps(plan.inputs))
            self._write(self.path / PLAN, plan.to_json())

    def known(self) -> dict[str, Any]:
        """Return the digests of input files with the stamps that they had."""
        try:
            found: dict[str, Any] = json.loads((self.path / STAMPS).read_bytes())
        except (OSError, ValueError):
            return {}
        return found

    def check(self) -> None:
        """Refuse to go on with other versions or other input files than the plan's.

        Raises
        ------
        InputError
        """
        self.plan.check_versions()
        check_inputs(self.plan.inputs, self.known())

    @contextmanager
    def lock(self, *, alone: bool) -> Iterator[None]:
        """Keep others from merging or removing the folder meanwhile; ``alone``: from working here at all.

        Several processes may run parts of one plan at once. What processes that were killed left half written is
        removed by the next one that finds itself alone.

        Raises
        ------
        InputError
            Another process is in the way.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / LOCK, "a", opener=no_link) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._clear(self.path / DRAFTS)
            except BlockingIOError:
                if alone:
                    raise InputError(
                        f"{self.path}: another process is working on it; wait for it, or stop it first"
                    ) from None
            if not alone:
                fcntl.flock(file, fcntl.LOCK_SH)
            yield

    def part(self, number: int) -> Path:
        """Return where a part is, or will be."""
        return self.path / PARTS / f"part-{number:06d}.{self.plan.output.kind}"

    def has(self, number: int) -> bool:
        """Return whether a part is there.

        Raises
        ------
        FormatError
            It is damaged.
        InputError
            It is of another plan.
        """
        return self.part(number).exists() and self.seal(number).part == number

    def seal(self, number: int) -> Seal:
        """Return the end of a finished part; errors as in :meth:`has`."""
        path = self.part(number)
        found = self._format.seal(path)
        if (found.plan, found.part) != (self.plan.digest, number):
            raise InputError(
                f"{path} is part {found.part} of another plan; remove it and run again: it will be made anew"
            )
        return found  # type: ignore[no-any-return]

    def missing(self, numbers: Sequence[int] | None = None) -> list[int]:
        """Return which parts, of all or of these, are still to be made."""
        wanted = range(self.plan.num_parts) if numbers is None else numbers
        return [number for number in wanted if not self.has(number)]

    def check_seals(self) -> list[Seal]:
        """Return the ends of all parts.

        Raises
        ------
        InputError
            Some are missing.
        """
        missing = self.missing()
        if missing:
            raise InputError(
                f"{self.path} has {self.plan.num_parts - len(missing)} of {self.plan.num_parts} parts, and not part "
                f"{missing[0]}; hopfuse score run {self.path} makes the others"
            )
        return [self.seal(number) for number in range(self.plan.num_parts)]

    def check_whole(self) -> None:
        """Read all parts, and check their checksums and rows.

        Raises
        ------
        InputError
            Some are missing, or have other rows than the plan says.
        FormatError
            One is damaged.
        """
        self.check_seals()
        for number in range(self.plan.num_parts):
            first, end = self.plan.row_range(number)
            if sum(1 for _ in self._format.rows(self.part(number))) != end - first:
                raise damaged(self.part(number))

    def rows(self) -> Iterator[Row]:
        """Yield the rows of all parts, in order."""
        for number in range(self.plan.num_parts):
            yield from self.rows_of(number)

    def rows_of(self, number: int) -> Iterator[Row]:
        """Yield the rows of a part, whose checksum is checked first; errors as in :meth:`check_whole`."""
        rows: Iterator[Row] = self._format.rows(self.part(number))
        return rows

    def encode(self, number: int, rows: Sequence[Row]) -> bytes:
        """Return the bytes of a part."""
        found: bytes = self._format.encode(rows, seal_of(rows, self.plan.digest, number))
        return found

    def add(self, number: int, rows: Sequence[Row]) -> None:
        """Keep a part: write it, put it on the disk, and only then give it its name.

        Raises
        ------
        OSError
            It cannot be written; nothing of it stays.
        """
        try:
            self._write(self.part(number), self.encode(number, rows))
        except OSError as error:
            raise OSError(
                error.errno,
                f"part {number} of {self.path} cannot be written: {error.strerror}; the finished parts stay: make room "
                "and run again",
            ) from error

    def remove(self) -> None:
        """Remove the folder, its plan first: what is left by a kill is no run any more."""
        (self.path / PLAN).unlink(missing_ok=True)
        if self.path.exists():
            sync_directory(self.path)
            self._clear(self.path)
            self.path.rmdir()
            sync_directory(self.path.parent)

    def clear(self) -> None:
        """Remove the plan and all parts; the lock stays."""
        (self.path / PLAN).unlink(missing_ok=True)
        self._clear(self.path, but=LOCK)
        self.__dict__.pop("plan", None)

    def _write(self, path: Path, content: bytes) -> None:
        write_whole(path, methodcaller("write", content), drafts=self.path / DRAFTS)

    def _clear(self, place: Path, *, but: str = "") -> None:
        """Remove what a folder holds; another process may be removing it, too."""
        if not place.is_dir():
            return
        for path in place.iterdir():
            if path.is_dir() and not path.is_symlink():
                self._clear(path)
                path.rmdir()
            elif path.name != but:
                path.unlink(missing_ok=True)


def same_disk(a: Path, b: Path) -> bool:
    """Return whether a file can be renamed from one folder into the other."""
    return os.stat(a).st_dev == os.stat(b).st_dev
