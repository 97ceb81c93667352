"""Lexical, dense and graph retrieval by weighted reciprocal ranks, with a prior.

    question ─► words ──► lexical leg ──────────────────────► pool (lexical_k) ─► 1   /(60 + rank) ─┐
        │         └─────► titles that it names ─────────────► exact ────────────► bonus/(60 + rank) ┤
        ├─► vector ─────► dense top-k ──────────────────────► pool (dense_k) ───► 1   /(60 + rank) ─┼► Σ × prior ► top k
        └─► entities ───► seeds, 1/frequency ─► PPR ────────► pool (graph_k) ───► 0.35/(60 + rank) ─┘

A leg that is not there, or finds nothing, adds exactly 0: where words alone find something, RRF's order is the lexical
leg's (without a prior or a bonus, and with a weight above 0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..errors import InputError
from ..fusion import RRF, Calibration, Prior
from ..index import Index
from ..ops._checks import check_k, check_whole
from ..ops.dense import dense_topk
from ..ops.fusion import fuse
from ..ops.ppr import ppr_topk
from ..types import Hits
from ._exact import TitleMatcher
from ._lexical import LexicalLeg, checked_leg, lexical_pool
from ._mentions import Matcher
from ._questions import (
    check_queries,
    checked_damping,
    checked_threshold,
    padded,
    question_seeds,
    question_vectors,
)
from ._rank_trace import trace_ranks
from ._seeding import EntitySeeder, Seed, TextEncoder

Fusion = Literal["rrf", "convex"]
LEGS = ("lexical", "dense", "graph", "exact")


@dataclass(frozen=True, eq=False)
class HybridRRFResult:
    """What a search found; ids are passage rows of the index.

    Attributes
    ----------
    hits : Hits
        The fused ranking.
    lists : dict of str to Hits
        Each leg's own list with its raw scores: of ``"lexical"``, ``"dense"``, ``"graph"`` and ``"exact"`` those that
        the recipe has.
    traces : list of dict, or None
        One per query where ``explain=True``; see :meth:`HybridRRF.search`.
    """

    hits: Hits
    lists: dict[str, Hits]
    traces: list[dict[str, Any]] | None


class HybridRRF:
    """Words, vectors and a graph, each as far as the index has them, fused by weighted reciprocal ranks.

    Parameters
    ----------
    index : Index
        Its vectors are the dense leg and its graph the graph leg; without one of them that leg is empty.
    lexical : optional
        ``search(questions, k)``, Hits over the index's passages (:class:`hopfuse.lexical.BM25`, or
        :class:`hopfuse.lexical.FTS5` where there is SQLite alone).
    weights : (float, float, float)
        Of the lexical, the dense and the graph leg, finite and at least 0: by default the graph, sparse and often
        empty, counts for less.
    rank_constant : float
        RRF's k.
    lexical_k, dense_k, graph_k : int
        Pool caps.
    importance : :class:`hopfuse.fusion.Prior` or array_like (P,), optional
        Of each passage, in [0, 1]; NaN where it is not known. A fused score is multiplied by 0.7 + 0.3 importance, or
        by 1 where that is not known.
    exact_bonus : float
        Weight of a list of the passages whose whole title the question names, the longest first. 0: no such list.
    fusion : {"rrf", "convex"}
        ``"convex"`` adds scores instead of reciprocal ranks, each between the least that its leg can give and its
        list's largest, by the same weights: TM2C2. Vectors are then compared by cosine, whose least is -1, whatever
        the index's metric; the other legs' least is 0.
    damping : float
        Of the walk (:func:`hopfuse.ppr`).
    encoder, matcher, entity_threshold : optional
        As :class:`PhaseGraph` has them.
    threads : int, optional

    References
    ----------
    score = Σ w/(k + rank), ranks from 1: Cormack, Clarke & Büttcher, SIGIR 2009. TM2C2: Bruch, Gai & Ingber, TOIS 2023.

    Examples
    --------
    >>> import hopfuse as hf
    >>> texts = ["Ada wrote notes on the Engine.", "The Engine was built by Babbage.", "The sea."]
    >>> index = hf.Index.build(passages=[{"text": text} for text in texts])
    >>> recipe = hf.recipes.HybridRRF(index, lexical=hf.lexical.FTS5.build(texts))
    >>> recipe.search(["Who built the engine?"], k=2).hits.ids
    array([[1, 0]])
    """

    def __init__(
        self,
        index: Index,
        *,
        lexical: LexicalLeg | None = None,
        weights: Sequence[float] = (1.0, 1.0, 0.35),
        rank_constant: float = 60.0,
        lexical_k: int = 100,
        dense_k: int = 100,
        graph_k: int = 30,
        importance: Any = None,
        exact_bonus: float = 0.0,
        fusion: Fusion = "rrf",
        damping: float = 0.5,
        encoder: TextEncoder | None = None,
        matcher: Matcher | None = None,
        entity_threshold: float = 0.8,
        threads: int | None = None,
    ) -> None:
        if lexical is None and index.corpus is None and index.graph is None:
            raise InputError("HybridRRF has no leg: give lexical=, or an index with vectors or a graph")
        if fusion not in ("rrf", "convex"):
            raise InputError(f"fusion is {fusion!r}; allowed: rrf, convex")
        self.index, self.damping, self.threads = index, checked_damping(damping), threads
        self.lexical, bonus = checked_leg(lexical, exact_bonus, "exact_bonus")
        self.weights = dict(zip(LEGS, (*_three(weights), bonus), strict=True))
        caps = {"lexical": lexical_k, "dense": dense_k, "graph": graph_k}
        most = max(1, index.num_passages)
        self.pools = {leg: min(check_whole(cap, f"{leg}_k"), most) for leg, cap in caps.items()}
        self.fusion: Fusion = fusion
        whole = index.corpus
        self._corpus = whole if whole is None or fusion == "rrf" else whole.with_metric("cosine")
        self.rank_constant = RRF(rank_constant=rank_constant).rank_constant
        self.prior = importance if importance is None or isinstance(importance, Prior) else Prior(importance)
        if self.prior is not None and self.prior.factors.size != index.num_passages:
            known = self.prior.factors.size
            raise InputError(f"importance is of {known} passages; the index has {index.num_passages}: give one each")
        self.encoder, self.matcher = encoder, matcher
        self._seeder = EntitySeeder(index, encoder, checked_threshold(entity_threshold))
        self._titles = TitleMatcher(index.titles) if bonus > 0 else None
        self._check_options()

    def search(
        self,
        queries: Sequence[str] | None = None,
        *,
        vectors: Any = None,
        entities: Sequence[Sequence[Any]] | None = None,
        k: int = 10,
        explain: bool = False,
    ) -> HybridRRFResult:
        """Rank the passages for a batch of questions.

        Parameters
        ----------
        queries : sequence of str, optional
            B questions; needed by the lexical leg and the exact titles, and where ``vectors`` or ``entities`` are
            absent.
        vectors : array_like of float (B, d), optional
        entities : sequence of B sequences of str or int, optional
            Names as the questions have them, or entity numbers of the index.
        k : int
        explain : bool
            Adds ``traces``: per query ``seeds``, each leg's list with ranks and raw scores, and for each hit its ranks,
            the prior's factor and, under RRF, what each rank contributed.

        Returns
        -------
        HybridRRFResult
        """
        k, lists = check_k(k), dict[str, Hits]()
        if queries is not None:
            check_queries(queries)
        self._check_given(queries, vectors, entities)
        seeds: list[list[Seed]] = []
        words = lexical_pool(self.lexical, queries, self.pools["lexical"], self.index.num_passages)
        if words is not None:
            lists["lexical"] = words
        if self._corpus is not None:
            asked = question_vectors(self.encoder, queries, vectors, self._corpus.dim)
            lists["dense"] = dense_topk(asked, self._corpus, self.pools["dense"], threads=self.threads)
        if self.index.graph is not None:
            batch = len(next(iter(lists.values()))) if lists else None if queries is None else len(queries)
            seeds = question_seeds(self._seeder, self.matcher, queries, entities, batch, self.threads)
            lists["graph"] = self._walk(seeds)
        if self._titles is not None:
            lists["exact"] = self._titles.search(queries)
        hits = self._fuse(lists, k)
        return HybridRRFResult(hits, lists, trace_ranks(self, seeds, lists, hits) if explain else None)

    def _check_given(self, queries: Any, vectors: Any, entities: Any) -> None:
        """Refuse what no leg would read."""
        legs = {"vectors": (vectors, self._corpus), "entities": (entities, self.index.graph)}
        for name, (given, leg) in legs.items():
            if given is not None and leg is None:
                part = "vectors" if name == "vectors" else "graph"
                raise InputError(
                    f"{name}= is given, and the index has no {part}; leave it out, or build it with {part}="
                )
        if queries is not None and entities is not None and _count(entities) not in (None, len(queries)):
            raise InputError(f"entities has {len(entities)} rows for {len(queries)} queries; give one row per query")

    def _check_options(self) -> None:
        """An empty search: every operation refuses its own bad options now, not after the work of a real one."""
        vectors = None if self._corpus is None else np.zeros((0, self._corpus.dim), np.float32)
        self.search([], vectors=vectors, entities=None if self.index.graph is None else [], k=1)

    def _walk(self, seeds: list[list[Seed]]) -> Hits:
        """Passages by Personalized PageRank from the seeds; an empty list where there are none."""
        assert self.index.graph is not None
        return ppr_topk(
            self.index.graph,
            padded(seeds, self.index.num_passages),
            self.pools["graph"],
            among=np.arange(self.index.num_passages),
            stop="tol",
            empty="skip",
            damping=self.damping,
            threads=self.threads,
        )

    def _fuse(self, lists: Mapping[str, Hits], k: int) -> Hits:
        options: dict[str, Any] = {"method": "rrf", "rank_constant": self.rank_constant}
        if self.fusion == "convex":
            lower = tuple(-1.0 if leg == "dense" else 0.0 for leg in lists)
            options = {"method": "linear", "calibration": Calibration("theoretical_min_max", lower=lower)}
        weights = tuple(self.weights[leg] for leg in lists)
        return fuse(list(lists.values()), weights=weights, prior=self.prior, k=k, threads=self.threads, **options)


def _three(weights: Any) -> tuple[float, float, float]:
    try:
        array = np.asarray(list(weights), np.float64)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.shape != (3,) or not (np.isfinite(array) & (array >= 0)).all():
        raise InputError(
            f"weights is {weights!r}; give three finite numbers, at least 0: the lexical, the dense and the graph leg's"
        )
    lexical, dense, graph = array.tolist()
    return lexical, dense, graph


def _count(rows: Any) -> int | None:
    return len(rows) if hasattr(rows, "__len__") else None
