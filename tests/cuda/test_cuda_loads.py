"""Kernels that move much by few instructions: what PTX says of the width of their loads and stores."""

from __future__ import annotations

import re

import pytest
from audit import entries
from nvrtc import SOURCES, Nvrtc

DENSE, RANK = (path for path in SOURCES if path.name in ("dense_topk.cu", "ppr_topk_f32.cu"))
WIDE = re.compile(r"\.v4\.[bfu]32|\.v2\.[bfu]64")
#: Architectures whose matrix units multiply the parts of float32 rows.
SPLIT = (80, 90, 100)


@pytest.fixture
def kernels(compiler: Nvrtc, architecture: int) -> dict[str, str]:
    return entries(compiler.build(DENSE, architecture).ptx)


def by_units(architecture: int) -> list[str]:
    """Return the types of rows that matrix units multiply."""
    return ["f16", *(["bf16"] if architecture >= 80 else []), *(["f32"] if architecture in SPLIT else [])]


def test_products_in_float32_move_128_bits(kernels: dict[str, str], architecture: int) -> None:
    """From shared memory always; from and to global memory too, where arrays are aligned."""
    if architecture in SPLIT:
        pytest.skip("matrix units multiply float32 rows")
    product = kernels["dense_product_f32"]
    assert all(WIDE.search(load) for load in re.findall(r"\bld\.shared[.\w]*", product))
    for what in (r"\bld\.global[.\w]*", r"\bst\.global[.\w]*"):
        assert any(WIDE.search(move) for move in re.findall(what, product))


def test_products_in_float32_add_by_fma_alone(kernels: dict[str, str], architecture: int) -> None:
    if architecture in SPLIT:
        pytest.skip("matrix units multiply float32 rows")
    arithmetic = set(re.findall(r"\b((?:mul|add|sub|fma)\.\w*\.?f32(?:x2)?)\b", kernels["dense_product_f32"]))
    assert arithmetic <= {"fma.rn.f32", "fma.rn.f32x2"}, arithmetic
    assert arithmetic


def test_products_by_units_move_128_bits(kernels: dict[str, str], architecture: int) -> None:
    """From shared memory always; to it from global memory, asynchronously from compute capability 8.0 on."""
    for storage in by_units(architecture):
        product = kernels[f"dense_product_{storage}"]
        assert len(re.findall(r"\bmma\.sync\.", product)) > 0
        assert all(WIDE.search(load) for load in re.findall(r"\bld\.shared[.\w]*", product)), storage
        if architecture >= 80:
            assert all(
                size == "16" for size in re.findall(r"cp\.async\.cg\.shared\.global \[\S+\], \[\S+\], (\d+)", product)
            )
            assert "cp.async.cg.shared.global" in product
        else:
            assert any(WIDE.search(load) for load in re.findall(r"\bld\.global[.\w]*", product))


def test_a_scan_of_candidates_reads_four_lanes_at_once(compiler: Nvrtc, architecture: int) -> None:
    """The rows of a step, and whatever else has a number for each lane."""
    scan = entries(compiler.build(RANK, architecture).ptx)["ppr_scan"]
    assert len(re.findall(r"\bld\.global[.\w]*\.v4\.[bfu]32", scan)) >= 4 + 3
