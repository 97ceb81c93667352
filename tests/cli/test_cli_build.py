import json
import re

import numpy as np
import pytest
from cli.cli_files import ALIASES, EDGES, ENTITIES, TEXTS, about, build_args, hopfuse, refused, write_jsonl
from hopfuse import Index
from hopfuse.text import NAME_RULE


def test_build_holds_what_the_files_say(index, files):
    built = Index.open(index, verify="full")
    assert list(built.texts) == TEXTS
    assert list(built.passage_ids) == [f"p{i}" for i in range(len(TEXTS))]
    assert list(built.entity_names) == ENTITIES
    assert built.entity_aliases[0] == tuple(ALIASES[0]["aliases"])
    assert built.entity_aliases[3] == tuple(ALIASES[1]["aliases"])
    assert np.array_equal(built.vectors, np.load(files / "vectors.npy"))
    assert built.graph.edge_type_names == ("context", "relation")
    assert built.info()["graph"]["edge_types"] == {"context": len(EDGES), "relation": 1}


def test_build_prints_the_folder_and_its_contents(files, tmp_path):
    done = hopfuse(*build_args(files), "--out", tmp_path / "index")
    assert f"Saved generation 1 in {tmp_path / 'index'}" in done.stderr
    assert "passages" in done.stdout
    assert re.search(r"│ generation +│ 1 ", done.stdout)


def test_columns_that_are_not_read_are_named(tmp_path):
    corpus = write_jsonl(tmp_path / "corpus.jsonl", [{"_id": "d1", "text": "Ada wrote.", "metadata": {"year": 1843}}])
    assert "not read" not in hopfuse("build", corpus, "--out", tmp_path / "beir").stderr
    built = Index.open(tmp_path / "beir")
    assert (list(built.passage_ids), built.metadata.row(0)) == (["d1"], {"year": 1843})
    row = {"id": 7, "_id": "d1", "text": "Ada wrote.", "meta": {}, "document": "notes", "position": 1, "language": "EN"}
    said = hopfuse("build", write_jsonl(tmp_path / "other.jsonl", [row]), "--out", tmp_path / "other").stderr
    assert "other.jsonl that are not read: _id, meta. Its rows have" in said
    index = Index.open(tmp_path / "other")
    assert (list(index.passage_ids), list(index.documents), list(index.languages)) == ([7], ["notes"], ["en"])
    found = json.loads(hopfuse("info", tmp_path / "other", "--json").stdout)
    assert (found["documents"], found["languages"], found["num_stated"], found["name_rule"]) == (
        1,
        ["en"],
        0,
        NAME_RULE,
    )
    said = hopfuse("info", tmp_path / "other").stdout
    assert re.search(r"documents +│ 1 ", said)
    assert re.search(r"languages +│ en ", said)


def test_an_index_is_replaced_only_with_overwrite(files, index, refused_here, tmp_path):
    hopfuse(*build_args(files), "--out", tmp_path / "index")
    before = {path: path.read_bytes() for path in sorted((tmp_path / "index").iterdir())}
    openie = tmp_path / "openie.json"
    openie.write_text('{"docs": []}')
    for args in (build_args(files), ["build", "--from", openie], ["build", "--from", f"arrow:{tmp_path}"]):
        message = refused_here(*args, "--out", tmp_path / "index")
        assert message == about("exists", "out")
    assert {path: path.read_bytes() for path in sorted((tmp_path / "index").iterdir())} == before
    done = hopfuse(*build_args(files), "--out", tmp_path / "index", "--overwrite")
    assert "Saved generation 2" in done.stderr


def test_build_embeds_with_an_encoder(files, tmp_path):
    pytest.importorskip("wordllama")
    from hopfuse.encoders import WordLlamaEncoder

    args = ["build", files / "passages.jsonl", "--encoder", "wordllama:64", "--out", tmp_path / "index"]
    hopfuse(*args, "--storage", "float16", "--metric", "cosine")
    built = Index.open(tmp_path / "index")
    together = [f"{text.split()[0]}\n{text}" for text in TEXTS]  # a title and its text, as BM25 reads them
    expected = WordLlamaEncoder(64).encode_passages(together).astype(np.float16)
    assert np.array_equal(built.vectors, expected)
    assert (built.metric, built.storage) == ("cosine", "float16")


def test_an_encoder_makes_the_vectors_that_no_file_gives(files, tmp_path):
    pytest.importorskip("wordllama")
    from hopfuse.encoders import WordLlamaEncoder

    hopfuse(*build_args(files), "--encoder", "wordllama:64", "--out", tmp_path / "index")
    built = Index.open(tmp_path / "index")
    assert np.array_equal(built.vectors, np.load(files / "vectors.npy"))
    assert np.array_equal(built.entity_vectors, WordLlamaEncoder(64).encode_passages(ENTITIES))


