import json
import os
import sys
from dataclasses import replace

import hopfuse as hf
import processes
import pytest
from cli.cli_files import command, run, run_here


def test_a_backend_that_agrees_ends_with_0():
    done = run("selftest", "--backend", "cpu", "--quick")
    assert done.returncode == 0, done.stderr
    assert "dense_topk float16" in done.stdout
    assert done.stdout.endswith("checks are equal.\n")


def test_json():
    report = json.loads(run("selftest", "--backend", "cpu", "--quick", "--json").stdout)
    assert (report["backend"], report["quick"], report["passed"]) == ("cpu", True, True)
    assert set(report["checks"][0]) == {"name", "equal", "values", "differing", "cpu_seconds", "device_seconds"}


def test_a_report_has_what_is_asked_for_with_a_problem(tmp_path):
    # A process of its own: in the tests' process, other tests may have registered a backend.
    given = command("selftest", "--backend", "cpu", "--quick", "--report", str(tmp_path / "report.json"))
    done = processes.run(given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("checks are equal.\n")
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["backend"], report["passed"], report["leaked_bytes"]) == ("cpu", True, None)
    assert report["kernels"] == []  # of a device
    assert all(check["equal"] for check in report["checks"])
    machine = report["machine"]
    assert set(machine) == {"system", "python", "hopfuse", "auto", "backends"}
    assert set(machine["backends"]) == {"cpu", "cuda"}


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_difference_is_shown_and_the_exit_code_is_1(monkeypatch, more):
    same = hf.selftest("cpu", quick=True)
    wrong = replace(same.checks[0], equal=False, differing=3)
    different = replace(same, checks=(wrong, same.checks[1]))
    monkeypatch.setattr("hopfuse.cli.selftest.run_selftest", lambda backend, quick: different)
    done = run_here("selftest", *more)
    assert done.returncode == 1
    if more:
        assert json.loads(done.stdout)["checks"][0]["differing"] == 3
    else:
        assert "DIFFERS" in done.stdout
        assert "1 of 2 checks differ" in done.stdout


def test_a_backend_that_cannot_run_ends_with_2_and_the_reason():
    command, nowhere = [sys.executable, "-m", "hopfuse", "selftest"], {"HOPFUSE_LIBCUDA": "/nowhere/libcuda.so.1"}
    done = processes.run(command, env=os.environ | nowhere, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "/nowhere/libcuda.so.1" in done.stderr
