"""The research questions about fusion."""

from __future__ import annotations

from itertools import combinations

import hopfuse as hf

from .arms import LEGS, POOLS, convex, fused, walk
from .design import Arm, K, Options, Question, grid, ratios
from .legs import DEPTH, EDGE_TYPES, STRICT, Legs

#: Maximum number of halvings of the largest weight.
HALVINGS = 6
WEIGHTS = {size: ratios(size, HALVINGS) for size in (2, 3)}
CHOSEN_WEIGHTS = f"weights chosen for each arm, each leg's 0 or 1 to 1/{2**HALVINGS} of the heaviest by powers of 2"
PAIRS_OF_LEGS = tuple(combinations(LEGS, 2))
CONSTANTS = (1, 2, 5, *range(10, 101, 10))
DEPTHS = (10, 30, 100, 300, DEPTH)
TEMPERATURES = ("auto", 0.3, 0.6, 1.0, 2.0)
METHODS = ("boltzmann", "linear", "rrf")


def single_legs() -> Question:
    return Question(
        "legs",
        "The legs by themselves",
        "What there is to fuse; nothing is compared.",
        tuple(Arm(leg, lambda legs, _, leg=leg: legs.lists[leg].head(K)) for leg in LEGS),
        (),
    )


def calibration() -> Question:
    scales = {"pit": {}, "pit, ties mean": {"ties": "mean"}, "min-max": {"calibration": "min_max"}}
    linear = scales | {"max": {"calibration": "max"}, "raw": {"calibration": "none"}}
    boltzmann = scales | {"max": {"calibration": "max"}}
    arms = [fused(f"linear, {name}", "linear", grid=WEIGHTS[3], **how) for name, how in linear.items()]
    arms += [fused(f"boltzmann, {name}", "boltzmann", grid=WEIGHTS[3], **how) for name, how in boltzmann.items()]
    pairs = [(f"{m}, pit", f"{m}, {other}") for m in ("linear", "boltzmann") for other in ("min-max", "max")]
    pairs += [("linear, pit", "linear, raw"), ("linear, min-max", "linear, raw")]
    pairs += [(f"{m}, pit", f"{m}, pit, ties mean") for m in ("linear", "boltzmann")]
    return Question(
        "calibration",
        "Percentile ranks, min-max or raw scores",
        f"Three legs; {CHOSEN_WEIGHTS}. `pit` is the percentile rank under strict ties, `max` a score over its list's "
        "largest, `raw` the score as it is: weights of this grid do not make up for BM25's being far larger "
        "than a walk's. The Boltzmann form has no raw arm: scores above 1 have no energy.",
        tuple(arms),
        tuple(pairs),
    )


def methods() -> Question:
    names = {method if method == "rrf" else f"{method}, pit": method for method in METHODS}
    return Question(
        "methods",
        "Boltzmann, linear or RRF",
        f"Three legs; {CHOSEN_WEIGHTS}. Boltzmann and linear fuse percentile ranks (strict ties), RRF has k = 60.",
        tuple(fused(name, method, grid=WEIGHTS[3]) for name, method in names.items()),
        tuple(combinations(names, 2)),
    )


def combination() -> Question:
    arms, pairs = [], []
    for legs in (*PAIRS_OF_LEGS, LEGS):
        name = " + ".join(legs)
        weights = WEIGHTS[len(legs)]
        constants = [{"rank_constant": k} for k in (1, 3, 10, 30, 60, 100)]
        arms += [
            convex(f"convex: {name}", legs, weights),
            fused(f"rrf: {name}", "rrf", legs),
            fused(f"rrf, chosen: {name}", "rrf", legs, [w | k for w in weights for k in constants]),
        ]
        pairs += [(f"convex: {name}", f"{other}: {name}") for other in ("rrf", "rrf, chosen")]
    return Question(
        "convex",
        "Convex combination or RRF",
        "`convex` is TM2C2 (Bruch, Gai and Ingber, TOIS 2023): scores between the least that the leg can give and the "
        f"list's largest, {CHOSEN_WEIGHTS}. `rrf` has k = 60 and equal weights; `rrf, chosen` has weights from the "
        "same grid, and k from 1, 3, 10, 30, 60 and 100.",
        tuple(arms),
        tuple(pairs),
    )


def rank_constant() -> Question:
    arms = [fused(f"k = {k}", "rrf", rank_constant=k) for k in CONSTANTS]
    arms.append(fused("k chosen", "rrf", grid=grid(rank_constant=CONSTANTS)))
    return Question(
        "rank_constant",
        "RRF's k",
        "Three legs of equal weight.",
        tuple(arms),
        tuple((arm.name, "k = 60") for arm in arms if arm.name != "k = 60"),
    )


def graph_pool() -> Question:
    arms, pairs = [], []
    for method in METHODS:
        pools = {n: (POOLS["dense"], n) for n in DEPTHS}
        weights = {} if method == "rrf" else {"weights": (0.7, 0.3)}
        arms += [fused(f"{method}, {n}", method, LEGS[:2], pool=pool, **weights) for n, pool in pools.items()]
        pairs += [(f"{method}, {n}", f"{method}, {POOLS['graph']}") for n in DEPTHS if n != POOLS["graph"]]
    return Question(
        "graph_pool",
        "Pool explosion: a growing graph pool",
        f"Dense and graph legs; {POOLS['dense']} dense passages, and 10 to {DEPTH} of the graph's. Boltzmann and "
        "linear fuse percentile ranks (strict ties) at weights 0.7 and 0.3, RRF at equal ones.",
        tuple(arms),
        tuple(pairs),
    )


