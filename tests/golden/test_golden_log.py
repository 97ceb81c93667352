"""The log is held to committed files, and their bytes to section 6 of FORMAT.md.

The layout is read from the tables of FORMAT.md.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import hopfuse as hf
import numpy as np
import pytest
from golden.make import FIRST_SECOND, HERE, SALT, log_files, logs
from golden.test_golden import ANEW, SIZES, SPECIFICATION, codes, fields, opened, read_fields
from index.index_files import assert_same

LOGS = ("strings", "integers")
SECTION = SPECIFICATION.split("## 6. The log")[1]


def files(name: str) -> tuple[bytes, bytes]:
    """A generation and its log, as they are committed."""
    return tuple((HERE / "log" / f"{name}.{kind}").read_bytes() for kind in ("generation", "log"))  # type: ignore[return-value]


def folder_of(name: str, folder: Path) -> Path:
    for kind, data in zip(("generation", "log"), files(name), strict=True):
        (folder / f"{kind}-000000000001.hopfuse").write_bytes(data)
    (folder / "CURRENT").write_bytes(b"generation-000000000001.hopfuse\n")
    return folder


def test_the_files_are_those_of_the_makers() -> None:
    assert set(logs()) == set(LOGS)
    assert {path.name for path in (HERE / "log").iterdir()} == {
        f"{n}.{kind}" for n in LOGS for kind in ("generation", "log")
    }


@pytest.mark.parametrize("name", LOGS)
def test_the_writer_writes_these_bytes(name: str) -> None:
    pytest.importorskip("bm25s", reason="words of new passages are read by bm25s (extra text)")
    assert log_files(*logs()[name]) == files(name), ANEW


def test_the_reader_reads_these_bytes(tmp_path: Path) -> None:
    index = hf.Index.open(folder_of("strings", tmp_path), verify="full")
    (tmp_path / "without").mkdir()
    changed = opened("changed", tmp_path / "without")  # the same changes, without words
    assert_same(index.with_lexical(None), changed)
    assert index.lexical is not None
    assert index.lexical.terms == ("ada", "notes", "wrote", "首都")
    assert index.lexical.counts is not None
    assert index.lexical.counts.tolist() == [2, 2, 1, 1, 3]
    assert (list(index.documents), list(index.languages)) == (["手紙", "notes"], ["en", "en"])
    assert dict(zip(index.entity_names, index.stated.tolist(), strict=True)) == {
        "Ada Lovelace": True,
        "Charles Babbage": True,
        "notes": True,  # the first by the edge that names it
        "": True,
        "wrote": False,
    }
    assert [batch["counts"] for batch in hf.Index.open(tmp_path, live=True).history()] == [
        {
            "deleted passages": -1,
            "passages": 1,
            "entities": 2,
            "stated entities": 1,
            "aliases": 2,
            "edges": 4,
            "statements of facts": 2,
        },
        {
            "deleted passages": -1,
            "deleted entities": -1,
            "deleted aliases": -1,
            "deleted edges": -1,
            "deleted facts": -1,
            "statements of facts": 3,
        },
    ]


def test_ids_may_be_numbers(tmp_path: Path) -> None:
    index = hf.Index.open(folder_of("integers", tmp_path), verify="full")
    assert (list(index.passage_ids), list(index.documents), index.seq) == ([70, 2**40], [2**40, -7], 2)
    assert index.info()["graph"]["nodes"] == 6


# ---- FORMAT.md against the bytes ------------------------------------------------------------------------------------


def table(field: str) -> list[tuple[int, str, str]]:
    """The rows (offset, type, field) of the table whose last column is called so."""
    part = SECTION.split(f"| {field} |\n|---:|---|---|\n")[1].split("\n\n")[0]
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \| (.*) \|$", part, re.M)
    return [(int(at), kind.strip(), what) for at, kind, what in rows if kind.strip()]


class Frame(NamedTuple):
    """The head of a batch by the offsets of its fields, and its payload."""

    head: dict[int, Any]
    payload: bytes


def frames(log: bytes) -> Iterator[Frame]:
    """The batches, as the tables of the specification lay them out."""
    rows, seed, at = table("Field of a frame"), zlib.crc32(SALT), 64
    size = max(at for at, _, _ in rows) + 4
    while at < len(log):
        head = read_fields(rows, log[at : at + size])
        end = at + size + head[32] + -head[32] % 8
        assert zlib.crc32(log[at + 4 : at + size], seed) == head[0]
        assert zlib.crc32(log[at + size : end], seed) == head[40]
        assert not any(log[at + size + head[32] : end])
        yield Frame(head, log[at + size : at + size + head[32]])
        at = end
    assert at == len(log)


def arrays(payload: bytes) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The dtype and shape of each array of a payload, which stand where the specification puts them."""
    count, zero = struct.unpack_from("<2I", payload)
    assert zero == 0
    found, end = {}, 8 + 72 * count
    for row in range(count):
        entry = fields("Row of the section table", payload[8 + 72 * row : 80 + 72 * row])
        dtype, shape = codes("dtype", "Row of the section table")[entry[32]], entry[40][: entry[36]]
        assert entry[56] == -(-end // 8) * 8
        assert not any(payload[end : entry[56]])
        assert entry[64] == int(np.prod(shape)) * SIZES[dtype]
        end = entry[56] + entry[64]
        found[entry[0].rstrip(b"\0").decode()] = dtype, shape
    assert len(payload) == -(-end // 8) * 8
    return found


@pytest.mark.parametrize("name", LOGS)
def test_the_header_and_the_frames_are_as_specified(name: str) -> None:
    generation, log = files(name)
    header = read_fields(table("Field of the header"), log)
    magic = bytes.fromhex(re.search(r"magic `([0-9A-F ]+)`", SECTION)[1])  # type: ignore[index]
    assert [header[at] for at in (0, 8, 12)] == [magic, 1, 0x01020304]
    assert (header[16], header[24]) == (1, fields("Header", generation)[48]) == (1, 0)
    assert (header[32], header[48], header[60]) == (SALT, bytes(12), zlib.crc32(log[:60]))
    heads = [frame.head for frame in frames(log)]
    mark = int(re.search(r"\| mark `(0x[0-9a-f]+)`", SECTION)[1], 16)  # type: ignore[index]
    assert [(h[4], h[8], h[16], h[24], h[44]) for h in heads] == [
        (mark, seq, seq - 1, (FIRST_SECOND + seq - 1) * 10**6, 0) for seq in (1, 2)
    ]


Kind = tuple[str, int]


def rows(part: str) -> Iterator[tuple[list[str], list[str]]]:
    """The names of each row of a table of arrays, and what it says of their dtypes and shapes."""
    for names, what in re.findall(r"^\| (`[a-z_]+\.[a-z_.]+`[^|]*) \| ([^|]+) \|", part, re.M):
        yield re.findall(r"`([a-z_.]+)`", names), what.strip().split("; ")


def kinds(what: str) -> list[Kind]:
    """The dtypes and dimensions that one part of a description stands for."""
    dtype, _, shape = what.partition(" (")
    return [("int64", 1), ("uint8", 1)] if dtype.startswith("strings") else [(dtype, 1 + shape.count(","))]


def specified() -> dict[str, Kind]:
    """The dtype and dimensions of each array of a batch; a vector's dtype is its index's."""
    sections = SPECIFICATION.split("## 4. Sections")[1].split("## 5. ")[0]
    known = {n: k for names, whats in rows(sections) for n, k in zip(names, kinds(whats[0]), strict=True)}
    found: dict[str, Kind] = {}
    for names, whats in rows(SECTION.split("### The payload")[1]):
        left = [name for name in known if name.startswith("metadata.")] if "metadata." in names else names
        for what in whats:
            if what == "as in section 4":
                found |= {name: known[name] for name in left if name in known}
                left = [name for name in left if name not in known]
            elif " is " in what:
                name, dtype = re.fullmatch(r"`([a-z_.]+)` is ([a-z0-9]+)", what).groups()  # type: ignore[union-attr]
                found[name] = dtype, found[name][1]
            else:
                own = kinds(what)
                found |= dict(zip(left, own, strict=False))
                left = left[len(own) :]
        assert left == []
    return found


def test_every_array_of_the_specification_is_in_a_golden_log_as_it_is_specified() -> None:
    seen: dict[str, set[Kind]] = {}
    for name in LOGS:
        for frame in frames(files(name)[1]):
            for array, (dtype, shape) in arrays(frame.payload).items():
                seen.setdefault(array, set()).add((dtype, len(shape)))
    vectors = {("float32", 2), ("float16", 2)}
    assert seen.pop("passage.vectors") | seen.pop("entity.vectors") == vectors
    wanted = {name: {kind} for name, kind in specified().items() if kind != ("vector", 2)}
    assert seen == wanted