def test_an_index_names_the_encoder_of_the_vectors_that_a_file_gives(files, refused_here, tmp_path):
    pytest.importorskip("wordllama")
    from hopfuse.encoders import WordLlamaEncoder

    encoder = WordLlamaEncoder(64)
    np.save(tmp_path / "vectors.npy", encoder.encode_passages(TEXTS))
    given = ["build", files / "passages.jsonl", "--vectors", tmp_path / "vectors.npy"]
    hopfuse(*given, "--vectors-by", "wordllama:64", "--out", tmp_path / "index")
    built = Index.open(tmp_path / "index")
    assert (built.encoder.name, built.encoder.dim) == (encoder.name, 64)
    assert hopfuse("search", tmp_path / "index", TEXTS[0], "-k", "1").stdout.startswith("1. ")
    again = (*given, "--out", tmp_path / "again")
    assert refused_here(*again, "--vectors-by", "wordllama:128") == about("shape", "vectors_by", given=128, allowed=64)
    alone = ("build", files / "passages.jsonl", "--vectors-by", "wordllama:64", "--out", tmp_path / "again")
    assert refused_here(*alone) == about("unused", "vectors_by", other="vectors")
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("storage", ["bfloat16", "int8"])
def test_build_takes_every_storage(files, tmp_path, storage):
    done = hopfuse(*build_args(files), "--storage", storage, "--out", tmp_path / "index")
    assert storage in done.stdout
    assert Index.open(tmp_path / "index", verify="full").corpus.storage == storage


def test_info_of_an_index(index):
    assert json.loads(hopfuse("info", index, "--json").stdout) == json.loads(
        json.dumps(Index.open(index).info(), default=list)
    )
    output = hopfuse("info", index, "--verify").stdout
    assert "float32" in output
    assert "context: 9, relation: 1" in output


def test_info_of_the_machine():
    found = json.loads(hopfuse("info", "--json").stdout)
    assert found["auto"] in found["backends"]
    assert {"hopfuse", "processor", "cores", "python", "numpy"} <= set(found)
    assert found["backends"]["cpu"]["variant"] in hopfuse("info").stdout
    error = found["backends"]["cuda"]["error"]
    if error is not None:  # also of an extra's square brackets
        shown = "".join(character for character in hopfuse("info").stdout if character not in "│ \n")
        assert error.replace(" ", "") in shown


def test_verify_needs_a_directory():
    done = hopfuse("info", "--help")
    assert "--verify" in done.stdout
    with pytest.raises(AssertionError, match="needs the DIRECTORY"):
        hopfuse("info", "--verify")


def test_a_damaged_index_is_one_line(files, tmp_path):
    hopfuse(*build_args(files), "--out", tmp_path / "index")
    data = max((tmp_path / "index").iterdir(), key=lambda path: path.stat().st_size)
    raw = bytearray(data.read_bytes())
    raw[len(raw) // 2] ^= 1
    data.write_bytes(raw)
    damaged = refused("info", tmp_path / "index", "--verify")
    assert damaged == about("damaged")
    assert any(f"{data}" in f"{one}" for one in (*damaged.places, *damaged.values.values()))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["passages.csv"], about("choice", "passages")),
        (["missing.jsonl"], about("missing", "passages")),
        (["passages.jsonl", "--nodes", "missing.tsv"], about("missing", "nodes")),
        (["passages.jsonl", "--vectors", "query_vectors.npy"], about("length", "vectors", given=300)),
        (["passages.jsonl", "--encoder", "gpt"], about("choice", "encoder", given="gpt")),
        (
            ["passages.jsonl", "--encoder", "wordllama", "--vectors", "vectors.npy", "--entity-vectors", "vectors.npy"],
            about("unused", "encoder"),
        ),
        (["passages.jsonl", "--encoder", "wordllama", "--vectors", "vectors.npy"], about("unused", "encoder")),
        (["passages.jsonl", "--storage", "int8", "--metric", "cosine"], about("unused", "metric")),
        (["passages.jsonl", "--metric", "ip"], about("unused", "metric")),  # the default, which applies to nothing
        (["passages.jsonl", "--aliases", "missing.jsonl"], about("missing", "aliases")),
        (["passages.jsonl", "--aliases", "queries.jsonl"], about("missing", place="line 1")),
    ],
)
def test_bad_inputs_are_refused(refused_here, files, tmp_path, args, message):
    paths = [files / arg if "." in arg else arg for arg in args]
    line = refused_here("build", *paths, "--out", tmp_path / "index")
    assert line == message
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize("row", [[], {"entity": "Ada"}, {"entity": True, "aliases": []}, {"entity": 0, "aliases": "A"}])
def test_a_malformed_alias_row_is_named(refused_here, files, tmp_path, row):
    aliases = write_jsonl(tmp_path / "aliases.jsonl", [{"entity": "Ada", "aliases": ["Lady Ada"]}, row])
    refusal = refused_here(*build_args(files), "--aliases", aliases, "--out", tmp_path / "index")
    assert refusal.code in ("missing", "type")
    assert refusal.places == [f"{aliases}, line 2"]


def test_an_alias_may_hold_a_line_separator(files, tmp_path):
    aliases = tmp_path / "aliases.jsonl"
    aliases.write_text('{"entity": "Ada", "aliases": ["Lady\u2028Ada"]}\n', encoding="utf-8")
    hopfuse(*build_args(files), "--aliases", aliases, "--out", tmp_path / "index")
    assert Index.open(tmp_path / "index").entity_aliases[0] == ("Lady\u2028Ada",)
