"""Vectors of an OpenAI-compatible endpoint: a real server on loopback, batches, what is kept, what is refused."""

from __future__ import annotations

import sqlite3

import hopfuse as hf
import numpy as np
import pytest
from encoders.embedding_server import EmbeddingServer, answered, vector
from hopfuse.encoders import Encoder, EndpointEncoder
from hopfuse.errors import EndpointError, InputError
from refusals import refused

pytest.importorskip("openai", reason="endpoints are asked by openai (extra llm)")

TEXTS = [f"a road {'e' * at} {'o' * (at % 3)}" for at in range(10)]


@pytest.fixture
def server():
    with EmbeddingServer().running() as server:
        yield server


@pytest.fixture
def make(server):
    def make(**options):
        given = {"model": "letters", "dim": 4, "retries": 0, **options}
        return EndpointEncoder(server.url, **given)

    return make


def unit(texts):
    rows = np.array([vector(text) for text in texts])
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_vectors_in_batches_in_the_order_of_the_texts(server, make):
    encoder = make(batch_size=3, api_key="sk-1")
    assert isinstance(encoder, Encoder)
    rows = encoder.encode_passages([*TEXTS, TEXTS[0]])
    assert (rows.dtype, rows.shape, rows.flags.c_contiguous) == (np.float32, (11, 4), True)
    np.testing.assert_allclose(rows, unit([*TEXTS, TEXTS[0]]), rtol=1e-6)
    assert sorted(len(one["input"]) for one in server.requests) == [1, 3, 3, 3]  # ten texts, the eleventh is the first
    assert {one["path"] for one in server.requests} == {"/v1/embeddings"}
    assert {one["encoding_format"] for one in server.requests} == {"float"}
    assert set(server.keys) == {"Bearer sk-1"}
    assert encoder.encode_queries([]).shape == (0, 4)
    assert (encoder.name, encoder.dim, encoder.normalize) == ("endpoint/letters", 4, True)


def test_prefixes_dimensions_and_raw_vectors(server, make):
    encoder = make(dim=2, ask_dim=True, query_prefix="query: ", passage_prefix="text: ", normalize=False, name="mine")
    assert encoder.encode_queries(["a"]).tolist() == [vector("query: a", 2)]
    assert encoder.encode_passages(["a"]).tolist() == [vector("text: a", 2)]
    assert [one["input"] for one in server.requests] == [["query: a"], ["text: a"]]
    assert [one["dimensions"] for one in server.requests] == [2, 2]
    assert encoder.name == "mine"


def test_what_is_kept_is_not_asked_again(server, make, tmp_path):
    cache = tmp_path / "vectors.db"
    first = make(cache=cache, batch_size=4).encode_passages(TEXTS[:6])
    assert sum(len(one["input"]) for one in server.requests) == 6
    again = make(cache=cache).encode_queries(TEXTS)
    assert sum(len(one["input"]) for one in server.requests) == 10
    np.testing.assert_array_equal(again[:6], first)
    assert make(cache=cache, model="other").encode_queries(TEXTS[:1]).shape == (1, 4)
    assert server.requests[-1]["model"] == "other"
    with sqlite3.connect(cache) as db:
        held = db.execute("SELECT key, vector FROM vectors").fetchall()
        db.execute("UPDATE vectors SET vector = x'00'")  # torn
    db.close()
    assert len(held) == 11
    assert b"road" not in b"".join(key + row for key, row in held)
    np.testing.assert_array_equal(make(cache=cache).encode_queries(TEXTS[:1]), first[:1])


def test_vectors_are_forgotten_in_every_byte(server, make, tmp_path):
    cache, texts = tmp_path / "vectors.db", [f"the text of number {at}" for at in range(40)]
    encoder = make(cache=cache, batch_size=4, query_prefix="q: ", passage_prefix="p: ", normalize=False)
    vectors = encoder.encode_passages(texts)
    encoder.encode_queries(texts[:2])
    asked = sum(len(one["input"]) for one in server.requests)
    assert asked == 42
    assert all(row.tobytes() in cache.read_bytes() for row in vectors)
    encoder.forget(texts[:2])
    make().forget(texts[:2])  # there is no cache
    held = {row.tobytes() for row in vectors[2:]}
    assert [row.tobytes() in cache.read_bytes() for row in vectors[:2]] == [
        row.tobytes() in held for row in vectors[:2]
    ]
    np.testing.assert_array_equal(encoder.encode_passages(texts), vectors)
    encoder.encode_queries(texts[:2])
    assert sum(len(one["input"]) for one in server.requests) == asked + 4
    with refused(InputError, "type", "texts"):
        encoder.forget("a text")


