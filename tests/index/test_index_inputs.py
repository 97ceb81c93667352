"""What Index.build refuses, and with which words."""

from __future__ import annotations

import dataclasses
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hopfuse import Graph
from hopfuse.errors import InputError
from hopfuse.index import Index
from index.index_files import ENTITIES, PASSAGES, full_index, typed_graph, vectors
from refusals import refused


def with_value(array: np.ndarray, row: int, value: float) -> np.ndarray:
    array[row] = value
    return array


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"metric": "l2"}, ("choice", "metric", {"allowed": "ip, cosine", "given": "l2"})),
        ({"storage": "int4"}, ("choice", "storage", {"given": "int4"})),
        ({"passages": ["a", "b", "c"]}, ("type", "passages", {"given": "str", "place": "passages[0]"})),
        ({"passages": {"text": ["a"]}}, ("type", "passages", {"given": "dict"})),
        ({"passages": None}, ("missing", "passages")),
        ({"passages": "nothing.jsonl"}, ("missing", "passages", {"given": "nothing.jsonl"})),
        ({"vectors": vectors(2)}, ("length", "vectors", {"given": 2})),
        ({"vectors": np.ones(3)}, ("shape", "vectors", {"given": "float64(3,)"})),
        ({"vectors": np.ones((3, 2), complex)}, ("shape", "vectors")),
        ({"vectors": np.array([["a"]] * 3, object)}, ("shape", "vectors")),
        ({"vectors": with_value(vectors(3), 1, np.nan)}, ("finite", "vectors[1]")),
        ({"vectors": with_value(vectors(3), 2, 1e6), "storage": "float16"}, ("finite", "vectors[2]")),
        ({"vectors": with_value(vectors(3), 2, 0), "metric": "cosine"}, ("zero", "vectors[2]")),
        ({"vectors": "nothing.npy"}, ("missing", "vectors", {"given": "nothing.npy"})),
        ({"vectors": "vectors.bin"}, ("choice", "vectors", {"allowed": "an array, or the path of an .npy file"})),
        ({"entity_vectors": vectors(3)}, ("length", "entity_vectors", {"given": 3})),
        ({"entity_vectors": with_value(vectors(4), 0, np.inf)}, ("finite", "entity_vectors[0]")),
        (
            {"graph": Graph.from_edges([0], [5])},
            ("length", "graph", {"allowed": 7, "entities": "4 entities", "given": 6, "passages": "3 passages"}),
        ),
        (
            {"graph": Graph.from_edges([0], [7])},
            ("length", "graph", {"allowed": 7, "entities": "4 entities", "given": 8, "passages": "3 passages"}),
        ),
        (
            {"graph": Graph.from_edges([0], [1]), "entities": None, "aliases": None, "entity_vectors": None},
            ("length", "graph", {"given": 2, "passages": 3}),
        ),
        ({"entities": "Ada"}, ("choice", "entities")),
        ({"entities": ["Ada", 5]}, ("type", "entities", {"given": "str", "place": "entities[0]"})),
        ({"entities": 4}, ("type", "entities", {"given": "int"})),
        ({"entities": [{"label": "Ada"}]}, ("unknown", "label", {"place": "entities[0]"})),
        ({"entities": [*ENTITIES[:3], "\ud800"]}, ("syntax", "entity.name[3]")),
        ({"aliases": ["Ada"]}, ("type", "aliases", {"given": "list"})),
        ({"aliases": {0: "Ada"}}, ("type", "aliases[0]", {"allowed": "a list of strings", "given": "str"})),
        ({"aliases": {0: ["Ada", 5]}}, ("type", "aliases[0][1]")),
        ({"aliases": {4: ["x"]}}, ("unknown", "aliases", {"count": "4 entities", "given": 4})),
        ({"aliases": {-1: ["x"]}}, ("unknown", "aliases", {"given": -1})),
        ({"aliases": {True: ["x"]}}, ("unknown", "aliases", {"given": True})),
        ({"aliases": {1.0: ["x"]}}, ("unknown", "aliases", {"given": 1.0})),
        ({"aliases": {"Nobody": ["x"]}}, ("unknown", "aliases", {"given": "Nobody"})),
        (
            {"aliases": {"A": ["x"]}, "entities": ["A", "B", "A", "C"]},
            ("duplicate", "aliases", {"given": "A"}),
        ),
    ],
)
def test_bad_input_is_refused(changes: dict[str, Any], expected: tuple[Any, ...]) -> None:
    with refused(InputError, *expected):
        full_index(**changes)


