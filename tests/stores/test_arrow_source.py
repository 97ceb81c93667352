"""Indexes of Arrow tables and of folders of Parquet files: the same bytes as of files; bad rows are named."""

from __future__ import annotations

import resource

import numpy as np
import pytest
from cli.cli_files import about, hopfuse
from cli.cli_files import refused as refused_command
from hopfuse import Index
from hopfuse.errors import InputError
from hopfuse.stores import ArrowSource, ParquetSource, is_place, open_source
from refusals import refused
from stores.store_files import NAMES, VECTORS, file_index, saved_bytes, tables

pa = pytest.importorskip("pyarrow")
STRINGS, NUMBERS = ["a", "b", "c", "é"], [7, -1, 2**62, 0]


def batches(table, rows):
    return table.to_batches(max_chunksize=rows)


@pytest.mark.parametrize("ids", [STRINGS, NUMBERS], ids=["strings", "numbers"])
@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize("storage", ["float32", "float16", "bfloat16", "int8"])
def test_an_index_of_arrow_has_the_bytes_of_one_of_files(tmp_path, ids, rows, storage):
    given = tables(ids)
    source = ArrowSource(
        passages=batches(given["passages"], rows),
        entities=batches(given["entities"], rows),
        edges=[batch for table in given["edges"] for batch in batches(table, rows)],
        facts=batches(given["facts"], rows),
    )
    made = Index.build(source, storage=storage, metric="cosine", scratch=tmp_path)
    wanted = file_index(ids, storage=storage, metric="cosine")
    assert saved_bytes(made, tmp_path / "made") == saved_bytes(wanted, tmp_path / "wanted")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "wanted"]


def test_other_types_of_arrow_are_read_alike(tmp_path):
    given = tables(STRINGS)
    passages = given["passages"]
    wide = pa.array(VECTORS.astype(np.float64).tolist(), pa.list_(pa.float64()))
    passages = passages.set_column(0, "id", passages["id"].cast(pa.large_string()))
    passages = passages.set_column(2, "text", passages["text"].combine_chunks().dictionary_encode())
    passages = passages.set_column(3, "vector", wide)
    made = Index.build(ArrowSource(**{**given, "passages": passages}))
    assert saved_bytes(made, tmp_path / "made") == saved_bytes(file_index(STRINGS), tmp_path / "wanted")
    halves = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.astype(np.float16).reshape(-1)), 5)
    half = Index.build(ArrowSource(passages=passages.set_column(3, "vector", halves)), storage="float16")
    assert np.array_equal(half.vectors, VECTORS.astype(np.float16))


def test_nodes_may_be_numbers_as_in_files():
    edges = pa.table({"src": [0, 1], "dst": [4, 2], "passage": pa.array([None, 1])})
    made = Index.build(ArrowSource(**{**tables(STRINGS), "edges": edges}))
    assert made.graph.num_stored == 4
    with refused(InputError, "range", "dst", column="dst"):
        Index.build(ArrowSource(**{**tables(STRINGS), "edges": pa.table({"src": [0, 0], "dst": [4, 9]})}))


def test_tables_without_rows_make_an_index_that_takes_them(tmp_path):
    given = tables(STRINGS)
    source = ArrowSource(
        passages=given["passages"].slice(0, 0),
        entities=given["entities"].slice(0, 0),
        edges=[table.slice(0, 0) for table in given["edges"]],
        facts=given["facts"].slice(0, 0),
    )
    made = Index.build(source)
    assert (made.num_passages, made.num_entities, made.dim, len(made.facts)) == (0, 0, 5, 0)
    made.save(tmp_path / "index")
    with Index.open(tmp_path / "index", writable=True) as live:
        with live.change() as change:
            change.add_passages([{"id": "a", "text": "one"}], vectors=VECTORS[:1])
        assert live.refresh().num_passages == 1


def test_edges_without_stating_passages_stay_unknown():
    given = tables(STRINGS)
    untold = given["edges"][1].drop_columns(["passage"])
    index = Index.build(ArrowSource(**{**given, "edges": [given["edges"][0], untold]}))
    with refused(InputError, "missing", "allow"):
        index.part(np.array([True, False, False, False]))


