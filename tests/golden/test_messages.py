"""Errors are data: a code, a field and a literal sentence, which stands once in its room and in its golden file."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import re
from collections import Counter
from pathlib import Path
from string import Formatter

import numpy as np
import pytest
from golden.messages import FOLDER, called, golden, rooms, sentences
from hopfuse.errors import CODES, HopfuseError, InputError

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def said():
    """The sentences of all rooms."""
    return [one for paths in rooms().values() for path in paths for one in sentences(path)]


@pytest.mark.parametrize("room", sorted(rooms()))
def test_a_room_says_what_its_golden_file_says(room):
    file = FOLDER / f"{room}.txt"
    stored = file.read_text(encoding="utf-8") if file.exists() else ""
    assert golden(rooms()[room]) == stored, "run python tests/golden/messages.py, and read the difference"


def test_an_error_is_made_of_a_code_a_field_and_a_literal_sentence(said):
    known = CODES.keys() | {"*"}
    wrong = [
        one.place
        for one in said
        if one.template in (None, "{message}") or one.code is None or not known.issuperset(one.code.split("|"))
    ]
    assert wrong == []


def test_a_sentence_stands_once_in_its_room():
    for room, paths in rooms().items():
        counts = Counter(one.template for path in paths for one in sentences(path) if one.kind != "MissingExtraError")
        assert [text for text, times in counts.items() if times > 1] == [], room


def test_a_sentence_names_its_field_only_if_it_has_one(said):
    wrong = [one.place for one in said if one.field == "-" and one.template and "field" in names(one.template)]
    assert wrong == []


def names(template):
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def test_a_sentence_has_the_values_that_it_shows(said):
    wrong = []
    for one in said:
        if one.values is None or one.template is None:
            continue
        shown = {re.split(r"[.\[]", name)[0] for name in names(one.template)}
        values = {name for name in shown if not name.startswith("@")} - {"field"}
        if values != one.values - {"given", "allowed"} | (shown & {"given", "allowed"}):
            wrong.append(one.place)
    assert wrong == []


def test_no_test_matches_a_sentence():
    """Tests check class, code, field and values; only the kernels' rooms match messages of other libraries."""
    kernels = {"golden", "kernels", "simt", "cuda", "build"}
    wrong = []
    for path in sorted(TESTS.rglob("*.py")):
        if path.relative_to(TESTS).parts[0] in kernels:
            continue
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)) if MAY_MATCH.search(text) else ():
            if called(node) == "raises":
                ours = [name for name in re.findall(r"\w+Error\b", ast.unparse(node.args[0])) if name in ERRORS]
                if ours and any(word.arg == "match" for word in node.keywords):
                    wrong.append(f"{path.relative_to(TESTS)}:{node.lineno}")
            compared = node.comparators if isinstance(node, ast.Compare) else []
            if compared and not MAY_MATCH.search("\n".join(lines[node.lineno - 1 : node.end_lineno])):
                continue
            if any(SAID.search(ast.unparse(one)) for one in compared if not isinstance(one, ast.Constant | ast.Name)):
                wrong.append(f"{path.relative_to(TESTS)}:{node.lineno}")
    assert wrong == []


#: The text of an exception, and the message of an answer over HTTP.
SAID = re.compile(r"\bstr\((\w+\.value|caught|err|error|exc|excinfo|raised|refused|wrong)\)|\['message'\]")
#: What stands in the source of each.
MAY_MATCH = re.compile(r"\bmatch=|\bstr\(|message")

ERRORS = {kind.__name__ for kind in (HopfuseError, *HopfuseError.__subclasses__())}


def test_each_interface_names_an_argument_in_its_own_way():
    error = InputError(
        "unused", "cache", "{field} is given without {@encoder} or {others:@}; add one", others=("model", "reader")
    )
    assert str(error) == "cache is given without encoder= or model= or reader=; add one"
    assert error.sentence("--{}".format) == "--cache is given without --encoder or --model or --reader; add one"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_a_copied_error_says_the_same(copied):
    error = InputError(
        "conflict",
        "a[0]",
        "{field} is {dtype}, {dtype!r}: {cause}; {given[0]} of {given[1]:.2g}, {count:,}; give {others:@}",
        dtype=np.dtype("O"),
        cause=ValueError("no number"),
        given=(1, np.float32(2.5)),
        count=np.int64(1000),
        others=("b", "c"),
    ).at("row 3")
    again = copied(error)
    assert (type(again), str(again), again.data()) == (InputError, str(error), error.data())
    assert str(error) == "row 3: a[0] is object, dtype('O'): no number; 1 of 2.5, 1,000; give b= or c="


@pytest.mark.parametrize("moved", [lambda e: e.at("row 3"), lambda e: e.about("l"), copy.copy])
def test_a_moved_error_keeps_its_notes(moved):
    error = InputError("range", "k", "{field} is wrong")
    error.add_note("seen at the door")
    assert moved(error).__notes__ == ["seen at the door"]


def test_a_moved_error_keeps_its_cause():
    error = InputError("range", "k", "{field} is wrong")
    error.__cause__ = ValueError("why")
    assert error.at("row 3").__cause__ is error.__cause__


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.dtype("<U1"), "<U1"),
        (np.float32(0.5), 0.5),
        (np.array(2), 2),
        (np.ones(2), "[1. 1.]"),
        ((1, np.nan), [1, "nan"]),
    ],
)
def test_the_data_of_an_error_are_plain_values(value, plain):
    data = InputError("dtype", "x", "{field} is {given}", given=value).data()
    assert data["values"] == {"given": plain}
    assert json.loads(json.dumps(data)) == data


def test_a_long_value_is_cut():
    error = InputError("type", "k", "{field} is {given!r}; it must be a number", given="x" * 1000)
    assert len(str(error)) < 400
    assert "… (1,002 characters)" in str(error)
