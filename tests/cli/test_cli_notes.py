"""Notes: what was not used of a question is said beside the hits, and refused with ``--strict``."""

from __future__ import annotations

import json

import hopfuse as hf
import pytest
from cli.cli_files import about, hopfuse, read_jsonl, write_jsonl

ROWS = [
    {"id": "a", "document": "x", "text": "Ada wrote of the Engine."},
    {"id": "b", "document": "x", "text": "The Engine was Ada's."},
    {"id": "c", "document": "y", "text": "Ada wrote of the Engine."},
    {"id": "d", "document": "z", "text": "The Engine in London."},
]
ASKED = [
    {"id": "q", "text": "Who wrote?", "entities": ["Ada", "Nobody"]},
    {"id": "r", "text": "Which Engine?"},
    {"id": "s", "text": "Zzz?"},
]


@pytest.fixture
def words(tmp_path):
    graph = [{"src": at, "dst": 4} for at in range(3)]
    hf.Index.build(passages=ROWS, entities=["Ada"], graph=graph).save(tmp_path / "index")
    return tmp_path / "index"


def test_a_name_that_the_index_lacks_is_noted(words) -> None:
    asked = (words, "Who wrote of the Engine?", "--entity", "Ada", "--entity", "Nobody", "--words", "fts5")
    plain = hopfuse("search", *asked)
    found = json.loads(hopfuse("search", *asked, "--json").stdout)
    (note,) = found["notes"]
    assert (note["code"], note["field"]) == ("unknown", "entities[1]")
    line = f"Note: {note['message']}\n"
    assert line.startswith("Note: --entity[1] ")
    assert plain.stderr == line
    assert json.loads(hopfuse("trace", *asked, "--json").stdout)["notes"] == [note]
    assert hopfuse("trace", *asked).stderr == plain.stderr
    known = json.loads(hopfuse("search", *asked[:4], *asked[6:], "--json").stdout)
    assert found["hits"] == known["hits"]
    assert "notes" not in known


def test_with_strict_a_note_is_an_error(words, refused_here) -> None:
    asked = (words, "Who wrote?", "--entity", "Nobody", "--words", "fts5", "--strict")
    for command in ("search", "trace"):
        assert refused_here(command, *asked) == about("unknown", "entities[0]")
        assert refused_here(command, words, "Zzz?", *asked[4:]) == about("unknown", "question")


def test_notes_of_queries_are_written_and_counted(words, tmp_path, refused_here) -> None:
    queries, out = write_jsonl(tmp_path / "q.jsonl", ASKED), tmp_path / "out.jsonl"
    args = ("score", words, "--queries", queries, "--words", "fts5", "--overwrite", "--part-rows", 1, "--out", out)
    said = hopfuse(*args).stderr
    assert "2 of 3 queries have notes, such as q: entities[1] is 'Nobody'" in said
    rows = read_jsonl(out)
    noted = [[(one["code"], one["field"]) for one in row.get("notes", [])] for row in rows]
    assert noted == [[("unknown", "entities[1]")], [], [("unknown", "text")]]
    gold = write_jsonl(tmp_path / "gold.jsonl", [{"id": row["id"], "gold": ["a"]} for row in ASKED])
    shown = hopfuse("eval", "--qrels", gold, "--run", f"mine={out}", "--metric", "recall@2").stdout
    assert "mine has notes on 2 queries, such as: entities[1] is 'Nobody'" in shown
    hopfuse(*args[:-1], tmp_path / "out.trec")
    assert refused_here(*args, "--strict").code == "unknown"
    hopfuse(*args, "--restart", "--workers", 2)
    assert read_jsonl(out) == rows


def test_a_part_of_a_run_with_bad_notes_is_refused(tmp_path, refused_here) -> None:
    run = write_jsonl(tmp_path / "run.jsonl", [{"id": "q", "hits": [], "notes": ["no object"]}])
    gold = write_jsonl(tmp_path / "gold.jsonl", [{"id": "q", "gold": ["a"]}])
    assert refused_here("eval", "--qrels", gold, "--run", f"mine={run}") == about("type", "notes", place="line 1")


def test_passages_of_a_document_are_limited(words, tmp_path) -> None:
    retriever = hf.Retriever(hf.Index.open(words), words="fts5")
    ids = [hit.id for hit in retriever.search("The Engine of Ada", per_document=1)[0]]
    assert len(ids) == 2 or len({{"a": "x", "b": "x", "c": "y", "d": "z"}[one] for one in ids}) == len(ids)
    asked = (words, "The Engine of Ada", "--words", "fts5", "--per-document", 1)
    assert [hit["id"] for hit in json.loads(hopfuse("search", *asked, "--json").stdout)["hits"]] == ids
    assert [hit["id"] for hit in json.loads(hopfuse("trace", *asked, "--json").stdout)["hits"]] == ids
    queries = write_jsonl(tmp_path / "q.jsonl", [{"text": "The Engine of Ada"}])
    given = ("--queries", queries, "--words", "fts5", "--per-document", 1, "--out", tmp_path / "out.jsonl")
    hopfuse("score", words, *given)
    assert [hit["id"] for hit in read_jsonl(tmp_path / "out.jsonl")[0]["hits"]] == ids


def test_info_says_how_an_index_is_searched(words, refused_here) -> None:
    about_search = hf.Retriever(hf.Index.open(words)).describe()
    assert hopfuse("info", words, "--search").stdout.endswith(f"{about_search}\n")
    assert json.loads(hopfuse("info", words, "--search", "--json").stdout)["search"] == about_search.data()
    assert refused_here("info", "--search").code == "syntax"
