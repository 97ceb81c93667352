"""Every recipe and leg on the same questions, as a user compares them: writes experiments/results/compare-FOLDER.json.

python -m experiments.side_by_side [--data FOLDER]

Builds an index of each folder by ``hopfuse build`` and runs ``hopfuse compare`` on it; python -m experiments.quality
puts the numbers into docs/quality.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hopfuse.encoders import WordLlamaEncoder

from bench.markdown import table

from . import metaqa, metaqa_files

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "experiments" / "results" / "side-by-side.json"
FOLDERS = ("hotpotqa", "musique-train", "musique-openie", "metaqa")
AGAINST = "last_hop@5"
RECIPES = ("phase-graph", "hybrid", "policy-rag", "triple-hybrid")
ALLOWED = 50  # milliseconds for a batch of 32 on two cores
METRICS = ("recall@2", "recall@5", "recall@10", "last_hop@5", "last_hop@10", "full_support@10", "mrr", "ndcg@10")


def build_arguments(folder: Path, work: Path) -> list[str]:
    """Of ``hopfuse build``: the folder's own graph and vectors, or a memory of its triples, or files made in work."""
    if (folder / "kb.tsv").exists():
        metaqa_files.write_files(folder, work)
        return metaqa_files.build_arguments(work)
    passages = [str(folder / "passages.jsonl"), "--lexical", "--metric", "cosine"]
    if (folder / "openie.jsonl").exists():
        return [*passages, "--from", str(folder / "openie.jsonl"), "--encoder", "wordllama", "--synonyms", "0.8"]
    graph = folder / "graph"
    given = ["--vectors", str(folder / "passage_emb.f16.npy"), "--storage", "float16"]
    given += ["--nodes", str(graph / "nodes.tsv"), "--edges", str(graph / "edges.tsv")]
    given += ["--facts", str(graph / "facts.tsv"), "--fact-ends", "node"]
    vectors = graph / "entity_emb.f16.npy"
    if not vectors.exists():
        vectors = work / "entity_vectors.npy"
        nodes = (graph / "nodes.tsv").read_text(encoding="utf-8").removesuffix("\n").split("\n")
        names = [name for _, kind, name in (line.split("\t") for line in nodes) if kind == "entity"]
        np.save(vectors, WordLlamaEncoder().encode_passages(names))
    given += ["--entity-vectors", str(vectors)]
    return [*passages, *given]


def compare_arguments(folder: Path, work: Path) -> list[str]:
    """Of ``hopfuse compare``: the folder's vectors and entities of the questions, where it has them."""
    judged = (work if (folder / "kb.tsv").exists() else folder) / "queries.jsonl"
    rows = [json.loads(line) for line in judged.read_text(encoding="utf-8").splitlines()]
    asked = [
        {"id": row["id"], "text": row["question"], **({"entities": [row["topic"]]} if "topic" in row else {})}
        for row in rows
    ]
    vectors = ["--encoder", "wordllama"]
    if (folder / "query_entities.jsonl").exists():
        lines = (folder / "query_entities.jsonl").read_text(encoding="utf-8").splitlines()
        for row, line in zip(asked, lines, strict=True):
            row["entities"] = [name for name, _ in json.loads(line)["entities"]]
        own = (folder / "graph" / "entity_emb.f16.npy").exists()  # of the entities, in the space of the questions'
        vectors = ["--vectors", str(folder / "query_emb.f16.npy"), *([] if own else vectors)]
    queries = work / "asked.jsonl"
    queries.write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
    return ["--queries", str(queries), "--qrels", str(judged), *vectors, "--against", AGAINST]


def run(folder: Path) -> dict[str, Any]:
    """Build and compare; the program's own output goes to the screen, and its numbers come back."""
    program = [sys.executable, "-m", "hopfuse"]
    with TemporaryDirectory() as work:
        index = str(Path(work, "index"))
        subprocess.run([*program, "build", *build_arguments(folder, Path(work)), "--out", index], check=True)
        asked = compare_arguments(folder, Path(work))
        out = Path(work, "numbers.json")
        subprocess.run([*program, "compare", index, *asked, "--time", "--out", str(out)], check=True)
        return kept(json.loads(out.read_text(encoding="utf-8")))


def kept(numbers: dict[str, Any]) -> dict[str, Any]:
    """Return what the page needs of a comparison."""
    whole = numbers["groups"][0]
    compared = {run: row[AGAINST] for run, row in whole["comparisons"].items()}
    return {
        **{name: numbers[name] for name in ("machine", "memory", "ms per query", "left out", "runs")},
        "questions": whole["queries"],
        "means": {run: {m: row[m]["mean"] for m in METRICS} for run, row in whole["estimates"].items()},
        "against": {run: {name: row[name] for name in ("wins", "losses", "p_value")} for run, row in compared.items()},
    }


