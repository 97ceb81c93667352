"""Structs of kernels' arguments: described once, packed for a device, and held against the C++ headers by a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .runtime import DeviceArray


class ArgumentStruct:
    """A struct of a header of ``kernels/cuda``, called with the values of all its fields.

    Parameters
    ----------
    name, header : str
    **fields : str
        In the struct's order: ``i8`` for int64_t and so on; ``*f4`` points to float, ``c*f4`` to const float.
    """

    def __init__(self, name: str, header: str, /, **fields: str) -> None:
        self.name, self.header, self.fields = name, header, fields
        pointers = {code: np.dtype("u8", metadata={"pointer": code}) for code in fields.values() if "*" in code}
        kinds = [(field, pointers.get(code, code)) for field, code in fields.items()]
        self.dtype = np.dtype(kinds, align=True)

    def __call__(self, **values: Any) -> Arguments:
        """Return the arguments; TypeError if a field is missing, unknown or of another type."""
        if values.keys() != self.fields.keys():
            wrong = ", ".join(sorted(values.keys() ^ self.fields.keys()))
            raise TypeError(f"{self.name} has the fields {', '.join(self.fields)}; missing or unknown: {wrong}")
        for field, code in self.fields.items():
            value = values[field]
            if "*" not in code:
                if not isinstance(value, int | float | np.generic):
                    raise TypeError(f"{self.name}.{field} is {code}, and a {type(value).__name__} was given")
            elif value is not None and np.dtype(value.dtype) != np.dtype(code.partition("*")[2]):
                raise TypeError(f"{self.name}.{field} points to {code.partition('*')[2]}, not to {value.dtype}")
        return Arguments(self, values)


class Arguments(NamedTuple):
    """The values of a struct: device arrays or None for its pointers, and numbers."""

    struct: ArgumentStruct
    values: dict[str, Any]

    def pointers(self) -> dict[str, DeviceArray]:
        """Return the arrays by field."""
        codes = self.struct.fields
        return {field: value for field, value in self.values.items() if "*" in codes[field] and value is not None}

    def packed(self, address: Callable[[DeviceArray], int]) -> NDArray[Any]:
        """Return the struct as an array of one, with the addresses of its arrays."""
        data = np.zeros((), self.struct.dtype)
        pointers = self.pointers()
        for field, code in self.struct.fields.items():
            if "*" not in code:
                data[field] = self.values[field]
            elif field in pointers:
                data[field] = address(pointers[field])
        return data


ISING = ArgumentStruct(
    "IsingArguments", "ising_arguments.h",
    batch="i8", width="i8", ids="c*i8", scores="c*f4", counts="c*i8",
    num_nodes="i8", indptr="c*i8", indices="c*i4", weight="c*f4", internal_of="c*i4",
    coupling="f4", temperature="f4", relaxation="f4", steps="i4", blend="f4",
    k="i8", out_ids="*i8", out_scores="*f4", out_counts="*i8", status="*i4",
    coupling_room="*f4", shared_room="*f8",
)  # fmt: skip

#: All that kernels take.
STRUCTS = (ISING,)
