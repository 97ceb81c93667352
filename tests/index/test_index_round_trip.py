"""What goes into an index comes out of it, from memory and from a file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_hits_equal
from hopfuse import Graph
from hopfuse.errors import InputError
from hopfuse.index import Index
from hypothesis import given
from hypothesis import strategies as st
from index.index_files import ALIASES, BLOCK, ENTITIES, PASSAGES, assert_same, full_index, typed_graph, vectors
from refusals import refused


@pytest.mark.parametrize("storage", ["float32", "float16", "bfloat16", "int8"])
@pytest.mark.parametrize("metric", ["ip", "cosine"])
@pytest.mark.parametrize("directed", [False, True])
def test_everything_round_trips(tmp_path: Path, storage: str, metric: str, directed: bool) -> None:
    built = full_index(storage=storage, metric=metric, graph=typed_graph(directed))
    assert built.save(tmp_path) == 1
    opened = Index.open(tmp_path, verify="full")
    assert_same(built, opened)
    assert opened.vectors is not None
    assert opened.vectors.dtype == {"float16": np.float16, "bfloat16": np.uint16}.get(storage, np.float32)
    assert opened.corpus is not None
    assert (opened.corpus.storage, opened.corpus.metric) == (storage, metric)
    assert (opened.metric, opened.storage) == (metric, storage)


@pytest.mark.parametrize("left_out", [("vectors",), ("graph",), ("entity_vectors",), ("aliases",)])
@pytest.mark.parametrize("also", [(), ("vectors", "graph", "entity_vectors", "aliases")])
def test_each_part_is_optional(tmp_path: Path, left_out: tuple[str, ...], also: tuple[str, ...]) -> None:
    built = full_index(**dict.fromkeys(left_out + also))
    built.save(tmp_path)
    opened = Index.open(tmp_path, verify="full")
    assert_same(built, opened)
    for part in set(left_out + also) - {"aliases"}:
        assert getattr(opened, part) is None


def test_values_are_the_ones_given() -> None:
    index = full_index()
    assert list(index.passage_ids) == ["ada", "empty", "东京"]
    assert list(index.titles) == [p["title"] for p in PASSAGES]
    assert list(index.texts) == [p["text"] for p in PASSAGES]
    assert list(index.entity_names) == ENTITIES
    assert list(index.entity_aliases) == [("Ada", "Countess"), (), ("Tokyo", "Tōkyō"), ()]
    assert index.passage_lengths.tolist() == [6, 0, 7]
    assert index.passage_frequency is not None
    assert index.passage_frequency.tolist() == [1, 1, 1, 0]
    assert index.entity_node(0) == 3
    assert index.corpus is index.corpus
    assert index.corpus is not None
    assert index.corpus.num_vectors == 3
    assert index.entity_corpus is not None
    assert index.entity_corpus.dim == 2


def test_passage_frequency_counts_distinct_passages_in_either_direction() -> None:
    graph = Graph.from_edges([0, 3, 0, 1, 2, 3, 3], [3, 0, 3, 3, 4, 4, 3], num_nodes=5, directed=True)
    index = Index.build(passages=[{"text": str(i)} for i in range(3)], graph=graph)
    assert index.passage_frequency is not None
    assert index.passage_frequency.tolist() == [2, 1]


def test_ids_and_entity_names_default_to_row_numbers() -> None:
    index = Index.build(passages=[{"text": "a"}, {"text": "b"}], graph=[{"src": 0, "dst": 3}])
    assert list(index.passage_ids) == [0, 1]
    assert list(index.entity_names) == ["0", "1"]
    assert list(index.titles) == ["", ""]


@pytest.mark.parametrize("passages", [[], [{"text": ""}]])
def test_small_indexes_round_trip(tmp_path: Path, passages: list[dict[str, str]]) -> None:
    built = Index.build(passages=passages, graph=Graph.from_edges([], [], num_nodes=len(passages)))
    built.save(tmp_path)
    opened = Index.open(tmp_path, verify="full")
    assert_same(built, opened)
    assert opened.graph is not None
    assert opened.graph.num_nodes == len(passages)


def test_a_graph_of_entities_alone(tmp_path: Path) -> None:
    built = Index.build(
        passages=[],
        entities=["a", "b"],
        graph=[{"src": 0, "dst": 1, "type": "knows"}],
        vectors=np.zeros((0, 3)),
        entity_vectors=np.eye(2),
    )
    built.save(tmp_path)
    opened = Index.open(tmp_path, verify="full")
    assert_same(built, opened)
    assert opened.dim == 3
    assert opened.entity_node(1) == 1


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(data=st.data(), texts=st.lists(st.tuples(text, text), max_size=6), names=st.lists(text, max_size=5))
def test_any_text_and_graph_round_trip(data: st.DataObject, texts: list[tuple[str, str]], names: list[str]) -> None:
    nodes = len(texts) + len(names)
    node = st.integers(0, max(nodes - 1, 0))
    weight = st.floats(2**-126, 1e6, width=32)
    edges = data.draw(st.lists(st.tuples(node, node, text, weight), max_size=12 if nodes else 0))
    aliases = data.draw(st.dictionaries(st.integers(0, len(names) - 1), st.lists(text, max_size=3))) if names else {}
    built = Index.build(
        passages=[{"title": title, "text": body} for title, body in texts],
        entities=names,
        aliases=aliases,
        graph=[{"src": s, "dst": d, "type": t, "weight": w} for s, d, t, w in edges],
    )
    with tempfile.TemporaryDirectory() as directory:
        built.save(directory)
        opened = Index.open(directory, verify="full")
        assert_same(built, opened)
    assert list(opened.texts) == [body for _, body in texts]
    assert list(opened.entity_aliases) == [tuple(aliases.get(e, ())) for e in range(len(names))]


@given(texts=st.lists(text, max_size=8), item=st.slices(8))
def test_a_column_is_sliced_like_a_list(texts: list[str], item: slice) -> None:
    column = Index.build(passages=[{"text": t} for t in texts]).texts
    assert column[item] == texts[item]
    assert column[:] == texts
    assert [column[i - len(texts)] for i in range(len(texts))] == texts


def test_columns_refuse_rows_outside() -> None:
    index = full_index()
    for column in (index.texts, index.entity_aliases):
        for row in (len(column), -len(column) - 1):
            with pytest.raises(IndexError, match="rows are 0"):
                column[row]
    assert index.texts[np.int64(0)] == PASSAGES[0]["text"]
    assert index.entity_aliases[1:3] == [(), ("Tokyo", "Tōkyō")]
    assert "StringColumn(3 strings)" in repr(index.texts)
    assert "4 strings" in repr(index.entity_aliases)


def test_payloads_of_several_blocks_round_trip(tmp_path: Path) -> None:
    texts = ["x" * 700_000, "é" * 700_000, "", "z" * 2_000_000]
    built = Index.build(passages=[{"text": t} for t in texts], vectors=vectors(4, 80_000))
    built.save(tmp_path)
    assert sum(map(len, texts)) > BLOCK
    opened = Index.open(tmp_path, verify="full")
    assert_same(built, opened)


def test_a_saved_index_can_be_opened_and_saved_elsewhere(tmp_path: Path) -> None:
    built = full_index()
    built.save(tmp_path / "a" / "deep")
    Index.open(tmp_path / "a" / "deep").save(tmp_path / "b")
    assert_same(built, Index.open(tmp_path / "b", verify="full"))


def test_info_describes_the_index(tmp_path: Path) -> None:
    built = full_index(storage="float16")
    assert built.info()["generation"] is None
    built.save(tmp_path)
    built.save(tmp_path)
    info = Index.open(tmp_path).info()
    assert info["format_version"] == 1
    assert info["generation"] == 2
    assert (info["num_passages"], info["num_entities"], info["num_aliases"]) == (3, 4, 4)
    assert (info["dim"], info["entity_dim"], info["metric"], info["storage"]) == (5, 2, "ip", "float16")
    assert info["graph"] == {
        "nodes": 7,
        "stored": typed_graph().num_stored,
        "directed": False,
        "weighted": True,
        "edge_types": {"context": 4, "relation": 2, "同義": 2},
    }
    assert info["sections"]["passage.vectors"] == {"dtype": "float16", "shape": (3, 5), "bytes": 30}
    assert info["bytes"] == sum(s["bytes"] for s in info["sections"].values())


def test_info_names_bfloat16_and_the_originals_of_int8(tmp_path: Path) -> None:
    bfloat16 = full_index(storage="bfloat16")
    assert bfloat16.info()["sections"]["passage.vectors"] == {"dtype": "bfloat16", "shape": (3, 5), "bytes": 30}
    assert bfloat16.corpus is not None
    assert np.allclose(bfloat16.corpus.as_float32(), vectors(3), rtol=2**-8)
    np.save(tmp_path / "p.npy", vectors(3).astype(np.float16))
    built = full_index(storage="int8", vectors=tmp_path / "p.npy", entity_vectors=vectors(4, 2).astype(np.float64))
    built.save(tmp_path / "index")
    opened = Index.open(tmp_path / "index", verify="full")
    assert_same(built, opened)
    sections = opened.info()["sections"]
    assert (sections["passage.vectors"]["dtype"], sections["entity.vectors"]["dtype"]) == ("float16", "float32")
    assert opened.storage == "int8"
    assert opened.corpus is not None
    assert opened.corpus.precision == "float16"


def test_hits_of_an_opened_index_are_those_of_its_vectors(tmp_path: Path) -> None:
    rows, queries = vectors(300, 12), vectors(4, 12, seed=5)
    passages = [{"text": str(i)} for i in range(300)]
    for storage in ("float32", "float16", "bfloat16", "int8"):
        given: Any = rows.astype(np.float16) if storage == "int8" else rows
        Index.build(passages=passages, vectors=given, storage=storage).save(tmp_path / storage)  # type: ignore[arg-type]
        corpus = Index.open(tmp_path / storage).corpus
        expected = hf.Corpus.from_array(rows, storage="float16" if storage == "int8" else storage)  # type: ignore[arg-type]
        assert_hits_equal(hf.dense_topk(queries, corpus, 5), hf.dense_topk(queries, expected, 5))


def test_an_index_cannot_be_changed(tmp_path: Path) -> None:
    built = full_index()
    built.save(tmp_path)
    for index in (built, Index.open(tmp_path)):
        for name in ("texts", "metric", "_sections", "something_new"):
            with pytest.raises(AttributeError):
                setattr(index, name, None)
        for array in (index.vectors, index.passage_lengths, index.passage_frequency, index.entity_vectors):
            assert array is not None
            assert not array.flags.writeable
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
        with pytest.raises(TypeError):
            index.texts[0] = "x"  # type: ignore[index]


def test_given_vectors_are_referenced_and_stay_writable() -> None:
    given_vectors = vectors(3)
    index = full_index(vectors=given_vectors)
    assert index.vectors is not None
    assert np.shares_memory(index.vectors, given_vectors)
    assert given_vectors.flags.writeable


def test_entity_node_refuses_anything_but_an_entity() -> None:
    index = full_index()
    assert [index.entity_node(e) for e in range(4)] == [3, 4, 5, 6]
    for entity in (-1, 4):
        with refused(InputError, "range", "entity", allowed="a whole number from 0 to 3"):
            index.entity_node(entity)


def test_aliases_by_name_and_index_add_up() -> None:
    index = full_index(aliases={"Ada Lovelace": ["Ada"], np.int64(0): ("A. L.",), 3: []})
    assert index.entity_aliases[0] == ("Ada", "A. L.")
    assert len(ALIASES) == 2
    assert index.entity_aliases[3] == ()


def test_aliases_are_read_through_as_they_are_one_by_one(tmp_path):
    """More entities than are read at once, some of the chunks without any alias."""
    names = [f"entity {e}" for e in range(9000)]
    aliases = {e: [f"alias {e}", "é" * (e % 3)] for e in [*range(0, 50, 7), 4095, 4096, 8999]}
    built = Index.build(passages=[{"text": "one"}], entities=names, aliases=aliases)
    built.save(tmp_path)
    for index in (built, Index.open(tmp_path)):
        rows = list(index.entity_aliases)
        assert rows == [tuple(aliases.get(e, ())) for e in range(9000)]
        assert rows[4090:4100] == [index.entity_aliases[e] for e in range(4090, 4100)]
    assert list(Index.build(passages=[{"text": "one"}]).entity_aliases) == []
