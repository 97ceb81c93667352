"""``hopfuse build --from``: an index of OpenIE files or triples, and searches of it."""

import json

import pytest
from cli.cli_files import about, hopfuse, refused, write_jsonl
from hopfuse import Index

DOCUMENTS = [
    {
        "idx": "a",
        "passage": "IMF\nThe International Monetary Fund (IMF) was founded in Bretton Woods.",
        "extracted_entities": ["International Monetary Fund", "Bretton Woods"],
        "extracted_triples": [["International Monetary Fund", "founded in", "Bretton Woods"], ["broken"]],
    },
    {
        "idx": "b",
        "passage": "Lending\nThe IMF lends to states.",
        "extracted_entities": ["IMF"],
        "extracted_triples": [["IMF", "lends to", "states"], ["the IMF", "is", "a fund"]],
    },
]


@pytest.fixture
def openie(tmp_path):
    file = tmp_path / "openie.json"
    file.write_text(json.dumps({"docs": DOCUMENTS}), encoding="utf-8")
    return file


def test_openie_becomes_an_index(openie, tmp_path):
    done = hopfuse("build", "--from", openie, "--out", tmp_path / "index")
    assert "2 facts; left out: 1 malformed, 1 generic, 0 loop, 0 outvoted" in done.stderr
    index = Index.open(tmp_path / "index", verify="full")
    assert list(index.passage_ids) == ["a", "b"]
    assert list(index.titles) == ["IMF", "Lending"]
    assert list(index.entity_names)[:3] == ["International Monetary Fund", "Bretton Woods", "IMF"]
    assert index.info()["graph"]["edge_types"] == {"context": 5, "creation": 1, "other": 1}
    assert index.vectors is None
    assert index.info()["facts"] == {"facts": 2, "relations": 2, "statements": 2}
    assert index.facts.relations == ("founded in", "lends to")
    assert index.facts.passages.tolist() == [0, 1]


def test_a_folder_with_openie_results_alone_is_named(openie, tmp_path):
    folder = tmp_path / "outputs"
    folder.mkdir()
    openie.rename(folder / "openie_results_ner_model.json")
    line = refused("build", "--from", folder, "--out", tmp_path / "index")
    assert line == about("missing", "from", file="openie_results_ner_model.json")
    assert hopfuse("build", "--from", folder / "openie_results_ner_model.json", "--out", tmp_path / "index")


def test_synonyms_need_an_encoder_and_join_similar_names(openie, tmp_path):
    pytest.importorskip("wordllama")
    args = ("build", "--from", openie, "--encoder", "wordllama:64", "--synonyms", "0.99", "--lexical")
    done = hopfuse(*args, "--out", tmp_path / "index")
    assert "Synonyms: 1 by abbreviation, 0 by similarity" in done.stderr
    index = Index.open(tmp_path / "index")
    assert index.info()["graph"]["edge_types"]["synonym"] == 1
    assert index.entity_corpus is not None
    assert index.lexical is not None
    assert len(index.corpus) == 2
    assert refused("build", "--from", openie, "--synonyms", "0.8", "--out", tmp_path / "i") == about(
        "unused", "synonyms", other="encoder"
    )


def test_lines_of_openie_need_their_passages(tmp_path):
    passages, file = tmp_path / "passages.jsonl", tmp_path / "openie.jsonl"
    write_jsonl(passages, [{"_id": "a", "title": "T", "text": "Ada wrote notes.", "metadata": {"year": 1843}}])
    write_jsonl(file, [{"id": "a", "entities": ["Ada"], "triples": [["Ada", "wrote", "notes"]]}])
    hopfuse("build", passages, "--from", file, "--out", tmp_path / "index")
    index = Index.open(tmp_path / "index")
    assert (list(index.passage_ids), list(index.titles), index.metadata.row(0)) == (["a"], ["T"], {"year": 1843})
    assert list(index.entity_names) == ["Ada", "notes"]
    assert refused("build", "--from", file, "--out", tmp_path / "other") == about("missing", "passages")
    assert not (tmp_path / "other").exists()


def test_triples_become_passages_of_their_heads(tmp_path):
    file = tmp_path / "kb.tsv"
    file.write_text("Alien\tdirected by\tRidley Scott\nAlien\tin language\tEnglish\n", encoding="utf-8")
    hopfuse("build", "--from", file, "--out", tmp_path / "index")
    index = Index.open(tmp_path / "index")
    assert list(index.texts) == ["Alien directed by Ridley Scott. Alien in language English."]
    assert list(index.entity_names) == ["Alien", "Ridley Scott", "English"]
    edges = tmp_path / "edges.tsv"
    edges.write_text("0\t1\n", encoding="utf-8")
    out = ("--out", tmp_path / "other")
    assert refused("build", "--from", file, "--edges", edges, *out) == about("conflict", "edges", other="from")
    assert refused("build", edges, "--from", file, *out) == about("conflict", "passages", file="kb.tsv")
    assert refused("build", "--from", tmp_path / "kb.csv", *out) == about("choice", "from")
    assert refused("build", *out) == about("missing", "passages")
    assert refused("build", edges, "--synonyms", "0.5", *out) == about("unused", "synonyms")
    assert not (tmp_path / "other").exists()
