"""Structs of kernels' arguments: the same in C++ and in Python, and refused where a value does not fit."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hopfuse.backends.cuda.arguments import ISING, STRUCTS, ArgumentStruct

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
TYPES = {
    "i8": "int64_t",
    "i4": "int32_t",
    "u8": "uint64_t",
    "u4": "uint32_t",
    "u1": "uint8_t",
    "f4": "float",
    "f8": "double",
}


def cpp_type(code: str) -> str:
    const, star, base = code.rpartition("*")
    return f"{'const ' if const else ''}{TYPES[base]}{star}"


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.name)
def test_cpp_and_python_lay_a_struct_out_alike(tmp_path: Path, struct: ArgumentStruct) -> None:
    assert struct.dtype.fields is not None
    lines = [f'#include "{struct.header}"', "#include <cstddef>", "#include <type_traits>", "using namespace hopfuse;"]
    lines.append(f"static_assert(sizeof({struct.name}) == {struct.dtype.itemsize});")
    for field, code in struct.fields.items():
        place = struct.dtype.fields[field][1]
        lines.append(f"static_assert(offsetof({struct.name}, {field}) == {place});")
        lines.append(f"static_assert(std::is_same_v<decltype({struct.name}::{field}), {cpp_type(code)}>);")
    source = tmp_path / "layout.cpp"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    folders = ["-I", str(KERNELS / "cuda"), "-I", str(KERNELS / "include")]
    done = subprocess.run(
        ["g++", "-std=c++17", "-fsyntax-only", *folders, str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_does_not_fit_is_refused() -> None:
    values = dict.fromkeys(ISING.fields, 0) | {name: None for name, code in ISING.fields.items() if "*" in code}
    packed = ISING(**values | {"k": 7, "ids": np.zeros(1, np.int64)}).packed(lambda array: 4096)
    assert (packed["k"], packed["ids"], packed["scores"]) == (7, 4096, 0)
    with pytest.raises(TypeError, match="missing or unknown: k"):
        ISING(**{name: value for name, value in values.items() if name != "k"})
    with pytest.raises(TypeError, match=r"IsingArguments\.ids points to i8, not to int32"):
        ISING(**values | {"ids": np.zeros(1, np.int32)})
    with pytest.raises(TypeError, match=r"IsingArguments\.k must be i8, got NoneType"):
        ISING(**values | {"k": None})
    with pytest.raises(OverflowError):
        ISING(**values | {"steps": 2**40}).packed(lambda array: 0)
