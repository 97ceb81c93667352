"""Arrow streams, Dify and the Open Inference Protocol: the same answers by other tongues."""

from __future__ import annotations

import gzip
import json
import struct
import zlib

import hopfuse as hf
import httpx
import numpy as np
import pytest
from hopfuse.extract import QuestionMatcher
from hopfuse.recipes import GuidedWalk
from hopfuse.serve import new_key
from serve.served import DIM, Letters, configured, running

QUESTIONS = ["What is far from Ankara?", "And from Lima?", "Where is Bergen?"]
ARROW = {"content-type": "application/vnd.apache.arrow.stream"}


@pytest.fixture(scope="module")
def own(path):
    index = hf.Index.open(path)
    return GuidedWalk(index, encoder=Letters(), matcher=QuestionMatcher(index))


def pairs(found, b):
    return [(hit.id, hit.score) for hit in found[b]]


# ---- Arrow -----------------------------------------------------------------------------------------------------------


def stream(columns, settings=None, **options):
    pa = pytest.importorskip("pyarrow", reason="Arrow streams need pyarrow")
    table = pa.table(columns)
    if settings is not None:
        table = table.replace_schema_metadata({"hopfuse": json.dumps(settings)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def read(answer):
    pa = pytest.importorskip("pyarrow")
    return pa.ipc.open_stream(answer.raise_for_status().content).read_all()


def test_arrow_in_and_out(client, own):
    pa = pytest.importorskip("pyarrow", reason="Arrow streams need pyarrow")
    vectors = Letters().encode_queries(QUESTIONS)
    columns = {
        "text": pa.array(QUESTIONS),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM),
        "entities": pa.array([["Ankara"], None, []], pa.list_(pa.string())),
        "allow": pa.array([None, ["p1", "p5", "p6"], None], pa.list_(pa.string())),
    }
    answer = client.post(
        "/v1/search", content=stream(columns, {"k": 4, "fields": ["title", "metadata"]}), headers=ARROW
    )
    table = read(answer)
    assert answer.headers["content-type"] == ARROW["content-type"]
    names = [["Ankara"], own.matcher.match(QUESTIONS[1:2])[0], []]
    for b, allow in enumerate((None, ["p1", "p5", "p6"], None)):
        found = own.search(vectors=vectors[b : b + 1], entities=[names[b]], allow=allow, k=4)
        row = table.slice(b, 1).to_pylist()[0]
        assert list(zip(row["id"], row["score"], strict=True)) == pairs(found, 0)
        assert row["title"] == [hit.title for hit in found[0]]
        assert [json.loads(one) for one in row["metadata"]] == [hit.metadata for hit in found[0]]
    assert set(table.column_names) == {"id", "score", "title", "metadata"}
    about = json.loads(table.schema.metadata[b"hopfuse"])
    assert about["seq"] == 0
    as_json = client.post("/v1/search", content=stream(columns), headers=ARROW | {"accept": "application/json"})
    assert len(as_json.json()["results"]) == 3
    back = client.post("/v1/search", json={"queries": QUESTIONS}, headers={"accept": ARROW["content-type"]})
    assert read(back).num_rows == 3


def test_rows_without_a_vector_in_a_stream_are_encoded(client):
    pa = pytest.importorskip("pyarrow", reason="Arrow streams need pyarrow")
    vectors, settings = Letters().encode_queries(QUESTIONS), {"fields": []}
    nulls = [vectors[0].tolist(), None, vectors[2].tolist()]
    sent = [pa.array(nulls, kind) for kind in (pa.list_(pa.float32(), DIM), pa.list_(pa.float64()))]
    bodies = [stream({"text": QUESTIONS, "vector": column}, settings) for column in (vectors.tolist(), *sent)]
    tables = [read(client.post("/v1/search", content=body, headers=ARROW)) for body in bodies]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])


