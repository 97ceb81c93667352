"""A save is all or nothing: killed, failing, concurrent, and over an index that is open."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import processes
import pytest
from hopfuse.errors import FormatError, InputError
from hopfuse.index import Index
from index.index_files import assert_same, full_index, generation_file, vectors
from refusals import refused
from tiers import FULL

KILLED_SAVE = """
import os, signal, sys
from pathlib import Path
import zlib
from hopfuse.index import Index

owner = {"os": os, "zlib": zlib, "path": Path}[sys.argv[2]]
name, calls, before = sys.argv[3], int(sys.argv[4]), sys.argv[5] == "before"
original = getattr(owner, name)

def deadly(*args, **kwargs):
    global calls
    calls -= 1
    if calls == 0 and before:
        os.kill(os.getpid(), signal.SIGKILL)
    result = original(*args, **kwargs)
    if calls == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return result

new = Index.build(passages=[{"text": "new"}], vectors=[[1.0, 2.0]], graph=[{"src": 0, "dst": 1}])
setattr(owner, name, deadly)
new.save(sys.argv[1])
"""

SAVES = """
import sys
from pathlib import Path
from hopfuse.index import Index

directory, text, enough = sys.argv[1:]
index, saves = Index.build(passages=[{"text": text}] * 20), 0
while not Path(enough).exists():
    index.save(directory)
    saves += 1
