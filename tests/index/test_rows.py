"""Rows in memory that grows, and rows in another order, against plain concatenation and indexing."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from index.index_files import generation_file, is_mapped

SECTIONS = ("passage.vectors", "passage.id.number", "passage.text.offsets", "passage.text.bytes", "passage.length")


def rows_of(first: int, count: int) -> list[dict[str, Any]]:
    return [{"id": at, "text": f"text {at} " * (at % 4)} for at in range(first, first + count)]


def saved(folder: Path, vectors: np.ndarray) -> Path:
    hf.Index.build(passages=rows_of(0, len(vectors)), vectors=vectors).save(folder)
    return folder


def add(live: hf.LiveIndex[hf.Index], vectors: np.ndarray) -> hf.Index:
    """Append rows, and return the snapshot that has them."""
    first = live.index.num_passages
    with live.change() as change:
        change.add_passages(rows_of(first, len(vectors)), vectors=vectors)
    return live.refresh()


def random_rows(rng: np.random.Generator, count: int, dim: int) -> np.ndarray:
    return rng.integers(1, 99, (count, dim)).astype(np.float32)


@pytest.mark.parametrize("seed", range(8))
def test_every_snapshot_is_what_was_appended_and_stays(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    added = random_rows(rng, int(rng.integers(0, 40)), 2)
    with hf.Index.open(saved(tmp_path, added), writable=True) as live:
        found = [(live.index, added)]
        for _ in range(30):
            rows = random_rows(rng, int(rng.integers(0, 9)), 2)
            added = np.concatenate([added, rows])
            snapshot = add(live, rows)
            if rng.random() < 0.7:
                snapshot.load()
            found.append((snapshot, added))
    for at in rng.permutation(len(found)).tolist():  # a snapshot may be read after later ones
        snapshot, expected = found[at]
        assert np.array_equal(snapshot.vectors, expected)
        assert list(snapshot.texts) == [row["text"] for row in rows_of(0, len(expected))]
    for snapshot, expected in found:
        assert np.array_equal(snapshot.vectors, expected)


def test_nothing_is_copied_twice_and_nothing_can_be_written(tmp_path: Path) -> None:
    base = np.ones((80, 3), np.float32)
    with hf.Index.open(saved(tmp_path, base), writable=True) as live:
        assert is_mapped(live.index.vectors)
        first = add(live, np.ones((1, 3), np.float32)).vectors
        second = add(live, np.full((2, 3), 2.0, np.float32)).vectors
    assert (first.shape, second.shape) == ((81, 3), (83, 3))
    assert np.shares_memory(first, second)
    with pytest.raises(ValueError, match="read-only"):
        second[0] = 1
    assert np.array_equal(hf.Index.open(tmp_path).vectors[:80], base)


@pytest.mark.parametrize("size", [9, 1024, 5000, 3 * 4096])
@pytest.mark.parametrize("width", [1, 24])
def test_rows_of_a_file_are_continued_in_memory(tmp_path: Path, size: int, width: int) -> None:
    """Whatever part of which pages they are, the file stays, and so does what was returned when it is unlinked."""
    rng = np.random.default_rng(size)
    expected = random_rows(rng, size, width)
    saved(tmp_path, expected)
    file = generation_file(tmp_path)
    bytes_before = file.read_bytes()
    with hf.Index.open(tmp_path, writable=True) as live:
        found = [(live.index, live.index.vectors, expected)]
        for count in (1, 3, size, 5):
            rows = np.full((count, width), 1 + count % 251, np.float32)
            expected = np.concatenate([expected, rows])
            snapshot = add(live, rows)
            found.append((snapshot, snapshot.vectors, expected))
            snapshot.load()
    assert file.read_bytes() == bytes_before
    file.unlink()
    del live
    for snapshot, vectors, right in found:
        assert np.array_equal(vectors, right)
        assert np.array_equal(snapshot.sections["passage.id.number"].whole(), np.arange(len(right)))
        assert list(snapshot.texts) == [row["text"] for row in rows_of(0, len(right))]


@pytest.mark.skipif(sys.platform != "linux", reason="pages are shared on Linux")
def test_pages_of_a_file_are_not_copied(tmp_path: Path) -> None:
    count, dim = 4096, 4096
    saved(tmp_path, np.ones((count, dim), np.float32))  # 64 MiB

    def anonymous() -> int:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Anonymous:"))

    with hf.Index.open(tmp_path, writable=True) as live:
        before = anonymous()
        vectors = add(live, np.full((1, dim), 2, np.float32)).vectors
        assert vectors.sum(dtype=np.float64) == count * dim + 2 * dim
        assert anonymous() - before < 8 << 20


@pytest.mark.parametrize("seed", range(8))
def test_rows_and_strings_that_are_left(tmp_path: Path, seed: int) -> None:
    """Sections of a snapshot whose generation lost rows are read whole, in blocks, in parts and by rows."""
    rng = np.random.default_rng(seed)
    vectors = random_rows(rng, 30, 3)
    index = hf.Index.build(passages=rows_of(0, 30), vectors=vectors)
    for share in (0.7, 0.2, 0.0):
        kept = np.flatnonzero(rng.random(30) < share)
        index.save(tmp_path)
        with hf.Index.open(tmp_path, writable=True) as live:
            with live.change() as change:
                change.delete_passages(sorted(set(range(30)) - set(kept.tolist())))
            snapshot = live.refresh()
        expected = hf.Index.build(passages=[rows_of(at, 1)[0] for at in kept], vectors=vectors[kept])
        texts = [rows_of(at, 1)[0]["text"].encode() for at in kept]
        for name in SECTIONS:
            if len(kept):
                right = expected.sections[name].whole()
                assert snapshot.sections[name].whole().tobytes() == right.tobytes(), name
            section = snapshot.sections[name]
            assert b"".join(section.blocks()) == section.whole().tobytes(), name
            for first, last in np.sort(rng.integers(0, len(section.whole()) + 1, (9, 2)), axis=1).tolist():
                assert section.part(first, last).tobytes() == section.whole()[first:last].tobytes(), name
        data, ends = snapshot.sections["passage.text.bytes"], snapshot.sections["passage.text.offsets"].whole()
        assert [data.part(first, last).tobytes() for first, last in pairwise(ends.tolist())] == texts
        assert list(snapshot.texts) == [snapshot.texts[at] for at in range(len(kept))] == [t.decode() for t in texts]
        some = rng.random(len(kept)) < 0.5
        part = snapshot.part(some).index
        assert np.array_equal(part.sections["passage.vectors"].whole(), vectors[kept[some]])
        assert list(part.texts) == [text.decode() for text, is_left in zip(texts, some, strict=True) if is_left]


def test_a_snapshot_that_lost_no_passages_shares_their_rows_with_its_generation(tmp_path: Path) -> None:
    entities = ["a", "b"]
    vectors = np.ones((9, 3), np.float32)
    hf.Index.build(passages=rows_of(0, 9), vectors=vectors, entities=entities).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        before = live.index
        with live.change() as change:
            change.delete_entities(["a"])
        after = live.refresh()
    assert list(after.entity_names) == ["b"]
    for name in SECTIONS:
        assert np.shares_memory(before.sections[name].whole(), after.sections[name].whole()), name
