"""Every kernel file compiles for every architecture, without a word from the compiler."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from audit import entries
from cubin import read_resources
from nvrtc import ARCHITECTURES, INCLUDE, SOURCES, Nvrtc

#: What PTX says where arithmetic is not IEEE, or where the assembler may fuse a product and a sum.
INEXACT = "|".join(
    [
        r"\b\w+(?:\.\w+)*\.(?:approx|ftz)\b[.\w]*",
        r"(?<![.\w])div\.full\b[.\w]*",
        r"(?<![.\w])(?:mul|add|sub|mad)\.f(?:32|64)\b",
        r"(?<![.\w])(?:mul|add|sub|mad|fma|div|sqrt)\.r[zmp]\.f(?:32|64)\b",
    ]
)


def test_there_are_kernels() -> None:
    assert SOURCES


def test_the_compiler_knows_every_architecture(compiler: Nvrtc) -> None:
    assert set(ARCHITECTURES) <= set(compiler.architectures())


def test_cubin_and_ptx_have_the_same_kernels(cubins: Nvrtc, source: Path, architecture: int) -> None:
    code = cubins.build(source, architecture)
    assert entries(code.ptx)
    assert set(entries(code.ptx)) == set(read_resources(code.cubin))


def test_arithmetic_is_ieee_and_never_fused_by_the_compiler(cubins: Nvrtc, source: Path, architecture: int) -> None:
    found = {
        f"{kernel}: {instruction}"
        for kernel, text in entries(cubins.build(source, architecture).ptx).items()
        for instruction in re.findall(INEXACT, text)
    }
    assert not found


def test_nvrtc_of_cuda_13(cuda13_compiler: Nvrtc, source: Path, some_architecture: int) -> None:
    assert read_resources(cuda13_compiler.build(source, some_architecture).cubin)


@pytest.mark.full
def test_nvcc(nvcc: str, source: Path, some_architecture: int, tmp_path: Path) -> None:
    command = [nvcc, "-cubin", f"-arch=sm_{some_architecture}", "-std=c++17", "--fmad=false", "-Werror", "all-warnings"]
    files = ["-I", str(INCLUDE), "-o", str(tmp_path / "cubin"), str(source)]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
