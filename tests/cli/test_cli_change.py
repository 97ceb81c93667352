"""``hopfuse add``, ``delete``, ``compact`` and ``log`` on a small index."""

from __future__ import annotations

import json

import hopfuse as hf
import numpy as np
import pytest
from cli.cli_files import about, hopfuse, write_jsonl
from hopfuse.extract import Extraction, build_memory
from index.live_model import differences

ROWS = [{"id": f"p{at}", "title": "", "text": f"text {at}", "metadata": {"year": 2000 + at}} for at in range(5)]


@pytest.fixture
def folder(tmp_path):
    """An index of two passages with vectors, and files of three more."""
    hf.Index.build(passages=ROWS[:2], vectors=np.eye(2), entities=["Ada"]).save(tmp_path / "index")
    write_jsonl(tmp_path / "new.jsonl", ROWS[2:])
    np.save(tmp_path / "new.npy", np.ones((3, 2)))
    return tmp_path


def test_passages_are_added_replaced_deleted_and_compacted(folder, output_of):
    index, vectors = folder / "index", ["--vectors", folder / "new.npy"]
    output_of("add", index, folder / "new.jsonl", *vectors, "--batch", 2)
    opened = hf.Index.open(index)
    assert (opened.seq, list(opened.passage_ids)) == (2, ["p0", "p1", "p2", "p3", "p4"])
    assert list(opened.metadata["year"]) == [2000, 2001, 2002, 2003, 2004]
    output_of("delete", index, "p0", "p3")
    output_of("delete", index, "--entities", "Ada")
    write_jsonl(folder / "again.jsonl", ROWS[2:3])
    np.save(folder / "again.npy", [[0.0, 3.0]])
    output_of("add", index, folder / "again.jsonl", "--vectors", folder / "again.npy", "--replace")
    lines = [json.loads(line) for line in output_of("log", index, "--json").splitlines()]
    assert [{k: v for k, v in line.items() if k != "time"} for line in lines] == [
        {"seq": 1, "passages": 2},
        {"seq": 2, "passages": 1},
        {"seq": 3, "deleted passages": -2},
        {"seq": 4, "deleted entities": -1},
        {"seq": 5, "deleted passages": -1, "passages": 1},
    ]
    assert "-2 passages" in output_of("log", index)
    assert "-1 passage  +1 passage\n" in output_of("log", index)
    output_of("compact", index)
    opened = hf.Index.open(index, verify="full")
    assert (opened.generation, opened.seq, list(opened.passage_ids)) == (2, 5, ["p1", "p4", "p2"])
    assert opened.vectors.tolist() == [[0.0, 1.0], [1.0, 1.0], [0.0, 3.0]]
    assert output_of("log", index) == ""
    assert "No changes since generation 2" in hopfuse("log", index).stderr


def test_one_row_of_a_kind_is_in_the_singular(tmp_path, output_of):
    rows = [{"id": "a", "text": "Ada wrote."}]
    read = Extraction("a", "", "Ada wrote.", ("Ada", "Byron"), (("Ada", "knew", "Byron"),))
    build_memory([read]).index(passages=hf.Index.build(passages=rows)).save(tmp_path)
    fact = ("Ada", "knew", "Clare")
    edge = {"src": ("entity", "Ada"), "dst": ("entity", "Clare"), "type": "relation"}
    with hf.Index.open(tmp_path, writable=True) as live:
        for fill in (
            lambda change: change.add_passages([{"id": "b", "text": "More."}]),
            lambda change: change.add_entities(["Clare"]),
            lambda change: change.add_entities(["Byron"], missing=True),
            lambda change: change.add_aliases({"Ada": ["Augusta"]}),
            lambda change: change.add_edges([edge | {"stated_by": "b"}]),
            lambda change: change.add_facts([(*fact, "b")]),
            lambda change: change.delete_facts([fact]),
            lambda change: change.delete_edges([edge]),
            lambda change: change.delete_aliases({"Ada": ["Augusta"]}),
            lambda change: change.delete_entities(["Clare"]),
            lambda change: change.delete_passages(["b"]),
        ):
            with live.change() as change:
                fill(change)
        kinds = {kind for batch in live.history() for kind in batch["counts"]}
    counts = [count for line in output_of("log", tmp_path).splitlines() for count in line.split("  ")[2:]]
    ones = {count.strip() for count in counts if count.strip().startswith(("+1 ", "-1 "))}
    of = {"statement of facts", "alias"}
    assert {one[3:] for one in ones} == {"passage", "entity", "stated entity", "edge", "fact", *of}
    assert {kind.removeprefix("deleted ") for kind in kinds} == {
        *("passages", "entities", "stated entities", "edges", "facts", "aliases", "statements of facts")
    }


