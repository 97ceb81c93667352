"""The head of a generation file: header, section table, block checksums. FORMAT.md is the specification."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError

MAGIC = b"\x89HOPFUSE"
VERSION = 1
ENDIAN_MARK = 0x01020304
ALIGNMENT = 64
BLOCK = 1 << 20
MAX_SECTIONS = 128
MAX_SIZE = 1 << 48  # of a dimension

DTYPES = ("uint8", "int32", "int64", "float16", "float32", "float64", "bfloat16")
METRICS = ("ip", "cosine")
STORAGES = ("float32", "float16", "bfloat16", "int8")
_BFLOAT16 = "uint16"  # as NumPy holds it; the format has no uint16

HEADER = struct.Struct("<8s2I2Q2I3B5sQI")  # followed by its own checksum
HEADER_BYTES = HEADER.size + 4
ENTRY = struct.Struct("<32s2I4Q")
_NAME = re.compile(rb"[a-z_]+(?:\.[a-z_]+)*")
_DTYPE_OF = {name: np.dtype(_BFLOAT16 if name == "bfloat16" else name) for name in DTYPES}
_NAME_OF = {dtype: name for name, dtype in _DTYPE_OF.items()}


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype that holds a dtype of the format."""
    return _DTYPE_OF[name]


def name_of(dtype: np.dtype[Any]) -> str:
    """Return the format's name of a NumPy dtype."""
    known = _NAME_OF.get(dtype)  # NumPy makes dtype.name anew each time
    return known or _NAME_OF.get(dtype.newbyteorder("="), dtype.name)


@dataclass(frozen=True)
class Settings:
    """Settings of the whole index, kept in the header."""

    metric: str
    storage: str
    directed: bool


@dataclass(frozen=True)
class Entry:
    """A row of the section table; ``offset`` is the start of the payload in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int = 0

    @property
    def length(self) -> int:
        """Bytes of the payload."""
        return prod(self.shape) * dtype_of(self.dtype).itemsize

    @property
    def num_blocks(self) -> int:
        """Number of checksums: one for each block, the last of which may be partial."""
        return -(-self.length // BLOCK)


@dataclass(frozen=True)
class Head:
    """Everything in a generation file that is not payload."""

    generation: int
    settings: Settings
    entries: tuple[Entry, ...]
    checksums: NDArray[np.uint32]
    seq: int = 0


def aligned(position: int) -> int:
    """Return the first multiple of the alignment at or after a position."""
    return -(-position // ALIGNMENT) * ALIGNMENT


def head_bytes(num_sections: int, num_blocks: int) -> int:
    """Return the size of the head without padding."""
    return HEADER_BYTES + ENTRY.size * num_sections + 4 * num_blocks


def place(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the entries with their offsets, which the format determines."""
    position = aligned(head_bytes(len(entries), sum(e.num_blocks for e in entries)))
    placed = []
    for e in entries:
        placed.append(Entry(e.name, e.dtype, e.shape, position))
        position = aligned(position + e.length)
    return tuple(placed)


def file_bytes(placed: Sequence[Entry]) -> int:
    """Return the size of the file."""
    return aligned(placed[-1].offset + placed[-1].length)


def pack_head(head: Head) -> bytes:
    """Return the bytes of a head, without its padding."""
    table = b"".join(pack_entry(e) for e in head.entries) + head.checksums.astype("<u4").tobytes()
    s = head.settings
    fields = HEADER.pack(
        MAGIC,
        VERSION,
        ENDIAN_MARK,
        file_bytes(head.entries),
        head.generation,
        len(head.entries),
        head.checksums.size,
        METRICS.index(s.metric),
        STORAGES.index(s.storage),
        int(s.directed),
        bytes(5),
        head.seq,
        zlib.crc32(table),
    )
    return fields + struct.pack("<I", zlib.crc32(fields)) + table


