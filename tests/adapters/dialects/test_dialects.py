"""Dialects against what the systems make of the same lists: vectors/, which make_vectors.py writes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.adapters.dialects import DIALECTS, fuse
from hopfuse.errors import InputError
from refusals import refused

FILES = sorted((Path(__file__).parent / "vectors").glob("*.json"))
PAGE = (Path(__file__).parents[3] / "docs" / "dialects.md").read_text(encoding="utf-8")
VECTORS = [(file.stem, vector) for file in FILES for vector in json.loads(file.read_text(encoding="utf-8"))["cases"]]
A, B = hf.Hits([[3, 1, 4]], [[9.0, 7.5, 2.25]]), hf.Hits([[4, 2]], [[0.875, 0.5]])


def name_of(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return "-".join(str(part) for part in (*value["call"].values(), value["name"])).replace(" ", "_")


@pytest.mark.parametrize(("dialect", "vector"), VECTORS, ids=name_of)
def test_a_dialect_gives_the_systems_scores_in_its_order(dialect: str, vector: dict[str, Any]) -> None:
    fused = fuse(hits_of(vector["lists"]), dialect, k=100, **vector["call"])
    expected = dict(map(tuple, vector["fused"]))
    found = dict(fused.row(0))
    assert found.keys() == expected.keys()
    # Scores that cancel have the error of their parts.
    size = max([1e-30, *map(abs, expected.values())])
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-7 * size)
    order = [i for i, _ in fused.row(0)]
    for group in tied([tuple(pair) for pair in vector["fused"]], size):
        assert set(order[: len(group)]) == group
        order = order[len(group) :]


def hits_of(lists: list[list[tuple[int, float]]]) -> list[hf.Hits]:
    return [hf.Hits.from_lists([ranked]) for ranked in lists]


def tied(fused: list[tuple[int, float]], size: float) -> list[set[int]]:
    """Documents with equal scores together, in the system's order: among them the library takes lower ids first."""
    groups: list[set[int]] = []
    last = np.inf
    for i, score in fused:
        if abs(score - last) <= 1e-6 * max(abs(score), 0.1 * size):
            groups[-1].add(i)
        else:
            groups.append({i})
        last = score
    return groups


def test_every_method_of_every_dialect_has_vectors() -> None:
    assert {(dialect, vector["call"]["method"]) for dialect, vector in VECTORS} == {
        (dialect, method) for dialect, methods in DIALECTS.items() for method in methods
    }


def test_the_page_has_every_method_of_every_dialect() -> None:
    table, dialect = set(), ""
    for row in PAGE.split("## Vectors")[0].splitlines():
        cells = [cell.strip() for cell in row.split("|")]
        if len(cells) == 8 and (names := re.findall("`([a-z_]+)`", cells[2])):
            dialect = cells[1].strip("`") or dialect
            table |= {(dialect, name) for name in names}
    assert table == {(dialect, method) for dialect, methods in DIALECTS.items() for method in methods}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_page_has_the_version_and_the_source_of_the_vectors(file: Path) -> None:
    about = json.loads(file.read_text(encoding="utf-8"))
    assert f"| `{file.stem}` | {about['system']} {about['version']} | {about['source']} |" in PAGE


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_vectors_name_the_system_its_version_and_a_page(file: Path) -> None:
    about = json.loads(file.read_text(encoding="utf-8"))
    assert all(about[key] for key in ("system", "version", "made by"))
    assert about["source"].startswith("https://")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_rows_of_a_batch_are_fused_as_each_alone(dialect: str) -> None:
    rng = np.random.default_rng(5)
    rows = [[(int(i), float(s)) for i, s in zip(rng.permutation(9)[:n], rng.random(n), strict=True)] for n in range(8)]
    lists = [hf.Hits.from_lists(rows), hf.Hits.from_lists(rows[::-1])]
    for method, convention in DIALECTS[dialect].items():
        weights = (0.75, 0.25) if convention.weights != "none" else None
        together = fuse(lists, dialect, method, weights=weights)
        for b in range(len(rows)):
            alone = [hf.Hits.from_lists([one.row(b)]) for one in lists]
            assert fuse(alone, dialect, method, weights=weights).row(0) == together.row(b)


