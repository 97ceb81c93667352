"""``hopfuse compare`` if passages and entities have vectors of different spaces."""

import json

import hopfuse as hf
import numpy as np
import pytest
from cli.cli_files import about, hopfuse, refused, write_jsonl

pytest.importorskip("wordllama", reason="the entities' vectors are WordLlama's (extra demo)")

NAMES = ["Ada Lovelace", "Charles Babbage", "London", "Turin"]


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Passages in a space of 5 dimensions, entities in WordLlama's 64."""
    folder, draw = tmp_path_factory.mktemp("spaces"), np.random.default_rng(3)
    from hopfuse.encoders import WordLlamaEncoder

    rows = [(NAMES[i % 4], "wrote to", NAMES[(i + 1) % 4], i) for i in range(8)]
    index = hf.Index.build(
        passages=[{"id": f"p{i}", "title": a, "text": f"{a} {relation} {b}"} for a, relation, b, i in rows],
        vectors=draw.standard_normal((8, 5)).astype(np.float32),
        entities=NAMES,
        entity_vectors=WordLlamaEncoder(64).encode_passages(NAMES),
        graph=[{"src": i, "dst": 8 + NAMES.index(name)} for a, _, b, i in rows for name in (a, b)],
        facts=hf.Facts.from_names(rows, NAMES, 8),
        metric="cosine",
    )
    index.save(folder / "index")
    asked = [{"id": f"q{i}", "text": f"To whom did {a} write?", "gold": [f"p{i}"]} for a, _, _, i in rows]
    write_jsonl(folder / "queries.jsonl", asked)
    np.save(folder / "vectors.npy", draw.standard_normal((8, 5)).astype(np.float32))
    return folder


def command(folder, *more):
    return ("compare", folder / "index", "--queries", folder / "queries.jsonl", *more)


def test_vectors_are_of_passages_and_the_encoder_is_of_entities(work, tmp_path):
    vectors = ("--vectors", work / "vectors.npy")
    metric = ("--metrics", "mrr", "--against", "mrr", "--out")
    hopfuse(*command(work, *vectors, "--encoder", "wordllama:64", *metric, tmp_path / "both.json"))
    hopfuse(*command(work, *vectors, *metric, tmp_path / "one.json"))
    both, one = (json.loads((tmp_path / name).read_text()) for name in ("both.json", "one.json"))
    assert both["left out"] == {}
    assert all(word in one["left out"]["triple-hybrid"] for word in ("5 dimensions", "entities have 64", "encoder"))
    means = [{run: by["mrr"]["mean"] for run, by in found["groups"][0]["estimates"].items()} for found in (both, one)]
    assert means[0]["dense"] == means[1]["dense"]
    assert means[0]["triple-hybrid"] > 0


def test_one_of_the_two_is_needed_if_the_index_records_no_encoder(work):
    message = refused(*command(work))
    assert message == about("missing", "encoder")


def test_the_encoder_is_by_default_the_one_of_the_index(work, tmp_path):
    from hopfuse.encoders import WordLlamaEncoder

    index, encoder = hf.Index.open(work / "index"), WordLlamaEncoder(64)
    built = hf.Index.build(
        passages=[{"id": id, "text": text} for id, text in zip(index.passage_ids, index.texts, strict=True)],
        entities=NAMES,
        graph=index.graph,
    )
    built.with_vectors(encoder.encode_passages(list(index.texts)), encoder=encoder).save(tmp_path / "index")
    asked = ("--queries", work / "queries.jsonl")
    files = [tmp_path / "own.json", tmp_path / "named.json"]
    for out, more in zip(files, ((), ("--encoder", "wordllama:64")), strict=True):
        hopfuse("compare", tmp_path / "index", *asked, *more, "--out", out)
    own, named = (json.loads(out.read_text())["per_query"] for out in files)
    assert own == named
    shown = []
    for more in ((), ("--encoder", "wordllama:64")):
        found = json.loads(hopfuse("diagnose", tmp_path / "index", *asked, *more, "--k", 2, "--json").stdout)
        judged = found.pop("verdict")
        found["next"] = found["next"].removesuffix(" --encoder wordllama:64")
        figures = [[one[key] for key in ("ranking", "recall@5", "mrr", "compared")] for one in judged["rankings"]]
        shown.append((found, figures, judged["use"]))
    assert shown[0] == shown[1]


def test_an_encoder_of_another_space_is_refused(work, refused_here, tmp_path):
    more = ("--out", tmp_path / "numbers.json")
    message = refused_here(*command(work, "--vectors", work / "vectors.npy", "--encoder", "wordllama:128", *more))
    assert message == about("shape", "encoder", given=128, allowed=64, owner="entities")
    message = refused_here(*command(work, "--encoder", "wordllama:64", *more))
    assert message == about("shape", "encoder", given=64, allowed=5)
    assert not (tmp_path / "numbers.json").exists()


def test_an_encoder_of_the_passages_alone_is_refused(work, refused_here, tmp_path):
    from hopfuse.encoders import WordLlamaEncoder

    index = hf.Index.open(work / "index")
    built = hf.Index.build(
        passages=[{"id": id, "text": text} for id, text in zip(index.passage_ids, index.texts, strict=True)],
        vectors=WordLlamaEncoder(128).encode_passages(list(index.texts)),
        entities=NAMES,
        entity_vectors=WordLlamaEncoder(64).encode_passages(NAMES),
        graph=index.graph,
    )
    built.save(tmp_path / "index")
    asked = ("--queries", work / "queries.jsonl", "--encoder", "wordllama:128")
    message = refused_here("compare", tmp_path / "index", *asked)
    assert message == about("shape", "encoder", allowed=64, owner="entities")


def test_facts_and_questions_are_encoded_once(work, tmp_path):
    more = ("--vectors", work / "vectors.npy", "--encoder", "wordllama:64", "--metrics", "mrr", "--against", "mrr")
    kept = ("--cache", tmp_path / "cache", "--out", tmp_path / "n.json", "--overwrite")
    found, files = [], []
    for _ in range(2):
        hopfuse(*command(work, *more, *kept))
        found.append(json.loads((tmp_path / "n.json").read_text())["groups"])
        files.append({path: path.stat().st_mtime_ns for path in (tmp_path / "cache").iterdir()})
    assert found[0] == found[1]
    assert len(files[0]) == 2, "of the facts, and of the questions"
    assert files[0] == files[1]
