"""The host side of a device in C++, on the emulated driver: host.cpp, a process a case."""

from __future__ import annotations

import re
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


def test_threads_do_not_race() -> None:
    flags = "-fsanitize=thread", "-g1"
    run_program(build_program(HERE / "races.cpp", *flags), [], TSAN_OPTIONS="exitcode=66 halt_on_error=1")


def test_memory_is_used_as_it_should_be() -> None:
    flags = "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1"
    run_program(build_program(HERE / "races.cpp", *flags), [])


def test_the_hosts_own_work_is_measured() -> None:
    printed = run_program(build_program(HERE / "host_time.cpp"), [])
    names = [line.rsplit(None, 2)[0] for line in printed.splitlines()]
    assert {"a launch", "an upload of 1 KB", "a replay on the host"} <= set(names)
    assert all(float(line.split()[-2]) > 0 for line in printed.splitlines())
