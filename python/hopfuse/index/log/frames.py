"""The log of changes of a generation: one checksummed frame for each batch, in the order of their seqs.

FORMAT.md, section 6, is the specification.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...errors import FormatError
from ...io.files import create_exclusively, sync_directory, sync_file
from ..file.format import ENDIAN_MARK, VERSION
from ..file.mapping import open_part
from .records import LogRecord

MAGIC = b"\x89HOPLOG\n"
HEADER = struct.Struct("<8s2I2Q16s12s")  # followed by its own checksum
HEADER_BYTES = HEADER.size + 4
FRAME = struct.Struct("<I4Q2I")  # after its own checksum
FRAME_BYTES = 4 + FRAME.size
MARK = 0x46504F48  # "HOPF"
_SALT_BYTES = 16


class Frame(NamedTuple):
    """A batch of the log."""

    seq: int
    time: int
    """Microseconds since 1970-01-01 in UTC."""
    payload: memoryview
    synced: int
    """The last seq that was synced to the disk before this frame was written."""
    record: LogRecord | None = None
    """What the payload was made from, if this process wrote it."""


@dataclass(frozen=True)
class Header:
    """The generation that a log follows, and its seq."""

    generation: int
    seq: int
    salt: bytes

    def pack(self) -> bytes:
        """Return the bytes of the header."""
        fields = HEADER.pack(MAGIC, VERSION, ENDIAN_MARK, self.generation, self.seq, self.salt, bytes(12))
        return fields + struct.pack("<I", zlib.crc32(fields))

    @property
    def seed(self) -> int:
        """The initial value of the log's checksums, so that bytes of another log or of a text are not valid frames."""
        return zlib.crc32(self.salt)


class Tail(NamedTuple):
    """The batches of a log from an offset on."""

    frames: list[Frame]
    end: int
    """The offset of the next frame; bytes beyond it were never committed."""


def read_header(path: Path, generation: int, seq: int) -> Header | None:
    """Return the header of a generation's log, or None if there is no log or its creation was not finished.

    Raises
    ------
    FormatError
        The header is damaged, or the log follows another generation.
    """
    try:
        with open_part(path) as file:
            data = file.read(HEADER_BYTES + 1)
    except FileNotFoundError:
        return None
    if len(data) <= HEADER_BYTES and not _is_whole(data):
        return None  # frames are written after the header is on the disk
    if not _is_whole(data):
        raise FormatError("damaged", None, "the header does not match its checksum; the log is damaged").at(path)
    magic, version, mark, of, base, salt, zeros = HEADER.unpack(data[: HEADER.size])
    if magic != MAGIC or mark != ENDIAN_MARK or any(zeros):
        raise FormatError("damaged", None, "the header is not that of a hopfuse log").at(path)
    if version != VERSION:
        raise FormatError(
            "version",
            None,
            "the log has the format version {given}; this hopfuse reads version {allowed}",
            given=version,
            allowed=VERSION,
        ).at(path)
    if (of, base) != (generation, seq):
        raise FormatError(
            "conflict",
            None,
            "the log follows the generation {given[0]} at seq {given[1]}; the current one is {allowed[0]} at seq "
            "{allowed[1]}",
            given=(of, base),
            allowed=(generation, seq),
        ).at(path)
    return Header(of, base, salt)


def read_tail(path: Path, header: Header, start: int | None, seq: int) -> Tail:
    """Return the frames from an offset on (None: from the first), beginning with the seq after ``seq``.

    An incomplete last group of frames was never committed, and is left out.

    Raises
    ------
    FormatError
        A frame is damaged, and a later one was written after it was synced.
    """
    start = HEADER_BYTES if start is None else start
    tail = _parse(_bytes(path, start), header, start, seq)
    if isinstance(tail, Tail):
        return tail
    again = _parse(_bytes(path, start), header, start, seq)  # a writer may have cut a torn tail during the first read
    if isinstance(again, Tail):
        return again
    raise FormatError(
        "damaged",
        None,
        "the batch of seq {seq} at byte {offset} is damaged, and batches after it are whole; restore the file from a "
        "copy",
        seq=again.seq,
        offset=again.offset,
    ).at(path)


def frame_bytes(header: Header, seq: int, synced: int, time: int, payload: bytes) -> bytes:
    """Return the bytes of a frame, padded to a multiple of 8."""
    body = payload + bytes(-len(payload) % 8)
    fields = FRAME.pack(MARK, seq, synced, time, len(payload), zlib.crc32(body, header.seed), 0)
    return struct.pack("<I", zlib.crc32(fields, header.seed)) + fields + body


