"""Compare the seeds that matchers find in questions typed in several styles, and the quality of walks from them.

python -m experiments.seeds [--data FOLDER] [--half tune|test|all] [--out FILE]

Prints the table of docs/extraction.md: 300 questions about the atlas, which name one place each, and the folders, whose
mentions (by spaCy, in the questions as written) are the reference.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.encoders import WordLlamaEncoder
from hopfuse.evaluate import SPLITS, in_test_half
from hopfuse.extract import EntityLinker, Gazetteer
from hopfuse.lexical import BM25
from numpy.typing import NDArray

from bench.markdown import table
from bench.result_file import ResultFile, add_out_option
from examples.atlas import build_atlas
from examples.atlas.data import atlas_data

from .folders import add_data_option, asked, read_lines, read_tsv
from .seed_questions import MANNERS, seed_questions

FOLDERS = ("hotpotqa", "musique-train", "2wiki-dev300")
COLUMNS = ["questions", "typed", "matcher", "precision", "recall", "last hop in 5", "with words"]
LINKER, ANY_CASE = "EntityLinker", "Gazetteer"
FOLDER_MANNERS = ("as written", "lower case")


@dataclass(frozen=True, eq=False)
class Questions:
    """Questions, the entities that each means, the passages of its last hop, and whether it is in the test half."""

    texts: Sequence[str]
    meant: Sequence[set[int]]
    last: Sequence[Sequence[int]]
    is_test: NDArray[np.bool_]

    def take(self, rows: NDArray[Any]) -> Questions:
        """Return some of the questions, by a mask or by their numbers."""
        kept = np.arange(len(self.texts))[rows].tolist()
        parts = [[part[row] for row in kept] for part in (self.texts, self.meant, self.last)]
        return Questions(*parts, self.is_test[kept])  # type: ignore[arg-type]

    def half(self, half: str) -> Questions:
        """Return the questions of a half, or all."""
        return self if half == "all" else self.take(self.is_test == (half == "test"))


def measured(
    index: hf.Index,
    questions: Questions,
    manners: Sequence[str],
    *,
    encoder: WordLlamaEncoder | None = None,
    vectors: NDArray[Any] | None = None,
) -> list[list[str]]:
    """Return a row for each style and matcher.

    It has precision and recall of the entities found, and the share of last hops in GuidedWalk's first five hits,
    without and with words, with an encoder or the questions' vectors.
    """
    legs: list[dict[str, Any]] = [{}, {"lexical": BM25(index.lexical)}]
    recipes = [hf.recipes.GuidedWalk(index, encoder=encoder, **leg) for leg in legs]
    rows = []
    for manner in manners:
        texts = [MANNERS[manner](text) for text in questions.texts]
        for name, matcher in matchers_of(index).items():
            found = matcher.match(texts)
            named = [{match.entity for match in row} for row in found]
            right = sum(len(some & all) for some, all in zip(named, questions.meant, strict=True))
            values = [right / max(1, sum(map(len, named))), right / sum(map(len, questions.meant))]
            for recipe in recipes:
                hits = recipe.search(texts, vectors=vectors, entities=found, k=5).hits.ids.tolist()
                pairs = zip(hits, questions.last, strict=True)
                values.append(float(np.mean([len({*ids} & {*last}) / len({*last}) for ids, last in pairs if last])))
            rows.append([manner, name, *(f"{100 * value:.1f}" for value in values)])
    return rows


def atlas_rows(half: str) -> list[list[str]]:
    """Return the rows of the atlas: all questions, and those about names that are common words."""
    encoder, atlas = WordLlamaEncoder(), build_atlas()
    index, made = atlas_data(atlas, encoder).index, seed_questions(atlas)
    texts = [question.text for question in made]
    whole = Questions(texts, [{q.entity} for q in made], [[q.answer] for q in made], in_test_half(texts))
    common = whole.take(np.array([question.common for question in made]))
    return [
        [name, *row]
        for name, questions in (("atlas", whole), ("atlas, common words", common))
        for row in measured(index, questions.half(half), tuple(MANNERS), encoder=encoder)
    ]


def folder_rows(folder: Path, half: str) -> list[list[str]]:
    """Return the rows of a folder, as written and in lower case; the encoder of its vectors ignores case."""
    index = hf.Index.build(
        passages=folder / "passages.jsonl",
        vectors=folder / "passage_emb.f16.npy",
        entities=[name for _, kind, name in read_tsv(folder / "graph" / "nodes.tsv") if kind == "entity"],
        graph=folder / "graph" / "edges.tsv",
        storage="float16",
    )
    index = index.with_lexical(BM25.build(index.texts_to_index()).matrix)
    rows, given = list(read_lines(folder / "queries.jsonl")), asked(folder)
    seeds = hf.recipes.PhaseGraph(index).search(**given, k=1).seeds.nodes
    meant = [{node - index.num_passages for node in row if node >= 0} for row in seeds.tolist()]
    whole = Questions(
        [row["question"] for row in rows],
        meant,
        [row["last_hop"] for row in rows],
        in_test_half([row["id"] for row in rows]),
    )
    at = np.arange(len(rows)) if half == "all" else np.flatnonzero(whole.is_test == (half == "test"))
    found = measured(index, whole.take(at), FOLDER_MANNERS, vectors=given["vectors"][at])
    return [[folder.name, *row] for row in found]


def matchers_of(index: hf.Index) -> Mapping[str, Any]:
    """Return the entity linker, and a gazetteer of all names that ignores case."""
    aliases = {entity: list(row) for entity, row in enumerate(index.entity_aliases) if row}
    return {LINKER: EntityLinker(index), ANY_CASE: Gazetteer(list(index.entity_names), aliases)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.seeds", description=__doc__)
    add_data_option(parser)
    parser.add_argument("--half", choices=SPLITS, default="all", help="by the MD5 hash of a question's id, or its text")
    add_out_option(parser)
    args = parser.parse_args()
    file = ResultFile(f"python -m experiments.seeds{'' if args.half == 'all' else f' --half {args.half}'}")
    rows = atlas_rows(args.half)
    for name in FOLDERS:
        if (args.data / name).is_dir():
            rows += folder_rows(args.data / name, args.half)
    print(table(COLUMNS, rows), end="")
    for row in rows:
        file.add(**dict(zip(COLUMNS, row, strict=True)))
    file.write(args.out)


if __name__ == "__main__":
    main()
