"""A small memory of HippoRAG's own making, with computed vectors and a computed filter of facts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.drop_ins.hipporag_models import key_of, make_rag, write_openie

#: Words of so many dimensions: a text's vector is the sum of its words', so that shared words make texts alike.
DIMENSIONS = 64

PASSAGES = {
    "Ada Lovelace\nAda Lovelace wrote notes on the Analytical Engine of Charles Babbage.": [
        ["Ada Lovelace", "wrote notes on", "Analytical Engine"],
        ["Analytical Engine", "designed by", "Charles Babbage"],
    ],
    "Charles Babbage\nCharles Babbage was born in London and held a chair at Cambridge.": [
        ["Charles Babbage", "born in", "London"],
        ["Charles Babbage", "held a chair at", "Cambridge"],
    ],
    "London\nLondon is the capital of England. The Thames flows through it.": [
        ["London", "is the capital of", "England"],
        ["Thames", "flows through", "London"],
    ],
    "Cambridge\nCambridge is a town in England with a university.": [["Cambridge", "is a town in", "England"]],
    "Grace Hopper\nGrace Hopper wrote a compiler for the UNIVAC.": [
        ["Grace Hopper", "wrote", "compiler"],
        ["Grace Hopper", "worked on", "UNIVAC"],
    ],
    "UNIVAC\nThe UNIVAC was built in Philadelphia.": [["UNIVAC", "built in", "Philadelphia"]],
    "Alan Turing\nAlan Turing was born in London and studied at Cambridge.": [
        ["Alan Turing", "born in", "London"],
        ["Alan Turing", "studied at", "Cambridge"],
    ],
    "Enigma\nAlan Turing broke the Enigma at Bletchley Park.": [
        ["Alan Turing", "broke", "Enigma"],
        ["Enigma", "broken at", "Bletchley Park"],
    ],
    "A poem\nShall I compare thee to a summer's day?": [],
    "Bletchley\nBletchley Park is a house in England.": [["Bletchley Park", "is a house in", "England"]],
}
QUESTIONS = [
    "Where was the designer of the Analytical Engine born?",
    "Which river flows through the birthplace of Alan Turing?",
    "Who wrote a compiler?",
    "Where was the machine of Grace Hopper built?",
    "In which country is the house where the Enigma was broken?",
    "To what is a summer's day compared?",
    "Which capital has Charles Babbage's birthplace?",
]


def word_vectors(texts: Sequence[str]) -> np.ndarray[Any, Any]:
    """Return a unit vector for each text, float64 as those of OpenAI's endpoint are."""
    rows = np.zeros((len(texts), DIMENSIONS))
    for row, text in zip(rows, texts, strict=True):
        for word in "".join(c if c.isalnum() else " " for c in text.lower()).split() or ["nothing"]:
            seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "little")
            row += np.random.default_rng(seed).standard_normal(DIMENSIONS)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def some_facts(question: str, facts: list[list[str]]) -> list[list[str]]:
    """Return the facts that share a word of more than three letters with the question."""
    words = {word.strip("?.,'s").lower() for word in question.split() if len(word) > 3}
    return [fact for fact in facts if words & {word.lower() for part in fact for word in part.split()}]


def small_rag(folder: Path, passages: Mapping[str, list[list[str]]] = PASSAGES, **options: Any) -> Any:
    """Return a HippoRAG that has indexed passages by its own ``index``, from what OpenIE would have found."""
    rag = make_rag(folder, **({"encode": word_vectors, "keep": some_facts} | options))
    write_openie(rag, passages)
    rag.index(list(passages))
    return rag


def plain(text: str) -> str:
    return "".join(c if c.isalnum() or c == " " else " " for c in text.lower()).strip()


def write_store(folder: Path, kind: str, texts: list[str], vectors: Any) -> None:
    import pyarrow
    import pyarrow.parquet

    folder = folder / f"{kind}_embeddings"
    folder.mkdir(parents=True)
    columns = {"hash_id": [key_of(text, kind) for text in texts], "content": texts, "embedding": list(vectors)}
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / f"vdb_{kind}.parquet")


def write_outputs(folder: Path, reader: str, model: str) -> Path:
    """Write the files that HippoRAG writes, as its release 2.0.0a4 does, into a folder, and return it."""
    entities = sorted({plain(end) for triples in PASSAGES.values() for h, _, t in triples for end in (h, t)})
    write_store(folder / model, "chunk", list(PASSAGES), word_vectors(list(PASSAGES)))
    write_store(folder / model, "entity", entities, word_vectors(entities).astype(np.float32))
    docs = [
        {"idx": f"?{at}", "passage": text, "extracted_entities": [], "extracted_triples": [*triples, ["broken"]]}
        for at, (text, triples) in enumerate(PASSAGES.items())
    ]
    (folder / f"openie_results_ner_{reader}.json").write_text(json.dumps({"docs": docs}), encoding="utf-8")
    (folder / model / "graph.pickle").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")  # runs what it likes, if read
    return folder
