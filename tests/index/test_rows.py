"""Rows in memory that grows, and rows in another order, against plain concatenation and indexing."""

from __future__ import annotations

import mmap
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hopfuse.index.columns import string_column
from hopfuse.index.rows import GrownRows, TakenRows, take_rows, take_strings
from hopfuse.index.sections import Section


@pytest.mark.parametrize("seed", range(8))
def test_every_prefix_is_what_was_appended_and_stays(seed: int) -> None:
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 99, (int(rng.integers(0, 40)), 2))
    grown, added, returned = GrownRows(Section("rows", base)), base, []
    for _ in range(30):
        added = np.concatenate([added, rng.integers(0, 99, (int(rng.integers(0, 9)), 2))])
        grown.append(added[len(returned[-1][1]) if returned else len(base) :])
        count = int(rng.integers(0, len(added) + 1))
        returned += [(grown.prefix(count), added[:count]), (grown.prefix(len(added)), added)]
    assert all(np.array_equal(ours, theirs) for ours, theirs in returned)
    assert (grown.base, grown.last().tolist()) == (len(base), added[-1].tolist())


def test_nothing_is_copied_twice_and_nothing_can_be_written() -> None:
    base = np.zeros((80, 3))
    grown = GrownRows(Section("rows", base))
    assert np.shares_memory(grown.prefix(80), base)
    grown.append(np.ones((1, 3)))
    first = grown.prefix(81)
    grown.append(np.full((2, 3), 2.0))
    second = grown.prefix(83)
    assert np.shares_memory(first, second)
    with pytest.raises(ValueError, match="read-only"):
        second[0] = 1
    assert not base.any()


@pytest.mark.parametrize(("size", "shift"), [(9, 3), (4096, 0), (5000, 1), (70_000, 65), (3 * 4096, 64)])
@pytest.mark.parametrize("width", [1, 24])
def test_rows_of_a_file_are_continued_in_memory(tmp_path: Path, size: int, shift: int, width: int) -> None:
    """Whatever part of which pages they are, the file stays, and so does what was returned when it is unlinked."""
    data = np.random.default_rng(size).integers(0, 256, shift + size * width + 77).astype(np.uint8)
    path = tmp_path / "file"
    path.write_bytes(data.tobytes())
    with path.open("rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    base = np.ndarray((size, width), np.uint8, buffer=mapping, offset=shift)
    expected = data[shift : shift + size * width].reshape(size, width)
    grown, returned = GrownRows(Section("rows", base)), [base]
    for count in (1, 3, size, 5):
        rows = np.full((count, width), count % 251, np.uint8)
        grown.append(rows)
        expected = np.concatenate([expected, rows])
        returned.append(grown.prefix(len(expected)))
    path.unlink()
    del grown, base, mapping
    assert all(np.array_equal(one, expected[: len(one)]) for one in returned)


@pytest.mark.skipif(sys.platform != "linux", reason="pages are shared on Linux")
def test_pages_of_a_file_are_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "file"
    np.ones(64 << 20, np.uint8).tofile(path)
    with path.open("rb") as file:
        base = np.ndarray(64 << 20, np.uint8, buffer=mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def anonymous() -> int:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Anonymous:"))

    before, grown = anonymous(), GrownRows(Section("rows", base))
    grown.append(np.zeros(10, np.uint8))
    assert grown.prefix(base.size + 10).sum() == base.size
    assert anonymous() - before < 8 << 20


@pytest.mark.parametrize("seed", range(8))
def test_rows_and_strings_in_an_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    texts = [bytes(rng.integers(97, 123, int(rng.integers(0, 5))).astype(np.uint8)) for _ in range(30)]
    offsets, data = np.cumsum([0, *map(len, texts)]), np.frombuffer(b"".join(texts), np.uint8)
    for order in (np.flatnonzero(rng.random(30) < 0.7), rng.permutation(30), np.zeros(0, np.int64)):
        assert take_rows(offsets[:30], order).tolist() == offsets[:30][order].tolist()
        taken = take_strings("x", offsets, data, order)
        ends, joined = taken["x.offsets"].whole(), b"".join(texts[at] for at in order)
        found = [taken["x.bytes"].part(a, b).tobytes() for a, b in pairwise(ends)]
        assert found == [texts[at] for at in order]
        assert list(string_column(taken, "x")) == [string_column(taken, "x")[at] for at in range(order.size)]
        assert b"".join(taken["x.bytes"].blocks()) == taken["x.bytes"].whole().tobytes() == joined
        for first, last in rng.integers(0, len(joined) + 1, (9, 2)).tolist():
            assert taken["x.bytes"].part(first, last).tobytes() == joined[first:last]
        rows = TakenRows("rows", offsets[:30, None] + np.arange(3), order)
        assert rows.whole().tolist() == [[offsets[at] + i for i in range(3)] for at in order]
        assert b"".join(rows.blocks()) == rows.whole().tobytes()
        some = rng.permutation(order.size)[:5]
        assert rows.take(some).tolist() == rows.whole()[some].tolist()
    whole = np.arange(30)
    assert take_rows(offsets[:30], whole) is not offsets
    assert np.shares_memory(take_rows(offsets[:30], whole), offsets)
    assert np.shares_memory(take_strings("x", offsets, data, whole)["x.bytes"].whole(), data)
