"""Choose the defaults of the recipes on the tune halves of three folders together, and report their test halves.

python -m experiments.tuned [--data FOLDER] [--recipe NAME ...]

Writes experiments/results/tuned.json, which python -m experiments.pages reads. The choice is the trial with the
smallest worst loss against each folder's best (:func:`hopfuse.evaluate.sweep_sets`) by last_hop_recall@5; the legs by
themselves are trials too. Each leg's lists are computed once.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.diagnose import Questions, by_mention
from hopfuse.encoders import WordLlamaEncoder
from hopfuse.evaluate import JudgedSet, Qrels, SetsSweep, sweep_sets
from hopfuse.lexical import BM25
from hopfuse.recipes import PhaseGraphConfig, Policy

from .folders import add_data_option, asked, load_index, question_folders, questions_of
from .side_by_side import ROOT

RESULTS = ROOT / "experiments" / "results" / "tuned.json"
FOLDERS = ("hotpotqa", "musique-train", "2wiki-dev300")
CHOSEN_BY = "last_hop_recall@5"
DEPTH, K = 100, 10
DAMPINGS = (0.3, 0.5, 0.7, 0.85)
Options = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Lists:
    """The lists of each leg for a folder's questions: up to DEPTH passages each, those of the walk by damping.

    If a question's walk reaches nothing, its graph list is the dense list.
    """

    qrels: Qrels
    dense: hf.Hits
    words: hf.Hits
    graph: Mapping[float, hf.Hits]

    def leg(self, options: Options) -> hf.Hits:
        """Return the list of the leg that a trial names."""
        return {"dense": self.dense, "words": self.words}.get(options["leg"]) or self.graph[options["damping"]]


def lists_of(index: hf.Index, asked: Mapping[str, Any], qrels: Qrels, encoder: Any) -> Lists:
    """Search every leg for all questions; ``asked`` has queries, vectors and entities."""
    walked = {}
    for damping in DAMPINGS:
        recipe = hf.recipes.PhaseGraph(index, encoder=encoder, dense_k=DEPTH, graph_k=DEPTH, damping=damping)
        found = recipe.search(**asked)
        walked[damping] = found.lists["graph"]
    return Lists(qrels, found.lists["dense"], BM25(index.lexical).search(asked["queries"], DEPTH), walked)


def legs_alone(*others: str) -> list[dict[str, Any]]:
    """Return the walk with each damping, and the other legs, as trials."""
    return [{"leg": "graph", "damping": d} for d in DAMPINGS] + [{"leg": name} for name in others]


def grid(**values: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Return every combination of values."""
    return [dict(zip(values, row, strict=True)) for row in product(*values.values())]


#: Pools are at least 30, so that a search for more than ten passages also finds them without a walk.
PHASE_GRAPH = [
    *legs_alone("dense"),
    *grid(
        alpha=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7),
        dense_k=(30, 100),
        graph_k=(30, 100),
        damping=DAMPINGS,
        temperature=("auto", 0.1, 0.2, 0.4),
        ties=("strict", "mean"),
    ),
]
HYBRID_RRF = [
    *legs_alone("dense", "words"),
    *grid(
        words=(0.05, 0.1, 0.2, 0.35, 0.5, 1.0),
        dense=(0.1, 0.2, 0.35, 0.5, 1.0),
        rank_constant=(2, 5, 10, 20, 60),
        graph_k=(30, 100),
        damping=DAMPINGS,
    ),
]


def phase_graph(lists: Lists) -> Callable[[Options, np.ndarray], hf.Hits]:
    """Return PhaseGraph over computed lists, as a system with options."""

    def run(options: Options, rows: np.ndarray) -> hf.Hits:
        if "leg" in options:
            return part(lists.leg(options).head(K), rows)
        pools = [part(lists.dense, rows), part(lists.graph[options["damping"]], rows)]
        how = {"temperature": options["temperature"], "ties": options["ties"]}
        alpha, sizes = options["alpha"], (options["dense_k"], options["graph_k"])
        return hf.fuse(pools, weights=(alpha, 1 - alpha), pool=sizes, k=K, **how)

    return run


def hybrid_rrf(lists: Lists) -> Callable[[Options, np.ndarray], hf.Hits]:
    """Return HybridRRF over computed lists, with weight 1 for the graph."""

    def run(options: Options, rows: np.ndarray) -> hf.Hits:
        if "leg" in options:
            return part(lists.leg(options).head(K), rows)
        pools = [part(hits, rows) for hits in (lists.words, lists.dense, lists.graph[options["damping"]])]
        method, weights = hf.fusion.RRF(rank_constant=options["rank_constant"]), (options["words"], options["dense"], 1)
        return hf.fuse(pools, method=method, weights=weights, pool=(DEPTH, DEPTH, options["graph_k"]), k=K)

    return run


def part(hits: hf.Hits, rows: np.ndarray) -> hf.Hits:
    """Return the lists of some questions."""
    return hf.Hits.unchecked(hits.ids[rows], hits.scores[rows], hits.counts[rows])


