"""Kernels that move much by few instructions: what PTX says of the width of their loads."""

from __future__ import annotations

import re
from collections import Counter

from audit import entries
from nvrtc import SOURCES, Nvrtc

(DENSE,) = (path for path in SOURCES if path.name == "dense_topk.cu")


def test_float32_products_load_128_bits(compiler: Nvrtc, architecture: int) -> None:
    """From shared memory always, from global memory where rows and queries are aligned; they add by fma alone."""
    text = entries(compiler.build(DENSE, architecture).ptx)["dense_product_f32"]
    found = Counter(re.findall(r"\b(ld\.(?:global|shared)[.\w]*|st\.global[.\w]*|(?:mul|add|fma)\.[.\w]*f32)\b", text))
    shared = {name for name in found if name.startswith("ld.shared")}
    assert shared == {"ld.shared.v4.f32"}, found
    assert any(name.startswith("ld.global") and ".v4." in name for name in found), found
    assert any(name.startswith("st.global") and ".v4." in name for name in found), found
    assert {name for name in found if name.endswith("f32") and name[:3] in ("mul", "add", "fma")} == {"fma.rn.f32"}, found
