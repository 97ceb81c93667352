"""The inputs that corpora begin with, which ``python tests/fuzzing.py --seeds`` writes.

Each target has a few small ones that its reader takes. What fuzzers found is beside them, and stays.
"""

from __future__ import annotations

import io
import json
import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from fuzz.stores import memory_files
from fuzz.targets import CORPUS
from golden.make import HERE
from hopfuse.recipes import Policy
from stores.test_bulk_readers import arrow_export, csv_export, json_export

#: Inputs by target.
Seeds = dict[str, list[bytes]]


def lines(*rows: Any) -> bytes:
    """Rows as JSON, one a line."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def npy(array: np.ndarray[Any, Any]) -> bytes:
    """An array as an .npy file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def of_indexes() -> Seeds:
    """The golden files of the format."""
    snapshots = [path.read_bytes() for path in sorted((HERE / "index").glob("*.hopfuse"))]
    logs = [(HERE / "log" / "strings.log").read_bytes()]
    return {"index": snapshots, "log": logs, "pointer": [b"generation-000000000001.hopfuse\n"]}


def of_documents() -> Seeds:
    """Files of every kind that a user gives."""
    row = {"id": "a", "title": "Ada", "text": "Ada wrote.\nIn 1843.", "document": "d", "language": "en"}
    metadata = {"year": 1843, "draft": False, "rank": 0.5, "tags": ["a", "b"], "day": "1843-09-05T00:00:00Z"}
    edge = {"src": 0, "dst": 2, "type": "context", "weight": 1.5, "passage": 0}
    fact = {"head": "Ada", "relation": "knew", "tail": "Babbage", "passage": 0}
    doc = {"idx": "a", "passage": "Ada\nAda wrote.", "extracted_entities": ["Ada", 7, {"name": "B"}]}
    docs = {"docs": [{**doc, "extracted_triples": [["Ada", "wrote", "notes"], ["Ada", "wrote"], [1, 2, 3]]}]}
    question = {"id": "q1", "text": "Who wrote?", "entities": ["Ada", 0], "vector": [0.5, 1.0]}
    judged = {"id": "q1", "gold": ["a", 2], "grades": [2, 1], "hops": [["a"], [2]], "last_hop": [2], "question": "Who?"}
    ranked = {"id": "q1", "hits": [{"id": "a", "score": 1.5}, {"id": 2, "score": 0.5}], "answer": "Ada"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "calibrator.json")
        hf.Calibrator().fit([1.0, 2.0, 2.0, 5.5]).save(path)
        calibrator = path.read_bytes()
    return {
        "passages-jsonl": [
            lines({**row, "metadata": metadata}, {"id": "b", "text": ""}),
            lines({"_id": 7, "text": "東京"}),
        ],
        "passages-tsv": [
            b'id\ttext\ttitle\tmetadata\na\t"Ada ""wrote"""\tAda\t{"year": 1843}\nb\t\t\t\n',
            b"1\tone\tOne\n",
        ],
        "graph-jsonl": [
            lines(edge, {"src": 2, "dst": 3, "weight": 1, "type": "x"}),
            lines({**edge, "passage": -1, "src": 3}),
        ],
        "graph-tsv": [b"src\tdst\ttype\tweight\tpassage\n0\t2\tcontext\t1.5\t0\n2\t3\t\t2\t-1\n", b"0\t2\n1\t3\n"],
        "facts-jsonl": [lines(fact, {**fact, "passage": 1})],
        "entities-jsonl": [lines({"name": "Ada", "stated": True}, {"name": "Babbage", "stated": False})],
        "queries-jsonl": [lines(question, {"_id": 7, "question": "What?"}), b"\n{}\n"],
        "qrels-jsonl": [lines(judged, {"id": "q2", "gold": []})],
        "qrels-trec": [b"q1 0 a 2\nq1 0 b 0\n# note\n#q2\t0\tc\t1\n", b"query-id\tcorpus-id\tscore\nq1\ta\t1\n"],
        "run-jsonl": [lines(ranked, {"id": "q2", "hits": [], "notes": [{"message": "none"}]})],
        "run-trec": [b"q1 Q0 a 1 2.5 t\nq1 Q0 b 2 1e-3 t\n", b"# note\n\n#q1 0 a - 1 t\nq2\tQ0\tb\t1\t3\tt x\n"],
        "run-json": [json.dumps({"q1": {"a": 1.5, "b": 2}}).encode(), json.dumps([ranked]).encode()],
        "npy": [npy(np.eye(2, 3, dtype=np.float32)), npy(np.arange(4, dtype=np.float16).reshape(2, 2))],
        "openie-json": [json.dumps(docs).encode()],
        "openie-jsonl": [lines({"id": "a", "entities": ["Ada"], "triples": [["Ada", "wrote", "notes"]]})],
        "triples-tsv": [b"head\trelation\ttail\nAda\twrote\tnotes\n", b'Ada\t"knew ""him"""\tBabbage\n'],
        "triples-nt": [
            b'<http://a.org/Ada_L%C3%A9> <http://a.org#bornIn> "Lon\\u0064on"@en .\n_:b <p> <x/hasISBNs> . # c\n'
        ],
        "calibrator": [calibrator],
        "policy-toml": [Policy().to_toml().encode(), b"version = 1\n[families]\nkinship = 2.0\n"],
    }


