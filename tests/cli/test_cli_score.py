import fcntl
import os
import sys
from types import ModuleType

import numpy as np
import processes
import pytest
from cli.cli_files import (
    AS_DATA,
    DIM,
    ENTITIES,
    QUERIES,
    about,
    build_args,
    hopfuse,
    killed,
    read_jsonl,
    refused,
    said_error,
    write_jsonl,
)
from hopfuse import Index
from hopfuse.encoders import SentenceTransformerEncoder
from hopfuse.errors import InputError
from hopfuse.io import Query, count_queries, read_queries
from hopfuse.recipes import PhaseGraph
from refusals import refused as raises_refusal


def test_score_is_what_the_recipe_finds(scoring, index, files, tmp_path):
    hopfuse(
        *scoring, "--out", tmp_path / "out.jsonl", "--k", 3, "--chunk", 7, "--recipe", "phase-graph", "--alpha", 0.4
    )
    opened = Index.open(index)
    named = [[ENTITIES[i % 6], ENTITIES[i % 5]] for i in range(QUERIES)]
    found = PhaseGraph(opened, alpha=0.4).search(vectors=np.load(files / "query_vectors.npy"), entities=named, k=3)
    expected = [
        {"id": f"q{i}", "hits": [{"id": opened.passage_ids[p], "score": s} for p, s in found.hits.row(i)]}
        for i in range(QUERIES)
    ]
    assert read_jsonl(tmp_path / "out.jsonl") == expected
    assert list(tmp_path.iterdir()) == [tmp_path / "out.jsonl"]


def test_the_result_does_not_depend_on_chunks_or_threads(scoring, tmp_path):
    hopfuse(*scoring, "--out", tmp_path / "a.jsonl", "--chunk", 300, "--threads", 1)
    hopfuse(*scoring, "--out", tmp_path / "b.jsonl", "--chunk", 41, "--threads", 2)
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_parquet_in_and_out(scoring, index, files, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = read_jsonl(files / "queries.jsonl")
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "queries.parquet", row_group_size=17)
    hopfuse(*scoring, "--out", tmp_path / "a.jsonl", "--chunk", 40)
    from_parquet = [tmp_path / "queries.parquet" if arg == files / "queries.jsonl" else arg for arg in scoring]
    hopfuse(*from_parquet, "--out", tmp_path / "b.parquet", "--part-rows", 40)
    expected = read_jsonl(tmp_path / "a.jsonl")
    result = parquet.ParquetFile(tmp_path / "b.parquet")
    assert result.read().to_pylist() == expected
    assert result.num_row_groups == 8
    assert list(read_queries(tmp_path / "queries.parquet")) == list(read_queries(files / "queries.jsonl"))
    assert count_queries(tmp_path / "queries.parquet") == count_queries(files / "queries.jsonl") == QUERIES


def test_ids_that_are_integers_stay_integers(files, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{**row, "id": 70 - at} for at, row in enumerate(read_jsonl(files / "passages.jsonl"))]
    write_jsonl(tmp_path / "passages.jsonl", rows)
    options = ("--edges", files / "edges.tsv", "--entities", files / "entities.tsv", "--vectors", files / "vectors.npy")
    hopfuse("build", tmp_path / "passages.jsonl", *options, "--out", tmp_path / "index")
    asked = ("--queries", files / "queries.jsonl", "--vectors", files / "query_vectors.npy")
    for name in ("a.jsonl", "a.parquet"):
        hopfuse("score", tmp_path / "index", *asked, "--k", 3, "--out", tmp_path / name)
    expected = read_jsonl(tmp_path / "a.jsonl")
    assert {hit["id"] for row in expected for hit in row["hits"]} <= {row["id"] for row in rows}
    assert parquet.read_table(tmp_path / "a.parquet").to_pylist() == expected


@pytest.fixture
def asked(monkeypatch):
    """The texts that ``--encoder sentence-transformers:FOLDER`` is asked to encode; its model counts letters."""
    texts = []

    class Model:
        def __init__(self, folder, **options):
            pass

        def get_embedding_dimension(self):
            return DIM

        def encode(self, given, prompt=None, **options):
            texts.extend(given)
            return np.array([[1 + text.count(letter) for letter in "aeionlst"] for text in given], np.float32)

    package = ModuleType("sentence_transformers")
    package.SentenceTransformer = Model
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    return texts