def test_passages_are_deleted_by_metadata_and_document_with_what_was_read_in_them(tmp_path, output_of, refused_here):
    index = tmp_path / "index"
    rows = [{**row, "document": f"d{at % 2}"} for at, row in enumerate(ROWS)]
    found = [
        Extraction(row["id"], "", row["text"], ("Ada", f"N{at}"), (("Ada", "knew", f"N{at}"),))
        for at, row in enumerate(rows)
    ]
    build_memory(found).index(passages=hf.Index.build(passages=rows)).save(index)
    for given, said in (
        (["--where", "year__ge=2003"], "2 passages, 2 names, 0 words and 2 facts"),
        (["--where", "year__ge=2003", "--where", "year__in=2003,2001"], "1 passage, 1 name, 0 words and 1 fact"),
        (["--document", "d1"], "2 passages, 2 names, 0 words and 2 facts"),
        (["p0", "p1"], "2 passages, 2 names, 0 words and 2 facts"),
        (["--entities", "N3"], "0 passages, 1 name, 0 words and 1 fact"),
        (["--document", "none"], "0 passages, 0 names, 0 words and 0 facts"),
    ):
        assert output_of("delete", index, *given, "--dry-run") == f"{said} would be deleted\n"
    assert refused_here("delete", index) == about("missing", "ids")
    assert refused_here("delete", index, "--entities") == about("missing", "ids")
    assert refused_here("delete", index, "p0", "--document", "d1") == about("conflict", "ids")
    assert refused_here("delete", index, "N3", "--entities", "--document", "d1") == about("conflict", "entities")
    assert refused_here("delete", index, "--where", "colour=red") == about("unknown", "colour")
    assert hf.Index.open(index).seq == 0
    assert "2 passages, 2 names, 0 words and 2 facts deleted" in hopfuse("delete", index, "--document", "d1").stderr
    assert "1 passage, 1 name, 0 words and 1 fact deleted" in hopfuse("delete", index, "--where", "year=2004").stderr
    assert list(hf.Index.open(index).entity_names) == ["Ada", "N0", "N2"]
    hf.Index.build(passages=[{"id": 7, "text": "seven", "document": 3}]).save(tmp_path / "numbers")
    assert refused_here("delete", tmp_path / "numbers", "--document", "three") == about(
        "type", "document", given="three"
    )
    assert output_of("delete", tmp_path / "numbers", "--document", "3", "--dry-run").startswith("1 passage,")


def test_entities_are_merged(tmp_path, output_of, refused_here):
    names = ["United States", "USA", "U.S.", "Ohio", "Ohio"]
    graph = [{"src": 0, "dst": 2}, {"src": 1, "dst": 3}, {"src": 1, "dst": 4}, {"src": 4, "dst": 5}]
    index = tmp_path / "index"
    hf.Index.build(passages=ROWS[:2], entities=names, graph=graph).save(index)
    assert refused_here("merge", index, "Utopia", "USA") == about("unknown", None, given="Utopia")
    assert refused_here("merge", index, "USA", "USA") == about("conflict", "merge", given="USA")
    assert refused_here("merge", index, "USA", "Ohio") == about("duplicate", None, given="Ohio")
    assert refused_here("merge", index, "USA") == about("missing", "others")
    assert hf.Index.open(index).seq == 0
    output_of("merge", index, "United States", "USA", "U.S.")
    opened = hf.Index.open(index)
    assert (opened.seq, list(opened.entity_names)) == (1, ["United States", "Ohio", "Ohio"])
    assert set(opened.entity_aliases[0]) == {"USA", "U.S."}
    assert opened.passage_frequency.tolist() == [2, 0, 0]


def test_a_copy_keeps_the_seq(folder, output_of, refused_here):
    output_of("delete", folder / "index", "p0")
    output_of("snapshot", folder / "index", folder / "copy")
    copy = hf.Index.open(folder / "copy")
    assert (copy.seq, list(copy.passage_ids)) == (1, ["p1"])
    assert refused_here("snapshot", folder / "index", folder / "index") == about("conflict", "directory")


