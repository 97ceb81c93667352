"""Files are written whole or not at all, under names that nobody can plant a link at."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hopfuse.errors import InputError
from hopfuse.io import create_exclusively, read_text, write_whole
from refusals import refused


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "result"
    write_whole(path, lambda file: file.write(b"old"))

    def fail(file) -> None:
        file.write(b"ne")
        raise RuntimeError("no space")

    with pytest.raises(RuntimeError, match="no space"):
        write_whole(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    write_whole(path, lambda file: file.write(b"new"))
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    victim, out = tmp_path / "victim", tmp_path / "out.jsonl"
    victim.write_text("mine")
    for name in ("out.jsonl.unfinished", "out.jsonl.tmp"):
        (tmp_path / name).symlink_to(victim)
    out.symlink_to(victim)
    write_whole(out, lambda file: file.write(b"result"))
    assert victim.read_text() == "mine"
    assert not out.is_symlink()
    assert out.read_text() == "result"
    link = tmp_path / "link"
    link.symlink_to(victim)
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "nowhere")
    for path in (link, dangling, victim):
        with pytest.raises(FileExistsError):
            create_exclusively(path)
    assert victim.read_text() == "mine"


def test_a_new_file_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "result", lambda file: file.write(b"x"))
    finally:
        os.umask(before)
    assert (tmp_path / "result").stat().st_mode & 0o777 == 0o640


def test_writers_of_one_name_do_not_mix(tmp_path: Path) -> None:
    path, started = tmp_path / "result", threading.Barrier(4)

    def write(letter: bytes) -> None:
        def fill(file) -> None:
            for _ in range(50):
                file.write(letter * 1000)
            started.wait()

        write_whole(path, fill)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c", b"d")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in {letter * 50_000 for letter in (b"a", b"b", b"c", b"d")}
    assert list(tmp_path.iterdir()) == [path]


def test_a_text_is_read_as_it_is_from_files_and_pipes(tmp_path: Path) -> None:
    text = "\ufeffa\rb\r\nc\n"
    (tmp_path / "file").write_bytes(text.encode())
    assert read_text(tmp_path / "file", "--nodes") == "a\rb\r\nc\n"
    pipe, end = os.pipe()
    try:
        os.write(end, text.encode())
        os.close(end)
        assert read_text(Path(f"/dev/fd/{pipe}"), "--nodes") == "a\rb\r\nc\n"
    finally:
        os.close(pipe)
    for path in (tmp_path, tmp_path / "none", tmp_path / "file" / "none"):
        with refused(InputError, "missing", "--nodes"):
            read_text(path, "--nodes")
    (tmp_path / "file").write_bytes(b"\xe9")
    with refused(InputError, "syntax", "--nodes"):
        read_text(tmp_path / "file", "--nodes")
