"""No kernel multiplies what it loads in 32 bits on its way to an address; planted ones are seen."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from index_width import narrow_addresses
from kernels.mutants import CUDA, INDEX_MUTANTS, Mutant
from nvrtc import Nvrtc


def test_no_kernel_has_a_narrow_address(cubins: Nvrtc, source: Path, architecture: int) -> None:
    assert narrow_addresses(cubins.build(source, architecture).ptx) == []


@pytest.mark.parametrize(
    ("body", "is_narrow"),
    [
        ("out[node[i] * lanes] = 1.0f;", True),
        ("out[(node[i] << 5) + 3] = 1.0f;", True),
        ("for (int j = node[i]; j < 9; ++j) out[j * lanes + i] = 1.0f;", True),
        ("out[static_cast<long long>(node[i] * lanes)] = 1.0f;", True),
        ("out[static_cast<long long>(node[i]) * lanes] = 1.0f;", False),
        ("out[node[i]] = 1.0f;", False),
        ("out[i * lanes] = static_cast<float>(node[i] * 3);", False),
    ],
)
def test_the_expressions_that_count_as_narrow_products(
    compiler: Nvrtc, tmp_path: Path, body: str, is_narrow: bool
) -> None:
    source = tmp_path / "planted.cu"
    index = "const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);"
    source.write_text(
        f'extern "C" __global__ void put(const int* node, int lanes, float* out) {{\n{index}\n{body}\n}}\n',
        encoding="utf-8",
    )
    code, _ = compiler.compile(source, 90)
    assert bool(narrow_addresses(code.ptx)) == is_narrow


@pytest.mark.full
@pytest.mark.parametrize("mutant", INDEX_MUTANTS, ids=[mutant.name for mutant in INDEX_MUTANTS])
def test_a_planted_one_is_found(compiler: Nvrtc, tmp_path: Path, mutant: Mutant) -> None:
    shutil.copytree(CUDA, tmp_path, dirs_exist_ok=True)
    (tmp_path / mutant.file).write_text(mutant.text(), encoding="utf-8")
    code, _ = compiler.compile(tmp_path / mutant.case, 90)
    assert narrow_addresses(code.ptx)
