"""What is read of a cubin and computed of occupancy, against NVIDIA's own tools."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cubin import read_resources
from nvrtc import INCLUDE, Nvrtc
from occupancy import KIB, MULTIPROCESSORS, occupancy, resident_blocks

SAMPLE = Path(__file__).with_name("resources.cu")


def reported(log: str) -> dict[str, tuple[int, int, int]]:
    """Registers, stack and static shared memory of each kernel, from the assembler's report."""
    found = {}
    for text in log.split("Compiling entry function ")[1:]:
        name = re.match(r"'(\w+)'", text)
        registers, shared = re.search(r"Used (\d+) registers", text), re.search(r"(\d+) bytes smem", text)
        assert name is not None
        assert registers is not None
        stack = max(map(int, re.findall(r"(\d+) bytes stack frame", text)))
        found[name[1]] = (int(registers[1]), stack, int(shared[1]) if shared is not None else 0)
    return found


def read(cubin: bytes) -> dict[str, tuple[int, int, int]]:
    return {
        name: (kernel.registers, kernel.local, kernel.static_shared) for name, kernel in read_resources(cubin).items()
    }


def test_resources_are_those_that_nvrtc_s_assembler_reports(compiler: Nvrtc, architecture: int) -> None:
    code, log = compiler.compile(SAMPLE, architecture, "--ptxas-options=-v")
    kernels = read(code.cubin)
    assert kernels == reported(log)
    assert kernels["static_shared"][2] == 48 * KIB
    assert kernels["dynamic_shared"][2] == 16
    assert kernels["calls"][1] == 256
    assert kernels["spills"][0] <= 24 < kernels["spills"][1]


def test_resources_are_those_that_nvcc_reports(nvcc: str, architecture: int, tmp_path: Path) -> None:
    made = tmp_path / "cubin"
    command = [nvcc, "-cubin", "--resource-usage", f"-arch=sm_{architecture}", "-I", INCLUDE, "-o", made, SAMPLE]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert read(made.read_bytes()) == reported(done.stdout + done.stderr)


def test_launch_bounds(compiler: Nvrtc) -> None:
    kernels = read_resources(compiler.compile(SAMPLE, 90)[0].cubin)
    assert kernels["bounded"].launch_bound == 64
    assert kernels["calls"].launch_bound is None


def test_a_file_that_is_not_a_cubin_is_refused() -> None:
    with pytest.raises(ValueError, match="not a cubin"):
        read_resources(Path(shutil.which("sh") or "/bin/sh").read_bytes())


# ---- Occupancy --------------------------------------------------------------------------------------------


def test_occupancy_by_hand() -> None:
    # 48 * 32 = 1536 registers a warp; 16384 // 1536 = 10 warps in each of 4 partitions; 40 // 8 = 5 blocks.
    assert occupancy(90, 48, 256, 0) == 40 / 64
    assert occupancy(120, 48, 256, 0) == 40 / 48
    assert occupancy(75, 64, 256, 0) == 1
    assert occupancy(90, 255, 1024, 0) == 0
    # Registers for many blocks, but 228 KiB hold only four of 48 KiB and the driver's.
    assert resident_blocks(90, 32, 32, 48 * KIB) == 4


def test_occupancy_as_nvidia_s_header_computes_it(nvcc: str, tmp_path: Path) -> None:
    program = tmp_path / "occupancy"
    source = Path(__file__).with_name("occupancy_of_nvidia.cpp")
    subprocess.run([nvcc, source, "-o", program], check=True)
    shared = [0, 100, 1024, 5000, 16 * KIB, 33 * KIB, 47 * KIB]
    cases = list(itertools.product(MULTIPROCESSORS, range(8, 256), [32, 96, 128, 256, 512, 1024], shared))
    lines = []
    for architecture, registers, block, bytes_used in cases:
        limit = MULTIPROCESSORS[architecture]
        lines.append(f"{architecture} {limit.warps} {limit.shared} {limit.reserved} {registers} {block} {bytes_used}")
    done = subprocess.run([program], input="\n".join(lines), check=True, capture_output=True, text=True)
    assert list(map(int, done.stdout.split())) == [resident_blocks(*case) for case in cases]
