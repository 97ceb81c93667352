"""A HippoRAG folder as an index: its graph is the one that HippoRAG made, and no pickle is read."""

from __future__ import annotations

import json
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from adapters.hipporag_memory import PASSAGES, small_rag, word_vectors, write_outputs, write_store
from cli.cli_files import about, hopfuse
from cli.cli_files import refused as refused_command
from hopfuse import Index
from hopfuse.adapters.hipporag_folder import read_folder
from hopfuse.errors import InputError
from refusals import refused

from bench.drop_ins.hipporag_models import key_of

pa = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow (extra arrow)")
pq = pytest.importorskip("pyarrow.parquet")
MODEL = "recorded_words"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_outputs(tmp_path, "recorded", MODEL)


def test_a_folder_becomes_an_index(folder: Path, tmp_path: Path) -> None:
    done = hopfuse("build", "--from", folder, "--lexical", "--out", tmp_path / "index")
    assert "Saved generation" in done.stderr
    index = Index.open(tmp_path / "index", verify="full")
    assert list(index.passage_ids) == [key_of(text, "chunk") for text in PASSAGES]
    assert index.titles[0] == "Ada Lovelace"
    assert index.texts[0] == "Ada Lovelace wrote notes on the Analytical Engine of Charles Babbage."
    assert "ada lovelace" in index.entity_names
    np.testing.assert_allclose(index.vectors, word_vectors(list(PASSAGES)), atol=1e-7)
    assert index.entity_vectors.shape == (index.num_entities, 64)
    assert set(index.info()["graph"]["edge_types"]) == {"relation", "context"}
    again = read_folder(folder / MODEL)
    assert list(again.passage_ids) == list(index.passage_ids)
    joined = read_folder(folder, synonyms=0.2)
    assert joined.info()["graph"]["edge_types"]["synonym"] > 0


def edges_of(index: Index) -> dict[tuple[str, str], float]:
    """Return the weight between two nodes, by HippoRAG's keys."""
    keys = [*index.passage_ids, *(key_of(name, "entity") for name in index.entity_names)]
    weights: Counter[tuple[str, str]] = Counter()
    src, dst, weight, _ = index.graph.edges()
    for a, b, w in zip(src.tolist(), dst.tolist(), weight.tolist(), strict=True):
        weights[tuple(sorted((keys[a], keys[b])))] += w
    return dict(weights)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("threshold", [0.8, 0.2])
def test_the_graph_is_hipporags(threshold: float, tmp_path: Path) -> None:
    if find_spec("hipporag") is None:
        pytest.skip("hipporag is not installed; the part integrations of .ci/full installs it")
    rag = small_rag(tmp_path, synonymy_edge_sim_threshold=threshold)
    (tmp_path / MODEL / "graph.pickle").write_bytes(b"not read")
    expected: Counter[tuple[str, str]] = Counter()
    names = rag.graph.vs["name"]
    for edge in rag.graph.es:
        expected[tuple(sorted((names[edge.source], names[edge.target])))] += edge["weight"]
    made = edges_of(read_folder(tmp_path, synonyms=threshold))
    assert set(made) == set(expected)
    for pair, weight in expected.items():
        assert made[pair] == pytest.approx(weight, abs=1e-5)


def test_folders_that_are_not_hipporags_are_refused(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "index"
    (tmp_path / "empty").mkdir()
    with refused(InputError, "missing", "folder"):
        read_folder(tmp_path / "empty")
    command = ("build", "--from", folder, "--out", out)
    assert refused_command(*command, folder / "openie_results_ner_recorded.json") == about("conflict", "passages")
    assert refused_command(*command, "--vectors", folder / "x.npy") == about("conflict", "vectors")
    assert refused_command(*command, "--synonyms", "ORG=0.9") == about("unsupported", "synonyms")
    with refused(InputError, "range", "synonyms", given=2):
        read_folder(folder, synonyms=2)
    file = folder / "openie_results_ner_recorded.json"
    text = file.read_text()
    file.write_text(text.replace('"UNIVAC", "built in"', '"ENIAC", "built in"'), encoding="utf-8")
    with refused(InputError, "missing"):
        read_folder(folder)
    fewer = {"docs": json.loads(text)["docs"][1:]}
    file.write_text(json.dumps(fewer), encoding="utf-8")
    with refused(InputError, "missing"):
        read_folder(folder)
    file.write_text("[]", encoding="utf-8")
    with refused(InputError, "syntax"):
        read_folder(folder)
    for odd in ({"passage": [0.5]}, {"extracted_triples": "none"}):
        document = {"passage": "a", "extracted_triples": [], **odd}
        file.write_text(json.dumps({"docs": [document]}), encoding="utf-8")
        with refused(InputError, "type", *odd):
            read_folder(folder)
    file.write_text(text, encoding="utf-8")
    store = folder / MODEL / "chunk_embeddings" / "vdb_chunk.parquet"
    table = pq.read_table(store)
    for column, values in (("content", [None] * len(table)), ("hash_id", [*range(len(table))])):
        at = table.column_names.index(column)
        pq.write_table(table.set_column(at, column, [pa.array(values)]), store)
        with refused(InputError, "type", row=0, column=column):
            read_folder(folder)
    pq.write_table(table, store)
    file.unlink()
    with refused(InputError, "missing"):
        read_folder(folder)
    write_store(folder / "other_words", "chunk", ["a"], word_vectors(["a"]))
    with refused(InputError, "choice", "folder"):
        read_folder(folder)
    with refused(InputError, "missing"):
        read_folder(folder / "other_words")
    assert not out.exists()