def test_an_encoder_reads_names_as_the_index_writes_them(asked, index, output_of, tmp_path):
    texts = ["what flows through london?", "Nothing of london?"]
    queries = write_jsonl(tmp_path / "queries.jsonl", [{"text": text} for text in texts])
    encoder = f"sentence-transformers:{tmp_path}"
    given = ("score", index, "--queries", queries, "--workers", 1)
    output_of(*given, "--encoder", encoder, "--out", tmp_path / "out.jsonl")
    read = ["What flows through London?", "Nothing of london?"]
    assert asked == [*read, "What flows through  ?", "Nothing of  ?"], "the words beside the names steer"
    np.save(tmp_path / "vectors.npy", SentenceTransformerEncoder(str(tmp_path)).encode_queries(read))
    vectors = ("--vectors", tmp_path / "vectors.npy", "--encoder", encoder)
    output_of(*given, *vectors, "--out", tmp_path / "same.jsonl")
    assert read_jsonl(tmp_path / "out.jsonl") == read_jsonl(tmp_path / "same.jsonl")


def test_entities_come_by_name_alias_number_or_from_the_text(index, files, tmp_path):
    rows = [
        {"id": "name", "entities": ["London"]},
        {"id": "alias", "entities": ["londinium"]},
        {"id": "number", "entities": [3]},
        {"id": "text", "question": "What flows through LONDON?"},
        {"id": "none", "text": "What of nothing?"},
        {"id": "empty", "text": "What of London?", "entities": []},
    ]
    write_jsonl(tmp_path / "queries.jsonl", rows)
    np.save(tmp_path / "vectors.npy", np.repeat(np.load(files / "query_vectors.npy")[:1], len(rows), axis=0))
    inputs = [index, "--queries", tmp_path / "queries.jsonl", "--vectors", tmp_path / "vectors.npy"]
    inputs += ["--recipe", "phase-graph"]
    hopfuse("score", *inputs, "--out", tmp_path / "out.jsonl")
    hits = {row["id"]: row["hits"] for row in read_jsonl(tmp_path / "out.jsonl")}
    assert hits["name"] == hits["alias"] == hits["number"] == hits["text"]
    assert hits["none"] == hits["empty"] != hits["name"]
    hopfuse("score", *inputs, "--out", tmp_path / "cased.jsonl", "--case-sensitive")
    cased = {row["id"]: row["hits"] for row in read_jsonl(tmp_path / "cased.jsonl")}
    assert cased["text"] == hits["none"]


def test_an_encoder_reads_the_texts(files, tmp_path):
    pytest.importorskip("wordllama")
    build = ["build", files / "passages.jsonl", "--edges", files / "edges.tsv"]
    hopfuse(*build, "--entities", files / "entities.tsv", "--encoder", "wordllama:64", "--out", tmp_path / "index")
    asked = {"text": "Who thought about machines?"}
    write_jsonl(tmp_path / "queries.jsonl", [asked, {"id": None, "_id": "as BEIR names it", **asked}])
    inputs = [tmp_path / "index", "--queries", tmp_path / "queries.jsonl", "--encoder", "wordllama:64"]
    hopfuse("score", *inputs, "--out", tmp_path / "out.jsonl")
    rows = read_jsonl(tmp_path / "out.jsonl")
    assert [row["id"] for row in rows] == ["0", "as BEIR names it"]
    assert [row["hits"][0]["id"] for row in rows] == ["p5", "p5"]


def test_no_queries_give_an_empty_result(index, tmp_path):
    write_jsonl(tmp_path / "queries.jsonl", [])
    np.save(tmp_path / "vectors.npy", np.zeros((0, 8), np.float32))
    inputs = [index, "--queries", tmp_path / "queries.jsonl", "--vectors", tmp_path / "vectors.npy"]
    said = hopfuse("score", *inputs, "--out", tmp_path / "out.jsonl").stderr
    assert said.startswith(f"{tmp_path / 'queries.jsonl'} has no queries, so the result has no rows\nScoring 0 queries")
    assert (tmp_path / "out.jsonl").read_bytes() == b""