@pytest.mark.parametrize(
    ("columns", "settings", "options", "code", "field"),
    [
        ({"text": ["a"], "more": [1]}, None, {}, "choice", "columns"),
        ({"text": [1]}, None, {}, "type", "text"),
        ({"vector": [["a"]]}, None, {}, "type", "vector"),
        ({"text": ["a"], "vector": [[0.5, None, 1.0]]}, None, {}, "finite", "queries[0].vector[1]"),
        ({"text": ["a"] * 4, "vector": [[1.0], None, [], [0.5, np.inf]]}, None, {}, "finite", "queries[3].vector[1]"),
        ({"text": ["a"], "entities": [["b", None]]}, None, {}, "type", "entities"),
        ({"text": ["a"], "allow": [[0.5]]}, None, {}, "type", "allow"),
        ({"text": []}, None, {}, "empty", "queries"),
        ({"text": ["a"] * 41}, None, {}, "limit", "queries"),
        ({"text": ["a"]}, {"k": 0}, {}, "range", "k"),
        ({"text": ["a"]}, {"trace": True}, {}, "unknown", "trace"),
        ({"text": ["a" * 1000]}, None, {"compression": "zstd"}, "unsupported", "columns"),
    ],
)
def test_bad_streams_are_refused(client, columns, settings, options, code, field):
    answer = client.post("/v1/search", content=stream(columns, settings, **options), headers=ARROW)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["field"]) == (code, field)


def test_forged_streams_are_refused_and_nothing_fails(client):
    pa = pytest.importorskip("pyarrow", reason="Arrow streams need pyarrow")
    encoded = pa.array(["a", "b"]).dictionary_encode()
    answer = client.post("/v1/search", content=stream({"text": encoded}), headers=ARROW)
    error = answer.json()["error"]
    assert (error["code"], error["field"]) == ("unsupported", "columns")
    whole = stream({"text": QUESTIONS, "vector": Letters().encode_queries(QUESTIONS).tolist()})
    draw = np.random.default_rng(7)
    statuses = set()
    for at in range(300):
        forged = bytearray(whole)
        if at % 3 == 0:
            forged = forged[: int(draw.integers(len(whole)))]
        else:
            for place in draw.integers(0, len(forged), at % 3 * 2):
                forged[place] = int(draw.integers(256))
        statuses.add(client.post("/v1/search", content=bytes(forged), headers=ARROW).status_code)
    assert statuses <= {200, 400, 404, 413}
    assert client.get("/health/ready").status_code == 200


# ---- Dify ------------------------------------------------------------------------------------------------------------


def test_dify(client, own):
    asked = {"knowledge_id": "cities", "query": QUESTIONS[0], "retrieval_setting": {"top_k": 3, "score_threshold": 0.5}}
    records = client.post("/retrieval", json=asked).raise_for_status().json()["records"]
    hits = own.search([QUESTIONS[0]], k=3)[0]
    expected = [
        {"content": hit.text, "score": hit.score / hits[0].score, "title": hit.title, "metadata": {"id": hit.id}}
        for hit in hits
    ]
    assert [one | {"metadata": {"id": one["metadata"]["id"]}} for one in records] == [
        one for one in expected if one["score"] >= 0.5
    ]
    assert records[0]["metadata"] == {"id": hits[0].id, **hits[0].metadata}


def test_fields_that_dify_adds_are_ignored(client):
    asked = {"knowledge_id": "cities", "query": QUESTIONS[0], "retrieval_setting": {"top_k": 3}}
    more = {**asked, "new": {"a": [1]}, "retrieval_setting": {"top_k": 3, "new": {"a": [1]}}}
    answers = [client.post("/retrieval", json=one).raise_for_status().json() for one in (asked, more)]
    assert answers[0] == answers[1]
    assert len(answers[0]["records"]) == 3


@pytest.mark.parametrize(
    ("change", "status", "number", "code", "field"),
    [
        ({"knowledge_id": "nope"}, 404, 2001, "unknown", "index"),
        ({"query": " "}, 400, 400, "empty", "query.text"),
        ({"retrieval_setting": {"top_k": 0}}, 400, 400, "range", "retrieval_setting.top_k"),
        ({"metadata_condition": {"conditions": []}}, 400, 400, "unsupported", "metadata_condition"),
    ],
)
def test_dify_errors(client, change, status, number, code, field):
    answer = client.post("/retrieval", json={"knowledge_id": "cities", "query": "x"} | change)
    error = answer.json()
    assert (answer.status_code, error["error_code"]) == (status, number)
    assert (error["code"], error["field"]) == (code, field)
    assert error["error_msg"]