def of_stores() -> Seeds:
    """Files of other programs."""
    import pyarrow as pa
    import pyarrow.parquet

    def parquet(*rows: dict[str, Any]) -> bytes:
        sink = pa.BufferOutputStream()
        table = pa.Table.from_pylist(list(rows))
        pa.parquet.write_table(table, sink, compression="none", use_dictionary=False, store_schema=False)
        return bytes(sink.getvalue())

    metadata = {"year": 1843, "tags": ["a"], "rank": 0.5}
    written = {}
    with tempfile.TemporaryDirectory() as folder:
        for ending, write in (("json", json_export), ("csv", csv_export), ("arrow", arrow_export)):
            path = Path(folder, f"all.{ending}")
            write(path)
            written[ending] = path.read_bytes()
        path = Path(folder, "notes.db")
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("PRAGMA page_size = 512")
            db.execute("CREATE TABLE chunks (id TEXT, text TEXT, v BLOB, year INTEGER)")
            db.execute("CREATE TABLE entities (name TEXT)")
            db.execute("CREATE TABLE mentions (id TEXT, name TEXT)")
            one, two = (np.array(vector, np.float32).tobytes() for vector in ((1, 0), (0, 1)))
            rows = [("a", "Ada wrote.", one, 1843), ("b", "Built.", two, 1)]
            db.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?)", rows)
            db.execute("INSERT INTO entities VALUES ('Ada')")
            db.execute("INSERT INTO mentions VALUES ('a', 'Ada')")
        database = path.read_bytes()
    files = memory_files()
    return {
        "passages-parquet": [parquet({"id": "a", "text": "one", "metadata": metadata})],
        "queries-parquet": [parquet({"id": "q", "text": "Who?", "entities": ["Ada"], "vector": [0.5, 1.0]})],
        "run-parquet": [parquet({"id": "q1", "hits": [{"id": "a", "score": 1.5}]})],
        "triples-parquet": [parquet({"head": "Ada", "relation": "wrote", "tail": "notes"})],
        "hipporag-openie": [next(data for name, data in files.items() if name.endswith(".json"))],
        "hipporag-parquet": [next(data for name, data in files.items() if "chunk" in name)],
        "sqlite": [database],
        **{f"apoc-{ending}": [data] for ending, data in written.items()},
    }


def of_answers() -> Seeds:
    """Return what a server, an endpoint of embeddings and a language model answer."""
    import pyarrow as pa
    from encoders.embedding_server import answered

    hit = {"id": "a", "score": 1.5, "title": "Ada", "text": "Ada wrote.", "metadata": {"year": 1843}}
    timings = {"queued_ms": 0.1, "batch": 1, "search_ms": 1.0}
    found = {"results": [{"hits": [hit], "notes": []}], "seq": 1, "timings": timings}
    passage = {"id": "a", "title": "Ada", "text": "Ada wrote.", "document": None, "language": None, "metadata": {}}
    page, indexes = {"passages": [passage], "after": None, "seq": 1}, {"indexes": [{"name": "a"}]}
    deleted = {"seq": 2, "passages": 1, "names": 0, "words": 0, "facts": 0}
    error = {"code": "range", "field": "k", "message": "k is -1", "values": {"given": -1}, "class": "InputError"}
    error |= {"sentence": "{field} is {given}", "places": []}
    about = {b"hopfuse": json.dumps({"seq": 1, "timings": {}}).encode()}
    table = pa.table({"id": [["a", "b"]], "score": pa.array([[1.5, 0.5]], pa.list_(pa.float32()))})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema.with_metadata(about)) as writer:
        writer.write_table(table.replace_schema_metadata(about))
    told = '<think>so</think> {"names": ["Ada"], "n": 1}'
    completion = {"choices": [{"index": 0, "message": {"role": "assistant", "content": told}, "finish_reason": "stop"}]}
    return {
        "client-json": [json.dumps(one).encode() for one in (found, passage, page, deleted, indexes)],
        "client-error": [json.dumps({"error": error}).encode()],
        "client-arrow": [bytes(sink.getvalue())],
        "embeddings": [json.dumps(answered({"input": ["a", "b"], "model": "m", "dimensions": 2})[1]).encode()],
        "chat": [json.dumps(completion).encode()],
        "careless-json": [
            *(told.encode(), b"{names: ['O'Hara', 'a',], /* one */ n: 1} // two", b'{"names": []} {"n": 1}'),
        ],
    }


def all_seeds() -> Seeds:
    """Every target's inputs."""
    from fuzz.requests import seeds as of_requests

    return of_indexes() | of_documents() | of_stores() | of_requests() | of_answers()


def write_all(names: Iterable[str]) -> None:
    """Write the first inputs of targets."""
    found = all_seeds()
    for name in names:
        folder = CORPUS / name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("seed-*"):
            old.unlink()
        for at, data in enumerate(found[name]):
            (folder / f"seed-{at}").write_bytes(data)