@pytest.mark.parametrize(
    ("table", "change", "error"),
    [
        ("passages", {"id": ["a", "b", "a", "d"]}, ("duplicate", "id", {"given": "a", "place": "passages row 2"})),
        ("passages", {"id": ["a", None, "c", "d"]}, ("missing", "id", {"place": "passages row 1"})),
        ("passages", {"text": ["a", "b", None, "d"]}, ("missing", "text", {"place": "passages row 2 (id 'c')"})),
        ("passages", {"text": [1, 2, 3, 4]}, ("type", "text", {"given": 1, "place": "passages row 0 (id 'a')"})),
        ("passages", {"body": ["", "", "", ""]}, ("unknown", "body", {"given": "body", "place": "passages"})),
        (
            "passages",
            {"vector": [[1.0], [2.0], [3.0, 4.0], [5.0]]},
            ("shape", "vector", {"given": 2, "place": "passages row 2 (id 'c')"}),
        ),
        (
            "passages",
            {"vector": [[1.0], [2.0], None, [5.0]]},
            ("missing", "vector", {"place": "passages row 2 (id 'c')"}),
        ),
        (
            "passages",
            {"vector": [[1.0], [None], [1.0], [5.0]]},
            ("type", "vector", {"column": "vector", "given": "a list with a null", "place": "passages row 1 (id 'b')"}),
        ),
        (
            "passages",
            {"vector": [[1.0], [float("nan")], [1.0], [1.0]]},
            ("finite", "vector", {"place": "passages row 1 (id 'b')"}),
        ),
        ("passages", {"vector": ["x", "y", "z", "w"]}, ("type", "vector", {"column": "vector", "place": "passages"})),
        (
            "passages",
            {"metadata": [{"a": 1}, {"a": 1}, "x", {}]},
            ("syntax", "metadata", {"given": "x", "place": "passages row 2 (id 'c')"}),
        ),
        ("entities", {"name": ["x", "y", "x"]}, ("duplicate", "name", {"given": "x", "place": "entities row 2"})),
        (
            "entities",
            {"aliases": [None, "x", None]},
            ("type", "aliases", {"given": "x", "place": "entities row 0 (name 'Ada Lovelace')"}),
        ),
        ("edges", {"src_passage": ["a", "z", "c"]}, ("unknown", "src_passage", {"given": "z", "place": "edges row 1"})),
        ("edges", {"src_passage": [1, 2, 3]}, ("type", "src_passage", {"given": 1, "place": "edges row 0"})),
        (
            "edges",
            {"dst_entity": [NAMES[0], "Byron", NAMES[1]]},
            ("unknown", "dst_entity", {"given": "Byron", "place": "edges row 1"}),
        ),
        (
            "edges",
            {"dst_entity": [None, NAMES[0], NAMES[1]]},
            ("missing", "dst_entity", {"given": "none", "place": "edges row 0"}),
        ),
        (
            "edges",
            {"src_entity": [NAMES[0], None, None]},
            ("conflict", "src_passage", {"given": "both", "place": "edges row 0"}),
        ),
        ("edges", {"weight": [1.0, -1.0, 1.0]}, ("range", "weight", {"given": -1.0, "place": "edges row 1"})),
        ("edges", {"colour": ["a", "b", "c"]}, ("unknown", "colour", {"given": "colour", "place": "edges"})),
        ("facts", {"tail": [NAMES[1], "Byron"]}, ("unknown", "tail", {"given": "Byron", "place": "facts row 1"})),
        ("facts", {"passage": ["a", None]}, ("missing", "passage", {"place": "facts row 1"})),
        ("facts", {"passage": ["a", "z"]}, ("unknown", "passage", {"given": "z", "place": "facts row 1"})),
    ],
)
def test_a_bad_row_is_named(table, change, error):
    given = tables(STRINGS)
    own = given[table][0] if table == "edges" else given[table]
    ((name, values),) = change.items()
    try:
        column = pa.array(values)
    except pa.ArrowInvalid:
        column = pa.array([str(value) if isinstance(value, dict) else value for value in values])
    if name == "metadata":
        column = pa.array(['{"a": 1}', "{}", "x", "{}"])
    if name == "aliases":
        column = pa.array(["x", "x", "x"]).slice(0, 3)
    at = own.schema.get_field_index(name)
    own = own.append_column(name, column) if at < 0 else own.set_column(at, name, column)
    with refused(InputError, *error):
        Index.build(ArrowSource(**{**given, table: own}))


def test_a_row_is_named_by_its_place_in_the_whole():
    given = tables(STRINGS)["passages"].drop_columns(["metadata"])
    short = pa.table(
        {"id": ["x"], "title": [""], "text": ["y"], "vector": pa.array([[1.0, 2.0]], pa.list_(pa.float32()))}
    )
    wide = given.set_column(3, "vector", given["vector"].cast(pa.list_(pa.float32())))
    with refused(InputError, "shape", "vector", column="vector", given=2):
        Index.build(ArrowSource(passages=[wide, short]))
    bare = pa.table({"id": ["x"], "text": ["y"]})
    with refused(InputError, "conflict", "vector"):
        Index.build(ArrowSource(passages=[given, bare]))
    numbered = pa.table({"id": [1], "text": ["y"], "vector": wide["vector"].slice(0, 1)})
    with refused(InputError, "type", "id", given=1):
        Index.build(ArrowSource(passages=[wide, numbered]))


