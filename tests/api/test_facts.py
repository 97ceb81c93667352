"""Facts, given by number and by name, compared with a plain count; invalid facts are refused."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

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
    ("changes", "message"),
    [
        ({"rows": [[0, 0]]}, r"rows is int64\(1, 2\); it must be integers of shape \(F, 3\)"),
        ({"rows": np.array(ROWS, np.float32)}, "rows is float32"),
        ({"rows": np.array(ROWS, bool)}, "rows is bool"),
        ({"rows": 3}, r"rows is int64\(\)"),
        ({"rows": np.broadcast_to(np.int32(0), (2**31, 3))}, "rows has 2147483648 entries; at most 2147483647"),
        ({"passages": np.broadcast_to(np.int32(0), 2**31)}, "passages has 2147483648 entries; at most 2147483647"),
        ({"indptr": np.broadcast_to(np.int64(0), 2**31 + 1)}, "indptr has 2147483649 entries; at most 2147483648"),
        ({"indptr": np.broadcast_to(np.int64(0), 2**31)}, "indptr has 2147483648 entries; it must be 4"),
        ({"rows": [[0, 0, 3], *ROWS[1:]]}, "rows holds an entity outside 0 .. 2"),
        ({"rows": [[-1, 0, 1], *ROWS[1:]]}, "rows holds an entity outside 0 .. 2"),
        ({"rows": [[0, -1, 1], *ROWS[1:]]}, "rows holds a relation outside 0 .. 1"),
        ({"rows": [[0, 2, 1], *ROWS[1:]]}, "rows holds a relation outside 0 .. 1"),
        ({"rows": [[0, 1, 1], [1, 0, 1], [1, 0, 0]]}, "in order of first use"),
        ({"relations": ["knows", "is", "was"]}, "in order of first use"),
        ({"rows": [ROWS[0], ROWS[1], ROWS[0]]}, r"facts 0 and 2 are both \[0, 0, 1\]; give each once"),
        ({"relations": ["knows", "knows"]}, "relations 0 and 1 are both 'knows'"),
        ({"relations": "ki"}, "relations must be a sequence of strings"),
        ({"relations": ["knows", 1]}, "relations must be a sequence of strings"),
        ({"indptr": [0, 2, 4]}, "indptr has 3 entries; it must be 4, from 0 to 4"),
        ({"indptr": []}, "indptr has 0 entries"),
        ({"indptr": [1, 2, 3, 4]}, "from 0 to 4"),
        ({"indptr": [0, 2, 3, 5]}, "from 0 to 4"),
        ({"indptr": [0, 2, 2, 4]}, "stated by at least one passage"),
        ({"indptr": [0, 5, 3, 4]}, "does not ascend strictly"),
        ({"indptr": [0.0, 2, 3, 4]}, "indptr is float64"),
        ({"passages": [0, 3, 1, 0]}, "passages holds a row outside 0 .. 2"),
        ({"passages": [-1, 2, 1, 0]}, "passages holds a row outside 0 .. 2"),
        ({"passages": [2, 2, 1, 0]}, "do not ascend within a fact"),
        ({"passages": [2, 1, 1, 0]}, "do not ascend within a fact"),
        ({"num_entities": -1}, "num_entities is -1"),
        ({"num_entities": True}, "num_entities is True"),
        ({"num_passages": 2**31}, "num_passages is 2147483648"),
        ({"num_passages": 2.0}, r"num_passages is 2\.0"),
    ],
)
def test_inconsistent_arrays_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        facts(**changes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ([("a", "r", "b")], ["a", "b"], 1),
            r"row 0 is \('a', 'r', 'b'\); it must be \(head, relation, tail, passage\)",
        ),
        (([("a", "r", 1, 0)], ["a", "b"], 1), "head and tail must be strings"),
        ((["arbc"], ["a", "b"], 1), "row 0 is 'arbc'"),
        (([("a", 3, "b", 0)], ["a", "b"], 1), "its relation must be a string"),
        (([("a", "r", "b", 1)], ["a", "b"], 1), r"its passage must be an integer 0 \.\. 0"),
        (([("a", "r", "b", -1)], ["a", "b"], 1), "its passage must be an integer"),
        (([("a", "r", "b", "0")], ["a", "b"], 1), "its passage must be an integer"),
        (([("a", "r", "b", True)], ["a", "b"], 2), "its passage must be an integer"),
        (
            ([("a", "r", "B", 0)], ["a", "b"], 1),
            r"'B' of row 0, \('a', 'r', 'B', 0\), is not the exact name of an entity",
        ),
        (([("a", "r", "b", 0)], ["a", "b", "b"], 1), "'b' of row 0, .* is the name of several entities"),
        (([], "ab", 1), "entities must be a sequence of strings"),
        (([], [1], 1), "entities must be a sequence of strings"),
        (([], ["a"], -1), "num_passages is -1"),
        ((5, ["a"], 1), "got int"),
        (("arb0", ["a"], 1), "got str"),
    ],
)
def test_ambiguous_names_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        hf.Facts.from_names(*arguments)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "r", 1, 0)], r"head and tail must be integers 0 \.\. 1"),
        ([(True, "r", 1, 0)], "head and tail must be integers"),
        ([(0, "r", 2, 0)], "head and tail must be integers"),
        ([(2**70, "r", 1, 0)], "head and tail must be integers"),
        ([(0, "r", -1, 0)], "head and tail must be integers"),
        ([(0, 5, 1, 0)], "its relation must be a string"),
        ([(0, "r", 1, 1)], r"its passage must be an integer 0 \.\. 0"),
        (3, "got int"),
    ],
)
def test_numbers_out_of_range_are_refused(rows: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
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
    with pytest.raises(InputError, match="entities has 2 names for 3 entities; give one name per entity"):
        made.texts(["a", "b"])
    with pytest.raises(InputError, match="entities must be a sequence of strings"):
        made.texts("abc")
