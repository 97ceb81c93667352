"""A small index of facts with vectors of its entities, questions for it, and the recipes' own results."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from cli.cli_files import write_jsonl
from hopfuse.extract import Extraction, build_memory
from hopfuse.lexical import BM25, FTS5
from hopfuse.recipes import RECIPES, PolicyRAG, TripleHybrid

DIM = 6
QUESTION = "Who directed Alien?"
ASKED = [(QUESTION, ["Alien"]), ("Where was Ridley Scott born?", ["Ridley Scott"]), ("What of the sea?", [])]
ROWS = [
    Extraction("a", "Alien", "Ridley Scott directed Alien.", (), (("Ridley Scott", "directed", "Alien"),)),
    Extraction("b", "Scott", "He was born.", (), (("Ridley Scott", "was born in", "South Shields"),)),
    Extraction("c", "South Shields", "By the sea.", (), (("South Shields", "lies by", "North Sea"),)),
]


def write_memory(folder: Path, encoder: Any = None) -> Path:
    """Return a folder with an index, queries and their vectors: random ones, or an encoder's."""
    draw, made = np.random.default_rng(3), build_memory(ROWS)

    def vectors(texts: Any) -> Any:
        if encoder is not None:
            return encoder.encode_passages(list(texts))
        return draw.standard_normal((len(texts), DIM)).astype(np.float32)

    index = made.index(
        vectors=vectors([row.text for row in ROWS]), entity_vectors=vectors(made.entities), metric="cosine"
    )
    index.save(folder / "index")
    write_jsonl(folder / "queries.jsonl", [{"text": text, "entities": names} for text, names in ASKED])
    np.save(folder / "vectors.npy", vectors([text for text, _ in ASKED]))
    return folder


def explaining(memory: Path, recipe: str, *more: Any) -> tuple[Any, ...]:
    given = (memory / "index", QUESTION, "--vectors", memory / "vectors.npy")
    return ("trace", *given, "--recipe", recipe, *more)


def scoring(memory: Path, recipe: str, out: Path, *more: Any) -> tuple[Any, ...]:
    files = ("--queries", memory / "queries.jsonl", "--vectors", memory / "vectors.npy", "--out", out)
    return ("score", memory / "index", *files, "--recipe", recipe, *more)


def words_here(texts: list[str]) -> BM25 | FTS5:
    """Return the searcher of words for an index without a lexical part, by the installed packages."""
    return BM25.build(texts) if find_spec("bm25s") and find_spec("Stemmer") else FTS5.build(texts)


def by_hand(memory: Path, recipe: str, policy: Any = None, **options: Any) -> tuple[Any, Any]:
    """Return the recipe's own result for the three questions, and the names of its hits."""
    index = hf.Index.open(memory / "index")
    texts, names = [text for text, _ in ASKED], [names for _, names in ASKED]
    vectors = np.load(memory / "vectors.npy")
    if recipe == "triple-hybrid":
        vectors = None if options.get("mode") == "lexical" else vectors
        own = TripleHybrid(index, **options)
        return own.search(texts, vectors=vectors, k=10, trace=True), index.entity_names
    if recipe == "policy-rag":
        made: Any = PolicyRAG(index, policy, **options)
    elif recipe in ("hybrid-rrf", "plain-hybrid"):
        words = words_here([f"{title}\n{text}" for title, text in zip(index.titles, index.texts, strict=True)])
        made = RECIPES[recipe](index, **{"lexical": words, **options})
    else:
        made = RECIPES[recipe](index, **options)
    named = {"entities": names} if made.needs.entities else {}
    found = made.search(texts, vectors=vectors, k=10, trace=True, **named)
    return found, index.passage_ids


def rows_of(found: Any, names: Any) -> list[list[dict[str, Any]]]:
    """Return a result in the format of ``hopfuse score``."""
    return [[{"id": names[hit], "score": score} for hit, score in found.hits.row(b)] for b in range(len(ASKED))]
