"""On Windows and Intel Macs, CMake and the import say in the same sentence where hopfuse runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SENTENCE = (
    "hopfuse runs on Linux and on macOS 13.3 or later with Apple silicon, not on Windows or Intel Macs: on these, "
    "install it in WSL 2 or in a Linux container."
)
#: Leads to an error before any compiler is looked for.
NO_COMPILER = "-DCMAKE_CXX_COMPILER=/nowhere/c++"


def configure(folder: Path, system: str, processor: str) -> str:
    """Return what CMake says of a system, which it must refuse, or of the compiler that is not there."""
    tool = shutil.which("cmake")
    if tool is None:
        pytest.skip("CMake is not installed")
    names = (f"-DCMAKE_SYSTEM_NAME={system}", f"-DCMAKE_SYSTEM_PROCESSOR={processor}", NO_COMPILER)
    done = subprocess.run([tool, "-S", ROOT, "-B", folder, *names], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    return " ".join(done.stderr.split())


@pytest.mark.parametrize(("system", "processor"), [("Windows", "AMD64"), ("Windows", "ARM64"), ("Darwin", "x86_64")])
def test_cmake_says_where_hopfuse_runs(tmp_path: Path, system: str, processor: str) -> None:
    said = configure(tmp_path, system, processor)
    assert SENTENCE in said
    assert "/nowhere" not in said


@pytest.mark.parametrize(("system", "processor"), [("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64")])
def test_cmake_goes_on_where_it_runs(tmp_path: Path, system: str, processor: str) -> None:
    said = configure(tmp_path, system, processor)
    assert "/nowhere/c++" in said
    assert "hopfuse runs on" not in said


@pytest.mark.parametrize("module", ["hopfuse", "hopfuse.offline.folder", "hopfuse.cli.score", "hopfuse.diagnose"])
def test_an_import_on_windows_says_where_hopfuse_runs(module: str) -> None:
    code = f"import sys; sys.platform = 'win32'; sys.modules |= dict.fromkeys(('fcntl', 'resource')); import {module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip().endswith(f"ImportError: {SENTENCE}")
