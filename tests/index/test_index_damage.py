"""Files that are torn, damaged, or forged with right checksums: a FormatError, never a crash."""

from __future__ import annotations

import functools
import struct
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hopfuse import Graph
from hopfuse.errors import FormatError
from hopfuse.index import Index
from hypothesis import given, settings
from hypothesis import strategies as st
from index.index_files import MAGIC, Forge, assert_same, forged, full_index, generation_file, head_bytes, typed_graph
from refusals import refused


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    full_index().save(tmp_path)
    return tmp_path


@functools.cache
def good_file() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        full_index().save(directory)
        return generation_file(Path(directory)).read_bytes()


@pytest.fixture
def good_bytes() -> bytes:
    return good_file()


def open_bytes(directory: Path, data: bytes) -> Index:
    """Open and fully verify an index whose one generation has these bytes."""
    (directory / "CURRENT").write_text("generation-000000000001.hopfuse\n")
    path = directory / "generation-000000000001.hopfuse"
    path.unlink(missing_ok=True)  # a file that is mapped is never changed in place
    path.write_bytes(data)
    return Index.open(directory, verify="full")


def boundaries(data: bytes) -> list[int]:
    forge = Forge(data)
    points = {0, 8, 60, 64, head_bytes(forge.header[5], forge.header[6]), len(data)}
    for *_, offset, length in forge.rows:
        points |= {offset, offset + length}
    return sorted({p + step for p in points for step in (-1, 0, 1) if 0 <= p + step < len(data)})


def test_a_file_cut_at_any_boundary_is_refused(tmp_path: Path, good_bytes: bytes) -> None:
    cuts = boundaries(good_bytes)
    assert len(cuts) > 60
    for cut in cuts:
        with refused(FormatError, "damaged"):
            open_bytes(tmp_path, good_bytes[:cut])


@pytest.mark.parametrize("extra", [b"\0", b"x", bytes(64), bytes(4096)])
def test_trailing_bytes_are_refused(tmp_path: Path, good_bytes: bytes, extra: bytes) -> None:
    with refused(FormatError, "damaged", stated=len(good_bytes), given=len(good_bytes + extra)):
        open_bytes(tmp_path, good_bytes + extra)


@pytest.mark.parametrize("every", [pytest.param(3, marks=pytest.mark.full), 23])
def test_a_flipped_bit_in_any_byte_is_found(tmp_path: Path, good_bytes: bytes, every: int) -> None:
    """Head, paddings and payloads: each byte near a boundary, one in eleven of the head, one of so many of the rest.

    The full tier takes each of the head.
    """
    forge = Forge(good_bytes)
    head = head_bytes(forge.header[5], forge.header[6])
    of_head = range(0, head, 11 if every == 23 else 1)
    positions = {*of_head, *range(head, len(good_bytes), every), *boundaries(good_bytes)}
    survivors = []
    for position in sorted(positions):
        data = bytearray(good_bytes)
        data[position] ^= 1 << (position % 8)
        try:
            open_bytes(tmp_path, bytes(data))
        except FormatError:
            continue
        survivors.append(position)
    assert survivors == []


def test_damage_of_a_payload_shows_at_its_first_use(saved: Path) -> None:
    path = generation_file(saved)
    forge = Forge(path.read_bytes())
    offset = forge.row("passage.vectors")[5]
    forge.data[offset + 7] ^= 0x10
    path.write_bytes(bytes(forge.data))
    index = Index.open(saved)
    assert index.texts[0].startswith("Ada")
    assert index.info()["dim"] == 5
    assert index.graph is not None
    for use in (lambda: index.vectors, lambda: index.corpus, lambda: index.save(saved)):
        with refused(FormatError, "damaged", place="section 'passage.vectors'"):
            use()
    with refused(FormatError, "damaged"):
        Index.open(saved, verify="full")
    assert list(Index.open(saved).passage_ids) == ["ada", "empty", "东京"]


def test_opening_verifies_no_payload(saved: Path) -> None:
    path = generation_file(saved)
    forge = Forge(path.read_bytes())
    names = [name for name in forge.names if forge.row(name)[6] > 0]
    for name in names:
        forge.data[forge.row(name)[5]] ^= 0xFF
    path.write_bytes(bytes(forge.data))
    index = Index.open(saved)
    assert index.num_passages == 3
    assert index.num_entities == 4
    assert len(names) > 20
    with pytest.raises(FormatError):
        index.texts[0]