PART = 30  # ten parts: the calls of os.replace are the stamps, the plan, the parts and the result


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_run_killed_at_any_moment_goes_on_without_losing_or_repeating_a_query(scoring, tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    args = [*scoring, "--part-rows", PART, "--threads", 1]
    whole, out, partial = (tmp_path / f"{name}" for name in (f"a.{suffix}", f"b.{suffix}", f"b.{suffix}.partial"))
    hopfuse(*args, "--out", whole)
    for calls_of_replace, parts in ((1, 0), (2, 0), (5, 2), (3, 4), (7, 10)):
        killed(("os", "replace", calls_of_replace), *args, "--out", out)
        assert not out.exists()
        assert len(list(partial.glob(f"parts/part-*.{suffix}"))) == parts
    done = hopfuse(*args, "--out", out)
    assert f"Resuming after {QUERIES} of {QUERIES} queries" in done.stderr
    assert out.read_bytes() == whole.read_bytes()
    assert not partial.exists()


def test_finished_parts_are_not_made_again(scoring, tmp_path):
    out = tmp_path / "out.jsonl"
    args = [*scoring, "--part-rows", PART, "--out", out]
    killed(("os", "replace", 7), *args)
    parts = tmp_path / "out.jsonl.partial" / "parts"
    before = {path.name: path.stat().st_mtime_ns for path in parts.iterdir()}
    killed(("os", "replace", 7), *args)
    assert {name: parts.joinpath(name).stat().st_mtime_ns for name in before} == before
    assert "Resuming after 300 of 300 queries" in hopfuse(*args).stderr
    assert [row["id"] for row in read_jsonl(out)] == [f"q{i}" for i in range(QUERIES)]


def test_a_part_that_was_changed_is_not_joined(scoring, tmp_path):
    out = tmp_path / "out.jsonl"
    args = [*scoring, "--part-rows", PART, "--out", out]
    killed(("os", "replace", 7), *args)
    first = tmp_path / "out.jsonl.partial" / "parts" / "part-000000.jsonl"
    first.write_text(first.read_text(encoding="utf-8").replace('"q0"', '"q1"'), encoding="utf-8")
    assert refused(*args) == about("damaged")
    assert not out.exists()
    first.unlink()
    assert "Resuming after 270 of 300 queries" in hopfuse(*args).stderr


def test_a_kill_after_the_result_is_there(scoring, tmp_path):
    out = tmp_path / "out.jsonl"
    for number in (2, 3, 4):  # the plan, the stamps and the first part are removed, in this order or another
        killed(("os", "unlink", number), *scoring, "--part-rows", PART, "--out", out, "--overwrite")
        whole = out.read_bytes()
        assert len(read_jsonl(out)) == QUERIES
        hopfuse(*scoring, "--part-rows", PART, "--out", out, "--overwrite")
        assert out.read_bytes() == whole
        assert list(tmp_path.iterdir()) == [out]


def test_an_unfinished_run_with_other_options_is_not_taken_up(scoring, tmp_path):
    out = tmp_path / "out.jsonl"
    killed(("os", "replace", 3), *scoring, "--part-rows", PART, "--recipe", "phase-graph", "--out", out)
    line = refused(*scoring, "--part-rows", PART, "--recipe", "phase-graph", "--alpha", 0.1, "--out", out)
    assert line == about("exists", "out", names="alpha")
    hopfuse(*scoring, "--part-rows", PART, "--recipe", "phase-graph", "--alpha", 0.1, "--out", out, "--restart")
    hopfuse(*scoring, "--recipe", "phase-graph", "--alpha", 0.1, "--out", tmp_path / "whole.jsonl")
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_two_runs_do_not_write_one_result(scoring, tmp_path):
    out = tmp_path / "out.jsonl"
    (tmp_path / "out.jsonl.partial").mkdir()
    with open(tmp_path / "out.jsonl.partial" / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert refused(*scoring, "--out", out) == about("busy", "folder")
    hopfuse(*scoring, "--out", out)
    assert len(read_jsonl(out)) == QUERIES


def test_a_result_is_not_overwritten_unasked(scoring, tmp_path):
    out = tmp_path / "out.jsonl"
    out.write_text("mine\n", encoding="utf-8")
    assert refused(*scoring, "--out", out) == about("exists", "out")
    assert out.read_text(encoding="utf-8") == "mine\n"
    hopfuse(*scoring, "--out", out, "--overwrite")
    assert len(read_jsonl(out)) == QUERIES


def test_an_input_file_is_not_overwritten(memory, refused_here, tmp_path):
    copies = {name: tmp_path / f"{name}.jsonl" for name in ("queries", "vectors", "policy", "importance")}
    copies["queries"].write_bytes((memory / "queries.jsonl").read_bytes())
    copies["vectors"].write_bytes((memory / "vectors.npy").read_bytes())
    copies["policy"].write_text("version = 1\n", encoding="utf-8")
    with open(copies["importance"], "wb") as file:
        np.save(file, np.ones(3))
    before = {path: path.read_bytes() for path in copies.values()}
    asked = ["score", memory / "index", "--queries", copies["queries"], "--vectors", copies["vectors"]]
    more = {
        "policy": ("--recipe", "policy-rag", "--policy", copies["policy"]),
        "importance": ("--recipe", "hybrid-rrf", "--option", f"importance={copies['importance']}"),
    }
    for name, path in copies.items():
        other = "option importance" if name == "importance" else name
        refusal = refused_here(*asked, *more.get(name, ()), "--out", path, "--overwrite")
        assert refusal == about("conflict", "out", other=other, file=path)
    assert {path: path.read_bytes() for path in before} == before
    assert sorted(tmp_path.iterdir()) == sorted(before), "no parts were begun"


def test_a_malformed_query_is_named_before_anything_is_made(index, files, tmp_path):
    text = (files / "queries.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    text[200] = '{"id": "broken"\n'
    (tmp_path / "queries.jsonl").write_text("".join(text), encoding="utf-8")
    inputs = [index, "--queries", tmp_path / "queries.jsonl", "--vectors", files / "query_vectors.npy"]
    line = refused("score", *inputs, "--out", tmp_path / "out.jsonl", "--chunk", 50)
    assert line == about("syntax", place="line 201")
    assert not (tmp_path / "out.jsonl").exists()
    assert not (tmp_path / "out.jsonl.partial").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--index": "nowhere"}, about("missing", "directory")),
        ({"--queries": "nowhere.jsonl"}, about("missing")),
        ({"--queries": "queries.csv"}, about("choice", "queries")),
        ({"--vectors": "vectors.npy"}, about("length", "vectors")),
        ({"--vectors": "queries.jsonl"}, about("syntax", "vectors")),
        ({"--out": "out.csv"}, about("choice", "out")),
        ({"--recipe": "phase-graph", "--alpha": "2"}, about("range", "alpha", given=2.0)),
        ({"--dense-k": "0"}, about("range", "dense_k", given=0)),
    ],
)
def test_bad_queries_are_refused(refused_here, index, files, tmp_path, change, message):
    options = {
        "--index": index,
        "--queries": files / "queries.jsonl",
        "--vectors": files / "query_vectors.npy",
        "--out": tmp_path / "out.jsonl",
    }
    options |= {name: files / value if "." in value or value == "nowhere" else value for name, value in change.items()}
    if options["--out"].name == "out.csv":
        options["--out"] = tmp_path / "out.csv"
    directory = options.pop("--index")
    assert refused_here("score", directory, *(x for option in options.items() for x in option)) == message
    assert not options["--out"].exists()


def test_queries_are_read_one_at_a_time(tmp_path):
    path = tmp_path / "queries.jsonl"
    path.write_text('{"id": 7, "text": "a", "entities": ["x", 2]}\nbroken\n', encoding="utf-8")
    rows = read_queries(path)
    assert next(rows) == Query("7", "a", ["x", 2])
    with raises_refusal(InputError, "syntax") as caught:
        next(rows)
    assert caught.value.places == (f"{path}, line 2",)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", about("type", "queries", given="list")),
        ('{"id": 1.5}', about("type", "id", given=1.5)),
        ('{"id": true}', about("type", "id", given=True)),
        ('{"text": 3}', about("type", "text", given=3)),
        ('{"entities": "Ada"}', about("type", "entities", given="Ada")),
        ('{"entities": [["Ada", "PERSON"]]}', about("type", "entities", given=[["Ada", "PERSON"]])),
        ('{"vector": "1"}', about("type", "vector", given="1")),
        ('{"vector": [1, 1e39]}', about("finite", "vector", given=[1, 1e39])),
        (f'{{"vector": [1{"0" * 400}]}}', about("finite", "vector")),
        ("{", about("syntax")),
    ],
)
def test_a_malformed_query_is_named(index, refused_here, tmp_path, line, message):
    path = tmp_path / "queries.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    refusal = refused_here("score", index, "--queries", path, "--out", tmp_path / "out.jsonl")
    assert refusal == message
    assert refusal.places == [f"{path}, line 1"]