def test_a_source_excludes_other_inputs():
    source = ArrowSource(passages=tables(STRINGS)["passages"])
    with refused(InputError, "conflict", "vectors"):
        Index.build(source, vectors=VECTORS)
    with refused(InputError, "conflict", "fact_ends"):
        Index.build(source, fact_ends="node")
    with refused(InputError, "missing", "passages"):
        Index.build()
    with refused(InputError, "unused", "scratch"):
        Index.build(passages=[], scratch="here")
    with refused(InputError, "missing", "passages"):
        Index.build(ArrowSource(passages=None))
    with refused(InputError, "missing", "passages"):
        Index.build(ArrowSource(passages=[]))
    with refused(InputError, "type", "entities", given="int"):
        ArrowSource(passages=[], entities=3)


def test_a_full_disk_leaves_the_old_index(tmp_path):
    index = tmp_path / "index"
    Index.build(passages=[{"text": "old"}]).save(index)
    whole = ArrowSource(passages=pa.table({"id": range(2000), "text": ["text"] * 2000, "vector": [[1.0] * 64] * 2000}))
    _, hard = limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 17, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            Index.build(whole, scratch=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    assert list(Index.open(index).texts) == ["old"]


@pytest.fixture
def folder(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    made = tmp_path / "store"
    made.mkdir()
    given = tables(STRINGS)
    edges = [table for table in given["edges"] if "src_entity" in table.schema.names]
    for name, table in {**given, "edges": edges[0]}.items():
        parquet.write_table(table, made / f"{name}.parquet", row_group_size=2)
    return made


def test_a_folder_of_parquet_files_is_a_source(folder, tmp_path):
    assert is_place(str(folder))
    given = tables(STRINGS)
    wanted = Index.build(ArrowSource(**{**given, "edges": given["edges"][1]}))
    made = Index.build(open_source(str(folder)))
    assert saved_bytes(made, tmp_path / "made") == saved_bytes(wanted, tmp_path / "wanted")
    for name in ("entities", "edges", "facts"):
        (folder / f"{name}.parquet").unlink()
    assert Index.build(ParquetSource(folder)).graph is None
    (folder / "passages.parquet").unlink()
    with refused(InputError, "missing", "folder"):
        ParquetSource(folder)
    with refused(InputError, "unused", "passages"):
        open_source(str(folder), {"passages": ["SELECT 1"]})
    with refused(InputError, "unknown", "place"):
        open_source(str(folder / "absent"))


STORE = """
from hopfuse.stores import ParquetSource

def open_notes(place, queries):
    assert not queries
    return ParquetSource(place.partition(":")[2])
"""


def test_a_store_may_live_in_another_package(folder, tmp_path, monkeypatch):
    package = tmp_path / "site"
    (package / "notes_store-1.dist-info").mkdir(parents=True)
    (package / "notes_store.py").write_text(STORE)
    (package / "notes_store-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: notes-store\nVersion: 1\n"
    )
    (package / "notes_store-1.dist-info" / "entry_points.txt").write_text(
        "[hopfuse.stores]\nnotes = notes_store:open_notes\n"
    )
    assert not is_place(f"notes:{folder}")
    monkeypatch.syspath_prepend(str(package))
    assert is_place(f"notes:{folder}")
    made = Index.build(open_source(f"notes:{folder}"))
    wanted = Index.build(open_source(str(folder)))
    assert saved_bytes(made, tmp_path / "made") == saved_bytes(wanted, tmp_path / "wanted")
    with refused(InputError, "unknown", "place") as caught:
        open_source("absent:x")
    assert {"notes:", "sqlite:", "postgresql:"} <= set(caught.value.values["allowed"].split(", "))


def test_the_program_builds_from_a_folder(folder, tmp_path):
    hopfuse("build", "--from", folder, "--lexical", "--out", tmp_path / "index", "--metadata-type", "year=float64")
    index = Index.open(tmp_path / "index", verify="full")
    assert list(index.passage_ids) == STRINGS
    assert index.lexical is not None
    assert index.metadata.types["year"] == "float64"
    other = ("--out", tmp_path / "other")
    assert refused_command("build", "--from", folder, "--vectors", "x.npy", *other) == about("conflict", "vectors")
    assert refused_command("build", "--from", folder, "--encoder", "wordllama:64", *other) == about("unused", "encoder")
    assert not (tmp_path / "other").exists()
