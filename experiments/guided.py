"""Ablations of GuidedWalk: without each part, with other options, with other encoders, and with title edges.

python -m experiments.guided [--data FOLDER] [--newcomers]

Writes experiments/results/guided.json, which python -m experiments.pages reads.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.encoders import WordLlamaEncoder
from hopfuse.evaluate import compare, in_test_half
from hopfuse.extract import EntityLinker
from numpy.typing import NDArray

from examples.atlas import build_atlas
from examples.atlas.data import atlas_data

from .folders import add_data_option, asked, load_index, question_folders, read_lines
from .side_by_side import ROOT
from .similarity import vectors_of

RESULTS = ROOT / "experiments" / "results" / "guided.json"
FOLDERS = ("hotpotqa", "musique-train", "2wiki-dev300")
WHOLE, K = "GuidedWalk", 5
UNGUIDED: dict[str, Any] = {"floor": 1.0}  # every passage weighs 1
WORDLESS: dict[str, Any] = {"word_boost": 0.0}
#: Options that differ from the defaults, by name of the run.
RUNS: dict[str, dict[str, Any]] = {
    WHOLE: {},
    "without A": UNGUIDED,
    "without B": {"second_mass": 0.0},
    "without A and B": {**UNGUIDED, "second_mass": 0.0},
    "without words": WORDLESS,
    "without words and A": {**WORDLESS, **UNGUIDED},
    "without words, A and B": {**WORDLESS, **UNGUIDED, "second_mass": 0.0},
    "word_boost 1": {"word_boost": 1.0},
    "word_boost 4": {"word_boost": 4.0},
    "tau 0.7": {"tau": 0.7},
    "tau 1.0": {"tau": 1.0},
    "tau 1.4": {"tau": 1.4},
    "tau 2.8": {"tau": 2.8},
    "floor 0.0001": {"floor": 1e-4},
    "floor 0.001": {"floor": 1e-3},
    "floor 0.1": {"floor": 0.1},
    "weights of all questions alike": {"dense_weight": 0.001},
    "second_top 1": {"second_top": 1},
    "second_top 2": {"second_top": 2},
    "second_top 5": {"second_top": 5},
    "second_mass 0.25": {"second_mass": 0.25},
    "second_mass 0.75": {"second_mass": 0.75},
    "depth 2": {"depth": 2},
    "first dense": {"first": "dense"},
    "damping 0.5": {"damping": 0.5},
    "damping 0.7": {"damping": 0.7},
    "damping 0.85": {"damping": 0.85},
}
#: Runs over an index whose graph also has edges of type TITLE.
TITLE = "title"
TITLED = {f"title edges of weight {weight:g} (C)": {"edge_weights": {TITLE: weight}} for weight in (1.0, 0.3)}
#: Runs over an index with another encoder's vectors.
BY_ENCODER: dict[str, dict[str, Any]] = {
    name: RUNS[name] for name in (WHOLE, "without A", "without A and B", "without words", "tau 1.0", "tau 1.4")
}

#: Runs over the atlas, whose questions were not used for any choice.
NEWCOMERS: dict[str, dict[str, Any]] = {
    name: RUNS[name] for name in (WHOLE, "without words", "word_boost 1", "word_boost 4", "second_mass 0.75", "tau 1.4")
}
ASKED = ROOT / "tests" / "examples" / "newcomer_questions.jsonl"

Shares = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Questions:
    """The questions of a folder with a known last hop: texts, vectors, mentions, last hops, and halves."""

    texts: list[str]
    vectors: NDArray[Any]
    entities: list[list[str]]
    last_hops: list[list[int]]
    is_test: NDArray[np.bool_]
    rows: NDArray[np.int64]

    def by(self, vectors: NDArray[Any]) -> Questions:
        """Return the same questions with other vectors, given for all questions of the folder."""
        return replace(self, vectors=vectors[self.rows])

    def shares(self, hits: hf.Hits) -> Shares:
        """Return the share of each question's last hop among its first five hits."""
        pairs = zip(self.last_hops, hits.head(K).ids, strict=True)
        return np.array([np.isin(hop, found).mean() for hop, found in pairs])


def questions_of(folder: Path) -> Questions:
    """Read the questions of a folder."""
    rows, given = list(read_lines(folder / "queries.jsonl")), asked(folder)
    known = np.array([at for at, row in enumerate(rows) if row["last_hop"]])
    return Questions(
        [rows[at]["question"] for at in known],
        given["vectors"][known],
        [given["entities"][at] for at in known],
        [rows[at]["last_hop"] for at in known],
        in_test_half([rows[at]["id"] for at in known]),
        known,
    )


