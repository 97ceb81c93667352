"""Weigh direct retrieval, by vectors and words, beside a walk for each question, and rank hits by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...fusion import RRF
from ...index import Index
from ...ops.fusion import fuse
from ...types import Hits, Seeds
from .filters import View
from .seeding import Seed
from .spelling import Capitalised

#: The number of passages of the rarest seed at which a question is half left to direct retrieval, and the least share
#: of the passages that this number is.
RARE, RARE_SHARE = 12.0, 0.006
#: A word that is no name leads as far as a name that is in so many times the passages.
WORD_TIMES = 4
#: The walk's weight where a question is left to direct retrieval.
WALK_LEAST = 0.3
#: The weight of a lexical hit, a dense one's being 1.
WORDS = 0.5
#: A dense hit's least weight, at which it only appends what the walk did not find.
APPEND = 0.001
#: Beside a plain walk, the weights of the dense and the lexical list where the walk leads, and where a question is left
#: to them: of both together, and of one without the other.
TOGETHER = {"dense": (0.4, 1.0), "lexical": (0.2, 0.8)}
ALONE = {"dense": (0.6, 1.0), "lexical": (0.75, 1.0)}
#: The best direct hit is among this many hits.
KEPT_AMONG = 5


class WeightedRanking(NamedTuple):
    """The hits of a batch, and why: how far each question is left to direct retrieval, (B,), what each place of each
    list adds to a score, by name of list, and the questions whose best direct hit was moved up."""

    hits: Hits
    direct: NDArray[np.float64]
    terms: Mapping[str, NDArray[Any]]
    moved: NDArray[np.bool_] | None = None


class Rarest(NamedTuple):
    """The seed of a question that leads furthest, and in how many passages it is, 4 times that for a mere word.

    An entity of no passage that has edges counts as one of one passage. 0 means that it leads nowhere.
    """

    seed: Seed
    is_name: bool
    passages: int


def name_seeds(seeds: Sequence[Sequence[Seed]], texts: Sequence[str | None] | None, index: Index) -> list[list[bool]]:
    """Return which seeds are names: linked entities, and words of the texts that the question writes with a capital.

    In a question without lower case, capitals show nothing.
    """
    first = index.num_entities if index.words is None else index.words.first
    if texts is None or first == index.num_entities:
        return [[seed.entity < first for seed in row] for row in seeds]
    written = [Capitalised("" if not text or text.isupper() else text) for text in texts]
    return [
        [seed.entity < first or index.entity_names[seed.entity] in names for seed in row]
        for row, names in zip(seeds, written, strict=True)
    ]


def rarest_seeds(seeds: Sequence[Sequence[Seed]], names: Sequence[Sequence[bool]], index: Index) -> list[Rarest | None]:
    """Return the seed of each question that the fewest passages contain, or None without a seed of positive weight.

    Of several entities of one name, only the heaviest counts. A seed that leads nowhere, in no passage and without
    edges, is the rarest only if all are so.
    """
    found = list[Rarest | None]()
    for row, are_names in zip(seeds, names, strict=True):
        most = dict[str, float]()
        for seed in row:
            most[seed.surface] = max(most.get(seed.surface, 0.0), seed.weight)
        counted = [
            Rarest(seed, is_name, _led_to(index, seed.entity) * (1 if is_name else WORD_TIMES))
            for seed, is_name in zip(row, are_names, strict=True)
            if seed.weight > 0 and (not seed.surface or seed.weight == most[seed.surface])
        ]
        found.append(min(counted, key=lambda one: (not one.passages, one.passages, one.seed.entity), default=None))
    return found


def _led_to(index: Index, entity: int) -> int:
    """Return in how many passages an entity is, and 1 for one of no passage that has edges."""
    graph, often = index.graph, index.passage_frequency
    if graph is None or often is None:
        return 0
    return int(often[entity]) or int(graph.degree[graph.internal_of[index.num_passages + entity]].any())


def direct_weights(rarest: Sequence[Rarest | None], num_passages: int) -> NDArray[np.float64]:
    """Return how far each question is left to direct retrieval, (B,): d / (d + max(12, 0.006 P)), 1 without seeds.

    d is the number of passages of the rarest seed. A walk leads somewhere from a rare name; from a name that every
    tenth passage contains, it leads everywhere, and from one that leads nowhere the weight is 1.
    """
    half = max(RARE, RARE_SHARE * num_passages)
    return np.array(
        [1.0 if one is None or not one.passages else one.passages / (one.passages + half) for one in rarest]
    )


def direct_trace(index: Index, rarest: Rarest | None, weight: float) -> dict[str, Any]:
    """Return how far a question is left to direct retrieval, and why, for its trace."""
    if rarest is None or index.passage_frequency is None:
        return {"weight": weight, "reason": "the question names nothing: vectors and words lead"}
    name, passages = index.entity_names[rarest.seed.entity], int(index.passage_frequency[rarest.seed.entity])
    if not rarest.passages:
        return {"weight": weight, "reason": f"no passage has {name}, and no edge leads on from it: {_leader(weight)}"}
    kind, number = "name" if rarest.is_name else "word", f"{passages:,} passage{'' if passages == 1 else 's'}"
    return {"weight": weight, "reason": f"the rarest {kind}, {name}, is in {number}: {_leader(weight)}"}


def _leader(weight: float) -> str:
    if weight < 0.4:
        return "the walk leads"
    return "the walk counts with vectors and words" if weight < 0.7 else "vectors and words lead"


def list_weights(legs: Sequence[str], direct: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Return the weights of a plain walk's list and of the direct ones, each (B,).

    With w the question's of :func:`direct_weights`, the walk's weight is 1 - w. The dense list's is 0.4 + 0.6 w and the
    lexical list's 0.2 + 0.6 w; without the other, the dense list's is 0.6 + 0.4 w and the lexical list's
    0.75 + 0.25 w.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.recipes._parts.direct import list_weights
    >>> list_weights(("lexical", "dense", "graph"), np.array([0.0, 1.0]))
    {'lexical': array([0.2, 0.8]), 'dense': array([0.4, 1. ]), 'graph': array([1., 0.])}
    """
    ends = {"graph": (1.0, 0.0), **(TOGETHER if {"dense", "lexical"} <= set(legs) else ALONE)}
    return {leg: ends[leg][0] + (ends[leg][1] - ends[leg][0]) * direct for leg in legs}


