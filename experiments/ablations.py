"""Ablations of PolicyRAG: without each part, from other seeds, and with reworded questions.

python -m experiments.ablations [--data FOLDER]

Writes experiments/results/ablations.json, which python -m experiments.pages reads.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.diagnose import Rewriting, paraphrase, rank_stability, substitute_aliases
from hopfuse.encoders import WordLlamaEncoder
from hopfuse.evaluate import Qrels, Run, evaluate
from hopfuse.extract import Gazetteer

from bench.machine import commit

from . import side_by_side
from .folders import add_data_option, asked, load_index
from .record import RECORDED, figures, write_results

RESULTS = RECORDED / "ablations.json"
FOLDERS = ("hotpotqa", "musique-openie")
CANDIDATES = (10, 20)  # facts for the gate
WHOLE, PAPER, DENSE = "policy rag", "policy rag, paper", "dense"
METRICS = (
    "recall@5",
    "last_hop@10",
    "full_support@10",
    "ndcg@10",
    "answer_supported@5",
    "hops_recovered@5",
    "distractor_suppression@5",
)
AGAINST = "ndcg@10"
K = 10

Search = Callable[[Sequence[str], Sequence[Sequence[str]] | None], hf.Hits]


@dataclass(frozen=True, eq=False)
class Questions:
    """A folder's questions; if vectors or mentions are None, the encoder and names in the question give them."""

    texts: list[str]
    qrels: Qrels
    vectors: np.ndarray | None = None
    mentions: list[list[str]] | None = None


def policies() -> dict[str, hf.recipes.Policy]:
    """Return the default policy and its variants: without each part, with other seeds, with more facts, the paper's."""
    whole = hf.recipes.Policy()
    idle = set() if any(whole.term_weights.values()) else {"reranking"}  # by default, its terms have weight 0
    switches = [one.name for one in fields(whole.switches) if one.name not in idle]
    without = {f"without {name}": whole.without(name) for name in switches}
    others = {f"seeds: {s}": replace(whole, seeds=replace(whole.seeds, source=s)) for s in ("question", "both")}
    facts = {f"facts: {n}": replace(whole, facts=replace(whole.facts, candidates=n)) for n in CANDIDATES}
    return {WHOLE: whole, **without, **others, **facts, PAPER: hf.recipes.Policy.paper()}


def measured(data: Path, encoder: WordLlamaEncoder) -> dict[str, Any]:
    """Return the quality and the rank stability of every run on each folder that exists."""
    found = {}
    for name in FOLDERS:
        if (data / name).is_dir():
            index, asked = loaded(data / name, encoder)
            spoken = index if asked.vectors is None else with_vectors_of(index, encoder)
            found[name] = {**quality(index, asked, encoder), "stability": stability(spoken, asked, encoder)}
    return found


def loaded(folder: Path, encoder: WordLlamaEncoder) -> tuple[hf.Index, Questions]:
    """Return a folder's own graph, vectors and mentions, or an index built from its triples as a user would."""
    lines = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    texts, qrels = [json.loads(line)["question"] for line in lines], Qrels.read_jsonl(folder / "queries.jsonl")
    if (folder / "graph").is_dir():
        given = asked(folder)
        return load_index(folder, encoder), Questions(texts, qrels, given["vectors"], given["entities"])
    with TemporaryDirectory() as work:
        out = str(Path(work, "index"))
        program = [sys.executable, "-m", "hopfuse", "build"]
        files = side_by_side.build_arguments(folder, Path(work))
        subprocess.run([*program, *files, "--out", out], check=True, stdout=subprocess.DEVNULL)
        return hf.Index.open(out), Questions(texts, qrels)


