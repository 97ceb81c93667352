"""Small indexes, and tools that damage or forge their files."""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from hopfuse import Facts, Graph
from hopfuse.index import EncoderInfo, Index, WordInfo
from hopfuse.types import EdgeStatements, TermMatrix

PASSAGES = [
    {
        "id": "ada",
        "title": "Ada Lovelace",
        "text": "Ada wrote the first program .",
        "document": "letters",
        "language": "zh-Hant",
    },
    {"id": "empty", "title": "", "text": ""},
    {
        "id": "东京",
        "title": "Tōkyō 🗼",
        "text": "東京 は\u3000日本 の 首都\tです\n🗾",
        "document": "手紙",
        "language": "en",
    },
]
METADATA: list[dict[str, Any] | None] = [
    {"year": 1843, "draft": False, "rank": 0.5, "tags": ["engine", "notes"], "東": "東京"},
    None,
    {"year": 2024, "tags": ["notes"], "day": datetime(2024, 5, 1, tzinfo=UTC)},
]
ENTITIES = ["Ada Lovelace", "Charles Babbage", "東京", ""]
ALIASES = {0: ["Ada", "Countess"], "東京": ["Tokyo", "Tōkyō"]}


def typed_graph(directed: bool = False) -> Graph:
    """Seven nodes, three passages and four entities; weights, types, a self-loop, parallel edges."""
    return Graph.from_edges(
        [0, 0, 0, 2, 3, 3, 4, 4, 2],
        [3, 4, 3, 5, 4, 4, 4, 5, 0],
        [1.0, 0.5, 2.0, 1.0, 3.0, 0.25, 1.5, 0.1, 1.0],
        num_nodes=7,
        directed=directed,
        edge_type=[0, 0, 0, 0, 1, 0, 1, 2, 2],
        edge_type_names=["context", "relation", "同義"],
    )


def stated_edges() -> EdgeStatements:
    """The edges of the undirected typed graph one by one, and who states those between two entities."""
    return EdgeStatements(
        np.array([(0, 3), (0, 4), (0, 3), (2, 5), (3, 4), (3, 4), (4, 4), (4, 5), (2, 0)], np.int32),
        np.array([0, 0, 0, 0, 1, 0, 1, 2, 2], np.uint8),
        np.array([1.0, 0.5, 2.0, 1.0, 3.0, 0.25, 1.5, 0.1, 1.0]),
        np.array([-1, -1, -1, -1, 0, 2, 2, -1, -1], np.int32),
    )


def vectors(rows: int, dim: int = 5, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)


def term_matrix(**changes: Any) -> TermMatrix:
    """Terms of three passages."""
    arguments: dict[str, Any] = {
        "terms": ["ada", "program", "首都"],
        "indptr": np.array([0, 2, 3, 4]),
        "passages": np.array([0, 2, 0, 2], np.int32),
        "scores": np.array([0.5, 0.25, 1.5, 2.0], np.float32),
        "num_passages": 3,
        "method": "lucene",
        "k1": 1.2,
        "b": 0.75,
        "stopwords": ["a", "the"],
        "stemmer": "english",
    }
    return TermMatrix(**(arguments | changes))


def stated(**changes: Any) -> Facts:
    """Facts of four entities in three passages; one from an entity to itself, one that two passages state."""
    arguments: dict[str, Any] = {
        "rows": np.array([[0, 0, 1], [2, 1, 2], [1, 0, 0]], np.int32),
        "relations": ["knows", "東"],
        "indptr": np.array([0, 2, 3, 4]),
        "passages": np.array([0, 2, 2, 0], np.int32),
        "num_entities": 4,
        "num_passages": 3,
    }
    return Facts(**(arguments | changes))


def full_index(*, parts: tuple[str, ...] = ("lexical", "facts"), **changes: Any) -> Index:
    """An index with every section that the format has, of the lexical part and the facts those that are named."""
    arguments: dict[str, Any] = {
        "passages": [{**row, "metadata": values} for row, values in zip(PASSAGES, METADATA, strict=True)],
        "vectors": vectors(3),
        "graph": typed_graph(),
        "statements": stated_edges(),
        "entities": [{"name": name, "stated": at != 1} for at, name in enumerate(ENTITIES)],
        "aliases": ALIASES,
        "entity_vectors": vectors(4, 2, seed=1),
        "encoder": EncoderInfo("tiny", 5, False),
        "words": WordInfo(2, "english", None, ("a", "the")),
    }
    arguments |= changes
    if "graph" in changes:
        arguments["statements"] = changes.get("statements")
    if "vectors" in changes and "encoder" not in changes:
        del arguments["encoder"]
    built = Index.build(**arguments)
    built = built.with_lexical(term_matrix()) if "lexical" in parts else built
    return built.with_facts(stated()) if "facts" in parts else built


