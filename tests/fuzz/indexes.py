"""Targets of an index's own files: the snapshot, the log of its changes, and the pointer between them.

Bytes are changed both as they are and with checksums that fit afterwards. Without the second, only the checksums would
be tested. What is read is compared with the checksums as FORMAT.md states them, computed here.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from fuzz.targets import Plain, Target
from golden.make import HERE
from hopfuse.errors import FormatError
from index.damages import NAMES, digest
from index.index_files import ENTRY, Forge, head_bytes
from index.log_files import FRAME, FRAME_BYTES, decode, encode, frame_bytes, read_log
from index.log_files import HEADER_BYTES as LOG_HEADER_BYTES

#: Numbers that may stand in an array of numbers.
WHOLE = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 4, 7, 127, 255, 2**31 - 1, 2**31, 2**62, 2**63 - 1)
REAL = (0.0, -0.0, 1.0, -1.0, float("nan"), float("inf"), -float("inf"), 5e-324, 1e308, 1e-40, 2.0**-65, 2.0**65)
#: Fields of a header that are numbers, and the bits of each.
FIELDS = {1: 32, 2: 32, 3: 64, 4: 64, 5: 32, 6: 32, 7: 8, 8: 8, 9: 8, 11: 64}
SIZES = (0, 1, 2, 3, 4, 5, 8, 2**16, 2**31, 2**32, 2**48, 2**48 + 1, 2**62, 2**63, 2**64 - 1)


# ---- Reading ---------------------------------------------------------------------------------------------------------


def use(index: hf.Index) -> None:
    """Read every part of an index, and search it, as a program would."""
    index.info()
    rows = range(index.num_passages)
    texts, titles, ids = ([*part] for part in (index.texts, index.titles, index.passage_ids))
    assert len(texts) == len(titles) == len(ids) == index.num_passages
    for part in (index.documents, index.languages, index.entity_names, index.entity_aliases, index.stated):
        assert len([*part]) in (index.num_passages, index.num_entities)
    for row in rows:
        index.metadata.row(row)
    for name in index.metadata:
        assert len([*index.metadata[name]]) == index.num_passages
    if index.vectors is not None and index.num_passages:
        corpus = index.corpus
        hf.dense_topk(np.ones((1, corpus.dim), np.float32), corpus, min(2, index.num_passages))
    if index.graph is not None and index.graph.num_nodes:
        walk = hf.ppr(index.graph, [{0: 1.0}], max_iter=5).scores
        assert np.isfinite(walk).all()
    if index.facts is not None:
        assert index.facts.num_passages == index.num_passages
    if index.lexical is not None:
        assert index.lexical.num_passages == index.num_passages


def read_index(data: bytes, folder: Path) -> None:
    """Open a snapshot, use it lazily and read it whole; what is accepted must have checksums that hold."""
    (folder / NAMES[0]).write_bytes(data)
    (folder / NAMES[2]).write_bytes(f"{NAMES[0]}\n".encode())
    try:
        use(hf.Index.open(folder))
    finally:
        index = hf.Index.open(folder, verify="full")
        assert checksums_hold(data), "an index was read whose checksums do not hold"
    use(index)
    index.save(folder / "copy")
    assert digest(hf.Index.open(folder / "copy", verify="full")) == digest(index)


def checksums_hold(data: bytes) -> bool:
    """Return whether the checksums of a generation file, as FORMAT.md states them, are those of its bytes."""
    forge = Forge(data)
    return forge.seal() == data and not any(_gaps(forge, data))


def _gaps(forge: Forge, data: bytes) -> bytes:
    """Return the bytes between the payloads, which must be zeros."""
    kept, at = b"", head_bytes(forge.header[5], forge.header[6])
    for *_, offset, length in forge.rows:
        kept, at = kept + data[at:offset], offset + length
    return kept + data[at:]


@cache
def base() -> bytes:
    """The generation that logs follow."""
    return (HERE / "log" / "strings.generation").read_bytes()


def read_live(data: bytes, folder: Path) -> None:
    """Open an index with a log, compare the batches with those whose checksums hold, and compact it."""
    (folder / NAMES[0]).write_bytes(base())
    (folder / NAMES[1]).write_bytes(data)
    (folder / NAMES[2]).write_bytes(f"{NAMES[0]}\n".encode())
    index = hf.Index.open(folder, verify="full")
    assert index.seq == whole_batches(data), "other batches were read than those whose checksums hold"
    use(index)
    before = digest(index)
    with hf.Index.open(folder, writable=True) as live:
        live.compact()
    assert digest(hf.Index.open(folder, verify="full")) == before, "a compaction changed the index"


def whole_batches(data: bytes) -> int:
    """Return the number of batches from the beginning of a log whose checksums hold."""
    if len(data) < LOG_HEADER_BYTES:
        return 0
    seed, at, seq = zlib.crc32(data[32:48]), LOG_HEADER_BYTES, 0
    while at + FRAME_BYTES <= len(data):
        head = data[at : at + FRAME_BYTES]
        _, number, _, _, length, checksum, _ = FRAME.unpack(head[4:])
        end = at + FRAME_BYTES + length + -length % 8
        body = data[at + FRAME_BYTES : end]
        fits = struct.pack("<I", zlib.crc32(head[4:], seed)) == head[:4] and zlib.crc32(body, seed) == checksum
        if not fits or end > len(data) or number != seq + 1:
            break
        seq, at = number, end
    return seq


# ---- Changes with checksums that fit ---------------------------------------------------------------------------------


def sealed_index(data: bytes, most: int, draw: random.Random, plain: Plain) -> bytes:
    """Change a section or a field of a snapshot, and make the checksums fit nine times in ten."""
    if draw.random() < 0.1:
        return plain(data, most)
    try:
        forge = Forge(data)
        for _ in range(draw.choice((1, 1, 2, 3))):
            _change_section(forge, draw, plain)
        found = forge.seal()
    except (struct.error, ValueError, IndexError, UnicodeDecodeError, OverflowError, KeyError):
        return plain(data, most)
    return found if len(found) <= most else plain(data, most)


def _change_section(forge: Forge, draw: random.Random, plain: Plain) -> None:
    names = forge.names
    name, what = draw.choice(names), draw.random()
    if what < 0.6:
        forge.replace({name: _changed_array(forge.array(name).copy(), draw, plain)})
    elif what < 0.7:
        other = draw.choice(names)
        forge.replace({name: forge.array(other).copy()})
    elif what < 0.8:
        forge.replace({name: None})
    elif what < 0.9:
        row = forge.row(name)
        place = draw.randrange(1, len(row))
        row[place] = draw.choice(SIZES) % (2**32 if place < 3 else 2**64)
    else:
        place, bits = draw.choice([*FIELDS.items()])
        forge.header[place] = draw.choice(SIZES) % 2**bits


def _changed_array(array: np.ndarray[Any, Any], draw: random.Random, plain: Plain) -> np.ndarray[Any, Any]:
    """Return an array with numbers changed, rows dropped, repeated or swapped, or bytes changed."""
    # An earlier change may have made it one number, or many rows without columns.
    what, rows = draw.random(), len(array) if array.ndim and array.size else 0
    if what < 0.4 and array.size:
        flat = array.reshape(-1)
        for _ in range(draw.choice((1, 1, 2))):
            flat[draw.randrange(flat.size)] = _number(array, draw)
        return array
    if what < 0.5 and rows:
        return array[: draw.randrange(rows)]
    if what < 0.6 and rows:
        return np.concatenate([array, array[draw.randrange(rows) :]])
    if what < 0.7 and rows:
        order = [*range(rows)]
        draw.shuffle(order)
        return array[order]
    raw = plain(array.tobytes(), max(array.nbytes, 64))
    width = array.itemsize * (array.shape[1] if array.ndim == 2 else 1)
    kept = raw[: len(raw) // width * width] if width else b""
    return np.frombuffer(kept, array.dtype).reshape(-1, *array.shape[1:]).copy()


def _number(array: np.ndarray[Any, Any], draw: random.Random) -> Any:
    if array.dtype.kind == "f":
        with np.errstate(all="ignore"):
            return np.array(draw.choice(REAL)).astype(array.dtype)
    if draw.random() < 0.3:
        return draw.choice(array.reshape(-1).tolist())
    return np.array(draw.choice(WHOLE)).astype(array.dtype)


def sealed_log(data: bytes, most: int, draw: random.Random, plain: Plain) -> bytes:
    """Change the batches of a log, their order or their heads, and make the checksums fit nine times in ten."""
    if draw.random() < 0.1:
        return plain(data, most)
    try:
        found = _changed_log(data, draw, plain)
    except (struct.error, ValueError, IndexError, UnicodeDecodeError, OverflowError, KeyError, AssertionError):
        return plain(data, most)
    return found if len(found) <= most else plain(data, most)


def _changed_log(data: bytes, draw: random.Random, plain: Plain) -> bytes:
    frames = [*_frames(data)]
    at, what = draw.randrange(len(frames)), draw.random()
    if what < 0.7:
        for _ in range(draw.choice((1, 1, 2, 3))):
            frames[at] = frames[at]._replace(payload=_changed_payload(frames[at].payload, draw, plain))
    elif what < 0.8:
        frames.insert(draw.randrange(len(frames) + 1), frames[at])
    elif what < 0.85:
        del frames[at]
    elif what < 0.9:
        draw.shuffle(frames)
    keeps = draw.random() < 0.1
    written, whole = [], data[:LOG_HEADER_BYTES]
    for seq, one in enumerate(frames, 1):
        number, synced, time = (one.seq, one.synced, one.time) if keeps else (seq, seq - 1, one.time)
        if draw.random() < 0.03:
            number, synced, time = (draw.choice((0, 1, 2, 3, 2**63, 2**64 - 1)) for _ in range(3))
        written.append(frame_bytes(number, synced, time, one.payload, salt=whole[32:48]))
    return whole + b"".join(written)


def _frames(data: bytes) -> Iterator[Any]:
    """Yield the batches of a log up to the first that is not whole."""

    class _Path:
        def read_bytes(self) -> bytes:
            return data

    for frame in read_log(_Path()):  # type: ignore[arg-type]
        if len(frame.payload) % 8 or FRAME_BYTES + len(frame.payload) > len(data):
            return
        yield frame


def _changed_payload(payload: bytes, draw: random.Random, plain: Plain) -> bytes:
    """Return a payload with an array changed, dropped or exchanged, or a field of its table changed."""
    arrays = decode(payload)
    name, what = draw.choice([*arrays]), draw.random()
    if what < 0.65:
        arrays[name] = _changed_array(arrays[name].copy(), draw, plain)
    elif what < 0.75:
        arrays[name] = draw.choice([*arrays.values()])
    elif what < 0.85:
        del arrays[name]
    else:
        changed = bytearray(payload)
        row = draw.randrange(len(arrays))
        at = 8 + ENTRY.size * row + 32
        width = draw.choice((4, 8))
        place = at + draw.choice((0, 4) if width == 4 else (8, 16, 24, 32))
        changed[place : place + width] = (draw.choice(SIZES) % 2 ** (8 * width)).to_bytes(width, "little")
        return bytes(changed)
    return encode(arrays)


def read_pointer(data: bytes, folder: Path) -> None:
    """Open an index whose pointer is the input."""
    (folder / NAMES[0]).write_bytes(base())
    (folder / NAMES[2]).write_bytes(data)
    hf.Index.open(folder, verify="full")
    assert data == f"{NAMES[0]}\n".encode(), "another pointer than the index's was followed"


TARGETS = (
    Target("index", read_index, 1_500, sealed_index, most=16_384, refuses=FormatError),
    Target("log", read_live, 300, sealed_log, most=16_384, refuses=FormatError),
    Target(
        "pointer",
        read_pointer,
        4_000,
        None,
        ("generation-", ".hopfuse", "000000000001", "\n"),
        most=96,
        refuses=FormatError,
    ),
)
