import dataclasses
import json

import numpy as np
import pytest
from hopfuse.errors import FormatError, InputError
from hopfuse.evaluate import Qrels
from refusals import refused

RECORDS = [
    {"id": "q1", "type": "2hop", "question": "?", "answer": "!", "gold": [4, 9], "hops": [[9], [4]], "last_hop": [4]},
    {"id": "q2", "type": "comparison", "gold": [2, 3], "hops": [[2, 3]], "last_hop": []},
    {"id": "q3", "gold": [5]},
]


def test_records_become_columns():
    q = Qrels.from_records(RECORDS)
    assert q.ids == ("q1", "q2", "q3")
    assert q.gold == ((4, 9), (2, 3), (5,))
    assert q.hops == (((9,), (4,)), ((2, 3),), ())
    assert q.last_hop == ((4,), (), ())
    assert q.types == ("2hop", "comparison", "")
    assert q.num_hops.tolist() == [2, 1, 0]
    assert q.num_without_last_hop == 2
    assert len(q) == 3
    assert repr(q) == "Qrels(queries=3, gold=5, no_last_hop=2)"


def test_flat_pairs():
    pairs = Qrels.from_records(RECORDS).gold_pairs
    assert pairs.query.tolist() == [0, 0, 1, 1, 2]
    assert pairs.passage.tolist() == [4, 9, 2, 3, 5]
    assert pairs.sizes.tolist() == [2, 2, 1]
    assert pairs.grade.tolist() == [1] * 5
    assert all(a.dtype == np.int64 and not a.flags.writeable for a in pairs)


def test_equal_and_frozen():
    q = Qrels.from_records(RECORDS)
    assert q == Qrels.from_records(RECORDS)
    assert q != Qrels.from_records(RECORDS[:2])
    with pytest.raises(dataclasses.FrozenInstanceError):
        q.ids = ()


def test_no_queries():
    q = Qrels([], [])
    assert len(q) == 0
    assert q.gold_pairs.passage.size == 0


def test_numpy_ids_are_taken():
    assert Qrels(["a"], [np.array([3, 1])]).gold == ((3, 1),)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"gold": [[1]]}, ("length", "gold", {"given": 1})),
        ({"gold": [[1], [2]], "types": ["x"]}, ("length", "types", {"given": 1})),
        ({"gold": [[1], [-2]]}, ("range", "gold[0]", {"given": -2})),
        ({"gold": [[1], [2.0]]}, ("range", "gold[0]", {"given": 2.0})),
        ({"gold": [[1], [True]]}, ("range", "gold[0]", {"given": True})),
        ({"gold": [[1], ["2"]]}, ("range", "gold[0]", {"given": "2"})),
        ({"gold": [[1], 2]}, ("type", "gold", {"given": "int"})),
        ({"gold": [[1], [2, 2]]}, ("duplicate", "gold", {"given": 2})),
        ({"gold": [[1], [2]], "last_hop": [[], [3]]}, ("unknown", "last_hop", {"given": 3})),
        ({"gold": [[1], [2]], "hops": [[], [[2], [7]]]}, ("unknown", "hops[1]", {"given": 7})),
        ({"gold": [[1], [2]], "hops": [[], 4]}, ("type", "hops", {"given": "int"})),
        ({"gold": [[1], [2]], "hops": [[], [2]]}, ("type", "hops[0]", {"given": "int"})),
        ({"gold": [[1], [2]], "grades": [[1], [1, 2]]}, ("length", "grades", {"given": 2})),
        ({"gold": [[1], [2]], "grades": [[1], [0]]}, ("range", "grades[0]", {"given": 0})),
        ({"gold": [[1], [2]], "grades": [[1], [True]]}, ("range", "grades[0]", {"given": True})),
        ({"gold": [[1], [2]], "questions": ["?"]}, ("length", "questions", {"given": 1})),
        ({"gold": [[1], [2]], "answers": [[], "yes"]}, ("type", "answers", {"given": "str"})),
        ({"gold": [[1], [2]], "answers": [[], [4]]}, ("type", "answers[0]", {"given": "int"})),
    ],
)
def test_bad_judgements_are_named(fields, error):
    with refused(InputError, *error):
        Qrels(["a", "b"], **fields)


def test_repeated_query_ids_are_named():
    with refused(InputError, "duplicate", "ids"):
        Qrels(["a", "b", "a"], [[1], [2], [3]])


def test_a_record_without_gold_is_named():
    with refused(InputError, "missing", "records[1]"):
        Qrels.from_records([{"id": "a", "gold": [1]}, {"id": "b"}])


def test_answers_are_the_answer_and_its_aliases():
    records = [
        {"id": "a", "gold": [], "answer": "yes", "aliases": ["yeah"]},
        {"id": "b", "gold": [], "answer": ["1", "one"]},
        {"id": "c", "gold": [], "answer": None, "aliases": None},
    ]
    q = Qrels.from_records(records)
    assert q.answers == (("yes", "yeah"), ("1", "one"), ())
    assert Qrels.from_records(RECORDS).questions == ("?", "", "")


def test_a_part_of_the_queries():
    q = Qrels.from_records(RECORDS)
    assert q.take([2, 0]) == Qrels.from_records([RECORDS[2], RECORDS[0]])
    assert q.take(np.array([False, True, False])) == Qrels.from_records(RECORDS[1:2])
    assert q.take([]) == Qrels([], [])
    for rows, error in (
        ([3], ("unknown", "rows", {"given": 3})),
        ([-1], ("unknown", "rows", {"given": -1})),
        (["q1"], ("shape", "rows")),
        ([True], ("shape", "rows")),
    ):
        with refused(InputError, *error):
            q.take(rows)


def test_read_jsonl(tmp_path):
    path = tmp_path / "queries.jsonl"
    path.write_text("\n".join(json.dumps(r) for r in RECORDS) + "\n\n", encoding="utf-8")
    assert Qrels.read_jsonl(path) == Qrels.from_records(RECORDS)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"id": "a", "gold": [1]}\n{"id": ', ("syntax",)),
        ("[1, 2]", ("missing",)),
        ('{"id": "a"}', ("missing",)),
        ('{"id": "a", "gold": [-1]}', ("range", "gold[0]", {"given": -1})),
        ('{"id": "a", "gold": {"1": 2}}', ("type", "gold", {"given": "dict"})),
        ('{"id": "a", "gold": null}', ("type", "gold", {"given": "NoneType"})),
    ],
)
def test_a_bad_file_is_a_format_error(tmp_path, text, error):
    path = tmp_path / "queries.jsonl"
    path.write_text(text, encoding="utf-8")
    with refused(FormatError, *error):
        Qrels.read_jsonl(path)


@pytest.mark.parametrize(
    ("name", "queries", "without", "hops"),
    [
        ("musique-train", 299, 0, {2: 267, 3: 27, 4: 5}),
        ("hotpotqa", 334, 137, {1: 137, 2: 197}),
        ("musique-openie", 100, 0, {2: 68, 3: 27, 4: 5}),
    ],
)
def test_real_files(data_folder, name, queries, without, hops):
    q = Qrels.read_jsonl(data_folder / name / "queries.jsonl")
    assert len(q) == queries
    assert q.num_without_last_hop == without
    assert dict(zip(*np.unique(q.num_hops, return_counts=True), strict=True)) == hops
