"""``hopfuse score`` in stages, with several processes, from and to pipes, and to files for other programs."""

from __future__ import annotations

import io
import json
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import processes
import pytest
from cli.cli_files import QUERIES, about, command, hopfuse, read_jsonl, refused, write_jsonl
from hopfuse import Index
from hopfuse.io import read_run_file
from hopfuse.recipes import PhaseGraph

OPTIONS = ("--k", 3, "--part-rows", 40)


@pytest.fixture(scope="module")
def expected(files, index, tmp_path_factory):
    """The bytes that ``hopfuse score`` writes in a single call."""
    out = tmp_path_factory.mktemp("whole") / "out.jsonl"
    given = ["--queries", files / "queries.jsonl", "--vectors", files / "query_vectors.npy"]
    hopfuse("score", index, *given, *OPTIONS, "--out", out)
    return out.read_bytes()


@pytest.fixture
def folder(scoring, tmp_path, output_of):
    output_of("score", "plan", *scoring[1:], *OPTIONS, "--out", tmp_path / "run")
    return tmp_path / "run"


def test_stages_give_what_one_run_gives(folder, expected, output_of, refused_here, tmp_path, capsys) -> None:
    assert refused_here("score", "merge", folder, "--out", tmp_path / "out.jsonl") == about(
        "missing", "folder", count=0, parts=8, part=0
    )
    for shard in ("2/2", "1/2"):
        output_of("score", "run", folder, "--shard", shard, "--threads", 1, "--chunk", 13)
    output_of("score", "verify", folder, "--sample", 2)
    output_of("score", "merge", folder, "--out", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == expected
    assert refused_here("score", "merge", folder, "--out", tmp_path / "out.jsonl") == about("exists", "out")
    assert refused_here("score", "run", folder, "--shard", "x") == about("syntax", "shard")
    assert refused_here("score", "run", folder, "--shard", "3/2") == about("range", "shard", given="3/2")


def test_the_lines_of_the_stages(folder, tmp_path) -> None:
    run = hopfuse("score", "run", folder, "--threads", 1).stderr
    assert "Made 8 parts of 300 queries in" in run
    assert "/s" in run
    assert "a second)" in run
    assert "Made 0 parts of 0 queries in" in hopfuse("score", "run", folder).stderr
    verified = hopfuse("score", "verify", folder, "--sample", 8).stderr
    assert "is complete, with 8 parts; parts 0, 1, 2, 3, 4, 5, 6, 7 were made again, with equal bytes" in verified
    assert "Merged 8 parts of 300 queries" in hopfuse("score", "merge", folder, "--out", tmp_path / "a.jsonl").stderr
    help = hopfuse("score", "--help").stdout
    assert all(f"\n  {stage} " in help for stage in ("plan", "run", "merge", "verify"))


def test_two_workers_over_the_real_index(scoring, expected, tmp_path) -> None:
    done = hopfuse(*scoring, *OPTIONS, "--workers", 2, "--verify", 1, "--out", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == expected
    assert "Scored 300 queries into" in done.stderr
    assert "MB of memory in a process" in done.stderr
    assert refused(*scoring, "--workers", 2, "--threads", 2, "--out", tmp_path / "b.jsonl") == about(
        "conflict", "threads"
    )


def test_runs_that_other_programs_read(folder, expected, output_of, tmp_path) -> None:
    output_of("score", "run", folder)
    for name in ("out.trec", "out.json", "out.jsonl"):
        output_of(
            "score", "merge", folder, "--out", tmp_path / name, *(["--tag", "mine"] if name == "out.trec" else [])
        )
    whole = read_run_file(tmp_path / "out.jsonl")
    assert len(whole.queries) == QUERIES
    assert read_run_file(tmp_path / "out.trec") == read_run_file(tmp_path / "out.json") == whole
    first = json.loads(expected.splitlines()[0])
    assert json.loads((tmp_path / "out.json").read_text())["q0"] == {h["id"]: h["score"] for h in first["hits"]}
    assert (tmp_path / "out.trec").read_text().startswith(f"q0 Q0 {first['hits'][0]['id']} 1 ")


def test_ranx_reads_the_json(folder, output_of, tmp_path) -> None:
    ranx = pytest.importorskip("ranx")
    output_of("score", "run", folder)
    output_of("score", "merge", folder, "--out", tmp_path / "out.json")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the file stays open
        read = ranx.Run.from_file(str(tmp_path / "out.json"), kind="json").to_dict()
    assert read == json.loads((tmp_path / "out.json").read_text())


def test_from_a_pipe_to_a_pipe(files, index, expected) -> None:
    given = ["score", index, "--queries", "-", "--vectors", files / "query_vectors.npy", *OPTIONS, "--out", "-"]
    with open(files / "queries.jsonl", "rb") as asked:
        done = processes.run(command(*given), stdin=asked, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, expected), done.stderr


def test_a_plan_keeps_what_standard_input_gave(files, index, expected, output_of, tmp_path, monkeypatch) -> None:
    given = ["--queries", "-", "--vectors", files / "query_vectors.npy", *OPTIONS, "--out", tmp_path / "run"]
    for _ in range(2):  # the second time, the same plan exists
        asked = SimpleNamespace(buffer=io.BytesIO((files / "queries.jsonl").read_bytes()))
        monkeypatch.setattr(sys, "stdin", asked)
        output_of("score", "plan", index, *given)
    output_of("score", "run", tmp_path / "run")
    output_of("score", "merge", tmp_path / "run", "--out", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == expected


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_titles_texts_and_the_scores_of_the_legs(scoring, index, files, output_of, tmp_path, suffix) -> None:
    out = tmp_path / f"out.{suffix}"
    extras = [x for name in ("legs", "title", "text") for x in ("--with", name)]
    output_of(*scoring, "--recipe", "phase-graph", "--k", 4, *extras, "--out", out)
    rows = read_jsonl(out) if suffix == "jsonl" else pytest.importorskip("pyarrow.parquet").read_table(out).to_pylist()
    opened = Index.open(index)
    asked = read_jsonl(files / "queries.jsonl")
    found = PhaseGraph(opened).search(
        [row["text"] for row in asked],
        vectors=np.load(files / "query_vectors.npy"),
        entities=[[name for name in opened.entity_names if name in row["text"]] for row in asked],
        k=4,
    )
    lists = {leg: [dict(hits.row(b)) for b in range(QUERIES)] for leg, hits in found.lists.items()}
    seen = 0
    for b, row in enumerate(rows):
        for hit, own in zip(row["hits"], found[b], strict=True):
            legs = {leg: scores[b].get(own.row) for leg, scores in lists.items()}
            assert hit == {"id": own.id, "score": own.score, "title": own.title, "text": own.text, "legs": legs}
            seen += legs["graph"] is not None
    assert seen > QUERIES


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_metadata_of_the_hits(scoring, output_of, refused_here, tmp_path, suffix) -> None:
    rows = [
        {"id": 1, "text": "one", "metadata": {"year": 2019, "tags": ["a"], "day": "2024-05-01T00:00:00Z", "ok": True}},
        {"id": 2, "text": "two", "metadata": {}},
    ]
    kinds = {"year": "int64", "tags": "strings", "day": "timestamp", "ok": "bool"}
    vectors = np.ones((2, 8), np.float32)
    Index.build(passages=rows, vectors=vectors, metadata_types=kinds).save(tmp_path / "index")
    out = tmp_path / f"out.{suffix}"
    given = ["score", tmp_path / "index", *scoring[2:], "--recipe", "hybrid-rrf", "--words", "none"]
    output_of(*given, "--with", "metadata", "--out", out)
    read = read_jsonl(out) if suffix == "jsonl" else pytest.importorskip("pyarrow.parquet").read_table(out).to_pylist()
    found = {hit["id"]: hit["metadata"] for hit in read[0]["hits"]}
    assert found[1] == {"year": 2019, "tags": ["a"], "day": "2024-05-01T00:00:00+00:00", "ok": True}
    assert not any(value is not None for value in found[2].values())
    said_no = refused_here(*scoring, "--with", "metadata", "--out", tmp_path / "b.jsonl")
    assert said_no == about("unused", "with", given="metadata")


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_vectors_in_the_rows(scoring, files, expected, output_of, refused_here, tmp_path, suffix) -> None:
    vectors = np.load(files / "query_vectors.npy")
    rows = [{**row, "vector": vectors[at].tolist()} for at, row in enumerate(read_jsonl(files / "queries.jsonl"))]
    path = write_queries(tmp_path / f"queries.{suffix}", rows)
    given = ["score", scoring[1], "--queries", path, *OPTIONS]
    output_of(*given, "--out", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == expected
    more = ["--vectors", files / "query_vectors.npy", "--out", tmp_path / "b.jsonl"]
    assert refused_here(*given, *more) == about("conflict", "vectors")


def write_queries(path, rows):
    if path.suffix == ".jsonl":
        return write_jsonl(path, rows)
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.Table.from_pylist(rows), path, row_group_size=90)
    return path


BAD = [
    (lambda rows: rows[201].update(vector=[1.0] * 7), about("shape", "vector", given=7)),
    (lambda rows: rows[201].update(vector=[1.0] * 7 + [float("nan")]), about("finite", "vector")),
    (lambda rows: rows[201].update(vector=[0.0] * 8), about("zero", "vector")),
    (lambda rows: rows[201].update(vector=None), about("missing", "encoder")),
    (lambda rows: rows[201].update(id="q7"), about("duplicate", "id", given="q7")),
    (lambda rows: rows[201].update(entities=[6]), about("unknown", "entities[0]", given=6, last=5)),
    (lambda rows: rows[201].update(text=None), about("missing", "entities")),
]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_bad_row_is_named_before_anything_is_made(scoring, files, refused_here, tmp_path, suffix) -> None:
    vectors = np.load(files / "query_vectors.npy")
    where = "line 202" if suffix == "jsonl" else "row 201"
    for number, (spoil, message) in enumerate(BAD):
        rows = [{**row, "vector": vectors[at].tolist()} for at, row in enumerate(read_jsonl(files / "queries.jsonl"))]
        rows = [{**row, "entities": None if row["text"] else []} for row in rows]
        spoil(rows)
        path = write_queries(tmp_path / f"queries{number}.{suffix}", rows)
        line = refused_here("score", scoring[1], "--queries", path, "--out", tmp_path / "out.jsonl")
        assert line == message
        assert line.places == [f"{path}, {where}"]
    assert not list(tmp_path.glob("out*"))


def test_a_bad_row_of_a_file_of_vectors_is_named(scoring, files, refused_here, tmp_path) -> None:
    vectors = np.load(files / "query_vectors.npy")
    vectors[201, 3] = np.inf
    np.save(tmp_path / "vectors.npy", vectors)
    given = ["score", scoring[1], "--queries", files / "queries.jsonl", "--vectors", tmp_path / "vectors.npy"]
    line = refused_here(*given, "--out", tmp_path / "out.jsonl")
    assert line == about("finite", "vectors[201]")
    np.save(tmp_path / "vectors.npy", vectors[:, :5])
    assert refused_here(*given, "--out", tmp_path / "out.jsonl") == about("shape", "vectors[0]", given=5)
    assert not list(tmp_path.glob("out*"))


def test_names_that_a_trec_run_cannot_hold_are_refused_first(scoring, refused_here, tmp_path) -> None:
    write_jsonl(tmp_path / "queries.jsonl", [{"id": "a", "text": "x"}, {"id": "b c", "text": "x"}])
    np.save(tmp_path / "vectors.npy", np.ones((2, 8), np.float32))
    given = ["score", scoring[1], "--queries", tmp_path / "queries.jsonl", "--vectors", tmp_path / "vectors.npy"]
    line = refused_here(*given, "--out", tmp_path / "out.trec")
    assert line == about("unsupported", "id", given="b c", place="line 2")
    assert not list(tmp_path.glob("out*"))


def test_a_plan_for_another_index_is_refused(files, output_of, refused_here, tmp_path) -> None:
    from cli.cli_files import build_args

    output_of(*build_args(files), "--out", tmp_path / "index")
    given = ["--queries", files / "queries.jsonl", "--vectors", files / "query_vectors.npy", *OPTIONS]
    output_of("score", "plan", tmp_path / "index", *given, "--out", tmp_path / "run")
    output_of("score", "run", tmp_path / "run", "--shard", "1/2")
    parts = sorted((tmp_path / "run" / "parts").iterdir())
    output_of(*build_args(files), "--aliases", files / "aliases.jsonl", "--out", tmp_path / "index", "--overwrite")
    line = refused_here("score", "run", tmp_path / "run")
    assert line == about("changed", "index", path=tmp_path / "index")
    assert line.values["was"].startswith("generation 1,")
    assert line.values["now"].startswith("generation 2,")
    assert sorted((tmp_path / "run" / "parts").iterdir()) == parts
    line = refused_here("score", "plan", tmp_path / "index", *given, "--out", tmp_path / "run")
    assert line == about("exists", "out", names="index")


def test_an_index_that_takes_changes_is_read_where_the_plan_was_made(files, output_of, tmp_path, expected) -> None:
    from cli.cli_files import build_args

    output_of(*build_args(files), "--aliases", files / "aliases.jsonl", "--out", tmp_path / "index")
    given = ["--queries", files / "queries.jsonl", "--vectors", files / "query_vectors.npy", *OPTIONS]
    output_of("score", "plan", tmp_path / "index", *given, "--out", tmp_path / "run")
    with Index.open(tmp_path / "index", writable=True) as live, live.change() as change:
        change.delete_passages(["p0"])
    output_of("score", "run", tmp_path / "run")
    output_of("score", "merge", tmp_path / "run", "--out", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == expected


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (["--num-gpus", "1"], about("unused", "num_gpus", other="engine ray")),
        (["--address", "head:6379"], about("unused", "address", other="engine ray")),
        (["--engine", "ray", "--threads", "2"], about("conflict", "threads")),
        (
            ["--engine", "ray", "--address", "head:6379", "--out", "-"],
            about("conflict", "address", other="out -"),
        ),
    ],
)
def test_options_of_an_engine_that_is_not_asked_for(scoring, refused_here, tmp_path, given, line) -> None:
    assert refused_here(*scoring, "--out", tmp_path / "out.jsonl", *given) == line
    assert not list(tmp_path.iterdir())


@pytest.mark.full
def test_a_row_of_another_dimension_late_in_a_large_file(index, refused_here, tmp_path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    vectors = [row.tolist() for row in np.ones((1000, 8), np.float32)]
    rows = vectors * 1000
    rows[900_001] = [1.0] * 9
    table = arrow.table({"text": ["Ada"] * 10**6, "vector": arrow.array(rows, arrow.list_(arrow.float32()))})
    parquet.write_table(table, tmp_path / "queries.parquet")
    line = refused_here("score", index, "--queries", tmp_path / "queries.parquet", "--out", tmp_path / "out.jsonl")
    assert line == about("shape", "vector", place="queries.parquet, row 900001", given=9, allowed=8)
    assert not list(tmp_path.glob("out*"))
