"""The writer, the reader and the recipes are held to committed files, and the bytes to FORMAT.md's own numbers.

Nothing here imports a constant from the modules under test: the layout is read from the tables of FORMAT.md.
"""

from __future__ import annotations

import re
import struct
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from golden.make import (
    ALIASES,
    DOCUMENT_NUMBERS,
    DOCUMENTS,
    ENTITIES,
    HERE,
    LANGUAGES,
    NUMBERS,
    PASSAGES,
    STATED,
    facts,
    graph,
    index_bytes,
    indexes,
    terms,
    traces,
    vectors,
)
from hopfuse.index import EncoderInfo, WordInfo
from hopfuse.recipes import RECIPES
from index.index_files import assert_same

INDEXES = ("strings", "integers", "bfloat16", "int8", "plain", "nothing", "changed")
ANEW = "this is a change of what users have: if it is meant, run python tests/golden/make.py and commit the files"
SPECIFICATION = (Path(hf.__file__).parent / "index" / "FORMAT.md").read_text(encoding="utf-8")
WIDTHS = {"u8": "B", "u32": "I", "u64": "Q", "u64 × 2": "2Q"}


def golden(name: str) -> bytes:
    return (HERE / "index" / f"{name}.hopfuse").read_bytes()


def opened(name: str, directory: Path) -> hf.Index:
    (directory / "generation-000000000001.hopfuse").write_bytes(golden(name))
    (directory / "CURRENT").write_bytes(b"generation-000000000001.hopfuse\n")
    return hf.Index.open(directory, verify="full")