def test_a_query_without_text_needs_its_entities(refused_here, index, files, tmp_path):
    write_jsonl(tmp_path / "queries.jsonl", [{"id": "bare"}])
    np.save(tmp_path / "vectors.npy", np.load(files / "query_vectors.npy")[:1])
    inputs = [index, "--queries", tmp_path / "queries.jsonl", "--vectors", tmp_path / "vectors.npy"]
    refusal = refused_here("score", *inputs, "--out", tmp_path / "out.jsonl")
    assert refusal == about("missing", "entities", place="queries.jsonl, line 1")


@pytest.mark.parametrize("recipe", ["policy-rag", "hybrid-rrf", "triple-hybrid"])
def test_where_words_are_read_a_text_alone_will_do(memory, refused_here, tmp_path, recipe):
    write_jsonl(tmp_path / "queries.jsonl", [{"id": "bare", "entities": ["Alien"]}])
    np.save(tmp_path / "vectors.npy", np.load(memory / "vectors.npy")[:1])
    given = ["--queries", tmp_path / "queries.jsonl", "--vectors", tmp_path / "vectors.npy", "--recipe", recipe]
    line = refused_here("score", memory / "index", *given, "--out", tmp_path / "out.jsonl")
    assert line == about("missing", "text", place="queries.jsonl, line 1")


