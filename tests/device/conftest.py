"""Programs of the host side of a device, compiled with the emulated driver's library and its kernels."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hopfuse_simt import build as builder
from hopfuse_simt.driver import SimtDriver

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DEVICE = ROOT / "kernels" / "device"
#: What a device consists of; the launchers of operations beside it are not needed.
CORE = [DEVICE / f"{name}.cpp" for name in
        ("counting_driver", "device", "driver", "error", "memory", "packing", "queue", "recording")]  # fmt: skip
HEADERS = sorted([*DEVICE.glob("*.h"), *HERE.glob("*.h")])
INCLUDE = [ROOT / "kernels" / name for name in ("device", "include", "cuda", "simt")]
FLAGS = ("-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror")


def compile_all(sources: Sequence[Path], flags: Sequence[str]) -> list[Path]:
    """Compile files with these flags, or use the cached objects."""
    include = [part for path in INCLUDE for part in ("-I", str(path))]
    folder = builder.cache_folder() / f"device-{builder.digest([*sources, *HEADERS], list(flags))}"
    with builder.made_once(folder) as is_mine:
        if is_mine:
            scratch = folder.with_name(f"{folder.name}.{os.getpid()}")
            scratch.mkdir()
            for source in sources:
                command = [builder.compiler()[0], *flags, *include, "-c", source, "-o", scratch / f"{source.stem}.o"]
                builder.run(command, f"{source} does not compile")
            os.replace(scratch, folder)
    return [folder / f"{source.stem}.o" for source in sources]


def build_program(source: Path, *more: str) -> Path:
    """Compile a program with the core of kernels/device, or use the cached one."""
    flags = (*FLAGS, *more)
    objects = [*compile_all(CORE, flags), *compile_all([source], flags)]
    program = objects[-1].with_name(f"{source.stem}-{builder.digest(objects, list(flags))}")
    if not program.exists():
        scratch = program.with_name(f"{program.name}.{os.getpid()}")
        link = [builder.compiler()[0], *flags, *objects, "-ldl", "-pthread", "-o", scratch]
        builder.run(link, f"{source} does not link")
        os.replace(scratch, program)
    return program


def run_program(program: Path, arguments: Sequence[str], **environment: str) -> str:
    """Run a program and return what it printed; what it wrote to stderr is the failure."""
    done = subprocess.run(
        [str(program), *arguments], capture_output=True, text=True, check=False, timeout=600,
        env={**os.environ, **environment},
    )  # fmt: skip
    if done.returncode:
        pytest.fail(f"exit status {done.returncode}:\n{done.stdout}{done.stderr}", pytrace=False)
    return done.stdout


@pytest.fixture(scope="session")
def libcuda() -> Path:
    return builder.build_driver()


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with the image of the kernels of these tests."""
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        pytest.skip("the emulator needs a C++ compiler")
    (unit,) = builder.build_all([HERE / "cuda" / "host.cu"], "plain", program=False)
    path = tmp_path_factory.mktemp("image") / "host.image"
    path.write_bytes(SimtDriver.image(unit))
    return path