def test_the_files_are_those_of_the_makers_and_small() -> None:
    assert set(indexes()) == set(INDEXES) == {path.stem for path in (HERE / "index").iterdir()}
    assert set(RECIPES) == {path.stem for path in (HERE / "traces").iterdir()}
    files = [path for folder in ("index", "log", "traces") for path in (HERE / folder).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 200_000


@pytest.mark.parametrize("name", INDEXES)
def test_the_writer_writes_these_bytes(name: str) -> None:
    assert index_bytes(indexes()[name]) == golden(name), ANEW


@pytest.mark.parametrize("name", INDEXES)
def test_the_reader_reads_these_bytes(tmp_path: Path, name: str) -> None:
    index = opened(name, tmp_path)
    assert_same(index, indexes()[name])
    index.save(tmp_path / "again")
    assert (tmp_path / "again" / "generation-000000000001.hopfuse").read_bytes() == golden(name)


def test_the_reader_returns_what_was_written(tmp_path: Path) -> None:
    index = opened("strings", tmp_path)
    assert list(zip(index.passage_ids, index.titles, index.texts, strict=True)) == PASSAGES
    assert (list(index.documents), list(index.languages)) == (DOCUMENTS, LANGUAGES)
    assert (list(index.entity_names), index.stated.tolist()) == (ENTITIES, STATED)
    assert index.entity_aliases[:3] == [tuple(ALIASES[0]), (), tuple(ALIASES["東京"])]
    assert index.encoder == EncoderInfo("golden", 5, False)
    assert index.words == WordInfo(3, "english", None, ("a", "the"))
    assert np.array_equal(index.vectors, vectors(3, 5))
    assert index.facts is not None
    assert np.array_equal(index.facts.rows, facts().rows)
    assert index.lexical is not None
    assert index.lexical.terms == terms().terms
    assert index.graph is not None
    expected = graph(directed=False, weighted=True).to_arrays()
    assert all(np.array_equal(array, expected[name]) for name, array in index.graph.to_arrays().items())
    integers = opened("integers", tmp_path)
    assert (list(integers.passage_ids), list(integers.documents)) == (NUMBERS, DOCUMENT_NUMBERS)


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_a_recipe_finds_and_explains_what_it_did(name: str) -> None:
    assert traces(name) == (HERE / "traces" / f"{name}.json").read_text(encoding="utf-8"), ANEW


# ---- FORMAT.md against the bytes ------------------------------------------------------------------------------------


def table(heading: str) -> list[tuple[int, str, str]]:
    """The rows (offset, type, field) under a heading of the specification."""
    part = SPECIFICATION.split(f"### {heading}\n")[1].split("\n#")[0]
    return [
        (int(at), kind.strip(), field)
        for at, kind, field in re.findall(r"^\| (\d+) \| ([^|]+) \| (.*) \|$", part, re.M)
    ]


def fields(heading: str, data: bytes) -> dict[int, Any]:
    """Each field of a table by its offset, read as its type says."""
    return read_fields(table(heading), data)


def read_fields(rows: list[tuple[int, str, str]], data: bytes) -> dict[int, Any]:
    """Each field of some rows by its offset, read as its type says."""
    found: dict[int, Any] = {}
    for at, kind, _ in rows:
        count = re.fullmatch(r"(\d+) bytes", kind)
        values = struct.unpack_from(f"<{count[1]}s" if count else f"<{WIDTHS[kind]}", data, at)
        found[at] = values[0] if len(values) == 1 else values
    return found


def number(pattern: str) -> int:
    found = re.search(pattern, SPECIFICATION)
    assert found is not None, pattern
    return int(found[1])


def codes(name: str, heading: str) -> list[str]:
    """The codes of a field, in their order."""
    field = next(field for _, _, field in table(heading) if field.startswith(name))
    return [
        one for _, one in sorted((int(at), one) for at, one in re.findall(r"(\d) (?:inner product \()?`(\w+)`", field))
    ]


HEADER_BYTES, ENTRY_BYTES = number(r"header +(\d+) bytes"), number(r"(\d+) bytes × sections")
SIZES = {"uint8": 1, "int32": 4, "int64": 8, "float16": 2, "float32": 4, "float64": 8, "bfloat16": 2}


def entries(data: bytes) -> list[tuple[str, str, tuple[int, ...], int, int]]:
    """(name, dtype, shape, offset, length) of every section, as the specification lays them out."""
    found = []
    for row in range(fields("Header", data)[32]):
        start = HEADER_BYTES + ENTRY_BYTES * row
        entry = fields("Row of the section table", data[start : start + ENTRY_BYTES])
        shape = entry[40][: entry[36]]
        found.append(
            (
                entry[0].rstrip(b"\0").decode(),
                codes("dtype", "Row of the section table")[entry[32]],
                shape,
                entry[56],
                entry[64],
            )
        )
    return found


@pytest.mark.parametrize("name", INDEXES)
def test_the_header_is_as_specified(name: str) -> None:
    data, index = golden(name), indexes()[name]
    header = fields("Header", data)
    magic = bytes.fromhex(re.search(r"magic `([0-9A-F ]+)`", SPECIFICATION)[1])  # type: ignore[index]
    assert (header[0], header[8]) == (magic, number(r"format version, (\d+) \|"))
    assert number(r"# The index format, version (\d+)") == header[8] == 1
    assert (header[12], header[16], header[24]) == (0x01020304, len(data), 1)
    assert codes("metric", "Header")[header[40]] == index.metric
    assert codes("storage", "Header")[header[41]] == index.storage
    assert header[42] == (index.graph is not None and index.graph.directed)
    assert (header[43], header[48]) == (bytes(5), 0)
    head = HEADER_BYTES + ENTRY_BYTES * header[32] + 4 * header[36]
    assert header[56] == zlib.crc32(data[HEADER_BYTES:head])
    assert header[60] == zlib.crc32(data[:60])
    assert HEADER_BYTES == 64
    assert max(at for at, _, _ in table("Header")) + 4 == HEADER_BYTES
    assert max(at for at, _, _ in table("Row of the section table")) + 8 == ENTRY_BYTES == 72


@pytest.mark.parametrize("name", INDEXES)
def test_payloads_stand_where_the_specification_puts_them(name: str) -> None:
    data = golden(name)
    header, rows = fields("Header", data), entries(data)
    head = HEADER_BYTES + ENTRY_BYTES * header[32] + 4 * header[36]
    checksums, end = [], head
    for section, dtype, shape, offset, length in rows:
        assert offset == -(-end // 64) * 64, section
        assert not any(data[end:offset]), section
        assert length == int(np.prod(shape)) * SIZES[dtype], section
        end = offset + length
        checksums += [zlib.crc32(data[at : min(at + 2**20, end)]) for at in range(offset, end, 2**20)]
    assert struct.unpack_from(f"<{header[36]}I", data, head - 4 * header[36]) == tuple(checksums)
    assert len(data) == -(-end // 64) * 64
    assert not any(data[end:])


def test_every_section_of_the_specification_is_in_a_golden_file_in_its_order() -> None:
    rows = re.findall(
        r"^\| (`[a-z_]+\.[a-z_.]+`(?:, `[a-z_.]+`)?) \| ([^|]+) \|", SPECIFICATION.split("## 6. ")[0], re.M
    )
    order = {name: what.strip() for names, what in rows for name in re.findall(r"`([^`]+)`", names)}
    seen = set()
    for one in INDEXES:
        rows_of = entries(golden(one))
        names = [section for section, *_ in rows_of]
        assert names == sorted(names, key=list(order).index)
        for section, dtype, shape, _, _ in rows_of:
            what = order[section]
            if what.startswith("strings"):
                assert (dtype, len(shape)) == ("int64" if section.endswith(".offsets") else "uint8", 1)
            elif not what.startswith("vector"):
                assert what.startswith(dtype), section
                assert len(shape) == what.count(",") + 1, section
        seen |= set(names)
    assert seen == set(order)


def test_strings_are_as_specified() -> None:
    data = golden("strings")
    at = {name: (offset, length) for name, _, _, offset, length in entries(data)}
    offset, length = at["passage.text.offsets"]
    ends = struct.unpack_from(f"<{length // 8}q", data, offset)
    start, size = at["passage.text.bytes"]
    texts = [data[start + a : start + b].decode() for a, b in pairwise(ends)]
    assert texts == [text for _, _, text in PASSAGES]
    assert (ends[0], ends[-1]) == (0, size)
    offset, length = at["encoder.setting"]
    assert struct.unpack_from("<2q", data, offset) == (5, 0)
    integers = golden("integers")
    (offset,) = [offset for name, _, _, offset, _ in entries(integers) if name == "passage.id.number"]
    assert list(struct.unpack_from("<3q", integers, offset)) == NUMBERS
