"""docs/gpu.md is the output of its formulas, which are those in the kernels' comments."""

from __future__ import annotations

import json

import pytest

from bench import measured_gpu, roofline


def test_the_page_is_what_the_formulas_give() -> None:
    assert roofline.PAGE.read_text(encoding="utf-8") == roofline.render()


def test_a_pass_by_hand() -> None:
    size = roofline.Size("tiny", nodes=10, stored=100, vectors=1, dim=1)
    assert roofline.pass_bytes(size, 32, gathers_miss=True) == 100 * 8 + 10 * 20 + 2 * 4 * 10 * 32 + 4 * 100 * 32
    assert roofline.pass_bytes(size, 32, gathers_miss=False) == 100 * 8 + 10 * 20 + 3 * 4 * 10 * 32


def test_the_page_has_every_card_batch_and_size_that_it_is_for() -> None:
    page = roofline.render()
    for size in (
        "72,000 nodes, 1,050,000",
        "11,656 vectors of 4,096",
        "10,000,000 nodes",
        "1,000,000 vectors of 1,024",
    ):
        assert size in page
    for card in ("RTX 3070", "RTX 4070", "RTX 4090", "RTX 5090", "T4", "L4", "H100"):
        assert page.count(f"| {card}") == 1 + len(roofline.SIZES) + len(roofline.PART_SIZES) + 2  # of 16-bit vectors
    assert page.count("| B = 1 | B = 32 | B = 256 |") == len(roofline.SIZES)
    assert "- *Computed*" in page


def test_the_page_has_every_search_and_call_measured_on_a_gpu() -> None:
    report = json.loads(measured_gpu.FILE.read_text(encoding="utf-8"))
    page, details = measured_gpu.section(), {part["name"]: part["details"] for part in report["parts"]}
    assert all(row["equal"] for row in (*report["before"], *details["searches"]["rows"]))
    for row in details["searches"]["rows"]:
        assert f"| {row['size']} | {row['batch']} |" in page
        assert f" {row['milliseconds']:.2f} ms |" in page
    beside = [row for row in details["bench"]["rows"] if row["status"] == "ok" and row["peer"] is not None]
    assert all(f"| {row['case']} | {row['sizes']['batch']} | {row['peer']} |" in page for row in beside)


def test_a_faster_card_is_never_slower() -> None:
    size = roofline.SIZES[0]
    slow, fast = roofline.Card("slow", 100, 1, 1), roofline.Card("fast", 200, 1, 2)
    for batch in roofline.BATCHES:
        assert roofline.seconds(size, batch, fast, True) == pytest.approx(roofline.seconds(size, batch, slow, True) / 2)


def test_parts_by_hand() -> None:
    size = roofline.Size("tiny", nodes=10, stored=100, vectors=8, dim=4, item=2)
    card = roofline.Card("one byte a second", 1e-9 / 0.8, 0.0, 1e30, 1.0, 1e-9)
    of = roofline.parts(size, card)
    one = 100 * 8 + 10 * 20 + 2 * 4 * 10 * 32 + 100 * 4 * 32  # no L2: every entry gathers
    assert of["walk"] == pytest.approx(13 * one + 4 * 4 * 10 * 32)
    assert of["certificate"] == pytest.approx(one + 800 + 3 * 4 * 10 * 32)
    assert of["dense"] == pytest.approx(2 * 32 + 8 * 8 * 32)  # vectors; scores, written and read
    limits = roofline.dense_limits(size, 40, roofline.Card("slow", 1e9, 0.0, 16e-12, 1.0, 1e-9, 1e-12))
    assert limits["L2"] == pytest.approx(2 * (2 * 32 + 32))  # twice the vectors, and a number of a query for each
    assert limits["arithmetic"] == pytest.approx(2 * 32 * 40 * 2)
    assert of["nodes"] == pytest.approx(1.5e-6 * 50)
    assert of["hub"] == pytest.approx(14 * (64 + 1e5 / 64) * 125)


def test_first_passes_by_hand() -> None:
    """160 rows of 32 queries, 11 times more with each pass: few of a million after three passes."""
    million, tiny = roofline.PART_SIZES[1], roofline.Size("tiny", nodes=300, stored=600, vectors=1, dim=1)
    shares = [160e-6 * 11**number for number in range(5)]
    assert roofline.early_passes(million, 32) == [
        pytest.approx(pair) for pair in zip(shares[:4], [*shares[1:4], 1.0], strict=True)
    ]
    assert roofline.early_passes(tiny, 32) == []
    alone = roofline.early_bytes(tiny, 32, (0.5, 0.75), 1e4)
    assert alone == pytest.approx(600 * 4 + 300 * 8 + 0.5 * (600 * 4 + 1e4) + 0.75 * 300 * 8 * 32)
