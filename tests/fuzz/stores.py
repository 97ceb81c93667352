"""Targets of other programs' files: tables of Parquet and Arrow, SQLite, exports of Neo4j, memories of HippoRAG."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from fuzz.documents import passages, queries, run
from fuzz.mutators import fields_of_lines, json_lines, json_values
from fuzz.targets import Target, of_file
from hopfuse.extract import build_memory, described, read_triples
from hopfuse.stores import open_source

QUERIES = {
    "passages": ["SELECT id, text, v AS vector, year FROM chunks"],
    "entities": ["SELECT name FROM entities"],
    "edges": ["SELECT id AS src_passage, name AS dst_entity, 'm' AS type, 1.0 AS weight FROM mentions"],
}
MODEL, TEXTS = "reader_model", ["Ada\nAda wrote notes.", "Babbage built."]
NAMES = ["ada", "babbage", "notes"]


def build(scheme: str, name: str, tables: Mapping[str, list[str]] | None = None) -> Callable[[bytes, Path], object]:
    """Return a reader that builds an index of a store whose file is the input."""

    def read(path: Path) -> object:
        index = hf.Index.build(open_source(f"{scheme}:{path}", dict(tables or {})))
        return [*index.texts], [index.metadata.row(row) for row in range(index.num_passages)], index.info()

    return of_file(name, read)


def memory(data: bytes, folder: Path) -> object:
    """Read a folder of HippoRAG whose OpenIE results are the input."""
    return _memory(folder, {f"openie_results_ner_{MODEL.partition('_')[0]}.json": data})


def memory_of_passages(data: bytes, folder: Path) -> object:
    """Read a folder of HippoRAG whose embeddings of passages are the input."""
    return _memory(folder, {f"{MODEL}/chunk_embeddings/vdb_chunk.parquet": data})


def _memory(folder: Path, changed: Mapping[str, bytes]) -> object:
    from hopfuse.adapters.hipporag_folder import read_folder

    for name, content in (memory_files() | changed).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return read_folder(folder).info()


@cache
def memory_files() -> dict[str, bytes]:
    """The files of a small folder of HippoRAG."""
    import pyarrow as pa
    import pyarrow.parquet
    from adapters.hipporag_memory import key_of

    found = {}
    for kind, texts in (("chunk", TEXTS), ("entity", NAMES)):
        vectors = np.arange(2 * len(texts), dtype=np.float32).reshape(-1, 2)
        columns = {"hash_id": [key_of(text, kind) for text in texts], "content": texts, "embedding": list(vectors)}
        sink = pa.BufferOutputStream()
        pa.parquet.write_table(pa.table(columns), sink, compression="none", use_dictionary=False)
        found[f"{MODEL}/{kind}_embeddings/vdb_{kind}.parquet"] = bytes(sink.getvalue())
    triples = [[["Ada", "wrote", "notes"], ["Ada"]], [["Babbage", "knew", "Ada"]]]
    docs = [
        {"idx": str(at), "passage": text, "extracted_entities": [], "extracted_triples": stated}
        for at, (text, stated) in enumerate(zip(TEXTS, triples, strict=True))
    ]
    return found | {f"openie_results_ner_{MODEL.partition('_')[0]}.json": json.dumps({"docs": docs}).encode()}


def triples(path: Path) -> object:
    """Read the facts of a Parquet file."""
    return build_memory(described(read_triples(path)))


def apoc(ending: str, mutate: Any, runs: int) -> Target:
    """Return the target of an export of Neo4j's APOC."""
    words = ("type", "node", "relationship", "labels", "properties", "start", "end", "label", "_id", "_labels", "_type")
    return Target(f"apoc-{ending}", build("apoc", f"all.{ending}"), runs, mutate, words)


TARGETS = (
    Target("passages-parquet", of_file("passages.parquet", passages), 2_000),
    Target("queries-parquet", of_file("queries.parquet", queries), 4_000),
    Target("run-parquet", of_file("run.parquet", run), 4_000),
    Target("triples-parquet", of_file("triples.parquet", triples), 4_000),
    Target("hipporag-openie", memory, 1_500, json_values, ("docs", "passage", "extracted_triples")),
    Target("hipporag-parquet", memory_of_passages, 1_500),
    Target("sqlite", build("sqlite", "notes.db", QUERIES), 1_500, most=16_384),
    apoc("json", json_lines, 2_000),
    apoc("csv", fields_of_lines(b"", b'"', b"[", b"[1]", b"1e999", b"nan", b":A:B", b"0", b"\xff"), 2_000),
    apoc("arrow", None, 2_000),
)