def test_opening_reads_little_of_a_large_file(tmp_path: Path) -> None:
    large = np.lib.format.open_memmap(tmp_path / "v.npy", "w+", np.float32, (4000, 2000))
    large[:] = 1.0
    Index.build(passages=[{"text": "t"} for _ in range(4000)], vectors=tmp_path / "v.npy").save(tmp_path / "index")
    tracemalloc.start()
    index = Index.open(tmp_path / "index")
    opened = tracemalloc.get_traced_memory()[1]
    assert index.vectors is not None
    assert index.vectors.nbytes == 32_000_000
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert opened < 200_000
    assert used < 1_000_000


def test_only_the_touched_blocks_of_texts_are_verified(tmp_path: Path) -> None:
    texts = ["a" * 1_500_000, "b" * 1_500_000, "c" * 1_500_000]
    Index.build(passages=[{"text": t} for t in texts]).save(tmp_path)
    path = generation_file(tmp_path)
    forge = Forge(path.read_bytes())
    forge.data[forge.row("passage.text.bytes")[5] + 4_400_000] ^= 1
    path.write_bytes(bytes(forge.data))
    index = Index.open(tmp_path)
    assert index.texts[0] == texts[0]
    assert index.texts[1] == texts[1]
    with refused(FormatError, "damaged", block=4):
        index.texts[2]


def _header(field: int, value: object) -> Callable[[Forge], None]:
    def change(forge: Forge) -> None:
        forge.header[field] = value

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_header(0, b"\x89HOPFUSf"), ("damaged", None, {"given": b"\x89HOPFUSf"})),
        (_header(1, 2), ("version", None, {"allowed": 1, "given": 2})),
        (_header(1, 0), ("version", None, {"given": 0})),
        (_header(2, 0x04030201), ("damaged",)),
        (_header(3, 2**63), ("damaged", None, {"stated": 2**63})),
        (_header(4, 7), ("conflict", None, {"given": 7, "allowed": 1})),
        (_header(5, 0), ("limit", None, {"given": 0})),
        (_header(5, 129), ("limit", None, {"given": 129})),
        (_header(5, 2**32 - 1), ("limit", None, {"given": 2**32 - 1})),
        (_header(6, 2**32 - 1), ("damaged", None, {"blocks": 2**32 - 1})),
        (_header(6, 0), ("damaged",)),
        (_header(7, 2), ("choice", None, {"metric": 2})),
        (_header(8, 4), ("choice", None, {"storage": 4})),
        (_header(8, 1), ("dtype", None, {"allowed": "float16"})),
        (_header(8, 2), ("dtype", None, {"allowed": "bfloat16"})),
        (_header(9, 2), ("choice", None, {"directed": 2})),
        (_header(10, b"\0" * 4 + b"\1"), ("damaged",)),
    ],
)
def test_a_header_that_lies_is_refused(saved: Path, change: Callable[[Forge], None], expected: tuple[Any, ...]) -> None:
    with refused(FormatError, *expected):
        Index.open(forged(saved, change))


@pytest.mark.parametrize(
    ("storage", "change", "expected"),
    [
        ("bfloat16", _header(8, 3), None),  # any precision may be the originals'
        ("bfloat16", _header(8, 1), ("dtype", None, {"allowed": "float16"})),
        ("int8", _header(8, 2), ("dtype", None, {"allowed": "bfloat16"})),
    ],
)
def test_storages_that_a_header_does_not_have(
    tmp_path: Path, storage: str, change: Callable[[Forge], None], expected: tuple[Any, ...] | None
) -> None:
    full_index(storage=storage, parts=()).save(tmp_path)
    if expected is None:
        assert Index.open(forged(tmp_path, change), verify="full").storage == "int8"
        return
    with refused(FormatError, *expected):
        Index.open(forged(tmp_path, change))


def test_originals_of_int8_are_checked_when_a_corpus_is_made_of_them(tmp_path: Path) -> None:
    full_index(storage="int8").save(tmp_path)
    index = Index.open(forged(tmp_path, _poke("passage.vectors", (1, 1), np.nan)))
    with refused(FormatError, "finite", "X[1]", place="section 'passage.vectors'"):
        _ = index.corpus


def _row(name: str, field: int, value: object) -> Callable[[Forge], None]:
    def change(forge: Forge) -> None:
        row = forge.row(name)
        row[field] = value(row[field]) if callable(value) else value

    return change


