"""An earlier commit runs in its own process; programs that keep the cores busy end with the bench."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import hopfuse as hf
import pytest

from bench.cases import CASES, busy
from bench.errors import UnavailableError
from bench.peers.earlier_commit import VARIABLE, EarlierCommit
from bench.settings import Settings

QUICK = Settings(quick=True, repeats=1, threads=1)


@pytest.fixture
def this_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use this hopfuse instead of an earlier one."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={Path(hf.__file__).parents[1]} exec {sys.executable} "$@"\n')
    python.chmod(0o700)
    monkeypatch.setenv(VARIABLE, str(python))


@pytest.mark.parametrize("case", ["ppr-hotpotqa", "fusion-rrf-1000", "phasegraph-one-thread"])
def test_an_earlier_commit_answers_the_same_calls(this_commit: None, case: str) -> None:
    workload = CASES[case].load(QUICK)
    batch = max(workload.batches)
    earlier = EarlierCommit(workload, 1)
    answer = earlier.answer(earlier.run(batch))
    assert workload.compare(batch, workload.run(batch, 0), answer)["queries"] == batch
    earlier.process.kill()
    earlier.process.wait()
    with pytest.raises(UnavailableError, match="ended with status"):
        earlier.run(batch)
    earlier.close()


def test_without_an_earlier_commit_the_pair_is_skipped_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(UnavailableError, match=f"{VARIABLE} is not set; install"):
        EarlierCommit.require()


def test_a_path_that_is_not_a_program_is_named_with_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "text"
    text.touch()
    workload = CASES["fusion-rrf-1000"].load(QUICK)
    for path in (tmp_path / "absent", tmp_path, text):
        monkeypatch.setenv(VARIABLE, str(path))
        with pytest.raises(UnavailableError, match=f"{VARIABLE} is '{path}', which cannot be run"):
            EarlierCommit(workload, 1)


def test_busy_programs_run_only_while_turns_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*arguments, **options))
        return started[-1]

    workload = CASES["busy-fusion"].load(QUICK)
    monkeypatch.setattr(busy.subprocess, "Popen", start)
    assert not started
    with workload.beside():
        assert [other.poll() for other in started] == [None]
    assert [other.returncode for other in started] == [-signal.SIGKILL]


def test_busy_programs_end_with_the_bench() -> None:
    other = subprocess.Popen((sys.executable, "-c", busy.SPIN), stdin=subprocess.PIPE)
    assert other.poll() is None
    other.communicate()
    assert other.returncode == 0
