"""The script for the first run on a GPU, with made-up parts, and in full on an emulated machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from stand_in.machine import environment
from variants import SIMT, missing

from bench.first_gpu import __main__ as program
from bench.first_gpu.journal import FailedError, Journal
from bench.first_gpu.parts import PARTS, Part, gpu_tests, sanitizer
from bench.first_gpu.report import Report
from bench.first_gpu.runner import run
from bench.first_gpu.sizes import QUICK

ROOT = Path(__file__).parents[2]
PLANTED = """
import atexit, os, signal, subprocess, sys, time
from bench.errors import UnavailableError
from bench.first_gpu.journal import FailedError

def run(journal, sizes, folder, how):
    journal.note(how=how)
    print("this is", how)
    if how == "skips":
        raise UnavailableError("there is none")
    if how == "fails":
        raise FailedError("it is wrong")
    if how == "raises":
        return {}["no such key"]
    if how == "exits":
        os._exit(3)
    if how == "dies":
        journal.note(left=subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"]).pid)
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "ends badly":
        atexit.register(os._exit, 4)
    if how == "hangs":
        time.sleep(3600)
    return "it is fine"
"""
EXPECTED = {
    "works": ("passed", "it is fine"),
    "skips": ("skipped", "there is none"),
    "fails": ("failed", "it is wrong"),
    "raises": ("failed", "KeyError: 'no such key'"),
    "exits": ("crashed", "its process ended with status 3"),
    "dies": ("crashed", "its process was ended by SIGKILL"),
    "hangs": ("timed out", "it was killed after 0.5 s"),
    "ends badly": ("crashed", "its process ended with status 4, after it reported: it is fine"),
    "goes on": ("passed", "it is fine"),
}


def is_running(pid: int) -> bool:
    """Return whether the process runs, and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def test_a_part_may_fail_crash_or_hang_and_the_next_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted.py").write_text(PLANTED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    parts = [Part(how, "planted", 0.5 if how == "hangs" else 600.0, (how,)) for how in EXPECTED]
    report = Report(tmp_path / "report.json", True)
    for count, outcome in enumerate(run(parts, report, True), 1):
        written = json.loads(report.path.read_text())
        assert written["parts"][-1] == outcome
        assert (len(written["parts"]), written["ended"]) == (count, None)
    written = json.loads(report.path.read_text())
    found = {outcome["name"]: outcome for outcome in written["parts"]}
    assert {name: (outcome["status"], outcome["about"]) for name, outcome in found.items()} == EXPECTED
    assert written["ended"] is not None
    assert not report.is_clean()
    for how in EXPECTED.keys() - {"hangs"}:  # which may be killed before it starts
        assert found[how]["details"]["how"] == how
        assert found[how]["output"].startswith(f"this is {how}")
    while is_running(found["dies"]["details"]["left"]):
        time.sleep(0.01)


def test_the_program_writes_the_report_and_prints_each_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "planted.py").write_text(PLANTED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    planted = tuple(Part(name, "planted", 600.0, (name,)) for name in ("works", "fails"))
    monkeypatch.setattr(program, "PARTS", planted)
    out = tmp_path / "report.json"
    assert program.main(["--out", str(out)]) == 1
    assert [part["status"] for part in json.loads(out.read_text())["parts"]] == ["passed", "failed"]
    assert program.main(["--out", str(out), "--only", "works", "--quick"]) == 0
    written = json.loads(out.read_text())
    assert ([part["name"] for part in written["parts"]], written["quick"]) == (["works"], True)
    assert set(written["machine"]) == {"system", "python", "cores", "commit", "nvidia_smi"}
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines if "it is" in line] == [
        ["works", "passed"], ["fails", "failed"], ["works", "passed"]
    ]  # fmt: skip


def test_outcomes_of_tests_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "tests.xml"
    file.write_text(
        '<testsuites><testsuite><testcase classname="a" name="one"/><testcase classname="a" name="two">'
        '<failure message="assert 1 == 2&#10;more">text</failure></testcase>'
        '<testcase classname="b" name="three"><skipped message="no"/></testcase></testsuite></testsuites>'
    )
    outcomes, faults = gpu_tests.read(file)
    assert outcomes == {"passed": 1, "failed": 1, "skipped": 1}
    assert faults == {"a::two": "assert 1 == 2"}


