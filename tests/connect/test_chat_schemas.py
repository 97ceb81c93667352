"""Schemas that an answer cannot be held to are refused before anything is asked."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from connect.test_chat_endpoint import counted, endpoint
from hopfuse.errors import InputError

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
        ({"type": ["object", "null"]}, "whose 'type' is one of"),
        ({"type": "object", "properties": None}, r"schema\.properties is None"),
        (of(properties=[("a", {"type": "null"})]), r"schema\.properties is \["),
        (of(properties={1: {"type": "null"}}), r"schema\.properties has the name 1"),
        (of(properties={"\ud83d": {"type": "null"}}), r"schema\.properties has the name"),
        (of(required="ab"), r"schema\.required is 'ab'; it must be a list of texts"),
        (of(required=[1]), r"schema\.required is \[1\]"),
        (of(required={"a": 1}), r"schema\.required is \{"),
        (of(required=["b"], properties={"a": {"type": "null"}}, additionalProperties=False), "'b', which no answer"),
        (of(additionalProperties=None), "must be False or absent"),
        (of(additionalProperties=0), "must be False or absent"),
        (of(description=3), r"schema\.description is 3; it must be a text"),
        (of(description="\ud83d"), r"schema\.description is"),
        (listed(minItems="1"), r"schema\.a\.minItems is '1'; it must be an integer, at least 0"),
        (listed(maxItems=True), r"schema\.a\.maxItems is True"),
        (listed(minItems=-1), r"schema\.a\.minItems is -1"),
        (listed(minItems=3, maxItems=2), r"schema\.a has minItems 3 above maxItems 2"),
        (listed(items=None), r"schema\.a\[\] is None"),
        (worded("abc"), r"schema\.a\.enum is 'abc'; it must be a list of texts"),
        (worded({"a"}), r"schema\.a\.enum is \{'a'\}"),
        (worded([]), r"schema\.a\.enum is \[\]; it must have a text at least"),
        (worded(["a", 1]), r"schema\.a\.enum is"),
        (of(oneOf=[]), "the keyword 'oneOf'"),
        ({"type": "object", 3: 4}, "the keyword 3"),
        (endless(), "nested too deeply"),
        (3, "schema is 3"),
    ],
)
def test_what_no_answer_can_be_held_to(serve, schema, message):
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
