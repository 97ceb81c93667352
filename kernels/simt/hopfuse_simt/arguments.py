"""Kernel arguments: NumPy arrays and scalars, checked against the kernel's own parameter types."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Parameter:
    """``base`` is a NumPy type code (``f4``), ``v`` for void or ``s`` for a struct; ``size`` bytes an element."""

    code: str
    pointer: bool
    const: bool
    base: str
    size: int

    @classmethod
    def parse(cls, code: str) -> Parameter:
        found = re.fullmatch(r"(c?\*)?(?:(v)|(s)(\d+)|([fiub]\d)(?:x(\d))?)", code)
        if found is None:
            raise ValueError(f"unknown parameter type {code!r}")
        stars, void, struct, struct_size, scalar, lanes = found.groups()
        size = 1 if void else int(struct_size) if struct else int(scalar[1]) * int(lanes or 1)
        return cls(code, bool(stars), stars == "c*", void or struct or scalar, size)


@dataclass(frozen=True)
class Pointer:
    """A global memory argument; ``array`` None is the null pointer."""

    array: np.ndarray[Any, Any] | None
    writable: bool


@dataclass(frozen=True)
class Struct:
    """A struct given by its bytes, with ``pointers`` at these offsets."""

    data: bytes
    pointers: Mapping[int, Pointer]

    def with_addresses(self, address: Callable[[np.ndarray[Any, Any]], int]) -> bytes:
        """Return the bytes with the pointers filled in."""
        data = bytearray(self.data)
        for offset, pointer in self.pointers.items():
            value = 0 if pointer.array is None else address(pointer.array)
            data[offset : offset + 8] = value.to_bytes(8, "little")
        return bytes(data)


Argument = Pointer | bytes | Struct


def pointers_of(arguments: Sequence[Argument]) -> list[Pointer]:
    """Return the arguments that are not null, including those in structs."""
    found: list[Pointer] = []
    for argument in arguments:
        if isinstance(argument, Struct):
            found += argument.pointers.values()
        elif isinstance(argument, Pointer):
            found.append(argument)
    return [pointer for pointer in found if pointer.array is not None]


def parameters(signature: str) -> tuple[Parameter, ...]:
    return tuple(Parameter.parse(code) for code in signature.split(",")) if signature else ()


def fits(dtype: np.dtype[Any], base: str) -> bool:
    """Return whether an array may be passed as this type; binary16 is passed as its bits."""
    code = dtype.str[1:]
    return code == base or (code == "f2" and base == "u2") or (code == "b1" and base == "u1")


def as_pointer(value: Any, parameter: Parameter, where: str) -> Pointer:
    if value is None:
        return Pointer(None, False)
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{where} is a pointer: give a NumPy array or None, not {type(value).__name__}")
    if not value.flags.c_contiguous or not value.dtype.isnative:
        raise ValueError(f"{where}: the array must be C-contiguous and in native byte order")
    if not parameter.const and not value.flags.writeable:
        raise ValueError(f"{where} may be written by the kernel, and the array is read-only")
    if parameter.base not in ("v", "s") and not fits(value.dtype, parameter.base):
        raise TypeError(f"{where} points to {parameter.base}, and the array is {value.dtype}")
    if value.nbytes % parameter.size:
        raise ValueError(
            f"{where} points to elements of {parameter.size} bytes, and the array has {value.nbytes} bytes"
        )
    return Pointer(value if value.nbytes else None, not parameter.const)


def as_value(value: Any, parameter: Parameter, where: str) -> bytes | Struct:
    if not isinstance(value, Struct):
        return as_bytes(value, parameter, where)
    if parameter.base != "s" or len(value.data) != parameter.size:
        raise ValueError(f"{where} is {parameter.code}, and a struct of {len(value.data)} bytes was given")
    return value


def as_bytes(value: Any, parameter: Parameter, where: str) -> bytes:
    if parameter.base in ("v", "s") or parameter.size != int(parameter.base[1]):
        data = value if isinstance(value, bytes) else bytes(np.asarray(value).tobytes())
        if len(data) != parameter.size:
            raise ValueError(f"{where} is a struct of {parameter.size} bytes, and {len(data)} were given")
        return data
    dtype = np.dtype(parameter.base)
    if isinstance(value, np.generic):
        if not fits(value.dtype, parameter.base):
            raise TypeError(f"{where} is {dtype}, and a {value.dtype} was given")
        return bytes(value.tobytes())
    if isinstance(value, bool | int) or (isinstance(value, float) and dtype.kind == "f"):
        if dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            raise ValueError(f"{where} is {dtype}, and {value} is out of its range")
        return bytes(dtype.type(value).tobytes())
    raise TypeError(f"{where} is {dtype}, and a {type(value).__name__} was given")


def convert(kernel: str, signature: str, values: Sequence[Any]) -> list[Argument]:
    expected = parameters(signature)
    if len(values) != len(expected):
        raise TypeError(f"kernel {kernel} takes {len(expected)} arguments ({signature}), and {len(values)} were given")
    return [
        as_pointer(value, parameter, f"kernel {kernel}, argument {i}")
        if parameter.pointer
        else as_value(value, parameter, f"kernel {kernel}, argument {i}")
        for i, (value, parameter) in enumerate(zip(values, expected, strict=True))
    ]
