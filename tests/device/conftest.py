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
SOURCES = sorted((ROOT / "kernels" / "device").glob("*.cpp"))
HEADERS = sorted([*(ROOT / "kernels" / "device").glob("*.h"), *HERE.glob("*.h")])
INCLUDE = [ROOT / "kernels" / name for name in ("device", "include", "cuda", "simt")]


def build_program(source: Path, *flags: str) -> Path:
    """Compile a program with kernels/device, or use the cached one."""
    options = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", *flags]
    key = builder.digest([source, *SOURCES, *HEADERS], options)
    folder = builder.cache_folder() / f"device-{source.stem}-{key}"
    with builder.made_once(folder) as is_mine:
        if is_mine:
            scratch = folder.with_name(f"{folder.name}.{os.getpid()}")
            scratch.mkdir()
            include = [part for path in INCLUDE for part in ("-I", str(path))]
            compiler = builder.compiler()[0]
            objects = []
            for each in [source, *SOURCES]:
                objects.append(scratch / f"{each.stem}.{len(objects)}.o")
                builder.run([compiler, *options, *include, "-c", each, "-o", objects[-1]], f"{each} does not compile")
            builder.run([compiler, *options, *objects, "-ldl", "-pthread", "-o", scratch / "program"], "no program")
            for each in objects:
                each.unlink()
            os.replace(scratch, folder)
    return folder / "program"


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
