"""Targets of files of a user: rows of tables, questions, judgements, runs, vectors, facts, memories, settings."""

from __future__ import annotations

import io
import json
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from fuzz.mutators import fields_of_lines, json_lines, json_values
from fuzz.targets import Plain, Target, of_file
from hopfuse.evaluate import PassageNames, read_qrels, read_run
from hopfuse.extract import build_memory, read_openie, read_triples
from hopfuse.io import QueryRows, count_queries, read_npy, read_queries

PASSAGES = [{"id": "a", "text": "Ada wrote notes."}, {"id": "b", "text": "Babbage built."}]
ENTITIES = ["Ada", "Babbage"]
ROWS = ("id", "_id", "text", "title", "document", "language", "metadata", "position", "failure")
EDGES = ("src", "dst", "weight", "type", "passage", "src_passage", "dst_passage", "src_entity", "dst_entity")
FACTS = ("head", "relation", "tail", "passage")
ODD = (b"", b"0", b"-1", b"1e999", b"nan", b"inf", b"9" * 30, b"1_0", "٣".encode(), b"\xff", b"0x1", b"2", b"#", b'"')
names_and_numbers = fields_of_lines(*ODD, b"Q0", b"a", b"b", b"query-id", b"head", b"weight")
POLICY = ("version = 1", "[seeds]", "[families]", "= true", "= 0.5", "nan", "inf", "[[", "'''")


def passages(path: Path) -> object:
    """Build an index of a table of passages, and read what was taken."""
    index = hf.Index.build(passages=path)
    assert len(index.texts) == len(index.passage_ids) == index.num_passages
    return [*index.texts], [index.metadata.row(row) for row in range(index.num_passages)]


def part_of_index(name: str) -> Callable[[Path], object]:
    """Return a reader that builds an index with one of its parts from a file."""

    def read(path: Path) -> object:
        return hf.Index.build(passages=PASSAGES, entities=ENTITIES, **{name: path}).info()

    return read


def entities(path: Path) -> object:
    """Build an index whose entities are a file."""
    return [*hf.Index.build(passages=PASSAGES, entities=path).entity_names]


def queries(path: Path) -> object:
    """Read questions in order, and again from the place of the second one."""
    found = [*read_queries(path)]
    assert count_queries(path) == len(found)
    rows = QueryRows(path)
    assert [one.id for one in rows.read(0, len(found))] == [one.id for one in found]
    return found


def qrels(path: Path) -> object:
    """Read judgements."""
    return read_qrels(path, PassageNames())


def run(path: Path) -> object:
    """Read a run."""
    return read_run(path, ["q1", "q2", "#q1", "7"], PassageNames())


def openie(path: Path) -> object:
    """Read what HippoRAG extracted, and make a memory of it."""
    return build_memory(read_openie(path))


def openie_lines(path: Path) -> object:
    """Read extractions beside their passages, and make a memory of them."""
    return build_memory(read_openie(path, PASSAGES))


def vectors(path: Path) -> object:
    """Read an array twice, mapped and not, and build an index with it."""
    mapped, read = (read_npy(path, "vectors", mapped=mapped) for mapped in (True, False))
    assert (mapped.dtype, mapped.shape) == (read.dtype, read.shape)
    assert mapped.tobytes() == read.tobytes()
    return hf.Index.build(passages=PASSAGES, vectors=path).corpus.as_float32()


def calibrator(path: Path) -> object:
    """Read a calibrator, and convert scores by it."""
    found = hf.Calibrator.load(path)
    assert json.loads(path.read_text("utf-8"))["crc32"] == _checksum(json.loads(path.read_text("utf-8")))
    scores = found.transform([-1e30, -1.0, 0.0, 0.5, 1.0, 2.0, 1e30])
    assert ((scores >= 0) & (scores <= 1)).all()
    assert (np.diff(scores) >= 0).all()
    return found


def _checksum(content: dict[str, Any]) -> int:
    kept = {name: content.get(name) for name in ("sample_size", "knots", "below", "at_most")}
    return zlib.crc32(json.dumps(kept, sort_keys=True).encode())