def test_an_index_lets_the_cache_forget_what_was_deleted_when_it_is_compacted(server, make, tmp_path):
    cache, folder = tmp_path / "vectors.db", tmp_path / "index"
    encoder = make(cache=cache)
    rows = [{"id": at, "title": "T" * (at % 2), "text": f"the text of number {at}"} for at in range(6)]
    hf.Index.build(passages=rows[:3], encoder=encoder).save(folder)
    with hf.Index.open(folder, writable=True, encoder=encoder) as live:
        with live.change() as change:
            change.add_passages(rows[3:])
        with live.change() as change:
            change.delete_passages([1, 4])
        before = sum(len(one["input"]) for one in server.requests)
        live.compact()
        with live.change() as change:
            change.add_passages([{**row, "id": row["id"] + 10} for row in rows])
    again = [text for one in server.requests for text in one["input"]][before:]
    assert again == ["T\nthe text of number 1", "the text of number 4"]


def test_servers_with_a_model_of_one_name_share_no_vectors(server, make, tmp_path):
    cache = tmp_path / "vectors.db"
    mine = make(cache=cache).encode_queries(["a"])
    with EmbeddingServer().running() as other:
        other.reply = lambda request: (200, {"data": [{"index": 0, "embedding": [0.0, 0.0, 0.0, 1.0]}]})
        encoder = EndpointEncoder(f"{other.url}/", model="letters", dim=4, retries=0, cache=cache)
        assert encoder.encode_queries(["a"]).tolist() == [[0.0, 0.0, 0.0, 1.0]]
        slashed = EndpointEncoder(f"{server.url}/", model="letters", dim=4, retries=0, cache=cache)
        np.testing.assert_array_equal(slashed.encode_queries(["a"]), mine)
    assert (len(server.requests), len(other.requests)) == (1, 1)


def test_batches_that_were_answered_are_kept_where_another_fails(server, make, tmp_path):
    server.reply = lambda request: (
        (400, {"error": {"message": "too long"}}) if "bad" in request["input"] else answered(request)
    )
    encoder = make(cache=tmp_path / "v.db", batch_size=1, concurrency=1)
    with refused(EndpointError, "reply", status=400) as caught:
        encoder.encode_passages(["good", "bad"])
    assert "too long" in caught.value.values["said"]
    server.reply = None
    encoder.encode_passages(["good", "bad"])
    assert [one["input"] for one in server.requests] == [["good"], ["bad"], ["bad"]]


def refusing(*texts, status=400):
    """Refuse requests that contain one of these texts, as endpoints do that read at most some tokens."""

    def reply(request):
        bad = [text for text in request["input"] if text in texts]
        return (status, {"error": {"message": f"too long: {bad[0]}"}}) if bad else answered(request)

    return reply


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_text_that_is_refused_costs_no_other_its_vector(server, make, tmp_path, status):
    server.reply = refusing(TEXTS[2], TEXTS[7], status=status)
    told = {}
    encoder = make(cache=tmp_path / "v.db", batch_size=4, concurrency=2)
    vectors = encoder.try_passages([*TEXTS, TEXTS[2]], lambda at, error: told.update({at: error}))
    kept = [at for at in range(10) if at not in (2, 7)]
    np.testing.assert_array_equal(vectors[kept], unit([TEXTS[at] for at in kept]))
    assert not vectors[[2, 7, 10]].any()
    assert sorted(told) == [2, 7, 10]
    assert [told[at].values["status"] for at in (2, 7)] == [status, status]
    assert f"too long: {TEXTS[7]}" in told[7].values["said"]
    server.reply = None
    before = len(server.requests)
    np.testing.assert_array_equal(encoder.try_passages(TEXTS, lambda at, error: pytest.fail(str(error))), unit(TEXTS))
    assert sorted(text for one in server.requests[before:] for text in one["input"]) == sorted([TEXTS[2], TEXTS[7]])


def test_what_refuses_no_single_text_ends_the_call(server, make):
    for status in (401, 404, 500):
        server.reply = lambda request, status=status: (status, {"error": {"message": "no"}})
        with refused(EndpointError, "reply", status=status):
            make().try_passages(TEXTS, lambda at, error: pytest.fail(str(error)))
    assert len(server.requests) == 3
    server.reply = refusing(*TEXTS)

    def stop(at, error):
        raise error

    with refused(EndpointError, "reply", status=400):
        make(batch_size=2, concurrency=1).try_passages(TEXTS, stop)
    assert len(server.requests) == 5  # a batch and the first half of it


