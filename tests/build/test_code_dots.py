"""The proof that dot products of codes are exact passes for correct instructions and fails for wrong ones.

AVX-VNNI's loop is compiled as that set encodes its one instruction, as AVX-512 does, and with AVX2 standing in for it,
so that a machine with any of the three tests it.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest
from hopfuse import _native

ROOT = Path(__file__).parents[2]
AVX2 = ("-mavx2", "-mfma", "-mf16c")
ENCODINGS = {
    "avx_vnni": ("-mavxvnni",),
    "avx512_vnni": ("-mavx512vl", "-mavx512vnni"),
    "avx2": (),
}
PROGRAM = """
#include "kernels.h"
int main() { return hopfuse::avxvnni::code_dots_are_exact() ? 0 : 1; }
"""
#: What an instruction could do in its stead: keep pairs of products in 16 bits, lose one of four, or forget the sum.
WRONG = {
    "saturates": "_mm256_add_epi32(s, _mm256_madd_epi16(_mm256_maddubs_epi16(x, q), _mm256_set1_epi16(1)))",
    "loses": "_mm256_add_epi32(s, right(_mm256_and_si256(x, _mm256_set1_epi32(0x00ffffff)), q))",
    "forgets": "((void)s, right(x, q))",
}
RIGHT = """
#include <immintrin.h>
static inline __m256i right(__m256i x, __m256i q) {
    const __m256i even = _mm256_and_si256(x, _mm256_set1_epi16(0x00ff)), odd = _mm256_srli_epi16(x, 8);
    const __m256i even_q = _mm256_srai_epi16(_mm256_slli_epi16(q, 8), 8), odd_q = _mm256_srai_epi16(q, 8);
    return _mm256_add_epi32(_mm256_madd_epi16(even, even_q), _mm256_madd_epi16(odd, odd_q));
}
"""


def flags_here() -> set[str]:
    """Return the processor's flags, as Linux names them."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return set()
    return next((set(line.split()) for line in text.splitlines() if line.startswith("flags")), set())


def proof(folder: Path, *options: str) -> bool:
    """Compile the proof for AVX-VNNI with these options and run it."""
    if platform.machine() not in {"x86_64", "AMD64"}:
        pytest.skip(f"AVX-VNNI is an instruction set of x86-64; this is {platform.machine()}")
    if "avx2" not in flags_here():
        pytest.skip("this processor has no AVX2, or does not say so")
    compiler = shutil.which(os.environ.get("CXX") or "c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler here")
    main, program = folder / "main.cpp", folder / "proof"
    main.write_text(PROGRAM, encoding="utf-8")
    definitions = ("-DHOPFUSE_X86", "-DHOPFUSE_ISA_NS=avxvnni", "-DHOPFUSE_ISA_AVXVNNI")
    sources = ("-Ikernels/include", "-Ikernels/cpu", "kernels/cpu/code_dots.cpp", str(main), "-o", str(program))
    command = [compiler, "-std=c++20", "-O2", *definitions, *AVX2, *options, *sources]
    subprocess.run(command, cwd=ROOT, check=True)
    return subprocess.run([program], check=False).returncode == 0


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_each_encoding_of_the_byte_product_is_exact(tmp_path: Path, encoding: str) -> None:
    if encoding not in flags_here():
        pytest.skip(f"this processor has no {encoding}")
    assert proof(tmp_path, *ENCODINGS[encoding])


def instead(folder: Path, expression: str) -> bool:
    """Return the proof with an AVX2 expression instead of the instruction."""
    header = folder / "instead.h"
    defined = "#define _mm256_dpbusd_avx_epi32 instead\n"
    function = f"static inline __m256i instead(__m256i s, __m256i x, __m256i q) {{ return {expression}; }}\n"
    header.write_text(RIGHT + function + defined, encoding="utf-8")
    return proof(folder, "-D__AVXVNNI__", "-include", str(header))


def test_an_instruction_may_be_replaced_by_what_it_does(tmp_path: Path) -> None:
    assert instead(tmp_path, "_mm256_add_epi32(s, right(x, q))")


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_byte_product_is_refused(tmp_path: Path, wrong: str) -> None:
    assert not instead(tmp_path, WRONG[wrong])


def test_every_variant_that_this_machine_offers_is_proven() -> None:
    assert _native.refused_isas() == []
