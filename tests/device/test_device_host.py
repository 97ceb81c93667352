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
    assert len(CASES) == len(set(CASES)) > 50
