"""The counts on docs/gpu.md are those of the kernels as they are, and a pass moves no more than it may."""

from __future__ import annotations

import pytest
from variants import missing

from bench import counted
from bench.counted_text import pass_bytes, read, section
from bench.moved import MOVED

COUNTS = read()


def test_a_pass_asks_for_little_more_than_its_formula() -> None:
    most = COUNTS[-1]
    assert most["search"]["batch"] == 32
    assert most["bar"] < pass_bytes(most) <= 1.15 * most["bar"]
    assert f"**{pass_bytes(most) / most['bar']:.3f} times**" in section(COUNTS)


def test_every_kernel_that_does_something_is_held_against_its_comment() -> None:
    for count in COUNTS:
        names = {row["kernel"] for row in count["kernels"]}
        assert {name for name in names if not name.endswith("nothing left")} == set(MOVED)
        for row in count["kernels"]:
            assert 0 < row["once"] <= row["asked"]
            assert (row["stated"] > 0) == (row["kernel"] in MOVED)


@pytest.mark.emulator
@pytest.mark.skipif(missing("simt") is not None, reason=str(missing("simt")))
def test_the_committed_counts_are_those_of_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another compiler may leave a few loads out."""
    monkeypatch.setenv("HOPFUSE_BACKEND", counted.NAME)
    with counted.emulator() as runtime:
        for committed in COUNTS:
            found = counted.count(committed["search"]["batch"], runtime)
            assert (found["search"], found["bar"]) == (committed["search"], committed["bar"])
            for row, expected in zip(found["kernels"], committed["kernels"], strict=True):
                same = ("kernel", "launches", "stated")
                assert [row[key] for key in same] == [expected[key] for key in same]
                assert row["asked"] == pytest.approx(expected["asked"], rel=0.05), row["kernel"]