def assert_same(a: Index, b: Index) -> None:
    """Two indexes hold the same, bit for bit."""
    for name in ("passage_ids", "titles", "texts", "documents", "languages", "entity_names", "entity_aliases"):
        assert list(getattr(a, name)) == list(getattr(b, name)), name
    for name in ("passage_lengths", "stated", "passage_frequency", "vectors", "entity_vectors"):
        assert_equal_arrays(getattr(a, name), getattr(b, name), name)
    for name in ("metric", "storage", "dim", "encoder", "words", "name_rule", "num_passages", "num_entities"):
        assert getattr(a, name) == getattr(b, name), name
    ours, theirs = ({k: v for k, v in i.info().items() if k not in ("generation", "seq")} for i in (a, b))
    assert ours == theirs
    assert a.metadata.types == b.metadata.types
    for name in a.metadata:
        assert list(a.metadata[name]) == list(b.metadata[name]), name
    assert_same_terms(a.lexical, b.lexical)
    assert_same_facts(a.facts, b.facts)
    assert (a.graph is None) == (b.graph is None)
    if a.graph is not None and b.graph is not None:
        assert (a.graph.directed, a.graph.edge_type_names) == (b.graph.directed, b.graph.edge_type_names)
        ours, theirs = a.graph.to_arrays(), b.graph.to_arrays()
        assert list(ours) == list(theirs)
        for name in ours:
            assert_equal_arrays(ours[name], theirs[name], name)


def assert_same_terms(a: TermMatrix | None, b: TermMatrix | None) -> None:
    if a is None or b is None:
        assert a is b
        return
    for name in ("indptr", "passages", "scores", "counts"):
        assert_equal_arrays(getattr(a, name), getattr(b, name), name)
    for name in ("terms", "num_passages", "method", "k1", "b", "stopwords", "stemmer"):
        assert getattr(a, name) == getattr(b, name), name


def assert_same_facts(a: Facts | None, b: Facts | None) -> None:
    if a is None or b is None:
        assert a is b
        return
    for name in ("rows", "indptr", "passages", "incident_indptr", "incident"):
        assert_equal_arrays(getattr(a, name), getattr(b, name), name)
    for name in ("relations", "num_entities", "num_passages"):
        assert getattr(a, name) == getattr(b, name), name


def assert_equal_arrays(a: np.ndarray | None, b: np.ndarray | None, name: str) -> None:
    if a is None or b is None:
        assert a is b, name
        return
    assert (a.dtype, a.shape) == (b.dtype, b.shape), name
    assert a.tobytes() == b.tobytes(), name


def is_mapped(array: np.ndarray) -> bool:
    """Return whether an array's data is a file's."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)


# ---- The format, as FORMAT.md states it ----

MAGIC = b"\x89HOPFUSE"
HEADER = struct.Struct("<8s2I2Q2I3B5sQI")
HEADER_BYTES = HEADER.size + 4
ENTRY = struct.Struct("<32s2I4Q")
BLOCK, ALIGNMENT = 1 << 20, 64
DTYPES = ("u1", "<i4", "<i8", "<f2", "<f4", "<f8", "<u2")


def head_bytes(sections: int, blocks: int) -> int:
    """Return the size of the header, the table and the checksums."""
    return HEADER_BYTES + ENTRY.size * sections + 4 * blocks


def generation_file(directory: Path) -> Path:
    return directory / (directory / "CURRENT").read_text().strip()


class Forge:
    """The bytes of a generation file, to be changed field by field and sealed with right checksums."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)
        self.header = list(HEADER.unpack(data[: HEADER.size]))
        self.rows = [list(ENTRY.unpack_from(data, HEADER_BYTES + ENTRY.size * i)) for i in range(self.header[5])]

    @property
    def names(self) -> list[str]:
        return [row[0].rstrip(b"\0").decode() for row in self.rows]

    def row(self, name: str) -> list[Any]:
        return self.rows[self.names.index(name)]

    def array(self, name: str) -> np.ndarray:
        """A writable view of a section's payload."""
        _, code, ndim, rows, columns, offset, length = self.row(name)
        flat = np.frombuffer(self.data, DTYPES[code], length // np.dtype(DTYPES[code]).itemsize, offset)
        return flat.reshape((rows, columns)[:ndim])

    def replace(self, changes: Mapping[str, np.ndarray | None]) -> None:
        """Replace or drop sections, and place all others anew."""
        kept = {name: self.array(name).copy() for name in self.names} | changes
        arrays = {name: array for name, array in kept.items() if array is not None}
        blocks = sum(-(-array.nbytes // BLOCK) for array in arrays.values())
        self.rows, self.data = [], bytearray(head_bytes(len(arrays), blocks))
        for name, array in arrays.items():
            self.data += bytes(-len(self.data) % ALIGNMENT)
            code = DTYPES.index(array.dtype.newbyteorder("<").str.replace("|", ""))
            shape = (*array.shape, 0)[:2]
            self.rows.append([name.encode(), code, array.ndim, *shape, len(self.data), array.nbytes])
            self.data += array.tobytes()
        self.data += bytes(-len(self.data) % ALIGNMENT)
        self.header[3], self.header[5], self.header[6] = len(self.data), len(arrays), blocks

    def seal(self) -> bytes:
        """The file with its header and table as they are now, and checksums that fit."""
        checksums = b""
        for *_, offset, length in self.rows:
            for start in range(offset, min(offset + length, len(self.data)), BLOCK):
                block = bytes(self.data[start : min(start + BLOCK, offset + length)])
                checksums += struct.pack("<I", zlib.crc32(block))
        table = b"".join(ENTRY.pack(*row) for row in self.rows) + checksums
        self.header[-1] = zlib.crc32(table)
        header = HEADER.pack(*self.header)
        head = header + struct.pack("<I", zlib.crc32(header)) + table
        return head + bytes(self.data[len(head) :])


def forged(directory: Path, change: Callable[[Forge], None]) -> Path:
    """Change the current generation of an index in a way that its checksums hide."""
    path = generation_file(directory)
    forge = Forge(path.read_bytes())
    change(forge)
    path.write_bytes(forge.seal())
    return directory
