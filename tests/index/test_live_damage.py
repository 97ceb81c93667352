"""Flips, cuts and swaps of bytes in any file of a directory: an error of the format, or what was committed."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress
from pathlib import Path

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import FormatError
from index import damages
from index.damages import damage_files, digest, snapshots, whole_files
from index.index_files import Forge


def test_damage_is_an_error_of_the_format_or_leaves_what_was_committed(tmp_path: Path) -> None:
    assert damage_files(tmp_path, seed=0, count=60) > 30


@pytest.mark.parametrize("count", [20, pytest.param(2_000, marks=pytest.mark.full)])
def test_a_damaged_file_takes_no_more_memory_than_a_whole_one_and_twice_the_file(tmp_path: Path, count: int) -> None:
    def peak() -> int:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        with suppress(FormatError):
            digest(hf.Index.open(tmp_path, verify="full"))
        return tracemalloc.get_traced_memory()[1] - before

    whole = whole_files()
    snapshots(tmp_path, whole)
    tracemalloc.start()
    try:
        allowed = max(peak() for _ in range(3)) + 2 * max(map(len, whole.values()))
        for name, data in damages.damages(whole, count, 0):
            (tmp_path / name).write_bytes(data)
            assert peak() <= allowed
            (tmp_path / name).write_bytes(whole[name])
    finally:
        tracemalloc.stop()


def test_damage_that_checksums_hide_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a reader without checksums would see it."""
    plain = damages.damaged

    def hidden(data: bytes, rng: np.random.Generator) -> bytes:
        if data != whole_files()[damages.NAMES[0]]:
            return plain(data, rng)
        forge = Forge(data)
        forge.array("entity.vectors")[0] += 1
        return forge.seal()

    monkeypatch.setattr(damages, "damaged", hidden)
    with pytest.raises(AssertionError, match="of seed 0: generation-"):
        damage_files(tmp_path, seed=0, count=40)
