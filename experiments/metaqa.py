"""TripleHybrid on MetaQA: quality by number of hops, and speed.

python -m experiments.metaqa [--data FOLDER] [--questions 1000] [--speed]

Writes experiments/results/metaqa.json, which python -m experiments.pages reads. With --speed, writes times to
experiments/results/metaqa-speed.json instead.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.encoders import WordLlamaEncoder
from hopfuse.evaluate import Evaluation, Qrels, evaluate
from hopfuse.lexical import BM25
from numpy.typing import NDArray

from bench.machine import commit, machine

from .folders import add_data_option
from .record import RECORDED, figures, write_results

METRICS = ("recall@10", "hit@10", "mrr", "ndcg@10")
HOPS = (1, 2, 3)
COMPARED = "hit@10"
RESULTS, SPEED = RECORDED / "metaqa.json", RECORDED / "metaqa-speed.json"
BATCH = 32
#: Maximum number of facts in an entity's text; genres and years have thousands.
FACTS_OF_A_TEXT = 20
QUESTIONS = 1000
#: The mode and options of the recipe, by name of the run.
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "vector": ("vector", {}),
    "bm25": ("lexical", {}),
    "graph": ("graph", {}),
    "hybrid": ("hybrid", {"calibration": "none"}),
    "hybrid, min_max": ("hybrid", {}),
    "graph, words": ("graph", {"unit": "words"}),
    "graph, multisets": ("graph", {"repeats": True}),
    "graph, 2 hops": ("graph", {"hops": 2}),
}


@dataclass(frozen=True)
class Question:
    text: str
    hops: int
    answers: tuple[str, ...]
    topic: str


def questions_of(folder: Path, most: int) -> list[Question]:
    """Return ``most`` questions of each number of hops, by smallest MD5 hash, without the brackets around topics."""
    chosen = []
    for hops in HOPS:
        rows = [(text, tuple(answers.split("|"))) for text, answers in _tsv(folder / f"qa_{hops}hop_dev.txt")]
        rows.sort(key=lambda row: hashlib.md5(row[0].encode(), usedforsecurity=False).digest())
        chosen += [_question(text, hops, answers) for text, answers in rows[:most]]
    return chosen


def _question(text: str, hops: int, answers: tuple[str, ...]) -> Question:
    topic = re.search(r"\[(.+)\]", text)
    return Question(re.sub(r"[\[\]]", "", text), hops, answers, topic[1] if topic else "")


def facts_of(folder: Path) -> tuple[list[str], hf.Facts]:
    """Return the entities, first those of entity2text.txt in order, and all facts, as stated by a single passage."""
    rows = list(_tsv(folder / "kb.tsv"))
    names = [name for _, name in _tsv(folder / "entity2text.txt")]
    entities = list(dict.fromkeys([*names, *(row[end] for row in rows for end in (0, 2))]))
    return entities, hf.Facts.from_names([(*row, 0) for row in rows], entities, 1)


def entity_texts(entities: list[str], facts: hf.Facts) -> list[str]:
    """Return a text for each entity, of its name and the first facts about it."""
    texts = facts.texts(entities)
    return [
        ". ".join([name, *(texts[at] for at in own)]) for name, own in zip(entities, facts_about(facts), strict=True)
    ]


def facts_about(facts: hf.Facts) -> list[list[int]]:
    """Return, for each entity, the first facts that name it."""
    ends = pairwise(facts.incident_indptr.tolist())
    return [facts.incident[begin : min(end, begin + FACTS_OF_A_TEXT)].tolist() for begin, end in ends]


@dataclass(frozen=True)
class Collection:
    """The knowledge graph with vectors and BM25 over its entities' texts, and the questions with vectors."""

    index: hf.Index
    lexical: BM25
    questions: list[Question]
    vectors: NDArray[np.float32]

    @classmethod
    def read(cls, folder: Path, encoder: WordLlamaEncoder, most: int = QUESTIONS) -> Collection:
        (entities, facts), questions = facts_of(folder), questions_of(folder, most)
        texts = entity_texts(entities, facts)
        index = hf.Index.build(
            passages=[{"text": "All facts."}],
            entities=entities,
            entity_vectors=encoder.encode_passages(texts),
            facts=facts,
            metric="cosine",
        )
        asked = encoder.encode_queries([q.text for q in questions])
        return cls(index, BM25.build(texts), questions, asked)

    def recipe(self, **options: Any) -> hf.recipes.TripleHybrid:
        return hf.recipes.TripleHybrid(self.index, lexical=self.lexical, **options)

    @property
    def qrels(self) -> Qrels:
        """Judgements, with a question's answers as its last hop."""
        number = {name: at for at, name in enumerate(self.index.entity_names)}
        gold = [sorted({number[answer] for answer in q.answers}) for q in self.questions]
        hops = [[*([()] * (q.hops - 1)), right] for q, right in zip(self.questions, gold, strict=True)]
        return Qrels([str(at) for at in range(len(gold))], gold, hops)

    def batches(self, recipe: hf.recipes.TripleHybrid) -> Iterator[dict[str, Any]]:
        """Yield what the recipe reads of each batch of questions."""
        texts = [q.text for q in self.questions]
        for begin in range(0, len(texts), BATCH):
            vectors = self.vectors[begin : begin + BATCH] if recipe.needs.vectors else None
            yield {"queries": texts[begin : begin + BATCH], "vectors": vectors}


