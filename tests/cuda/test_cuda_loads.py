"""Kernels that move much by few instructions: what PTX says of the width of their loads and stores."""

from __future__ import annotations

import re

import pytest
from audit import entries
from nvrtc import SOURCES, Nvrtc

DENSE, RANK = (path for path in SOURCES if path.name in ("dense_topk.cu", "ppr_topk_f32.cu"))
WIDE = re.compile(r"\.v4\.[bfu]32|\.v2\.[bfu]64")


@pytest.fixture
def product(compiler: Nvrtc, architecture: int) -> str:
    return entries(compiler.build(DENSE, architecture).ptx)["dense_product_f32"]


def test_float32_products_move_128_bits(product: str) -> None:
    """From shared memory always; from and to global memory too, where arrays are aligned."""
    assert all(WIDE.search(load) for load in re.findall(r"\bld\.shared[.\w]*", product))
    for what in (r"\bld\.global[.\w]*", r"\bst\.global[.\w]*"):
        assert any(WIDE.search(move) for move in re.findall(what, product))


def test_float32_products_add_by_fma_alone(product: str) -> None:
    arithmetic = set(re.findall(r"\b((?:mul|add|sub|fma)\.\w*\.?f32(?:x2)?)\b", product))
    assert arithmetic <= {"fma.rn.f32", "fma.rn.f32x2"}, arithmetic
    assert arithmetic


def test_a_scan_of_candidates_reads_four_lanes_at_once(compiler: Nvrtc, architecture: int) -> None:
    """The rows of a step, and whatever else has a number for each lane."""
    scan = entries(compiler.build(RANK, architecture).ptx)["ppr_scan"]
    assert len(re.findall(r"\bld\.global[.\w]*\.v4\.[bfu]32", scan)) >= 4 + 3
