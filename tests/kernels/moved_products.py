"""Kernels whose matrix products are wrong on purpose, by as much as any order of sums may be."""

from __future__ import annotations

import shutil
from pathlib import Path

from hopfuse_simt.driver import CUDA

_PUT = "        if (query < num_queries && row < num_rows) out[query * stride + row] = product;\n"
_FOURS = "if (stride % 4 != 0)"
#: The exact product of float32 rows, moved by ERROR times the bound. `is_best`: the row is among the five with the best
#: scores of the query; `number` is the query's, `drawn` is uniform in -1 .. 1 for each query and row. A unit is left to
#: the rounding here. Blocks have all queries.
_MOVED = """
        if (query >= num_queries || row >= num_rows) return;
        const int number = query, own = blockIdx.x * PRODUCT_ROWS + row;
        double products[3];  // with itself, of the query and of the row; with each other
        const auto multiply = [&](const float* a, const float* b) {
            double sum = 0.0;
            for (int i = 0; i < dim; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
            return sum;
        };
        const float* const all = reinterpret_cast<const float*>(rows) - (own - row) * dim;
        const float* const mine = queries + query * dim;
        products[0] = multiply(mine, mine);
        const auto score = [&](int other) {
            const float* const line = all + other * dim;
            const double size = COSINE ? multiply(line, line) : 1.0;
            return multiply(mine, line) / sqrt(size);
        };
        products[1] = multiply(all + own * dim, all + own * dim);
        products[2] = multiply(mine, all + own * dim);
        int better = 0;
        const double reached = score(own);
        for (int other = 0; other < stride; ++other)
            better += score(other) > reached || (other < own && score(other) == reached);
        [[maybe_unused]] const bool is_best = better < 5;
        unsigned bits = (number * 2654435761u) ^ (own * 2246822519u);
        for (int i = 0; i < 3; ++i) bits = (bits ^ (bits >> 15)) * 2654435769u;
        [[maybe_unused]] const double drawn = bits / 2147483648.0 - 1.0;
        const double unit = 5.9604644775390625e-08, gamma = dim * unit / (1 - dim * unit);
        const double error = (ERROR) * (gamma - unit) * sqrt(products[0]) * sqrt(products[1]);
        out[query * stride + row] = static_cast<float>(products[2] + error);
"""


def move_products(folder: Path, error: str, *, cosine: bool = False) -> Path:
    """Copy the kernels to a folder, with products that are off by ``error``, in C++; return the folder."""
    copy_kernels(folder)
    header = folder / "dense_product.h"
    text = header.read_text(encoding="utf-8")
    assert text.count(_PUT) == text.count(_FOURS) == 1
    moved = _MOVED.replace("ERROR", error).replace("COSINE", "true" if cosine else "false")
    text = text.replace(_PUT, moved).replace(_FOURS, "if (true)")
    header.write_text(text, encoding="utf-8")
    return folder


def copy_kernels(folder: Path) -> Path:
    """Copy the .cu files and their headers to a folder; return it."""
    return Path(shutil.copytree(CUDA, folder, dirs_exist_ok=True))