def parse_head(data: memoryview) -> Head:
    """Read the head of a file, after checking it against the file's size and its checksums.

    Raises
    ------
    FormatError
        The head violates FORMAT.md. Nothing larger than the head is allocated.
    """
    if len(data) < HEADER_BYTES:
        raise FormatError(
            "damaged",
            None,
            "the file has {given} bytes, fewer than the {least} of a header; it is torn",
            given=len(data),
            least=HEADER_BYTES,
        )
    (magic, version, mark, size, generation, sections, blocks, metric, storage, directed, zeros, seq, table_crc) = (
        HEADER.unpack(data[: HEADER.size])
    )
    (header_crc,) = struct.unpack("<I", data[HEADER.size : HEADER_BYTES])
    if magic != MAGIC:
        raise FormatError(
            "damaged",
            None,
            "the file starts with {given!r}, not with {allowed!r}; it is not a hopfuse index",
            given=bytes(magic),
            allowed=MAGIC,
        )
    if version != VERSION:
        raise FormatError(
            "version",
            None,
            "the file has the format version {given}; this hopfuse reads version {allowed}: build the index again",
            given=version,
            allowed=VERSION,
        )
    if zlib.crc32(data[: HEADER.size]) != header_crc:
        raise FormatError("damaged", None, "the header does not match its checksum; the file is damaged")
    if mark != ENDIAN_MARK or any(zeros):
        raise FormatError("damaged", None, "the header's byte-order mark or reserved bytes are wrong")
    if size != len(data):
        raise FormatError(
            "damaged",
            None,
            "the header says {stated} bytes, the file has {given}; it is torn or was appended to",
            stated=size,
            given=len(data),
        )
    if metric >= len(METRICS) or storage >= len(STORAGES) or directed > 1:
        raise FormatError(
            "choice",
            None,
            "unknown settings in the header: metric {metric}, storage {storage}, directed {directed}",
            metric=metric,
            storage=storage,
            directed=directed,
        )
    if not 1 <= sections <= MAX_SECTIONS:
        raise FormatError(
            "limit",
            None,
            "the header says {given} sections; 1 to {allowed} are allowed",
            given=sections,
            allowed=MAX_SECTIONS,
        )
    end = head_bytes(sections, blocks)
    if end > size:
        raise FormatError(
            "damaged",
            None,
            "{sections} sections and {blocks} checksums need {end} bytes, the file has {size}",
            sections=sections,
            blocks=blocks,
            end=end,
            size=size,
        )
    table = data[HEADER_BYTES:end]
    if zlib.crc32(table) != table_crc:
        raise FormatError("damaged", None, "the section table does not match its checksum; the file is damaged")
    entries = _parse_entries(table[: ENTRY.size * sections], size, blocks)
    checksums = np.frombuffer(table, "<u4", blocks, ENTRY.size * sections).astype(np.uint32)
    settings = Settings(METRICS[metric], STORAGES[storage], bool(directed))
    return Head(generation, settings, entries, checksums, seq)


def pack_entry(e: Entry) -> bytes:
    """Return a row of the section table."""
    shape = (*e.shape, 0)[:2]
    return ENTRY.pack(e.name.encode(), DTYPES.index(e.dtype), len(e.shape), *shape, e.offset, e.length)


def _parse_entries(table: memoryview, size: int, blocks: int) -> tuple[Entry, ...]:
    entries = []
    for row in range(len(table) // ENTRY.size):
        entry, length = parse_entry(row, table[row * ENTRY.size : (row + 1) * ENTRY.size])
        if length != entry.length or length > size:
            raise FormatError(
                "length",
                None,
                "section {section!r} says {given} bytes; {dtype}{shape} has {allowed}, the file {size}",
                section=entry.name,
                given=length,
                dtype=entry.dtype,
                shape=entry.shape,
                allowed=entry.length,
                size=size,
            )
        entries.append(entry)
    if len({e.name for e in entries}) != len(entries):
        raise FormatError("duplicate", None, "the section table has a name twice")
    if sum(e.num_blocks for e in entries) != blocks:
        raise FormatError(
            "damaged",
            None,
            "the header says {given} checksums; the sections have {allowed} blocks",
            given=blocks,
            allowed=sum(e.num_blocks for e in entries),
        )
    expected = place(entries)
    for entry, right in zip(entries, expected, strict=True):
        if entry != right:
            raise FormatError(
                "damaged",
                None,
                "section {section!r} is at the offset {given}; its place is {allowed}",
                section=entry.name,
                given=entry.offset,
                allowed=right.offset,
            )
    if file_bytes(expected) != size:
        raise FormatError(
            "damaged",
            None,
            "the file ends at {given}, its sections at {allowed}",
            given=size,
            allowed=file_bytes(expected),
        )
    return expected


def parse_entry(row: int, data: memoryview) -> tuple[Entry, int]:
    """Return a row of the section table, and its length field."""
    raw, code, ndim, rows, columns, offset, length = ENTRY.unpack(data)
    name = raw.rstrip(b"\0")
    if not _NAME.fullmatch(name):
        raise FormatError("syntax", None, "row {row} of the section table has the name {given!r}", row=row, given=raw)
    if code >= len(DTYPES):
        raise FormatError(
            "dtype",
            None,
            "section {section!r} has the dtype code {given}; 0 to {last} are known",
            section=name.decode(),
            given=code,
            last=len(DTYPES) - 1,
        )
    if ndim not in (1, 2) or (ndim == 1 and columns != 0) or max(rows, columns) > MAX_SIZE:
        raise FormatError(
            "shape",
            None,
            "section {section!r} has {ndim} dimensions, of the sizes {rows} and {columns}",
            section=name.decode(),
            ndim=ndim,
            rows=rows,
            columns=columns,
        )
    return Entry(name.decode(), DTYPES[code], (rows, columns)[:ndim], offset), length
