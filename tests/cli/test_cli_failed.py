"""``hopfuse build`` and ``add`` with passages that the endpoint refuses: counted, listed, and read again."""

from __future__ import annotations

from typing import Any

import pytest
from cli.cli_files import AS_DATA, about, read_jsonl, run, said_error, write_jsonl
from encoders.embedding_server import EmbeddingServer, answered
from hopfuse import Index
from llm.chat_server import ChatServer, failure
from llm.cities import Cities, rows

pytest.importorskip("openai", reason="the openai client is not installed: pip install 'hopfuse[llm]'")
pytest.importorskip("click")

REFUSED = failure(400, "flagged by the filter")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1")


def succeeded(*args: Any) -> str:
    done = run(*args)
    assert done.returncode == 0, done.stderr
    return done.stderr


def cities_of(index: Any) -> list[str]:
    return sorted(name for name in Index.open(index).entity_names if name.startswith("City"))


def test_a_build_goes_on_without_a_passage_lists_it_and_asks_about_it_again(tmp_path):
    given = write_jsonl(tmp_path / "p.jsonl", rows(10, document="d", language="en", metadata={"year": 2020}))
    out, failed, cities = tmp_path / "index", tmp_path / "failed.jsonl", Cities({"City4": REFUSED})
    with ChatServer(cities) as server:
        asks = ("--reader", "endpoint", "--endpoint", server.url, "--model", "m", "--cache", tmp_path / "cache")
        told = succeeded("build", given, *asks, "--failed", failed, "--out", out)
        assert "10 passages read, without 1 that failed" in told
        assert "'p4'" in told
        assert "flagged by the filter" in told
        (row,) = read_jsonl(failed)
        assert "flagged by the filter" in row.pop("failure")
        assert row == rows(10, document="d", language="en", metadata={"year": 2020})[4]
        assert cities_of(out) == [f"City{at}" for at in range(10) if at != 4]
        assert Index.open(out).num_passages == 10
        cities.odd, before = {}, len(server.requests)
        told = succeeded("build", given, *asks, "--failed", failed, "--out", out, "--overwrite")
        assert "failed" not in told
        assert len(server.requests) == before + 2
        assert cities_of(out) == [f"City{at}" for at in range(10)]
        assert failed.read_text() == ""


def test_the_list_of_failures_is_read_by_add(tmp_path):
    given = write_jsonl(tmp_path / "p.jsonl", rows(10))
    out, failed, cities = tmp_path / "index", tmp_path / "failed.jsonl", Cities({"City4": REFUSED})
    with ChatServer(cities) as server:
        asks = ("--reader", "endpoint", "--endpoint", server.url, "--model", "m")
        succeeded("build", given, *asks, "--failed", failed, "--out", out)
        cities.odd, before = {}, len(server.requests)
        told = succeeded("add", out, failed, "--replace", *asks)
        assert "failed" not in told
        assert len(server.requests) == before + 2
    assert cities_of(out) == [f"City{at}" for at in range(10)]
    assert Index.open(out).num_passages == 10


def test_add_lists_the_failures_of_all_batches(tmp_path):
    given = write_jsonl(tmp_path / "p.jsonl", rows(4))
    more = write_jsonl(tmp_path / "more.jsonl", rows(16)[4:])
    failed = tmp_path / "failed.jsonl"
    with ChatServer(Cities({"City5": REFUSED, "City14": REFUSED})) as server:
        asks = ("--reader", "endpoint", "--endpoint", server.url, "--model", "m")
        succeeded("build", given, *asks, "--out", tmp_path / "index")
        asks = (*asks, "--skip-failed", "20", "--failed", failed)
        told = succeeded("add", tmp_path / "index", more, *asks, "--batch", "4")
        assert "12 passages read, without 2 that failed" in told
        assert [row["id"] for row in read_jsonl(failed)] == ["p5", "p14"]
        assert Index.open(tmp_path / "index").num_passages == 16