def section(results: Path = RESULTS) -> str:
    """What docs/quality.md says of the recorded comparisons; the same files give the same text."""
    recorded = json.loads(results.read_text(encoding="utf-8"))
    parts = [_HEAD, *(_folder(name, recorded[name]) for name in FOLDERS if name in recorded)]
    if metaqa.SPEED.exists():
        numbers = json.loads(metaqa.SPEED.read_text(encoding="utf-8"))
        about = f"`python -m experiments.metaqa --speed`: batches of {numbers['batch']}, questions' vectors given; "
        about += f"{numbers['machine']['cpu']}, {numbers['machine']['cores']} cores."
        parts.append(f"### metaqa, times\n\n{about}\n\n" + metaqa.speed_table(numbers))
    return "\n".join(parts)


def _folder(name: str, numbers: dict[str, Any]) -> str:
    rows, batch = [], max(next(iter(numbers["ms per query"].values())), key=int)
    for run in numbers["runs"]:
        means = [f"{100 * numbers['means'][run][metric]:.1f}" for metric in METRICS]
        against = numbers["against"].get(run)
        won = (
            ["", "", ""] if against is None else [str(against["wins"]), str(against["losses"]), _p(against["p_value"])]
        )
        peak = f"{numbers['memory']['search peak bytes'][run] / 1e6:.1f}"
        rows.append([run, *means, *won, *(f"{numbers['ms per query'][run][size]:.2f}" for size in ("1", batch)), peak])
    memory, machine = numbers["memory"], numbers["machine"]
    left = "".join(f" Left out: {run}: {why}." for run, why in numbers["left out"].items())
    arrays, process = memory["index array bytes"] / 1e6, memory["process peak bytes"] / 1e6
    about = (
        f"{numbers['questions']} questions; {machine['processor']}, {machine['cores']} cores. The index's arrays take "
        f"{arrays:.1f} MB, the process {process:.0f} MB at most.{left}"
    )
    columns = ["run", *METRICS, "won", "lost", "p", "ms, B=1", f"ms, B={batch}", "peak MB"]
    spent = times(numbers["ms per query"], batch)
    return f"### {name}\n\n{about}\n\n" + table(columns, rows) + f"\n{spent}\n"


def times(milliseconds: dict[str, dict[str, float]], batch: str) -> str:
    """What a batch takes in each recipe, and which of them take too long."""
    taken = {run: int(batch) * sizes[batch] for run, sizes in milliseconds.items() if run.startswith(RECIPES)}
    long = [run for run, spent in taken.items() if spent >= ALLOWED]
    listed = ", ".join(f"{run} {spent:.0f}" for run, spent in taken.items())
    verdict = (
        f"More than the {ALLOWED} that are allowed: {', '.join(long)}" if long else f"None takes the {ALLOWED} allowed"
    )
    return f"A batch of {batch} takes, in milliseconds: {listed}. {verdict}."


def _p(value: float) -> str:
    return f"{value:.2g}"


_HEAD = """## Side by side

Written by `python -m experiments.side_by_side`, which builds an index of each folder by `hopfuse build` and runs
`hopfuse compare` on it, every recipe and leg with its defaults. Percentages; *won*, *lost* and *p* are questions
against `dense` by last_hop@5 (exact two-sided McNemar, not corrected for the number of runs); milliseconds per
question, one by one and in batches of 32, vectors and entities of the questions given; *peak*: what Python and NumPy
allocate at most while a batch is searched. hotpotqa and musique-train: the folder's own graph, facts, vectors and
entities of the questions. On hotpotqa names of entities and facts have WordLlama's vectors; on musique-train
PolicyRAG has no encoder: names alone align entities, and facts count by their labels' Dice coefficient.
musique-openie: the memory that `hopfuse build --from openie.jsonl --synonyms 0.8` makes, WordLlama's vectors,
entities by their names in the question. metaqa: a passage about each entity, with the first facts that name it; the
entity in a question's brackets is given, and the passages about the answers are right. `triple-hybrid` ranks passages
by the entities that they mention.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.side_by_side", description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="where the folders are")
    args = parser.parse_args()
    for name in FOLDERS:
        if not (args.data / name).is_dir():
            parser.error(f"{args.data} has no folder {name}; give --data")
    numbers = {name: run(args.data / name) for name in FOLDERS}
    RESULTS.write_text(json.dumps(numbers) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
