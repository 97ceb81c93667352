"""Deleting passages over HTTP, by the clients and by MCP: dry runs count, and keys see what they saw before."""

from __future__ import annotations

import asyncio
from typing import Any

import hopfuse as hf
import httpx
import pytest
from hopfuse.client import AsyncClient, Client, Deletions
from hopfuse.errors import EndpointError, InputError
from hopfuse.serve import new_key
from refusals import refused as refusal_of
from serve.served import Letters, configured, running

TEXTS = {"a1": "Ada met Byron.", "a2": "Byron wrote.", "b1": "Ada met Clare.", "b2": "Dora slept."}
NAMES = {"a1": ["Ada", "Byron"], "a2": ["Byron"], "b1": ["Ada", "Clare"], "b2": ["Dora"]}


def memory_index(ids: str = "a1 a2 b1 b2") -> hf.Index:
    """Passages of two tenants, with the names that a reader found, and a fact of each of the first ones."""
    listed = ids.split()
    names = list(dict.fromkeys(name for id in listed for name in NAMES[id]))
    facts = [(id, NAMES[id]) for id in listed if len(NAMES[id]) == 2]
    return hf.Index.build(
        passages=[
            {"id": id, "text": TEXTS[id], "document": f"of {id[0]}", "metadata": {"tenant": id[0]}} for id in listed
        ],
        vectors=Letters().encode_passages([TEXTS[id] for id in listed]),
        entities=[{"name": name, "stated": False} for name in names],
        graph=[
            {"src": at, "dst": len(listed) + names.index(name), "type": "context"}
            for at, id in enumerate(listed)
            for name in NAMES[id]
        ],
        facts=[{"head": a, "relation": "met", "tail": b, "passage": listed.index(id)} for id, (a, b) in facts],
        encoder=Letters(),
        metric="cosine",
    )


@pytest.fixture
def served(tmp_path: Any) -> Any:
    """The address of a server that takes changes, the key of the tenant a, one that only reads, and the folder."""
    key, digest = new_key()
    all_, whole = new_key()
    reader, reads = new_key()
    memory_index().save(tmp_path)
    indexes = {"cities": {"path": str(tmp_path), "writable": True}}
    keys = {
        "a": {"sha256": digest, "rights": ["read", "write"], "filter": {"tenant": "a"}},
        "all": {"sha256": whole, "rights": ["read", "write"]},
        "r": {"sha256": reads},
    }
    with running(configured("", indexes=indexes, keys=keys, mcp=True, follow_seconds=0.01)) as url:
        yield {"url": url, "a": key, "all": all_, "reader": reader, "folder": tmp_path}


def delete(served: Any, by: str = "all", **body: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {served[by]}"}
    return httpx.post(f"{served['url']}/v1/passages/delete", json=body, headers=headers, timeout=60)


def names(served: Any) -> set[str]:
    return set(hf.Index.open(served["folder"]).entity_names)


@pytest.mark.parametrize("way", [{"ids": ["b1", "b2"]}, {"where": {"tenant": "b"}}, {"document": "of b"}])
def test_passages_are_counted_and_then_deleted_with_their_names(served: Any, way: dict[str, Any]) -> None:
    counts = {"passages": 2, "names": 2, "words": 0, "facts": 1}
    dry = delete(served, **way, dry_run=True)
    assert (dry.status_code, dry.json()) == (200, {"seq": None, **counts})
    assert hf.Index.open(served["folder"]).num_passages == 4
    assert delete(served, **way).json() == {"seq": 1, **counts}
    index = hf.Index.open(served["folder"])
    assert (list(index.passage_ids), names(served)) == (["a1", "a2"], {"Ada", "Byron"})


def test_a_key_with_a_filter_deletes_and_counts_what_it_sees(served: Any) -> None:
    counts = {"passages": 2, "names": 2, "words": 0, "facts": 1}  # Ada, too, is gone as far as the key sees
    everything = {"where": {"tenant__exists": True}}
    assert delete(served, "a", **everything, dry_run=True).json() == {"seq": None, **counts}
    nothing = {"passages": 0, "names": 0, "words": 0, "facts": 0}
    assert delete(served, "a", document="of b").json() == {"seq": 0, **nothing}
    for id in ("b1", "none"):
        refused = delete(served, "a", ids=["a1", id])
        error = refused.json()["error"]
        assert (refused.status_code, error["code"], error["field"]) == (400, "unknown", "ids")
        assert error["values"] == {"given": id}
    assert delete(served, "a", **everything).json() == {"seq": 1, **counts}
    assert list(hf.Index.open(served["folder"]).passage_ids) == ["b1", "b2"]
    assert names(served) == {"Ada", "Clare", "Dora"}


def test_names_of_an_added_passage_go_with_it_and_stated_ones_stay(served: Any) -> None:
    with Client(served["url"], key=served["all"]) as client:
        new = {"id": "n", "text": "Eve met Fay.", "entities": ["Eve"], "facts": [["Eve", "met", "Fay"]]}
        client.add_passages([new], entities=["Gil"])
        assert names(served) == {"Ada", "Byron", "Clare", "Dora", "Eve", "Fay", "Gil"}
        client.add_passages([{"id": "m", "text": "Ada."}], edges=[{"src": ["entity", "Dora"], "dst": ["passage", "m"]}])
        assert client.delete_passages(["n", "m", "b2"]) == Deletions(3, 3, 2, 0, 1)
    assert names(served) == {"Ada", "Byron", "Clare", "Dora", "Gil"}


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({}, "missing", "ids"),
        ({"ids": ["a1"], "where": {"tenant": "a"}}, "conflict", "ids"),
        ({"ids": ["a1"], "document": "of a"}, "conflict", "ids"),
        ({"ids": [3]}, "unknown", "ids"),
        ({"ids": [""]}, "empty", "ids[0]"),
        ({"ids": "a1"}, "type", "ids"),
        ({"where": {}}, "empty", "where"),
        ({"where": {"colour": "red"}}, "unknown", "where.colour"),
        ({"where": {"tenant": 3}}, "type", "where.tenant"),
        ({"where": {"tenant__in": 3}}, "type", "where.tenant__in"),
        ({"where": {"tenant": {"x": 1}}}, "type", "where.tenant"),
        ({"document": True}, "type", "document"),
        ({"ids": ["a1"], "index": "other"}, "unknown", "index"),
        ({"ids": ["a1"], "all": True}, "unknown", "all"),
    ],
)
def test_an_invalid_deletion_is_refused_by_field(served: Any, body: dict[str, Any], code: str, field: str) -> None:
    for dry_run in (True, False):
        refused = delete(served, **body, dry_run=dry_run)
        error = refused.json()["error"]
        assert refused.status_code in (400, 404), error
        assert (error["code"], error["field"]) == (code, field), error
    assert hf.Index.open(served["folder"]).seq == 0


