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


def with_value(array: np.ndarray, row: int, value: float) -> np.ndarray:
    array[row] = value
    return array


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metric": "l2"}, "metric is 'l2'; allowed: ip, cosine"),
        ({"storage": "int4"}, "storage is 'int4'; allowed: float32, float16"),
        ({"passages": ["a", "b", "c"]}, r"passages\[0\] is a str; a row is a mapping"),
        ({"passages": {"text": ["a"]}}, "passages is a dict; allowed: a path"),
        ({"passages": None}, "there is nothing to build from: give passages="),
        ({"passages": "nothing.jsonl"}, "passages: there is no file 'nothing.jsonl'"),
        ({"vectors": vectors(2)}, "vectors has 2 rows; it must have 3"),
        ({"vectors": np.ones(3)}, r"vectors: X is float64\(3,\)"),
        ({"vectors": np.ones((3, 2), complex)}, "vectors: X is complex128"),
        ({"vectors": np.array([["a"]] * 3, object)}, "vectors: X is object"),
        ({"vectors": with_value(vectors(3), 1, np.nan)}, "vectors: row 1 of X has a NaN"),
        ({"vectors": with_value(vectors(3), 2, 1e6), "storage": "float16"}, "vectors: row 2 of X"),
        ({"vectors": with_value(vectors(3), 2, 0), "metric": "cosine"}, "vectors: row 2 of X is the zero vector"),
        ({"vectors": "nothing.npy"}, "vectors: there is no file 'nothing.npy'"),
        ({"vectors": "vectors.bin"}, "allowed: an array, or the path of an .npy file"),
        ({"entity_vectors": vectors(3)}, "entity_vectors has 3 rows; it must have 4"),
        ({"entity_vectors": with_value(vectors(4), 0, np.inf)}, "entity_vectors: row 0 of X"),
        ({"graph": Graph.from_edges([0], [5])}, "graph has 6 nodes; 3 passages and 4 entities are 7: pass num_nodes=7"),
        ({"graph": Graph.from_edges([0], [7])}, "graph has 8 nodes; 3 passages and 4 entities are 7"),
        (
            {"graph": Graph.from_edges([0], [1]), "entities": None, "aliases": None, "entity_vectors": None},
            r"graph has 2 nodes for 3 passages; nodes 0 \.\. P-1 are the passages",
        ),
        ({"entities": "Ada"}, "suffix must be one of"),
        ({"entities": ["Ada", 5]}, r"entities\[0\] is a str; a row is a mapping"),
        ({"entities": 4}, "entities is a int"),
        ({"entities": [{"label": "Ada"}]}, r"entities\[0\] has no 'name'"),
        ({"entities": [*ENTITIES[:3], "\ud800"]}, r"entity\.name\[3\] cannot be written as UTF-8"),
        ({"aliases": ["Ada"]}, "aliases is a list; it must map"),
        ({"aliases": {0: "Ada"}}, r"aliases\[0\] is 'Ada'; it must be a list of strings"),
        ({"aliases": {0: ["Ada", 5]}}, "must be a list of strings"),
        ({"aliases": {4: ["x"]}}, "aliases has the key 4, which is not among the 4 entities"),
        ({"aliases": {-1: ["x"]}}, "aliases has the key -1"),
        ({"aliases": {True: ["x"]}}, "aliases has the key True"),
        ({"aliases": {1.0: ["x"]}}, "aliases has the key 1.0"),
        ({"aliases": {"Nobody": ["x"]}}, "aliases has the key 'Nobody'"),
        (
            {"aliases": {"A": ["x"]}, "entities": ["A", "B", "A", "C"]},
            "aliases has the name 'A', which several entities have; use the entity's index",
        ),
    ],
)
def test_bad_input_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
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
        message = f"node {node} of graph implies {node} entities for 1 edges; without entities= at most 1000016 are"
        with pytest.raises(InputError, match=message):
            Index.build(passages=[{"text": "a"}], graph=edges)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    else:
        assert Index.build(passages=[{"text": "a"}], graph=edges).num_entities == node
    tracemalloc.stop()


def test_options_are_keyword_only_and_passages_required() -> None:
    with pytest.raises(InputError, match="source is a list"):
        Index.build(PASSAGES)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="nothing to build from"):
        Index.build()


def test_options_are_refused_before_anything_is_read() -> None:
    def rows() -> Any:
        raise AssertionError("passages were read")
        yield

    with pytest.raises(InputError, match="storage"):
        Index.build(passages=rows(), storage="int4")  # type: ignore[arg-type]


def test_more_edge_types_than_the_graph_has_room_for() -> None:
    edges = [{"src": 0, "dst": 0, "type": f"t{i}"} for i in range(257)]
    with pytest.raises(InputError, match="257 edge types"):
        Index.build(passages=[{"text": "a"}], graph=edges)


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x93NUMPY\x01\x00"])
def test_a_damaged_npy_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "v.npy"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"v\.npy cannot be read as an \.npy array"):
        full_index(vectors=path)


def test_a_pickled_npy_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    np.save(path, np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(InputError, match="cannot be read"):
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
    ("name", "index", "value", "message"),
    [
        ("indices", 0, 99, "indices has a node"),
        ("indptr", 1, 99, "indptr"),
        ("degree", (0, 0), 9.0, "degree"),
        ("node_of", 0, 1, "permutations"),
    ],
)
def test_a_graph_made_of_wrong_arrays_is_refused(name: str, index: Any, value: float, message: str) -> None:
    """So nothing can be saved that cannot be opened."""
    graph = typed_graph()
    arrays = {key: array.copy() for key, array in graph.to_arrays().items()}
    arrays[name][index] = value
    wrong = Graph.from_arrays(arrays, directed=False, edge_type_names=graph.edge_type_names)
    with pytest.raises(InputError, match=f"graph: .*{message}"):
        full_index(graph=wrong)


def test_an_asymmetric_graph_that_says_undirected_is_refused() -> None:
    wrong = dataclasses.replace(typed_graph(directed=True), directed=False)
    with pytest.raises(InputError, match="not symmetric"):
        full_index(graph=wrong)