print(saves)
"""


def start(script: str, *arguments: object, stdout: int | None = None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return processes.Popen(command, env=dict(os.environ, PYTHONPATH=_path()), stdout=stdout)


def _path() -> str:
    return os.pathsep.join(p for p in sys.path if p)


# fsync: 1 the file, 2 the directory, 3 CURRENT.new, 4 the directory after the rename
# unlink: 1 CURRENT.new, 2 the old generation
@pytest.mark.parametrize(
    ("owner", "function", "call", "when", "survivor"),
    [
        ("zlib", "crc32", 1, "before", "old"),
        ("zlib", "crc32", 9, "before", "old"),
        ("os", "fsync", 1, "before", "old"),
        ("os", "fsync", 1, "after", "old"),
        ("os", "fsync", 2, "after", "old"),
        ("os", "fsync", 3, "before", "old"),
        ("os", "replace", 1, "before", "old"),
        ("os", "replace", 1, "after", "new"),
        ("os", "fsync", 4, "after", "new"),
        ("os", "unlink", 1, "before", "old"),
        ("os", "unlink", 2, "before", "new"),
        ("os", "unlink", 2, "after", "new"),
    ],
)
def test_a_kill_during_a_save_leaves_the_old_index_or_the_new(
    tmp_path: Path, owner: str, function: str, call: int, when: str, survivor: str
) -> None:
    old = full_index()
    old.save(tmp_path)
    child = start(KILLED_SAVE, tmp_path, owner, function, call, when)
    assert child.wait() == -signal.SIGKILL
    index = Index.open(tmp_path, verify="full")
    if survivor == "old":
        assert_same(index, old)
        assert index.info()["generation"] == 1
    else:
        assert list(index.texts) == ["new"]
        assert index.info()["generation"] == 2
    newest = old.save(tmp_path)
    assert newest in (2, 3)
    assert_same(Index.open(tmp_path, verify="full"), old)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["CURRENT", "LOCK", f"generation-{newest:012d}.hopfuse"]


def test_a_kill_during_the_first_save_leaves_no_index(tmp_path: Path) -> None:
    child = start(KILLED_SAVE, tmp_path, "os", "replace", 1, "before")
    assert child.wait() == -signal.SIGKILL
    with refused(FormatError, "missing"):
        Index.open(tmp_path)
    full_index().save(tmp_path)
    assert_same(Index.open(tmp_path, verify="full"), full_index())


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_failing_save_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    old = full_index()
    old.save(tmp_path)

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, function, fails)
        with pytest.raises(OSError, match="No space left"):
            Index.build(passages=[]).save(tmp_path)
    assert [p.name for p in tmp_path.glob("generation-*")] == ["generation-000000000001.hopfuse"]
    assert_same(Index.open(tmp_path, verify="full"), old)


def test_an_interrupt_just_after_the_rename_keeps_the_new_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_index().save(tmp_path)
    replace = os.replace

    def interrupted(*arguments: str) -> None:
        replace(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Index.build(passages=[{"text": "new"}]).save(tmp_path)
    assert list(Index.open(tmp_path, verify="full").texts) == ["new"]


def test_saving_over_an_open_index_disturbs_nobody(tmp_path: Path) -> None:
    old = full_index()
    old.save(tmp_path)
    opened = Index.open(tmp_path)
    touched = opened.texts[0]
    assert Index.build(passages=[{"text": "new"}]).save(tmp_path) == 2
    assert_same(opened, old)
    assert opened.texts[0] == touched
    assert opened.info()["generation"] == 1
    assert list(Index.open(tmp_path).texts) == ["new"]


def test_an_index_can_be_saved_over_itself(tmp_path: Path) -> None:
    full_index().save(tmp_path)
    opened = Index.open(tmp_path)
    assert [opened.save(tmp_path) for _ in range(3)] == [2, 3, 4]
    assert_same(Index.open(tmp_path, verify="full"), full_index())
    assert len(list(tmp_path.glob("generation-*"))) == 1


@pytest.mark.parametrize(
    ("length", "verify", "generations"), [(50_000, "full", 25 if FULL else 10), (1, "lazy", 100 if FULL else 30)]
)
def test_opens_beside_saves_of_two_processes_always_find_a_whole_index(
    tmp_path: Path, length: int, verify: Any, generations: int
) -> None:
    """Large indexes read whole, and small ones that are saved as fast as can be, until enough generations have gone."""
    texts = {letter * length for letter in "ab"}
    directory, enough = tmp_path / "index", tmp_path / "enough"
    Index.build(passages=[{"text": "a" * length}] * 20).save(directory)
    children = [start(SAVES, directory, text, enough, stdout=subprocess.PIPE) for text in texts]
    found, generation = set[str](), 1
    try:
        while generation < generations or found != texts:
            index = Index.open(directory, verify=verify)
            found |= {*index.texts}
            assert len({*index.texts}) == 1
            assert index.info()["generation"] >= generation
            generation = index.info()["generation"]
            assert [child.poll() for child in children] == [None, None]
    finally:
        enough.touch()
        saves = [int(child.communicate()[0]) for child in children]
    assert found == texts
    assert [child.returncode for child in children] == [0, 0]
    assert Index.open(directory, verify="full").info()["generation"] == 1 + sum(saves)
    assert len(list(directory.glob("generation-*"))) == 1


def test_threads_may_save_and_read_one_index(tmp_path: Path) -> None:
    full_index().save(tmp_path)
    opened = Index.open(tmp_path)
    found: list[object] = []

    def work() -> None:
        generation = opened.save(tmp_path)
        found.append((generation, opened.texts[2], opened.corpus))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(f[0] for f in found) == list(range(2, 10))
    assert len({id(f[2]) for f in found}) == 1
    assert_same(Index.open(tmp_path, verify="full"), full_index())


def test_a_reader_that_loses_the_race_reads_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A save between reading CURRENT and opening the file."""
    full_index().save(tmp_path)
    original = os.open
    paths: list[str] = []

    def overtaken(path: Any, *flags: Any, **options: Any) -> int:
        if Path(path).parent == tmp_path and Path(path).name.startswith("generation-"):
            paths.append(Path(path).name)
            if len(paths) == 1:
                Index.build(passages=[{"text": "new"}]).save(tmp_path)
        return original(path, *flags, **options)

    monkeypatch.setattr(os, "open", overtaken)
    assert list(Index.open(tmp_path).texts) == ["new"]
    first, second = (f"generation-00000000000{n}.hopfuse" for n in (1, 2))
    assert paths == [first, first, second, second]  # the save reads the seq of what it replaces, and creates its own


def test_a_file_that_is_replaced_while_it_is_opened_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A save between any two looks at the file's name: what is looked at must be what was opened."""
    full_index().save(tmp_path)
    for owner, name in ((Path, "exists"), (Path, "is_file"), (os, "open"), (os, "stat"), (os, "fstat")):
        original, calls = getattr(owner, name), []

        def overtaken(*arguments: Any, _original: Any = original, _calls: list[Any] = calls, **options: Any) -> Any:
            found = _original(*arguments, **options)
            # Only of this index: another thread may open one, too.
            if f"{tmp_path}/generation-" in str(arguments[0]) and not _calls:
                _calls.append(arguments)
                Index.build(passages=[{"text": "new"}]).save(tmp_path)
            return found

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, overtaken)
            assert Index.open(tmp_path).num_passages in (1, 3)


def test_a_pipe_is_not_a_generation_and_does_not_block(tmp_path: Path) -> None:
    full_index().save(tmp_path)
    generation_file(tmp_path).unlink()
    os.mkfifo(generation_file(tmp_path))
    with refused(FormatError, "type"):
        Index.open(tmp_path)


