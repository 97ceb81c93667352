"""Keys: rights, and tenants that see their own passages and learn nothing of the others."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tomllib
from datetime import UTC, datetime, timedelta

import hopfuse as hf
import httpx
import processes
import pytest
from hopfuse.errors import InputError
from hopfuse.extract import QuestionMatcher
from hopfuse.recipes import GuidedWalk
from hopfuse.serve import ServeConfig, new_key
from refusals import refused as refusal_of
from serve.served import ENCODERS, Letters, configured, running

QUESTION = "What is far from Ankara, and from Bergen?"


@pytest.fixture(scope="module")
def made():
    return {name: new_key() for name in ("a", "admin", "writer", "elsewhere", "scraper")}


@pytest.fixture(scope="module")
def keyed(path, made):
    about = {
        "a": {"filter": {"tenant": "a"}},
        "admin": {"rights": ["admin"]},
        "writer": {"rights": ["write"]},
        "elsewhere": {"indexes": ["other"]},
        "scraper": {"rights": ["admin"], "filter": {"tenant": "b"}},
    }
    keys = {name: {"sha256": made[name][1], **one} for name, one in about.items()}
    indexes = {name: {"path": path} for name in ("cities", "other")}
    with running(configured(path, keys=keys, indexes=indexes, origins=["https://page.example"])) as url:
        yield url


def post(url, key, *, queries=(QUESTION,), **more):
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx.post(f"{url}/v1/search", json={"queries": list(queries), **more}, headers=headers, timeout=60)


def test_without_a_known_key_nothing_is_answered(keyed, made):
    for key in (None, "x", made["a"][1], made["a"][0][:-1], "a" * 10_000):
        refused = post(keyed, key)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthorized")
        assert refused.headers["www-authenticate"] == "Bearer"
    basic = httpx.get(f"{keyed}/v1/indexes", headers={"Authorization": f"Basic {made['a'][0]}"})
    assert basic.status_code == 401
    assert httpx.get(f"{keyed}/v1/indexes", headers={"Authorization": b"Bearer \xff\xfe"}).status_code == 401
    assert httpx.get(f"{keyed}/health/live").status_code == httpx.get(f"{keyed}/openapi.json").status_code == 200


def test_a_key_that_has_expired_is_told_so_and_others_are_not(path, made):
    now = datetime.now(UTC)
    ends = {"a": now - timedelta(seconds=1), "admin": now + timedelta(days=1), "writer": None}
    keys = {name: {"sha256": made[name][1], **({"expires": end} if end else {})} for name, end in ends.items()}
    with running(configured(path, keys=keys)) as url:
        answers = {
            name: httpx.get(f"{url}/v1/indexes", headers={"Authorization": f"Bearer {made[name][0]}"}) for name in made
        }
        assert [answers[name].status_code for name in ("admin", "a", "scraper")] == [200, 401, 401]
        assert answers["a"].json()["error"]["code"] == "expired"
        assert answers["a"].headers["www-authenticate"] == "Bearer"
        assert answers["a"].json()["error"]["values"]["until"] == ends["a"].isoformat()
        assert answers["scraper"].json()["error"]["code"] == "unauthorized"
        digest = httpx.get(f"{url}/v1/indexes", headers={"Authorization": f"Bearer {made['a'][1]}"})
        assert digest.json()["error"]["code"] == "unauthorized"


def test_the_end_of_a_key_is_a_time_with_an_offset(path):
    text = f'[keys.team]\nsha256 = "{"0" * 64}"\nexpires = '
    for given in ("2027-01-31T00:00:00Z", "2027-01-31 01:00:00+01:00", '"2027-01-31T00:00:00Z"'):
        assert configured(path, text + given).keys["team"].expires == datetime(2027, 1, 31, tzinfo=UTC)
    for given in ("2027-01-31T00:00:00", "2027-01-31", '"tomorrow"', "5"):
        with pytest.raises(InputError) as caught:
            configured(path, text + given)
        assert caught.value.field == "keys.team.expires"


def test_the_log_names_a_key_without_the_right(path, made, caplog):
    caplog.set_level("INFO")
    keys = {"writer": {"sha256": made["writer"][1], "rights": ["write"]}}
    with running(configured(path, "[log]\nrequests = true\n", keys=keys)) as url:
        assert post(url, made["writer"][0]).status_code == 403
    (line,) = [one.request for one in caplog.records if getattr(one, "request", {}).get("status") == 403]
    assert (line["key"], line["code"]) == ("writer", "forbidden")


def test_rights(keyed, made):
    assert post(keyed, made["writer"][0]).status_code == 403
    assert post(keyed, made["admin"][0]).status_code == 200
    for name, status in (("a", 403), ("scraper", 200)):
        assert httpx.get(f"{keyed}/metrics", headers={"Authorization": f"bearer {made[name][0]}"}).status_code == status


def test_a_key_sees_the_indexes_that_it_names(keyed, made):
    key = made["elsewhere"][0]
    listed = httpx.get(f"{keyed}/v1/indexes", headers={"Authorization": f"Bearer {key}"}).json()["indexes"]
    assert [one["name"] for one in listed] == ["other"]
    assert post(keyed, key).status_code == 200
    refused = post(keyed, key, index="cities")
    assert refused.status_code == 404
    error = refused.json()["error"]
    assert (error["code"], error["field"], error["values"]["allowed"]) == ("unknown", "index", "other")


def test_a_tenant_gets_what_an_index_of_its_own_passages_would_give(keyed, made, path):
    index = hf.Index.open(path)
    own = GuidedWalk(index, encoder=Letters(), matcher=QuestionMatcher(index))
    mine = hf.where(tenant="a")
    asked = [QUESTION, {"text": QUESTION, "allow": ["p2", "p0"]}, {"text": QUESTION, "allow": {"number__lt": 5}}]
    answers = post(keyed, made["a"][0], queries=asked, k=12).json()["results"]
    for allow, answer in zip((mine, ["p0", "p2"], mine & hf.where(number__lt=5)), answers, strict=True):
        found = own.search([QUESTION], allow=allow, k=12)
        assert [(hit["id"], hit["score"]) for hit in answer["hits"]] == [(hit.id, hit.score) for hit in found[0]]


def test_a_tenant_learns_nothing_about_the_others(keyed, made):
    key = made["a"][0]
    refusals = set()
    for ids in (["p1"], ["zz"], ["p1", "zz"], ["zz", "p1"], ["p0", "p1"]):
        refused = post(keyed, key, queries=[{"text": QUESTION, "allow": ids}])
        assert refused.status_code == 400
        refusals.add(refused.text.replace("p1", "*").replace("zz", "*"))
    assert len(refusals) == 1
    listed = httpx.get(f"{keyed}/v1/indexes", headers={"Authorization": f"Bearer {key}"}).json()["indexes"]
    assert [(one["passages"], one["entities"]) for one in listed] == [(6, None)] * 2
    numbers = post(keyed, key, queries=[{"text": QUESTION, "entities": [0]}])
    error = numbers.json()["error"]
    assert (error["code"], error["field"]) == ("unsupported", "queries[0].entities[0]")
    asked = [{"text": "x", "entities": ["Bergen", "Cusco", "Dakar"]}]
    traced = post(keyed, key, queries=asked, trace=True).json()["results"][0]["trace"]
    assert "left_out" not in traced
    assert traced["allowed"] == 6
    shown = post(keyed, made["admin"][0], queries=asked, trace=True).json()["results"][0]["trace"]
    assert "left_out" in shown


def test_cors_for_the_pages_that_are_named(keyed, made):
    headers = {"Authorization": f"Bearer {made['a'][0]}", "Origin": "https://page.example"}
    answer = httpx.get(f"{keyed}/v1/indexes", headers=headers)
    assert answer.headers["access-control-allow-origin"] == "https://page.example"
    asks = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    assert httpx.options(f"{keyed}/v1/search", headers=asks).status_code == 200
    other = httpx.get(f"{keyed}/v1/indexes", headers=headers | {"Origin": "https://evil.example"})
    assert other.status_code == 403


def test_the_command_makes_a_key_for_the_configuration():
    done = processes.run([sys.executable, "-m", "hopfuse", "serve", "key", "team"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    key = done.stderr.strip().split(": ")[1]
    assert key not in done.stdout
    config = ServeConfig.read('host = "0.0.0.0"\n[indexes.w]\npath = "w"' + done.stdout)  # a last line without an end
    assert not config.is_open
    assert config.keys["team"].sha256 == hashlib.sha256(key.encode()).hexdigest()
    assert tomllib.loads(done.stdout)["keys"]["team"]["rights"] == ["read"]


def test_every_name_that_is_allowed_makes_a_valid_configuration():
    make = [sys.executable, "-m", "hopfuse", "serve", "key"]
    done = processes.run([*make, "a.b"], capture_output=True, text=True)
    assert list(tomllib.loads(done.stdout)["keys"]) == ["a.b"]
    done = processes.run([*make, 'a"b'], capture_output=True, text=True, env=os.environ | {"HOPFUSE_ERRORS": "json"})
    assert (done.returncode, done.stdout) == (2, "")
    error = json.loads(done.stderr)["error"]
    assert (error["code"], error["values"]["given"]) == ("syntax", 'a"b')


@pytest.mark.parametrize(
    ("key", "code", "field"),
    [
        ({"sha256": "0"}, "syntax", "sha256"),
        ({"sha256": "0" * 64, "rights": ["root"]}, "choice", "rights[0]"),
        ({"sha256": "0" * 64, "indexes": ["nope"]}, "unknown", "indexes"),
        ({"sha256": "0" * 64, "filter": {"nope": 1}}, "unknown", "filter.nope"),
    ],
)
def test_a_wrong_key_is_refused_before_anything_listens(path, key, code, field):
    from hopfuse.serve import Service

    with refusal_of(InputError, code, f"keys.team.{field}"):
        Service(configured(path, keys={"team": key}), ENCODERS).open_all()