def test_a_passage_that_is_refused_is_in_the_index_without_a_vector(server, make):
    server.reply = refusing(TEXTS[3])
    rows, told = [{"id": f"p{at}", "text": text} for at, text in enumerate(TEXTS)], {}
    with refused(EndpointError, "reply", status=400):
        hf.Index.build(rows, encoder=make())
    for more in ({}, {"storage": "int8"}, {"storage": "float16"}):
        index = hf.Index.build(rows, encoder=make(), failed=lambda at, error: told.update({at: error}), **more)
        assert (list(told), index.num_passages) == ([3], 10)
        found = hf.dense_topk(unit(TEXTS[3:4]), index.corpus, 9).ids[0]
        assert sorted(found.tolist()) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    with refused(InputError, "zero", "metric", given="p3"):
        hf.Index.build(rows, encoder=make(), metric="cosine", failed=lambda at, error: None)


def test_a_reader_and_a_change_go_on_without_a_vector(server, make, tmp_path):
    pytest.importorskip("bm25s", reason="words are read by bm25s (extra text)")
    pytest.importorskip("Stemmer", reason="words are stemmed")
    server.reply = refusing(TEXTS[3], TEXTS[8])
    rows, told = [{"id": f"p{at}", "text": text} for at, text in enumerate(TEXTS)], []
    index = hf.Index.build(rows[:6], reader="words", encoder=make(), failed=lambda at, error: told.append(at))
    index.save(tmp_path / "index")
    with hf.Index.open(tmp_path / "index", writable=True, encoder=make()) as live:
        with refused(EndpointError, "reply", status=400), live.change() as change:
            change.add_passages(rows[6:])
        with live.change() as change:
            change.add_passages(rows[6:], failed=lambda at, error: told.append(at))
        index = live.refresh()
    assert told == [3, 2]
    assert np.flatnonzero(~index.vectors.any(axis=1)).tolist() == [3, 8]


@pytest.mark.parametrize(
    ("status", "body", "refusal"),
    [
        (200, {"data": [{"index": 0, "embedding": [1.0, 2.0]}]}, ("shape", "dim")),
        (200, {"data": [{"index": at, "embedding": [1.0] * 4} for at in range(2)]}, ("shape", "dim")),
        (200, {"data": []}, ("shape", "dim")),
        (200, {"data": [{"index": 0, "embedding": [1e39] * 4}]}, ("finite", None)),
        (200, {"data": [{"index": 0, "embedding": None}]}, ("type", None)),
        (200, {"data": [{"index": 0, "embedding": ["a"] * 4}]}, ("type", None)),
        (200, {"data": [{"index": 0, "embedding": [[1.0], [2.0], [3.0], [4.0]]}]}, ("type", None)),
        (200, {"data": [{"index": 0, "embedding": [[1.0], 2.0, 3.0, 4.0]}]}, ("type", None)),
        (200, {"data": [{"index": 0, "embedding": [None, 1.0, 1.0, 1.0]}]}, ("type", None)),
        (200, b"<html>", ("syntax", None)),
        (401, {"error": {"message": "bad key sk-secret"}}, ("reply", None)),
        (500, {"error": {"message": "down"}}, ("reply", None)),
        (302, b"", ("reply", None)),
    ],
)
def test_answers_that_cannot_be_used(server, make, status, body, refusal):
    server.reply = lambda request: (status, body)
    with refused(EndpointError, *refusal) as caught:
        make(api_key="sk-secret").encode_queries(["a"])
    assert status == 200 or caught.value.values["status"] == status
    assert status != 401 or "[key]" in caught.value.values["said"]
    assert "sk-secret" not in caught.value.sentence()
    assert caught.value.__context__ is None


def test_invalid_input_is_refused(make, tmp_path, monkeypatch):
    (tmp_path / "text").write_text("no database, and long enough to be read as one" * 50)
    for options, code in (
        ({"dim": 0}, "range"),
        ({"model": " "}, "empty"),
        ({"batch_size": 2049}, "range"),
        ({"retries": -1}, "range"),
        ({"timeout": 0}, "range"),
        ({"cache": tmp_path / "text"}, "failed"),
    ):
        with refused(InputError, code, *options):
            make(**options)
    with refused(InputError, "unsupported", "base_url") as caught:
        EndpointEncoder("http://user:pw@host/v1", model="m", dim=2)
    assert "pw" not in caught.value.sentence()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with refused(InputError, "missing", "api_key"):
        EndpointEncoder(model="m", dim=2)
    with refused(EndpointError, "connection"):
        EndpointEncoder("http://127.0.0.1:9/v1", model="m", dim=2, retries=0).encode_queries(["a"])
    with refused(InputError, "type", "texts"):
        make().encode_queries("a")


def test_a_short_key_is_not_cut_out_of_words(server, make):
    server.reply = lambda request: (400, {"error": {"message": "maximum of x"}})
    with refused(EndpointError, "reply", said="Error code: 400 - maximum of [key]"):
        make(api_key="x").encode_queries(["a"])
