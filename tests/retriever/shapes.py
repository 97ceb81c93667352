"""Indexes of several shapes over the same four passages, and collaborators that count what they are asked."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.extract import QuestionMatcher, WordReader, build_memory
from hopfuse.lexical import FTS5
from numpy.typing import NDArray

ROWS: list[dict[str, Any]] = [
    {"id": "a", "text": "Ada Lovelace wrote notes on the Engine.", "document": "lives"},
    {"id": "b", "text": "Charles Babbage built the Engine in London.", "document": "lives"},
    {"id": "c", "text": "The Thames flows through London.", "document": "rivers"},
    {"id": "d", "text": "The Thames flows through London.", "document": "copies"},
]
NAMES = ["Ada Lovelace", "Engine", "Charles Babbage", "London", "Thames"]
IN = [(0, 1), (1, 2, 3), (3, 4), (3, 4)]
EDGES = [{"src": passage, "dst": len(ROWS) + entity} for passage, row in enumerate(IN) for entity in row]
FACTS = [
    {"head": "Charles Babbage", "relation": "built", "tail": "Engine", "passage": 1},
    {"head": "Thames", "relation": "flows through", "tail": "London", "passage": 2},
    {"head": "Thames", "relation": "flows through", "tail": "London", "passage": 3},
]
QUESTION = "Who built the Engine?"


class Letters:
    """An encoder that counts letters. It counts the texts that it encodes, and notices calls at the same time."""

    name, dim, normalize = "letters", 6, False

    def __init__(self) -> None:
        self.queries, self.passages = Counter[str](), Counter[str]()
        self.together, self._inside = False, threading.Lock()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Letters)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return Letters, ()

    def encode_queries(self, texts: Any) -> NDArray[np.float32]:
        self.queries.update(texts)
        return self._counted(texts)

    def encode_passages(self, texts: Any) -> NDArray[np.float32]:
        self.passages.update(texts)
        return self._counted(texts)

    def _counted(self, texts: Any) -> NDArray[np.float32]:
        free = self._inside.acquire(blocking=False)
        self.together |= not free
        try:
            rows = [[1 + text.lower().count(letter) for letter in "abelot"] for text in texts]
            return np.array(rows, np.float32).reshape(len(texts), self.dim)
        finally:
            if free:
                self._inside.release()


class ByLength:
    """A reranker: the shortest text first."""

    def score(self, queries: Any, candidates: Any) -> list[NDArray[np.float32]]:
        return [np.array([-len(text) for text in row], np.float32) for row in candidates]


def parts(*names: str) -> dict[str, Any]:
    """The arguments of a build with some of "vectors", "graph" and "facts"."""
    made: dict[str, Any] = {"passages": ROWS}
    if "vectors" in names:
        made["vectors"] = Letters().encode_passages([row["text"] for row in ROWS])
    if "graph" in names:
        made |= {"entities": NAMES, "graph": EDGES}
    if "facts" in names:
        made |= {"facts": FACTS, "entity_vectors": Letters().encode_passages(NAMES)}
    return made


def built(*names: str) -> hf.Index:
    """An index with these parts."""
    return hf.Index.build(**parts(*names))


def words_graph() -> hf.Index:
    """An index whose graph is of words."""
    return build_memory(WordReader().read(ROWS)).index()


def leg(index: hf.Index) -> FTS5:
    return FTS5.build(index.texts_to_index())


def own_recipe(index: hf.Index, encoder: Any) -> hf.recipes.GuidedWalk:
    """GuidedWalk as a retriever makes it of an index without words."""
    return hf.recipes.GuidedWalk(index, encoder=encoder, matcher=QuestionMatcher(index))
