"""Crashes of a process that writes an index: losses of power at any moment, and SIGKILL.

Nothing that was committed may be lost, and nothing may be half there. Linux only: files are read through /proc/self/fd.
"""

from __future__ import annotations

import itertools
import os
import signal
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest


@dataclass
class Disk:
    """What a directory's disk holds for certain, and what it may hold: by name, files; by file, bytes."""

    names: dict[str, int]  # on the disk
    changes: list[tuple[str, int | None]] = field(default_factory=list)  # of names, not yet on the disk
    files: dict[int, bytes] = field(default_factory=dict)  # on the disk
    written: dict[int, bytes] = field(default_factory=dict)  # not yet on the disk

    def copy(self) -> Disk:
        return Disk(dict(self.names), list(self.changes), dict(self.files), dict(self.written))

    def crashes(self) -> Iterator[dict[str, bytes]]:
        """Every directory that may be left: any of the changes of names, and of each file old, new or torn bytes."""
        options = {inode: torn(self.files.get(inode, b""), new) for inode, new in self.written.items()}
        for kept in itertools.product((False, True), repeat=len(self.changes)):
            names = dict(self.names)
            for (name, inode), there in zip(self.changes, kept, strict=True):
                if there:
                    names[name] = inode  # type: ignore[assignment]
            names = {name: inode for name, inode in names.items() if inode is not None}
            loose = sorted({inode for inode in names.values() if inode in options})
            for chosen in itertools.product(*(options[inode] for inode in loose)):
                bytes_of = self.files | dict(zip(loose, chosen, strict=True))
                yield {name: bytes_of.get(inode, b"") for name, inode in names.items()}


def torn(old: bytes, new: bytes) -> list[bytes]:
    """Old bytes, new ones, and new ones of which an end, a beginning or a middle never came."""
    same = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    middle = (same + len(new)) // 2
    first, last = (same + middle) // 2, (middle + len(new)) // 2
    holes = [(middle, len(new)), (same, middle), (first, last)]
    return [
        old,
        new,
        new[:middle],
        *(new[:a] + old[a:b].ljust(b - a, b"\0") + new[b:] for a, b in holes if b > a),
    ]