# ---- The Open Inference Protocol -------------------------------------------------------------------------------------


@pytest.fixture
def triton(url):
    module = pytest.importorskip("tritonclient.http", reason="the protocol is tried with tritonclient[http]")
    client = module.InferenceServerClient(url.removeprefix("http://"))
    yield client
    client.close()


@pytest.mark.full
@pytest.mark.parametrize("binary", [True, False])
def test_an_unchanged_triton_client_searches_by_vectors(triton, own, binary):
    from tritonclient.http import InferInput, InferRequestedOutput

    vectors = Letters().encode_queries(QUESTIONS)
    given = InferInput("vectors", list(vectors.shape), "FP32")
    given.set_data_from_numpy(vectors, binary_data=binary)
    outputs = [InferRequestedOutput(name, binary_data=binary) for name in ("ids", "scores", "counts")]
    found = triton.infer("cities", [given], outputs=outputs if not binary else None, parameters={"k": 5})
    expected = own.search(vectors=vectors, entities=[[]] * 3, k=5)
    ids, scores = found.as_numpy("ids"), found.as_numpy("scores")
    for b in range(3):
        got = [one.decode() if isinstance(one, bytes) else one for one in ids[b]]
        assert list(zip(got, scores[b].tolist(), strict=True)) == pairs(expected, b)
    assert found.as_numpy("counts").tolist() == [5] * 3


@pytest.mark.full
def test_triton_by_texts_and_the_servers_description(triton, own):
    from tritonclient.http import InferInput
    from tritonclient.utils import InferenceServerException

    assert triton.is_server_live()
    assert triton.is_server_ready()
    assert triton.is_model_ready("cities")
    assert "binary_tensor_data" in triton.get_server_metadata()["extensions"]
    assert triton.get_model_metadata("cities")["inputs"][0]["shape"] == [-1, DIM]
    texts = InferInput("texts", [3], "BYTES")
    texts.set_data_from_numpy(np.array(QUESTIONS, object))
    found = triton.infer("cities", [texts])
    expected = own.search(QUESTIONS, k=10)
    assert found.as_numpy("ids")[1].tolist() == [hit.id.encode() for hit in expected[1]]
    with pytest.raises(InferenceServerException, match="there are: cities"):
        triton.get_model_metadata("nope")
    wrong = InferInput("vectors", [1, 3], "FP32")
    wrong.set_data_from_numpy(np.ones((1, 3), np.float32))
    with pytest.raises(InferenceServerException, match="the index have 8"):
        triton.infer("cities", [wrong])


@pytest.mark.full
def test_a_triton_client_reads_configuration_statistics_and_repository(triton, own):
    from tritonclient.http import InferInput

    (listed,) = triton.get_model_repository_index()
    assert listed == {"name": "cities", "version": "0", "state": "READY", "reason": ""}
    config, about = triton.get_model_config("cities"), triton.get_model_metadata("cities", "0")
    assert config["name"] == about["name"] == "cities"
    assert config == triton.get_model_config("cities", "0")
    for side in ("input", "output"):
        shapes = [(one["name"], one["dims"]) for one in config[side]]
        assert shapes == [(one["name"], one["shape"]) for one in about[f"{side}s"]]
    assert {one["data_type"] for one in config["output"]} == {"TYPE_STRING", "TYPE_FP32", "TYPE_INT64"}
    assert about["versions"] == ["0"]
    assert triton.is_model_ready("cities", "0")
    assert not triton.is_model_ready("cities", "1")
    assert not triton.is_model_ready("nope")

    def counts():
        ((of_model,), (of_all,)) = (triton.get_inference_statistics(name)["model_stats"] for name in ("cities", ""))
        assert of_model == of_all == triton.get_inference_statistics("cities", "0")["model_stats"][0]
        return of_model

    vectors = Letters().encode_queries(QUESTIONS)
    given = InferInput("vectors", list(vectors.shape), "FP32")
    given.set_data_from_numpy(vectors)
    before = counts()
    found = triton.infer("cities", [given], model_version="0", parameters={"k": 3})
    assert found.get_response()["model_version"] == "0"
    after = counts()
    assert after["inference_count"] - before["inference_count"] == 3
    assert after["execution_count"] - before["execution_count"] == 1
    assert after["last_inference"] > before["last_inference"]
    one, other = before["inference_stats"], after["inference_stats"]
    assert {name for name in one if other[name]["ns"] > one[name]["ns"]} == {"success", "queue", "compute_infer"}


