"""The experiments from files: the lists of a small folder, and the second stage's own command."""

from __future__ import annotations

import json
from pathlib import Path

import hopfuse as hf
import numpy as np
import pytest
import tiny_cross_encoder

from experiments.fusion import reranking
from experiments.fusion.arms import walk
from experiments.fusion.legs import EDGE_TYPES, open_legs
from experiments.fusion.nanoranker import NanoRanker
from experiments.fusion.questions import LINKS
from experiments.published import FOLDERS
from experiments.record import read_results

WORDS = ("river", "sea", "rome", "romulus", "founded")
PASSAGES, QUESTIONS = 30, 12


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both folders: passages that name entities, a question for some pairs of neighbours."""
    for module in ("wordllama", "bm25s", "Stemmer"):
        pytest.importorskip(module, reason="mentions are matched with WordLlama, the lexical list is BM25's")
    root = tmp_path_factory.mktemp("data")
    for seed, name in enumerate(FOLDERS):
        write_folder(root / name, np.random.default_rng(seed))
    return root


def write_folder(folder: Path, draw: np.random.Generator) -> None:
    (folder / "graph").mkdir(parents=True)
    entities = [f"{word} {i}" for i in range(4) for word in WORDS]
    of = draw.integers(0, len(entities), PASSAGES)
    texts = [f"the {entities[e]} and the {entities[(e + 1) % len(entities)]}" for e in of]
    gold = [[i, i + 1] for i in range(QUESTIONS)]
    write_jsonl(folder / "passages.jsonl", [{"id": i, "title": f"P{i}", "text": t} for i, t in enumerate(texts)])
    asked = [{"id": f"q{i}", "question": f"who founded {entities[of[i]]}", "gold": two} for i, two in enumerate(gold)]
    hops = [{"hops": [[a], [b]], "last_hop": [b]} for a, b in gold]
    write_jsonl(folder / "queries.jsonl", [row | known for row, known in zip(asked, hops, strict=True)])
    mentions = [{"id": f"q{i}", "entities": [[entities[of[i]], "LINK"]]} for i in range(QUESTIONS)]
    write_jsonl(folder / "query_entities.jsonl", mentions)
    for name, rows in {"passage": PASSAGES, "query": QUESTIONS}.items():
        np.save(folder / f"{name}_emb.f16.npy", draw.normal(size=(rows, 8)).astype(np.float16))
    nodes = [("passage", f"P{i}") for i in range(PASSAGES)] + [("entity", name) for name in entities]
    edges = [(i, PASSAGES + e, "context", 1.0) for i, e in enumerate(of)]
    edges += [(i, PASSAGES + (e + 1) % len(entities), "context", 1.0) for i, e in enumerate(of)]
    edges += [(PASSAGES + i, PASSAGES + i + 5, kind, w) for i, (kind, w) in enumerate([("synonym", 0.85)] * 5)]
    edges += [(PASSAGES + i, PASSAGES + i + 9, "synonym", 0.95) for i in range(5)]
    edges += [(PASSAGES + i, PASSAGES + i + 3, "relation", 2.0) for i in range(5)]
    write_tsv(folder / "graph" / "nodes.tsv", [(i, *node) for i, node in enumerate(nodes)])
    write_tsv(folder / "graph" / "edges.tsv", edges)
    write_tsv(folder / "graph" / "facts.tsv", [(PASSAGES + i, "met", PASSAGES + i + 3, i) for i in range(5)])


def write_jsonl(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_tsv(path: Path, rows: list[tuple[object, ...]]) -> None:
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")


def test_the_lists_are_the_recipes_and_the_stored_links_are_its_graph(data: Path) -> None:
    legs = open_legs(data / FOLDERS[0], hf.encoders.WordLlamaEncoder(64))
    assert {name: len(hits) for name, hits in legs.lists.items()} == dict.fromkeys(("dense", "graph", "lexical"), 12)
    vectors = [np.load(data / FOLDERS[0] / f"{name}_emb.f16.npy").astype(np.float32) for name in ("query", "passage")]
    best = (vectors[0] @ vectors[1].T).argmax(axis=1)
    np.testing.assert_array_equal(legs.lists["dense"].ids[:, 0], best)
    assert legs.linked.edge_type_names == EDGE_TYPES
    stored = walk(legs, LINKS["at least 0.8"], 10)
    assert (stored.counts > 2).all()
    np.testing.assert_allclose(stored.scores, legs.lists["graph"].scores[:, :10], atol=1e-6)
    assert np.abs(walk(legs, LINKS["none"], 10).scores - stored.scores).max() > 1e-3


def test_the_second_stages_command(data: Path, tmp_path: Path) -> None:
    torch, tokenizers = pytest.importorskip("torch"), pytest.importorskip("tokenizers")
    pytest.importorskip("sentence_transformers")
    model, results = tmp_path / "a-model", tmp_path / "results.json"
    tiny_cross_encoder.save(model, 1, torch, tokenizers)
    reranking.main(["--model", str(model), "--data", str(data), "--results", str(results)])
    written = read_results(results)
    assert (written["model"], written["candidates"]) == ("a-model", 20)
    assert written["versions"]["torch"] == torch.__version__
    assert set(written["question"]["arms"]) == {"fused", "reranked", "fused + reranked"}
    compared = written["question"]["comparisons"]
    assert {c["folder"] for c in compared} == set(FOLDERS)
    assert any(c["wins"] + c["losses"] for c in compared if c["first"] == "reranked")


def test_nanorankers_scores_are_the_packages_own() -> None:
    package = pytest.importorskip("nanoranker", reason="its weights are in the package")
    texts = ["Christopher Nolan directed Inception.", "The sea is blue.", "Titanic was directed by James Cameron."]
    found, none = NanoRanker().score(["Who directed Inception?", "?"], [texts, []])
    expected = dict(package.rank("Who directed Inception?", texts, normalize_scores=False))
    np.testing.assert_allclose(found, [expected[text] for text in texts], rtol=1e-5)
    assert none.shape == (0,)
    assert found[0] == found.max()