@pytest.mark.parametrize(
    ("status", "log", "expected"),
    [
        (0, "========= ERROR SUMMARY: 0 errors\n", None),
        (86, "========= Invalid read\n========= ERROR SUMMARY: 3 errors\n", "memcheck found errors: ERROR SUMMARY: 3"),
        # As compute-sanitizer 2026.4 does on a program that never gets to CUDA.
        (255, "========= Error: Target application terminated before first instrumented API call\n", "status 255"),
        (0, "", "without a verdict"),
    ],
)
def test_a_sanitizer_has_to_say_that_nothing_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, log: str, expected: str | None
) -> None:
    tool = tmp_path / sanitizer.PROGRAM
    tool.write_text(f"#!{sys.executable}\nimport sys\nopen(sys.argv[6], 'w').write({log!r})\nsys.exit({status})\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(sanitizer, "require_card", lambda: None)
    journal = Journal(tmp_path / "memcheck.json")
    if expected is None:
        assert sanitizer.run(journal, QUICK, tmp_path, "memcheck") == "ERROR SUMMARY: 0 errors"
    else:
        with pytest.raises(FailedError, match=expected):
            sanitizer.run(journal, QUICK, tmp_path, "memcheck")
    assert journal.details["status"] == status


# ---- Whole, on an emulated machine -----------------------------------------------------------------------------------

on_stand_in = pytest.mark.skipif(missing(SIMT) is not None, reason=str(missing(SIMT)))


def first_gpu(folder: Path, *more: str, planted: str | None = None) -> tuple[int, dict[str, Any]]:
    """Return the program's exit status and report on an emulated machine; Python runs ``planted`` at its start."""
    given, out = environment(folder), folder / "report.json"
    if planted is not None:
        (folder / "sitecustomize.py").write_text(planted)
        given["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    command = (sys.executable, "-m", "bench.first_gpu", "--quick", "--out", str(out), *more)
    done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False)
    assert out.is_file(), done.stderr
    return done.returncode, json.loads(out.read_text())


@pytest.mark.full
@pytest.mark.emulator
@on_stand_in
def test_every_part_runs_on_the_stand_in(tmp_path: Path) -> None:
    status, report = first_gpu(tmp_path)
    found = {part["name"]: part for part in report["parts"]}
    told = {name: (part["status"], part["about"], part["output"]) for name, part in found.items()}
    assert [*found] == [part.name for part in PARTS]
    assert {name for name, part in found.items() if part["status"] != "passed"} == {"torch_streams"}, told
    assert found["torch_streams"]["status"] == "skipped"
    assert "torch" in found["torch_streams"]["about"]
    assert (status, report["quick"]) == (0, True)
    details = {name: part["details"] for name, part in found.items()}
    assert details["build"]["card"]["device"] == "SIMT emulator"
    assert details["build"]["cpu_seconds"] > 0
    assert details["tests"]["outcomes"]["passed"] > 0
    assert all(kernel["equal"] and kernel["seconds"] > 0 for kernel in details["selftest"]["kernels"])
    for tool in ("memcheck", "racecheck", "initcheck"):
        assert len(details[tool]["summaries"]) == 1
    assert len(details["recordings"]["free_bytes"]) == 1 + QUICK.recordings
    assert details["recordings"]["leaked_bytes"] == 0 < details["recordings"]["recording_bytes"]
    assert {"a call", "a recording"} <= details["out_of_memory"].keys()
    rows = details["bench"]["rows"]
    assert {row["status"] for row in rows if row["peer"] is None} == {"ok"}
    skipped = {row["peer"]: row["reason"] for row in rows if row["status"] == "skip"}
    assert set(skipped) == {"cugraph", "cupy-spmm", "cuvs", "faiss-gpu", "torch-cuda"}
    assert all(skipped.values())


LEAK = """
from hopfuse.backends.cuda import recordings

made, kept, right = [], [], recordings.RecordedCore

def keep(*given):
    recorded = right(*given)
    made.append(1)
    if len(made) > 1:  # after the first recording, which loads kernels
        kept.append(recorded)
    return recorded

recordings.RecordedCore = keep
"""
WRONG = """
import threading
from hopfuse.backends.cuda.device_ops import DeviceOps

right = DeviceOps.dense_topk

def wrong(self, call):
    hits = right(self, call)
    if not call.on_device and IS_WRONG:
        hits["scores"][0, 0] += 1
    return hits

DeviceOps.dense_topk = wrong
"""
ALWAYS = WRONG.replace("IS_WRONG", "True")
IN_THREADS = WRONG.replace("IS_WRONG", "threading.current_thread() is not threading.main_thread()")


@pytest.mark.full
@pytest.mark.emulator
@on_stand_in
@pytest.mark.parametrize(
    ("planted", "part", "message"),
    [(LEAK, "recordings", "dropped recordings keep"), (ALWAYS, "build", "differ from the CPU"),
     (ALWAYS, "selftest", "differ from the CPU"), (IN_THREADS, "threads", "the call differs")],
)  # fmt: skip
def test_what_is_wrong_on_a_card_fails_its_part(tmp_path: Path, planted: str, part: str, message: str) -> None:
    """A module that Python loads at its start simulates a faulty GPU."""
    status, report = first_gpu(tmp_path, "--only", part, planted=planted)
    (outcome,) = report["parts"]
    assert (status, outcome["status"]) == (1, "failed"), outcome
    assert message in outcome["about"]


@pytest.mark.skipif(missing("cuda") is None, reason="a GPU is here")
def test_without_a_gpu_a_part_is_skipped_with_the_reason(tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    assert program.main(["--out", str(out), "--only", "threads"]) == 0
    (outcome,) = json.loads(out.read_text())["parts"]
    assert outcome["status"] == "skipped"
    assert "NVIDIA driver" in outcome["about"]
