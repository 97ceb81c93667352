"""No committed batch is lost and none is half there: after a loss of power at any moment, and after SIGKILL.

``.ci/soak`` does the same with long drawn histories and more writers.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hopfuse.errors import FormatError
from index import crashes
from index.crashes import Recorder, Step, check, commit, history, kill_writers, losses

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files are read again through /proc/self/fd")

SHORT: list[Step] = [
    ("add", "b"),
    ("add", "c", "-b"),
    ("compact",),
    ("add", "d"),
    ("reopen",),
    ("add", "e"),
    ("compact",),
]


def test_every_loss_of_power_in_a_short_history_leaves_what_was_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, after = tmp_path / "index", tmp_path / "after"
    after.mkdir()
    recorder, rows = history(folder, SHORT, monkeypatch)
    found = losses(recorder)
    assert sum(map(len, found.values())) > 60
    for files, acknowledged in found.items():
        check(after, dict(files), acknowledged, rows)


def test_a_writer_that_acknowledges_before_it_syncs_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorder is told of the sync of a log only when the next batch is written."""
    folder, after, put_off = tmp_path / "index", tmp_path / "after", list[int]()
    after.mkdir()
    told = Recorder.after_fsync

    def late(recorder: Recorder, result: None, descriptor: int) -> None:
        if "log-" in os.readlink(f"/proc/self/fd/{descriptor}"):
            put_off.append(descriptor)
        else:
            told(recorder, result, descriptor)

    monkeypatch.setattr(Recorder, "after_fsync", late)
    recorder, rows = history(folder, [("add", "b")], monkeypatch)
    assert put_off
    faults = 0
    for files, acknowledged in losses(recorder).items():
        try:
            check(after, dict(files), acknowledged, rows)
        except (AssertionError, FormatError):
            faults += 1
    assert faults


def test_a_writer_that_acknowledges_what_it_does_not_write_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(live: Any, *ids: str) -> int:
        return 5 if ids[0] == "5" else commit(live, *ids)

    monkeypatch.setattr(crashes, "commit", forgetful)
    with pytest.raises(AssertionError):
        kill_writers(tmp_path, seed=0, kills=20)


@pytest.mark.parametrize("kills", [20, pytest.param(60, marks=pytest.mark.full)])
def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path, kills: int) -> None:
    assert kill_writers(tmp_path, seed=0, kills=kills) == kills