def test_who_may_not_write_deletes_nothing(served: Any) -> None:
    assert delete(served, "reader", ids=["a1"]).status_code == 403
    with (
        running(configured(str(served["folder"]))) as url,
        Client(url) as client,
        refusal_of(EndpointError, "read_only", "index"),
    ):
        client.delete_passages(["a1"], dry_run=True)
    assert hf.Index.open(served["folder"]).seq == 0


def test_the_clients_delete(served: Any) -> None:
    with Client(served["url"], key=served["a"]) as client:
        assert client.delete_passages(where={"tenant": "a"}, dry_run=True) == Deletions(None, 2, 2, 0, 1)
        with refusal_of(InputError, "unknown", "ids", given="b1"):
            client.delete_passages(["b1"])
        with refusal_of(InputError, "type", "ids"):
            client.delete_passages("a1")

    async def change() -> Deletions:
        async with AsyncClient(served["url"], key=served["all"]) as client:
            return await client.delete_passages(document="of a", index="cities")

    assert asyncio.run(change()) == Deletions(1, 2, 1, 0, 1)


def test_a_passage_is_added_with_its_document_and_language_and_deleted_with_them(served: Any) -> None:
    row = {"id": "c1", "text": "Ada wept.", "document": "of c", "language": "en"}
    with Client(served["url"], key=served["all"]) as client:
        seq = client.add_passages([row])
        assert client.passage("c1", at_least=seq)["document"] == "of c"
        assert list(hf.Index.open(served["folder"]).languages)[-1] == "en"
        with refusal_of(InputError, "type", "document"):
            client.add_passages([row | {"id": "c2", "document": 7}])
        assert client.delete_passages(document="of c").passages == 1


def test_the_tool_adds_a_passage_with_its_document(served: Any) -> None:
    pytest.importorskip("mcp", reason="the package of the protocol")
    from serve.test_mcp import calls

    row = {"id": "c1", "text": "Ada wept.", "document": "of c", "language": "en"}
    _, (added,) = calls(f"{served['url']}/mcp", ("add_passage", row), key=served["all"])
    assert added.structured_content == {"seq": 1, "searched": True}
    index = hf.Index.open(served["folder"])
    assert (index.documents[4], index.languages[4]) == ("of c", "en")


def test_the_tool_deletes_and_counts(served: Any) -> None:
    pytest.importorskip("mcp", reason="the package of the protocol")
    from serve.test_mcp import calls, refusal

    listed, results = calls(
        f"{served['url']}/mcp",
        ("delete_passages", {"where": {"tenant": "b"}, "dry_run": True}),
        ("delete_passages", {"where": {"tenant": "b"}}),
        ("search", {"text": "Clare", "entities": ["Ada"]}),
        ("delete_passages", {}),
        ("delete_passages", {"where": {"colour": 1}}),
        ("delete_passages", {"ids": ["b1"]}),
        key=served["all"],
    )
    counted, deleted, found, *wrong = results
    counts = {"passages": 2, "names": 2, "words": 0, "facts": 1}
    assert counted.structured_content == {"seq": None, **counts}
    assert deleted.structured_content == {"seq": 1, **counts, "searched": True}
    assert {hit["id"] for hit in found.structured_content["hits"]} == {"a1", "a2"}
    assert [refusal(one) for one in wrong] == [("missing", "ids"), ("unknown", "where.colour"), ("unknown", "ids")]
    assert not listed["delete_passages"].annotations.read_only_hint
    listed, (refused,) = calls(f"{served['url']}/mcp", ("delete_passages", {"ids": ["a1"]}), key=served["reader"])
    assert refusal(refused) == ("forbidden", None)
    assert "delete_passages" not in listed
