"""Write the golden files: indexes with every section, logs with every array of a batch, a trace of every recipe.

    python tests/golden/make.py

They are committed, and test_golden.py holds the writer, the reader and the recipes to them. Run this where the layout
or a trace is meant to change, and commit what it writes with the change of FORMAT.md or of the recipe.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import hopfuse as hf
import numpy as np
from hopfuse.index import EncoderInfo, WordInfo
from hopfuse.recipes import RECIPES
from hopfuse.types import EdgeStatements, TermMatrix

HERE = Path(__file__).parent

PASSAGES = [
    ("ada", "Ada Lovelace", "Ada wrote the first program ."),
    ("empty", "", ""),
    ("東京", "Tōkyō 🗼", "東京 は\u3000日本 の 首都\tです\n🗾"),
]
DOCUMENTS = ["letters", None, "手紙"]
DOCUMENT_NUMBERS = [2**40, None, -7]
LANGUAGES = ["zh-Hant", None, "en"]
ENTITIES = ["Ada Lovelace", "Charles Babbage", "東京", ""]
STATED = [False, True, False, True]
ALIASES = {0: ["Ada", "Countess"], "東京": ["Tokyo", "Tōkyō"]}
NUMBERS = [70, -7, 2**40]
DAY = datetime(1843, 9, 5, 12, 30, tzinfo=UTC)
METADATA: list[dict[str, Any] | None] = [
    {"year": 1843, "draft": False, "rank": 0.5, "tags": ["engine", "notes"], "東": "東京", "day": DAY},
    None,
    {"year": -7, "tags": [], "東": "", "draft": True},
]


def vectors(rows: int, dim: int) -> np.ndarray:
    """Numbers that every precision holds exactly."""
    return (np.arange(rows * dim, dtype=np.float32).reshape(rows, dim) % 7 - 2.5) / 4


def graph(*, directed: bool, weighted: bool) -> hf.Graph:
    """Seven nodes, three passages and four entities; types, a self-loop, and, with weights, parallel edges."""
    return hf.Graph.from_edges(
        [0, 0, 2, 3, 4, 4, 2],
        [3, 4, 5, 4, 4, 5, 0],
        [1.0, 0.5, 0.1, 3.0, 1.5, 2.0, 0.25] if weighted else None,
        num_nodes=7,
        directed=directed,
        edge_type=[0, 0, 0, 1, 1, 2, 2] if weighted else None,
        edge_type_names=["context", "relation", "同義"] if weighted else None,
    )


def statements() -> EdgeStatements:
    """The edges of the undirected, weighted graph one by one; of those between entities two are some passage's."""
    return EdgeStatements(
        np.array([(0, 3), (0, 4), (2, 5), (3, 4), (4, 4), (4, 5), (2, 0)], np.int32),
        np.array([0, 0, 0, 1, 1, 2, 2], np.uint8),
        np.array([1.0, 0.5, 0.1, 3.0, 1.5, 2.0, 0.25]),
        np.array([-1, -1, -1, 0, 2, -1, -1], np.int32),
    )


def terms() -> TermMatrix:
    return TermMatrix(
        terms=["ada", "program", "首都"],
        indptr=np.array([0, 2, 3, 4]),
        passages=np.array([0, 2, 0, 2], np.int32),
        scores=np.array([0.5, 0.25, 1.5, 2.0], np.float32),
        num_passages=3,
        method="lucene",
        k1=1.2,
        b=0.75,
        stopwords=["a", "the"],
        stemmer="english",
        counts=np.array([1, 2, 1, 3], np.int32),
    )


def facts() -> hf.Facts:
    return hf.Facts(
        np.array([[0, 0, 1], [2, 1, 2], [1, 0, 0]], np.int32),
        ["knows", "東"],
        np.array([0, 2, 3, 4]),
        np.array([0, 2, 2, 0], np.int32),
        num_entities=4,
        num_passages=3,
    )


def described() -> list[dict[str, Any]]:
    """The passages with documents, languages and metadata."""
    labels = zip(PASSAGES, DOCUMENTS, LANGUAGES, METADATA, strict=True)
    return [
        {"id": id, "title": title, "text": text, "document": document, "language": language, "metadata": values}
        for (id, title, text), document, language, values in labels
    ]


def stated_entities() -> list[dict[str, Any]]:
    """The entities, and which of them a user stated."""
    return [{"name": name, "stated": is_stated} for name, is_stated in zip(ENTITIES, STATED, strict=True)]


