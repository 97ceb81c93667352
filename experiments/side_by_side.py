"""Compare every recipe and leg on the same questions with ``hopfuse compare``.

python -m experiments.side_by_side [--data FOLDER] [--set NAME ...] [--graph NAME ...] [--untimed]

Sets are question folders: those of shared data, or with --data those that python -m experiments.corpora writes.
Builds indexes of each folder with ``hopfuse build``, with the folder's own graph and with those of this project's
readers. Writes experiments/results/side-by-side.json, which python -m experiments.pages reads.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hopfuse.encoders import WordLlamaEncoder
from hopfuse.evaluate import compare, holm, in_test_half, parse_metric
from numpy.typing import NDArray

from bench.machine import commit
from bench.markdown import table

from . import metaqa_files
from .folders import add_data_option

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "experiments" / "results" / "side-by-side.json"
FOLDERS = ("hotpotqa", "musique-train", "2wiki-dev300", "metaqa")
#: Origins of a graph: the folder, or a reader of this project.
OWN, GRAPHS = "folder", ("folder", "spacy", "words")
METRICS = ("recall@5", "last_hop_recall@5", "last_hop_recall@10", "full_support@10", "mrr")
JUDGED = "last_hop_recall@5"
BASELINES = ("dense", "guided-walk")
WALK = "graph-else-dense"
#: Words and vectors without a walk: the bar that every recipe is held to, beside its own legs.
PLAIN = "plain-hybrid"
#: The legs of each recipe, by name of ranking.
LEGS = {
    "guided-walk": ("dense", WALK, PLAIN),
    "guided-walk+words": ("words", "dense", WALK, PLAIN),
    "phase-graph": ("dense", WALK, PLAIN),
    "phase-graph+words": ("words", "dense", WALK, PLAIN),
    "hybrid-rrf": ("words", "dense", WALK, PLAIN),
    "hybrid-convex": ("words", "dense", WALK, PLAIN),
    "policy-rag": ("dense", WALK, PLAIN),
    "triple-hybrid": ("triple-vector", "triple-graph", PLAIN),
}
BATCH = 32


def build_arguments(folder: Path, work: Path, graph: str = OWN) -> list[str]:
    """Return arguments of ``hopfuse build``: for the folder's graph and vectors, its triples, or files made in work."""
    if (folder / "kb.tsv").exists():
        metaqa_files.write_files(folder, work)
        return metaqa_files.build_arguments(work)
    passages = [str(folder / "passages.jsonl"), "--lexical", "--metric", "cosine"]
    if (folder / "openie.jsonl").exists():
        return [*passages, "--from", str(folder / "openie.jsonl"), "--encoder", "wordllama", "--synonyms", "0.8"]
    given = ["--vectors", str(folder / "passage_emb.f16.npy"), "--storage", "float16"]
    if graph != OWN:
        joined = ["--synonyms", "0.8"] if graph == "spacy" else []  # words have no synonyms
        return [*passages, *given, "--reader", graph, "--encoder", "wordllama", *joined]
    files = folder / "graph"
    given += ["--nodes", str(files / "nodes.tsv"), "--edges", str(files / "edges.tsv")]
    given += ["--facts", str(files / "facts.tsv"), "--fact-ends", "node"]
    nodes = (files / "nodes.tsv").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    names = [name for _, kind, name in (line.split("\t") for line in nodes) if kind == "entity"]
    np.save(work / "entity_vectors.npy", WordLlamaEncoder().encode_passages(names))
    return [*passages, *given, "--entity-vectors", str(work / "entity_vectors.npy")]


def compare_arguments(folder: Path, work: Path, graph: str = OWN) -> list[str]:
    """Return arguments of ``hopfuse compare``: with the folder's vectors and, for its own graph, its mentions.

    For a reader's graph, names are found in the questions.
    """
    judged = (work if (folder / "kb.tsv").exists() else folder) / "queries.jsonl"
    rows = [json.loads(line) for line in judged.read_text(encoding="utf-8").splitlines()]
    asked = [
        {"id": row["id"], "text": row["question"], **({"entities": [row["topic"]]} if "topic" in row else {})}
        for row in rows
    ]
    if graph == OWN and (folder / "query_entities.jsonl").exists():
        lines = (folder / "query_entities.jsonl").read_text(encoding="utf-8").splitlines()
        for row, line in zip(asked, lines, strict=True):
            row["entities"] = [name for name, _ in json.loads(line)["entities"]]
    queries = work / "asked.jsonl"
    queries.write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
    vectors = folder / "query_emb.f16.npy"
    given = ["--vectors", str(vectors)] if vectors.exists() else []
    judging = ["--qrels", str(judged), "--metrics", ",".join(METRICS), "--against", JUDGED]
    return ["--queries", str(queries), *given, "--encoder", "wordllama", *judging]


def graphs_of(folder: Path) -> Sequence[str]:
    """Return the origins of graphs that a folder's index can have."""
    if (folder / "kb.tsv").exists():
        return (OWN,)  # itself a graph
    has_own = (folder / "graph").is_dir() or (folder / "openie.jsonl").exists()
    return GRAPHS if has_own else GRAPHS[1:]