def coverage(words: Hits | None, lists: Mapping[str, Hits], num_passages: int) -> dict[str, NDArray[np.float64]]:
    """Return what each hit of each list has of the question's words, (B, W): its score by words over the best.

    Parameters
    ----------
    words : Hits or None
        Passages by all words of each question. Without words, or where no passage has one, every hit has all.
    lists : mapping of str to Hits (B, W)
    num_passages : int
    """
    shares = {name: np.ones(hits.ids.shape) for name, hits in lists.items()}
    if words is None:
        return shares
    score = np.zeros(num_passages, np.float32)
    for b, listed in enumerate(words.counts.tolist()):
        best = float(words.scores[b, :listed].max(initial=0.0))
        if best > 0:
            known = words.ids[b, :listed]
            score[known] = words.scores[b, :listed]
            for name, hits in lists.items():
                found = hits.ids[b, : int(hits.counts[b])]
                shares[name][b, : found.size] = score[found].astype(np.float64) / best
            score[known] = 0.0
    return shares


def direct_terms(
    lists: Mapping[str, Hits], words: Hits | None, direct: NDArray[np.float64], ranks: RRF, num_passages: int
) -> dict[str, NDArray[np.float32]]:
    """Return what each place of each list adds to its passage's score, by name of list.

    The walk's weight is 1 - 0.7 w with w the question's of :func:`direct_weights`. That of a dense hit is w g, with
    g = w / (w + (1 - w)(1 - c)) and c its :func:`coverage`, and that of a lexical hit half of this: a passage that only
    resembles the question, and has none of its words, counts little where names are rare. Each is divided by
    rank_constant + rank.
    """
    w, terms = direct[:, None], {}
    shares = coverage(words, {name: hits for name, hits in lists.items() if name != "guided"}, num_passages)
    for name, hits in lists.items():
        if name == "guided":
            weight = np.broadcast_to(1.0 - (1.0 - WALK_LEAST) * w, hits.ids.shape)
        else:
            lacks = (1.0 - w) * (1.0 - shares[name])
            weight = np.divide(w * w, w + lacks, out=np.zeros(hits.ids.shape), where=w + lacks > 0)
        if name == "dense":
            weight = np.maximum(weight, APPEND)
        elif name == "lexical":
            weight = WORDS * weight
        held = np.arange(hits.ids.shape[1]) < np.asarray(hits.counts)[:, None]
        terms[name] = np.where(held, weight / _places(hits, ranks), 0.0).astype(np.float32)
    return terms