@pytest.mark.parametrize("name", ["passage.id.offsets", "passage.vectors", "graph.internal_of"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        (0, b"\0" * 32),
        (0, b"Passage"),
        (0, b"passage.nothing"),
        (0, b"passage.length"),
        (0, b"a\0b"),
        (0, b"\xff" * 32),
        (1, 7),
        (1, 2**32 - 1),
        (1, 0),
        (2, 0),
        (2, 3),
        (2, 2**32 - 1),
        (3, lambda n: n + 1),
        (3, lambda n: n - 1),
        (3, 2**60),
        (3, 2**64 - 1),
        (4, 2**61),
        (5, lambda n: n + 64),
        (5, lambda n: n - 64),
        (5, lambda n: n + 1),
        (5, 0),
        (5, 2**64 - 64),
        (6, lambda n: n + 1),
        (6, lambda n: n - 8),
        (6, 2**64 - 1),
        (6, 0),
    ],
)
def test_a_table_that_lies_is_refused(saved: Path, name: str, field: int, value: object) -> None:
    forged(saved, _row(name, field, value))
    tracemalloc.start()
    with pytest.raises(FormatError):
        Index.open(saved)
    assert tracemalloc.get_traced_memory()[1] < 500_000
    tracemalloc.stop()


@pytest.mark.parametrize("shape", [(2**63, 0), (0, 2**63), (2**48, 2**48), (2**32, 2**32), (2**48, 0)])
def test_sizes_that_overflow_are_refused(saved: Path, shape: tuple[int, int]) -> None:
    def change(forge: Forge) -> None:
        row = forge.row("passage.vectors")
        row[3:5] = shape
        row[6] = shape[0] * shape[1] * 4 % 2**64

    with pytest.raises(FormatError):
        Index.open(forged(saved, change))


def test_sections_out_of_order_missing_or_overlapping_are_refused(saved: Path) -> None:
    good = generation_file(saved).read_bytes()

    def swap(forge: Forge) -> None:
        a, b = forge.names.index("graph.node_of"), forge.names.index("graph.internal_of")
        forge.rows[a][0], forge.rows[b][0] = forge.rows[b][0], forge.rows[a][0]

    def overlap(forge: Forge) -> None:
        forge.row("graph.internal_of")[5] = forge.row("graph.node_of")[5]

    overlaps = ("damaged", None, {"section": "graph.internal_of"})
    for change, expected in ((swap, ("order",)), (overlap, overlaps)):
        generation_file(saved).unlink()
        (saved / "generation-000000000001.hopfuse").write_bytes(good)
        with refused(FormatError, *expected):
            Index.open(forged(saved, change))


def rewritten(directory: Path, **changes: np.ndarray | None) -> Path:
    """Replace or drop sections of the current generation, in a file that is well formed."""
    return forged(directory, lambda forge: forge.replace(changes))


@pytest.mark.parametrize(
    ("name", "array", "expected"),
    [
        ("passage.text.bytes", None, ("missing", None, {"section": "passage.text.bytes"})),
        ("graph.degree", None, ("missing", None, {"section": "graph.degree"})),
        ("graph.edge_type", None, ("conflict", None, {"section": "graph.edge_type"})),
        ("entity.alias.rows", None, ("missing", None, {"section": "entity.alias.rows"})),
        (
            "passage.length",
            np.zeros(4, np.int32),
            ("shape", None, {"given": (4,), "what": "passages", "section": "passage.length", "size": 3}),
        ),
        ("passage.length", np.zeros(3, np.int64), ("dtype", None, {"allowed": "int32", "dimensions": 1})),
        ("passage.length", np.zeros((3, 1), np.int32), ("dtype", None, {"allowed": "int32", "dimensions": 1})),
        ("passage.vectors", np.zeros((3, 0), np.float32), ("shape",)),
        ("entity.vectors", np.zeros((4, 0), np.float32), ("shape",)),
        ("entity.alias.offsets", np.zeros(0, np.int64), ("length",)),
        ("lexical.term.bytes", None, ("missing", None, {"section": "lexical.term.bytes"})),
        (
            "lexical.score",
            np.zeros(5, np.float32),
            ("shape", None, {"given": (5,), "what": "entries of terms", "section": "lexical.score", "size": 4}),
        ),
        ("lexical.indptr", np.zeros(5, np.int64), ("shape", None, {"what": "terms", "size": 3})),
        (
            "lexical.parameter",
            np.zeros(3),
            ("shape", None, {"what": "settings and parameters of the lexical part", "size": 2}),
        ),
        ("fact.relation.bytes", None, ("missing", None, {"section": "fact.relation.bytes"})),
        (
            "fact.row",
            np.zeros((2, 3), np.int32),
            ("shape", None, {"given": (4,), "what": "facts", "section": "fact.indptr", "size": 2}),
        ),
        ("fact.row", np.zeros((3, 4), np.int32), ("length", None, {"allowed": 3, "given": 4})),
        ("fact.row", np.zeros((3, 0), np.int32), ("length", None, {"given": 0})),
        ("fact.row", np.zeros(9, np.int32), ("dtype", None, {"allowed": "int32", "dimensions": 2})),
        ("fact.passage", np.zeros(4, np.int64), ("dtype", None, {"allowed": "int32", "dimensions": 1})),
    ],
)
def test_sections_that_do_not_fit_together_are_refused(
    saved: Path, name: str, array: np.ndarray | None, expected: tuple[Any, ...]
) -> None:
    with refused(FormatError, *expected):
        Index.open(rewritten(saved, **{name: array}))