def with_title_edges(index: hf.Index) -> hf.Index:
    """Return the same index with edges from each passage's title entity to the other entities in the passage."""
    graph, passages = index.graph, index.num_passages
    node = {" ".join(name.casefold().split()): passages + at for at, name in enumerate(index.entity_names)}
    mentions = hf.Incidence.from_graph(graph, passages)
    pairs = set()
    for passage, title in enumerate(index.titles):
        entity = node.get(" ".join(title.casefold().split()))
        if entity is not None:
            named = mentions.indices[mentions.indptr[passage] : mentions.indptr[passage + 1]].tolist()
            pairs |= {(entity, other) for other in named if other != entity}
    source, target, weight, kind = graph.edges()
    names = list(graph.edge_type_names)
    more = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    titled = hf.Graph.from_edges(
        np.concatenate([source, more[:, 0]]),
        np.concatenate([target, more[:, 1]]),
        np.concatenate([weight, np.ones(len(more), np.float32)]),
        num_nodes=graph.num_nodes,
        edge_type=np.concatenate([kind, np.full(len(more), len(names))]),
        edge_type_names=[*names, TITLE],
    )
    texts = zip(index.titles, index.texts, strict=True)
    built = hf.Index.build(
        passages=[{"title": title, "text": text} for title, text in texts],
        vectors=index.vectors,
        entities=list(index.entity_names),
        entity_vectors=index.entity_vectors,
        graph=titled,
        storage="float16",
    )
    return built.with_lexical(index.lexical)


def measured(
    index: hf.Index, asked: Questions, runs: Mapping[str, Mapping[str, Any]], encoder: Any
) -> Iterator[tuple[str, Shares]]:
    """Yield each run's name, and the share of the last hop that it finds for each question."""
    for name, options in runs.items():
        retriever = hf.Retriever(index, "guided-walk", encoder=encoder, **options)
        found = retriever.search(asked.texts, vectors=asked.vectors, entities=asked.entities, k=K)
        yield name, asked.shares(found.hits)


def of_folder(folder: Path, encoder: WordLlamaEncoder) -> dict[str, Any]:
    """Return the shares of every run of a folder by name, and by encoder and name, and the half of each question."""
    index, questions = load_index(folder, encoder), questions_of(folder)
    runs = dict(measured(index, questions, RUNS, encoder))
    runs |= dict(measured(with_title_edges(index), questions, TITLED, encoder))
    runs |= {"dense": questions.shares(hf.dense_topk(questions.vectors, index.corpus, K))}
    encoders = {}
    _, *others = vectors_of(folder, encoder).items()  # the first is the folder's own
    for name, (vectors, passages) in others:
        own, other = questions.by(vectors), index.with_vectors(passages)
        encoders[name] = {"dense": own.shares(hf.dense_topk(own.vectors, other.corpus, K))}
        encoders[name] |= dict(measured(other, own, BY_ENCODER, encoder))
    return {"is_test": questions.is_test, "runs": runs, "encoders": encoders}


def newcomers(encoder: WordLlamaEncoder) -> dict[str, Any]:
    """Count newcomers' questions about the atlas whose passage is among the first five hits, by options."""
    index, rows = atlas_data(build_atlas(), encoder).index, [row for row in read_lines(ASKED) if "passage" in row]
    questions, matcher = [row["question"] for row in rows], EntityLinker(index)
    found = {}
    for name, options in NEWCOMERS.items():
        retriever = hf.Retriever(index, "guided-walk", encoder=encoder, names=matcher, **options)
        hits = retriever.search(questions, k=K)
        listed = [{hit.id for hit in hits[b]} for b in range(len(rows))]
        found[name] = sum(row["passage"] in ids for row, ids in zip(rows, listed, strict=True))
    return {"questions": len(rows), "found": found}


def summed_up(folders: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return means of both halves of each folder, and each run's difference from the full recipe on the test halves."""

    def rows(pick: Callable[[Mapping[str, Any]], Mapping[str, Shares]]) -> dict[str, Any]:
        by_folder = {name: pick(one) for name, one in folders.items()}
        test = {name: one["is_test"] for name, one in folders.items()}
        made = {}
        for run in next(iter(by_folder.values())):
            halves = {
                name: [float(shares[run][~test[name]].mean()), float(shares[run][test[name]].mean())]
                for name, shares in by_folder.items()
            }
            mine, whole = (
                np.concatenate([shares[one][test[name]] for name, shares in by_folder.items()]) for one in (run, WHOLE)
            )
            c = compare(mine, whole, binary=False)
            made[run] = {"halves": halves, "difference": c.difference, "low": c.low, "high": c.high}
        return made

    encoders = next(iter(folders.values()))["encoders"]
    return {
        "questions": {name: [int((~one["is_test"]).sum()), int(one["is_test"].sum())] for name, one in folders.items()},
        "runs": rows(lambda one: one["runs"]),
        "encoders": {name: rows(lambda one, name=name: one["encoders"][name]) for name in encoders},
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.guided", description=__doc__)
    add_data_option(parser)
    parser.add_argument(
        "--newcomers", action="store_true", help="only the atlas's questions; keep the folders' results"
    )
    args = parser.parse_args()
    encoder = WordLlamaEncoder()
    if args.newcomers:
        write(json.loads(RESULTS.read_text(encoding="utf-8")) | {"newcomers": newcomers(encoder)})
        return
    folders = {}
    for folder in question_folders(args.data, FOLDERS, parser):
        name = folder.name
        folders[name] = of_folder(folder, encoder)
        print(name, {run: round(float(shares.mean()), 3) for run, shares in folders[name]["runs"].items()}, flush=True)
    write(summed_up(folders) | {"newcomers": newcomers(encoder)})


def write(found: Mapping[str, Any]) -> None:
    """Write the results."""
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
