"""Facts, given by number and by name, compared with a plain count; invalid facts are refused."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

NAMES = st.sampled_from("abcde")
STATED = st.lists(st.tuples(NAMES, st.sampled_from("xy"), NAMES, st.integers(0, 3)), max_size=20)

ROWS = [[0, 0, 1], [1, 1, 1], [1, 0, 0]]


def facts(**changes: Any) -> hf.Facts:
    """Three facts of two entities, stated by three passages; one from an entity to itself."""
    arguments: dict[str, Any] = {
        "rows": np.array(ROWS, np.int32),
        "relations": ["knows", "is"],
        "indptr": np.array([0, 2, 3, 4]),
        "passages": np.array([0, 2, 1, 0], np.int32),
        "num_entities": 3,
        "num_passages": 3,
    }
    return hf.Facts(**(arguments | changes))


@given(stated=STATED)
def test_facts_by_name_equal_a_plain_count(stated: list[tuple[str, str, str, int]]) -> None:
    entities = list("edcbaf")
    made = hf.Facts.from_names(stated, entities, 4)
    expected: dict[tuple[str, ...], set[int]] = {}
    for *triple, passage in stated:
        expected.setdefault(tuple(triple), set()).add(passage)
    assert made.relations == tuple(dict.fromkeys(relation for _, relation, _, _ in stated))
    assert [(entities[h], made.relations[r], entities[t]) for h, r, t in made.rows.tolist()] == list(expected)
    for fact, passages in enumerate(expected.values()):
        assert made.passages[made.indptr[fact] : made.indptr[fact + 1]].tolist() == sorted(passages)
    for number, name in enumerate(entities):
        own = made.incident[made.incident_indptr[number] : made.incident_indptr[number + 1]].tolist()
        assert own == [fact for fact, (head, _, tail) in enumerate(expected) if name in (head, tail)]
    assert (len(made), made.num_entities, made.num_passages) == (len(expected), 6, 4)
    numbers = hf.Facts.from_numbers([(entities.index(h), r, entities.index(t), p) for h, r, t, p in stated], 6, 4)
    for name in ("rows", "indptr", "passages"):
        assert np.array_equal(getattr(numbers, name), getattr(made, name))
    assert numbers.relations == made.relations


def test_arrays_with_another_layout_are_copied() -> None:
    rows = np.asfortranarray(np.array(ROWS, np.int32))
    passages = np.frombuffer(b"." + np.array([0, 2, 1, 0], np.int32).tobytes(), np.int32, offset=1)
    made = facts(rows=rows, passages=passages)
    for array in (made.rows, made.passages):
        assert array.flags.c_contiguous
        assert array.flags.aligned
    assert (made.rows.tolist(), made.passages.tolist()) == (ROWS, [0, 2, 1, 0])


def test_arrays_of_the_right_dtype_are_referenced_and_read_only() -> None:
    rows = np.array(ROWS, np.int32)
    made = facts(rows=rows)
    assert np.shares_memory(made.rows, rows)
    assert rows.flags.writeable
    arrays = (made.rows, made.indptr, made.passages, made.incident_indptr, made.incident)
    assert not any(array.flags.writeable for array in arrays)
    assert [array.dtype.name for array in arrays] == ["int32", "int64", "int32", "int64", "int32"]
    assert repr(made) == "Facts(facts=3, relations=2, statements=4, entities=3, passages=3)"


def test_lists_and_other_integers_give_the_same() -> None:
    made = facts(
        rows=ROWS, indptr=np.array([0, 2, 3, 4], np.uint64), passages=[0, 2, 1, 0], relations=iter(["knows", "is"])
    )
    assert made.rows.dtype == np.int32
    assert made.relations == ("knows", "is")
    assert made.incident.tolist() == [0, 2, 0, 1, 2]
    assert made.incident_indptr.tolist() == [0, 2, 5, 5]


def test_facts_may_be_empty() -> None:
    empty = hf.Facts([], [], [0], [], num_entities=0, num_passages=0)
    assert (len(empty), empty.rows.shape, empty.incident_indptr.tolist()) == (0, (0, 3), [0])
    assert (
        repr(hf.Facts.from_names([], ["a"], 1)) == "Facts(facts=0, relations=0, statements=0, entities=1, passages=1)"
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rows": [[0, 0]]}, ("shape", "rows", {"allowed": "integers of shape (F, 3)", "given": "int64(1, 2)"})),
        ({"rows": np.array(ROWS, np.float32)}, ("shape", "rows")),
        ({"rows": np.array(ROWS, bool)}, ("shape", "rows")),
        ({"rows": 3}, ("shape", "rows", {"given": "int64()"})),
        (
            {"rows": np.broadcast_to(np.int32(0), (2**31, 3))},
            ("limit", "rows", {"allowed": 2147483647, "given": 2147483648}),
        ),
        (
            {"passages": np.broadcast_to(np.int32(0), 2**31)},
            ("limit", "passages", {"allowed": 2147483647, "given": 2147483648}),
        ),
        (
            {"indptr": np.broadcast_to(np.int64(0), 2**31 + 1)},
            ("limit", "indptr", {"allowed": 2147483648, "given": 2147483649}),
        ),
        (
            {"indptr": np.broadcast_to(np.int64(0), 2**31)},
            ("length", "indptr", {"allowed": 4, "end": 4, "given": 2147483648}),
        ),
        ({"rows": [[0, 0, 3], *ROWS[1:]]}, ("range", "rows", {"last": 2})),
        ({"rows": [[-1, 0, 1], *ROWS[1:]]}, ("range", "rows", {"last": 2})),
        ({"rows": [[0, -1, 1], *ROWS[1:]]}, ("range", "rows", {"last": 1})),
        ({"rows": [[0, 2, 1], *ROWS[1:]]}, ("range", "rows", {"last": 1})),
        ({"rows": [[0, 1, 1], [1, 0, 1], [1, 0, 0]]}, ("order", "relations")),
        ({"relations": ["knows", "is", "was"]}, ("order", "relations")),
        ({"rows": [ROWS[0], ROWS[1], ROWS[0]]}, ("duplicate", "rows", {"first": 0, "given": [0, 0, 1], "second": 2})),
        ({"relations": ["knows", "knows"]}, ("duplicate", "relations", {"first": 0, "given": "knows", "second": 1})),
        ({"relations": "ki"}, ("type", "relations", {"given": "str"})),
        ({"relations": ["knows", 1]}, ("type", "relations[1]")),
        ({"indptr": [0, 2, 4]}, ("length", "indptr", {"allowed": 4, "end": 4, "given": 3})),
        ({"indptr": []}, ("length", "indptr", {"given": 0})),
        ({"indptr": [1, 2, 3, 4]}, ("length", "indptr", {"allowed": 4, "end": 4, "given": 4})),
        ({"indptr": [0, 2, 3, 5]}, ("length", "indptr", {"allowed": 4, "end": 4, "given": 4})),
        ({"indptr": [0, 2, 2, 4]}, ("order", "indptr")),
        ({"indptr": [0, 5, 3, 4]}, ("order", "indptr")),
        ({"indptr": [0.0, 2, 3, 4]}, ("shape", "indptr")),
        ({"passages": [0, 3, 1, 0]}, ("range", "passages", {"last": 2})),
        ({"passages": [-1, 2, 1, 0]}, ("range", "passages", {"last": 2})),
        ({"passages": [2, 2, 1, 0]}, ("order", "passages")),
        ({"passages": [2, 1, 1, 0]}, ("order", "passages")),
        ({"num_entities": -1}, ("range", "num_entities", {"given": -1})),
        ({"num_entities": True}, ("range", "num_entities", {"given": True})),
        ({"num_passages": 2**31}, ("range", "num_passages", {"given": 2147483648})),
        ({"num_passages": 2.0}, ("range", "num_passages", {"given": 2.0})),
    ],
)
def test_inconsistent_arrays_are_refused(changes: dict[str, Any], expected: tuple[Any, ...]) -> None:
    with refused(InputError, *expected):
        facts(**changes)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ([("a", "r", "b")], ["a", "b"], 1),
            ("shape", "rows[0]", {"allowed": "(head, relation, tail, passage)", "given": ("a", "r", "b")}),
        ),
        (([("a", "r", 1, 0)], ["a", "b"], 1), ("type", "rows[0][2]")),
        ((["arbc"], ["a", "b"], 1), ("shape", "rows[0]", {"given": "arbc"})),
        (([("a", 3, "b", 0)], ["a", "b"], 1), ("type", "rows[0][1]")),
        (([("a", "r", "b", 1)], ["a", "b"], 1), ("range", "rows[0][3]")),
        (([("a", "r", "b", -1)], ["a", "b"], 1), ("range", "rows[0][3]")),
        (([("a", "r", "b", "0")], ["a", "b"], 1), ("range", "rows[0][3]")),
        (([("a", "r", "b", True)], ["a", "b"], 2), ("range", "rows[0][3]")),
        (
            ([("a", "r", "B", 0)], ["a", "b"], 1),
            ("unknown", "entities", {"count": "no", "given": "B"}),
        ),
        (([("a", "r", "b", 0)], ["a", "b", "b"], 1), ("duplicate", "entities", {"count": "several", "given": "b"})),
        (([], "ab", 1), ("type", "entities", {"given": "str"})),
        (([], [1], 1), ("type", "entities[0]")),
        (([], ["a"], -1), ("range", "num_passages", {"given": -1})),
        ((5, ["a"], 1), ("type", "rows", {"given": "int"})),
        (("arb0", ["a"], 1), ("type", "rows", {"given": "str"})),
    ],
)
def test_ambiguous_names_are_refused(arguments: Any, expected: tuple[Any, ...]) -> None:
    with refused(InputError, *expected):
        hf.Facts.from_names(*arguments)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("a", "r", 1, 0)], ("range", "rows[0][0]", {"given": "a"})),
        ([(True, "r", 1, 0)], ("range", "rows[0][0]")),
        ([(0, "r", 2, 0)], ("range", "rows[0][2]")),
        ([(2**70, "r", 1, 0)], ("range", "rows[0][0]")),
        ([(0, "r", -1, 0)], ("range", "rows[0][2]")),
        ([(0, 5, 1, 0)], ("type", "rows[0][1]")),
        ([(0, "r", 1, 1)], ("range", "rows[0][3]")),
        (3, ("type", "rows", {"given": "int"})),
    ],
)
def test_numbers_out_of_range_are_refused(rows: Any, expected: tuple[Any, ...]) -> None:
    with refused(InputError, *expected):
        hf.Facts.from_numbers(rows, 2, 1)


def test_an_ambiguous_name_is_refused_only_if_a_fact_uses_it() -> None:
    made = hf.Facts.from_names([("c", "r", "a", 0)], ["a", "b", "b", "c", "b"], 1)
    assert made.rows.tolist() == [[3, 0, 0]]
    assert made.num_entities == 5


@given(stated=STATED)
def test_texts_are_the_words_of_the_triples_in_order(stated: list[tuple[str, str, str, int]]) -> None:
    entities = list("edcbaf")
    made = hf.Facts.from_names(stated, entities, 4)
    assert made.texts(entities) == list(dict.fromkeys(f"{head} {kind} {tail}" for head, kind, tail, _ in stated))


def test_texts_need_a_name_for_each_entity() -> None:
    made = facts()
    assert made.texts(["a", "b", ""]) == ["a knows b", "b is b", "b knows a"]
    with refused(InputError, "length", "entities", allowed="3 entities", given=2):
        made.texts(["a", "b"])
    with refused(InputError, "type", "entities", given="str"):
        made.texts("abc")
