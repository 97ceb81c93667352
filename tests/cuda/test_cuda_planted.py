"""What the checks must catch: kernels that are wrong on purpose, each beside one that is right."""

from __future__ import annotations

from pathlib import Path

import pytest
from audit import audit_file
from budgets import Budget, BudgetError, read_budget
from cubin import read_resources
from nvrtc import Nvrtc, NvrtcError

GOOD = "// Adds. Block: 256. Registers: <= 32 (occupancy 100 %).\n"
SUM = "    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);\n    out[i] = out[i] + in[i];\n"
#: Many values live at once: with 24 registers, some of them spill.
MANY = "    float v[64];\n    for (int i = 0; i < 64; ++i) v[i] = in[i * 32 + threadIdx.x];\n    __syncthreads();\n" + (
    "    for (int i = 0; i < 64; ++i) out[i * 32 + threadIdx.x] = v[i] * v[63 - i];\n"
)
INDEXED = "    float v[64] = {};\n    for (int i = 0; i < 64; ++i) v[static_cast<int>(in[i])] += in[i + 64];\n" + (
    "    out[0] = v[static_cast<int>(in[0])];\n"
)


def write(folder: Path, comment: str, body: str = SUM, bounds: str = "", before: str = "") -> Path:
    source = folder / "planted.cu"
    head = f'extern "C" __global__ void {bounds} add(const float* in, float* out) {{\n'
    source.write_text(f'#include "hopfuse/device.h"\n\n{before}{comment}{head}{body}}}\n', encoding="utf-8")
    return source


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPFUSE_CUDA_CACHE", str(tmp_path / "cubins"))


def complaint(compiler: Nvrtc, source: Path, architecture: int) -> str:
    return "\n".join(audit_file(compiler, source, architecture))


def test_a_kernel_within_its_budget(compiler: Nvrtc, tmp_path: Path, architecture: int) -> None:
    assert audit_file(compiler, write(tmp_path, GOOD), architecture) == []


def test_spilled_registers(compiler: Nvrtc, tmp_path: Path, architecture: int) -> None:
    source = write(tmp_path, GOOD, MANY, bounds="__maxnreg__(24)")
    assert "bytes of local memory: registers spill" in complaint(compiler, source, architecture)


def test_array_in_local_memory(compiler: Nvrtc, tmp_path: Path, architecture: int) -> None:
    assert "256 bytes of local memory" in complaint(compiler, write(tmp_path, GOOD, INDEXED), architecture)


def test_local_memory_of_a_function_that_is_called(compiler: Nvrtc, tmp_path: Path, architecture: int) -> None:
    called = f"static __device__ __noinline__ void take(const float* in, float* out) {{\n{INDEXED}}}\n\n"
    source = write(tmp_path, GOOD, "    take(in, out);\n    take(out, out);\n", before=called)
    assert "256 bytes of local memory" in complaint(compiler, source, architecture)


def test_over_budget(compiler: Nvrtc, tmp_path: Path, architecture: int) -> None:
    source = write(tmp_path, "// Block: 256. Registers: <= 32 (occupancy 10 %).\n", MANY)
    assert "registers, budget 32" in complaint(compiler, source, architecture)


def test_occupancy_below_what_is_stated(compiler: Nvrtc, tmp_path: Path, architecture: int) -> None:
    comment, body = (
        "// Block: 256. Registers: <= 255 (occupancy 60 %).\n",
        MANY.replace("64", "200").replace("63", "199"),
    )
    source = write(tmp_path, comment, body.replace("    for", "#pragma unroll\n    for"))
    assert "%, stated 60 % (blocks of 256 threads)" in complaint(compiler, source, architecture)


def test_shared_memory_limits_the_occupancy(compiler: Nvrtc, tmp_path: Path, architecture: int) -> None:
    source = write(tmp_path, "// Block: 64. Shared memory: 48 KiB. Registers: <= 32.\n")
    assert "%, stated 50 % (blocks of 64 threads)" in complaint(compiler, source, architecture)


@pytest.mark.parametrize(
    ("stated", "body", "message"),
    [
        (
            "",
            "    __shared__ float v[32];\n    v[threadIdx.x] = in[0];\n    out[0] = v[in[1] > 0];\n",
            "128 bytes of static",
        ),
        (
            "",
            "    HOPFUSE_DYNAMIC_SHARED(float, v);\n    v[threadIdx.x] = in[0];\n    out[0] = v[1];\n",
            "does not state",
        ),
        ("Shared memory: <= 50000 bytes. ", SUM, "50000 bytes of shared memory are stated"),
    ],
    ids=["static", "dynamic", "most"],
)
def test_shared_memory_that_is_not_stated(
    compiler: Nvrtc, tmp_path: Path, stated: str, body: str, message: str
) -> None:
    source = write(tmp_path, f"// {stated}Block: 1024. Registers: <= 64 (occupancy 0 %).\n", body)
    assert message in complaint(compiler, source, 90)


