"""The driver API's types and entry points are those of NVIDIA's cuda.h, where its wheel or a toolkit is installed."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
from pathlib import Path

import pytest
from hopfuse_simt.build import DEVICE, SIMT, compiler

TYPES, ENTRIES = DEVICE / "driver_types.h", SIMT / "libcuda" / "entry_points.h"
TABLE = DEVICE / "driver.h"


def headers() -> list[Path]:
    """Return the folders with a cuda.h: NVIDIA's wheels of the runtime, toolkits."""
    found = [Path(path) for path in ("/usr/local/cuda/include", *Path("/usr/local").glob("cuda-*/include"))]
    for wheel in ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12"):
        try:
            files = importlib.metadata.files(wheel) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found += [Path(str(file.locate())).parent for file in files if file.name == "cuda.h"]
    return sorted({folder.resolve() for folder in found if (folder / "cuda.h").is_file()})


def names(pattern: str, path: Path) -> list[str]:
    return re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)


def check(folder: Path, scratch: Path, types: Path = TYPES, entries: Path = ENTRIES) -> str:
    """Compile the comparison with this cuda.h; return what differs."""
    internal = "-D__CUDA_API_VERSION_INTERNAL"  # with older versions of functions, each by its own name
    preprocess = [compiler()[0], "-E", "-P", internal, str(folder / "cuda.h")]
    theirs = subprocess.run(preprocess, capture_output=True, text=True, check=True).stdout
    source = Path(__file__).with_name("driver_types.cpp").read_text(encoding="utf-8")
    values = names(r"\b(CU[A-Z_0-9]+) = \d+", types)
    calls = [name for name in names(r"^    X\((\w+),", entries) if re.search(rf"\b{name}\(", theirs)]
    assert len(values) > 100
    assert len(calls) > 65
    lines = [*(f"VALUE({name});" for name in values), *(f"CALL({name});" for name in calls)]
    return compile_lines(source, lines, scratch, types.parent, entries.parent, folder)


def check_table(folder: Path, scratch: Path, table: Path = TABLE) -> str:
    """Compile the comparison of the host's table of entry points; return what differs."""
    source = Path(__file__).with_name("driver_table.cpp").read_text(encoding="utf-8")
    members = names(r"^    X\((\w+),", table)
    assert len(members) > 55
    return compile_lines(source, [f"MEMBER({name});" for name in members], scratch, table.parent, DEVICE, folder)


def compile_lines(source: str, lines: list[str], scratch: Path, *include: Path) -> str:
    made = scratch / "compared.cpp"
    made.write_text("\n".join([source, *lines, ""]), encoding="utf-8")
    flags = [f"-I{path}" for path in (*include, Path(__file__).parent)]
    done = subprocess.run(
        [compiler()[0], "-std=c++20", "-fsyntax-only", *flags, str(made)], capture_output=True, text=True, check=False
    )
    return done.stderr


def test_types_and_entry_points_are_nvidias(tmp_path: Path) -> None:
    folders = headers()
    if not folders:
        pytest.skip("no cuda.h is installed: pip install nvidia-cuda-runtime")
    for folder in folders:
        assert check(folder, tmp_path) == "", folder
        assert check_table(folder, tmp_path) == "", folder


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("driver_types.h", "CUDA_ERROR_NOT_READY = 600", "CUDA_ERROR_NOT_READY = 601"),
        (
            "driver_types.h",
            "    size_t maxSize;\n    unsigned short usage;",
            "    unsigned short usage;\n    size_t maxSize;",
        ),
        ("entry_points.h", "(CUdeviceptr* pointer, size_t bytes))", "(CUdeviceptr* pointer, unsigned bytes))"),
        ("entry_points.h", "(CUgraphExec exec, CUstream stream)", "(CUstream stream, CUgraphExec exec, int more)"),
    ],
)
def test_a_wrong_declaration_is_found(tmp_path: Path, name: str, right: str, wrong: str) -> None:
    folders = headers()
    if not folders:
        pytest.skip("no cuda.h is installed: pip install nvidia-cuda-runtime")
    for path in (TYPES, ENTRIES):
        text = path.read_text(encoding="utf-8")
        if path.name == name:
            assert text.count(right) == 1
            text = text.replace(right, wrong)
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    found = check(folders[0], tmp_path, tmp_path / TYPES.name, tmp_path / ENTRIES.name)
    assert "static assertion failed" in found


def test_a_wrong_member_of_the_table_is_found(tmp_path: Path) -> None:
    folders = headers()
    if not folders:
        pytest.skip("no cuda.h is installed: pip install nvidia-cuda-runtime")
    text, right = TABLE.read_text(encoding="utf-8"), "(CUdeviceptr pointer, CUstream stream)"
    assert text.count(right) == 1
    wrong = tmp_path / TABLE.name
    wrong.write_text(text.replace(right, "(CUdeviceptr* pointer, CUstream stream)"), encoding="utf-8")
    assert "static assertion failed" in check_table(folders[0], tmp_path, wrong)
