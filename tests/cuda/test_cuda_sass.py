"""What the compiler made of the kernels: no spills, wide gathers, and loads that are under way before one is used.

The register and shared memory of every kernel are those of its comment (test_cuda_resources.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import sass
from cubin import read_resources
from nvrtc import SOURCES, Nvrtc

pytestmark = pytest.mark.full
Compile = Callable[[str], dict[str, sass.Code]]

#: Loads of 128 bits that the kernels of a file issue before they compute with one, by their names.
WIDE = {
    "dense_codes": {"dense_scan_q(4|16|32)": 5},
    "dense_topk": {"dense_product_f16": 4},
    "ppr_certify_f32": {"ppr_residual_l(4|8|16|32)": 4},
    "ppr_f32": {r"ppr_(pass|segments)_(plain|weighted)_l\d+|ppr_walk_l\d+": 4},
    "ppr_sliced_f32": {"ppr_(pass|walk)_sliced_l4": 8},
}
#: Loads of any width, likewise.
AHEAD = {
    "dense_codes": {"dense_rank_(f32|f16|bf16)": 16},
    "dense_topk": {"dense_norms_f32": 8, "dense_score_f32": 4},
    "ppr_f32": {"ppr_early_l(4|8|16|32)": 4},
}


def wheel(package: str, name: str) -> Path:
    found = sass.program(package, name)
    if found is None:
        pytest.skip(f"{name} is not installed: pip install {package}")
    return found


@pytest.fixture(scope="session")
def nvdisasm() -> Path:
    return wheel("nvidia-cuda-nvdisasm", "nvdisasm")


@pytest.fixture(scope="session")
def cuobjdump() -> Path:
    return wheel("nvidia-cuda-cuobjdump", "cuobjdump")


def narrow_gathers(code: dict[str, sass.Code], expected: dict[str, int], load: re.Pattern[str]) -> list[str]:
    """What a file's kernels load too little of before they compute, in words."""
    complaints = []
    for pattern, least in expected.items():
        kernels = [name for name in code if re.fullmatch(pattern, name)]
        if not kernels:
            complaints.append(f"no kernel is called {pattern}")
        for name in kernels:
            found = sass.loads_before_use(code[name], load)
            if found < least:
                complaints.append(f"{name} issues {found} of {least} loads before it uses one")
    return complaints


def test_no_kernel_spills(nvdisasm: Path, cubins: Nvrtc, source: Path, architecture: int) -> None:
    code = sass.disassemble(nvdisasm, cubins.build(source, architecture).cubin)
    assert code
    assert {name: found for name, of in code.items() if (found := sass.spills(of))} == {}


def test_loads_are_issued_before_one_is_used(nvdisasm: Path, cubins: Nvrtc, architecture: int) -> None:
    complaints, planned = [], ((WIDE, sass.WIDE_LOAD), (AHEAD, sass.LOAD))
    for path in SOURCES:
        of_file = [(expected[path.stem], load) for expected, load in planned if path.stem in expected]
        if of_file:
            code = sass.disassemble(nvdisasm, cubins.build(path, architecture).cubin)
            complaints += [complaint for one in of_file for complaint in narrow_gathers(code, *one)]
    assert complaints == []


def test_resources_are_those_that_cuobjdump_reports(
    cuobjdump: Path, cubins: Nvrtc, source: Path, architecture: int
) -> None:
    cubin = cubins.build(source, architecture).cubin
    report = sass.run(cuobjdump, cubin, "--dump-resource-usage")
    found = {
        name: (int(registers), int(stack))
        for name, registers, stack in re.findall(r"Function (\w+):\s+REG:(\d+) STACK:(\d+)", report)
    }
    assert found == {name: (kernel.registers, kernel.local) for name, kernel in read_resources(cubin).items()}


# ---- What the checks must catch --------------------------------------------------------------------------------------

HEAD = '#include "hopfuse/device.h"\n\nextern "C" __global__ void '
SPILLING = HEAD + (
    "__maxnreg__(24) planted(const float* in, float* out) {\n"
    "    float v[64];\n    for (int i = 0; i < 64; ++i) v[i] = in[i * 32 + threadIdx.x];\n    __syncthreads();\n"
    "    for (int i = 0; i < 64; ++i) out[i * 32 + threadIdx.x] = v[i] * v[63 - i];\n}\n"
)
#: A gather of rows of four numbers, `ahead` at a time, by loads of NUMBERS.
GATHERS = (
    HEAD
    + """planted(const int* rows, const float* state, int count, float* out) {
    float4 sum = {};
#pragma unroll 1
    for (int first = 0; first < count; first += AHEAD) {
        float4 y[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            const float* const at = state + static_cast<long long>(rows[first + i]) * 128 + 4 * (threadIdx.x % 32);
            y[i] = NUMBERS;
        }
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            sum.x = fmaf(y[i].x, 0.5f, sum.x), sum.y = fmaf(y[i].y, 0.5f, sum.y);
            sum.z = fmaf(y[i].z, 0.5f, sum.z), sum.w = fmaf(y[i].w, 0.5f, sum.w);
        }
    }
    reinterpret_cast<float4*>(out)[threadIdx.x] = sum;
}
"""
)
FOUR = "*reinterpret_cast<const float4*>(at)"
ONE_BY_ONE = "make_float4(at[0], at[1], at[2], at[3])"


@pytest.fixture
def planted(
    nvdisasm: Path, compiler: Nvrtc, architecture: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Compile:
    """Compile a kernel that is wrong on purpose, or the one that is right beside it."""
    monkeypatch.setenv("HOPFUSE_CUDA_CACHE", str(tmp_path / "cubins"))

    def code(text: str) -> dict[str, sass.Code]:
        source = tmp_path / "planted.cu"
        source.write_text(text, encoding="utf-8")
        return sass.disassemble(nvdisasm, compiler.build(source, architecture).cubin)

    return code


def test_a_kernel_that_spills_is_found(planted: Compile) -> None:
    stores = sass.spills(planted(SPILLING)["planted"])
    assert any("STL" in one for one in stores)
    assert any("LDL" in one for one in stores)


def test_wide_gathers_are_counted(planted: Compile) -> None:
    code = planted(GATHERS.replace("AHEAD", "4").replace("NUMBERS", FOUR))
    assert sass.spills(code["planted"]) == []
    assert narrow_gathers(code, {"planted": 4}, sass.WIDE_LOAD) == []
    assert narrow_gathers(code, {"planted": 5}, sass.WIDE_LOAD) == ["planted issues 4 of 5 loads before it uses one"]
    assert narrow_gathers(code, {"other": 1}, sass.WIDE_LOAD) == ["no kernel is called other"]


def test_gathers_of_32_bits_are_found(planted: Compile) -> None:
    code = planted(GATHERS.replace("AHEAD", "4").replace("NUMBERS", ONE_BY_ONE))
    assert narrow_gathers(code, {"planted": 4}, sass.WIDE_LOAD) == ["planted issues 0 of 4 loads before it uses one"]


def test_a_gather_that_waits_for_each_load_is_found(planted: Compile) -> None:
    code = planted(GATHERS.replace("AHEAD", "1").replace("NUMBERS", FOUR))
    assert narrow_gathers(code, {"planted": 4}, sass.WIDE_LOAD) == ["planted issues 1 of 4 loads before it uses one"]