def test_a_scale_is_that_of_the_pool() -> None:
    cut = fuse([A.head(2), B], "qdrant", "dbsf")
    assert fuse([A, B], "qdrant", "dbsf", pool=(2, None)).row(0) == cut.row(0)
    assert fuse([A, B], "qdrant", "dbsf").row(0) != cut.row(0)


def test_equal_fused_scores_are_ordered_by_id_where_weaviate_orders_by_raw_score() -> None:
    """Documents 2 and 3 have 0.75; in Weaviate 3 is before 2, with 4 in its last list before 3."""
    lists = [hf.Hits([[0, 1, 2, 3]], [[1.0, 2.0, 3.0, 4.0]]), hf.Hits([[0, 1, 2]], [[1.0, 2.0, 3.0]])]
    fused = fuse(lists, "weaviate", "relative_score", weights=(0.75, 0.25))
    assert fused.row(0) == [(2, 0.75), (3, 0.75), (1, 0.375), (0, 0.0)]


def test_weights_per_query_are_divided_row_by_row() -> None:
    twice = [hf.Hits.from_lists([one.row(0)] * 2) for one in (A, B)]
    both = fuse(twice, "haystack", "linear", weights=[[3.0, 1.0], [1.0, 1.0]])
    assert both.row(0) == fuse([A, B], "haystack", "linear", weights=(0.75, 0.25)).row(0)
    assert both.row(1) == fuse([A, B], "haystack", "linear").row(0)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ({"dialect": "solr", "method": "rrf"}, ("choice", "dialect", {"given": "solr"})),
        ({"dialect": "qdrant", "method": "comb_sum"}, ("choice", "method", {"given": "comb_sum"})),
        ({"dialect": "lancedb", "method": "boltzmann"}, ("choice", "method", {"given": "boltzmann"})),
        ({"dialect": "lancedb", "method": "rrf", "pool": -1}, ("range", "pool", {"given": -1})),
        ({"dialect": "qdrant", "method": "dbsf", "pool": (1,)}, ("length", "pool", {"given": 1})),
        ({"dialect": "qdrant", "method": "dbsf", "pool": -1}, ("range", "pool", {"given": -1})),
        ({"dialect": "haystack", "method": "rrf", "weights": (1.0, float("nan"))}, ("range", "weights[1]")),
        ({"dialect": "haystack", "method": "rrf", "weights": (1.0, 2.0, 3.0)}, ("shape", "weights")),
        ({"dialect": "qdrant", "method": hf.fusion.RRF()}, ("choice", "method")),
        ({"dialect": "qdrant", "method": "rrf", "weights": (1.0, 2.0)}, ("unused", "weights")),
        ({"dialect": "weaviate", "method": "rrf"}, ("missing", "weights")),
        ({"dialect": "haystack", "method": "rrf", "weights": (0.0, 0.0)}, ("range", "weights")),
        ({"dialect": "haystack", "method": "rrf", "rank_constant": 60}, ("unused", "rank_constant")),
        ({"dialect": "qdrant", "method": "rrf", "rank_constant": 0.5}, ("range", "rank_constant", {"given": 0.5})),
        ({"dialect": "qdrant", "method": "rrf", "rank_constant": "2"}, ("range", "rank_constant", {"given": "2"})),
        ({"dialect": "qdrant", "method": "rrf", "phi": 0.5}, ("unused", "phi")),
        ({"dialect": "ranx", "method": "borda", "missing": "zero"}, ("unused", "missing")),
        ({"dialect": "ranx", "method": "comb_sum", "equal": 1.0}, ("unused", "equal")),
        ({"dialect": "ranx", "method": "comb_sum", "calibration": "pit"}, ("choice", "calibration", {"given": "pit"})),
        ({"dialect": "ranx", "method": "rrf", "calibration": "none"}, ("unused", "calibration")),
    ],
)
def test_what_a_dialect_lacks_or_fixes_is_refused(call: dict[str, Any], error: tuple[Any, ...]) -> None:
    with refused(InputError, *error):
        fuse([A, B], **call)
