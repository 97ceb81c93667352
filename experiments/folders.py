"""Read question folders: an index of each, and its questions as arguments of recipes.

python -m experiments.folders [--data FOLDER]

Writes the sizes of the shared folders to experiments/results/folders.json, which python -m experiments.pages reads.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.encoders import Encoder
from hopfuse.lexical import BM25

from bench.data_sets import data_root

from .record import RECORDED, write_results

#: Folders of questions over passages.
NAMES = ("hotpotqa", "musique-train", "2wiki-dev300", "musique-openie")
QUANTILES = {"10 %": 0.1, "median": 0.5, "90 %": 0.9}


def add_data_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--data``, the folder that contains the question folders."""
    root = data_root()
    parser.add_argument("--data", type=Path, default=root, help=f"folder of question folders [default: {root}]")


def question_folders(data: Path, names: Iterable[str], parser: argparse.ArgumentParser) -> list[Path]:
    """Return question folders below ``--data``; end the command if one is absent."""
    folders = [data / name for name in names]
    absent = [folder.name for folder in folders if not folder.is_dir()]
    if absent:
        parser.error(f"{data} has no folder {', '.join(absent)}; give --data")
    return folders


def read_tsv(path: Path) -> Iterator[list[str]]:
    """Yield the rows of a tab-separated file without quoting."""
    with path.open(encoding="utf-8", newline="") as lines:
        yield from csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON lines file."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def load_index(folder: Path, encoder: Encoder) -> hf.Index:
    """Return an index of a folder; entity names have vectors, for mentions that match no name."""
    kinds, names = zip(*((row[1], row[2]) for row in read_tsv(folder / "graph" / "nodes.tsv")), strict=True)
    entities = [name for kind, name in zip(kinds, names, strict=True) if kind == "entity"]
    index = hf.Index.build(
        passages=folder / "passages.jsonl",
        vectors=folder / "passage_emb.f16.npy",
        entities=entities,
        entity_vectors=encoder.encode_passages(entities),
        graph=[
            {"src": int(a), "dst": int(b), "type": kind, "weight": float(weight)}
            for a, b, kind, weight in read_tsv(folder / "graph" / "edges.tsv")
        ],
        facts=(
            {"head": int(head), "relation": relation, "tail": int(tail), "passage": int(passage)}
            for head, relation, tail, passage in read_tsv(folder / "graph" / "facts.tsv")
        ),
        fact_ends="node",
        storage="float16",
    )
    return index.with_lexical(BM25.build(index.texts_to_index()).matrix)


def asked(folder: Path) -> dict[str, Any]:
    """Return the vectors and mentions of a folder's questions."""
    mentions = [[name for name, _ in row["entities"]] for row in read_lines(folder / "query_entities.jsonl")]
    return {"vectors": np.load(folder / "query_emb.f16.npy"), "entities": mentions}


def questions_of(folder: Path) -> list[str]:
    """Return the texts of a folder's questions."""
    return [row["question"] for row in read_lines(folder / "queries.jsonl")]


def size_of(folder: Path) -> dict[str, Any]:
    """Return the number of passages and of questions, and how long a passage is."""
    lengths = [len(row["text"].split()) for row in read_lines(folder / "passages.jsonl")]
    gold = [len(row["gold"]) for row in read_lines(folder / "queries.jsonl")]
    return {
        "passages": len(lengths),
        "questions": len(gold),
        "words of a passage": dict(
            zip(QUANTILES, np.quantile(lengths, (0.1, 0.5, 0.9)).astype(int).tolist(), strict=True)
        ),
        "gold passages of a question": float(np.mean(gold)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.folders", description=__doc__)
    add_data_option(parser)
    args = parser.parse_args()
    found = {name: size_of(args.data / name) for name in NAMES if (args.data / name).is_dir()}
    write_results(RECORDED / "folders.json", found)


if __name__ == "__main__":
    main()
