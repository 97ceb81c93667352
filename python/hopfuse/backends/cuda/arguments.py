"""Argument structs of kernels: declared here, packed for a device, and compared with the C++ headers by a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .runtime import DeviceArray


class ArgumentStruct:
    """A struct declared in a header of ``kernels/cuda``; call it with the values of all fields.

    Parameters
    ----------
    name, header : str
    **fields : str
        Types in declaration order: ``i8`` is int64_t and so on; ``*f4`` is float*, ``c*f4`` const float*.
    """

    def __init__(self, name: str, header: str, /, **fields: str) -> None:
        self.name, self.header, self.fields = name, header, fields
        pointers = {code: np.dtype("u8", metadata={"pointer": code}) for code in fields.values() if "*" in code}
        kinds = [(field, pointers.get(code, code)) for field, code in fields.items()]
        self.dtype = np.dtype(kinds, align=True)

    def __call__(self, **values: Any) -> Arguments:
        """Return the arguments; raise TypeError if a field is missing, unknown or of another type."""
        if values.keys() != self.fields.keys():
            wrong = ", ".join(sorted(values.keys() ^ self.fields.keys()))
            raise TypeError(f"{self.name} has the fields {', '.join(self.fields)}; missing or unknown: {wrong}")
        for field, code in self.fields.items():
            value = values[field]
            if "*" not in code:
                if not isinstance(value, int | float | np.generic):
                    raise TypeError(f"{self.name}.{field} must be {code}, got {type(value).__name__}")
            elif value is not None and not _fits(np.dtype(value.dtype), code.partition("*")[2]):
                raise TypeError(f"{self.name}.{field} points to {code.partition('*')[2]}, not to {value.dtype}")
        return Arguments(self, values)


def _fits(dtype: np.dtype[Any], code: str) -> bool:
    """Return whether a pointer of this code can point to an array of the dtype; booleans are bytes."""
    return dtype == np.dtype(code) or (dtype == np.bool_ and code == "u1")


class Arguments(NamedTuple):
    """The values of a struct: device arrays or None for pointers, numbers for the rest."""

    struct: ArgumentStruct
    values: dict[str, Any]

    def pointers(self) -> dict[str, DeviceArray]:
        """Return the arrays that are given, by field."""
        codes = self.struct.fields
        return {field: value for field, value in self.values.items() if "*" in codes[field] and value is not None}

    def packed(self, address: Callable[[DeviceArray], int]) -> NDArray[Any]:
        """Return the struct as a zero-dimensional array, with the addresses of its arrays."""
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

MASK = ArgumentStruct(
    "MaskArguments", "ppr_restart_arguments.h",
    allowed="c*u1", shared="i4", own="c*f4", column="c*i4", columns="i8", other="c*f4", queries="i4", num_nodes="i8",
    least="*f4", mask="*f4",
)  # fmt: skip
ALLOWED = ArgumentStruct(
    "AllowedArguments", "ppr_restart_arguments.h",
    indices="c*i4", segment_begin="c*i8", segment_end="c*i8", num_segments="i8", mask="c*f4", allowed="*u8",
)  # fmt: skip
BEFORE = ArgumentStruct(
    "BeforeArguments", "ppr_restart_arguments.h",
    first_of="c*i8", num_rows="i8", allowed="c*u8", before="*i4",
)  # fmt: skip
DEGREES = ArgumentStruct(
    "DegreeArguments", "ppr_restart_arguments.h",
    indptr="c*i8", indices="c*i4", weight="c*f4", edge_type="c*u1", degree="c*f8", eta="c*f8", shares="c*f4",
    num_types="i4", per_type="i4", in_indptr="c*i8", in_indices="c*i4", num_nodes="i8", scale32="*f4",
    unscale32="*f4", scale64="*f8", unscale64="*f8", longest="*u8", joined="*u8", least="*f4",
)  # fmt: skip
RESTART = ArgumentStruct(
    "RestartArguments", "ppr_restart_arguments.h",
    scale="c*f8", unscale="c*f8", attraction="c*f4", per_lane="i4", per_type="i4", num_types="i4", seed_node="c*i8",
    seed_weight="c*f8", seed_width="i4", queries="i4", may_be_empty="i4", internal_of="c*i4", num_nodes="i8",
    mask="c*f4", begin="c*i8", end="*i8", node="*i4", value="*f8", words="*u8", rank="*i4", damping="c*f8",
    volume="c*f8", symmetric="i4", tol="f8", max_iter="i8", first="i8", last="i8", table_rows="i8", restart64="*f8",
    restart32="*f4", limit="*i8", measured_from="*i8", next_try="*i8", theta="*f4", shrink="*f4", anchor="*f8",
    walking="*i4", unproven="*i4", passes="*i8", left="*i4", last_pass="*i8", longest="c*u8", joined="c*u8",
    slack="*f8", missed="*f8", keeps="*i4", least="c*f4", accelerates="*i4", status="*i4", arrived="*u4",
    counters="i8",
)  # fmt: skip

#: All argument structs.
STRUCTS = (ISING, MASK, ALLOWED, BEFORE, DEGREES, RESTART)