#: Edge weights of relations, synonyms and context, and their normalisation, by name.
WALKS: dict[str, dict[str, Any]] = {
    "per type": {"relation": 0.6, "synonym": 0.2, "context": 0.2, "edge_type_norm": "per_type"},
    "joint": {"relation": 1.0, "synonym": 1.0, "context": 1.0, "edge_type_norm": "joint"},
}
#: Options of PolicyRAG's trials unless they set others.
POLICY = {
    "source": ("passages",),
    "walk": ("joint",),
    "damping": (0.7,),
    "passages": (0.05,),
    "reranking": (0.0,),
    "scope": ("seeds",),
    "beta": (0.25,),
}
POLICY_RAG = [
    *legs_alone("dense"),
    *grid(**POLICY | {"walk": tuple(WALKS), "passages": (0.05, 0.3), "reranking": (0.0, 0.05)}),
    *grid(**POLICY | {"source": ("entities",), "reranking": (0.0, 0.05)}),
    *grid(**POLICY | {"reranking": (0.05,), "scope": ("all",)}),
    *grid(**POLICY | {"damping": (0.5, 0.7, 0.85), "passages": (0.0, 0.02), "beta": (0.0, 0.25)}),
    *grid(**POLICY | {"damping": (0.5, 0.85), "beta": (0.0, 0.25)}),
    *grid(**POLICY | {"beta": (0.0,)}),
]
#: The options of PhaseGraph that were chosen without BM25.
WITHOUT_WORDS: dict[str, Any] = {"alpha": 0.2, "dense_k": 30, "temperature": 0.2}
#: PhaseGraph with BM25 as a third leg; its other options are those.
WORDS = [
    *legs_alone("dense", "words"),
    *grid(lexical_weight=(0.02, 0.05, 0.1, 0.15, 0.2, 0.3), lexical_k=(10, 30, 100)),
]
#: With the default damping only: 0.85 finds more, but takes more than 2.7 times the time of PhaseGraph. BM25
#: has no part in trials with both of its weights 0.
GUIDED_WALK = [
    *legs_alone("dense", "words"),
    *grid(
        second_top=(1, 2),
        second_mass=(0.3, 0.5, 0.7),
        tau=(1.0, 1.4, 2.0, 2.8),
        word_boost=(0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0),
    ),
    *grid(second_top=(1,), second_mass=(0.7,), tau=(1.4,), word_boost=(2.0, 4.0), word_k=(300, 3000)),
    *grid(second_top=(1,), second_mass=(0.7,), tau=(1.4,), word_boost=(0.0, 2.0), lexical_weight=(0.1, 0.3)),
]
#: Passages ranked by the entities that they mention, as in ``hopfuse compare``; the legs are those of the recipe.
TRIPLE_HYBRID = [
    {"mode": "vector"},
    *grid(mode=("graph",), seeds=(10, 30)),
    *grid(calibration=("none", "min_max", "max"), seeds=(10, 30), vector_k=(30, 100), graph_k=(30, 100)),
]


def policy_of(options: Options) -> Policy:
    """Return the default policy with the options of a trial."""
    policy, weight = Policy(), options["reranking"]
    return replace(
        policy,
        seeds=replace(policy.seeds, passages=options["passages"]),
        facts=replace(policy.facts, scope=options["scope"]),
        walk=replace(policy.walk, damping=options["damping"], **WALKS[options["walk"]]),
        projection=replace(policy.projection, source=options["source"], beta=options["beta"]),
        reranking=replace(policy.reranking, title=weight, coverage=weight, path=weight),
    )


def policy_rag(
    lists: Lists, index: hf.Index, asked: Mapping[str, Any], encoder: Any
) -> Callable[[Options, np.ndarray], hf.Hits]:
    """Return PolicyRAG with the encoder's vectors of facts, as a system with options."""
    facts = encoder.encode_passages(index.facts.texts(index.entity_names))

    def run(options: Options, rows: np.ndarray) -> hf.Hits:
        if "leg" in options:
            return part(lists.leg(options).head(K), rows)
        made = {"config": policy_of(options), "encoder": encoder, "fact_vectors": facts}
        texts, names = ([asked[part][row] for row in rows.tolist()] for part in ("queries", "entities"))
        retriever = hf.Retriever(index, "policy-rag", **made)
        return retriever.search(texts, vectors=asked["vectors"][rows], entities=names, k=K).hits

    return run


def words(lists: Lists) -> Callable[[Options, np.ndarray], hf.Hits]:
    """Return PhaseGraph with words over computed lists, as a system with options."""

    def run(options: Options, rows: np.ndarray) -> hf.Hits:
        if "leg" in options:
            return part(lists.leg(options).head(K), rows)
        config = PhaseGraphConfig(**WITHOUT_WORDS, **options)
        pools = {"dense": lists.dense, "graph": lists.graph[config.damping], "lexical": lists.words}
        sizes = (config.dense_k, config.graph_k, config.lexical_k)
        return hf.fuse([part(one, rows) for one in pools.values()], pool=sizes, k=K, **config.fusing(tuple(pools)))

    return run


