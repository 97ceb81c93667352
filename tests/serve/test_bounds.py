"""What a request may contain, what is counted while it waits, and what the event loop leaves to threads."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import re
import select
import threading

import hopfuse as hf
import httpx
import numpy as np
import pytest
import uvicorn
from hopfuse.serve import Service, make_app, new_key
from serve.served import DIM, ENCODERS, configured, ready_status, running, small_index, until

from bench.hostile import bounds

LIMITS = """[limits]
body_bytes = 400000
json_bytes = 200000
tool_bytes = 20000
values = 5000
depth = 3
queries = 40
k = 50
hits = 400
allow = 3000
entities = 40
filters = 3
conditions = 4
condition_values = 100
queue_bytes = 1000000
key_bytes = 600000
"""
FAR = 60_000


def metric(url, name):
    found = re.findall(rf"^{re.escape(name)} (.*)$", httpx.get(f"{url}/metrics", headers=ADMIN).text, re.MULTILINE)
    return float(found[0]) if found else 0.0


KEYS = {name: new_key() for name in ("a", "b", "admin")}
ADMIN = {"authorization": f"Bearer {KEYS['admin'][0]}"}
A, B = KEYS["a"][0], KEYS["b"][0]


@pytest.fixture
def keyed(path):
    """A server with small limits and three keys."""
    rights = {"admin": ["admin"]}
    keys = {name: {"sha256": digest, "rights": rights.get(name, ["read"])} for name, (_, digest) in KEYS.items()}
    with running(configured(path, LIMITS, keys=keys)) as url:
        yield url


@pytest.fixture(scope="module")
def strict(path):
    """A server with small limits."""
    with running(configured(path, LIMITS, mcp=True)) as url:
        yield url


# ---- Content --------------------------------------------------------------------------------------------------------

TENANTS = [f"t{at}" for at in range(101)]


@pytest.mark.parametrize(
    ("body", "field", "limit"),
    [
        ({"queries": ["a"] * 41}, "queries", "queries"),
        (
            {"queries": [{"text": "a", "allow": {"tenant__in": TENANTS}}]},
            "queries[0].allow.tenant__in",
            "condition_values",
        ),
        ({"queries": [{"text": "a", "allow": {f"n{at}": 1 for at in range(5)}}]}, "queries[0].allow", "conditions"),
        ({"queries": [{"text": "a", "allow": {"number__ge": at}} for at in range(4)]}, None, "filters"),
        ({"queries": [{"text": "a", "allow": [f"p{at}" for at in range(3001)]}]}, "queries[0].allow", "allow"),
        ({"queries": [{"text": "a", "allow": [f"p{at}" for at in range(2600)]}] * 2}, None, "values"),
        ({"queries": [{"text": "a", "entities": ["e"] * 41}]}, "queries[0].entities", "entities"),
        ({"queries": [{"vector": [1] * 5002}]}, None, "values"),
        ({"queries": [{"vector": [1] * 20000}]}, None, "values"),
        ({"queries": ["a"] * 40, "k": 12}, None, "hits"),
        ({"queries": ["a"], "options": {"method": {"a": [[1]]}}}, "options", "depth"),
    ],
)
def test_more_than_a_limit_is_refused_with_its_key(strict, body, field, limit):
    refused = httpx.post(f"{strict}/v1/search", json=body, timeout=60)
    error = refused.json()["error"]
    assert refused.status_code == 400, error
    assert (error["code"], error["field"], error["values"]["limit"]) == ("limit", field, f"limits.{limit}")
    assert error["values"]["allowed"] == getattr(configured("", LIMITS).limits, limit)


def test_as_much_as_a_limit_is_answered(strict):
    allow = [f"p{at % 12}" for at in range(2400)]
    queries = [{"text": "a", "allow": allow}, {"text": "b", "allow": {"number__in": list(range(100))}}]
    queries += [{"text": "c", "allow": {"number__ge": 0, "number__le": 11, "tenant": "a", "tenant__ne": "b"}}] * 30
    body = {"queries": queries, "recipe": "phase-graph", "options": {"method": {"name": "rrf"}}}
    answer = httpx.post(f"{strict}/v1/search", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    assert len(answer.json()["results"]) == 32


def test_options_and_settings_have_a_length(strict):
    body = {"queries": ["a"], "options": {"method": "a" * 70_000}}
    refused = [httpx.post(f"{strict}/v1/search", json=body, timeout=60)]
    settings = json.dumps({"options": {"method": "a" * 70_000}})
    refused.append(httpx.post(f"{strict}/v1/search", content=stream({"text": ["a"]}, settings), headers=ARROW))
    errors = [(one.status_code, one.json()["error"]["code"], one.json()["error"]["field"]) for one in refused]
    assert errors == [(400, "limit", "options"), (400, "limit", "hopfuse")]


@pytest.mark.parametrize("value", [{"a": 1}, [[1]], [{"a": 1}], [None, [None]]])
def test_values_of_conditions_and_metadata_are_not_nested(strict, value):
    body = {"queries": [{"text": "a", "allow": {"tenant": "a", "number__in": value}}]}
    error = httpx.post(f"{strict}/v1/search", json=body).json()["error"]
    assert error["code"] == "type"
    assert error["field"].startswith("queries[0].allow.number__in")
    body = {"passages": [{"id": "a", "text": "t", "metadata": {"tenant": "a", "number": value}}]}
    error = httpx.post(f"{strict}/v1/passages", json=body).json()["error"]
    assert error["code"] == "type"
    assert error["field"].startswith("passages[0].metadata.number")


def test_json_has_fewer_bytes_than_other_bodies(strict):
    body = json.dumps({"queries": ["a"]}).encode()
    padded = body + b" " * (200_001 - len(body))
    routes = {"/v1/search": 200_000, "/v1/passages": 200_000, "/retrieval": 200_000, "/mcp": 20_000}
    for route, most in {**routes, "/v2/models/cities/infer": 200_000}.items():
        answer = httpx.post(f"{strict}{route}", content=padded, headers={"content-type": "application/json"})
        assert answer.status_code == 413, route
        assert str(most) in answer.text
    assert httpx.post(f"{strict}/v1/search", content=padded[:-1]).status_code == 200
    head = {"inference-header-content-length": "200001", "content-type": "application/octet-stream"}
    refused = httpx.post(f"{strict}/v2/models/cities/infer", content=padded + b"1", headers=head)
    assert (refused.status_code, refused.json()["code"]) == (400, "limit")


def stream(table, about="{}"):
    pa = pytest.importorskip("pyarrow", reason="it writes Arrow streams")
    sink = pa.BufferOutputStream()
    made = pa.table(table).replace_schema_metadata({"hopfuse": about})
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made)
    return bytes(sink.getvalue())


ARROW = {"content-type": "application/vnd.apache.arrow.stream", "accept": "application/json"}


def test_arrow_may_have_more_bytes_and_has_the_same_limits(strict):
    vectors = [np.ones(DIM).tolist()] * 40
    texts = [f"{'a' * 8000}"] * 40  # 320,000 bytes
    answer = httpx.post(f"{strict}/v1/search", content=stream({"text": texts, "vector": vectors}), headers=ARROW)
    assert answer.status_code == 200, answer.text
    assert len(answer.json()["results"]) == 40
    for columns, about, field, limit in (
        ({"text": ["a"] * 41}, "{}", "queries", "queries"),
        ({"text": ["a"], "allow": [["p0"] * 3001]}, "{}", "queries[0].allow", "allow"),
        ({"text": ["a"] * 2, "allow": [["p0"] * 2600] * 2}, "{}", None, "values"),
        ({"text": ["a"], "entities": [["e"] * 41]}, "{}", "queries[0].entities", "entities"),
        ({"text": ["a"] * 4, "allow": [["p0"], ["p1"], ["p2"], ["p3"]]}, "{}", None, "filters"),
        ({"text": ["a"]}, '{"options": {"a": [[[1]]]}}', "options", "depth"),
    ):
        error = httpx.post(f"{strict}/v1/search", content=stream(columns, about), headers=ARROW).json()["error"]
        assert (error["code"], error["field"], error["values"]["limit"]) == ("limit", field, f"limits.{limit}")


def test_an_error_does_not_repeat_a_long_input(strict):
    answers = bounds.many_digits(strict, None)
    assert {status for status, _ in answers} == {400}
    assert sum(len(answer) for _, answer in answers) < 6000
    long = "b" * 5000
    for body in (
        {"queries": [{"text": "a", "allow": [long]}]},
        {"queries": [{"text": "a", "allow": {"tenant__in": [1, long]}}]},
        {"queries": [{"text": "a", "allow": {"number": long}}]},
        {"queries": [{"text": "a", "vector": long}]},
        {"queries": ["a"], "index": long},
        {"queries": ["a"], "options": {"damping": long}},
        {"queries": ["a"], "k": list(range(1000))},
        {"queries": ["a"], "recipe": long},
    ):
        refused = httpx.post(f"{strict}/v1/search", json=body, timeout=60)
        assert refused.status_code in (400, 404)
        assert len(refused.content) < 3000, refused.text


def test_requests_that_are_too_much_are_refused_and_others_answered(strict):
    for attack in (*bounds.REQUESTS, bounds.many_hits, bounds.tool_ids):
        assert attack(strict, None) in (400, 404, 413), attack
    assert bounds.infer_numbers(strict, None, "cities") == 413
    assert httpx.post(f"{strict}/v1/search", json={"queries": ["a"]}, timeout=60).status_code == 200
    assert metric(strict, "hopfuse_queue_bytes") == 0
    assert metric(strict, 'hopfuse_refusals_total{code="failed"}') == 0


# ---- Waiting --------------------------------------------------------------------------------------------------------


def test_bodies_that_do_not_end_hold_no_more_than_the_budget_of_their_key(keyed):
    text = json.dumps({"queries": ["a"], "timeout_ms": FAR})
    with bounds.one_byte_short(keyed, A, count=12, nbytes=190_000) as opened:
        until(lambda: metric(keyed, 'hopfuse_requests_total{route="/v1/search",status="429"}') == 9)
        assert 3 * 189_999 <= metric(keyed, "hopfuse_queue_bytes") <= 600_000
        assert bounds.post(keyed, B, text.encode())[0] == 200
        with bounds.one_byte_short(keyed, B, count=9, nbytes=190_000):  # two of them have room
            until(lambda: metric(keyed, 'hopfuse_requests_total{route="/v1/search",status="429"}') == 16)
            assert 5 * 189_999 <= metric(keyed, "hopfuse_queue_bytes") <= 1_000_000
        until(lambda: metric(keyed, "hopfuse_queue_bytes") <= 600_000)
        assert [one for one in opened if one.fileno() < 0] == []
    until(lambda: metric(keyed, "hopfuse_queue_bytes") == 0)
    assert bounds.post(keyed, A, text.encode())[0] == 200


def test_the_refusal_of_a_body_without_room_names_the_limit(keyed):
    with bounds.one_byte_short(keyed, A, count=3, nbytes=199_999):
        until(lambda: metric(keyed, "hopfuse_queue_bytes") == 3 * 199_998)
        status, body = bounds.post(keyed, A, json.dumps({"queries": ["a"]}).encode())
        error = json.loads(body)["error"]
        assert (status, error["code"], error["values"]["limit"]) == (429, "overloaded", "limits.key_bytes")


def test_without_keys_an_address_has_the_budget_of_a_key(path):
    with running(configured(path, LIMITS)) as url, bounds.one_byte_short(url, None, count=5, nbytes=190_000):
        until(lambda: metric(url, 'hopfuse_requests_total{route="/v1/search",status="429"}') == 2)
        assert metric(url, "hopfuse_queue_bytes") <= 600_000


def test_requests_that_wait_for_a_seq_are_counted_until_their_clients_leave(keyed):
    with bounds.far_ahead(keyed, A, count=5, numbers=4900) as opened:
        until(lambda: metric(keyed, 'hopfuse_seq_waiting{index="cities"}') == 5)
        each = metric(keyed, "hopfuse_queue_bytes") / 5
        assert each == 4900 * 20 + len(b'{"queries":[{"vector":[1]}],"at_least":%d,"timeout_ms":60000}' % bounds.NEVER)
        for one in opened[:3]:
            one.close()
        until(lambda: metric(keyed, 'hopfuse_seq_waiting{index="cities"}') == 2)
        assert metric(keyed, "hopfuse_queue_bytes") == 2 * each
        assert metric(keyed, 'hopfuse_refusals_total{code="gone"}') == 3
    until(lambda: metric(keyed, "hopfuse_queue_bytes") == 0)


def test_arrow_streams_that_wait_for_a_seq_are_counted(strict):
    body = stream({"text": ["a" * 8000] * 20}, json.dumps({"at_least": bounds.NEVER, "timeout_ms": FAR}))
    with contextlib.closing(bounds.connected(strict)) as one:
        one.sendall(bounds.head("/v1/search", None, len(body), ARROW["content-type"]) + body)
        until(lambda: metric(strict, 'hopfuse_seq_waiting{index="cities"}') == 1)
        assert metric(strict, "hopfuse_queue_bytes") == len(body)
    until(lambda: metric(strict, "hopfuse_queue_bytes") == 0)


def test_no_more_requests_wait_for_a_seq_than_are_allowed(path):
    with (
        running(configured(path, "[limits]\nqueue_requests = 2\n")) as url,
        bounds.far_ahead(url, None, count=2, numbers=1),
    ):
        until(lambda: metric(url, 'hopfuse_seq_waiting{index="cities"}') == 2)
        refused = httpx.post(f"{url}/v1/search", json={"queries": ["a"], "at_least": 1})
        assert (refused.status_code, refused.json()["error"]["field"]) == (429, "at_least")
        assert httpx.post(f"{url}/v1/search", json={"queries": ["a"]}).status_code == 200


def test_a_stopping_server_refuses_requests_that_wait_for_a_seq(path):
    with contextlib.ExitStack() as stack:
        with running(configured(path, "[limits]\ndrain_seconds = 600\n")) as url:
            opened = stack.enter_context(bounds.far_ahead(url, None, count=3, numbers=10))
            until(lambda: metric(url, 'hopfuse_seq_waiting{index="cities"}') == 3)
        answers = [bounds.reply(one) for one in opened]  # the server has ended
    assert [(status, json.loads(body)["error"]["code"]) for status, body in answers] == [(503, "unavailable")] * 3


def test_a_key_has_its_share_of_each_worker(path):
    for workers, room in ((1, 400), (3, 134)):
        config = configured(path, workers=workers, limits={"key_bytes": 400, "queue_bytes": 1000})
        budget = Service(config, ENCODERS).budget
        assert budget.room("a") == room
        budget.hold("b").add(room)
        assert budget.room("c") == room
        assert budget.room("b") == 0


# ---- Threads --------------------------------------------------------------------------------------------------------


class Kept(uvicorn.Server):
    """A server that keeps its event loop."""

    async def startup(self, sockets=None):
        self.loop = asyncio.get_running_loop()
        await super().startup(sockets)


@contextlib.contextmanager
def busy_desk(path, **changes):
    """A server, and a function that lets its threads go, on which every job waits."""
    service = Service(configured(path, mcp=True, **changes), ENCODERS)
    server = Kept(uvicorn.Config(make_app(service), port=0, log_config=None, ws="none", lifespan="on"))
    thread = threading.Thread(target=server.run)
    thread.start()
    go = threading.Event()
    try:
        until(lambda: server.started)
        url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        until(lambda: ready_status(url)[0] == 200)
        begun = [threading.Event(), threading.Event()]
        for name, one in zip("xy", begun, strict=True):
            asyncio.run_coroutine_threadsafe(
                service.desk.run(name, lambda own=one: (own.set(), go.wait())), server.loop
            )
        assert all(one.wait(600) for one in begun)
        yield url, service, go
    finally:
        go.set()
        server.should_exit = True
        thread.join()


def large_requests():
    """Requests of which something takes long, by what it is: path, body, headers."""
    ids = [f"p{at % 12}" for at in range(5000)]
    data = [float(at) for at in range(8000)]
    tensor = {"name": "vectors", "shape": [1000, 8], "datatype": "FP32", "data": data}
    plain = {"content-type": "application/json"}
    bodies = {
        "vectors": ("/v1/search", {"queries": [{"text": "a", "vector": [0.123456789012345] * 8}] * 200}),
        "ids": ("/v1/search", {"queries": [{"text": "a", "allow": ids}]}),
        "values": ("/v1/search", {"queries": [{"text": "a", "allow": {"tenant__in": ids[:4990]}}]}),
        "names": ("/v1/search", {"queries": [{"text": "a", "entities": ["n"] * 250}] * 20}),
        "an invalid vector": ("/v1/search", {"queries": [{"vector": [1] * 30_000 + ["x"]}]}),
        "many queries": ("/v1/search", {"queries": ["a"] * 200}),
        "many hits": ("/v1/search", {"queries": ["a"] * 100, "k": 12}),
        "a change": ("/v1/passages", {"passages": [{"id": "x", "text": "a" * 40_000}]}),
        "many texts": ("/v2/models/cities/infer", {"inputs": [TEXTS | {"shape": [200], "data": ["a"] * 200}]}),
        "a tensor": ("/v2/models/cities/infer", {"inputs": [tensor]}),
        "a question": ("/retrieval", {"knowledge_id": "cities", "query": "a" * 40_000}),
    }
    made = {name: (path, json.dumps(body).encode(), plain) for name, (path, body) in bodies.items()}
    made["a stream"] = ("/v1/search", stream({"text": ["a" * 200] * 200}), ARROW)
    return made


def test_large_requests_wait_for_threads_and_small_ones_do_not(path):
    requests = large_requests()
    with busy_desk(path) as (url, service, go), contextlib.ExitStack() as stack:
        opened = {}
        for name, (route, body, headers) in requests.items():
            one = opened[name] = stack.enter_context(contextlib.closing(bounds.connected(url, 600)))
            one.sendall(bounds.head(route, None, len(body), headers["content-type"]) + body)
        until(lambda: service.desk.jobs == 2 + len(requests))
        for _ in range(3):
            assert httpx.get(f"{url}/health/live").status_code == 200
            body = {"queries": [{"text": "a", "allow": {"tenant": "a"}}, "b"], "k": 5}
            assert httpx.post(f"{url}/v1/search", json=body, timeout=60).status_code == 200
        assert service.desk.jobs == 2 + len(requests)
        go.set()
        answers = {name: bounds.reply(one) for name, one in opened.items()}
        expected = {"an invalid vector": 400, "a change": 409, "a tensor": 400, "a question": 400}
        assert {name: status for name, (status, _) in answers.items()} == {
            name: expected.get(name, 200) for name in requests
        }
        assert service.desk.jobs == 0
        assert service.budget.nbytes == 0


def test_a_client_that_leaves_while_its_request_waits_for_a_thread_is_forgotten(path):
    with busy_desk(path) as (url, service, go):
        with contextlib.closing(bounds.connected(url)) as one:
            body = json.dumps({"queries": ["a" * 4000] * 20}).encode()
            one.sendall(bounds.head("/v1/search", None, len(body)) + body)
            until(lambda: service.desk.jobs == 3)
            assert service.budget.nbytes == len(body)
        until(lambda: service.desk.jobs == 2)
        assert service.budget.nbytes == 0
        go.set()


def test_owners_take_turns_at_the_threads(path):
    done = []

    async def run():
        service = Service(configured(path), ENCODERS)
        go = threading.Event()
        first = [asyncio.create_task(service.desk.run(name, go.wait)) for name in ("many", "other")]
        await asyncio.sleep(0)
        later = [asyncio.create_task(service.desk.run("many", done.append, at)) for at in range(5)]
        await asyncio.sleep(0)
        later.append(asyncio.create_task(service.desk.run("few", done.append, "few")))
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(*first, *later)
        service.desk.close()

    asyncio.run(run())
    assert [one for one in done if one != "few"] == [0, 1, 2, 3, 4]
    assert done.index("few") <= 1


# ---- Answers --------------------------------------------------------------------------------------------------------


def test_a_large_answer_is_the_same_as_that_of_each_query(path, tmp_path):
    small_index(extra=100).save(tmp_path / "index")
    queries = ["What is far from Ankara?", {"text": "Lima?", "entities": ["Atlantis"]}, {"text": "a", "allow": []}]
    with running(configured(str(tmp_path / "index"))) as url:
        whole = httpx.post(f"{url}/v1/search", json={"queries": queries * 10, "k": 60}, timeout=60)
        alone = [httpx.post(f"{url}/v1/search", json={"queries": [one], "k": 60}, timeout=60).json() for one in queries]
        assert whole.json()["results"] == [one["results"][0] for one in alone] * 10
        assert int(whole.headers["content-length"]) == len(whole.content)
        assert [len(one["results"][0]["hits"]) for one in alone] == [60, 60, 0]
        assert "notes" in whole.json()["results"][1]
        traced = {"queries": queries[:2], "k": 5, "trace": True}
        results = httpx.post(f"{url}/v1/search", json=traced, timeout=60).json()["results"]
        assert [len(one["hits"]) == len(one["trace"]["hits"]) == 5 for one in results] == [True] * 2


#: A search of an index of long texts, whose answer has 24 MB.
LONG = {"queries": [{"text": "Ankara", "vector": [1.0] * DIM}], "k": 40}
PLAIN = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
TEXTS = {"name": "texts", "shape": [144], "datatype": "BYTES", "data": ["Ankara"] * 144}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search"}}
CALL["params"]["arguments"] = {"text": "Ankara", "k": 20}  # which an answer has as JSON and as text
#: Requests with answers of 18 to 36 MB, by protocol: path, body, headers.
LARGE = {
    "json": ("/v1/search", LONG, PLAIN),
    "arrow": ("/v1/search", LONG, PLAIN | {"accept": ARROW["content-type"]}),
    "dify": ("/retrieval", {"knowledge_id": "cities", "query": "a", "retrieval_setting": {"top_k": 40}}, PLAIN),
    "oip": ("/v2/models/cities/infer", {"inputs": [TEXTS], "parameters": {"k": 40}}, PLAIN),
    "oip, binary": (
        "/v2/models/cities/infer",
        {"inputs": [TEXTS], "parameters": {"k": 40, "binary_data_output": True}},
        PLAIN,
    ),
    "mcp": ("/mcp", CALL, PLAIN),
}


@pytest.fixture(scope="module")
def long_texts(tmp_path_factory):
    """An index of long texts and ids."""
    folder = tmp_path_factory.mktemp("long")
    rows = [{"id": f"p{at}-{'b' * 4000}", "text": f"Ankara {at} " + "a" * 600_000} for at in range(40)]
    vectors = np.ones((40, DIM), np.float32)
    hf.Index.build(passages=rows, vectors=vectors, encoder=ENCODERS["cities"]).save(folder)
    return str(folder)


@pytest.mark.parametrize(
    "protocol",  # the one of JSON stands for the others in the quick tier
    [pytest.param(name, marks=[pytest.mark.full] * (name in ("dify", "oip"))) for name in LARGE],
)
def test_an_answer_holds_its_bytes_until_it_is_read(long_texts, protocol):
    if protocol == "mcp":
        pytest.importorskip("mcp", reason="the package of the protocol")
    path, body, headers = LARGE[protocol]
    body = json.dumps(body).encode()
    limits = {"key_bytes": 36_000_000, "tool_answer_bytes": 10**8}
    with running(configured(long_texts, limits=limits, mcp=protocol == "mcp")) as url:
        with contextlib.closing(bounds.connected(url)) as one:
            kind, accept = headers["content-type"], f"Accept: {headers['accept']}"
            one.sendall(bounds.head(path, None, len(body), kind, accept) + body)
            route = path.replace("cities", "{name}")
            until(lambda: metric(url, f'hopfuse_requests_total{{route="{route}",status="200"}}') == 1)
            assert metric(url, "hopfuse_queue_bytes") > 18_000_000
            refused = httpx.post(f"{url}{path}", content=body, headers=headers, timeout=600)
            given = refused.json()
            if protocol == "mcp":
                given = given["result"]["structuredContent"]
            else:
                assert refused.status_code == 429, refused.content[:200]
            error = given if "code" in given else given["error"]
            assert error["code"] == "overloaded"  # there is room for one such answer
            gc.collect()
            kinds = [type(kept) for kept in gc.get_objects()]
            assert not [
                one for one in kinds if (one.__module__, one.__name__) == ("hopfuse.serve.searches", "SearchAnswer")
            ]
            nbytes = metric(url, "hopfuse_queue_bytes")
            status, found = bounds.reply(one)
            assert status == 200
            assert 0 <= nbytes - len(found) < len(body) + 1000
        until(lambda: metric(url, "hopfuse_queue_bytes") == 0)
        assert httpx.post(f"{url}{path}", content=body, headers=headers, timeout=600).status_code == 200
        assert metric(url, "hopfuse_queue_bytes") == 0


def test_a_request_whose_answer_never_has_room_is_refused(long_texts):
    with running(configured(long_texts, limits={"key_bytes": 36_000_000})) as url:
        body = LONG | {"queries": LONG["queries"] * 2}
        most = httpx.post(f"{url}/v1/search", json=body, timeout=600)
        assert (most.status_code, most.json()["error"]["values"]["limit"]) == (400, "limits.key_bytes")
        assert metric(url, "hopfuse_queue_bytes") == 0


def test_the_answer_of_a_tool_has_a_limit(long_texts):
    pytest.importorskip("mcp", reason="the package of the protocol")
    with running(configured(long_texts, limits={"tool_answer_bytes": 1_800_000}, mcp=True)) as url:
        for k, refused in ((2, False), (3, True)):
            call = CALL | {"params": {"name": "search", "arguments": {"text": "Ankara", "k": k}}}
            result = httpx.post(f"{url}/mcp", json=call, headers=PLAIN, timeout=600).json()["result"]
            assert result.get("isError", False) is refused
        error = result["structuredContent"]["error"]
        assert (error["code"], error["field"], error["values"]["limit"]) == ("limit", "k", "limits.tool_answer_bytes")


def test_long_metadata_is_encoded_on_a_thread(tmp_path):
    rows = [{"id": f"p{at}", "text": f"Ankara {at}.", "metadata": {"note": "a" * 100_000}} for at in range(10)]
    hf.Index.build(passages=rows, vectors=np.ones((10, DIM), np.float32), encoder=ENCODERS["cities"]).save(tmp_path)
    with busy_desk(str(tmp_path)) as (url, service, go), contextlib.closing(bounds.connected(url, 600)) as one:
        body = json.dumps({"queries": ["a"]}).encode()
        one.sendall(bounds.head("/v1/search", None, len(body)) + body)
        until(lambda: service.desk.jobs == 3 or select.select([one], [], [], 0)[0])
        assert service.desk.jobs == 3
        go.set()
        assert bounds.reply(one)[0] == 200


def test_rows_of_filters_count_before_all_are_found(tmp_path):
    small_index(extra=4_000).save(tmp_path)
    queries = [{"text": "a", "allow": {"tenant__ne": f"c{at}"}} for at in range(8)]
    with running(configured(str(tmp_path), limits={"key_bytes": 100_000})) as url:
        for count, status in ((2, 200), (8, 400)):
            answer = httpx.post(f"{url}/v1/search", json={"queries": queries[:count], "timeout_ms": FAR}, timeout=60)
            assert answer.status_code == status
        assert answer.json()["error"]["values"]["limit"] == "limits.key_bytes"
        assert answer.json()["error"]["values"]["given"] < 160_000  # not those of all filters


def test_a_large_answer_is_sent_in_parts(long_texts):
    body, sent = json.dumps(LONG).encode(), []
    received = [{"type": "http.request", "body": body}]
    scope = {"type": "http", "method": "POST", "path": "/v1/search", "query_string": b"", "client": ("localhost", 1)}

    async def receive():
        if not received:
            await asyncio.Event().wait()
        return received.pop()

    async def send(message):
        sent.append(message)

    async def run():
        service = Service(configured(long_texts), ENCODERS)
        await service.start()
        await make_app(service)({**scope, "headers": [(b"host", b"localhost")]}, receive, send)
        await service.stop()

    asyncio.run(run())
    bodies = [one["body"] for one in sent[1:]]
    assert sent[0]["status"] == 200
    assert dict(sent[0]["headers"])[b"content-length"] == str(sum(map(len, bodies))).encode()
    assert [one.get("more_body", False) for one in sent[1:]] == [True] * (len(bodies) - 1) + [False]
    assert bodies.pop() == b""  # it is sent when the others have been read
    assert max(map(len, bodies)) <= 2**19
    assert min(map(len, bodies[:-1])) >= 2**18
    (result,) = json.loads(b"".join(bodies))["results"]
    assert [hit["id"].partition("-")[0] for hit in result["hits"]] == [f"p{at}" for at in range(40)]
    assert {len(hit["text"]) for hit in result["hits"]} == {600_009, 600_010}