@pytest.mark.full
@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_a_triton_client_compresses_requests_and_reads_compressed_answers(path, own, algorithm):
    module = pytest.importorskip("tritonclient.http", reason="the protocol is tried with tritonclient[http]")
    vectors = Letters().encode_queries(QUESTIONS)
    expected = own.search(vectors=vectors, entities=[[]] * 3, k=5)
    for least in (None, 1, 10**6):
        with running(configured(path, compress_bytes=least)) as url:
            client = module.InferenceServerClient(url.removeprefix("http://"))
            for binary in (True, False):
                given = module.InferInput("vectors", list(vectors.shape), "FP32")
                given.set_data_from_numpy(vectors, binary_data=binary)
                found = client.infer(
                    "cities",
                    [given],
                    parameters={"k": 5},
                    request_compression_algorithm=algorithm,
                    response_compression_algorithm=algorithm,
                )
                assert [pairs(expected, b) for b in range(3)] == [
                    list(zip([id.decode() for id in ids], scores.tolist(), strict=True))
                    for ids, scores in zip(found.as_numpy("ids"), found.as_numpy("scores"), strict=True)
                ]
            client.close()


def test_compressed_requests_that_are_refused(client):
    whole = json.dumps({"inputs": [vectors_in()]}).encode()
    gzipped = gzip.compress(whole)

    def refusal(content, encoding, route="/v2/models/cities/infer"):
        answer = client.post(route, content=content, headers={"Content-Encoding": encoding})
        assert isinstance(answer.json()["error"], str)
        return answer.status_code, answer.json().get("code")

    assert client.post("/v2/models/cities/infer", content=gzipped, headers={"Content-Encoding": "gzip"}).is_success
    bomb = gzip.compress(b" " * 200_000_000, 9)
    assert refusal(bomb[:90_000], "gzip") == (413, "too_large")
    assert refusal(gzip.compress(whole + b" " * 100_001), "gzip") == (413, "too_large")
    for content in (gzipped[:-1], gzipped + b"x", whole, b"", zlib.compress(whole)):
        assert refusal(content, "gzip") == (400, "syntax")
    assert refusal(gzipped, "br") == (415, "unsupported")
    assert refusal(gzipped, "gzip, gzip") == (415, "unsupported")


def test_errors_of_the_protocol_are_texts(client):
    for method, route, status in (
        ("GET", "/v2/nope", 404),
        ("GET", "/v2/models/nope", 404),
        ("GET", "/v2/models/cities/versions/7", 404),
        ("GET", "/v2/models/cities/versions/00/config", 404),
        ("POST", "/v2/models/cities/versions/7/infer", 404),
        ("GET", "/v2/models/cities/infer", 405),
        ("POST", "/v2/repository/models/cities/load", 404),
        ("GET", "/v2/systemsharedmemory/status", 404),
        ("POST", "/v2/models/cities/infer", 400),
    ):
        answer = client.request(method, route)
        assert answer.status_code == status, route
        assert isinstance(answer.json()["error"], str), route
    evil = client.post("/v2/repository/index", headers={"Origin": "https://evil.example"})
    assert (evil.status_code, evil.json()["code"]) == (403, "forbidden")
    wrong = client.post("/v2/repository/index", json={"ready": 3})
    assert (wrong.status_code, wrong.json()["field"]) == (400, "ready")


