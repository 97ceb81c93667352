"""Tables of a small store, the same rows as files have them, and the bytes of saved indexes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from hopfuse import Index

TEXTS = ["Ada wrote  notes\x1cand more.", "Babbage built an engine.", "", "東京 は\u3000日本 の 首都\tです\n🗾"]
TITLES = ["Ada", None, "Empty", "Tōkyō"]
METADATA = [{"year": 1843, "tags": ["notes"]}, {"year": None, "tags": None}, {"year": 1900, "tags": ["a", "b"]}, None]
VECTORS = np.random.default_rng(7).normal(size=(4, 5)).astype(np.float32)
NAMES = ["Ada Lovelace", "Charles Babbage", "東京"]
ENTITY_VECTORS = np.random.default_rng(8).normal(size=(3, 5)).astype(np.float32)
FACTS = [("Ada Lovelace", "knew", "Charles Babbage", 0), ("Ada Lovelace", "knew", "Charles Babbage", 1)]


def file_index(ids: list[Any], **options: Any) -> Index:
    """The index of the rows as mappings and arrays."""
    passages = [
        {"id": id, "title": title, "text": text, "metadata": metadata}
        for id, title, text, metadata in zip(ids, TITLES, TEXTS, METADATA, strict=True)
    ]
    edges = [
        {"src": 0, "dst": 4, "type": "context"},
        {"src": 1, "dst": 5, "type": "context"},
        {"src": 3, "dst": 6, "type": "context", "weight": 0.5},
        {"src": 4, "dst": 5, "type": "knew", "passage": 0, "weight": 2.0},
        {"src": 4, "dst": 5, "type": "knew", "passage": 1},
        {"src": 4, "dst": 6, "type": "synonym"},
    ]
    for edge in edges:
        edge.setdefault("weight", 1.0)
    facts = [dict(zip(("head", "relation", "tail", "passage"), fact, strict=True)) for fact in FACTS]
    return Index.build(
        passages=passages,
        vectors=VECTORS,
        entities=NAMES,
        aliases={"Ada Lovelace": ["Ada", "Countess"]},
        entity_vectors=ENTITY_VECTORS,
        graph=edges,
        facts=facts,
        **options,
    )


def tables(ids: list[Any]) -> dict[str, Any]:
    """The rows as tables of Arrow."""
    import pyarrow as pa

    def listed(vectors: np.ndarray) -> Any:
        return pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])

    # pyarrow 18 would sort the names.
    metadata = pa.array(METADATA, pa.struct({"year": pa.int64(), "tags": pa.list_(pa.string())}))
    return {
        "passages": pa.table(
            {"id": ids, "title": TITLES, "text": TEXTS, "vector": listed(VECTORS), "metadata": metadata}
        ),
        "entities": pa.table(
            {"name": NAMES, "vector": listed(ENTITY_VECTORS), "aliases": [["Ada", "Countess"], None, []]}
        ),
        "edges": [
            pa.table(
                {
                    "src_passage": [ids[0], ids[1], ids[3]],
                    "dst_entity": NAMES,
                    "type": ["context"] * 3,
                    "weight": [1.0, 1.0, 0.5],
                }
            ),
            pa.table(
                {
                    "src_entity": [NAMES[0]] * 3,
                    "dst_entity": [NAMES[1], NAMES[1], NAMES[2]],
                    "type": ["knew", "knew", "synonym"],
                    "passage": pa.array([ids[0], ids[1], None]),
                    "weight": [2.0, 1.0, 1.0],
                }
            ),
        ],
        "facts": pa.table(
            {
                "head": [fact[0] for fact in FACTS],
                "relation": [fact[1] for fact in FACTS],
                "tail": [fact[2] for fact in FACTS],
                "passage": [ids[fact[3]] for fact in FACTS],
            }
        ),
    }


def saved_bytes(index: Index, folder: Path) -> bytes:
    """The bytes of the first generation of an index."""
    index.save(folder)
    return (folder / "generation-000000000001.hopfuse").read_bytes()
