"""The host side of a device in C++, on the emulated driver: host.cpp, a process a case."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from .conftest import HERE, build_program, run_program

CASES = re.findall(r"^CASE\((\w+)\)", (HERE / "host.cpp").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def program() -> Path:
    return build_program(HERE / "host.cpp")


@pytest.mark.parametrize("case", CASES)
def test_host(case: str, program: Path, libcuda: Path, image: Path) -> None:
    run_program(program, [case, str(image)], HOPFUSE_LIBCUDA=str(libcuda), HOPFUSE_CUDA_MEMORY_LIMIT="")


def test_every_case_is_run() -> None:
    assert len(CASES) == len(set(CASES)) > 60


@pytest.mark.full
def test_threads_do_not_race() -> None:
    flags = "-fsanitize=thread", "-g1"
    run_program(build_program(HERE / "races.cpp", *flags), [], TSAN_OPTIONS="exitcode=66 halt_on_error=1")


SANITIZERS = {
    "thread": ("-fsanitize=thread",),
    "address": ("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
}
#: The emulator's handler of a fault allocates memory, which ThreadSanitizer forbids.
NOT_UNDER = {"thread": {"a_kernels_fault_is_final"}, "address": set[str]()}


@pytest.mark.full
@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_sanitizers_find_nothing(sanitizer: str, libcuda: Path, image: Path) -> None:
    program = build_program(HERE / "host.cpp", *SANITIZERS[sanitizer], "-g1")
    environment = {**os.environ, "HOPFUSE_LIBCUDA": str(libcuda), "HOPFUSE_CUDA_MEMORY_LIMIT": ""}
    found = {}
    for case in sorted({*CASES} - NOT_UNDER[sanitizer]):
        done = subprocess.run(
            [str(program), case, str(image)], capture_output=True, text=True, check=False, timeout=600, env=environment
        )
        if done.returncode:
            found[case] = done.stderr
    assert found == {}


def test_the_hosts_own_work_is_measured() -> None:
    printed = run_program(build_program(HERE / "host_time.cpp"), [])
    names = [line.rsplit(None, 2)[0] for line in printed.splitlines()]
    assert {"a launch", "an upload of 1 KB", "a replay on the host"} <= set(names)
    assert all(float(line.split()[-2]) > 0 for line in printed.splitlines())