def test_leftovers_of_a_killed_writer_are_removed_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a disk that has room for two generations, a leftover must not stand in the way for ever."""
    old = full_index()
    old.save(tmp_path)
    size = generation_file(tmp_path).stat().st_size
    for number in (7, 9):
        (tmp_path / f"generation-{number:012d}.hopfuse").write_bytes(bytes(size))
    original = os.open

    def small_disk(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        held = sum(file.stat().st_size for file in tmp_path.glob("generation-*"))
        if flags & os.O_CREAT and Path(path).name.startswith("generation-") and held > 2 * size:
            raise OSError(28, "No space left on device")
        return original(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", small_disk)
    assert old.save(tmp_path) == 10
    assert_same(Index.open(tmp_path, verify="full"), old)
    assert [p.name for p in tmp_path.glob("generation-*")] == ["generation-000000000010.hopfuse"]


def test_nothing_is_removed_before_a_save_where_the_pointer_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_index().save(tmp_path)
    file = generation_file(tmp_path)
    for content in ("generation-000000000002.hopfuse\n", "generation-1\n"):
        (tmp_path / "CURRENT").write_text(content)

        original = os.open

        def full_disk(path: Any, flags: int, *rest: Any, original: Any = original, **options: Any) -> int:
            if flags & os.O_CREAT and Path(path).name.startswith("generation-"):
                raise OSError(28, "No space left on device")
            return int(original(path, flags, *rest, **options))

        with monkeypatch.context() as patch:
            patch.setattr(os, "open", full_disk)
            with pytest.raises(OSError, match="No space left"):
                Index.build(passages=[]).save(tmp_path)
        assert file.exists()


def test_planted_links_are_not_followed(tmp_path: Path) -> None:
    """CURRENT.new and LOCK stand in a folder that others may write."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    directory = tmp_path / "index"
    directory.mkdir()
    (directory / "CURRENT.new").symlink_to(victim)
    (directory / "generation-000000000001.hopfuse").symlink_to(victim)
    full_index().save(directory)
    assert victim.read_text() == "mine"
    assert not (directory / "CURRENT").is_symlink()
    assert_same(Index.open(directory, verify="full"), full_index())
    (directory / "LOCK").unlink()
    (directory / "LOCK").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic link"):
        full_index().save(directory)
    assert victim.read_text() == "mine"


def test_foreign_files_are_left_alone(tmp_path: Path) -> None:
    names = ("notes.txt", "generation-7.hopfuse", "generation-000000000001.hopfuse.bak")
    for name in names:
        (tmp_path / name).write_text("mine")
    for _ in range(2):
        full_index().save(tmp_path)
    assert all((tmp_path / name).read_text() == "mine" for name in names)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"generation-000000000001.hopfuse",
        b"generation-000000000001.hopfuse\n\n",
        b"../index/generation-000000000001.hopfuse\n",
        b"/etc/passwd\n",
        b"generation-1.hopfuse\n",
        b"generation-\xef\xbc\x90\xef\xbc\x900000000001.hopfuse\n",
        b"\xff" * 1000,
    ],
)
def test_a_damaged_pointer_is_refused(tmp_path: Path, content: bytes) -> None:
    full_index().save(tmp_path)
    (tmp_path / "CURRENT").write_bytes(content)
    with refused(FormatError, "syntax", place="CURRENT"):
        Index.open(tmp_path)


def test_a_pointer_to_nothing_is_refused(tmp_path: Path) -> None:
    full_index().save(tmp_path)
    generation_file(tmp_path).unlink()
    with refused(FormatError, "missing", given=generation_file(tmp_path).name, place="CURRENT"):
        Index.open(tmp_path)
    generation_file(tmp_path).mkdir()
    with refused(FormatError, "type"):
        Index.open(tmp_path)


def test_a_generation_under_another_number_is_refused(tmp_path: Path) -> None:
    full_index().save(tmp_path)
    generation_file(tmp_path).rename(tmp_path / "generation-000000000002.hopfuse")
    (tmp_path / "CURRENT").write_text("generation-000000000002.hopfuse\n")
    with refused(FormatError, "conflict", given=1, allowed=2):
        Index.open(tmp_path)


def test_open_says_what_is_wrong_with_its_arguments(tmp_path: Path) -> None:
    with refused(InputError, "missing", "directory"):
        Index.open(tmp_path / "nothing")
    with refused(FormatError, "missing", pointer="CURRENT"):
        Index.open(tmp_path)
    full_index(vectors=vectors(3)).save(tmp_path)
    with refused(InputError, "choice", "verify", allowed="lazy, full"):
        Index.open(tmp_path, verify="none")  # type: ignore[arg-type]
    assert Index.open(str(tmp_path)).num_passages == 3
