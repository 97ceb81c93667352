"""``python -m bench.install``: sizes are of files, without bytecode."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.install import megabytes


def test_sizes_are_of_files_without_bytecode(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "module.py").write_bytes(b"x" * 1_500_000)
    (tmp_path / "package" / "module.pyc").write_bytes(b"x" * 9_000_000)
    (tmp_path / "data").write_bytes(b"x" * 500_000)
    assert megabytes(tmp_path) == pytest.approx(2.0)
    assert megabytes(tmp_path / "data") == pytest.approx(0.5)
