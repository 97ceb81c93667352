"""A second stage that reads question and passage together: what it does to multi-hop questions.

python -m bench.experiments.reranking --model FOLDER [--data FOLDER]

The folder is that of a saved cross-encoder ; :mod:`.train_cross_encoder` makes one where none is at hand.
``python -m bench.experiments --page-only`` puts the numbers on the page.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import hopfuse as hf
from hopfuse.encoders import CrossEncoderReranker, Reranker, WordLlamaEncoder, rerank

from .arms import POOLS
from .design import METRICS, Arm, Halves, Question, answer
from .files import RERANKING, TRAINING, add_data, folders_of, read_results, write_results
from .legs import Legs, open_legs

CANDIDATES = 20

QUESTION = Question(
    "reranking",
    "A cross-encoder as second stage",
    f"The first {CANDIDATES} passages of RRF over three legs (k = 60, equal weights) are scored by a cross-encoder: "
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
    """What the second stage reads."""
    return hf.fuse([legs.lists[leg] for leg in POOLS], method="rrf", pool=tuple(POOLS.values()), k=CANDIDATES)


def reranked(halves: Mapping[str, Halves], reranker: Reranker) -> dict[str, Halves]:
    """The same, with the list "reranked" in the test halves."""
    made = {}
    for folder, (tune, test) in halves.items():
        hits = rerank(candidates(test), test.questions, test.passages, reranker, k=CANDIDATES)
        made[folder] = (tune, replace(test, lists={**test.lists, "reranked": hits}))
    return made


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.experiments.reranking", description=__doc__)
    add_data(parser)
    parser.add_argument("--model", type=Path, required=True, help="a saved CrossEncoder of one output")
    parser.add_argument("--results", type=Path, default=RERANKING, help="where the numbers go")
    args = parser.parse_args(argv)
    encoder = WordLlamaEncoder()
    halves = {folder.name: open_legs(folder, encoder).halves() for folder in folders_of(args.data, parser)}
    result = answer(QUESTION, reranked(halves, CrossEncoderReranker(args.model)))
    versions = {name: version(name) for name in ("sentence-transformers", "torch")}
    training = args.model / TRAINING
    trained = {"training": read_results(training)} if training.is_file() else {}
    about = {"model": args.model.resolve().name, "candidates": CANDIDATES, **versions}
    write_results(args.results, {**about, **trained, "question": result})
    print(f"wrote {args.results}")


if __name__ == "__main__":
    main()
