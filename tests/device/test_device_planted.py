"""Every bug planted in kernels/device is found by the case that planted.py names, which finds nothing without it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from .conftest import HERE, ROOT, build_program
from .planted import BUGS, RACES, Bug
from .test_device_host import CASES

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def programs() -> dict[str, Path]:
    planted = "-DHOPFUSE_PLANTED"
    return {
        "host": build_program(HERE / "host.cpp", planted),
        RACES: build_program(HERE / "races.cpp", planted, "-fsanitize=thread", "-g1"),
    }


def status(programs: dict[str, Path], case: str, libcuda: Path, image: Path, number: int) -> int:
    program, arguments = (programs[RACES], []) if case == RACES else (programs["host"], [case, str(image)])
    environment = {
        **os.environ, "HOPFUSE_LIBCUDA": str(libcuda), "HOPFUSE_CUDA_MEMORY_LIMIT": "",
        "HOPFUSE_PLANTED_BUG": str(number), "TSAN_OPTIONS": "exitcode=66 halt_on_error=1",
    }  # fmt: skip
    return subprocess.run(
        [str(program), *arguments], capture_output=True, check=False, timeout=600, env=environment
    ).returncode


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug, programs: dict[str, Path], libcuda: Path, image: Path) -> None:
    assert status(programs, bug.found_by, libcuda, image, bug.number) != 0


@pytest.mark.parametrize("case", sorted({bug.found_by for bug in BUGS}))
def test_nothing_is_found_without_a_bug(case: str, programs: dict[str, Path], libcuda: Path, image: Path) -> None:
    assert status(programs, case, libcuda, image, 0) == 0


def test_every_switch_is_a_bug_of_the_list() -> None:
    paths = [path for path in (ROOT / "kernels" / "device").iterdir() if path.name != "planted.h"]
    sources = [path.read_text(encoding="utf-8") for path in paths]
    switches = {int(number) for text in sources for number in re.findall(r"HOPFUSE_(?:PLANT|CURRENT)\((\d+),", text)}
    assert switches == {bug.number for bug in BUGS}
    assert len(BUGS) == len(switches)
    assert {bug.found_by for bug in BUGS} <= {*CASES, RACES}
