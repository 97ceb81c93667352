"""The processes of the quick tier, which are forks, begin and end as real ones do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import processes
import pytest

BOTH = pytest.mark.parametrize("kind", [processes.run, subprocess.run], ids=["fork", "process"])


@BOTH
def test_a_process_has_its_arguments_environment_folder_and_streams(kind, tmp_path: Path) -> None:
    code = (
        "import os, sys; print(sys.argv, os.environ['ONE'], 'HOME' in os.environ, os.getcwd(), __name__, flush=True);"
        "print(sys.stdin.read() == '', file=sys.stderr); sys.exit(3)"
    )
    with open(os.devnull) as nothing:
        done = kind(
            [sys.executable, "-c", code, "a", "b c"],
            stdin=nothing,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
            env={"ONE": "1", "PATH": os.environ["PATH"]},
        )
    assert done.returncode == 3
    assert done.stdout.splitlines() == [f"['-c', 'a', 'b c'] 1 False {tmp_path} __main__", "True"]


@BOTH
def test_a_module_is_run_and_what_is_raised_is_printed(kind, tmp_path: Path) -> None:
    done = kind([sys.executable, "-m", "hopfuse", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout[:8]) == (0, "hopfuse ")
    done = kind([sys.executable, "-c", "raise OSError('no')"], capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "OSError: no")
    (tmp_path / "script.py").write_text("import sys; print(sys.argv[1:], __file__, sys.path[0])")
    done = kind([sys.executable, tmp_path / "script.py", "a"], capture_output=True, text=True)
    assert done.stdout == f"['a'] {tmp_path / 'script.py'} {tmp_path}\n"


def test_a_process_is_told_apart_and_takes_signals() -> None:
    code = "import time; print('up', flush=True); time.sleep(600)"
    with processes.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout.readline() == "up\n"
        assert one.poll() is None
        assert one.pid != os.getpid()
        with pytest.raises(subprocess.TimeoutExpired):
            one.wait(0.01)
        one.send_signal(signal.SIGTERM)
        assert one.wait(60) == one.poll() == -signal.SIGTERM