@pytest.mark.full
def test_a_triton_client_raises_what_is_not_served(triton):
    from tritonclient.utils import InferenceServerException

    for call in (
        lambda: triton.get_trace_settings(),
        lambda: triton.load_model("cities"),
        lambda: triton.get_system_shared_memory_status(),
        lambda: triton.get_model_metadata("cities", "7"),
    ):
        with pytest.raises(InferenceServerException) as caught:
            call()
        assert caught.value.status() == "404"


def test_statistics_tell_of_all_keys_and_need_the_right_admin(path):
    made = {name: new_key() for name in ("reader", "admin")}
    keys = {name: {"sha256": made[name][1], "rights": ["admin" if name == "admin" else "read"]} for name in made}
    with running(configured(path, keys=keys)) as url:
        for route in ("/v2/models/stats", "/v2/models/cities/stats", "/v2/models/cities/versions/0/stats"):
            statuses = [
                httpx.get(f"{url}{route}", headers={"Authorization": f"Bearer {made[name][0]}"}).status_code
                for name in ("reader", "admin")
            ]
            assert statuses == [403, 200]
        assert httpx.post(f"{url}/v2/repository/index").status_code == 401


def vectors_in(**changes):
    return {"name": "vectors", "shape": [1, DIM], "datatype": "FP32", "data": [1.0] * DIM} | changes


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"inputs": []}, "length", "inputs"),
        ({"inputs": [vectors_in(), vectors_in()]}, "choice", "inputs"),
        ({"inputs": [vectors_in(name="image")]}, "choice", "inputs"),
        ({"inputs": [vectors_in(shape=[2, DIM])]}, "shape", "inputs.vectors"),
        ({"inputs": [vectors_in(shape=[1, -8])]}, "dtype", "inputs.vectors"),
        ({"inputs": [vectors_in(shape=[10**12, 10**12])]}, "shape", "inputs.vectors"),
        ({"inputs": [vectors_in(datatype="INT8")]}, "dtype", "inputs.vectors"),
        ({"inputs": [vectors_in(data=["a"] * DIM)]}, "type", "inputs.vectors.data"),
        ({"inputs": [vectors_in(data=[[1.0], [[2.0]]])]}, "type", "inputs[0].data[1][0]"),
        ({"inputs": [vectors_in(data=None, parameters={"binary_data_size": 32})]}, "length", "inputs.vectors"),
        ({"inputs": [vectors_in()], "parameters": {"k": -1}}, "range", "parameters.k"),
        ({"inputs": [vectors_in()], "parameters": {"k": 10**40}}, "range", "parameters.k"),
        ({"inputs": [vectors_in()], "outputs": [{"name": "x"}]}, "unknown", "outputs"),
        ({"inputs": [{"name": "texts", "shape": [2], "datatype": "BYTES", "data": ["a"]}]}, "shape", "inputs.texts"),
        ({"inputs": [{"name": "texts", "shape": [1], "datatype": "BYTES", "data": [3]}]}, "type", "inputs.texts.data"),
    ],
)
def test_wrong_requests_for_inference(client, body, code, field):
    answer = client.post("/v2/models/cities/infer", json=body)
    assert answer.status_code == 400, answer.text
    error = answer.json()
    assert (error["code"], error["field"]) == (code, field)
    assert error["error"]


def test_forged_binary_tensors(client):
    texts = {"inputs": [{"name": "texts", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": 6}}]}
    head = json.dumps(texts).encode()
    for tail, size in ((struct.pack("<I", 9) + b"ab", len(head)), (b"\2\0\0\0\xff\xff", len(head)), (b"", len(head))):
        headers = {"Inference-Header-Content-Length": str(size)}
        assert client.post("/v2/models/cities/infer", content=head + tail, headers=headers).status_code == 400
    for length in ("-1", "x", "99999", "9" * 30):
        headers = {"Inference-Header-Content-Length": length}
        assert client.post("/v2/models/cities/infer", content=head, headers=headers).status_code == 400