class Recorder:
    """Follows what a process does to a directory, call by call."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.moments = folder, list[tuple[Disk, int]]()
        self.acknowledged = 0
        self.numbers = {path.stat().st_ino: at for at, path in enumerate(folder.iterdir())}  # inodes are used again
        names = {path.name: self.numbers[path.stat().st_ino] for path in folder.iterdir()}
        self.count = len(names)
        self.disk = Disk(names, files={names[path.name]: path.read_bytes() for path in folder.iterdir()})
        for name in ("open", "pwrite", "ftruncate", "fsync", "replace", "unlink"):
            original = getattr(os, name)
            patch.setattr(os, name, self.followed(original, getattr(self, f"after_{name}")))

    def followed(self, original: Callable[..., Any], after: Callable[..., None]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            found = original(*arguments, **options)
            after(found, *arguments)
            self.moments.append((self.disk.copy(), self.acknowledged))
            return found

        return call

    def after_open(self, descriptor: int, path: Any, flags: int, *_: Any) -> None:
        if flags & os.O_CREAT and Path(path).parent == self.folder:
            inode = os.fstat(descriptor).st_ino
            if flags & os.O_EXCL or inode not in self.numbers:
                self.count += 1
                self.numbers[inode] = self.count
                self.disk.changes.append((Path(path).name, self.count))
                self.disk.written[self.count] = b""

    def after_pwrite(self, _: int, descriptor: int, *__: Any) -> None:
        self.disk.written[self.numbers[os.fstat(descriptor).st_ino]] = content(descriptor)

    def after_ftruncate(self, _: None, descriptor: int, *__: Any) -> None:
        self.after_pwrite(0, descriptor)

    def after_fsync(self, _: None, descriptor: int) -> None:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            for name, inode in self.disk.changes:
                self.disk.names[name] = inode  # type: ignore[assignment]
            self.disk.names = {name: inode for name, inode in self.disk.names.items() if inode is not None}
            self.disk.changes = []
        else:
            number = self.numbers[status.st_ino]
            self.disk.written[number] = content(descriptor)  # through a buffer, until now
            self.moments.append((self.disk.copy(), self.acknowledged))
            self.disk.files[number] = self.disk.written.pop(number)

    def after_replace(self, _: None, source: Any, target: Any) -> None:
        number = self.numbers[os.stat(target).st_ino]
        self.disk.changes += [(Path(target).name, number), (Path(source).name, None)]

    def after_unlink(self, _: None, path: Any, *__: Any) -> None:
        if Path(path).parent == self.folder:
            self.disk.changes.append((Path(path).name, None))


def content(descriptor: int) -> bytes:
    return Path(f"/proc/self/fd/{descriptor}").read_bytes()


def commit(live: hf.LiveIndex[hf.Index], *ids: str, gone: tuple[str, ...] = ()) -> int:
    with live.change() as change:
        change.delete_passages(gone)
        change.add_passages([{"id": id, "text": f"text of {id} " * 9} for id in ids])
    assert change.seq is not None
    return change.seq


Step = tuple[str, ...]


def history(folder: Path, steps: list[Step], patch: pytest.MonkeyPatch) -> tuple[Recorder, dict[int, list[str]]]:
    """Do the steps under a recorder, and return it and the passages of each seq."""
    hf.Index.build(passages=[{"id": "a", "text": "Ada"}]).save(folder)
    rows = {0: ["a"]}
    with patch.context() as following:
        recorder = Recorder(folder, following)
        live = hf.Index.open(folder, writable=True)
        for kind, *ids in steps:
            if kind == "reopen":
                live.close()
                live = hf.Index.open(folder, writable=True)
            elif kind == "compact":
                live.compact()
            else:
                gone = tuple(id[1:] for id in ids if id.startswith("-"))
                new = [id for id in ids if not id.startswith("-")]
                rows[recorder.acknowledged + 1] = [id for id in rows[recorder.acknowledged] if id not in gone] + new
                recorder.acknowledged = commit(live, *new, gone=gone)
        live.close()
    return recorder, rows


def losses(recorder: Recorder) -> dict[tuple[tuple[str, bytes], ...], set[int]]:
    """Every directory that a loss of power may leave, with what was acknowledged when it does; each one once."""
    found: dict[tuple[tuple[str, bytes], ...], set[int]] = {}
    for disk, acknowledged in recorder.moments:
        for files in disk.crashes():
            found.setdefault(tuple(sorted(files.items())), set()).add(acknowledged)
    return found


def check(folder: Path, files: dict[str, bytes], acknowledged: set[int], rows: dict[int, list[str]]) -> None:
    """Open what a crash left: for reading, and for writing."""
    for path in folder.iterdir():
        path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    index = hf.Index.open(folder, verify="full")
    assert all(index.seq in (seq, seq + 1) for seq in acknowledged)
    assert list(index.passage_ids) == rows[index.seq]
    with hf.Index.open(folder, writable=True) as live:
        assert commit(live, "after") == index.seq + 1
    assert list(hf.Index.open(folder, verify="full").passage_ids) == [*rows[index.seq], "after"]


def lose_power(folder: Path, seed: int) -> int:
    """Lose power at every moment of a drawn history of forty steps, in each way; return in how many different ways."""
    rng, after = np.random.default_rng(seed), folder / "after"
    after.mkdir()
    steps: list[Step] = []
    for at in range(40):
        steps.append(("add", f"p{at}") if rng.random() < 0.8 else (str(rng.choice(["compact", "reopen"])),))
    recorder, rows = history(folder / "index", steps, pytest.MonkeyPatch())
    found = losses(recorder)
    for files, acknowledged in found.items():
        check(after, dict(files), acknowledged, rows)
    return sum(map(len, found.values()))


def kill_writers(folder: Path, seed: int, kills: int) -> int:
    """Kill so many writers of one index, each within a commit or two, and check what they leave; return how many."""
    hf.Index.build(passages=[]).save(folder)
    rng, last = np.random.default_rng(seed), 0
    for kill in range(kills):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)  # so that it fails when nobody reads what it acknowledges
            _write_until_killed(folder, writing, compacts=kill % 7 == 0)
        os.close(writing)
        wanted, told = last + int(rng.integers(0, 4)), last
        with os.fdopen(reading) as acknowledged:
            while told < wanted:
                line = acknowledged.readline()
                assert line, f"the writer of kill {kill} ended by itself after commit {told}"
                told = int(line)
            spin = int(rng.integers(0, 4000))
            while spin:  # somewhere in the next commit
                spin -= 1
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            told = max([told, *map(int, acknowledged.read().split("\n")[:-1])])
        index = hf.Index.open(folder)
        assert told <= index.seq <= told + 1
        assert list(index.passage_ids) == [id for seq in range(1, index.seq + 1) for id in (f"{seq}", f"{seq} too")]
        last = index.seq
    assert last > kills // 2
    hf.Index.open(folder, verify="full")
    return kills


def _write_until_killed(folder: Path, acknowledge: int, *, compacts: bool) -> None:
    try:
        live = hf.Index.open(folder, writable=True)
        seq = live.seq
        while True:
            if compacts:
                live.compact_in_background()
            seq = commit(live, f"{seq + 1}", f"{seq + 1} too")
            os.write(acknowledge, f"{seq}\n".encode())
    finally:
        os._exit(1)
