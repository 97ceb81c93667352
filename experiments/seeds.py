"""Compare the seeds that matchers find in questions typed in several styles, and the quality of walks from them.

python -m experiments.seeds [--data FOLDER]

Prints the table of docs/extraction.md: 300 questions about the atlas, which name one place each, and the folders, whose
mentions (by spaCy, in the questions as written) are the reference.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.encoders import WordLlamaEncoder
from hopfuse.extract import EntityLinker, Gazetteer

from bench.markdown import table
from examples.atlas import build_atlas
from examples.atlas.data import atlas_data

from . import side_by_side
from .folders import asked, read_lines, read_tsv
from .seed_questions import MANNERS, seed_questions

FOLDERS = ("hotpotqa", "musique-train", "2wiki-dev300")
COLUMNS = ["questions", "typed", "matcher", "precision", "recall", "last hop in 5"]
LINKER, ANY_CASE = "EntityLinker", "Gazetteer"


def measured(
    index: hf.Index,
    matcher: Any,
    texts: Sequence[str],
    vectors: np.ndarray,
    meant: Sequence[set[int]],
    last: Sequence[Sequence[int]],
) -> list[str]:
    """Return precision and recall of the entities found, and the share of last hops in GuidedWalk's first five hits."""
    found = matcher.match(list(texts))
    named = [{match.entity for match in row} for row in found]
    right = sum(len(some & all) for some, all in zip(named, meant, strict=True))
    hits = hf.recipes.GuidedWalk(index).search(vectors=vectors, entities=found, k=5).hits
    shares = [len({*ids} & {*rows}) / len({*rows}) for ids, rows in zip(hits.ids.tolist(), last, strict=True) if rows]
    values = (right / max(1, sum(map(len, named))), right / sum(map(len, meant)), float(np.mean(shares)))
    return [f"{100 * value:.1f}" for value in values]


def atlas_rows() -> list[list[str]]:
    """Return the rows of the atlas: all questions, and those about names that are common words."""
    encoder, atlas = WordLlamaEncoder(), build_atlas()
    index, asked = atlas_data(atlas, encoder).index, seed_questions(atlas)
    matchers = matchers_of(index)
    rows = []
    for name, group in (("atlas", asked), ("atlas, common words", [question for question in asked if question.common])):
        meant, last = [{question.entity} for question in group], [[question.answer] for question in group]
        for manner, typed in MANNERS.items():
            texts = [typed(question.text) for question in group]
            vectors = encoder.encode_queries(texts)
            rows += [[name, manner, which, *measured(index, m, texts, vectors, meant, last)] for which, m in matchers]
    return rows


def folder_rows(folder: Path) -> list[list[str]]:
    """Return the rows of a folder, as written and in lower case; the encoder of its vectors ignores case."""
    index = hf.Index.build(
        passages=folder / "passages.jsonl",
        vectors=folder / "passage_emb.f16.npy",
        entities=[name for _, kind, name in read_tsv(folder / "graph" / "nodes.tsv") if kind == "entity"],
        graph=folder / "graph" / "edges.tsv",
        storage="float16",
    )
    questions, given = list(read_lines(folder / "queries.jsonl")), asked(folder)
    seeds = hf.recipes.PhaseGraph(index).search(**given, k=1).seeds.nodes
    meant = [{node - index.num_passages for node in row if node >= 0} for row in seeds.tolist()]
    last = [question["last_hop"] for question in questions]
    manners: dict[str, Callable[[str], str]] = {name: MANNERS[name] for name in ("as written", "lower case")}
    rows = []
    for manner, typed in manners.items():
        texts = [typed(question["question"]) for question in questions]
        rows += [
            [folder.name, manner, which, *measured(index, matcher, texts, given["vectors"], meant, last)]
            for which, matcher in matchers_of(index)
        ]
    return rows


def matchers_of(index: hf.Index) -> list[tuple[str, Any]]:
    """Return the entity linker, and a gazetteer of all names that ignores case."""
    aliases = {entity: list(row) for entity, row in enumerate(index.entity_aliases) if row}
    return [(LINKER, EntityLinker(index)), (ANY_CASE, Gazetteer(list(index.entity_names), aliases))]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.seeds", description=__doc__)
    parser.add_argument("--data", type=Path, default=side_by_side.ROOT.parent / "shared" / "data")
    args = parser.parse_args()
    rows = atlas_rows()
    for name in FOLDERS:
        if (args.data / name).is_dir():
            rows += folder_rows(args.data / name)
    print(table(COLUMNS, rows), end="")


if __name__ == "__main__":
    main()
