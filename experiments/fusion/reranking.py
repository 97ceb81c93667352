"""Measure a second stage on multi-hop questions, which scores questions and passages together.

python -m experiments.fusion.reranking --model FOLDER [--data FOLDER]
python -m experiments.fusion.reranking --nanoranker [--data FOLDER]

The folder is that of a saved cross-encoder; nanoranker is a package with its weights (pip install nanoranker).
``python -m experiments.pages`` then adds the results to the page.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import hopfuse as hf
from hopfuse.encoders import CrossEncoderReranker, Reranker, WordLlamaEncoder, rerank

from ..folders import add_data_option, question_folders
from ..published import FOLDERS
from ..record import write_results
from .arms import POOLS
from .design import METRICS, Arm, Halves, Question, answer
from .files import RERANKING
from .legs import Legs, open_legs
from .nanoranker import ABOUT, NanoRanker

CANDIDATES = 20

QUESTION = Question(
    "reranking",
    "A second stage",
    f"The first {CANDIDATES} passages of RRF over three legs (k = 60, equal weights) are scored by a trained model: "
    "put in its order, or fused with the list that they came from (RRF again). Nothing is chosen.",
    (
        Arm("fused", lambda legs, _: candidates(legs)),
        Arm("reranked", lambda legs, _: legs.lists["reranked"]),
        Arm(
            "fused + reranked",
            lambda legs, _: hf.fuse([candidates(legs), legs.lists["reranked"]], method="rrf", k=CANDIDATES),
        ),
    ),
    (("reranked", "fused"), ("fused + reranked", "fused"), ("reranked", "fused + reranked")),
    (*METRICS, "last_hop@5"),
)


def candidates(legs: Legs) -> hf.Hits:
    """Return the candidates of the second stage."""
    return hf.fuse([legs.lists[leg] for leg in POOLS], method="rrf", pool=tuple(POOLS.values()), k=CANDIDATES)


def reranked(halves: Mapping[str, Halves], reranker: Reranker) -> dict[str, Halves]:
    """Return the same halves, with a list ``"reranked"`` in the test halves."""
    made = {}
    for folder, (tune, test) in halves.items():
        hits = rerank(candidates(test), test.questions, test.passages, reranker, k=CANDIDATES)
        made[folder] = (tune, replace(test, lists={**test.lists, "reranked": hits}))
    return made


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.fusion.reranking", description=__doc__)
    add_data_option(parser)
    stage = parser.add_mutually_exclusive_group(required=True)
    stage.add_argument("--model", type=Path, help="folder of a saved CrossEncoder with one output")
    stage.add_argument("--nanoranker", action="store_true", help="use the model of the package nanoranker")
    parser.add_argument("--results", type=Path, default=RERANKING, help="file of the results")
    args = parser.parse_args(argv)
    encoder = WordLlamaEncoder()
    halves = {
        folder.name: open_legs(folder, encoder).halves() for folder in question_folders(args.data, FOLDERS, parser)
    }
    reranker, packages = (
        (NanoRanker(), ("nanoranker", "onnxruntime"))
        if args.nanoranker
        else (CrossEncoderReranker(args.model), ("sentence-transformers", "torch"))
    )
    about = {
        "model": "nanoranker" if args.nanoranker else args.model.resolve().name,
        "about": ABOUT if args.nanoranker else "a cross-encoder",
        "candidates": CANDIDATES,
        "versions": {name: version(name) for name in packages},
    }
    write_results(args.results, {**about, "question": answer(QUESTION, reranked(halves, reranker))})
    print(f"wrote {args.results}")


if __name__ == "__main__":
    main()
