"""Variants of a pass: compared with hopfuse's results, then measured beside it."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from bench import variants, worker
from bench.report import files
from bench.settings import Settings

QUICK = Settings(quick=True, repeats=2)


def test_every_variant_and_the_current_pass_have_a_row() -> None:
    rows = list(worker.rows(variants.CASE, None, QUICK))
    if rows[0]["status"] == "skip":
        pytest.skip(rows[0]["reason"])
    assert [(row["variant"], row["sizes"]["lanes"]) for row in rows] == [(v.what, v.lanes) for v in variants.VARIANTS]
    for lanes in (1, 32):
        first, *others = (row for row in rows if row["sizes"]["lanes"] == lanes)
        assert first["kept"]
        assert first["of_kept"] == 1.0
        assert not any(row["kept"] for row in others)
        assert all(row["of_kept"] > 0 for row in others)
    recorded = list(csv.DictReader(files(rows, "rows.jsonl")["results/performance-passes.csv"].splitlines()))
    assert [(row["variant"], int(row["lanes"])) for row in recorded] == [(v.what, v.lanes) for v in variants.VARIANTS]
    assert all(float(row["pass_median_s"]) > 0 for row in recorded)


def test_a_variant_with_other_sums_stops_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    right = variants._State.result
    monkeypatch.setattr(
        variants._State, "result", lambda self: right(self) * np.float32(1.02 if self.variant.which == 3 else 1.0)
    )
    (row,) = worker.rows(variants.CASE, None, QUICK)
    if row["status"] == "skip":
        pytest.skip(row["reason"])
    assert row["status"] == "error"
    assert "two at a time" in row["reason"]
    assert "off by" in row["reason"]


def test_rows_by_length_are_the_same_graph() -> None:
    given, by_length = variants._rows(QUICK, "given"), variants._rows(QUICK, "length")
    assert (np.diff(np.diff(by_length.indptr)) <= 0).all()
    for node in (0, 5, given.place.size - 1):
        at = by_length.place[node]
        laid = by_length.indices[by_length.indptr[at] : by_length.indptr[at + 1]]
        plain = given.indices[given.indptr[node] : given.indptr[node + 1]]
        assert (laid == by_length.place[plain]).all()
    assert (by_length.table[by_length.code] == by_length.weight).all()


def test_slices_have_entries_of_eight_rows_side_by_side() -> None:
    by_length, slices = variants._rows(QUICK, "length"), variants._rows(QUICK, "slices")
    length = np.diff(slices.indptr)
    assert (slices.indptr == by_length.indptr).all()
    whole = [row for row in range(0, length.size - 7, 8) if length[row] == length[row + 7] <= 64]
    assert whole
    for row in range(0, length.size - 7, 8):
        here = slice(slices.indptr[row], slices.indptr[row + 8])
        plain = by_length.indices[here]
        laid = plain.reshape(8, length[row]).T.reshape(-1) if row in whole else plain
        assert (slices.indices[here] == laid).all()
