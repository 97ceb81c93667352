import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import hopfuse as hf
import numpy as np
import pytest
from cli.cli_files import about, command, hopfuse, refused
from hopfuse.io import write_all
from hopfuse.report import ProgressLines

COMMANDS = ("build", "search", "trace", "score", "policy", "eval", "sweep", "diagnose", "compare")
COMMANDS += ("info", "selftest", "bench", "serve", "mcp")


def test_version_and_help():
    assert hopfuse("--version").stdout == f"hopfuse {hf.__version__}\n"
    output = hopfuse("--help").stdout
    assert all(f"\n  {name} " in output for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name):
    output = hopfuse(name, "--help").stdout
    assert output.startswith(f"Usage: hopfuse {name} ")
    assert all(line.strip() for line in output.splitlines() if line.startswith("  --"))


def test_the_entry_point_is_main():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"]["hopfuse"] == "hopfuse.cli:main"
    assert {"click", "rich"} <= {line.split(">")[0] for line in project["optional-dependencies"]["cli"]}
    assert "cli" in project["optional-dependencies"]["demo"][0]


@pytest.mark.parametrize("package", ["click", "rich"])
def test_without_the_extra_the_error_names_it(package):
    program = f"import sys; sys.modules[{package!r}] = None; from hopfuse.cli import main; main(['info'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert package in done.stderr
    assert "pip install 'hopfuse[cli]'" in done.stderr


def test_another_missing_module_is_not_blamed_on_the_extra():
    program = "import sys; sys.modules['hopfuse.evaluate'] = None; from hopfuse.cli import main; main(['info'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ModuleNotFoundError" in done.stderr


def test_usage_errors_exit_with_2():
    done = subprocess.run(command("score"), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Missing argument" in done.stderr


def test_an_error_of_the_file_system_is_one_line(files, tmp_path):
    line = refused("build", files / "passages.jsonl", "--out", tmp_path / ("x" * 300))
    assert line == about("failed")


def test_several_files_are_written_only_where_all_can_be(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        write_all({tmp_path / "a": "whole", tmp_path / "b": "half \ud800"})
    assert list(tmp_path.iterdir()) == []
    write_all({tmp_path / "a": "one", tmp_path / "b": "zwölf\n"})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"one", "b": "zwölf\n".encode()}


def test_progress_is_printed_as_lines_if_stderr_is_not_a_terminal(scoring, tmp_path):
    *_, line, _ = hopfuse(*scoring, "--out", tmp_path / "out.jsonl").stderr.splitlines()
    assert re.fullmatch(r"Scoring 300/300(, [\d,]+/s)?", line)


def test_lines_of_progress(capsys):
    now = [0.0]
    with ProgressLines(get_time=lambda: now[0]) as bar:
        task = bar.add_task("Scoring", total=4000)
        for now[0] in range(5, 105, 5):
            bar.advance(task, 200)
    assert capsys.readouterr().err.splitlines() == [
        "Scoring 1,200/4,000, 40/s, 0:01:10 left",
        "Scoring 2,400/4,000, 40/s, 0:00:40 left",
        "Scoring 3,600/4,000, 40/s, 0:00:10 left",
        "Scoring 4,000/4,000, 40/s",
    ]


def test_lines_of_progress_have_what_is_known(capsys):
    now = [0.0]
    with ProgressLines(10, get_time=lambda: now[0]) as bar:
        task, unknown = bar.add_task("Reading"), bar.add_task("Waiting")
        now[0] = 9.0
        bar.update(task, completed=9, total=100)
        assert capsys.readouterr().err == ""
        now[0] = 20.0
        bar.advance(unknown)
        bar.update(task, completed=40)
        now[0] = 30.0
        bar.update(task, completed=100)
    # A line has the rate since the one before it; the last, that of the whole task.
    assert capsys.readouterr().err.splitlines() == [
        "Reading 40/100, 2/s, 0:00:30 left",
        "Reading 100/100, 3/s",
    ]


def test_the_machine_is_described():
    found = json.loads(hopfuse("info", "--json").stdout)
    assert found["cores"] >= 1
    assert found["numpy"] == np.__version__
    assert found["processor"]
