"""Logs of changes, written and read as section 6 of FORMAT.md states them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from index.index_files import DTYPES, ENTRY

MAGIC, MARK, ENDIAN_MARK = b"\x89HOPLOG\n", 0x46504F48, 0x01020304
HEADER, FRAME = struct.Struct("<8s2I2Q16s12s"), struct.Struct("<I4Q2I")  # each beside a checksum of 4 bytes
HEADER_BYTES, FRAME_BYTES = HEADER.size + 4, FRAME.size + 4
SALT = b"salt of 16 bytes"


class Frame(NamedTuple):
    """A batch of a log."""

    seq: int
    synced: int
    time: int
    payload: bytes


def header_bytes(generation: int = 1, seq: int = 0, *, salt: bytes = SALT, version: int = 1) -> bytes:
    """The header of a generation's log."""
    fields = HEADER.pack(MAGIC, version, ENDIAN_MARK, generation, seq, salt, bytes(12))
    return fields + struct.pack("<I", zlib.crc32(fields))


def head_bytes(seq: int, synced: int, time: int, length: int, checksum: int, *, salt: bytes = SALT) -> bytes:
    """The head of a frame, with the checksum that it needs."""
    fields = FRAME.pack(MARK, seq, synced, time, length, checksum, 0)
    return struct.pack("<I", zlib.crc32(fields, zlib.crc32(salt))) + fields


def frame_bytes(seq: int, synced: int, time: int, payload: bytes, *, salt: bytes = SALT) -> bytes:
    """A frame with its payload."""
    body = payload + bytes(-len(payload) % 8)
    return head_bytes(seq, synced, time, len(payload), zlib.crc32(body, zlib.crc32(salt)), salt=salt) + body


def write_log(folder: Path, payloads: Sequence[bytes], groups: Iterable[int] = ()) -> tuple[Path, list[int]]:
    """Write the log of generation 1, in groups of so many batches, else one by one; return where each frame ends."""
    data, ends, seq = header_bytes(), [HEADER_BYTES], 0
    for size in groups or [1] * len(payloads):
        synced = seq
        for payload in payloads[seq : seq + size]:
            seq += 1
            data += frame_bytes(seq, synced, 1000 + seq, payload)
            ends.append(len(data))
    path = folder / "log-000000000001.hopfuse"
    path.write_bytes(data)
    return path, ends


def read_log(path: Path) -> Iterator[Frame]:
    """Yield the batches of a log that is whole."""
    data, at = path.read_bytes(), HEADER_BYTES
    while at < len(data):
        mark, seq, synced, time, length, _, _ = FRAME.unpack_from(data, at + 4)
        assert mark == MARK
        yield Frame(seq, synced, time, data[at + FRAME_BYTES : at + FRAME_BYTES + length])
        at += FRAME_BYTES + length + -length % 8


def encode(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The payload of a batch: its table, and its arrays at multiples of 8."""
    table, at, data = struct.pack("<2I", len(arrays), 0), 8 + ENTRY.size * len(arrays), b""
    for name, array in arrays.items():
        code = DTYPES.index(array.dtype.newbyteorder("<").str.replace("|", ""))
        shape = (*array.shape, 0)[:2]
        table += ENTRY.pack(name.encode(), code, array.ndim, *shape, at + len(data), array.nbytes)
        data += array.tobytes() + bytes(-array.nbytes % 8)
    return table + data


def decode(payload: bytes) -> dict[str, Any]:
    """The arrays of a payload."""
    found = {}
    for row in range(struct.unpack_from("<I", payload)[0]):
        name, code, ndim, rows, columns, at, length = ENTRY.unpack_from(payload, 8 + ENTRY.size * row)
        flat = np.frombuffer(payload[at : at + length], DTYPES[code])
        found[name.rstrip(b"\0").decode()] = flat.reshape((rows, columns)[:ndim])
    return found


def strings(name: str, texts: Sequence[str]) -> dict[str, np.ndarray]:
    """The arrays of strings."""
    data = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, data)], dtype=np.int64)
    return {f"{name}.offsets": offsets, f"{name}.bytes": np.frombuffer(b"".join(data), np.uint8)}
