"""One passage never costs a build: what an endpoint refuses is left out, named, counted and asked about again alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hopfuse import Index
from hopfuse.errors import EndpointError, InputError
from hopfuse.extract import EndpointReader, Extraction, build_memory
from hopfuse.llm import ChatEndpoint
from llm.chat_server import ChatServer, Reply, failure
from llm.cities import Cities, rows
from refusals import refused

pytest.importorskip("openai", reason="the openai client is not installed: pip install 'hopfuse[llm]'")
pytestmark = pytest.mark.usefixtures("short_waits")

#: What costs one passage: the reply about it, and a part of the reason.
FAILURES = {
    "refused": (failure(400, "flagged by the filter of content"), "flagged by the filter"),
    "too long": (failure(413, "too many tokens"), "too many tokens"),
    "not processed": (failure(422, "no such thing"), "no such thing"),
    "declined": (Reply(None, refusal="I cannot read this."), "I cannot read this"),
    "cut off": (Reply('{"entities": ["C', finish="length"), "cut off"),
    "filtered": (Reply("", finish="content_filter"), "content filter"),
    "no JSON": ("Sorry!", "no JSON object"),
    "failing": (failure(500, "out of memory"), "out of memory"),
    "no completion": (Reply(body=b"[]"), "not a chat completion"),
}


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    monkeypatch.setattr("openai._base_client.MAX_RETRY_DELAY", 0.01)


def reader(server: ChatServer, *, cache: Any = None, **options: Any) -> EndpointReader:
    endpoint = ChatEndpoint(server.url, model="m", api_key="sk-secret-1", retries=1, cache=cache, concurrency=2)
    return EndpointReader(endpoint, **options)


@pytest.mark.parametrize("step", ["entities", "triples"])
@pytest.mark.parametrize("kind", FAILURES)
def test_one_of_ten_passages_is_left_out_and_asked_about_again_alone(kind, step, tmp_path):
    reply, reason = FAILURES[kind]
    cities = Cities({(step, "City4"): reply})
    with ChatServer(cities) as server:
        seen: list[tuple[int, int]] = []
        found = reader(server, cache=tmp_path).read(rows(10), progress=lambda *done: seen.append(done))
        assert seen[-1] == (20, 20)
        assert [one.id for one in found if one.failure is not None] == ["p4"]
        told = found[4].failure
        assert told is not None
        assert f"{step} of passage 'p4'" in told
        assert reason in told
        assert found[4].text == "City4 is in Land1."
        assert found[4].entities == (() if step == "entities" else ("City4", "Land1"))
        assert (found[4].triples, found[5].triples) == ((), (("City5", "city in", "Land2"),))
        assert build_memory(found).failures == {4: told}
        before = dict(cities.asked)
        cities.odd = {}
        again = reader(server, cache=tmp_path).read(rows(10))
        assert [one.failure for one in again] == [None] * 10
        assert again[4].triples == (("City4", "city in", "Land1"),)
        assert {key for key, times in cities.asked.items() if times != before.get(key, 0)} <= {
            ("entities", "City4"),
            ("triples", "City4"),
        }


def test_an_index_without_the_passage_that_failed_warns_and_finds_it_by_its_text():
    pytest.importorskip("bm25s", reason="BM25 needs bm25s (extra text)")
    told = pytest.warns(UserWarning, match=r"1 of 10 passages .* 'p4'.*flagged")
    with ChatServer(Cities({"City4": failure(400, "flagged")})) as server, told:
        index = Index.build(rows(10), reader=reader(server))
    assert index.num_passages == 10
    assert index.texts[4] == "City4 is in Land1."
    assert index.entity_names is not None
    assert "City4" not in index.entity_names
    assert index.facts is not None
    assert len(index.facts) == 9
    assert index.lexical is not None


@pytest.mark.parametrize(
    ("share", "bad", "total", "stops"),
    [
        (10.0, 1, 10, False),
        (10.0, 2, 10, True),
        (10.0, 2, 20, False),
        (10.0, 3, 20, True),
        (10.0, 1, 2, False),
        (10.0, 2, 2, True),
        (50.0, 5, 10, False),
        (50.0, 6, 10, True),
        (100.0, 9, 10, False),
        (100.0, 10, 10, True),
    ],
)
def test_more_failures_than_the_share_stop_the_reading(share, bad, total, stops):
    cities = Cities({f"City{at}": failure(400, "flagged") for at in range(bad)})
    with ChatServer(cities) as server:
        one = reader(server, skip_failed=share)
        if not stops:
            assert sum(found.failure is not None for found in one.read(rows(total))) == bad
            return
        with refused(
            EndpointError, "limit", "skip_failed", given=min(bad, max(2, int(share * total / 100) + 1)), allowed=share
        ):
            one.read(rows(total))
        assert not [step for step, _ in cities.asked if step == "triples"]


def test_a_share_of_zero_and_a_single_passage_give_the_error_itself():
    for options, count in (({"skip_failed": 0}, 10), ({}, 1)):
        refusal = refused(EndpointError, "reply", status=400, place="entities of passage 'p0'")
        with ChatServer(Cities({"City0": failure(400, "flagged")})) as server, refusal:
            reader(server, **options).read(rows(count))
    with refused(InputError, "range", "skip_failed"), ChatServer(Cities()) as server:
        reader(server, skip_failed=101)


@pytest.mark.parametrize("reply", [failure(401, "no"), failure(403, "no"), failure(404, "no"), failure(402, "pay")])
def test_what_every_passage_would_get_stops_at_once(reply):
    with ChatServer(Cities({"City0": reply})) as server:
        with pytest.raises(EndpointError) as caught:
            reader(server, skip_failed=100).read(rows(100))
        assert caught.value.code == "reply"
        assert len(server.requests) < 50


def test_a_server_that_is_down_is_not_asked_about_every_passage():
    odd = {f"City{at}": failure(503, "down") for at in range(20, 200)}
    with ChatServer(Cities(odd)) as server:
        with refused(EndpointError, "connection", requests=2):
            reader(server, skip_failed=100).read(rows(200))
        assert len(server.requests) < 20 + 2 * 30


def test_failures_here_and_there_are_not_a_server_that_is_down():
    odd = {f"City{at}": failure(503, "busy") for at in range(0, 40, 2)}
    with ChatServer(Cities(odd)) as server:
        found = reader(server, skip_failed=60).read(rows(40))
    assert [one.failure is not None for one in found] == [True, False] * 20


CARELESS = [
    ('{"entities": ["City0", "Land0",]}', '{"triples": [["City0", "in", "Land0"],],}'),
    ('{"entities": ["City0", "Land0"] // two\n}', '{"triples": [["City0", "in", "Land0"]] /* one */}'),
    ("{'entities': ['City0', 'Land0']}", "{'triples': [['City0', 'in', 'Land0']]}"),
    ('```json\n{"entities": ["City0", "Land0"]}\n```', '```\n{"triples": [["City0", "in", "Land0"]]}\n```'),
    ('["City0", "Land0"]', '[["City0", "in", "Land0"]]'),
    ('{"named_entities": ["City0", "Land0"]}', '{"facts": [["City0", "in", "Land0"]]}'),
    (
        '{"entities": ["City0", "Land0"], "language": "en"}',
        '{"reasoning": "so", "triples": [["City0", "in", "Land0"]]}',
    ),
    (
        '{"entities": [{"name": "City0", "type": "city"}, {"entity": "Land0"}]}',
        '{"triples": [{"subject": "City0", "predicate": "in", "object": "Land0"}]}',
    ),
    ('[{"name": "City0"}, {"name": "Land0"}]', '[{"head": "City0", "relation": "in", "tail": {"name": "Land0"}}]'),
    ('{"entities": ["City0", null, "Land0"]}', '{"triples": [["City0", "in", "Land0"], null]}'),
    ('{"entities": ["City0", "Land0", ""]}', '{"triples": [["City0", "in", "Land0"], ["City0", "in", null]]}'),
]


@pytest.mark.parametrize(("entities", "triples"), CARELESS)
def test_careless_answers_are_read_where_they_have_one_meaning(entities, triples, tmp_path):
    cities = Cities({("entities", "City0"): entities, ("triples", "City0"): triples})
    with ChatServer(cities) as server:
        for _ in range(2):
            (one,) = reader(server, cache=tmp_path).read(rows(1))
            assert one.entities == ("City0", "Land0")
            assert one.triples == (("City0", "in", "Land0"),)
            assert one.malformed == ("null" in triples)
        assert len(server.requests) == 2
    assert all(json.loads(path.read_bytes())["answer"] for path in tmp_path.rglob("*.json"))


def test_numbers_are_names_and_parts_of_facts():
    odd = {
        ("entities", "City0"): '{"entities": ["City0", 1843]}',
        ("triples", "City0"): '[["City0", "founded in", 1843]]',
    }
    with ChatServer(Cities(odd)) as server:
        (one,) = reader(server).read(rows(1))
    assert (one.entities, one.triples) == (("City0", "1843"), (("City0", "founded in", "1843"),))


@pytest.mark.parametrize(
    "entities",
    [
        '{"entities": "City0"}',
        '{"people": ["City0"], "places": ["Land0"]}',
        '{"entities": [{"City0": "city"}]}',
        '{"entities": [true]}',
        '{"entities": ["City0"], "entities": ["Land0"]}',
        '["City0"] or ["Land0"]',
        '{"people": ["City0"]} {"places": ["Land0"]}',
    ],
)
def test_what_may_mean_several_things_is_asked_again(entities):
    with ChatServer(Cities({("entities", "City0"): entities})) as server:
        with refused(EndpointError, "reply", requests=2):
            reader(server).read(rows(1))
        assert len(server.requests) == 2


def test_a_failure_is_a_text():
    with refused(InputError, "type", "failure"):
        Extraction("a", "", "", failure=5)  # type: ignore[arg-type]
