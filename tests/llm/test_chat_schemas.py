"""Schemas that an answer cannot be held to are refused before anything is asked."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from hopfuse.errors import InputError
from llm.chat_server import in_turn
from llm.test_chat_endpoint import counted, endpoint
from refusals import refused

pytest.importorskip("openai", reason="the openai client is not installed: pip install 'hopfuse[llm]'")


def of(**keywords: Any) -> dict[str, Any]:
    return {"type": "object", **keywords}


def listed(**keywords: Any) -> dict[str, Any]:
    return of(properties={"a": {"type": "array", **keywords}})


def worded(enum: Any) -> dict[str, Any]:
    return of(properties={"a": {"type": "string", "enum": enum}})


def endless() -> dict[str, Any]:
    schema = of(properties={})
    schema["properties"]["a"] = schema
    return schema


@pytest.mark.parametrize(
    ("schema", "refusal"),
    [
        ({"type": ["object", "null"]}, ("choice", "schema.type")),
        ({}, ("choice", "schema.type")),
        ({"type": "object", "properties": None}, ("syntax", "schema.properties")),
        (of(properties=[("a", {"type": "null"})]), ("syntax", "schema.properties")),
        (of(properties={1: {"type": "null"}}), ("syntax", "schema")),
        (of(properties={"\ud83d": {"type": "null"}}), ("syntax", "schema")),
        (of(required="ab"), ("syntax", "schema.required")),
        (of(required=[1]), ("syntax", "schema.required.0")),
        (of(required={"a": 1}), ("syntax", "schema.required")),
        (of(additionalProperties=None), ("syntax", "schema.additionalProperties")),
        (of(additionalProperties=0), ("syntax", "schema.additionalProperties")),
        (of(description=3), ("syntax", "schema.description")),
        (of(description="\ud83d"), ("syntax", "schema")),
        (listed(minItems="1"), ("syntax", "schema.properties.a.minItems")),
        (listed(maxItems=True), ("syntax", "schema.properties.a.maxItems")),
        (listed(minItems=-1), ("syntax", "schema.properties.a.minItems")),
        (listed(items=None), ("syntax", "schema.properties.a.items")),
        (worded("abc"), ("syntax", "schema.properties.a.enum")),
        (worded({"a"}), ("syntax", "schema")),
        (of(oneOf=[]), ("syntax", "schema.oneOf")),
        (of(properties={"a": {"enum": [float("nan")]}}), ("syntax", "schema")),
        ({"type": "object", 3: 4}, ("syntax", "schema")),
        (endless(), ("syntax", "schema")),
        (3, ("type", "schema")),
    ],
)
def test_a_schema_that_no_answer_can_satisfy_is_refused(serve, schema, refusal):
    server = serve(counted)
    with refused(InputError, *refusal):
        endpoint(server).ask(["1"], schema)
    assert server.requests == []


def test_mappings_and_tuples_become_plain_json(serve):
    server = serve(counted)
    given = MappingProxyType(
        {
            "type": "object",
            "properties": MappingProxyType({"n": {"type": "integer"}, "w": {"type": "string", "enum": ("a", "b")}}),
            "required": ("n",),
        }
    )
    assert endpoint(server).ask(["7"], given) == [{"n": 7}]
    assert server.requests[0]["response_format"]["json_schema"]["schema"] == {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "w": {"type": "string", "enum": ["a", "b"]}},
        "required": ["n"],
    }


def test_a_schema_that_changes_meanwhile_does_not(serve):
    given: dict[str, Any] = of(properties={"n": {"type": "integer"}})

    def changes(request: dict[str, Any]) -> dict[str, Any]:
        given["properties"]["n"]["type"] = "string"
        return counted(request)

    assert endpoint(serve(changes)).ask(["7"], given) == [{"n": 7}]


def test_keywords_of_the_draft_hold(serve):
    server = serve(in_turn({"n": 0}, {"n": 11}, {"n": 7}))
    schema = of(properties={"n": {"$ref": "#/$defs/small"}}, **{"$defs": {"small": {"minimum": 1, "maximum": 9}}})
    assert endpoint(server).ask(["?"], schema) == [{"n": 7}]
    assert "the answer.n: 0 is less than the minimum of 1" in server.prompts()[1]


def test_no_schema_is_fetched(serve):
    other, server = serve(counted), serve(counted)
    schema = of(properties={"n": {"$ref": other.url + "/schema.json"}})
    with refused(InputError, "unknown", "schema"):
        endpoint(server).ask(["7"], schema)
    assert other.requests == []