def run(folder: Path, graph: str, work: Path, *, timed: bool = True) -> dict[str, Any]:
    """Build an index, unless ``work`` has it, and compare; return the figures of the test half."""
    program, index, out = [sys.executable, "-m", "hopfuse"], work / "index", work / "numbers.json"
    if not index.exists():
        subprocess.run([*program, "build", *build_arguments(folder, work, graph), "--out", str(index)], check=True)
    asked = [*(["--time"] if timed else []), "--out", str(out), "--overwrite"]
    asked += compare_arguments(folder, work, graph)
    subprocess.run([*program, "compare", str(index), *asked], check=True)
    return kept(json.loads(out.read_text(encoding="utf-8")))


def kept(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of the test half, on which no default was chosen."""
    test = in_test_half(numbers["per_query"]["ids"])
    values = {
        run: {metric: np.array(found, np.float64)[test] for metric, found in row.items()}
        for run, row in numbers["per_query"]["values"].items()
    }
    judged = {run: row[JUDGED] for run, row in values.items()}
    milliseconds = {run: times[max(times, key=int)] for run, times in numbers.get("ms per query", {}).items()}
    return {
        **{name: numbers[name] for name in ("machine", "left out", "runs")},
        **commit(),
        "questions": int(test.sum()),
        "judged": int((~np.isnan(judged["dense"])).sum()),
        "means": {run: {m: float(np.nanmean(found)) for m, found in row.items()} for run, row in values.items()},
        "ms": {run: BATCH * each for run, each in milliseconds.items()},
        "p": {name: against(judged, name) for name in BASELINES if name in judged},
        "legs": {run: to_best_leg(values, run) for run in LEGS if run in values},
    }


def against(judged: Mapping[str, NDArray[np.float64]], baseline: str) -> dict[str, float]:
    """Return p of every run compared with the baseline, after Holm's correction over them."""
    others = [run for run in judged if run != baseline]
    binary = parse_metric(JUDGED).binary
    found = holm([compare(judged[run], judged[baseline], binary=binary).p_value for run in others])
    return dict(zip(others, found.tolist(), strict=True))


def to_best_leg(values: Mapping[str, Mapping[str, NDArray[np.float64]]], run: str) -> dict[str, Any]:
    """Return the difference of a recipe from the best of its legs that ran, with its paired bootstrap interval."""
    legs = {leg: float(np.nanmean(values[leg][JUDGED])) for leg in LEGS[run] if leg in values}
    best = max(legs, key=lambda leg: legs[leg])
    c = compare(values[run][JUDGED], values[best][JUDGED], binary=parse_metric(JUDGED).binary)
    return {"leg": best, "difference": c.difference, "low": c.low, "high": c.high}


def _means(rows: list[list[str]]) -> str:
    return table(["set", "graph", "run", *METRICS, "ms for 32", *(f"p to {name}" for name in BASELINES)], rows)


def _rows(name: str, graph: str, found: Mapping[str, Any]) -> list[list[str]]:
    made = []
    for run in found["runs"]:
        means = [f"{100 * found['means'][run].get(metric, np.nan):.1f}".replace("nan", "") for metric in METRICS]
        p = [f"{found['p'][one][run]:.2g}" if run in found["p"].get(one, {}) else "" for one in BASELINES]
        milliseconds = f"{found['ms'][run]:.0f}" if run in found["ms"] else ""
        made.append([name, graph, run, *means, milliseconds, *p])
    return made


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.side_by_side", description=__doc__)
    add_data_option(parser)
    parser.add_argument(
        "--set",
        dest="sets",
        action="append",
        help=f"a folder of --data; may be repeated [default: {', '.join(FOLDERS)}]",
    )
    parser.add_argument("--untimed", action="store_true", help="leave out times, on a busy machine")
    parser.add_argument(
        "--graph", dest="graphs", action="append", choices=GRAPHS, help="only this graph; may be repeated"
    )
    parser.add_argument("--work", type=Path, help="folder that keeps the indexes; existing ones are reused")
    parser.add_argument("--out", type=Path, default=RESULTS, help="file of results, to which these are added")
    args = parser.parse_args()
    sets: Sequence[str] = args.sets or FOLDERS
    for name in sets:
        if not (args.data / name).is_dir():
            parser.error(f"{args.data} has no folder {name}; give --data")
    if not args.out.resolve().parent.is_dir():
        parser.error(f"--out is {args.out}, whose folder does not exist")
    numbers = json.loads(args.out.read_text(encoding="utf-8")) if args.out.exists() else {}
    rows = []
    for name in sets:
        for graph in args.graphs or GRAPHS:
            if graph in graphs_of(args.data / name):
                with TemporaryDirectory() as aside:
                    work = (args.work or Path(aside)) / f"{name}-{graph}"
                    work.mkdir(parents=True, exist_ok=True)
                    found = run(args.data / name, graph, work, timed=not args.untimed)
                    numbers.setdefault(name, {})[graph] = found
                    rows += _rows(name, graph, numbers[name][graph])
                args.out.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    print(f"\nThe test half:\n\n{_means(rows)}\nWrote {args.out}")


if __name__ == "__main__":
    main()
