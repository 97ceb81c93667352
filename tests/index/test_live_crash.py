"""No committed batch is lost and none is half there: after a loss of power at any moment, and after SIGKILL.

``.ci/soak`` does the same with long drawn histories and more writers.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from index.crashes import Step, check, history, kill_writers

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
    crashes = {
        (tuple(sorted(files.items())), acknowledged)
        for disk, acknowledged in recorder.moments
        for files in disk.crashes()
    }
    assert len(crashes) > 60
    for files, acknowledged in sorted(crashes):
        check(after, dict(files), acknowledged, rows)


def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    assert kill_writers(tmp_path, seed=0, kills=60) == 60
