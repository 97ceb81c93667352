"""Measure what titles add to passages' vectors; writes experiments/results/titles.json.

python -m experiments.titles [--data FOLDER] [--out FILE]

``python -m experiments.pages`` reads the result. Vectors are WordLlama's.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.encoders import WordLlamaEncoder
from hopfuse.evaluate import Qrels, compare, evaluate, parse_metric

from bench.machine import commit

from .folders import add_data_option, question_folders, questions_of, read_lines
from .record import RECORDED, write_results

RESULTS = RECORDED / "titles.json"
FOLDERS = ("hotpotqa", "musique-train", "2wiki-dev300")
METRICS = ("recall@5", "recall@10", "last_hop@5")
#: What the vectors read.
TEXTS, TITLED = "texts", "titles and texts"
K = 10


def of_folder(folder: Path, encoder: WordLlamaEncoder) -> dict[str, Any]:
    """Return the means of dense retrieval by what the vectors read, and the difference that titles make, by metric."""
    qrels, passages = Qrels.read_jsonl(folder / "queries.jsonl"), list(read_lines(folder / "passages.jsonl"))
    questions, texts = encoder.encode_queries(questions_of(folder)), [row["text"] for row in passages]
    indexes = {
        TEXTS: hf.Index.from_texts(texts, encoder=encoder),
        TITLED: hf.Index.from_texts(passages, encoder=encoder),
    }
    runs = {read: hf.dense_topk(questions, index.corpus, K) for read, index in indexes.items()}
    found = evaluate(qrels, runs, METRICS).per_query
    return {"questions": len(qrels), "metrics": {metric: compared(found, metric) for metric in METRICS}}


def compared(found: Mapping[str, Any], metric: str) -> dict[str, Any]:
    """Return the means with and without titles by one metric, and the paired comparison of the two."""
    without, titled = (found[read][metric] for read in (TEXTS, TITLED))
    c = compare(titled, without, binary=parse_metric(metric).binary)
    means = {TEXTS: float(np.nanmean(without)), TITLED: float(np.nanmean(titled))}
    return {**means, "wins": c.wins, "losses": c.losses, "p": c.p_value}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.titles", description=__doc__)
    add_data_option(parser)
    parser.add_argument("--out", type=Path, default=RESULTS, help="file of results")
    args = parser.parse_args()
    folders, encoder = question_folders(args.data, FOLDERS, parser), WordLlamaEncoder()
    write_results(args.out, {**commit(), "folders": {folder.name: of_folder(folder, encoder) for folder in folders}})
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