def sealed_calibrator(data: bytes, most: int, draw: random.Random, plain: Plain) -> bytes:
    """Change values of a calibrator, with a checksum that fits most of the time."""
    found = json_values(data, most, draw, plain)
    try:
        content = json.loads(found)
        if draw.random() < 0.9:
            content["crc32"] = _checksum(content)
        return json.dumps(content).encode()[:most]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return found


def policy(data: bytes, folder: Path) -> object:
    """Read a policy's settings, write them and read them again."""
    from hopfuse.recipes import Policy  # which imports all recipes

    found = Policy.from_toml(data.decode(errors="replace"))
    assert Policy.from_toml(found.to_toml()) == found
    return found


def npy_head(data: bytes, most: int, draw: random.Random, plain: Plain) -> bytes:
    """Write an array of another dtype and shape with its header, a third of the time; else change bytes."""
    if draw.random() < 0.66:
        return plain(data, most)
    kinds = ("<f4", ">f4", "<f8", "<f2", "<i8", "|b1", "<c8", "<U2", "|S3", "<M8[s]", "<f16", "|V4", "<u8")
    shape = [draw.choice((0, 1, 2, 3, 5)) for _ in range(draw.randrange(4))]
    array = np.zeros(shape, draw.choice(kinds))
    raw = array.view() if array.dtype.hasobject else np.frombuffer(draw.randbytes(array.nbytes), array.dtype)
    file = io.BytesIO()
    np.save(file, np.asfortranarray(raw.reshape(shape)) if draw.random() < 0.3 else raw.reshape(shape))
    return file.getvalue()[:most]


def _rows(name: str, suffix: str, read: Callable[[Path], object], words: tuple[str, ...], runs: int) -> Target:
    mutate = json_lines if suffix == ".jsonl" else names_and_numbers
    return Target(name, of_file(f"{name.partition('-')[0]}{suffix}", read), runs, mutate, words)


TARGETS = (
    _rows("passages-jsonl", ".jsonl", passages, ROWS, 2_500),
    _rows("passages-tsv", ".tsv", passages, ROWS, 2_500),
    _rows("graph-jsonl", ".jsonl", part_of_index("graph"), EDGES, 3_000),
    _rows("graph-tsv", ".tsv", part_of_index("graph"), EDGES, 3_000),
    _rows("facts-jsonl", ".jsonl", part_of_index("facts"), FACTS, 3_000),
    _rows("entities-jsonl", ".jsonl", entities, ("name", "stated", "aliases"), 4_000),
    _rows("queries-jsonl", ".jsonl", queries, ("id", "_id", "text", "question", "entities", "vector"), 8_000),
    _rows("qrels-jsonl", ".jsonl", qrels, ("id", "gold", "grades", "last_hop", "hops", "question"), 8_000),
    _rows("qrels-trec", ".txt", qrels, ("query-id\tcorpus-id\tscore", "Q0", "#"), 8_000),
    _rows("run-jsonl", ".jsonl", run, ("id", "hits", "score", "answer", "notes", "message"), 8_000),
    _rows("run-trec", ".trec", run, ("Q0", "#", "nan", "inf"), 8_000),
    Target("run-json", of_file("run.json", run), 8_000, json_values, ("id", "hits", "score")),
    Target("npy", of_file("vectors.npy", vectors), 8_000, npy_head, ("descr", "fortran_order", "shape", "<f4", "|O")),
    Target(
        "openie-json",
        of_file("openie.json", openie),
        8_000,
        json_values,
        ("docs", "idx", "passage", "extracted_entities", "extracted_triples"),
    ),
    _rows("openie-jsonl", ".jsonl", openie_lines, ("id", "entities", "triples"), 8_000),
    _rows("triples-tsv", ".tsv", lambda path: build_memory(hf.extract.described(read_triples(path))), FACTS, 8_000),
    Target(
        "triples-nt",
        of_file("facts.nt", read_triples),
        20_000,
        None,
        ("<http://a.org/b_c>", '"x"@en', "^^<", "_:b", "\\u0041", "\\U0010FFFF", "%C3%A9", " .\n", "#"),
    ),
    Target(
        "calibrator",
        of_file("calibrator.json", calibrator),
        8_000,
        sealed_calibrator,
        ("format", "version", "sample_size", "knots", "below", "at_most", "crc32"),
    ),
    Target("policy-toml", policy, 3_000, words=POLICY, most=8192),
)