def rank_terms(hits: Hits, ranks: RRF, weight: float) -> NDArray[np.float64]:
    """Return what each place of a list adds to a score at one weight for all questions, (B, W)."""
    return np.broadcast_to(weight / _places(hits, ranks), hits.ids.shape)


def _places(hits: Hits, ranks: RRF) -> NDArray[np.float64]:
    """Return what reciprocal ranks divide by at each place of a list, (W,)."""
    return np.asarray(ranks.rank_constant + 1.0 + np.arange(hits.ids.shape[1]), np.float64)


def rank_by_terms(lists: Mapping[str, Hits], terms: Mapping[str, NDArray[np.float32]], **how: Any) -> Hits:
    """Return the ranking by the sums of terms; a hit without a positive term is left out of its list."""
    scored = [_with_scores(hits, terms[name]) for name, hits in lists.items()]
    return fuse(scored, method="comb_sum", calibration="none", backend="cpu", **how)


def _with_scores(hits: Hits, scores: NDArray[np.float32]) -> Hits:
    """Return the hits with other scores, which are 0 beyond the counts; those without a positive one are left out."""
    is_positive = scores > 0
    if np.count_nonzero(is_positive) == hits.counts.sum():
        return Hits.unchecked(hits.ids, scores, hits.counts)  # in any order, which a sum does not depend on
    order = np.argsort(-scores, axis=1, kind="stable")
    ids, ranked = (np.take_along_axis(part, order, axis=1) for part in (hits.ids, scores))
    return Hits.unchecked(ids, ranked, np.count_nonzero(is_positive, axis=1))


def best_direct(lists: Mapping[str, Hits], ranks: RRF, threads: int | None) -> Hits:
    """Return the best hit of the dense and the lexical list together, by reciprocal ranks, (B, 1)."""
    direct = [lists[name] for name in ("dense", "lexical") if name in lists]
    return fuse(direct, method=ranks, k=1, backend="cpu", threads=threads)


def keep(hits: Hits, best: Hits, k: int) -> tuple[Hits, NDArray[np.bool_]]:
    """Return k hits of which the first five hold the best direct one, and for which questions it was moved there.

    Parameters
    ----------
    hits : Hits (B, W)
        The ranking; W is at least k, and 5 unless there are fewer candidates.
    best : Hits (B, 1)
    k : int
    """
    ids, scores, counts = np.array(hits.ids), np.array(hits.scores), np.array(hits.counts)
    if ids.shape[1] < KEPT_AMONG:
        return hits.head(k), np.zeros(len(hits), bool)
    last, wanted = KEPT_AMONG - 1, np.asarray(best.ids)[:, 0]
    moved = (
        (np.asarray(best.counts) > 0) & (counts >= KEPT_AMONG) & ~(ids[:, :KEPT_AMONG] == wanted[:, None]).any(axis=1)
    )
    for b in np.flatnonzero(moved).tolist():
        at = next((int(place) for place in np.flatnonzero(ids[b] == wanted[b])), ids.shape[1] - 1)
        score = min(np.nextafter(scores[b, last], np.float32(np.inf)), scores[b, last - 1])
        for row, value in ((ids, wanted[b]), (scores, score)):
            row[b, last + 1 : at + 1] = row[b, last:at].copy()
            row[b, last] = value
    return Hits.unchecked(ids, scores, counts).head(k), moved


# ---- A search --------------------------------------------------------------------------------------------------------


class FusedOutcome(NamedTuple):
    """A search of a batch over lists that weights fuse: its inputs, and its results."""

    seeds: Sequence[Sequence[Seed]]  # that each question names; empty without a graph
    starts: Seeds | None  # the same, as nodes
    rarest: Sequence[Rarest | None]
    direct: NDArray[np.float64]
    lists: Mapping[str, Hits]
    hits: Hits
    view: View | None
    fell_back: NDArray[np.bool_]
