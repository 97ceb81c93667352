"""The log: torn at any byte, damaged at any byte, forged, and written while it is read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import FormatError
from index.live_model import differences
from index.log_files import (
    FRAME_BYTES,
    HEADER_BYTES,
    decode,
    encode,
    frame_bytes,
    head_bytes,
    header_bytes,
    read_log,
    write_log,
)
from refusals import refused

#: How many passages each batch deletes, so that one is not mistaken for another.
BATCHES = [1, 3, 0, 2]
HISTORY = [
    {"seq": seq, "time": 1000 + seq, "counts": {"deleted passages": -count} if count else {}}
    for seq, count in enumerate(BATCHES, 1)
]


def index_folder(folder: Path) -> Path:
    """An index of three passages, whose ids are numbers, and two entities."""
    passages = [{"id": id, "text": ""} for id in (100, 101, 102)]
    hf.Index.build(passages=passages, entities=["a", "b"], graph=[{"src": 0, "dst": 3, "type": "x"}]).save(folder)
    return folder


def written(folder: Path, groups: tuple[int, ...] = (1, 1, 1, 1)) -> tuple[Path, list[int]]:
    """A log of four batches, written in groups of so many, and where each of its frames ends."""
    payloads = [encode({"delete.passage": np.arange(count)} if count else {}) for count in BATCHES]
    return write_log(index_folder(folder), payloads, groups)


def batches(path: Path) -> list[dict[str, Any]]:
    """The batches that the index has read from its log."""
    live = hf.Index.open(path.parent, live=True)
    found = live.history() if live.seq else []
    assert len(found) == live.seq
    return found


def check(path: Path, count: int, *, in_full: bool) -> None:
    """The index has read so many batches; their contents are compared if they are asked for."""
    assert hf.Index.open(path.parent).seq == count
    assert not in_full or batches(path) == HISTORY[:count]


def test_a_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    path, ends = written(tmp_path)
    data = path.read_bytes()
    assert [(f.seq, f.time, f.synced) for f in read_log(path)] == [(seq, 1000 + seq, seq - 1) for seq in range(1, 5)]
    assert ends[-1] == len(data)
    assert batches(path) == HISTORY
    path.write_bytes(data[: ends[2]])
    follower = hf.Index.open(tmp_path, live=True)
    assert (follower.seq, follower.index.num_passages) == (2, 0)
    path.write_bytes(data[:HEADER_BYTES] + bytes(ends[2] - HEADER_BYTES) + data[ends[2] :])
    assert follower.refresh().seq == 4  # what was read before is not read again


def test_a_log_torn_at_any_byte_has_the_batches_that_are_whole(tmp_path: Path) -> None:
    path, ends = written(tmp_path)
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        check(path, sum(end <= size for end in ends[1:]), in_full=size in ends)
        path.write_bytes(data[:size] + bytes(len(data) - size))  # the file has its length, the pages came not
        if size >= HEADER_BYTES:
            left = data[:size].ljust(len(data), b"\0")
            check(path, sum(left[:end] == data[:end] for end in ends[1:]), in_full=size in ends)


@pytest.mark.parametrize("bit", [pytest.param(0, marks=pytest.mark.full), 3, pytest.param(7, marks=pytest.mark.full)])
def test_a_damaged_byte_before_a_later_commit_is_an_error_and_in_the_last_group_a_torn_tail(
    tmp_path: Path, bit: int
) -> None:
    for at_group, (groups, last) in enumerate((((1, 1, 1, 1), 3), ((1, 1, 2), 2), ((4,), 0))):
        path, ends = written(tmp_path / str(at_group), groups)
        data = path.read_bytes()
        for at in range(len(data)):
            changed = bytearray(data)
            changed[at] ^= 1 << bit
            path.write_bytes(changed)
            if at < ends[last]:
                seq = None if at < HEADER_BYTES else 1 + sum(end <= at for end in ends[1:])
                with refused(FormatError, "damaged", seq=seq):
                    hf.Index.open(path.parent)
            else:
                check(path, sum(end <= at for end in ends[1:]), in_full=at in ends)


def test_frames_of_another_log_and_in_texts_are_none_of_this_one(tmp_path: Path) -> None:
    path, _ = written(tmp_path)
    data, other = path.read_bytes(), frame_bytes(5, 4, 0, encode({}), salt=b"another, 16 long")
    path.write_bytes(data + other + frame_bytes(7, 3, 0, encode({})))  # of a group whose start is lost
    assert batches(path) == HISTORY
    with hf.Index.open(tmp_path, writable=True):
        assert path.read_bytes() == data


def test_a_log_of_another_generation_or_version_is_refused(tmp_path: Path) -> None:
    path, _ = written(tmp_path)
    for generation, seq in ((2, 0), (1, 1)):
        path.write_bytes(header_bytes(generation, seq))
        with refused(FormatError, "conflict", given=(generation, seq), allowed=(1, 0)):
            hf.Index.open(tmp_path)
    path.write_bytes(header_bytes(version=9) + b"more")
    with refused(FormatError, "version", given=9):
        hf.Index.open(tmp_path)
    path.unlink()
    assert hf.Index.open(tmp_path).seq == 0
    os.mkfifo(path)
    with refused(FormatError, "type"):
        hf.Index.open(tmp_path)


def test_many_heads_without_bodies_are_read_once(tmp_path: Path) -> None:
    """Frames that say they go on to the end: looking into each of them would take the square of the file."""
    path, _ = written(tmp_path)
    count = 20_000
    heads = b"".join(head_bytes(9, 9, 0, (count - at - 1) * FRAME_BYTES, 0) for at in range(count))
    path.write_bytes(path.read_bytes() + heads)
    assert batches(path) == HISTORY


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


def history_of(folder: Path, *payloads: bytes) -> list[dict[str, Any]]:
    """The history of the index of :func:`index_folder` with a log of these payloads."""
    write_log(folder, payloads)
    return hf.Index.open(folder, live=True).history()


def test_a_batch_is_read_as_it_was_written(tmp_path: Path) -> None:
    payload = encode(ARRAYS)
    read = decode(payload)
    assert list(read) == list(ARRAYS)
    assert all(np.array_equal(read[name], array) and read[name].dtype == array.dtype for name, array in ARRAYS.items())
    found = history_of(index_folder(tmp_path), payload, encode({}))
    assert [batch["counts"] for batch in found] == [{"deleted passages": -1, "edges": 1}, {}]
    index = hf.Index.open(tmp_path)
    assert (list(index.passage_ids), index.graph is not None) == ([100, 102], True)
    assert index.graph is not None
    assert index.graph.edge_type_names == ("x",)
    assert [part.tolist() for part in index.graph.edges()] == [[0], [2], [1.5], [0]]


def test_many_batches_are_read_as_one_by_one(tmp_path: Path) -> None:
    """Whatever arrays each has, the rows are those of all, and a wrong batch is named."""
    rng = np.random.default_rng(0)
    texts, metadata = ["", "", ""], [None] * 3
    with hf.Index.open(index_folder(tmp_path / "written"), writable=True) as live:
        for at in range(40):
            count = int(rng.integers(1, 4)) if at % 3 == 0 else 0
            rows = [{"tags": [f"t{n}"] * n, "year": at, "of": f"o{at}"} if n else None for n in range(count)]
            with live.change() as change:
                change.add_entities([f"e{at}"])
                if at % 7 != 3:
                    change.add_edges([{"src": ("passage", 100), "dst": ("entity", f"e{at}"), "type": f"k{at % 5}"}])
                change.add_passages(
                    {"id": 1000 + 10 * at + n, "text": f"{at} ✓" * n, "metadata": row} for n, row in enumerate(rows)
                )
            texts += [f"{at} ✓" * n for n in range(count)]
            metadata += rows
        last = live.refresh()
    payloads = [frame.payload for frame in read_log(tmp_path / "written" / "log-000000000001.hopfuse")]
    assert len(payloads) == 40
    folder = index_folder(tmp_path / "read")
    follower = hf.Index.open(folder, live=True)
    for count in range(1, 41):
        write_log(folder, payloads[:count])
        assert follower.refresh().seq == count
    joined = hf.Index.open(folder, verify="full")
    assert differences(joined, follower.index) == differences(joined, last) == []
    assert list(joined.texts) == texts
    assert list(joined.metadata["tags"]) == [None if row is None else tuple(row["tags"]) for row in metadata]
    for name in ("year", "of"):
        assert list(joined.metadata[name]) == [None if row is None else row[name] for row in metadata]
    assert list(joined.entity_names) == ["a", "b", *(f"e{at}" for at in range(40))]
    assert len(follower.history()) == 40
    wrong = decode(payloads[20]) | {"edge.type": np.array([1], np.int64)}
    payloads[20] = encode(wrong)
    with refused(FormatError, "range", array="edge.type", least=0, most=0, place="seq 21"):
        history_of(folder, *payloads)


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
        ({"edge.passage": np.array([3], np.int64)}, ("range", None, {"least": -2, "most": 2})),
        ({"edge.passage": np.array([-3], np.int64)}, ("range", None, {"least": -2, "most": 2})),
        ({"edge.passage": None}, ("missing", None, {"absent": "edge.passage"})),
        ({"edge.type_name.bytes": np.array([0xFF], np.uint8)}, ("syntax",)),
        ({"edge.type_name.offsets": np.array([0, 9], np.int64)}, ("order",)),
        ({"unknown": np.zeros(1)}, ("unknown", None, {"array": "unknown"})),
        ({"passage.id.number": np.array([1], np.int64)}, ("conflict", None, {"given": 1, "one": "passage.id.offsets"})),
    ],
)
def test_a_batch_that_cannot_be_is_refused(tmp_path: Path, change: dict[str, Any], expected: tuple[Any, ...]) -> None:
    arrays = {name: array for name, array in (ARRAYS | change).items() if array is not None}
    with refused(FormatError, *expected):
        history_of(index_folder(tmp_path), encode(arrays))


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.full), 5])
def test_a_payload_with_any_byte_changed_is_read_or_refused(tmp_path: Path, every: int) -> None:
    data = encode(ARRAYS)
    refused, folder = 0, index_folder(tmp_path)
    for at in range(0, len(data), every):
        changed = bytearray(data)
        changed[at] ^= 0x41
        try:
            history_of(folder, bytes(changed))
        except FormatError:
            refused += 1
    assert refused > len(data) // every // 2
    for size in range(0, len(data), every):
        with pytest.raises(FormatError):
            history_of(folder, data[:size])
