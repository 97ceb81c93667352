"""Tables of PostgreSQL for tests, the queries of them, and what they have, to compare an index with."""

from __future__ import annotations

from typing import Any

import numpy as np
from hopfuse import Index

DIM = 4
TABLES = f"""
CREATE TABLE chunks (
    id bigint PRIMARY KEY, title text, body text NOT NULL, embedding vector({DIM}), year int, tags text[], noise text
);
CREATE TABLE names (name text PRIMARY KEY, aliases text[]);
CREATE TABLE mentions (chunk bigint, entity text, weight float8 NOT NULL DEFAULT 1, PRIMARY KEY (chunk, entity));
CREATE TABLE statements (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, head text, relation text, tail text, chunk bigint
);
ALTER TABLE statements REPLICA IDENTITY FULL;
"""
QUERIES: dict[str, Any] = {
    "passages": "SELECT id, title, body AS text, embedding, year, tags FROM chunks ORDER BY id",
    "entities": "SELECT name, aliases FROM names ORDER BY name",
    "edges": [
        "SELECT chunk AS src_passage, entity AS dst_entity, 'context' AS type, weight FROM mentions ORDER BY 1, 2",
        "SELECT head AS src_entity, tail AS dst_entity, relation AS type, chunk AS passage FROM statements ORDER BY id",
    ],
    "facts": "SELECT head, relation, tail, chunk AS passage FROM statements ORDER BY id",
}


def make_tables(connection: Any, rows: int = 6) -> None:
    """Make the tables, and fill them."""
    connection.execute(TABLES)
    for row in range(rows):
        add_chunk(connection, row)
    connection.execute("INSERT INTO names VALUES ('Ada', '{Countess,A. L.}'), ('Babbage', NULL), ('Engine', '{}')")
    connection.execute("INSERT INTO mentions SELECT id, 'Ada' FROM chunks")
    connection.execute("INSERT INTO mentions VALUES (1, 'Babbage', 2.5), (2, 'Engine', 0.5)")
    connection.execute(
        "INSERT INTO statements (head, relation, tail, chunk) VALUES ('Ada', 'knew', 'Babbage', 1), "
        "('Ada', 'knew', 'Babbage', 2), ('Babbage', 'built', 'Engine', 2)"
    )


def add_chunk(connection: Any, id: int, text: str = "") -> None:
    """Add a chunk whose vector follows from its id."""
    connection.execute(
        "INSERT INTO chunks VALUES (%s, %s, %s, %s::vector, %s, %s)",
        (
            id,
            None if id % 3 == 0 else f"Title {id}",
            text or f"Text of {id}  naïve 🗼",
            vector(id),
            1800 + id,
            ["x", str(id)],
        ),
    )


def vector(id: int) -> str:
    return str([id + 1.0, 0.5 * id, -1.0, 0.1][:DIM])


def state_of(index: Index) -> dict[str, Any]:
    """What an index has, by ids and names, without an order."""
    ids, names = list(index.passage_ids), list(index.entity_names)
    nodes = [("passage", id) for id in ids] + [("entity", name) for name in names]
    found: dict[str, Any] = {
        "passages": {
            id: (index.titles[row], index.texts[row], index.metadata.row(row) if index.metadata else {})
            for row, id in enumerate(ids)
        },
        "vectors": None if index.vectors is None else dict(zip(ids, index.vectors.tolist(), strict=True)),
        "entities": {name: sorted(index.entity_aliases[row]) for row, name in enumerate(names)},
    }
    if index.graph is not None:
        src, dst, weight, kind = index.graph.edges()
        types = index.graph.edge_type_names
        found["edges"] = sorted(
            (*sorted([repr(nodes[a]), repr(nodes[b])]), types[t], round(float(w), 5))
            for a, b, w, t in zip(src, dst, weight, kind, strict=True)
        )
    if index.facts is not None:
        facts = index.facts
        found["facts"] = sorted(
            (names[h], facts.relations[r], names[t], ids[p])
            for f, (h, r, t) in enumerate(facts.rows.tolist())
            for p in np.asarray(facts.passages)[facts.indptr[f] : facts.indptr[f + 1]].tolist()
        )
    return found
