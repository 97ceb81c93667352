"""Bandwidths: their levels, the times computed from them, and the bytes that a pass moves."""

from __future__ import annotations

from pathlib import Path

import hopfuse as hf
import numpy as np
import pytest
from bench_rows import LIMITS, limit

from bench import limits, traffic, worker
from bench.ceilings import Ceilings
from bench.errors import UnavailableError
from bench.settings import Settings

QUICK = Settings(quick=True, repeats=1, threads=1)


def caches(folder: Path, **sizes: str) -> Path:
    for at, (name, size) in enumerate(sizes.items()):
        index = folder / f"index{at}"
        index.mkdir()
        (index / "type").write_text("Instruction\n" if name == "code" else "Unified\n")
        (index / "level").write_text("1\n" if name == "code" else name[1:] + "\n")
        (index / "size").write_text(size + "\n")
    return folder


def test_arrays_lie_in_their_level(tmp_path: Path) -> None:
    found = limits.cache_sizes(caches(tmp_path, L1="32K", code="64K", L2="512K", L3="16384K"))
    assert found == {1: 32 << 10, 2: 512 << 10, 3: 16 << 20}
    l2, l3, memory = limits.levels(found, Settings())
    assert (l2.name, l2.holds, l2.array) == ("L2", 512 << 10, 64 << 10)
    assert found[2] < l3.array < l3.holds == found[3]
    assert memory.array >= 8 * found[3]


def test_a_large_shared_cache_has_parts() -> None:
    _, *parts, memory = limits.levels({2: 1 << 21, 3: 480 << 20}, Settings())
    assert [(part.holds >> 20, part.array >> 20) for part in parts] == [(32, 8), (128, 32), (480, 120)]
    assert len({part.name for part in parts}) == 3
    assert memory.array > 480 << 20


def test_few_rows_are_popular() -> None:
    order = limits._popular(np.random.default_rng(1), 10_000, 10_000)
    counts = np.sort(np.bincount(order, minlength=10_000))[::-1]
    assert counts.sum() == 10_000
    assert 0.4 < counts[:100].sum() / 10_000 < 0.7  # of Zipf's law: 0.53


def test_a_machine_that_does_not_name_its_caches_is_a_skip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="caches"):
        limits.levels({1: 1 << 15}, QUICK)
    monkeypatch.setattr(limits, "cache_sizes", dict)
    (row,) = worker.rows(limits.CASE, None, QUICK)
    assert (row["status"], row["case"]) == ("skip", "limits")


def test_without_a_compiler_it_is_a_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "cache_sizes", lambda: {2: 1 << 16, 3: 1 << 18})
    monkeypatch.setenv("PATH", "")
    (row,) = worker.rows(limits.CASE, None, QUICK)
    assert row["status"] == "skip"
    assert "C++ compiler" in row["reason"]


def test_bytes_become_seconds_by_the_level_that_they_fit_in() -> None:
    ceilings = Ceilings([*LIMITS, {"case": "fusion"}])
    assert ceilings
    assert not Ceilings([{"case": "fusion"}])
    assert [ceilings.level(size) for size in (1, 1_000, 1_001, 20_000, 20_001)] == ["L2", "L2", "L3", "L3", "memory"]
    moved = {"gathered": 2_000_000, "streamed": 1_000_000, "state": 900, "touched": 30_000}
    assert ceilings.seconds(moved) == pytest.approx(max(2e6 / 40e9, 1e6 / 10e9))
    assert ceilings.seconds(moved | {"products": 10**9}) == ceilings.seconds(moved)  # without a measured rate


def test_single_numbers_and_products_have_rates_of_their_own() -> None:
    rows = [*LIMITS, limit("L2", limits.GATHER_ONE, 1_000, 8), limit(limits.REGISTERS, limits.MULTIPLY, 0, 100)]
    ceilings = Ceilings(rows)
    assert ceilings.level(20_001) == "memory"
    moved = {"gathered": 2_000_000, "streamed": 0, "state": 900, "touched": 900}
    assert ceilings.seconds(moved | {"row": 4}) == pytest.approx(2e6 / 8e9)
    assert ceilings.seconds(moved | {"row": 64}) == pytest.approx(2e6 / 40e9)
    assert ceilings.seconds(moved | {"row": 4, "state": 2_000}) == pytest.approx(2e6 / 20e9)  # not measured in L3
    slow = {"gathered": 0, "streamed": 1_000_000, "state": 0, "touched": 30_000, "products": 10**9}
    assert ceilings.seconds(slow) == pytest.approx(1e9 / 100e9)
    assert ceilings.seconds(slow | {"products": 10**6}) == pytest.approx(1e6 / 10e9)


def test_the_bytes_of_a_pass_follow_the_formula() -> None:
    graph = hf.Graph.from_edges([0, 1, 2], [1, 2, 3], [1.0, 2.0, 3.0])
    nodes, stored = 4, 6
    assert (graph.num_nodes, graph.num_stored) == (nodes, stored)
    block = traffic.of_block(graph, 8)
    assert block.gathered == 4 * stored * 8
    assert block.streamed == stored * (4 + 4) + nodes * (16 + 4) + 2 * 4 * nodes * 8
    assert block.state == 4 * nodes * 8
    assert block.row == 4 * 8
    both = traffic.of_pass(graph, 40)  # a block of 32 queries and one of 8
    assert both.gathered == 4 * stored * 40


def test_a_block_walks_as_long_as_its_longest_query() -> None:
    graph = hf.Graph.from_edges([0, 1, 2], [1, 2, 3], [1.0, 2.0, 3.0])
    iterations = np.full(33, 5)
    iterations[7], iterations[32] = 9, 3
    walk = traffic.of_walk(graph, iterations)
    wide, narrow = traffic.of_block(graph, 32), traffic.of_block(graph, 1)  # one query is left over
    assert walk.gathered == 9 * wide.gathered + 3 * narrow.gathered
    assert walk.streamed == 9 * wide.streamed + 3 * narrow.streamed
    assert walk.state == wide.state
    assert walk.row == wide.row == 128
    assert traffic.of_walk(graph, iterations[:1]).row == 4
