"""Structs of kernels' arguments: the same in C++ and in Python, and refused where a value does not fit."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hopfuse.backends.cuda.arguments import CANDIDATES, ISING, ITERATE, STRUCTS, Arguments, ArgumentStruct
from variants import simt_runtime

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

#: The type of a field; of an enumeration, its integers'.
STORED = """
template <class T, bool = std::is_enum_v<T>> struct StoredType { using type = T; };
template <class T> struct StoredType<T, true> { using type = std::underlying_type_t<T>; };
template <class T> using Stored = typename StoredType<T>::type;
"""


def packed_fields(arguments: Arguments, address: int) -> Any:
    """Return the packed struct with its fields; all arrays are at ``address``."""
    packed = arguments.packed(lambda array: address)
    assert packed.dtype.fields is None  # whose description would take most of a launch's time
    return packed.view(arguments.struct.dtype)


def cpp_type(kind: str | ArgumentStruct) -> str:
    if isinstance(kind, ArgumentStruct):
        return kind.name
    const, star, base = kind.rpartition("*")
    return f"{'const ' if const else ''}{TYPES[base]}{star}"


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
@pytest.mark.parametrize("file", sorted({struct.file for struct in STRUCTS}))
def test_cpp_and_python_lay_structs_out_alike(tmp_path: Path, file: str) -> None:
    lines = [f'#include "{file}"', "#include <cstddef>", "#include <type_traits>", "using namespace hopfuse;", STORED]
    for struct in STRUCTS:
        if struct.file != file:
            continue
        assert struct.dtype.fields is not None
        lines.append(f"static_assert(sizeof({struct.name}) == {struct.dtype.itemsize});")
        for field, kind in struct.fields.items():
            place = struct.dtype.fields[field][1]
            lines.append(f"static_assert(offsetof({struct.name}, {field}) == {place});")
            lines.append(f"static_assert(std::is_same_v<Stored<decltype({struct.name}::{field})>, {cpp_type(kind)}>);")
    source = tmp_path / "layout.cpp"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    folders = [f"-I{KERNELS / name}" for name in ("cuda", "include", "simt")]
    command = ["g++", "-std=c++20", "-fsyntax-only", "-DHOPFUSE_SIMT", *folders, "-include", "cuda_host.h", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.emulator
def test_no_kernel_has_more_than_twelve_parameters() -> None:
    module = simt_runtime().module
    many = {name: module.signature(name).count(",") + 1 for name in module.kernels}
    assert {name: count for name, count in many.items() if count > 12} == {}


def test_arguments_that_do_not_fit_are_refused() -> None:
    values = dict.fromkeys(ISING.fields, 0) | {name: None for name, kind in ISING.fields.items() if "*" in str(kind)}
    packed = packed_fields(ISING(**values | {"k": 7, "ids": np.zeros(1, np.int64)}), 4096)
    assert (packed["k"], packed["ids"], packed["scores"]) == (7, 4096, 0)
    with pytest.raises(TypeError, match="missing or unknown: k"):
        ISING(**{name: value for name, value in values.items() if name != "k"})
    with pytest.raises(TypeError, match=r"IsingArguments\.ids points to i8, not to int32"):
        ISING(**values | {"ids": np.zeros(1, np.int32)})
    with pytest.raises(TypeError, match=r"IsingArguments\.k must be i8, got NoneType"):
        ISING(**values | {"k": None})
    with pytest.raises(OverflowError):
        ISING(**values | {"steps": 2**40}).packed(lambda array: 0)


def test_replaced_values_are_packed_and_checked_like_given_ones() -> None:
    values = dict.fromkeys(ISING.fields, 0) | {name: None for name, kind in ISING.fields.items() if "*" in str(kind)}
    base = ISING(**values | {"k": 7})
    changed = base.replace(k=8, ids=np.zeros(1, np.int64)).replace(steps=3)
    packed = packed_fields(changed, 4096)
    expected = ISING(**changed.values).packed(lambda array: 4096)
    assert packed.tobytes() == expected.tobytes()
    assert (packed["k"], packed["steps"], packed["ids"]) == (8, 3, 4096)
    assert [offset for _, offset, _ in changed.pointers()] == [ISING.places["ids"].offset]
    assert (base.values["k"], packed_fields(base, 0)["k"]) == (7, 7)
    with pytest.raises(TypeError, match="missing or unknown: kk"):
        base.replace(kk=1)
    with pytest.raises(TypeError, match=r"IsingArguments\.ids points to i8, not to int32"):
        base.replace(ids=np.zeros(1, np.int32))
    beyond = base.replace(k=9, steps=2**40)
    for _ in range(2):
        with pytest.raises(OverflowError, match="IsingArguments has a value that does not fit"):
            beyond.packed(lambda array: 0)


def test_structs_in_structs_are_replaced_whole() -> None:
    of_lanes = {name: None for name, kind in ITERATE.fields.items() if "*" in str(kind)}
    values = dict.fromkeys(CANDIDATES.fields, 0) | {
        name: None for name, kind in CANDIDATES.fields.items() if "*" in str(kind)
    }
    base = CANDIDATES(**values | {"iterate": ITERATE(**of_lanes)})
    changed = base.replace(iterate=base.values["iterate"].replace(even=np.zeros(1, np.float32)), lanes=4)
    packed = packed_fields(changed, 4096)
    assert (packed["iterate"]["even"], packed["iterate"]["odd"], packed["lanes"]) == (4096, 0, 4)
    assert packed_fields(base, 4096)["iterate"]["even"] == 0
    with pytest.raises(TypeError, match=r"CandidateArguments\.iterate must be Iterate, got Arguments"):
        base.replace(iterate=base)
