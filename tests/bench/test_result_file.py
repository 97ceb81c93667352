"""Result files of pages: what is written about a measurement, and the tables that are made of it."""

from __future__ import annotations

import argparse
import csv
import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from bench.result_file import ResultFile, add_out_option

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def measured() -> ModuleType:
    sys.path.insert(0, str(ROOT / "docs"))
    return importlib.import_module("measured")


def test_rows_are_written_with_what_measured_them(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    add_out_option(parser)
    out = parser.parse_args(["--out", str(tmp_path / "new" / "rows.csv")]).out
    file = ResultFile("python -m experiments.example")
    file.add(what="a, b", ms=1.23456)
    file.add(what="c", ms=7, passages=1000)
    file.write(None)
    file.write(out)
    lines = out.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# command: python -m experiments.example --out rows.csv"
    assert [line.partition(":")[0] for line in lines[1:4]] == [
        "# machine",
        "# commit",
        "# cores that other programs used",
    ]
    assert list(csv.DictReader(lines[4:])) == [
        {"what": "a, b", "ms": "1.235", "passages": ""},
        {"what": "c", "ms": "7", "passages": "1000"},
    ]


def test_a_file_of_the_checkout_is_named_from_there() -> None:
    file = ResultFile("python -m bench.example")
    out = ROOT / "build" / "test-result-file.csv"
    file.add(what="a")
    file.write(out)
    try:
        assert out.read_text().startswith("# command: python -m bench.example --out build/test-result-file.csv\n")
    finally:
        out.unlink()


def test_a_table_names_its_command_and_machine(
    measured: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measured, "RESULTS", tmp_path)
    (tmp_path / "some.csv").write_text(
        "# command: python -m bench.some --out docs/results/some.csv\n# machine: Some CPU, 2.0 GHz, 2 cores, avx2\n"
        "# commit: abc\n# cores that other programs used: 1.26\nwhat,ms\na,1234.5\nb,\n"
    )
    found = measured.Results.read("some")
    assert found.source == (
        "`python -m bench.some --out docs/results/some.csv` on Some CPU, 2.0 GHz, 2 cores, of which other programs "
        "used 1.3."
    )
    head = {"what": measured.text("what"), "time": measured.number("ms", ",.1f", " ms")}
    assert measured.table(head, found.rows) == "| what | time |\n|---|---:|\n| a | 1,234.5 ms |\n| b |  |"
    assert found.chosen(what="b") == [{"what": "b", "ms": ""}]


def test_every_result_file_of_the_pages_is_shown(measured: ModuleType) -> None:
    made = [text for page in measured.MEASURED.values() for text in (table() for table in page.values())]
    files = {path.name: path.read_text(encoding="utf-8") for path in measured.RESULTS.glob("*.csv")}
    names = sorted(name for name, text in files.items() if text.startswith("# command"))
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]
    unused = [name for name in names if not any(f"docs/results/{name}" in text for text in (*made, *texts))]
    assert unused == []