def test_a_graph_of_another_size_is_refused(saved: Path) -> None:
    other = {f"graph.{k}": a for k, a in typed_graph().to_arrays().items() if k in ("indptr", "node_of", "internal_of")}
    more = {name: np.append(array, array[-1]) for name, array in other.items()}
    with refused(FormatError, "length", allowed=7, entities=4, given=8, passages=3):
        Index.open(rewritten(saved, **more, **{"graph.degree": np.zeros((8, 3))}))


def test_a_huge_size_of_an_empty_section_is_refused(tmp_path: Path) -> None:
    Index.build(passages=[], vectors=np.zeros((0, 3))).save(tmp_path)
    for shape in ((2**63, 0), (0, 2**63)):

        def change(forge: Forge, shape: tuple[int, int] = shape) -> None:
            forge.row("passage.vectors")[3:5] = shape

        with refused(FormatError, "shape"):
            Index.open(forged(tmp_path, change))


def test_damage_of_the_head_is_found_at_open(tmp_path: Path, good_bytes: bytes) -> None:
    forge = Forge(good_bytes)
    full_index().save(tmp_path)
    path = generation_file(tmp_path)
    for position in range(head_bytes(forge.header[5], forge.header[6])):
        data = bytearray(good_bytes)
        data[position] ^= 0x01
        path.unlink()
        path.write_bytes(data)
        with pytest.raises(FormatError) as caught:
            Index.open(tmp_path)
        assert caught.value.code == ("version" if 8 <= position < 12 else "damaged")


def _poke(section: str, index: object, value: object) -> Callable[[Forge], None]:
    def change(forge: Forge) -> None:
        forge.array(section)[index] = value

    return change


def _scale_degree(forge: Forge) -> None:
    degree = forge.array("graph.degree")
    degree *= 1 + 2**-40


