"""The study of readers: its walk compared with a dense solve, its choice, its seeds, and the page."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest

for package in ("scipy", "Stemmer", "bm25s"):
    pytest.importorskip(package, reason=f"the study needs {package}")

readers: Any = import_module("experiments.readers")
walks: Any = import_module("experiments.walks")
sparse: Any = import_module("scipy.sparse")


def test_the_guided_walk_solves_the_reweighted_system() -> None:
    draw = np.random.default_rng(3)
    half = np.triu(draw.random((12, 12)) * (draw.random((12, 12)) < 0.4), 1)
    weights = half + half.T
    similarity = draw.random((5, 2)).astype(np.float32)
    z = walks.potentials(similarity, 12, 0.2)
    start = np.zeros((12, 2), np.float32)
    start[[6, 9], [0, 1]] = 1
    found = walks.guided_walk(sparse.csr_array(weights.astype(np.float32)), start, z, passes=60)
    for column in range(2):
        weighted = weights * z[:, column] * z[:, column, None].astype(np.float64)
        degree = weighted.sum(axis=1)
        transition = weighted / np.where(degree == 0, 1, degree)[:, None]
        solved = np.linalg.solve(np.eye(12) - 0.5 * transition.T, 0.5 * start[:, column])
        assert np.abs(found[:, column] - solved).max() < 1e-6


def test_potentials_have_a_floor() -> None:
    z = walks.potentials(np.array([[1.0], [-1.0]], np.float32), 3, 0.1)
    assert z.ravel().tolist() == [1.0, np.float32(1e-4), 1.0]


def test_a_setting_is_chosen_by_its_worst_loss() -> None:
    tuned = {"a": {"x": 0.9, "y": 0.1}, "b": {"x": 0.8, "y": 0.6}, "c": {"x": 0.8, "y": 0.6}, "d": {"x": 0.1, "y": 0.7}}
    assert readers.chosen(tuned) == "b"
    assert readers.steps(word=(0.1, 1.0), title=(0.3,)) == [
        {"word": 0.1, "title": 0.3},
        {"word": 1.0, "title": 0.3},
    ]


def test_ranks_are_fused_by_ten() -> None:
    assert readers.reciprocal_ranks([3, 1, 2], [1, 3]) == [1, 3, 2]
    assert readers.reciprocal_ranks([5], []) == [5]


def test_an_extraction_is_kept_and_read_back(tmp_path) -> None:
    rows = readers.WordReader().read([{"id": "a", "title": "Ada", "text": "Ada wrote notes."}])
    linked = [replace(rows[0], entities=("Ada",), labels=("PERSON",), links=(("title", "Ada", "notes"),))]
    assert readers.cached(tmp_path, "x", lambda: linked) == linked
    assert readers.cached(tmp_path, "x", list) == linked
    assert readers.cached(None, "x", list) == []


def test_the_page_is_of_the_recorded_numbers() -> None:
    results = json.loads(readers.RESULTS.read_text(encoding="utf-8"))
    assert readers.page(results) == readers.PAGE.read_text(encoding="utf-8")
    assert list(results["arms"]) == [arm.name for arm in readers.arms(None)]