def indexes() -> dict[str, hf.Index]:
    """The golden indexes by the names of their files: between them every section, storage and kind of id."""
    texts = [{"id": id, "title": title, "text": text} for id, title, text in PASSAGES]
    numbered = [
        {**row, "id": number, "document": document}
        for row, number, document in zip(texts, NUMBERS, DOCUMENT_NUMBERS, strict=True)
    ]
    whole: dict[str, Any] = {"entities": ENTITIES, "aliases": ALIASES, "vectors": vectors(3, 5)}
    whole["entity_vectors"] = vectors(4, 2)
    strings = hf.Index.build(
        passages=described(),
        graph=graph(directed=False, weighted=True),
        statements=statements(),
        encoder=EncoderInfo("golden", 5, False),
        words=WordInfo(3, "english", None, ("a", "the")),
        metric="cosine",
        **{**whole, "entities": stated_entities()},
    )
    return {
        "strings": strings.with_lexical(terms()).with_facts(facts()),
        "integers": hf.Index.build(
            passages=numbered, graph=graph(directed=True, weighted=False), storage="float16", **whole
        ).with_facts(facts()),
        "bfloat16": hf.Index.build(passages=numbered, vectors=vectors(3, 5), storage="bfloat16"),
        "int8": hf.Index.build(passages=texts, vectors=vectors(3, 5).astype(np.float16), storage="int8"),
        "plain": hf.Index.build(passages=[{"text": text} for _, _, text in PASSAGES]),
        "nothing": hf.Index.build(passages=[]),
        "changed": changed(),
    }


def change(live: hf.LiveIndex[hf.Index]) -> None:
    """Everything that a change can do, in two batches."""
    with live.change() as first:
        row = {"id": "ada", "title": "Ada", "text": "Ada wrote notes .", "metadata": METADATA[0]}
        row |= {"document": "notes", "language": "en"}
        first.replace_passages([row], vectors=vectors(1, 5))
        first.add_entities(["notes"], vectors=vectors(1, 2))
        first.add_entities(["wrote"], vectors=vectors(1, 2), words=True, stated=False)
        first.add_aliases({"notes": ["Notes", "memoir"]})
        ends = {"src": ("entity", "notes"), "dst": ("entity", "Ada Lovelace")}
        first.add_edges([{**ends, "type": kind, "weight": 0.1, "stated_by": "ada"} for kind in ("relation", "new")])
        first.add_edges([{"src": ("entity", "notes"), "dst": ("passage", "ada"), "type": "context"}] * 2)
        first.add_facts([("Charles Babbage", "knows", "notes", "ada"), ("Ada Lovelace", "wrote", "notes", "ada")])
        first.set_source("position 1")
    with live.change() as second:
        second.set_source("position 2 ✓")
        second.delete_passages(["empty"])
        second.delete_entities(["東京"])
        second.delete_aliases({"notes": ["memoir"]})
        second.delete_edges([{**ends, "type": "relation"}])
        second.delete_facts([("Charles Babbage", "knows", "notes")])
        second.add_facts(
            [("Charles Babbage", "knows", "Ada Lovelace", "東京"), ("Ada Lovelace", "wrote", "notes", "東京")]
        )
        second.add_facts([("Charles Babbage", "knows", "Ada Lovelace", "ada")])


def unchanged() -> hf.Index:
    """The index that :func:`change` changes."""
    return hf.Index.build(
        passages=described(),
        vectors=vectors(3, 5),
        entities=stated_entities(),
        aliases=ALIASES,
        entity_vectors=vectors(4, 2),
        graph=graph(directed=False, weighted=True),
        words=WordInfo(3, "english", None, ("a", "the")),
    ).with_facts(facts())


def changed() -> hf.Index:
    """An index after changes, which needs the sections that say what was stated."""
    with tempfile.TemporaryDirectory() as folder:
        unchanged().save(folder)
        with hf.Index.open(folder, writable=True) as live:
            change(live)
            made = live.refresh()
            made.load()
    return made


def change_numbered(live: hf.LiveIndex[hf.Index]) -> None:
    """A passage whose id is a number, and two deletions, one of them of it."""
    with live.change() as first:
        first.add_passages([{"id": 2**53, "title": "", "text": "sea", "document": 3}], vectors=vectors(1, 5))
        first.delete_passages([-7])
    with live.change() as second:
        second.delete_passages([2**53])


