"""The folder of a run: its plan, its finished parts, and its lock."""

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
from .parts import Row, Seal, damaged, part_format, seal_of
from .plan import Plan, check_inputs, stamps

PLAN, STAMPS, LOCK, DRAFTS, PARTS = "plan.json", "stamps.json", "lock", "drafts", "parts"


class Folder:
    """A plan and its finished parts. A part exists whole or not at all.

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
        """The plan of the parts.

        Raises
        ------
        InputError
            There is no plan.
        FormatError
            The plan is damaged.
        """
        try:
            text = (self.path / PLAN).read_bytes()
        except OSError:
            raise InputError(
                "missing",
                "folder",
                "{path} is not the {field} of a run: it has no {file}. hopfuse score plan makes such a folder; hopfuse "
                "score removes its own once the result is complete",
                path=self.path,
                file=PLAN,
            ) from None
        return Plan.from_json(text, str(self.path / PLAN))

    @cached_property
    def _format(self) -> Any:
        return part_format(self.plan.output)

    def has_plan(self) -> bool:
        """Return whether the folder has a plan."""
        return (self.path / PLAN).exists()

    def create(self, plan: Plan, queries: Path | None = None) -> None:
        """Create the folder; the plan is written last.

        Parameters
        ----------
        plan : Plan
        queries : Path, optional
            A file to copy to the plan's path of queries.

        Raises
        ------
        InputError
            The folder has another plan, or another process uses it.
        """
        if self.has_plan():
            differ = self.plan.differs(plan)
            if differ:
                raise InputError(
                    "exists",
                    "folder",
                    "{path} has a plan with other {names}; choose another {field}, or remove it",
                    path=self.path,
                    names=", ".join(differ),
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
        """Return the digests of input files with their stamps."""
        try:
            found: dict[str, Any] = json.loads((self.path / STAMPS).read_bytes())
        except (OSError, ValueError):
            return {}
        return found

    def check(self) -> None:
        """Refuse other versions or other input files than the plan's.

        Raises
        ------
        InputError
        """
        self.plan.check_versions()
        check_inputs(self.plan.inputs, self.known())

    @contextmanager
    def lock(self, *, alone: bool) -> Iterator[None]:
        """Hold the folder's lock: shared, or exclusively if ``alone``.

        Several processes may make parts of a plan at once; merging and removing need the folder for themselves. The
        next process that is alone removes drafts that killed processes left.

        Raises
        ------
        InputError
            Another process holds the lock.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / LOCK, "a", opener=no_link) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._clear(self.path / DRAFTS)
            except BlockingIOError:
                if alone:
                    raise InputError(
                        "busy", "folder", "{path} is in use by another process; wait for it, or stop it", path=self.path
                    ) from None
            if not alone:
                fcntl.flock(file, fcntl.LOCK_SH)
            yield

    def part(self, number: int) -> Path:
        """Return the path of a part."""
        return self.path / PARTS / f"part-{number:06d}.{self.plan.output.kind}"

    def has(self, number: int) -> bool:
        """Return whether a part exists.

        Raises
        ------
        FormatError
            The part is damaged.
        InputError
            The part belongs to another plan.
        """
        return self.part(number).exists() and self.seal(number).part == number

    def seal(self, number: int) -> Seal:
        """Return the seal of a finished part; errors as in :meth:`has`."""
        path = self.part(number)
        found = self._format.seal(path)
        if (found.plan, found.part) != (self.plan.digest, number):
            raise InputError(
                "changed",
                "folder",
                "{path} is part {part} of another plan; remove it and run again, which makes it anew",
                path=path,
                part=found.part,
            )
        return found  # type: ignore[no-any-return]

    def missing(self, numbers: Sequence[int] | None = None) -> list[int]:
        """Return which of all parts, or of these, do not exist yet."""
        wanted = range(self.plan.num_parts) if numbers is None else numbers
        return [number for number in wanted if not self.has(number)]

    def check_seals(self) -> list[Seal]:
        """Return the seals of all parts.

        Raises
        ------
        InputError
            A part is missing.
        """
        missing = self.missing()
        if missing:
            raise InputError(
                "missing",
                "folder",
                "{path} has {count} of {parts} parts, and lacks part {part}; make the others: hopfuse score run {path}",
                path=self.path,
                count=self.plan.num_parts - len(missing),
                parts=self.plan.num_parts,
                part=missing[0],
            )
        return [self.seal(number) for number in range(self.plan.num_parts)]

    def check_whole(self) -> None:
        """Read all parts, and verify their checksums and numbers of rows.

        Raises
        ------
        InputError
            A part is missing.
        FormatError
            A part is damaged, or has another number of rows than in the plan.
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
        """Yield the rows of a part after verifying its checksum; errors as in :meth:`check_whole`."""
        rows: Iterator[Row] = self._format.rows(self.part(number))
        return rows

    def encode(self, number: int, rows: Sequence[Row]) -> bytes:
        """Return the bytes of a part."""
        found: bytes = self._format.encode(rows, seal_of(rows, self.plan.digest, number))
        return found

    def add(self, number: int, rows: Sequence[Row]) -> None:
        """Write a part: flush it to the disk, then rename it to its name.

        Raises
        ------
        OSError
            The part cannot be written; nothing of it stays.
        """
        try:
            self._write(self.part(number), self.encode(number, rows))
        except OSError as error:
            raise OSError(
                error.errno,
                f"part {number} of {self.path} cannot be written: {error.strerror}; make room or give write "
                "permission, and run again: the finished parts stay",
            ) from error

    def remove(self) -> None:
        """Remove the folder, its plan first: after a kill in between, the folder has no plan."""
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
        """Remove the contents of a folder, which another process may be removing, too."""
        if not place.is_dir():
            return
        for path in place.iterdir():
            if path.is_dir() and not path.is_symlink():
                self._clear(path)
                path.rmdir()
            elif path.name != but:
                path.unlink(missing_ok=True)


def same_disk(a: Path, b: Path) -> bool:
    """Return whether two folders are on one file system, so that files can be renamed between them."""
    return os.stat(a).st_dev == os.stat(b).st_dev
