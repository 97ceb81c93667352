"""Schemas that an answer cannot be held to are refused before anything is asked."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from hopfuse.errors import InputError
from llm.chat_server import in_turn
from llm.test_chat_endpoint import counted, endpoint

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
    ("schema", "message"),
    [
        ({"type": ["object", "null"]}, r"schema is of type \['object', 'null'\]; it must be .object."),
        ({}, "schema is of type None"),
        ({"type": "object", "properties": None}, r"schema\.properties: None is not of type 'object'"),
        (of(properties=[("a", {"type": "null"})]), r"schema\.properties: \["),
        (of(properties={1: {"type": "null"}}), r"a name in \[1\] is not a string"),
        (of(properties={"\ud83d": {"type": "null"}}), "is not JSON"),
        (of(required="ab"), r"schema\.required: 'ab' is not of type 'array'"),
        (of(required=[1]), r"schema\.required\.0: 1 is not of type 'string'"),
        (of(required={"a": 1}), r"schema\.required: \{"),
        (of(additionalProperties=None), r"schema\.additionalProperties: None"),
        (of(additionalProperties=0), r"schema\.additionalProperties: 0"),
        (of(description=3), r"schema\.description: 3 is not of type 'string'"),
        (of(description="\ud83d"), "is not JSON"),
        (listed(minItems="1"), r"schema\.properties\.a\.minItems: '1' is not of type 'integer'"),
        (listed(maxItems=True), r"schema\.properties\.a\.maxItems: True"),
        (listed(minItems=-1), r"schema\.properties\.a\.minItems: -1 is less than the minimum"),
        (listed(items=None), r"schema\.properties\.a\.items: None"),
        (worded("abc"), r"schema\.properties\.a\.enum: 'abc' is not of type 'array'"),
        (worded({"a"}), "is not JSON"),
        (of(oneOf=[]), r"schema\.oneOf: \[\]"),
        (of(properties={"a": {"enum": [float("nan")]}}), "is not JSON"),
        ({"type": "object", 3: 4}, "is not a string"),
        (endless(), "nested too deeply"),
        (3, "schema is 3; it must be a mapping"),
    ],
)
def test_a_schema_that_no_answer_can_satisfy_is_refused(serve, schema, message):
    server = serve(counted)
    with pytest.raises(InputError, match=message):
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
    with pytest.raises(InputError, match=r"a \$ref that does not point within it"):
        endpoint(server).ask(["7"], schema)
    assert other.requests == []
