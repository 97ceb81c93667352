"""The proof that dot products of codes are exact passes for correct instructions and fails for wrong ones.

AVX-VNNI's loop is compiled as that set encodes its one instruction, as AVX-512 does, and with AVX2 standing in for it,
so that a machine with any of the three tests it. AMX's loop is compiled with tile registers in memory, so that any
machine with AVX-512 tests it.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
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
int main() { return hopfuse::HOPFUSE_ISA_NS::code_dots_are_exact() ? 0 : 1; }
"""
AVX512 = (*AVX2, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vnni", "-mamx-tile", "-mamx-int8")
#: The flags of Linux for what AMX's loop needs apart from tile registers.
AVX512_FLAGS = {"avx512bw", "avx512dq", "avx512vl", "avx512_vnni"}
#: Tile registers of 16 rows of 64 bytes, as Intel's manual defines their instructions, with PRODUCT for two bytes.
TILES = """
#include <cstdint>
#include <cstring>
#include <immintrin.h>
static uint8_t tiles[8][16][64];
static void load(int tile, const void* from, int64_t stride) {
    for (int row = 0; row < 16; ++row) std::memcpy(tiles[tile][row], static_cast<const char*>(from) + row * stride, 64);
}
static void put(int tile, void* to, int64_t stride) {
    for (int row = 0; row < 16; ++row) std::memcpy(static_cast<char*>(to) + row * stride, tiles[tile][row], 64);
}
static void multiply(int sums, int a, int b) {
    for (int m = 0; m < 16; ++m)
        for (int n = 0; n < 16; ++n) {
            int32_t sum;
            std::memcpy(&sum, tiles[sums][m] + 4 * n, 4);
            for (int k = 0; k < 64; ++k) {
                const int32_t x = static_cast<int8_t>(tiles[a][m][k]), y = tiles[b][k / 4][4 * n + k % 4];
                sum += PRODUCT;
            }
            std::memcpy(tiles[sums][m] + 4 * n, &sum, 4);
        }
}
#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbsud
#define _tile_loadconfig(config) static_cast<void>(config)
#define _tile_release() static_cast<void>(0)
#define _tile_loadd(tile, from, stride) load(tile, from, stride)
#define _tile_stored(tile, to, stride) put(tile, to, stride)
#define _tile_zero(tile) std::memset(tiles[tile], 0, 1024)
#define _tile_dpbsud(sums, a, b) multiply(sums, a, b)
"""
#: What an instruction could compute instead: products of two signed bytes, of one byte in 16 too few, or no sum at all.
WRONG_PRODUCTS = {
    "signs": "x * static_cast<int8_t>(y)",
    "loses": "(k == 63 ? 0 : x * y)",
    "forgets": "x * y - (k == 0 ? sum : 0)",
}
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


def proof(folder: Path, *options: str, isa: str = "avxvnni", base: tuple[str, ...] = AVX2) -> bool:
    """Compile the proof for an instruction set with these options and run it."""
    if platform.machine() not in {"x86_64", "AMD64"}:
        pytest.skip(f"these are instruction sets of x86-64; this is {platform.machine()}")
    if "avx2" not in flags_here():
        pytest.skip("this processor has no AVX2, or does not say so")
    compiler = shutil.which(os.environ.get("CXX") or "c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler here")
    main, program = folder / "main.cpp", folder / "proof"
    main.write_text(PROGRAM, encoding="utf-8")
    definitions = ("-DHOPFUSE_X86", f"-DHOPFUSE_ISA_NS={isa}", f"-DHOPFUSE_ISA_{isa.upper()}")
    sources = ("-Ikernels/include", "-Ikernels/cpu", "kernels/cpu/code_dots.cpp", str(main), "-o", str(program))
    command = [compiler, "-std=c++20", "-O2", *definitions, *base, *options, *sources]
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


def test_an_instruction_may_be_replaced_by_its_definition(tmp_path: Path) -> None:
    assert instead(tmp_path, "_mm256_add_epi32(s, right(x, q))")


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_byte_product_is_refused(tmp_path: Path, wrong: str) -> None:
    assert not instead(tmp_path, WRONG[wrong])


def with_tiles(folder: Path, product: str) -> bool:
    """Return AMX's proof with tile registers in memory."""
    if not flags_here() >= AVX512_FLAGS:
        pytest.skip("this processor has no AVX-512 with VNNI")
    header = folder / "tiles.h"
    header.write_text(TILES.replace("PRODUCT", product), encoding="utf-8")
    return proof(folder, "-include", str(header), isa="amx", base=AVX512)


def test_tile_registers_give_exact_dot_products(tmp_path: Path) -> None:
    assert with_tiles(tmp_path, "x * y")


@pytest.mark.parametrize("product", WRONG_PRODUCTS)
def test_a_wrong_product_of_tile_registers_is_refused(tmp_path: Path, product: str) -> None:
    assert not with_tiles(tmp_path, WRONG_PRODUCTS[product])


#: Gives the thread an alternate signal stack that is too small for tile registers, and then loads the library.
SMALL_STACK = """
import ctypes
class Stack(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]
room = ctypes.create_string_buffer(6144)
stack = Stack(ctypes.addressof(room), 0, len(room))
assert ctypes.CDLL(None).sigaltstack(ctypes.byref(stack), None) == 0
from hopfuse import _native
print(*_native.runnable_isas(), *_native.refused_isas())
"""


def test_a_program_whose_signal_stack_is_too_small_for_tiles_runs_without_them() -> None:
    if "amx" not in _native.runnable_isas():
        pytest.skip("this processor or system has no AMX")
    ran = subprocess.run([sys.executable, "-c", SMALL_STACK], check=True, capture_output=True, text=True)
    assert ran.stdout.split() == [isa for isa in _native.runnable_isas() if isa != "amx"]


def test_every_variant_that_this_machine_offers_is_proven() -> None:
    assert _native.refused_isas() == []
