"""The served index, its questions, and the bodies of requests with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from numpy.typing import NDArray

from ..cases.data import KnowledgeGraph, data_folder, knowledge_graph

K = 10
#: Environment variable with the folder of the index, for workers without arguments.
INDEX_VARIABLE = "HOPFUSE_BENCH_INDEX"
#: Number of random questions for an index without questions.
DRAWN = 300


@dataclass(frozen=True)
class Questions:
    """Vectors, float32 (Q, d), and the names of entities in each question."""

    vectors: NDArray[np.float32]
    entities: list[list[str]]

    def __len__(self) -> int:
        return len(self.entities)

    def some(self, first: int, count: int) -> dict[str, Any]:
        """Return a number of questions from ``first`` on, cyclically, as arguments of a recipe."""
        rows = [(first + at) % len(self) for at in range(count)]
        return {"vectors": self.vectors[rows], "entities": [self.entities[row] for row in rows]}

    def save(self, file: Path) -> None:
        """Write the questions for the processes of the bench."""
        np.savez(file, vectors=self.vectors, entities=np.array(json.dumps(self.entities)))

    @classmethod
    def load(cls, file: str) -> Questions:
        """Read the questions that :meth:`save` wrote."""
        with np.load(file) as found:
            return cls(found["vectors"], json.loads(str(found["entities"])))


def prepare(folder: Path, quick: bool, index: Path | None = None) -> tuple[Path, Questions]:
    """Return the directory of an index, and questions for it: of hotpotqa, or of a tiny synthetic one in quick mode.

    Of another ``index`` the questions are drawn by a fixed seed: the vectors of its passages, beside three entities.
    """
    if index is not None:
        return index, _drawn(hf.Index.open(index))
    knowledge = knowledge_graph(quick)
    built = hf.Index.build(
        passages=_passages(knowledge, quick),
        vectors=knowledge.vectors,
        graph=knowledge.graph,
        entities=knowledge.names,
    )
    built.save(folder / "index")
    return folder / "index", Questions(np.ascontiguousarray(knowledge.query_vectors, np.float32), knowledge.mentions)


def _passages(knowledge: KnowledgeGraph, quick: bool) -> list[dict[str, Any]]:
    if quick:
        return [{"title": f"No. {at}", "text": f"Passage {at}. " * 30} for at in range(knowledge.num_passages)]
    lines = (data_folder("hotpotqa") / "passages.jsonl").read_text("utf-8").splitlines()
    return [{key: one[key] for key in ("title", "text")} for one in map(json.loads, lines)]


def _drawn(index: hf.Index) -> Questions:
    draw = np.random.default_rng(5)
    if index.corpus is None or not index.num_entities:
        raise hf.errors.InputError(
            "missing", "index", "--{field} has no vectors or no graph of entities; PhaseGraph needs both"
        )
    rows = draw.integers(0, index.num_passages, DRAWN)
    vectors = np.ascontiguousarray(index.corpus.vectors[rows], np.float32)
    names = index.entity_names
    return Questions(vectors, [[names[at] for at in draw.integers(0, index.num_entities, 3)] for _ in range(DRAWN)])


def json_bodies(questions: Questions, each: int, **more: Any) -> list[bytes]:
    """Return bodies of ``/v1/search`` with ``each`` questions, which together have every question at least once."""
    return [json.dumps({"queries": rows, "k": K, **more}).encode() for rows in _rows(questions, each)]


def arrow_bodies(questions: Questions, each: int) -> list[bytes]:
    """Return the same as Arrow IPC streams."""
    import pyarrow as pa

    bodies = []
    for first in range(0, len(questions), each):
        asked = questions.some(first, each)
        vectors = pa.array(asked["vectors"].ravel())
        columns = {
            "vector": pa.FixedSizeListArray.from_arrays(vectors, asked["vectors"].shape[1]),
            "entities": pa.array(asked["entities"], pa.list_(pa.string())),
        }
        table = pa.table(columns).replace_schema_metadata({"hopfuse": json.dumps({"k": K})})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        bodies.append(bytes(sink.getvalue()))
    return bodies


def _rows(questions: Questions, each: int) -> Sequence[list[dict[str, Any]]]:
    found = []
    for first in range(0, len(questions), each):
        asked = questions.some(first, each)
        pairs = zip(asked["vectors"].tolist(), asked["entities"], strict=True)
        found.append([{"vector": vector, "entities": names} for vector, names in pairs])
    return found
