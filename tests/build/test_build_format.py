"""Every C++ file is formatted by clang-format."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(
    path
    for room in ("kernels", "bindings", "tests", "examples")
    for path in (ROOT / room).rglob("*")
    if path.suffix in {".cpp", ".h"}
)


def clang_format() -> str:
    """Return the pinned version; others format differently."""
    beside = Path(sys.executable).with_name("clang-format")
    tool = str(beside) if beside.exists() else shutil.which("clang-format")
    if tool is None:
        pytest.skip("clang-format is not installed")
    pin = re.search(r'"clang-format==([\d.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert pin is not None
    version = subprocess.run([tool, "--version"], check=True, capture_output=True, text=True).stdout
    if pin[1] not in version:
        pytest.skip(f"clang-format {pin[1]} is pinned; here is {version.strip()}")
    return tool


def test_cpp_files_are_formatted() -> None:
    tool = clang_format()
    assert len(FILES) > 10
    done = subprocess.run(
        [tool, "--dry-run", "-Werror", *map(str, FILES)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