def test_the_share_is_of_all_that_add_reads(tmp_path):
    given, more = (write_jsonl(tmp_path / f"{at}.jsonl", part) for at, part in enumerate((rows(4), rows(14)[4:])))
    with ChatServer(Cities({"City6": REFUSED})) as server:
        asks = ("--reader", "endpoint", "--endpoint", server.url, "--model", "m")
        succeeded("build", given, *asks, "--out", tmp_path / "index")
        assert "10 passages read, without 1 that failed" in succeeded(
            "add", tmp_path / "index", more, *asks, "--batch", "1"
        )
    assert Index.open(tmp_path / "index").num_passages == 14
    with ChatServer(Cities({"City5": REFUSED, "City8": REFUSED})) as server:
        asks = ("--reader", "endpoint", "--endpoint", server.url, "--model", "m")
        succeeded("build", given, *asks, "--out", tmp_path / "other")
        stopped = run("add", tmp_path / "other", more, *asks, "--batch", "1", env=AS_DATA)
        assert said_error(stopped) == about("limit", "skip_failed", given=2, place="after 4 passages added")
    assert Index.open(tmp_path / "other").num_passages == 8


def test_a_share_above_the_bound_stops_the_build(tmp_path):
    given = write_jsonl(tmp_path / "p.jsonl", rows(10))
    out = tmp_path / "index"
    with ChatServer(Cities({"City4": REFUSED, "City5": REFUSED})) as server:
        asks = ("build", given, "--reader", "endpoint", "--endpoint", server.url, "--model", "m", "--out", out)
        for more, refusal in [
            ((), about("limit", "skip_failed", given=2, allowed=10)),
            (("--skip-failed", "0"), about("reply", None, status=400)),
        ]:
            assert said_error(run(*asks, *more, env=AS_DATA)) == refusal
            assert not out.exists()
        assert "10 passages read, without 2 that failed" in succeeded(*asks, "--skip-failed", "20")
    assert Index.open(out).num_passages == 10


def test_options_of_failures_are_checked_before_the_first_request(tmp_path):
    given = write_jsonl(tmp_path / "p.jsonl", rows(3))
    mine = write_jsonl(tmp_path / "mine.jsonl", [{"id": "a", "text": "mine"}])
    with ChatServer(Cities()) as server:
        asks = ("--reader", "endpoint", "--endpoint", server.url, "--model", "m", "--out", tmp_path / "index")
        for options, refusal in [
            ((*asks, "--skip-failed", "101"), about("range", "skip_failed", given=101)),
            ((*asks, "--failed", given), about("conflict", "failed")),
            ((*asks, "--failed", mine), about("exists", "failed", file=mine)),
            ((*asks, "--failed", tmp_path / "f.txt"), about("choice", "failed")),
            ((*asks, "--failed", tmp_path / "no" / "f.jsonl"), about("missing", "failed")),
            (
                (*asks, "--failed", tmp_path / "c.jsonl", "--conflicts", tmp_path / "c.jsonl"),
                about("conflict", "conflicts"),
            ),
            (("--out", tmp_path / "index", "--failed", mine), about("unused", "failed")),
            (("--reader", "words", "--out", tmp_path / "index", "--skip-failed", "5"), about("unused", "skip_failed")),
        ]:
            assert said_error(run("build", given, *options, env=AS_DATA)) == refusal
        assert server.requests == []
    assert mine.read_text() == '{"id": "a", "text": "mine"}\n'
    assert not (tmp_path / "index").exists()


