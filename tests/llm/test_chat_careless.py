"""JSON as language models write it: what is read, and what may mean several things and is asked again."""

from __future__ import annotations

import threading
from types import FrameType
from typing import Any

import pytest
from llm.chat_server import in_turn
from llm.test_chat_endpoint import endpoint

pytest.importorskip("openai", reason="the openai client is not installed: pip install 'hopfuse[llm]'")

ANY: dict[str, Any] = {"type": "object"}
GOOD = {"again": True}

READ = [
    ('{"a": ["b", "c",],}', {"a": ["b", "c"]}),
    ('{"a": 1, // a comment, with "quotes" and }\n "b": 2 /* and\n one } more */}', {"a": 1, "b": 2}),
    ('{"a": 1 # and a third\n}', {"a": 1}),
    ("{'a': 'b', 'c': [True, False, None]}", {"a": "b", "c": [True, False, None]}),
    ("{'a': 'Dan O'Bannon', 'b': 'it\\'s \"so\"'}", {"a": "Dan O'Bannon", "b": 'it\'s "so"'}),
    ("{a: 1, b_2: {c: null}}", {"a": 1, "b_2": {"c": None}}),
    ('{"a": "two\nlines",}', {"a": "two\nlines"}),
    ("{'a': '\\ud83d\\ude00 \\n \\u00e9', 'b': -1.5e3}", {"a": "😀 \n é", "b": -1500.0}),
    ("```json\n{'a': 1,}\n```", {"a": 1}),
    ("Of course:\n```\n{\n  // the answer\n  'a': 1\n}\n```\nDone {that}.", {"a": 1}),
    ("{that} is {'a': 1}", {"a": 1}),
    ("{}", {}),
    ("{ /* nothing */ }", {}),
    ('{"a": 1} /* and more', {"a": 1}),
]
ASKED_AGAIN = [
    '{"a": 1 "b": 2}',
    '{"a": [1,, 2]}',
    '{"a": [,]}',
    '{"a": 1, "a": 2}',
    "{'a': 1, 'a': 2}",
    "{'a': 'the boys' house'}",
    '{"a": NaN,}',
    "{'a': undefined}",
    '{"a": 01}',
    '{"a": "b',
    '{"a": 1, /* and more }',
    "{'a': 'b'",
    '{"a": "\\q"}',
    "{1: 2}",
    "['a', 'b']",
    "['a': 1}",
]


@pytest.mark.parametrize(("text", "value"), READ)
def test_what_has_one_meaning_is_read(serve, tmp_path, text, value):
    server = serve(in_turn(text, GOOD))
    for _ in range(2):
        assert endpoint(server, cache=tmp_path).ask(["?"], ANY) == [value]
    assert len(server.requests) == 1


@pytest.mark.parametrize("text", ASKED_AGAIN)
def test_what_may_mean_several_things_is_asked_again(serve, text):
    server = serve(in_turn(text, GOOD))
    assert endpoint(server).ask(["?"], ANY) == [GOOD]
    assert "no JSON object" in server.prompts()[1]


@pytest.mark.parametrize("opened", ["{'a':", "{'a':["])
@pytest.mark.parametrize("depth", [101, 3000, 50_000])
def test_deeply_nested_careless_json_is_not_an_answer(serve, opened, depth):
    server = serve(in_turn(opened * depth, GOOD))
    assert endpoint(server).ask(["?"], ANY) == [GOOD]
    assert "nested deeper than 100" in server.prompts()[1]


@pytest.mark.parametrize("opened", ["{/*", "{//", "{#", "{'a' //", "{'a': 1, /*"])
@pytest.mark.parametrize("closed", ["", "*/ \n"])
def test_braces_in_a_comment_are_not_all_read_to_its_end(serve, opened, closed):
    calls = 0

    def see(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.endswith("_answers.py")

    server = serve(in_turn(opened * 20_000 + closed, GOOD))
    threading.setprofile(see)
    try:
        asked = endpoint(server).ask(["?"], ANY)
    finally:
        threading.setprofile(None)
    assert asked == [GOOD]
    assert 0 < calls < 20_000


def first_list(value: Any) -> Any:
    rows = value if isinstance(value, list) else next(iter(value.values()))
    return {"rows": rows} if isinstance(rows, list) else None


ROWS: dict[str, Any] = {
    "type": "object",
    "properties": {"rows": {"type": "array"}},
    "required": ["rows"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("['a', 'b',]", ["a", "b"]),
        ('Here (1): [{"a": 1}]', [{"a": 1}]),
        ('{"names": [1]}', [1]),
        ('{"x": [0]} and {"rows": [1]}', [1]),
        ('{"x": [1]} and {"y": [1]}', [1]),
        ('{"x": [1]} and {"y": [2]}', None),
        ("[1] or [2]", None),
        ("[see {this}] [2]", None),
        ('{"x": [1] "y": 2} {"z": [3]}', None),
        ('{"x": 1}', None),
    ],
)
def test_an_answer_of_another_form_fits_if_nothing_else_may_be_meant(serve, text, rows):
    server = serve(in_turn(text, {"rows": ["again"]}))
    assert endpoint(server).ask(["?"], ROWS, fit=first_list) == [{"rows": ["again"] if rows is None else rows}]
    assert len(server.requests) == 1 + (rows is None)
