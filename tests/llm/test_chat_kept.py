"""What is paid for is kept as it came, given out in copies, and not lost where the disk fails."""

from __future__ import annotations

import json
import os
import shutil
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
from hopfuse.errors import InputError
from hopfuse.llm import ChatEndpoint
from llm.chat_server import in_turn
from llm.test_chat_endpoint import NUMBER, counted, endpoint
from refusals import refused

pytest.importorskip("openai", reason="the openai client is not installed: pip install 'hopfuse[llm]'")


def the_only(folder: Path) -> Path:
    (file,) = folder.rglob("*.json")
    return file


def spoil(found: dict[str, Any]) -> dict[str, Any]:
    found["n"] = -found["n"]
    found["more"] = object()
    return found


def test_a_check_that_changes_its_object_changes_nothing_kept(serve, tmp_path):
    server = serve(counted)
    for _ in range(2):
        (found,) = endpoint(server, cache=tmp_path).ask(["7"], NUMBER, check=spoil)
        assert found["n"] == -7
        assert json.loads(the_only(tmp_path).read_bytes()) == {"answer": {"n": 7}}
    assert len(server.requests) == 1


@pytest.mark.parametrize("check", [None, spoil])
def test_each_prompt_has_an_answer_of_its_own(serve, check):
    server = serve(counted)
    first, second, third = endpoint(server).ask(["7", "7", "7"], NUMBER, check=check)
    assert first["n"] == second["n"] == third["n"]
    assert first is not second
    assert second is not third
    assert len(server.requests) == 1


def test_an_answer_is_kept_though_its_check_breaks(serve, tmp_path):
    server = serve(counted)

    def broken(found: dict[str, Any]) -> Any:
        raise KeyError("entities")

    with pytest.raises(KeyError, match="entities"):
        endpoint(server, cache=tmp_path).ask(["7"], NUMBER, check=broken)
    assert endpoint(server, cache=tmp_path).ask(["7"], NUMBER) == [{"n": 7}]
    assert len(server.requests) == 1


def test_a_refused_answer_that_was_kept_is_asked_again(serve, tmp_path):
    def two(found: dict[str, Any]) -> int:
        if found["n"] != 2:
            raise ValueError("it must be 2")
        return 2

    server = serve(in_turn({"n": 1}, {"n": 2}))
    for _ in range(2):
        assert endpoint(server, cache=tmp_path).ask(["?"], NUMBER, check=two) == [2]
    assert len(server.requests) == 2


def test_a_folder_where_the_file_should_be(serve, tmp_path):
    server = serve(counted)
    endpoint(server, cache=tmp_path).ask(["7"], NUMBER)
    file = the_only(tmp_path)
    file.unlink()
    file.mkdir()
    with pytest.warns(RuntimeWarning, match=r"cannot be read|could not be kept") as told:
        assert endpoint(server, cache=tmp_path).ask(["7"], NUMBER) == [{"n": 7}]
    assert str(file) in str(told[0].message)
    assert "could not be kept" in str(told[1].message)
    assert len(told) == 2
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_folder_that_is_gone_is_made_again(serve, tmp_path):
    asked = endpoint(serve(counted), cache=tmp_path / "a")
    shutil.rmtree(tmp_path / "a")
    assert asked.ask(["7"], NUMBER) == [{"n": 7}]
    assert json.loads(the_only(tmp_path).read_bytes()) == {"answer": {"n": 7}}


def test_a_failing_disk_is_reported_once_and_loses_no_answer(serve, tmp_path):
    asked = endpoint(serve(counted), cache=tmp_path / "a")
    shutil.rmtree(tmp_path / "a")
    (tmp_path / "a").write_text("")
    with pytest.warns(RuntimeWarning, match=r"cannot be read|could not be kept") as told:
        assert asked.ask([str(i) for i in range(20)], NUMBER) == [{"n": i} for i in range(20)]
    assert sum("could not be kept" in str(one.message) for one in told) == 1
    assert len(told) == 2
    assert all(str(tmp_path / "a") in str(one.message) for one in told)


def test_files_are_for_whom_the_umask_says(serve, tmp_path):
    before = os.umask(0o022)
    try:
        endpoint(serve(counted), cache=tmp_path).ask(["7"], NUMBER)
    finally:
        os.umask(before)
    assert the_only(tmp_path).stat().st_mode & 0o777 == 0o644


def test_leftovers_of_a_killed_process_are_removed(tmp_path):
    old, new, other = (tmp_path / name for name in ("a.unfinished", "b.unfinished", "c.json"))
    for file in (old, new, other):
        file.write_text("{")
    day_ago = time.time() - 86400
    for file in (old, other):
        os.utime(file, (day_ago, day_ago))
    ChatEndpoint("http://h/v1", model="m", cache=tmp_path)
    assert [file.exists() for file in (old, new, other)] == [False, True, True]


def test_nothing_unfinished_is_left(serve, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        endpoint(serve(counted), cache=tmp_path).ask([str(i) for i in range(9)], NUMBER)
    assert list(tmp_path.rglob("*.unfinished")) == []


@pytest.mark.parametrize(
    ("folder", "code"),
    [(5, "type"), ("", "empty"), (" ", "empty"), ("a\0b", "failed"), (b"a", "type"), (["a"], "type")],
)
def test_an_invalid_path_is_refused(folder, code):
    with refused(InputError, code, "cache"):
        ChatEndpoint("http://h/v1", model="m", cache=folder)