def run(collection: Collection, mode: str, options: dict[str, Any]) -> hf.Hits:
    """Return the ten best entities for every question, searched in batches."""
    recipe = collection.recipe(mode=mode, **options)
    found = [recipe.search(**asked).hits for asked in collection.batches(recipe)]
    ids, scores, counts = (
        np.concatenate([getattr(hits, part) for hits in found]) for part in ("ids", "scores", "counts")
    )
    short = ((0, 0), (0, max(0, 10 - ids.shape[1])))  # if there are fewer than ten entities
    return hf.Hits(np.pad(ids, short, constant_values=-1), np.pad(scores, short, constant_values=-np.inf), counts)


def evaluation(collection: Collection, runs: dict[str, tuple[str, dict[str, Any]]]) -> Evaluation:
    found = {name: run(collection, mode, options) for name, (mode, options) in runs.items()}
    return evaluate(collection.qrels, found, METRICS, baseline="vector")


def speed(collection: Collection) -> dict[str, Any]:
    """Return the seconds per batch of 32, median and 95th percentile, without encoding."""
    taken_by = {}
    for name, (mode, options) in RUNS.items():
        recipe = collection.recipe(mode=mode, **options)
        taken = []
        for asked in collection.batches(recipe):
            begin = time.perf_counter()
            recipe.search(**asked)
            if len(asked["queries"]) == BATCH:
                taken.append(time.perf_counter() - begin)
        half, most = np.quantile(taken[1:], [0.5, 0.95]).tolist()  # the first call prepares the corpus
        taken_by[name] = {"median": half, "p95": most, "batches": len(taken) - 1}
    return {"machine": machine(), "commit": commit(), "batch": BATCH, "seconds": taken_by}


def _tsv(path: Path) -> Iterator[list[str]]:
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            yield line.rstrip("\n").split("\t")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.metaqa", description=__doc__)
    add_data_option(parser)
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="questions of each number of hops")
    parser.add_argument("--out", type=Path, default=RESULTS, help="file of results")
    parser.add_argument("--speed", action="store_true", help=f"time batches of 32, and write {SPEED.name}")
    args = parser.parse_args()
    folder = args.data / "metaqa"
    if not folder.is_dir():
        parser.error(f"{args.data} has no folder metaqa; give --data")
    encoder = WordLlamaEncoder()
    if args.speed:
        numbers = speed(Collection.read(folder, encoder, args.questions))
        SPEED.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {SPEED}")
    else:
        result = evaluation(Collection.read(folder, encoder, args.questions), RUNS)
        write_results(args.out, {**commit(), "of each number of hops": args.questions, **figures(result, (COMPARED,))})
        print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