def _swap_entries(forge: Forge) -> None:
    indices = forge.array("graph.indices")
    indptr = forge.array("graph.indptr")
    first = int(np.flatnonzero(np.diff(indptr) >= 2)[0])
    at = indptr[first]
    indices[[at, at + 1]] = indices[[at + 1, at]]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_poke("graph.indptr", 0, 1), ("order", None, {"array": "indptr"})),
        (_poke("graph.indptr", 0, -1), ("order", None, {"array": "indptr"})),
        (_poke("graph.indptr", 3, 2**62), ("order", None, {"array": "indptr"})),
        (_poke("graph.indptr", 3, -(2**63)), ("order", None, {"array": "indptr"})),
        (_poke("graph.indptr", -1, 2**40), ("order", None, {"array": "indptr"})),
        (_poke("graph.indices", 0, -1), ("range", None, {"array": "indices"})),
        (_poke("graph.indices", -1, 7), ("range", None, {"array": "indices"})),
        (_poke("graph.indices", 2, 2**31 - 1), ("range", None, {"array": "indices"})),
        (_swap_entries, ("order", None, {"array": "indices"})),
        (_poke("graph.edge_type", 1, 3), ("range", None, {"array": "edge_type"})),
        (_poke("graph.edge_type", 1, 255), ("range", None, {"array": "edge_type"})),
        (_poke("graph.weight", 0, np.nan), ("finite", None, {"array": "weight"})),
        (_poke("graph.weight", 0, np.inf), ("finite", None, {"array": "weight"})),
        (_poke("graph.weight", 0, -1.0), ("finite", None, {"array": "weight"})),
        (_poke("graph.weight", 0, 0.0), ("finite", None, {"array": "weight"})),
        (_poke("graph.weight", 0, 1e-40), ("finite", None, {"array": "weight"})),
        (_poke("graph.weight", 0, 123.0), ("conflict", None, {"array": "degree"})),
        (_poke("graph.degree", (0, 0), np.nan), ("conflict", None, {"array": "degree"})),
        (_poke("graph.degree", (0, 0), np.inf), ("conflict", None, {"array": "degree"})),
        (_scale_degree, ("conflict", None, {"array": "degree"})),
        (_poke("graph.node_of", 0, 6), ("order", None, {"array": "internal_of"})),
        (_poke("graph.node_of", 0, -1), ("range", None, {"array": "node_of"})),
        (_poke("graph.node_of", 0, 7), ("range", None, {"array": "node_of"})),
        (_poke("graph.internal_of", 0, 6), ("order", None, {"array": "internal_of"})),
        (_poke("graph.internal_of", 0, 2**31 - 1), ("order", None, {"array": "internal_of"})),
        (_poke("graph.type_name.offsets", 1, 100), ("order", None, {"place": "section 'graph.type_name.offsets'"})),
    ],
)
def test_a_forged_graph_is_refused_before_its_first_use(
    saved: Path, change: Callable[[Forge], None], expected: tuple[Any, ...]
) -> None:
    index = Index.open(forged(saved, change))
    assert index.texts[0].startswith("Ada")
    for _ in range(2):
        with refused(FormatError, *expected):
            _ = index.graph


def test_forged_type_names_are_refused(tmp_path: Path) -> None:
    edges = [{"src": 0, "dst": 1, "type": t} for t in "ab"]
    full_index(graph=edges).save(tmp_path)
    index = Index.open(forged(tmp_path, _poke("graph.type_name.bytes", 1, ord("a"))))
    with refused(FormatError, "duplicate"):
        _ = index.graph
    with refused(FormatError, "order", place="section 'graph.type_name.offsets'"):
        Index.open(forged(tmp_path, _poke("graph.type_name.offsets", 0, 1)), verify="full")


def test_entries_out_of_order_are_found_wherever_large_rows_are_split(tmp_path: Path) -> None:
    count, ends = 1100, 1 << np.arange(21)
    rows = [np.repeat(np.arange(count), count), np.tile(np.arange(count), count)]
    graph = Graph.from_edges(*rows, np.ones(count**2), num_nodes=count, directed=True)
    Index.build(passages=[{"text": ""}] * count, graph=graph).save(tmp_path)
    assert Index.open(tmp_path).graph is not None
    whole = generation_file(tmp_path).read_bytes()
    for end in ends[ends % count > 0].tolist():

        def swap(forge: Forge, end: int = end) -> None:
            indices = forge.array("graph.indices")
            indices[[end - 1, end]] = indices[[end, end - 1]]

        generation_file(tmp_path).unlink()
        (tmp_path / "generation-000000000001.hopfuse").write_bytes(whole)
        with refused(FormatError, "order", array="indices"):
            _ = Index.open(forged(tmp_path, swap)).graph


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_poke("passage.text.offsets", 0, -1), ("order",)),
        (_poke("passage.text.offsets", 1, 2**62), ("order",)),
        (_poke("passage.text.offsets", 1, -(2**63)), ("order",)),
        (_poke("passage.text.bytes", 0, 0xFF), ("syntax",)),
    ],
)
def test_forged_strings_are_refused_at_use(
    saved: Path, change: Callable[[Forge], None], expected: tuple[Any, ...]
) -> None:
    index = Index.open(forged(saved, change))
    for use in (lambda: index.texts[0], lambda: index.texts[:], lambda: list(index.texts)):
        with refused(FormatError, *expected):
            use()