def guided_walk(
    lists: Lists, index: hf.Index, asked: Mapping[str, Any], encoder: Any
) -> Callable[[Options, np.ndarray], hf.Hits]:
    """Return GuidedWalk with BM25 as a system with options."""

    def run(options: Options, rows: np.ndarray) -> hf.Hits:
        if "leg" in options:
            return part(lists.leg(options).head(K), rows)
        texts, names = ([asked[part][row] for row in rows.tolist()] for part in ("queries", "entities"))
        retriever = hf.Retriever(index, "guided-walk", encoder=encoder, **options)
        return retriever.search(texts, vectors=asked["vectors"][rows], entities=names, k=K).hits

    return run


def triple_hybrid(index: hf.Index, asked: Mapping[str, Any], encoder: Any) -> Callable[[Options, np.ndarray], hf.Hits]:
    """Return TripleHybrid's ranking of passages as a system with options."""

    def run(options: Options, rows: np.ndarray) -> hf.Hits:
        texts = tuple(asked["queries"][row] for row in rows.tolist())
        retriever = hf.Retriever(index, "triple-hybrid", encoder=encoder, **options)
        return by_mention(retriever)(Questions(texts, asked["vectors"][rows], ())).head(K)

    return run


GRIDS = {
    "guided-walk": GUIDED_WALK,
    "phase-graph": PHASE_GRAPH,
    "phase-graph+words": WORDS,
    "hybrid-rrf": HYBRID_RRF,
    "policy-rag": POLICY_RAG,
    "triple-hybrid": TRIPLE_HYBRID,
}
#: The options that a recipe is compared with: those of its paper or publication, and GuidedWalk's earlier defaults.
BASELINES: dict[str, dict[str, Any]] = {
    "guided-walk": {"second_top": 1, "second_mass": 0.5, "tau": 1.4, "word_boost": 4.0},
    "phase-graph+words": {"lexical_weight": 0.3, "lexical_k": 100},
    "triple-hybrid": {"calibration": "none", "seeds": 10, "vector_k": 100, "graph_k": 100},
    "phase-graph": {
        "alpha": 0.7,
        "dense_k": 100,
        "graph_k": 30,
        "damping": 0.5,
        "temperature": "auto",
        "ties": "strict",
    },
    "hybrid-rrf": {"words": 1 / 0.35, "dense": 1 / 0.35, "rank_constant": 60, "graph_k": 30, "damping": 0.5},
    "policy-rag": {
        "source": "entities",
        "walk": "per type",
        "damping": 0.5,
        "passages": 2.0,
        "reranking": 0.1,
        "scope": "seeds",
        "beta": 0.25,
    },
}


def swept(data: Path, recipes: tuple[str, ...]) -> dict[str, SetsSweep]:
    """Run the sweep of each recipe, with all folders in memory."""
    encoder, sets = hf.diagnose.CachedEncoder(WordLlamaEncoder()), {}
    for name in FOLDERS:
        folder = data / name
        index, qrels = load_index(folder, encoder), Qrels.read_jsonl(folder / "queries.jsonl")
        ask = {**asked(folder), "queries": questions_of(folder)}
        sets[name] = index, ask, lists_of(index, ask, qrels, encoder)
    makers: dict[str, Callable[..., Any]] = {
        "guided-walk": lambda index, ask, lists: guided_walk(lists, index, ask, encoder),
        "phase-graph": lambda index, ask, lists: phase_graph(lists),
        "phase-graph+words": lambda index, ask, lists: words(lists),
        "triple-hybrid": lambda index, ask, lists: triple_hybrid(index, ask, encoder),
        "hybrid-rrf": lambda index, ask, lists: hybrid_rrf(lists),
        "policy-rag": lambda index, ask, lists: policy_rag(lists, index, ask, encoder),
    }
    found = {}
    for recipe in recipes:
        judged = {name: JudgedSet(makers[recipe](*one), one[2].qrels) for name, one in sets.items()}
        found[recipe] = sweep_sets(judged, GRIDS[recipe], baseline=BASELINES[recipe], metric=CHOSEN_BY)
        print(f"{recipe}: {found[recipe]}", flush=True)
    return found


def recorded(found: SetsSweep) -> dict[str, Any]:
    """Return a sweep as plain data, with the baseline as its only trial."""
    made = found.to_dict()
    return {**made, "trials": made["trials"][:1]}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.tuned", description=__doc__)
    add_data_option(parser)
    parser.add_argument("--recipe", action="append", choices=tuple(GRIDS), help="only this one; may be repeated")
    args = parser.parse_args()
    question_folders(args.data, FOLDERS, parser)
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    found = swept(args.data, tuple(args.recipe or GRIDS))
    made = {recipe: recorded(one) for recipe, one in found.items()}
    RESULTS.write_text(json.dumps({**known, **made}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