def write_log(path: Path, generation: int, seq: int, records: Iterable[tuple[int, bytes]]) -> tuple[Header, int]:
    """Write a new log of batches (time, payload) for a generation, sync it, and return its header and its end."""
    header = Header(generation, seq, secrets.token_bytes(_SALT_BYTES))
    with create_exclusively(path) as file:
        file.write(header.pack())
        for at, (time, payload) in enumerate(records, seq + 1):
            file.write(frame_bytes(header, at, at - 1, time, payload))
        end = file.tell()
        sync_file(file)
    sync_directory(path.parent)
    return header, end


class LogWriter:
    """Appends to a log. Bytes beyond the last complete frame are cut off."""

    def __init__(self, path: Path, header: Header | None, generation: int, seq: int, end: int) -> None:
        if header is None:
            path.unlink(missing_ok=True)  # a creation that was not finished
            header, end = write_log(path, generation, seq, ())
        self.header, self.end = header, end
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0))
        if os.fstat(self._descriptor).st_size > end:
            os.ftruncate(self._descriptor, end)
            os.fsync(self._descriptor)

    def append(self, data: bytes) -> None:
        """Write frames to the disk, or leave the log unchanged.

        Raises
        ------
        OSError
            Nothing was committed. If cutting the log fails too, the next writer cuts it.
        """
        try:
            view, at = memoryview(data), self.end
            while view.nbytes:
                written = os.pwrite(self._descriptor, view, at)
                view, at = view[written:], at + written
            os.fsync(self._descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self.end)
                os.fsync(self._descriptor)
            raise
        self.end += len(data)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class _Damage(NamedTuple):
    seq: int
    offset: int


def _bytes(path: Path, start: int) -> bytes:
    """Read the file from an offset on. It is not mapped, since a writer may cut it."""
    with open_part(path) as file:
        file.seek(start)
        return file.read()


def _is_whole(data: bytes) -> bool:
    whole = len(data) >= HEADER_BYTES
    return whole and zlib.crc32(data[: HEADER.size]) == struct.unpack_from("<I", data, HEADER.size)[0]


def _parse(data: bytes, header: Header, start: int, last: int) -> Tail | _Damage:
    view, at, frames = memoryview(data).toreadonly(), 0, list[Frame]()
    while (frame := _frame(view, at, header)) is not None and frame.seq == last + 1:
        frames.append(frame)
        last, at = frame.seq, _end(at, frame)
    if any(frame.synced > last for frame in _later_frames(view, at, header)):
        return _Damage(last + 1, start + at)
    return Tail(frames, start + at)


def _frame(view: memoryview, at: int, header: Header) -> Frame | None:
    """Return the frame at an offset, or None if it is not valid."""
    found = _fields(view, at, header)
    if found is None:
        return None
    _, seq, synced, time, length, checksum, _ = found
    body = view[at + FRAME_BYTES : at + FRAME_BYTES + length + -length % 8]
    if zlib.crc32(body, header.seed) != checksum:
        return None
    return Frame(seq, time, body[:length], synced)


def _fields(view: memoryview, at: int, header: Header) -> tuple[int, ...] | None:
    """Return the fields of a frame if its head is valid and its payload fits in the file, else None."""
    head = view[at : at + FRAME_BYTES]
    if len(head) < FRAME_BYTES or zlib.crc32(head[4:], header.seed) != struct.unpack_from("<I", head)[0]:
        return None
    found = FRAME.unpack(head[4:])
    fits = found[4] <= len(view) - at - FRAME_BYTES
    return found if found[0] == MARK and found[6] == 0 and fits else None


def _end(at: int, frame: Frame) -> int:
    return at + FRAME_BYTES + len(frame.payload) + -len(frame.payload) % 8


def _later_frames(view: memoryview, at: int, header: Header) -> Iterator[Frame]:
    """Yield valid frames after an invalid one, reading each byte at most twice."""
    words = np.frombuffer(view[at : at + (len(view) - at) // 8 * 8], "<u4")
    floor = at
    for word in np.flatnonzero(words[1::2] == MARK).tolist():
        place = at + 8 * word
        found = _fields(view, place, header) if place >= floor else None
        if found is None:
            continue
        floor = place + FRAME_BYTES + found[4]  # frames do not overlap
        frame = _frame(view, place, header)
        if frame is not None:
            yield frame