def too_long(*words: str) -> Any:
    """Refuse texts with one of these words, as an endpoint of vectors that reads at most some tokens."""

    def reply(request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        bad = [text for text in request["input"] if any(f"{word} " in text for word in words)]
        return (413, {"error": {"message": "too many tokens"}}) if bad else answered(request)

    return reply


@pytest.mark.parametrize("reader", [(), ("--reader", "words")])
def test_passages_without_a_vector_are_listed_and_encoded_again(tmp_path, monkeypatch, reader):
    if reader:
        pytest.importorskip("bm25s", reason="words are read by bm25s (extra text)")
        pytest.importorskip("Stemmer", reason="words are stemmed")
    cities = [{"id": f"p{at}", "text": f"City{at} is a city.", "metadata": {"at": at}} for at in range(30)]
    given, more = (write_jsonl(tmp_path / f"{at}.jsonl", part) for at, part in enumerate((cities[:10], cities[10:])))
    out, failed = tmp_path / "index", tmp_path / "failed.jsonl"
    encodes = ("--encoder", "endpoint:letters:2b:4", "--failed", failed)

    def without_a_vector() -> list[str]:
        index = Index.open(out)
        return [index.passage_ids[at] for at in (~index.vectors.any(axis=1)).nonzero()[0]]

    with EmbeddingServer().running() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        server.reply = too_long("City4", "City5")
        stopped = run("build", given, *reader, *encodes, "--out", out, env=AS_DATA)
        assert said_error(stopped) == about("limit", "skip_failed", given=2, allowed=10)
        assert not out.exists()
        told = succeeded("build", given, *reader, *encodes, "--skip-failed", "20", "--out", out)
        assert "10 passages read, without 2 that failed" in told
        assert "They have no vector." in told
        assert "too many tokens" in told
        assert without_a_vector() == ["p4", "p5"]
        rows = read_jsonl(failed)
        assert all("413" in row.pop("failure") for row in rows)
        assert [{name: row[name] for name in cities[0]} for row in rows] == cities[4:6]
        assert Index.open(out).encoder.name == "endpoint/letters:2b"
        server.reply = too_long("City5")
        succeeded("add", out, failed, "--replace", "--encoder", encodes[1], "--skip-failed", "50")
        assert without_a_vector() == ["p5"]
        server.reply = too_long("City12", "City29")
        told = succeeded("add", out, more, *encodes, "--batch", "8")
        assert "20 passages read, without 2 that failed" in told
        assert [row["id"] for row in read_jsonl(failed)] == ["p12", "p29"]
        assert without_a_vector() == ["p5", "p12", "p29"]
        assert Index.open(out).num_passages == 30


def test_passages_may_lack_facts_and_a_vector(tmp_path, monkeypatch):
    given = write_jsonl(tmp_path / "p.jsonl", rows(10))
    out, failed = tmp_path / "index", tmp_path / "failed.jsonl"
    with ChatServer(Cities({"City4": REFUSED})) as server, EmbeddingServer().running() as vectors:
        monkeypatch.setenv("OPENAI_BASE_URL", vectors.url)
        texts = [row["text"] for row in rows(10)]
        vectors.reply = too_long(texts[4].split()[0], texts[6].split()[0])
        asks = ("--reader", "endpoint", "--endpoint", server.url, "--model", "m", "--skip-failed", "20")
        told = succeeded("build", given, *asks, "--encoder", "endpoint:letters:4", "--failed", failed, "--out", out)
    assert "10 passages read, without 2 that failed" in told
    assert "They have no facts or no vector." in told
    first, second = read_jsonl(failed)
    assert (first["id"], second["id"]) == ("p4", "p6")
    assert "flagged by the filter" in first["failure"]
    assert "too many tokens" in first["failure"]
    assert "flagged" not in second["failure"]


@pytest.mark.parametrize(
    ("more", "refusal"),
    [
        (("--skip-failed", "5"), about("unused", "skip_failed")),
        (("--encoder", "wordllama", "--failed", "f.jsonl"), about("unused", "failed")),
        (("--encoder", "endpoint:letters"), about("choice", "encoder")),
        (("--encoder", "endpoint:letters:none"), about("choice", "encoder")),
        (("--encoder", "endpoint:letters:4", "--skip-failed", "101"), about("range", "skip_failed")),
    ],
)
def test_what_cannot_fail_takes_no_share(tmp_path, monkeypatch, more, refusal):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    given = write_jsonl(tmp_path / "p.jsonl", rows(3))
    assert said_error(run("build", given, *more, "--out", tmp_path / "index", env=AS_DATA)) == refusal
