"""Many strings that are found at once in a column, against a dictionary."""

from __future__ import annotations

import sys

import hopfuse as hf
import numpy as np
import pytest
from hopfuse import where
from hypothesis import given, settings
from hypothesis import strategies as st

#: The place of a string that a column lacks, and the number of strings up to which each is found by itself.
ABSENT, FEW = -2, 16
#: Beginnings that strings share: longer than what NumPy compares, with zero bytes at the end, with other alphabets.
STEMS = [
    "",
    "a",
    "a\0",
    "a\0\0",
    "team-",
    "x" * 31,
    "x" * 32,
    "x" * 40,
    "x" * 32 + "\0",
    "東京",
    "é",
    "\U0001f600",
    "\uffff",
]
texts = st.builds(str.__add__, st.sampled_from(STEMS), st.text("ab\0é東", max_size=3))


def column(strings):
    """The sorted strings of an index's metadata."""
    rows = [{"text": "t", "metadata": {"name": one}} for one in strings]
    return hf.Index.build(passages=rows, metadata_types={"name": "string"}).metadata["name"].strings


@given(st.sets(texts, min_size=1, max_size=60), st.lists(texts, min_size=FEW + 1, max_size=120))
@settings(max_examples=2 * settings().max_examples)
def test_strings_are_found_as_in_a_dictionary(strings, wanted):
    places = {text: at for at, text in enumerate(sorted(strings))}
    found = column(strings)
    expected = [places.get(text, ABSENT) for text in wanted]
    assert found.find(wanted).tolist() == expected
    assert [int(found.find([text])[0]) for text in wanted] == expected


def test_a_string_that_is_not_utf8_is_absent():
    assert column({"a", "b"}).find(["\ud800"] * 20 + ["a"]).tolist() == [ABSENT] * 20 + [0]


def test_many_strings_are_not_compared_one_by_one():
    found = column([f"tenant {at:07d}" for at in range(5000)])
    wanted = [f"tenant {at:07d}" for at in range(0, 20_000, 2)]
    calls = 0

    def count(frame, event, value):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        places = found.find(wanted)
    finally:
        sys.setprofile(None)
    assert (places[:2500] == np.arange(0, 5000, 2)).all()
    assert (places[2500:] == ABSENT).all()
    assert calls < 1000


@pytest.mark.parametrize("operator", ["any", "all", "none"])
def test_lists_of_many_strings(operator):
    rows = [{"text": "t", "metadata": {"tags": tags}} for tags in (["a"], ["a", "b", "a"], [], ["c"])]
    metadata = hf.Index.build(passages=[*rows, {"text": "t"}]).metadata
    for wanted in (["a"], ["a", "b"], ["b", "a", "b"], ["a", "zz"], [], ["a"] * 40, [f"z{at}" for at in range(40)]):
        held = [set(row["metadata"]["tags"]) for row in rows]
        test = {
            "any": lambda tags, asked: bool(tags & asked),
            "all": lambda tags, asked: asked <= tags,
            "none": lambda tags, asked: not tags & asked,
        }[operator]
        expected = [*(test(tags, set(wanted)) for tags in held), False]
        assert where(**{f"tags__{operator}": wanted}).mask(metadata).tolist() == expected
