"""The script for the first run on a GPU, with made-up parts, and in full on an emulated machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from stand_in.machine import environment
from variants import SIMT, missing

from bench.clocks import Clocks, read
from bench.errors import UnavailableError
from bench.first_gpu import __main__ as program
from bench.first_gpu import outcomes
from bench.first_gpu.journal import FailedError, Journal
from bench.first_gpu.parts import PARTS, Part, gpu_tests, profiler, sanitizer
from bench.first_gpu.parts import rates as rates_part
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


TESTS = """
import os
import pytest

@pytest.fixture
def ends_badly():
    yield
    raise ValueError("at the end")

def test_one(): pass
def test_two(): assert 1 == 2
def test_three(): pytest.skip("no")
def test_four(ends_badly): pass
def test_last(): os._exit(9)
"""


@pytest.mark.parametrize("processes", [(), pytest.param(("-n", "1"), marks=pytest.mark.full)])
def test_outcomes_of_tests_are_kept_as_they_come(tmp_path: Path, processes: tuple[str, ...]) -> None:
    """Also of those before one that ends the process."""
    file, source = tmp_path / "outcomes.jsonl", tmp_path / "test_planted.py"
    source.write_text(TESTS if not processes else TESTS.replace("os._exit(9)", "pass"))
    plugins = ("-p", "no:cacheprovider", "-p", outcomes.__name__)
    command = (sys.executable, "-m", "pytest", "-q", *plugins, *processes, str(source))
    outer = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    given = outer | {outcomes.VARIABLE: str(file), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == (1 if processes else 9), done.stdout
    counts, faults = outcomes.read(file)
    assert counts == {"passed": 1 + len(processes) // 2, "failed": 2, "skipped": 1}
    assert {name.partition("::")[2]: "assert 1 == 2" in reason for name, reason in faults.items()} == {
        "test_two": True, "test_four": False
    }  # fmt: skip


def test_changed_tests_are_files_that_are_there() -> None:
    found = gpu_tests.changed("HEAD~5")
    assert all((ROOT / name).is_file() for name in found)
    assert gpu_tests.changed("no-such-commit") == ()


def test_parts_end_in_the_minutes_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their short limits; nothing is left for the last one."""
    (tmp_path / "planted.py").write_text(PLANTED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    parts = [Part("hangs", "planted", 600.0, ("hangs",), 0.1), Part("goes on", "planted", 600.0, ("hangs",)),
             Part("works", "planted", 600.0, ("works",))]  # fmt: skip
    outcomes = list(run(parts, Report(tmp_path / "report.json", True), True, 1 / 60))
    assert [(outcome["status"], outcome["about"].split()[0]) for outcome in outcomes] == [
        ("timed out", "it"), ("timed out", "it"), ("skipped", "no")
    ]  # fmt: skip
    assert outcomes[0]["limit"] == 0.1
    assert 0 < outcomes[1]["limit"] < 1


NCU = """==PROF== Connected
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","7","ppr_early_l32","dram__bytes.sum","byte","1,024"
"0","7","ppr_early_l32","lts__t_sectors.sum","sector","32"
"1","7","ppr_scan","dram__bytes.sum","byte","8"
==PROF== Disconnected
"""


def test_metrics_of_launches_are_read() -> None:
    first, second = profiler.read(NCU)
    assert first == {
        "kernel": "ppr_early_l32",
        "dram__bytes.sum": "1,024 byte",
        "lts__t_sectors.sum": "32 sector",
    }
    assert second["kernel"] == "ppr_scan"


def test_a_profiler_has_to_see_launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / profiler.PROGRAM
    tool.write_text(f"#!{sys.executable}\nprint({NCU.splitlines()[1]!r})\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(profiler, "require_card", lambda: None)
    journal = Journal(tmp_path / "profiler.json")
    with pytest.raises(FailedError, match="status 0 and 0 launches"):
        profiler.run(journal, QUICK, tmp_path)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UnavailableError, match="not on PATH"):
        profiler.run(journal, QUICK, tmp_path)


@pytest.mark.parametrize("work", [rates_part.FULL, rates_part.QUICK])
def test_no_line_of_the_table_in_memory_is_read_twice(work: rates_part.Work) -> None:
    assert rates_part.chased(work, work.links) <= work.table // rates_part.LINK


def test_clocks_are_sampled_while_something_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Clocks() as none:
        pass
    tool, seen = tmp_path / "nvidia-smi", tmp_path / "seen"
    loop = f"import time\nfor clock in (345, 1980): print(f'{{clock}}, 3201', flush=True)\nopen({str(seen)!r}, 'w')\n"
    tool.write_text(f"#!{sys.executable}\n{loop}print('19', end='', flush=True)\ntime.sleep(3600)\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with Clocks() as clocks:
        while not seen.exists():
            time.sleep(0.01)
    assert none.summary() is None or shutil.which("nvidia-smi")
    assert clocks.samples == [(345, 3201), (1980, 3201)]
    assert clocks.summary() == {"samples": 2, "least": 345, "median": 1162.5, "most": 1980, "memory": 3201}
    assert read("[N/A], 5\n7, 8\n9, 1") == [(7, 8)]


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
    rates = details["rates"]
    for gathers in (rates["gathers from L2"], rates["gathers from memory"]):
        assert [one["row_bytes"] for one in gathers] == [16, 32, 64, 128]
    followed = (rates_part.QUICK.times + 1) * rates_part.QUICK.links
    assert [rates[f"latency of {name}"]["lines"] for name in ("L2", "memory")] == [followed, followed]
    assert min(rates["barrier"]["seconds"], rates["latency of L2"]["seconds"], rates["copy"]["least"]) > 0
    (search,) = details["searches"]["rows"]
    assert search["hashes"]["cuda"] == search["hashes"]["cpu"]
    assert search["in_a_row"]["n"] == search["rested"]["n"] == 3
    assert details["profiler"]["launches"][0]["kernel"] == "ppr_scan"
    assert all(kernel["equal"] and kernel["seconds"] > 0 for kernel in details["selftest"]["kernels"])
    for tool in ("memcheck", "racecheck", "initcheck"):
        assert len(details[tool]["summaries"]) == 1
    assert len(details["recordings"]["free_bytes"]) == 1 + QUICK.recordings
    assert details["recordings"]["leaked_bytes"] == 0 < details["recordings"]["recording_bytes"]
    assert {"a call", "a recording"} <= details["out_of_memory"].keys()
    rows = details["calls"]["rows"] + details["bench"]["rows"]
    assert all(row["in_a_row"]["hopfuse"]["n"] == 3 for row in rows if row["status"] == "ok")
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
from hopfuse.backends.calls.dense import DenseCall

right = DenseCall.run_on_device

def wrong(call, device):
    hits = right(call, device)
    if not call.on_device and IS_WRONG:
        hits["scores"][0, 0] += 1
    return hits

DenseCall.run_on_device = wrong
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
