"""Argument structs of kernels: declared here, packed for a device, and compared with the C++ ones by a test."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Set
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .runtime import DeviceArray

#: Formats of module struct, by the types of fields; pointers are 64-bit addresses.
_FORMATS = {"i8": "q", "i4": "i", "u8": "Q", "u4": "I", "f8": "d", "f4": "f"}
_NUMBERS = (int, float, np.generic)


class ArgumentStruct:
    """A struct declared in a file of ``kernels/cuda``; call it with the values of all fields.

    Parameters
    ----------
    name, file : str
    **fields : str or ArgumentStruct
        Types in declaration order: ``i8`` is int64_t and so on; ``*f4`` is float*, ``c*f4`` const float*.
    """

    def __init__(self, name: str, file: str, /, **fields: str | ArgumentStruct) -> None:
        self.name, self.file, self.fields = name, file, fields
        self.dtype = np.dtype([(field, _dtype(kind)) for field, kind in fields.items()], align=True)
        #: The same bytes without fields, which NumPy would describe to CuPy in Python at every launch.
        self.bytes_dtype = np.dtype(f"V{self.dtype.itemsize}", metadata={"struct": self.dtype})
        #: By field: the offset, the format of the value, and the dtypes to which a pointer may point.
        self.places: dict[str, _Place] = {}
        places, whole, size = self.dtype.fields, "=", 0
        assert places is not None
        for field, kind in fields.items():
            dtype, offset = places[field][:2]
            code = f"{dtype.itemsize}s" if isinstance(kind, ArgumentStruct) else _FORMATS.get(kind, "Q")
            self.places[field] = _Place(kind, offset, struct.Struct(f"={code}"), _pointed_to(kind))
            whole, size = f"{whole}{offset - size}x{code}", offset + dtype.itemsize
        self.whole = struct.Struct(f"{whole}{self.dtype.itemsize - size}x")

    def __call__(self, **values: Any) -> Arguments:
        """Return the arguments; raise TypeError if a field is missing, unknown or of another type."""
        if values.keys() != self.fields.keys():
            self._refuse(values.keys() ^ self.fields.keys())
        self.check(values)
        return Arguments(self, values)

    def check(self, values: dict[str, Any]) -> None:
        """Raise TypeError if a field is unknown or of another type."""
        for field, value in values.items():
            if field not in self.places:
                self._refuse({field})
            kind, _, _, dtypes = self.places[field]
            if dtypes is not None:
                if value is not None and value.dtype not in dtypes:
                    raise TypeError(f"{self.name}.{field} points to {str(kind)[-2:]}, not to {value.dtype}")
            elif isinstance(kind, ArgumentStruct):
                if not isinstance(value, Arguments) or value.struct is not kind:
                    raise TypeError(f"{self.name}.{field} must be {kind.name}, got {type(value).__name__}")
            elif not isinstance(value, _NUMBERS):
                raise TypeError(f"{self.name}.{field} must be {kind}, got {type(value).__name__}")

    def _refuse(self, wrong: Set[str]) -> None:
        fields = ", ".join(self.fields)
        raise TypeError(f"{self.name} has the fields {fields}; missing or unknown: {', '.join(sorted(wrong))}")


class _Place(NamedTuple):
    kind: str | ArgumentStruct
    offset: int
    format: struct.Struct
    dtypes: tuple[np.dtype[Any], ...] | None  # None: not a pointer


def _dtype(kind: str | ArgumentStruct) -> np.dtype[Any]:
    if isinstance(kind, ArgumentStruct):
        return kind.dtype
    return np.dtype("u8", metadata={"pointer": kind}) if "*" in kind else np.dtype(kind)


def _pointed_to(kind: str | ArgumentStruct) -> tuple[np.dtype[Any], ...] | None:
    """Return the dtypes of arrays to which a pointer may point; booleans are bytes."""
    if isinstance(kind, ArgumentStruct) or "*" not in kind:
        return None
    code = kind.partition("*")[2]
    return (np.dtype(code), np.dtype(np.bool_)) if code == "u1" else (np.dtype(code),)


class Arguments:
    """The values of a struct: device arrays or None for pointers, Arguments for structs, numbers for the rest.

    They are packed once, however often they are passed, and :meth:`replace` packs only what it replaces. So launches
    that differ in few values cost the host little.
    """

    __slots__ = ("_array", "_base", "_data", "_own", "struct")

    def __init__(self, struct: ArgumentStruct, own: dict[str, Any], base: Arguments | None = None) -> None:
        self.struct, self._own, self._base = struct, own, base
        self._data: bytearray | None = None
        self._array: NDArray[Any] | None = None

    @property
    def values(self) -> dict[str, Any]:
        """The values of all fields."""
        return self._own if self._base is None else self._base.values | self._own

    def replace(self, **values: Any) -> Arguments:
        """Return arguments with other values in these fields."""
        self.struct.check(values)
        return Arguments(self.struct, values, self)

    def pointers(self) -> Iterator[tuple[str, int, DeviceArray]]:
        """Yield field, offset and array of each pointer that is not null, including those of structs in this one."""
        values = self.values
        for field, (_, offset, _, dtypes) in self.struct.places.items():
            value = values[field]
            if isinstance(value, Arguments):
                for name, place, array in value.pointers():
                    yield f"{field}.{name}", offset + place, array
            elif value is not None and dtypes is not None:
                yield field, offset, value

    def packed(self, address: Callable[[DeviceArray], int]) -> NDArray[Any]:
        """Return the struct as a zero-dimensional array of bytes, with its arrays' addresses; raise OverflowError.

        The array is the same in every call, so ``address`` must be too.
        """
        if self._array is None:
            try:
                self._array = np.ndarray((), self.struct.bytes_dtype, self._packed(address))
            except struct.error as error:
                raise OverflowError(f"{self.struct.name} has a value that does not fit: {error}") from error
        return self._array

    def _packed(self, address: Callable[[DeviceArray], int]) -> bytearray:
        if self._data is None:
            self._data = self._filled(address)
        return self._data

    def _filled(self, address: Callable[[DeviceArray], int]) -> bytearray:
        places, own = self.struct.places, self._own
        if self._base is None:
            return bytearray(self.struct.whole.pack(*[_value(own[at], place, address) for at, place in places.items()]))
        data = bytearray(self._base._packed(address))
        for field, value in own.items():
            place = places[field]
            place.format.pack_into(data, place.offset, _value(value, place, address))
        return data


def _value(value: Any, place: _Place, address: Callable[[DeviceArray], int]) -> Any:
    """Return a value in the form that its format packs."""
    if place.dtypes is not None:
        return 0 if value is None else address(value)
    return value._packed(address) if isinstance(value, Arguments) else value


ISING = ArgumentStruct(
    "IsingArguments", "ising_f32.cu",
    batch="i8", width="i8", ids="c*i8", scores="c*f4", counts="c*i8",
    num_nodes="i8", indptr="c*i8", indices="c*i4", weight="c*f4", internal_of="c*i4",
    coupling="f4", temperature="f4", relaxation="f4", steps="i4", blend="f4",
    k="i8", out_ids="*i8", out_scores="*f4", out_counts="*i8", status="*i4",
    coupling_room="*f4", shared_room="*f8",
)  # fmt: skip

MASK = ArgumentStruct(
    "MaskArguments", "ppr_restart_f32.cu",
    allowed="c*u1", shared="i4", own="c*f4", column="c*i4", columns="i8", other="c*f4", queries="i4", num_nodes="i8",
    least="*f4", mask="*f4",
)  # fmt: skip
ALLOWED = ArgumentStruct(
    "AllowedArguments", "ppr_restart_f32.cu",
    indices="c*i4", segment_begin="c*i8", segment_end="c*i8", num_segments="i8", mask="c*f4", allowed="*u8",
)  # fmt: skip
BEFORE = ArgumentStruct(
    "BeforeArguments", "ppr_restart_f32.cu",
    first_of="c*i8", num_rows="i8", allowed="c*u8", before="*i4",
)  # fmt: skip
DEGREES = ArgumentStruct(
    "DegreeArguments", "ppr_restart_f32.cu",
    indptr="c*i8", indices="c*i4", weight="c*f4", edge_type="c*u1", degree="c*f8", eta="c*f8", shares="c*f4",
    num_types="i4", per_type="i4", in_indptr="c*i8", in_indices="c*i4", num_nodes="i8", scale32="*f4",
    unscale32="*f4", scale64="*f8", unscale64="*f8", longest="*u8", joined="*u8", least="*f4",
)  # fmt: skip
ROWS = ArgumentStruct(
    "DeviceRows", "ppr_f32.cu",
    indptr="c*i8", indices="c*i4", weight="c*f4", edge_type="c*u1", eta="c*f4", scale="c*f4", num_types="i4",
    per_lane="i4",
)  # fmt: skip
LONG_ROWS = ArgumentStruct(
    "LongRows", "ppr_f32.cu",
    begin="c*i8", end="c*i8", first_of="c*i8", row_of="c*i4", allowed="c*u8", before="c*i4",
)  # fmt: skip
ROW_SET = ArgumentStruct("RowSet", "ppr_f32.cu", words="c*u8", rank="c*i4")
JOIN_ROOM = ArgumentStruct("JoinRoom", "ppr_f32.cu", columns="*f8", arrived="*u4")
DECISION = ArgumentStruct(
    "Decision", "ppr_f32.cu",
    measured_from="c*i8", limit="c*i8", theta="c*f4", shrink="c*f4", walking="*i4", passes="*i8", left="*i4",
    last_pass="*i8",
)  # fmt: skip
SEGMENTS = ArgumentStruct(
    "SegmentArguments", "ppr_f32.cu",
    rows=ROWS, segments=LONG_ROWS, state="c*f4", num_segments="i8", left="c*i4", partial="*f4",
)  # fmt: skip
STEP = ArgumentStruct(
    "Step", "ppr_f32.cu",
    number="i8", current="c*f4", next="*f4", omega="c*f4", measured="*f8", ends="i4",
)  # fmt: skip
PASS = ArgumentStruct(
    "PassArguments", "ppr_f32.cu",
    rows=ROWS, num_nodes="i8", partial="*f4", long_rows=ROW_SET, segments=LONG_ROWS, restart_rows=ROW_SET,
    restart="c*f4", factor="c*f4", attraction="c*f4", scale64="c*f8", damping="c*f4", accelerates="c*i4",
    degree="c*f4", anchor="c*f8", join=JOIN_ROOM, decision=DECISION, step=STEP,
)  # fmt: skip
REST_OF_WALK = ArgumentStruct(
    "WalkArguments", "ppr_f32.cu",
    passes=PASS, num_segments="i8", first_measured="i8", last="i8", state="*f4", barrier="*u4",
)  # fmt: skip
NONZERO_ROWS = ArgumentStruct("NonzeroRows", "ppr_f32.cu", words="c*u8", kind="i4")
EARLY_PASS = ArgumentStruct(
    "EarlyPassArguments", "ppr_f32.cu", walk=PASS, nonzero=NONZERO_ROWS, before="c*u8", reached="*u8"
)
EARLY_SEGMENTS = ArgumentStruct("EarlySegmentArguments", "ppr_f32.cu", walk=SEGMENTS, nonzero=NONZERO_ROWS)

SCALES = ArgumentStruct(
    "Scales", "ppr_certify_f32.cu",
    scale="c*f8", unscale="c*f8", attraction="c*f4", per_lane="i4", per_type="i4", num_types="i4",
)  # fmt: skip
ITERATE = ArgumentStruct("Iterate", "ppr_certify_f32.cu", even="*f4", odd="*f4", last_pass="c*i8")
CERTIFIED = ArgumentStruct(
    "Certified", "ppr_certify_f32.cu",
    damping="c*f8", slack="c*f8", missed="c*f8", keeps="c*i4",
)  # fmt: skip
SEEDS = ArgumentStruct(
    "Seeds", "ppr_restart_f32.cu",
    node="c*i8", weight="c*f8", width="i4", queries="i4", may_be_empty="i4", internal_of="c*i4", num_nodes="i8",
    mask="c*f4",
)  # fmt: skip
RESTARTS = ArgumentStruct(
    "Restarts", "ppr_restart_f32.cu",
    begin="c*i8", end="*i8", node="*i4", value="*f8", words="*u8", rank="*i4",
)  # fmt: skip
WALK = ArgumentStruct(
    "WalkState", "ppr_restart_f32.cu",
    limit="*i8", measured_from="*i8", next_try="*i8", theta="*f4", shrink="*f4", anchor="*f8", walking="*i4",
    unproven="*i4", passes="*i8", left="*i4", last_pass="*i8",
)  # fmt: skip
RESTART = ArgumentStruct(
    "RestartArguments", "ppr_restart_f32.cu",
    scales=SCALES, seeds=SEEDS, restarts=RESTARTS, damping="c*f8", volume="c*f8", symmetric="i4", tol="f8",
    max_iter="i8", first="i8", last="i8", table_rows="i8", restart64="*f8", restart32="*f4", walk=WALK,
    longest="c*u8", joined="c*u8", slack="*f8", missed="*f8", keeps="*i4", least="c*f4", accelerates="*i4",
    status="*i4", arrived="*u4", counters="i8",
)  # fmt: skip
RESIDUAL = ArgumentStruct(
    "ResidualArguments", "ppr_certify_f32.cu",
    scales=SCALES, num_nodes="i8", indptr="c*i8", indices="c*i4", weight="c*f4", edge_type="c*u1", eta="c*f8",
    iterate=ITERATE, long_rows=ROW_SET, segments=LONG_ROWS, num_segments="i8", partial="*f8", restart_rows=ROW_SET,
    restart="c*f8", lost="c*f8", certified=CERTIFIED, symmetric="i4",
    improved="*f4", correction="*f4", join=JOIN_ROOM, residual="*f8", bound="*f8", per_degree="*f8",
)  # fmt: skip

CANDIDATES = ArgumentStruct(
    "CandidateArguments", "ppr_topk_f32.cu",
    iterate=ITERATE, final="i4", degree="c*f4", per_lane="i4", node_of="c*i4", among="c*i4", count="i8", lanes="i4",
)  # fmt: skip
ROUNDS = ArgumentStruct("Rounds", "ppr_topk_f32.cu", keys="*u8", stride="i8", kept="i4", parts="*u8")
TWINS = ArgumentStruct(
    "TwinTables", "ppr_topk_f32.cu",
    indptr="c*i8", indices="c*i4", weight="c*f4", edge_type="c*u1", mask="c*f4", attraction="c*f4",
    restart_rows=ROW_SET, restart="c*f8", lanes="i4", symmetric="i4",
)  # fmt: skip
LIST = ArgumentStruct(
    "ListArguments", "ppr_topk_f32.cu",
    rounds=ROUNDS, internal_of="c*i4", unscale="c*f8", locals="c*f4", k="i8", order="i4", twins=TWINS,
)  # fmt: skip
ANSWERS = ArgumentStruct(
    "Answers", "ppr_topk_f32.cu",
    width="i8", ids="*i8", scores="*f4", score_bounds="*f4", counts="*i8", proven="*u1", iterations="*i8",
    residual="*f8", bound="*f8", converged="*u1", status="*i4", shortfall="*f8",
)  # fmt: skip
TURN = ArgumentStruct(
    "Turn", "ppr_topk_f32.cu",
    rows="c*i8", walking="c*i4", next_try="c*i8", number="i8",
)  # fmt: skip
NODE_ERROR = ArgumentStruct(
    "ErrorArguments", "ppr_topk_f32.cu",
    measured="c*f8", damping="c*f8", bound="c*f8", per_degree="c*f8", refined="i4", lanes="i4",
)  # fmt: skip
PROOFS = ArgumentStruct(
    "Proofs", "ppr_topk_f32.cu",
    errors="*f8", evidence="*f8", found="*i8", flags="*i4", lanes="i4",
)  # fmt: skip
RANK = ArgumentStruct(
    "RankArguments", "ppr_topk_f32.cu",
    candidates=CANDIDATES, list=LIST, turn=TURN, error=NODE_ERROR, splits="i4", others="*i4", arrived="*u4",
    proofs=PROOFS,
)  # fmt: skip
OUTSIDE = ArgumentStruct(
    "OutsideArguments", "ppr_topk_f32.cu",
    candidates=CANDIDATES, list=LIST, turn=TURN, splits="i4", largest="*f4", arrived="*u4", proofs=PROOFS,
)  # fmt: skip
TRY = ArgumentStruct(
    "TryArguments", "ppr_topk_f32.cu",
    outside=OUTSIDE, damping="c*f8", accelerates="c*i4", walking="*i4", passes="*i8", next_try="*i8", unproven="*i4",
    left="*i4", last_pass="*i8",
)  # fmt: skip
FINISH = ArgumentStruct(
    "FinishArguments", "ppr_topk_f32.cu",
    outside=OUTSIDE, residual="c*f8", bound="c*f8", polished="c*i8", walking="c*i4", limit="c*i8", passes="c*i8",
    seed_status="c*i4", tol="f8", goes_on="i4", answers=ANSWERS,
)  # fmt: skip

CALIBRATION = ArgumentStruct(
    "CalibrationRule", "fuse_f32.cu",
    method="i4", ties="i4", single="f4", equal="f4", temperature="f4", lower="c*f4", upper="c*f4",
)  # fmt: skip
FUSION_OPTIONS = ArgumentStruct(
    "FusionOptions", "fuse_f32.cu",
    temperature="f4", wasserstein="f4", epsilon="f4", theta="f4", p="f4", interference="f4", missing="f4",
    rank_constant="f4", log_phi="f4", one_minus_phi="f4", roots="f4", steps="f4", bias="c*f4", q="c*f4",
    by_holders="c*f4",
)  # fmt: skip
FLAT_LISTS = ArgumentStruct(
    "FlatLists", "fuse_f32.cu",
    batch="i8", lists="i4", starts="c*i8", counts="c*i8", pools="c*i8",
)  # fmt: skip
LIST_VALUES = ArgumentStruct("ListValues", "fuse_f32.cu", scores="c*f4", calibration=CALIBRATION, values="*f4")
FINISH_SCORE = ArgumentStruct("Finish", "fuse_f32.cu", consensus="f4", prior="c*f4", priors="i8")
FUSE = ArgumentStruct(
    "FuseArguments", "fuse_f32.cu",
    lists=FLAT_LISTS, ids="c*i8", values=LIST_VALUES, method="i4", option=FUSION_OPTIONS, weights="c*f4",
    weight_step="i8", finish=FINISH_SCORE, k="i8", out_ids="*i8", out_scores="*f4", out_counts="*i8", size="i8",
    room="*u1",
)  # fmt: skip

QUERIES = ArgumentStruct("QueryVectors", "dense_topk.cu", data="c*f4", norm="c*f4", batch="i4", dim="i4", cosine="i4")
TILE_MASK = ArgumentStruct("RowMask", "dense_topk.cu", bytes="c*u1", stride="i8", first="i8")
KEY_COLUMNS = ArgumentStruct("KeyColumns", "dense_topk.cu", keys="*u8", stride="i8", first="i8", columns="i4")
LISTED = ArgumentStruct(
    "ListedRows", "dense_topk.cu",
    keys="c*u8", width="i4", indptr="c*i8", ids="c*i8", shared="i4", first="i8",
)  # fmt: skip
DOT_BOUND = ArgumentStruct("DotBound", "topk.cu", slack="f4", norm_floor="f4", underflow="f4")
RUNNING_LISTS = ArgumentStruct("RunningLists", "topk.cu", splits="i4", keys="*u8", fresh="i4", width="i4", room="i4")
HITS = ArgumentStruct("SelectedHits", "topk.cu", ids="*i8", scores="*f4", counts="*i8", status="*i4")
PROJECT_ROWS = ArgumentStruct(
    "ProjectRows", "project_f32.cu",
    rows="i8", columns="i8", indptr="c*i8", indices="c*i4", weight="c*f4", scale="c*f4",
)  # fmt: skip
SEED_ROW = ArgumentStruct("SeedRow", "add_entity_seeds.cu", node="c*i8", weight="c*f8", width="i4")
ENTITY_SEEDS = ArgumentStruct(
    "EntitySeedArguments", "add_entity_seeds.cu",
    seeds=SEED_ROW, ids="c*i8", counts="c*i8", k="i4", indptr="c*i8", indices="c*i4", weight="c*f4",
    frequency="c*i8", frequency_stride="i8", rows="i8", mass="f8", places="i4", held_node="*i4", held_value="*f8",
    out_node="*i8", out_weight="*f8", status="*i4",
)  # fmt: skip
COVER = ArgumentStruct(
    "CoverArguments", "cover_seeds.cu",
    seeds=SEED_ROW, ids="c*i8", scores="c*f4", counts="c*i8", width="i4", indptr="c*i8", indices="c*i4",
    weight="c*f4", rows="i8", least="f8", k="i4", first="*i4", chosen="*i4", out_ids="*i8", out_scores="*f4",
    out_counts="*i8", status="*i4",
)  # fmt: skip

#: All argument structs.
STRUCTS = tuple(found for found in globals().copy().values() if isinstance(found, ArgumentStruct))