def test_a_file_that_cannot_grow_leaves_no_result(scoring, tmp_path):
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000)); "
        "from hopfuse.cli import main; main(sys.argv[1:])"
    )
    args = [*scoring, "--out", tmp_path / "out.jsonl"]
    command = [sys.executable, "-c", program, *map(str, args)]
    done = processes.run(command, capture_output=True, text=True, check=False, env=os.environ | AS_DATA)
    refusal = said_error(done)
    assert (refusal.kind, refusal.code) == ("OSError", "failed")
    assert not (tmp_path / "out.jsonl").exists()


def test_a_planted_link_is_not_followed(scoring, output_of, tmp_path):
    victim, out = tmp_path / "victim", tmp_path / "out.jsonl"
    victim.write_text("mine", encoding="utf-8")
    (tmp_path / "out.jsonl.unfinished").symlink_to(victim)
    output_of(*scoring, "--out", out)
    assert victim.read_text(encoding="utf-8") == "mine"
    assert not out.is_symlink()


def test_k_may_exceed_the_number_of_passages(scoring, output_of, tmp_path):
    output_of(*scoring, "--out", tmp_path / "out.jsonl", "--k", 10**8)
    assert max(len(row["hits"]) for row in read_jsonl(tmp_path / "out.jsonl")) == 6


def test_vectors_of_a_file_with_an_encoder_for_names(files, output_of, tmp_path):
    """Passages by a file's vectors; a name that the index lacks is mapped to the nearest entity."""
    pytest.importorskip("wordllama")
    from hopfuse.encoders import WordLlamaEncoder

    output_of(*build_args(files), "--encoder", "wordllama:64", "--out", tmp_path / "index")
    write_jsonl(tmp_path / "queries.jsonl", [{"id": "q", "entities": ["the Londons"]}])
    np.save(tmp_path / "vectors.npy", np.load(files / "query_vectors.npy")[:1])
    inputs = [tmp_path / "index", "--queries", tmp_path / "queries.jsonl", "--vectors", tmp_path / "vectors.npy"]
    more = ["--encoder", "wordllama:64", "--option", "entity_threshold=0.3", "--out", tmp_path / "out.jsonl"]
    output_of("score", *inputs, "--recipe", "phase-graph", *more)
    recipe = PhaseGraph(Index.open(tmp_path / "index"), encoder=WordLlamaEncoder(64), entity_threshold=0.3)
    found = recipe.search(vectors=np.load(tmp_path / "vectors.npy"), entities=[["the Londons"]], k=10)
    assert found.lists["graph"].counts[0] > 0
    (row,) = read_jsonl(tmp_path / "out.jsonl")
    assert row["hits"] == [{"id": hit.id, "score": hit.score} for hit in found[0]]