def test_ids_may_be_integers(folder, output_of, refused_here):
    hf.Index.build(passages=[{"id": 7, "text": "seven"}, {"id": -8, "text": "eight"}]).save(folder / "numbers")
    assert refused_here("delete", folder / "numbers", "seven") == about("type", "ids", given="seven")
    output_of("delete", folder / "numbers", "7")
    assert list(hf.Index.open(folder / "numbers").passage_ids) == [-8]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "index", "new.jsonl"], about("missing", "vectors")),
        (["add", "index", "new.jsonl", "--vectors", "two.npy"], about("length", "vectors", given=2)),
        (["add", "plain", "new.jsonl", "--vectors", "new.npy"], about("unused", "vectors")),
        (["add", "index", "new.jsonl", "--vectors", "new.npy", "--replace"], about("unknown", None, given="p2")),
        (["add", "index", "new.jsonl", "--reader", "spacy"], about("unused", "reader")),
        (["add", "index", "new.jsonl", "--model", "m"], about("unused", "model", other="reader endpoint")),
        (["add", "plain", "new.jsonl", "--encoder", "wordllama"], about("unused", "encoder")),
        (["add", "index", "again.jsonl", "--vectors", "new.npy"], about("duplicate", "id", place="line 1")),
        (
            ["add", "index", "again.jsonl", "--vectors", "new.npy"],
            about("duplicate", "id"),
        ),
        (["delete", "index", "p9"], about("unknown", None, given="p9")),
    ],
)
def test_an_invalid_change_is_refused_and_nothing_changes(folder, refused_here, arguments, message):
    np.save(folder / "two.npy", np.ones((2, 2)))
    write_jsonl(folder / "again.jsonl", ROWS[:3])
    hf.Index.build(passages=ROWS[:1]).save(folder / "plain")
    given = [folder / one if "." in one or one in ("index", "plain") else one for one in arguments]
    assert refused_here(*given) == message
    assert hf.Index.open(folder / "index").seq == 0


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"text": 3}, about("type", "text", given=3)),
        ({"metadata": {"year": "new"}}, about("type", "metadata.year", given="new")),
        ({"id": "p1"}, about("duplicate", "id", given="p1")),
        ({"id": 4}, about("type", "id", given=4)),
    ],
)
def test_a_line_that_is_refused_is_named(folder, refused_here, bad, message):
    write_jsonl(folder / "bad.jsonl", [*ROWS[2:4], ROWS[4] | bad])
    line = refused_here("add", folder / "index", folder / "bad.jsonl", "--vectors", folder / "new.npy", "--batch", 2)
    assert line == message
    assert line.places == ["after 2 passages added", f"{folder / 'bad.jsonl'}, line 3"]
    assert hf.Index.open(folder / "index").num_passages == 4


def test_a_vector_that_is_refused_is_named_before_anything_is_added(folder, refused_here):
    np.save(folder / "new.npy", [[1, 1], [1, 1], [1, np.nan]])
    given = ("add", folder / "index", folder / "new.jsonl", "--vectors", folder / "new.npy", "--batch", 1)
    assert refused_here(*given) == about("finite", "X[2]")
    assert hf.Index.open(folder / "index").seq == 0


CHUNKS = [
    {"id": "c1", "document": "report", "position": 1, "text": "The turbine failed in winter."},
    {"id": "c2", "title": "Canteen", "text": "Soup in winter."},
    {"id": "c3", "document": "report", "position": 3, "text": "A bearing was ordered from Lyon."},
    {"id": "c4", "document": "report", "position": 2, "text": "An inspector found a cracked bearing."},
    {"id": "c5", "document": "log", "position": 1, "text": "Lyon sent the turbine."},
    {"id": "c6", "document": "log", "position": 2, "text": "Winter came."},
]


def test_chunks_are_read_as_those_that_the_index_was_built_of(tmp_path, output_of):
    for package in ("Stemmer", "bm25s", "wordllama"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    files = {name: write_jsonl(tmp_path / f"{name}.jsonl", rows) for name, rows in
             (("first", CHUNKS[:2]), ("later", CHUNKS[2:]), ("all", CHUNKS))}  # fmt: skip
    build = ("--reader", "words", "--encoder", "wordllama:64", "--lexical")
    output_of("build", files["first"], *build, "--out", tmp_path / "index")
    output_of("build", files["all"], *build, "--out", tmp_path / "whole")
    output_of("add", tmp_path / "index", files["later"], "--batch", 2)
    index, whole = hf.Index.open(tmp_path / "index"), hf.Index.open(tmp_path / "whole")
    # c1 was there before the rest of its document came.
    assert whole.info()["graph"]["edge_types"]["sequence"] - index.info()["graph"]["edge_types"]["sequence"] == 1
    with hf.Index.open(tmp_path / "index", writable=True) as live, live.change() as change:
        change.add_edges([{"src": ("passage", "c1"), "dst": ("passage", "c4"), "type": "sequence"}])
    assert index.seq == 2
    assert differences(hf.Index.open(tmp_path / "index"), whole) == []


def test_names_are_read_by_the_reader_that_is_named(tmp_path, capsys, output_of, monkeypatch):
    build_memory([Extraction("a", "", "Ada wrote.", ("Ada",))]).index().save(tmp_path / "index")
    new = write_jsonl(tmp_path / "new.jsonl", [{"id": "b", "text": "ADA met Byron."}])

    class Reader:
        skip_failed = 0.0

        def read(self, rows, progress, skips):
            progress(1, 1)
            return [Extraction(row["id"], "", row["text"], ("ADA", "Byron")) for row in rows]

    monkeypatch.setattr("hopfuse.cli.readers.SpacyReader", Reader)
    output_of("add", tmp_path / "index", new, "--reader", "spacy")
    index = hf.Index.open(tmp_path / "index")
    assert list(index.entity_names) == ["Ada", "Byron"]
    assert index.passage_frequency.tolist() == [2, 1]
    write_jsonl(tmp_path / "new.jsonl", [{"id": "c", "text": "Ada met Byron."}])
    with pytest.raises(SystemExit):
        hf.cli.main(["add", str(tmp_path / "index"), str(new)])
    assert "The index has 2 entities, but none is read from these passages: see --reader" in capsys.readouterr().err
    assert hf.Index.open(tmp_path / "index").passage_frequency.tolist() == [2, 1]
