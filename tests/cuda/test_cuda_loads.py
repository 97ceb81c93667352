"""Kernels that move much by few instructions: what PTX says of the width of their loads and stores."""

from __future__ import annotations

import re

import pytest
from audit import entries
from nvrtc import SOURCES, Nvrtc

(DENSE,) = (path for path in SOURCES if path.name == "dense_topk.cu")
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
