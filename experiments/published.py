"""Measure the recipes with their published settings on two folders, by the number of hops.

python -m experiments.published [--data FOLDER] [--out FILE]

Writes experiments/results/published.json, which python -m experiments.pages reads.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.encoders import WordLlamaEncoder
from hopfuse.evaluate import Evaluation, Qrels, compare, evaluate, holm, parse_metric
from hopfuse.lexical import BM25, FTS5

from bench.machine import commit

from .folders import add_data_option, asked, load_index, question_folders, questions_of
from .record import RECORDED, comparison_row, figures, write_results

RESULTS = RECORDED / "published.json"
METRICS = ("recall@5", "last_hop@5", "last_hop@10", "full_support@10", "mrr", "ndcg@10")
PLAIN, HYBRID, CONVEX, POLICY = "plain hybrid", "hybrid rrf", "hybrid convex", "policy rag"
FOLDERS = ("hotpotqa", "musique-train")
BASELINE = "dense"
#: The metrics by which runs are compared with the baseline.
COMPARED = ("last_hop@5", "last_hop@10", "full_support@10")
# recall@5, last_hop@5, last_hop@10 in percent of another implementation, from the README of the hotpotqa data.
REFERENCE = {
    "dense": (80.5, 58.9, 71.1),
    "bm25": (84.4, 72.6, 87.8),
    "ppr, else dense": (82.8, 72.1, 83.2),
    "rrf": (89.2, 75.1, 86.3),
    "phasegraph": (87.9, 74.6, 90.9),
    "phasegraph, ties=mean": (87.9, 74.6, 90.9),
}


def runs_of(index: hf.Index, folder: Path, encoder: WordLlamaEncoder) -> dict[str, hf.Hits]:
    """Return the hits of the single legs, of fusions of two and three over the same pools, and of published recipes."""
    paper, adr = hf.recipes.PhaseGraph.paper(), hf.recipes.HybridRRF.adr()
    recipe = hf.recipes.PhaseGraph(index, paper, encoder=encoder)
    policy = hf.Retriever(index, "policy-rag", encoder=encoder)
    words, sqlite = BM25(index.lexical), FTS5.build(index.texts_to_index())
    with_words = hf.recipes.PhaseGraph(index, paper, encoder=encoder, lexical=words, lexical_weight=0.3, lexical_k=100)
    hybrids = {
        HYBRID: {"lexical": words},
        f"{HYBRID}, fts5": {"lexical": sqlite},
        f"{HYBRID}, titles": {"lexical": words, "exact_bonus": 1.0},
        CONVEX: {"lexical": words, "fusion": "convex"},
    }
    questions, ask = questions_of(folder), {**asked(folder), "k": 10}
    found, three = recipe.search(**ask), with_words.search(questions, **ask)
    dense, graph = found.lists["dense"], found.lists["graph"]
    pools = [dense, graph]
    return {
        "dense": dense.head(10),
        "bm25": three.lists["lexical"].head(10),
        "ppr": graph.head(10),
        "ppr, else dense": _filled(graph.head(10), dense.head(10)),
        "rrf": hf.fuse(pools, method="rrf", k=10),
        "phasegraph": found.hits,
        "phasegraph, ties=mean": hf.fuse(pools, ties="mean", k=10),
        "rrf + bm25": hf.fuse([*pools, three.lists["lexical"]], method="rrf", k=10),
        "phasegraph + bm25": three.hits,
        "fts5": sqlite.search(questions, 10),
        PLAIN: hf.recipes.PlainHybrid(index, lexical=words).search(questions, vectors=ask["vectors"], k=10).hits,
        POLICY: policy.search(questions, **ask).hits,
        **{
            name: hf.recipes.HybridRRF(index, adr, encoder=encoder, **options).search(questions, **ask).hits
            for name, options in hybrids.items()
        },
    }


def _filled(hits: hf.Hits, other: hf.Hits) -> hf.Hits:
    """Return ``hits`` with empty rows replaced by those of ``other``."""
    empty = (hits.counts == 0)[:, None]
    return hf.Hits(np.where(empty, other.ids, hits.ids), np.where(empty, other.scores, hits.scores))


def measured(data: Path) -> dict[str, Any]:
    """Return the figures of every run on both folders, with comparisons."""
    encoder, found = WordLlamaEncoder(), {}
    for name in FOLDERS:
        folder = data / name
        index, qrels = load_index(folder, encoder), Qrels.read_jsonl(folder / "queries.jsonl")
        result = evaluate(qrels, runs_of(index, folder, encoder), METRICS, baseline=BASELINE)
        found[name] = {**figures(result, COMPARED), "convex against rrf": convex_against_rrf(result)}
    return found


def convex_against_rrf(result: Evaluation) -> dict[str, Any]:
    """Return the convex combination's differences from the weighted RRF of the same three legs, by metric.

    p is corrected over the metrics by Holm's method as ``p_holm``.
    """
    found = {
        metric: compare(
            *(result.per_query[run][metric] for run in (CONVEX, HYBRID)), binary=parse_metric(metric).binary
        )
        for metric in METRICS
    }
    adjusted = holm([c.p_value for c in found.values()]).tolist()
    return {metric: {**comparison_row(c), "p_holm": p} for (metric, c), p in zip(found.items(), adjusted, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.published", description=__doc__)
    add_data_option(parser)
    parser.add_argument("--out", type=Path, default=RESULTS, help="file of results")
    args = parser.parse_args()
    question_folders(args.data, FOLDERS, parser)
    write_results(args.out, {**commit(), "folders": measured(args.data)})
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