def with_vectors_of(index: hf.Index, encoder: WordLlamaEncoder) -> hf.Index:
    """Return the same passages, entities, graph and facts with the encoder's vectors."""
    names = list(index.entity_names)
    rows = zip(index.passage_ids, index.titles, index.texts, strict=True)
    return hf.Index.build(
        passages=[{"id": id, "title": title, "text": text} for id, title, text in rows],
        vectors=encoder.encode_passages(list(index.texts)),
        entities=names,
        entity_vectors=encoder.encode_passages(names),
        aliases={entity: list(others) for entity, others in enumerate(index.entity_aliases) if others},
        graph=index.graph,
        facts=index.facts,
        metric="cosine",
    )


def searches(index: hf.Index, encoder: WordLlamaEncoder, vectors: np.ndarray | None) -> dict[str, Search]:
    """Return the searches by dense retrieval, PhaseGraph and each policy, by name."""
    matcher = Gazetteer(list(index.entity_names), dict(enumerate(index.entity_aliases)))
    facts = encoder.encode_passages(index.facts.texts(index.entity_names))

    def of(recipe: hf.recipes.PhaseGraph | hf.recipes.PolicyRAG) -> Search:
        def search(texts: Sequence[str], names: Sequence[Sequence[str]] | None) -> hf.Hits:
            read = names if recipe.needs.entities else None
            return recipe.search(list(texts), vectors=vectors, entities=read, k=K).hits

        return search

    def dense(texts: Sequence[str], names: Sequence[Sequence[str]] | None) -> hf.Hits:
        return hf.dense_topk(encoder.encode_queries(list(texts)) if vectors is None else vectors, index.corpus, K)

    given = {"encoder": encoder, "matcher": matcher}
    rag = hf.recipes.PolicyRAG
    made = {name: of(rag(index, one, fact_vectors=facts, **given)) for name, one in policies().items()}
    return {DENSE: dense, "phasegraph": of(hf.recipes.PhaseGraph(index, **given)), **made}


def quality(index: hf.Index, asked: Questions, encoder: WordLlamaEncoder) -> dict[str, Any]:
    """Return all metrics of all runs, with questions won and lost against the default policy."""
    by_name = searches(index, encoder, asked.vectors)
    found = {name: search(asked.texts, asked.mentions) for name, search in by_name.items()}
    texts = index.texts_to_index()
    runs = {name: Run(hits, texts=texts, baseline=found[DENSE]) for name, hits in found.items()}
    return figures(evaluate(asked.qrels, runs, METRICS, by_hops=False, baseline=WHOLE), (AGAINST,))


def stability(index: hf.Index, asked: Questions, encoder: WordLlamaEncoder) -> dict[str, Any]:
    """Return how much each ranking changes if questions are reworded: the number of questions, and means by run."""
    made = {
        "other name": substitute_aliases(asked.texts, index, asked.mentions),
        "paraphrase": paraphrase(asked.texts, asked.mentions),
    }
    changed = {kind: [int(one.changed.sum()), len(one)] for kind, one in made.items()}
    runs = {
        name: {kind: of_rewriting(search, one, asked.qrels) for kind, one in made.items() if one.changed.any()}
        for name, search in searches(index, encoder, None).items()
    }
    return {"rewritten": changed, "runs": runs}


def of_rewriting(search: Search, rewriting: Rewriting, qrels: Qrels) -> dict[str, float]:
    """Return the mean agreement of a search's lists before and after."""
    found = rank_stability(search, rewriting, k=K, qrels=qrels)
    measured = {"rbo": found.rbo, f"jaccard@{K}": found.jaccard, "first gold kept": found.first_gold_kept}
    return {name: float(np.nanmean(values)) for name, values in measured.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.ablations", description=__doc__)
    add_data_option(parser)
    parser.add_argument("--out", type=Path, default=RESULTS, help="file of results")
    args = parser.parse_args()
    if not any((args.data / name).is_dir() for name in FOLDERS):
        parser.error(f"{args.data} has none of the folders {', '.join(FOLDERS)}; give --data")
    write_results(args.out, {**commit(), "folders": measured(args.data, WordLlamaEncoder())})
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