def pool_caps() -> Question:
    caps = [{"pool": pool} for pool in ((d, g, w) for d in DEPTHS for g in DEPTHS for w in DEPTHS)]
    arms, pairs = [], []
    for method in METHODS:
        weights = {} if method == "rrf" else {"weights": (1 / 3,) * 3}
        whole, default = (DEPTH,) * 3, tuple(POOLS.values())
        arms += [
            fused(f"{method}, whole", method, pool=whole, **weights),
            fused(f"{method}, default", method, pool=default, **weights),
            fused(f"{method}, chosen", method, grid=caps, **weights),
        ]
        pairs += [(f"{method}, {a}", f"{method}, {b}") for a, b in combinations(("chosen", "default", "whole"), 2)]
    listed = ", ".join(map(str, DEPTHS[:-1]))
    return Question(
        "pool_caps",
        "Pool capping",
        f"Three legs of equal weight. `whole`: {DEPTH} passages of each; `default`: {POOLS['dense']} dense, "
        f"{POOLS['graph']} of the graph, {POOLS['lexical']} lexical; `chosen`: {listed} or {DEPTH} for each leg.",
        tuple(arms),
        tuple(pairs),
    )


def temperature() -> Question:
    arms = [fused(f"T = {t}", "boltzmann", grid=WEIGHTS[3], temperature=t) for t in TEMPERATURES]
    return Question(
        "temperature",
        "Boltzmann's temperature",
        f"Three legs, percentile ranks (strict ties); {CHOSEN_WEIGHTS}. `auto` is 2/3 of a list's mean energy.",
        tuple(arms),
        tuple((arm.name, arms[0].name) for arm in arms[1:]),
    )


#: A weight for each of EDGE_TYPES.
LINKS = {
    "none": (1.0, 1.0, 0.0, 0.0, 0.0),
    "same name": (1.0, 1.0, 0.0, 0.0, 1.0),
    f"at least {STRICT}": (1.0, 1.0, 0.0, 1.0, 0.0),
    "at least 0.8": (1.0, 1.0, 1.0, 1.0, 0.0),
    "at least 0.8, same name": (1.0, 1.0, 1.0, 1.0, 1.0),
}


def synonyms() -> Question:
    assert len(EDGE_TYPES) == len(LINKS["none"])
    arms = [Arm(f"graph: {name}", lambda legs, _, on=on: walk(legs, on, K)) for name, on in LINKS.items()]
    arms += [Arm(f"fused: {name}", lambda legs, _, on=on: _fused_walk(legs, on)) for name, on in LINKS.items()]
    others = [name for name in LINKS if name != "none"]
    return Question(
        "synonyms",
        "Linking synonyms",
        "The walk over the folder's graph with and without edges between entities: those of the data, where the cosine "
        "of the names' all-MiniLM-L6-v2 vectors is at least 0.8, weighted by it; the closest of them; and edges of "
        "weight 1 between entities whose names are equal once case, punctuation and articles are dropped. `graph`: the "
        "walk's list alone; `fused`: RRF with the dense and the lexical list (k = 60, equal weights). Nothing is "
        "chosen.",
        tuple(arms),
        tuple((f"{leg}: {name}", f"{leg}: none") for leg in ("graph", "fused") for name in others),
    )


def _fused_walk(legs: Legs, edge_types: tuple[float, ...]) -> hf.Hits:
    lists = [legs.lists["dense"], walk(legs, edge_types, POOLS["graph"]), legs.lists["lexical"]]
    return hf.fuse(lists, method="rrf", pool=tuple(POOLS.values()), k=K)


ISING_POOL = 100
BLENDS = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
ISING_GRID = grid(blend=(0.0, *BLENDS), temperature=(0.5, 1.0, 2.0), coupling=(0.5, 1.0, 2.0))


def ising() -> Question:
    arms = [Arm("fused", lambda legs, _: hf.fuse(list(legs.lists.values()), **_RRF, k=K))]
    arms += [Arm(f"b = {b}", lambda legs, _, b=b: _magnetised(legs, {"blend": b})) for b in BLENDS]
    arms.append(Arm("b, T, J chosen", _magnetised, ISING_GRID))
    pairs = [(arm.name, "fused") for arm in arms[1:]] + [(f"b = {b}", "b = 0.25") for b in BLENDS if b > 0.25]
    return Question(
        "ising",
        "Ising reranking",
        f"The first {ISING_POOL} passages of RRF over three legs (k = 60, equal weights: `fused`) reranked by the mean "
        "field over the entities that they share; b is the share of the magnetisation in the new score. T = 2 and "
        "J = 1, but for the last arm: b also 0, T from 0.5, 1 and 2, J from 0.5, 1 and 2.",
        tuple(arms),
        tuple(pairs),
    )


_RRF = {"method": "rrf", "pool": tuple(POOLS.values())}


def _magnetised(legs: Legs, chosen: Options) -> hf.Hits:
    candidates = hf.fuse(list(legs.lists.values()), **_RRF, k=ISING_POOL)
    return hf.ising_rerank(candidates, legs.linked, k=K, **chosen)


def questions() -> tuple[Question, ...]:
    """Return all research questions."""
    return (
        single_legs(),
        calibration(),
        methods(),
        combination(),
        rank_constant(),
        graph_pool(),
        pool_caps(),
        temperature(),
        synonyms(),
        ising(),
    )