def logs() -> dict[str, tuple[hf.Index, Callable[[hf.LiveIndex[hf.Index]], None]]]:
    """Indexes by the names of their logs, and what changes them: between them every array of a batch."""
    plain = replace(terms(), stemmer=None)  # so that whoever has no stemmer can read the words of new passages
    return {
        "strings": (unchanged().with_lexical(plain), change),
        "integers": (indexes()["integers"], change_numbered),
    }


SALT = bytes(range(16))
FIRST_SECOND = 1_795_000_000


def log_files(index: hf.Index, change: Callable[[hf.LiveIndex[hf.Index]], None]) -> tuple[bytes, bytes]:
    """The file of a first save and the log of some changes; the salt is known, and a batch comes every second."""
    times = (second * 10**9 for second in count(FIRST_SECOND))
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch("secrets.token_bytes", return_value=SALT),
        mock.patch("time.time_ns", side_effect=times),
    ):
        index.save(folder)
        with hf.Index.open(folder, writable=True) as live:
            change(live)
        return tuple(Path(folder, f"{name}-000000000001.hopfuse").read_bytes() for name in ("generation", "log"))  # type: ignore[return-value]


def index_bytes(index: hf.Index) -> bytes:
    """The file of a first save."""
    with tempfile.TemporaryDirectory() as folder:
        index.save(folder)
        return Path(folder, "generation-000000000001.hopfuse").read_bytes()


QUESTIONS = ["Where did the director of Alien study?", "Who is from Tyneside?"]
MENTIONS = [["Alien"], ["South Shields"]]


def world() -> tuple[hf.Index, hf.encoders.ArrayEncoder]:
    """Films and people in six passages, and vectors of the questions."""
    names = ["Alien", "Ridley Scott", "South Shields", "Hartlepool"]
    triples = [
        ("Alien", "directed by", "Ridley Scott", 0),
        ("Ridley Scott", "born in", "South Shields", 1),
        ("Ridley Scott", "studied in", "Hartlepool", 2),
    ]
    texts = [
        ("film", "Alien", "Alien was directed by Ridley Scott."),
        ("birth", "Ridley Scott", "Scott was born in South Shields."),
        ("school", "", "Scott studied in Hartlepool."),
        ("town", "South Shields", "A town at the mouth of the Tyne."),
        ("harbour", "Hartlepool", "A harbour in the county of Durham."),
        ("sea", "", "The sea is salt."),
    ]
    edges = [(0, 6), (0, 7), (1, 7), (1, 8), (2, 7), (2, 9), (3, 8), (4, 9), (6, 7), (7, 8), (7, 9)]
    index = hf.Index.build(
        passages=[{"id": id, "title": title, "text": text} for id, title, text in texts],
        vectors=vectors(6, 4),
        entities=names,
        entity_vectors=vectors(4, 4),
        graph=[{"src": a, "dst": b, "type": "relation" if a >= 6 else "mention"} for a, b in edges],
        facts=hf.Facts.from_names(triples, names, len(texts)),
        metric="cosine",
    )
    asked = dict(zip(QUESTIONS, np.array([[1.0, 0.5, 0.0, -0.5], [0.0, -1.0, 0.25, 1.0]]), strict=True))
    return index, hf.encoders.ArrayEncoder(4, queries=asked, name="golden")


def traces(name: str) -> str:
    """Return what a recipe finds for the questions, and why, as JSON."""
    index, encoder = world()
    recipe = RECIPES[name](index, encoder=encoder)
    found = recipe.search(QUESTIONS, k=3, trace=True, **({"entities": MENTIONS} if recipe.needs.entities else {}))
    hits = [[[row, float(score)] for row, score in found.hits.row(b)] for b in range(len(QUESTIONS))]
    return json.dumps({"hits": hits, "traces": found.traces}, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    for name, index in indexes().items():
        (HERE / "index" / f"{name}.hopfuse").write_bytes(index_bytes(index))
    for name, given in logs().items():
        for kind, data in zip(("generation", "log"), log_files(*given), strict=True):
            (HERE / "log" / f"{name}.{kind}").write_bytes(data)
    for name in RECIPES:
        (HERE / "traces" / f"{name}.json").write_text(traces(name), encoding="utf-8")


if __name__ == "__main__":
    main()