@pytest.mark.parametrize(
    ("node", "named"),
    [(2**31 - 2, None), (30_000_000, None), (1_000_017, None), pytest.param(1_000_016, 1, marks=pytest.mark.full)],
)
def test_one_wrong_node_does_not_make_millions_of_entities(node: int, named: int | None) -> None:
    """The count is refused before anything is allocated; entities= says how many there are."""
    edges = [{"src": 0, "dst": node}]
    Index.build(passages=[{"text": "a"}], graph=[{"src": 0, "dst": 1}])  # what is imported at first does not count
    tracemalloc.start()
    if named is None:
        with refused(InputError, "limit", "graph", given=node, allowed=1_000_016, option="entities"):
            Index.build(passages=[{"text": "a"}], graph=edges)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    else:
        assert Index.build(passages=[{"text": "a"}], graph=edges).num_entities == node
    tracemalloc.stop()


def test_options_are_keyword_only_and_passages_required() -> None:
    with pytest.raises(TypeError):
        Index.build(PASSAGES, {"year": "int64"})  # type: ignore[misc]
    with refused(InputError, "missing", "passages"):
        Index.build()


def test_options_are_refused_before_anything_is_read() -> None:
    def rows() -> Any:
        raise AssertionError("passages were read")
        yield

    with refused(InputError, "choice", "storage"):
        Index.build(passages=rows(), storage="int4")  # type: ignore[arg-type]


def test_more_edge_types_than_the_graph_has_room_for() -> None:
    edges = [{"src": 0, "dst": 0, "type": f"t{i}"} for i in range(257)]
    with refused(InputError, "limit", "edge_type", given=257):
        Index.build(passages=[{"text": "a"}], graph=edges)


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x93NUMPY\x01\x00"])
def test_a_damaged_npy_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "v.npy"
    path.write_bytes(content)
    with refused(InputError, "syntax", "vectors"):
        full_index(vectors=path)


def test_a_pickled_npy_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    np.save(path, np.array([{"a": 1}], object), allow_pickle=True)
    with refused(InputError, "syntax", "vectors"):
        full_index(vectors=path)


def test_vectors_may_come_from_npy_files(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", vectors(3))
    np.save(tmp_path / "e.npy", vectors(4).astype(np.float16))
    index = full_index(vectors=str(tmp_path / "p.npy"), entity_vectors=tmp_path / "e.npy")
    assert index.vectors is not None
    assert np.array_equal(index.vectors, vectors(3))
    assert index.entity_vectors is not None
    assert index.entity_vectors.dtype == np.float32
    assert np.array_equal(index.entity_vectors, vectors(4).astype(np.float16).astype(np.float32))


@pytest.mark.parametrize(
    ("name", "index", "value", "code", "array"),
    [
        ("indices", 0, 99, "range", "indices"),
        ("indptr", 1, 99, "order", "indptr"),
        ("degree", (0, 0), 9.0, "conflict", "degree"),
        ("node_of", 0, 1, "order", "internal_of"),
    ],
)
def test_a_graph_made_of_wrong_arrays_is_refused(name: str, index: Any, value: float, code: str, array: str) -> None:
    """So nothing can be saved that cannot be opened."""
    graph = typed_graph()
    arrays = {key: array.copy() for key, array in graph.to_arrays().items()}
    arrays[name][index] = value
    wrong = Graph.from_arrays(arrays, directed=False, edge_type_names=graph.edge_type_names)
    with refused(InputError, code, "graph", array=array, place="graph"):
        full_index(graph=wrong)


def test_an_asymmetric_graph_that_says_undirected_is_refused() -> None:
    wrong = dataclasses.replace(typed_graph(directed=True), directed=False)
    with refused(InputError, "conflict", "graph"):
        full_index(graph=wrong)


def test_rows_in_place_of_the_parts_are_refused() -> None:
    with refused(InputError, "type", given="list"):
        Index([{"text": "The sea."}])  # type: ignore[call-arg, list-item]


@pytest.mark.parametrize(("first", "then"), [("id", "_id"), ("_id", "id")])
@pytest.mark.parametrize("count", [10, 8191, 8192])  # the last is a batch
def test_a_spelling_of_a_column_is_that_of_all_rows(first: str, then: str, count: int) -> None:
    rows = [{first: str(at), "text": "a"} for at in range(count)]
    with pytest.raises(InputError):
        Index.build(passages=[*rows, {then: "x", "text": "b"}])
    if first == "_id":
        with pytest.raises(InputError):
            Index.build(passages=[*rows, {then: "x", first: "y", "text": "b"}])
    else:
        assert Index.build(passages=[*rows, {then: "x", first: "y", "text": "b"}]).passage_ids[-1] == "y"


def test_a_path_may_hold_braces(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "{x}{0}{}"
    folder.mkdir()
    parquet.write_table(pa.table({"id": ["a"], "text": ["b"]}), folder / "p.parquet")
    assert list(Index.build(folder / "p.parquet").passage_ids) == ["a"]