def _asymmetric(forge: Forge) -> None:
    """Change a weight and the degree that it belongs to, so that only symmetry is broken."""
    indices, weight, kind = (forge.array(f"graph.{name}") for name in ("indices", "weight", "edge_type"))
    indptr, degree = forge.array("graph.indptr"), forge.array("graph.degree")
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    at = int(np.flatnonzero(rows != indices)[0])
    weight[at] = 42.0
    degree[:] = 0
    np.add.at(degree, (indices, kind), weight.astype(np.float64))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_asymmetric, ("conflict",)),
        (_poke("passage.length", 0, -5), ("conflict", None, {"place": "section 'passage.length'"})),
        (
            _poke("entity.passage_frequency", 0, 9),
            ("conflict", None, {"place": "section 'entity.passage_frequency'"}),
        ),
        (_poke("graph.edge_count", 0, 9), ("conflict", None, {"place": "section 'graph.edge_count'"})),
        (_poke("passage.vectors", (1, 1), np.nan), ("finite", "X[1]")),
        (_poke("entity.vectors", (3, 0), np.inf), ("finite", "X[3]")),
        (_poke("entity.vectors", (2, 0), 3e38), ("finite", "X[2]")),
        (_poke("entity.alias.rows", 0, 1), ("order", None, {"place": "section 'entity.alias.rows'"})),
        (
            _poke("passage.id.bytes", slice(0, 3), [0x61, 0x80, 0x62]),
            ("syntax", None, {"place": "section 'passage.id.bytes'"}),
        ),
        (_poke("passage.title.offsets", 0, 1), ("order", None, {"place": "section 'passage.title.offsets'"})),
    ],
)
def test_full_verification_finds_what_lazy_use_need_not(
    saved: Path, change: Callable[[Forge], None], expected: tuple[Any, ...]
) -> None:
    forged(saved, change)
    assert Index.open(saved).num_passages == 3
    with refused(FormatError, *expected):
        Index.open(saved, verify="full")


def test_an_offset_inside_a_character_is_refused(saved: Path) -> None:
    def change(forge: Forge) -> None:
        forge.array("entity.name.offsets")[2] += 1

    index = Index.open(forged(saved, change))
    with refused(FormatError, "syntax"):
        index.entity_names[2]
    with refused(FormatError, "syntax", place="section 'entity.name.offsets'"):
        Index.open(saved, verify="full")


def test_a_repeated_id_is_refused_by_full_verification(tmp_path: Path) -> None:
    full_index(passages=[{"id": c, "text": ""} for c in "abc"]).save(tmp_path)
    with refused(FormatError, "duplicate"):
        Index.open(forged(tmp_path, _poke("passage.id.bytes", 2, ord("a"))), verify="full")


def test_a_zero_vector_under_cosine_is_refused(tmp_path: Path) -> None:
    full_index(metric="cosine").save(tmp_path)
    index = Index.open(forged(tmp_path, _poke("passage.vectors", 2, 0.0)))
    with refused(FormatError, "zero", "X[2]", place="section 'passage.vectors'"):
        _ = index.corpus


@settings(max_examples=2 * settings().max_examples)
@given(data=st.data())
def test_any_forged_change_is_refused_or_harmless(data: st.DataObject) -> None:
    """Random overwrites of payload, header and table with checksums that fit."""
    forge = Forge(good_file())
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(st.sampled_from(["payload", "row", "header"]))
        value = data.draw(st.sampled_from([0, 1, 2, 3, 7, 64, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]))
        if kind == "payload":
            *_, offset, length = forge.rows[data.draw(st.integers(0, len(forge.rows) - 1))]
            if length >= 8:
                at = offset + data.draw(st.integers(0, length - 8))
                forge.data[at : at + 8] = struct.pack("<Q", value)
        elif kind == "row":
            row = forge.rows[data.draw(st.integers(0, len(forge.rows) - 1))]
            field = data.draw(st.integers(1, 6))
            row[field] = value % 2**32 if field < 3 else value
        else:
            field = data.draw(st.integers(3, 9))
            forge.header[field] = value % (2**64 if field < 5 else 2**32 if field < 7 else 2**8)
    with tempfile.TemporaryDirectory() as directory:
        try:
            index = open_bytes(Path(directory), forge.seal())
        except FormatError:
            return
        assert index.num_passages == 3
        assert len(list(index.texts)) == 3


@given(data=st.binary(max_size=300))
def test_any_bytes_are_refused(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        for content in (data, MAGIC + data):
            with pytest.raises(FormatError):
                open_bytes(Path(directory), content)


def test_the_undamaged_file_opens(tmp_path: Path, good_bytes: bytes) -> None:
    assert_same(open_bytes(tmp_path, good_bytes), full_index())
    assert len(good_bytes) % 64 == 0
