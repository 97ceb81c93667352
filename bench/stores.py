"""``python -m bench.stores [--out FILE]``: how fast the stores that are installed are read.

The same passages with vectors are written to each store, and an index is built from it. The CPU time of this process is
measured, which includes embedded stores.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import click
import hopfuse as hf
import numpy as np
import pyarrow as pa
from hopfuse.stores import ArrowSource, VectorsChangedWarning, open_source
from pyarrow import parquet

from .result_file import ResultFile

QUERY = {"passages": ["SELECT id, text, vector FROM chunks ORDER BY id"]}


def rows(count: int, dim: int) -> tuple[list[int], list[str], Any]:
    vectors = np.random.default_rng(0).standard_normal((count, dim), dtype=np.float32)
    return list(range(count)), [f"Passage {at} says what passage {at // 7} says." for at in range(count)], vectors


def table(ids: list[int], texts: list[str], vectors: Any) -> Any:
    listed = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    return pa.table({"id": ids, "text": texts, "vector": listed})


def in_sqlite(folder: Path, ids: list[int], texts: list[str], vectors: Any) -> Any:
    with closing(sqlite3.connect(folder / "rows.db")) as db, db:
        db.execute("CREATE TABLE chunks (id INTEGER, text TEXT, vector BLOB)")
        blobs = (vector.tobytes() for vector in vectors)
        db.executemany("INSERT INTO chunks VALUES (?, ?, ?)", zip(ids, texts, blobs, strict=True))
    return open_source(f"sqlite:{folder / 'rows.db'}", QUERY)


def in_parquet(folder: Path, ids: list[int], texts: list[str], vectors: Any) -> Any:
    parquet.write_table(table(ids, texts, vectors), folder / "passages.parquet")
    return open_source(str(folder))


def in_duckdb(folder: Path, ids: list[int], texts: list[str], vectors: Any) -> Any:
    import duckdb

    chunks = table(ids, texts, vectors)
    with duckdb.connect(str(folder / "rows.duckdb")) as db:
        db.register("chunks_given", chunks)
        db.execute("CREATE TABLE chunks AS SELECT * FROM chunks_given")
    return open_source(f"duckdb:{folder / 'rows.duckdb'}", QUERY)


def in_ladybug(folder: Path, ids: list[int], texts: list[str], vectors: Any) -> Any:
    import ladybug

    parquet.write_table(table(ids, texts, vectors), folder / "rows.parquet")
    with ladybug.Database(str(folder / "rows.lbug")) as database, ladybug.Connection(database) as db:
        db.execute(f"CREATE NODE TABLE Chunk(id INT64 PRIMARY KEY, text STRING, vector FLOAT[{vectors.shape[1]}])")
        db.execute(f"COPY Chunk FROM '{folder / 'rows.parquet'}'")
    query = "MATCH (c:Chunk) RETURN c.id AS id, c.text AS text, c.vector AS vector ORDER BY c.id"
    return open_source(f"ladybug:{folder / 'rows.lbug'}", {"passages": [query]})


def in_lancedb(folder: Path, ids: list[int], texts: list[str], vectors: Any) -> Any:
    import lancedb

    lancedb.connect(str(folder)).create_table("passages", table(ids, texts, vectors))
    return open_source(f"lancedb:{folder}")


def in_chroma(folder: Path, ids: list[int], texts: list[str], vectors: Any) -> Any:
    import chromadb

    settings = chromadb.config.Settings(anonymized_telemetry=False)
    collection = chromadb.PersistentClient(path=str(folder), settings=settings).create_collection("chunks")
    names = [str(id) for id in ids]
    for first in range(0, len(ids), 1000):
        some = slice(first, first + 1000)
        collection.add(ids=names[some], documents=texts[some], embeddings=vectors[some])
    return open_source(f"chroma:{folder}", {"passages": ["chunks"]})


def in_qdrant(folder: Path, ids: list[int], texts: list[str], vectors: Any) -> Any:
    from qdrant_client import QdrantClient, models

    with closing(QdrantClient(path=str(folder))) as client:
        params = models.VectorParams(size=vectors.shape[1], distance=models.Distance.DOT)
        client.create_collection("chunks", vectors_config=params)
        payload = [{"text": text} for text in texts]
        for first in range(0, len(ids), 1000):
            some = slice(first, first + 1000)
            batch = models.Batch(ids=ids[some], vectors=vectors[some].tolist(), payloads=payload[some])
            client.upsert("chunks", batch)
    return open_source(f"qdrant:{folder}", {"passages": ["chunks"]})


#: How each store is filled, and the module that must be installed.
STORES: dict[str, tuple[str, Callable[[Path, list[int], list[str], Any], Any]]] = {
    "Arrow in memory": ("pyarrow", lambda folder, *given: ArrowSource(passages=table(*given))),
    "Parquet": ("pyarrow", in_parquet),
    "DuckDB": ("duckdb", in_duckdb),
    "SQLite": ("sqlite3", in_sqlite),
    "ladybug": ("ladybug", in_ladybug),
    "LanceDB": ("lancedb", in_lancedb),
    "Chroma": ("chromadb", in_chroma),
    "Qdrant, local": ("qdrant_client", in_qdrant),
}


def seconds(build: Callable[[], Any]) -> float:
    begin = time.process_time()
    build()
    return time.process_time() - begin


@click.command()
@click.option("--rows", "count", default=20_000, show_default=True)
@click.option("--dim", default=384, show_default=True)
@click.option("--repeats", default=3, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="write the rows as CSV, with the machine and commit")
def main(count: int, dim: int, repeats: int, out: Path | None) -> None:
    """Fill stores, build indexes from them, and print how long that takes."""
    file = ResultFile("python -m bench.stores")
    warnings.simplefilter("ignore", DeprecationWarning)
    warnings.simplefilter("error", VectorsChangedWarning)
    given = rows(count, dim)
    expected = hf.Index.build(passages=[{"id": id, "text": text} for id, text in zip(*given[:2], strict=True)])
    print("| Store | CPU, s | rows a second |\n|---|---|---|")
    for name, (module, fill) in STORES.items():
        if find_spec(module) is None:
            print(f"| {name} | not installed | |")
            continue
        with tempfile.TemporaryDirectory() as folder:
            source = fill(Path(folder), *given)
            index = hf.Index.build(source)  # checked before anything is timed
            if list(index.texts) != list(expected.texts) or not np.array_equal(index.corpus.as_float32(), given[2]):
                raise SystemExit(f"{name}: the index has other rows than were written to the store")
            took = median(seconds(lambda source=source: hf.Index.build(source)) for _ in range(repeats))
        print(f"| {name} | {took:.2f} | {float(f'{count / took:.2g}'):,.0f} |")
        file.add(store=name, rows=count, dim=dim, **{"CPU, s": took, "rows a second": count / took})
    file.write(out)


if __name__ == "__main__":
    main()
