"""The indexes that every door opens, one for each shape, and the questions that every door is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.encoders import open_encoder
from hopfuse.extract import WordReader, build_memory
from hopfuse.lexical import BM25
from numpy.typing import NDArray

#: An encoder that every door can name, and finds by the name that an index keeps.
ENCODER = "wordllama:64"

TEXTS = (
    "Ada Lovelace wrote notes on the Engine of Babbage.",
    "Babbage built a part of the Engine in London.",
    "London lies on the Thames.",
    "The Thames flows to the North Sea.",
    "Turing read the notes of Ada Lovelace in Manchester.",
    "Manchester has an old canal.",
    "The canal of Manchester carried 300 boats of coal.",
    "A program is a list of steps.",
    "Babbage drew the plans of another machine, which nobody built.",
    "The North Sea is shallow and cold.",
)
ENTITIES = ("Ada Lovelace", "Engine", "Babbage", "London", "Thames", "North Sea", "Turing", "Manchester")
ALIASES = {"Ada Lovelace": ["Countess of Lovelace"], "London": ["Londinium"]}
FACTS = (
    ("Ada Lovelace", "wrote notes on", "Engine", 0),
    ("Babbage", "built a part of", "Engine", 1),
    ("London", "lies on", "Thames", 2),
    ("Thames", "flows to", "North Sea", 3),
    ("Turing", "read notes of", "Ada Lovelace", 4),
)
#: What is changed in the live shape: passages added after the index was saved, and the ids of those deleted.
ADDED = {
    "id": "new",
    "title": "Paper",
    "text": "Turing wrote a paper on machines in London.",
    "metadata": {"tenant": "a"},
}
DELETED = ("p3", "p7")


def passages(ids: Callable[[int], Any] = "p{}".format) -> list[dict[str, Any]]:
    """The rows of passages; two in turn are of one document and of one tenant."""
    return [
        {
            "id": ids(at),
            "title": " ".join(text.split()[:2]),
            "text": text,
            "document": f"d{at // 2}",
            "metadata": {"tenant": "ab"[at % 2], "year": 1840 + at},
        }
        for at, text in enumerate(TEXTS)
    ]


def edges() -> list[dict[str, Any]]:
    """Passages and the entities that they name, and entities of one fact."""
    at = {name: len(TEXTS) + number for number, name in enumerate(ENTITIES)}
    named = [(row, at[name]) for row, text in enumerate(TEXTS) for name in ENTITIES if name in text]
    linked = [(at[head], at[tail], row) for head, _, tail, row in FACTS]
    return [{"src": a, "dst": b, "type": "context"} for a, b in named] + [
        {"src": a, "dst": b, "type": "relation", "passage": row} for a, b, row in linked
    ]


def built(*parts: str) -> hf.Index:
    """Return an index with these of its parts: vectors, graph, facts, words, names."""
    encoder, given = open_encoder(ENCODER), dict[str, Any]()
    if "vectors" in parts:
        given |= {"vectors": encoder.encode_passages(TEXTS), "encoder": encoder, "metric": "cosine"}
    if "graph" in parts:
        given |= {"entities": list(ENTITIES), "graph": edges()}
    if "facts" in parts:
        given["facts"] = [dict(zip(("head", "relation", "tail", "passage"), one, strict=True)) for one in FACTS]
    if "names" in parts:
        given |= {"entity_vectors": encoder.encode_passages(ENTITIES), "aliases": ALIASES}
    index = hf.Index.build(passages=passages(), **given)
    return index.with_lexical(BM25.build(index.texts_to_index()).matrix) if "words" in parts else index


def save_words(place: Path) -> None:
    """Save a graph of the words of the passages, built by a reader."""
    build_memory(WordReader().read([{"id": f"p{at}", "text": text} for at, text in enumerate(TEXTS)])).index().save(
        place
    )


def save_live(place: Path) -> None:
    """Save an index and change it, so that a log of changes is beside it."""
    everything("vectors", "graph", "facts", "words", "names")(place)
    with hf.Index.open(place, writable=True, encoder=open_encoder(ENCODER)) as live, live.change() as change:
        change.add_passages([ADDED])
        change.add_edges([{"src": ("passage", "new"), "dst": ("entity", name)} for name in ("Turing", "London")])
        change.delete_passages(DELETED)


def everything(*parts: str) -> Callable[[Path], Any]:
    return lambda place: built(*parts).save(place)


#: What saves an index of each shape in a folder.
SHAPES: dict[str, Callable[[Path], Any]] = {
    "texts": lambda place: hf.Index.from_texts(passages(int)).save(place),
    "words": save_words,
    "vectors": everything("vectors"),
    "graph": everything("graph"),
    "vectors and graph": everything("vectors", "graph"),
    "facts": everything("vectors", "graph", "facts"),
    "all": everything("vectors", "graph", "facts", "words", "names"),
    "live": save_live,
}


@dataclass(frozen=True, eq=False)
class Question:
    """A question as a door is asked it; None is not given.

    ``allow`` is conditions on metadata, which every door can be given.
    """

    name: str
    text: str | None = None
    vector: NDArray[np.float32] | None = None
    entities: list[str | int] | None = None
    allow: dict[str, Any] | None = None
    k: int = 4

    @property
    def given(self) -> frozenset[str]:
        """The arguments that are given."""
        return frozenset(name for name in ("text", "vector", "entities", "allow") if getattr(self, name) is not None)


def _questions() -> tuple[Question, ...]:
    asked = "Which sea does the river of London flow to?"
    vector = np.linspace(-1, 1, 64, dtype=np.float32)
    plain = Question("names", "What did Ada Lovelace write about Babbage?")
    return (
        plain,
        Question("two steps", asked),
        Question("no name", "old boats of coal"),
        Question("lower case", "where did turing read the notes of ada lovelace?"),
        Question("alias", "Was the Countess of Lovelace in Londinium?"),
        Question("unknown words", "zyx qqq"),
        Question("empty", ""),
        Question("blank", "  "),
        Question("vector", asked, vector),
        Question("entities", asked, entities=["Thames", "Turing"]),
        Question("numbers", asked, entities=[1, 0]),
        Question("no entities", asked, entities=[]),
        Question("unknown entity", asked, entities=["Atlantis", "London"]),
        Question("entity outside", asked, entities=[99]),
        Question("all given", asked, vector, ["Thames"]),
        Question("no text", None, vector, ["Thames"]),
        Question("vector alone", None, vector),
        Question("entities alone", None, None, ["Thames"]),
        Question("short vector", asked, vector[:3]),
        Question("zero vector", asked, vector * 0),
        replace(plain, name="k above P", k=50),
        replace(plain, name="filter", allow={"tenant": "a"}),
        replace(plain, name="conditions", allow={"tenant": "b", "year__ge": 1843}),
        replace(plain, name="nothing allowed", allow={"tenant": "nobody"}),
        replace(plain, name="unknown column", allow={"colour": "red"}),
    )


QUESTIONS = _questions()