def test_the_driver_s_kilobyte_is_not_the_kernel_s(compiler: Nvrtc, tmp_path: Path, architecture: int) -> None:
    body = (
        "    __shared__ float v[32];\n    v[threadIdx.x] = in[0];\n    __syncthreads();\n    out[0] = v[in[1] > 0];\n"
    )
    (resources,) = read_resources(compiler.build(write(tmp_path, GOOD, body), architecture).cubin).values()
    assert resources.static_shared == 128


def test_blocks_beyond_the_launch_bound(compiler: Nvrtc, tmp_path: Path) -> None:
    source = write(tmp_path, GOOD, bounds="__launch_bounds__(128)")
    assert "blocks of 256 threads, but __launch_bounds__ allows 128" in complaint(compiler, source, 90)


def test_blocks_of_unknown_size(compiler: Nvrtc, tmp_path: Path) -> None:
    comment = "// Registers: <= 32.\n"
    assert "how many threads a block has" in complaint(compiler, write(tmp_path, comment), 90)
    assert audit_file(compiler, write(tmp_path, comment, bounds="__launch_bounds__(128)"), 90) == []


def test_warnings_are_errors(compiler: Nvrtc, tmp_path: Path, architecture: int) -> None:
    source = write(tmp_path, GOOD, "    int never_used;\n" + SUM)
    with pytest.raises(NvrtcError, match=r'(?s)planted\.cu for sm_\d+ .*"never_used" was declared but never'):
        compiler.build(source, architecture)


def test_a_message_is_an_error_too(compiler: Nvrtc, tmp_path: Path) -> None:
    with pytest.raises(NvrtcError, match=r"(?s)planted\.cu for sm_90 compiles with a message:.*look here"):
        compiler.build(write(tmp_path, '#pragma message "look here"\n' + GOOD), 90)


def test_code_is_kept_until_a_header_changes(compiler: Nvrtc, tmp_path: Path) -> None:
    header = tmp_path / "own.h"
    header.write_text("#define ONE 1.0f\n", encoding="utf-8")
    source = write(tmp_path, GOOD, "    out[0] = in[0] + ONE;\n", before='#include "own.h"\n\n')
    first = compiler.kept(source, 90)
    compiler.build_all([source], [90])
    assert first.is_file()
    header.write_text("#define ONE 2.0f\n", encoding="utf-8")
    assert compiler.kept(source, 90) != first


# ---- Comments ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("", "no comment above it that states its budget"),
        ("// Adds.\n", "no comment above it that states its budget"),
        (GOOD + "\n", "no comment above it that states its budget"),
        ("// Block: many. Registers: <= 32.\n", "'Block' cannot be read"),
        ("// Block: 256. Registers: 32.\n", "'Registers' cannot be read"),
        ("// Block: 256. Registers: <= 32. Shared memory: enough.\n", "'Shared memory' cannot be read"),
        ("// Block: 32 L. Registers: <= 32.\n", "counts in a letter that its name does not have"),
    ],
)
def test_comments_that_state_no_budget(tmp_path: Path, comment: str, message: str) -> None:
    with pytest.raises(BudgetError, match=f'planted.cu: kernel add.*{message}.*write "Block: 256'):
        read_budget(write(tmp_path, comment), "add")


def test_a_kernel_without_a_budget_is_a_complaint(compiler: Nvrtc, tmp_path: Path) -> None:
    assert "kernel add has no comment above it" in complaint(compiler, write(tmp_path, ""), 90)


def test_budgets_of_kernels_that_macros_make(tmp_path: Path) -> None:
    source = tmp_path / "macros.cu"
    source.write_text(
        "// Every kernel has a comment.\n//\n"
        "// walk_KIND_lL: one pass. Shared memory: 4 * 64 L bytes. Block: 32 L.\n"
        "//   Registers: <= 48\n//   (occupancy 62 %).\n"
        "// walk_typed_l8: the odd one. Block: 256. Shared memory: 2 KiB. Registers: <= 40.\n"
        "// walk_start: first. Registers: <= 16.\n#define WALK(kind, L)\n",
        encoding="utf-8",
    )
    assert read_budget(source, "walk_per_type_l16") == Budget(512, 48, 4096, 62)
    assert read_budget(source, "walk_typed_l8") == Budget(256, 40, 2048, 50)
    assert read_budget(source, "walk_start") == Budget(None, 16, 0, 50)
    with pytest.raises(BudgetError, match="kernel walk_end has no comment"):
        read_budget(source, "walk_end")
