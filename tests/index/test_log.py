"""The log: torn at any byte, damaged at any byte, forged, and written while it is read."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hopfuse.errors import FormatError
from hopfuse.index.batch import Slots, encode
from hopfuse.index.batches import read_batches
from hopfuse.index.columns import string_arrays
from hopfuse.index.log import FRAME, FRAME_BYTES, HEADER_BYTES, MARK, Header, frame_bytes, read_header, read_tail
from hopfuse.index.metadata_build import metadata_arrays
from refusals import refused

HEADER = Header(1, 0, b"salt of 16 bytes")
BATCHES = ["one", "two, which is longer than the first", "", "four"]


def written(folder: Path, groups: tuple[int, ...] = (1, 1, 1, 1)) -> tuple[Path, list[int]]:
    """A log of four payloads, written in groups of so many, and where each of its frames ends."""
    data, ends, seq = HEADER.pack(), [HEADER_BYTES], 0
    for size in groups:
        synced = seq
        for _ in range(size):
            seq += 1
            data += frame_bytes(HEADER, seq, synced, 1000 + seq, BATCHES[seq - 1].encode())
            ends.append(len(data))
    path = folder / "log-000000000001.hopfuse"
    path.write_bytes(data)
    return path, ends


def payloads(path: Path) -> list[str]:
    header = read_header(path, 1, 0)
    return [] if header is None else [bytes(f.payload).decode() for f in read_tail(path, header, None, 0).frames]


def test_a_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    path, ends = written(tmp_path)
    tail = read_tail(path, HEADER, None, 0)
    assert [(f.seq, f.time, bytes(f.payload).decode(), f.synced) for f in tail.frames] == [
        (seq, 1000 + seq, text, seq - 1) for seq, text in enumerate(BATCHES, 1)
    ]
    assert tail.end == ends[-1] == path.stat().st_size
    later = read_tail(path, HEADER, ends[2], 2)
    assert [f.seq for f in later.frames] == [3, 4]


def test_a_log_torn_at_any_byte_has_the_batches_that_are_whole(tmp_path: Path) -> None:
    path, ends = written(tmp_path)
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        whole = sum(end <= size for end in ends[1:])
        assert payloads(path) == BATCHES[:whole], size
        path.write_bytes(data[:size] + bytes(len(data) - size))  # the file has its length, the pages came not
        if size >= HEADER_BYTES:
            assert (
                payloads(path) == BATCHES[: sum(data[:size].ljust(len(data), b"\0")[:e] == data[:e] for e in ends[1:])]
            )


@pytest.mark.parametrize("bit", [0, 3, 7])
def test_a_damaged_byte_before_a_later_commit_is_an_error_and_in_the_last_group_a_torn_tail(
    tmp_path: Path, bit: int
) -> None:
    for groups, last in (((1, 1, 1, 1), 3), ((1, 1, 2), 2), ((4,), 0)):
        path, ends = written(tmp_path, groups)
        data = path.read_bytes()
        for at in range(len(data)):
            changed = bytearray(data)
            changed[at] ^= 1 << bit
            path.write_bytes(changed)
            if at < ends[last]:
                seq = None if at < HEADER_BYTES else 1 + sum(end <= at for end in ends[1:])
                with refused(FormatError, "damaged", seq=seq):
                    payloads(path)
            else:
                assert payloads(path) == BATCHES[: sum(end <= at for end in ends[1:])]


def test_frames_of_another_log_and_in_texts_are_none_of_this_one(tmp_path: Path) -> None:
    path, ends = written(tmp_path)
    other = frame_bytes(Header(1, 0, b"another, 16 long"), 5, 4, 0, b"other")
    path.write_bytes(path.read_bytes() + other + frame_bytes(HEADER, 7, 3, 0, b"of a group whose start is lost"))
    assert payloads(path) == BATCHES
    assert read_tail(path, HEADER, None, 0).end == ends[-1]


def test_a_log_of_another_generation_or_version_is_refused(tmp_path: Path) -> None:
    path, _ = written(tmp_path)
    for generation, seq in ((2, 0), (1, 1)):
        with refused(FormatError, "conflict", given=(1, 0), allowed=(generation, seq)):
            read_header(path, generation, seq)
    fields = bytearray(HEADER.pack())
    struct.pack_into("<I", fields, 8, 9)
    struct.pack_into("<I", fields, 60, zlib.crc32(fields[:60]))
    path.write_bytes(bytes(fields) + b"more")
    with refused(FormatError, "version", given=9):
        read_header(path, 1, 0)
    path.unlink()
    assert read_header(path, 1, 0) is None
    os.mkfifo(path)
    with refused(FormatError, "type"):
        read_header(path, 1, 0)


def test_many_heads_without_bodies_are_read_once(tmp_path: Path) -> None:
    """Frames that say they go on to the end: looking into each of them would take the square of the file."""
    path, _ = written(tmp_path)
    count, data = 20_000, path.read_bytes()
    heads = b""
    for at in range(count):
        fields = FRAME.pack(MARK, 9, 9, 0, (count - at - 1) * FRAME_BYTES, 0, 0)
        heads += struct.pack("<I", zlib.crc32(fields, HEADER.seed)) + fields
    path.write_bytes(data + heads)
    assert payloads(path) == BATCHES


# ---- Payloads ----

ARRAYS: dict[str, Any] = {
    "delete.passage": np.array([1], np.int64),
    "edge.type_name.offsets": np.array([0, 1], np.int64),
    "edge.type_name.bytes": np.array([120], np.uint8),
    "edge.end": np.array([[0, -1]], np.int64),
    "edge.type": np.array([0], np.int64),
    "edge.weight": np.array([0.5]),
    "edge.passage": np.array([-1], np.int64),
}
BEFORE = Slots(3, 2)


def test_a_batch_is_read_as_it_was_written() -> None:
    read = read_batches([encode(ARRAYS)], BEFORE, 1)
    assert list(read.arrays) == list(ARRAYS)
    assert all(np.array_equal(read[name], array) and read[name].dtype == array.dtype for name, array in ARRAYS.items())
    assert read.strings("edge.type_name") == ["x"]
    assert read_batches([encode({})], BEFORE, 1).arrays == {}


def test_many_batches_are_read_as_one_by_one() -> None:
    """Whatever arrays each has, the rows are those of all, and a wrong batch is named."""
    payloads, before, one_by_one = [], BEFORE, []
    rng = np.random.default_rng(0)
    for at in range(40):
        arrays: dict[str, Any] = {} if at % 7 == 3 else dict(ARRAYS)
        if at % 3 == 0:
            count = int(rng.integers(1, 4))
            texts = string_arrays("passage.text", [f"{at} ✓" * n for n in range(count)])
            titles = string_arrays("passage.title", [""] * count)
            arrays |= {
                "passage.id.number": np.arange(count),
                "passage.length": np.ones(count, np.int32),
                **texts,
                **titles,
            }
            rows = [{"tags": [f"t{n}"] * n, "year": at, "of": f"o{at}"} if n else None for n in range(count)]
            arrays |= metadata_arrays(rows, {"year": "int64"} if at % 2 else {}, str)
        payloads.append(encode(arrays))
        one_by_one.append(read_batches([payloads[-1]], before, 1 + at))
        before = one_by_one[-1].after
    joined = read_batches(payloads, BEFORE, 1)
    assert joined.after == before
    for name in joined.arrays:
        if not name.startswith("metadata.") and not name.endswith((".offsets", ".indptr")):
            assert np.array_equal(joined[name], np.concatenate([one[name] for one in one_by_one])), name
    for name in ("passage.text", "edge.type_name"):
        assert joined.strings(name) == [text for one in one_by_one for text in one.strings(name)]
    sizes = [group.passages.size for group in joined.metadata]
    assert sum(sizes) == sum(group.passages.size for one in one_by_one for group in one.metadata) > max(sizes) > 5
    payloads[20] = encode(ARRAYS | {"edge.type": np.array([1], np.int64)})
    with refused(FormatError, "range", array="edge.type", least=0, most=0, place="seq 21"):
        read_batches(payloads, BEFORE, 1)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"delete.passage": np.array([3], np.int64)}, ("range", None, {"least": 0, "most": 2})),
        ({"delete.passage": np.array([-1], np.int64)}, ("range", None, {"least": 0, "most": 2})),
        ({"delete.passage": np.array([1], np.int32)}, ("dtype", None, {"dimensions": 1, "given": "int32(1,)"})),
        (
            {"delete.passage": np.array([[1]], np.int64)},
            ("dtype", None, {"allowed": "int64", "dimensions": 1, "given": "int64(1, 1)"}),
        ),
        ({"edge.end": np.array([[3, 0]], np.int64)}, ("range", None, {"least": -2, "most": 2})),
        ({"edge.end": np.array([[0, -3]], np.int64)}, ("range", None, {"least": -2, "most": 2})),
        ({"edge.end": np.zeros((1, 3), np.int64)}, ("shape", None, {"array": "edge.end"})),
        ({"edge.type": np.array([1], np.int64)}, ("range", None, {"least": 0, "most": 0})),
        ({"edge.weight": np.array([0.5, 0.5])}, ("shape", None, {"array": "edge.weight"})),
        ({"edge.weight": np.array([np.nan])}, ("range", None, {"array": "edge.weight"})),
        ({"edge.weight": np.array([0.0])}, ("range", None, {"array": "edge.weight"})),
        ({"edge.passage": np.array([3], np.int64)}, ("range", None, {"least": -1, "most": 2})),
        ({"edge.passage": None}, ("missing", None, {"absent": "edge.passage"})),
        ({"edge.type_name.bytes": np.array([0xFF], np.uint8)}, ("syntax",)),
        ({"edge.type_name.offsets": np.array([0, 9], np.int64)}, ("order",)),
        ({"unknown": np.zeros(1)}, ("unknown", None, {"array": "unknown"})),
        ({"passage.id.number": np.array([1], np.int64)}, ("conflict", None, {"given": 1, "one": "passage.id.offsets"})),
    ],
)
def test_a_batch_that_cannot_be_is_refused(change: dict[str, Any], expected: tuple[Any, ...]) -> None:
    arrays = {name: array for name, array in (ARRAYS | change).items() if array is not None}
    with refused(FormatError, *expected):
        read_batches([encode(arrays)], BEFORE, 1)


def test_a_payload_with_any_byte_changed_is_read_or_refused() -> None:
    data = encode(ARRAYS)
    refused = 0
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 0x41
        try:
            read_batches([bytes(changed)], BEFORE, 1)
        except FormatError:
            refused += 1
    assert refused > len(data) // 2
    for size in range(len(data)):
        with pytest.raises(FormatError):
            read_batches([data[:size]], BEFORE, 1)
