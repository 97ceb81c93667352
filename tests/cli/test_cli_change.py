"""``hopfuse add``, ``delete``, ``compact`` and ``log`` on a small index."""

from __future__ import annotations

import json

import hopfuse as hf
import numpy as np
import pytest
from cli.cli_files import write_jsonl

ROWS = [{"id": f"p{at}", "title": "", "text": f"text {at}", "metadata": {"year": 2000 + at}} for at in range(5)]


@pytest.fixture
def folder(tmp_path):
    """An index of two passages with vectors, and files of three more."""
    hf.Index.build(passages=ROWS[:2], vectors=np.eye(2), entities=["Ada"]).save(tmp_path / "index")
    write_jsonl(tmp_path / "new.jsonl", ROWS[2:])
    np.save(tmp_path / "new.npy", np.ones((3, 2)))
    return tmp_path


def test_passages_are_added_replaced_deleted_and_compacted(folder, said):
    index, vectors = folder / "index", ["--vectors", folder / "new.npy"]
    said("add", index, folder / "new.jsonl", *vectors, "--batch", 2)
    opened = hf.Index.open(index)
    assert (opened.seq, list(opened.passage_ids)) == (2, ["p0", "p1", "p2", "p3", "p4"])
    assert list(opened.metadata["year"]) == [2000, 2001, 2002, 2003, 2004]
    said("delete", index, "p0", "p3")
    said("delete", index, "--entities", "Ada")
    write_jsonl(folder / "again.jsonl", ROWS[2:3])
    np.save(folder / "again.npy", [[0.0, 3.0]])
    said("add", index, folder / "again.jsonl", "--vectors", folder / "again.npy", "--replace")
    lines = [json.loads(line) for line in said("log", index, "--json").splitlines()]
    assert [{k: v for k, v in line.items() if k != "time"} for line in lines] == [
        {"seq": 1, "passages": 2},
        {"seq": 2, "passages": 1},
        {"seq": 3, "deleted passages": -2},
        {"seq": 4, "deleted entities": -1},
        {"seq": 5, "deleted passages": -1, "passages": 1},
    ]
    assert "-2 deleted passages" in said("log", index)
    said("compact", index)
    opened = hf.Index.open(index, verify="full")
    assert (opened.generation, opened.seq, list(opened.passage_ids)) == (2, 5, ["p1", "p4", "p2"])
    assert opened.vectors.tolist() == [[0.0, 1.0], [1.0, 1.0], [0.0, 3.0]]
    assert said("log", index) == ""


def test_ids_may_be_integers(folder, said, refused_here):
    hf.Index.build(passages=[{"id": 7, "text": "seven"}, {"id": -8, "text": "eight"}]).save(folder / "numbers")
    assert "'seven' is no id" in refused_here("delete", folder / "numbers", "seven")
    said("delete", folder / "numbers", "7")
    assert list(hf.Index.open(folder / "numbers").passage_ids) == [-8]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "index", "new.jsonl"], "give vectors=, or open it with encoder="),
        (["add", "index", "new.jsonl", "--vectors", "two.npy"], "--vectors has 2 rows for 3 passages"),
        (["add", "plain", "new.jsonl", "--vectors", "new.npy"], "leave --vectors and --encoder out"),
        (["add", "index", "new.jsonl", "--vectors", "new.npy", "--replace"], "no passage with the id 'p2'"),
        (["delete", "index", "p9"], "no passage with the id 'p9'"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(folder, refused_here, arguments, message):
    np.save(folder / "two.npy", np.ones((2, 2)))
    hf.Index.build(passages=ROWS[:1]).save(folder / "plain")
    given = [folder / one if "." in one or one in ("index", "plain") else one for one in arguments]
    assert message in refused_here(*given)
    assert hf.Index.open(folder / "index").seq == 0
