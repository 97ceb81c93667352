"""PhaseGraph: dense retrieval and a walk over the entity graph, fused as Boltzmann probabilities.

    question ─► vector ─► dense top-k ──────────────────────────────► pool (dense_k) ───► PIT ─┐
        │                    └─(passage seeds)─┐                                               │
        ├─► entities ─► seeds, 1/frequency ────┴─► PPR ─► passages ─► pool (graph_k) ───► PIT ─┼─► Boltzmann ─► top k
        └─► words ─► a lexical leg, where there is one ─────────────► pool (lexical_k) ─► PIT ─┘

All queries of a batch go through every stage together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..errors import InputError
from ..index import Index
from ..ops._checks import check_k, check_whole
from ..ops.calibration import calibrate
from ..ops.capture import Captured, capture
from ..ops.dense import dense_topk
from ..ops.fusion import fuse
from ..ops.ppr import ppr_topk
from ..ops.seeding import seed_hits
from ..types import Hits, PprHits, Seeds
from ._lexical import LexicalLeg, checked_leg, lexical_pool
from ._questions import (
    LEAST_SEEDS,
    check_queries,
    checked_damping,
    checked_threshold,
    padded,
    question_seeds,
    question_vectors,
    seed_width,
)
from ._seeding import EntitySeeder
from ._trace import trace_queries


@dataclass(frozen=True, eq=False)
class PhaseGraphResult:
    """What a search found.

    Attributes
    ----------
    hits : Hits
        The fused ranking; ids are passage rows of the index.
    dense, graph : Hits
        The two pools with their raw scores; the graph pool (a :class:`~hopfuse.PprHits`) of a query without seeds is
        empty.
    seeds : Seeds
        The entities that each query's walk started from, as nodes of the graph; a row of padding where it had none.
    traces : list of dict, or None
        One per query where ``explain=True``; see :meth:`PhaseGraph.search`.
    lexical : Hits, or None
        The lexical pool with its raw scores, where the recipe has such a leg.
    """

    hits: Hits
    dense: Hits
    graph: PprHits
    seeds: Seeds
    traces: list[dict[str, Any]] | None
    lexical: Hits | None = None


class PhaseGraph:
    """The PhaseGraph retrieval system over an index.

    Parameters
    ----------
    index : Index
        With vectors and a graph.
    alpha : float
        Weight of the dense leg in [0, 1]; the graph leg has 1 - alpha.
    dense_k, graph_k : int
        Pool caps: list lengths matter as much as alpha.
    damping : float
        Of the walk (:func:`hopfuse.ppr`).
    consensus : float
        Added to passages that are in both pools (0.5 to 1.5 in the paper; probabilities are far smaller).
    temperature : "auto" or float > 0
        Of the Boltzmann distributions; "auto" is 2/3 of a list's mean energy.
    ties : {"strict", "weak", "mean", "rank"}
        Tie rule of the percentile ranks.
    passage_seeds : float
        HippoRAG-2-style passage seeds: the restart mass on the dense pool (shares by min-max calibrated score)
        for each unit on entities. 0: entities only.
    encoder : optional
        ``encode_queries(texts)`` for questions given as text, and for entity mentions no name or alias matches.
    matcher : optional
        ``match(texts)``, a list per text of matches with an ``entity`` number (:class:`hopfuse.extract.Gazetteer`),
        for questions given without their entities.
    lexical : optional
        ``search(questions, k)``, Hits over the index's passages (:class:`hopfuse.lexical.BM25`): a third list. The
        questions are then needed as text.
    lexical_weight : float
        Weight of the lexical leg, at least 0, beside ``alpha`` and 1 - alpha. What serves depends on the questions: the
        default, the graph's, was not fitted to any.
    lexical_k : int
        Its pool cap.
    entity_threshold : float
        Cosine similarity from which the nearest entity by embedding counts as matched.
    threads : int, optional

    References
    ----------
    PhaseGraph (percentile ranks, Boltzmann fusion, T = 2/3 mean energy); passage seeds: HippoRAG 2. The lexical leg is
    not the paper's.

    Examples
    --------
    >>> import hopfuse as hf
    >>> index = hf.Index.build(
    ...     passages=[{"text": "Ada wrote notes on the Engine."}, {"text": "The Engine was built by Babbage."}],
    ...     vectors=[[1.0, 0.0], [0.0, 1.0]],
    ...     entities=["Ada", "Engine", "Babbage"],
    ...     graph=[{"src": 0, "dst": 2}, {"src": 0, "dst": 3}, {"src": 1, "dst": 3}, {"src": 1, "dst": 4}],
    ... )
    >>> found = hf.recipes.PhaseGraph(index).search(vectors=[[1.0, 0.1]], entities=[["Ada"]], k=2)
    >>> found.hits.ids
    array([[0, 1]])
    """

    def __init__(
        self,
        index: Index,
        *,
        alpha: float = 0.7,
        dense_k: int = 100,
        graph_k: int = 30,
        damping: float = 0.5,
        consensus: float = 0.0,
        temperature: float | Literal["auto"] = "auto",
        ties: Literal["strict", "weak", "mean", "rank"] = "strict",
        passage_seeds: float = 0.0,
        encoder: Any = None,
        matcher: Any = None,
        lexical: LexicalLeg | None = None,
        lexical_weight: float = 0.3,
        lexical_k: int = 100,
        entity_threshold: float = 0.8,
        threads: int | None = None,
    ) -> None:
        if index.corpus is None or index.graph is None:
            raise InputError("PhaseGraph needs an index with vectors and a graph; build it with vectors= and graph=")
        if isinstance(alpha, str) or not 0 <= alpha <= 1:
            raise InputError(f"alpha is {alpha!r}; it must be in [0, 1]")
        if isinstance(passage_seeds, str) or not (np.isfinite(passage_seeds) and passage_seeds >= 0):
            raise InputError(f"passage_seeds is {passage_seeds!r}; it must be a finite number, at least 0")
        if isinstance(consensus, bool) or not isinstance(consensus, int | float | np.integer | np.floating):
            raise InputError(f"consensus is {consensus!r}; it must be one number, for all queries")
        self.index = index
        self.alpha = float(alpha)
        self.dense_k, self.graph_k = check_whole(dense_k, "dense_k"), check_whole(graph_k, "graph_k")
        self.damping, self.consensus, self.passage_seeds = checked_damping(damping), consensus, float(passage_seeds)
        self.temperature: float | Literal["auto"] = temperature
        self.ties: Literal["strict", "weak", "mean", "rank"] = ties
        self.encoder, self.matcher, self.threads = encoder, matcher, threads
        self.lexical, self.lexical_weight = checked_leg(lexical, lexical_weight)
        self.lexical_k = check_whole(lexical_k, "lexical_k")
        self._corpus, self._graph = index.corpus, index.graph
        self._passages = np.arange(index.num_passages)
        self._captured: dict[tuple[Any, ...], Captured] = {}
        self._seeder = EntitySeeder(index, encoder, checked_threshold(entity_threshold))
        self._check_options()

    def search(
        self,
        queries: Sequence[str] | None = None,
        *,
        vectors: Any = None,
        entities: Sequence[Sequence[Any]] | None = None,
        k: int = 10,
        explain: bool = False,
    ) -> PhaseGraphResult:
        """Rank the passages for a batch of questions.

        Parameters
        ----------
        queries : sequence of str, optional
            B questions; read by the encoder where ``vectors`` are absent, by the matcher where ``entities`` are, and by
            the lexical leg.
        vectors : array_like of float (B, d), optional
        entities : sequence of B sequences of str or int, optional
            Names as the questions have them, or entity numbers of the index.
        k : int
        explain : bool
            Adds ``traces``: per query ``seeds`` (entity, surface, how it matched, weight), ``dense``, ``graph`` and
            any ``lexical`` pool (raw score, percentile rank, probability), ``temperatures``, and for each hit what
            each leg contributed.

        Returns
        -------
        PhaseGraphResult
        """
        if queries is not None:
            check_queries(queries)
        vectors = question_vectors(self.encoder, queries, vectors, self._corpus.dim)
        seeds = question_seeds(self._seeder, self.matcher, queries, entities, len(vectors), self.threads)
        lexical = lexical_pool(self.lexical, queries, self.lexical_k, self.index.num_passages)

        starts = padded(seeds, self.index.num_passages)
        words = () if lexical is None else (lexical.ids, lexical.scores, lexical.counts)
        found = self._core(int(starts.nodes.shape[1]), k)(vectors, starts.nodes, starts.weights, *words)
        pools = {"dense": found["dense"], "graph": found["graph"]} | ({} if lexical is None else {"lexical": lexical})
        traces = trace_queries(self, seeds, pools, found["hits"]) if explain else None
        return PhaseGraphResult(found["hits"], found["dense"], found["graph"], starts, traces, lexical)

    @property
    def weights(self) -> dict[str, float]:
        """What each leg's probabilities count."""
        legs = {"dense": self.alpha, "graph": 1.0 - self.alpha}
        return legs if self.lexical is None else legs | {"lexical": self.lexical_weight}

    def _check_options(self) -> None:
        """An empty search: every operation refuses its own bad options now, not after the work of a real one."""
        nothing = np.zeros((0, self._corpus.dim), np.float32)
        self.search([], vectors=nothing, entities=[], k=1)

    def warmup(
        self, k: int = 10, *, batch_sizes: Sequence[int] = (1, 2, 4, 8, 16, 32), most_seeds: int = LEAST_SEEDS
    ) -> None:
        """Prepare searches of these batch sizes, so that the first need not wait; on the CPU there is nothing to do.

        Parameters
        ----------
        k : int
            As in :meth:`search`.
        batch_sizes : sequence of int
        most_seeds : int
            Entities of a question; the width is a power of two, and each has recordings of its own.
        """
        self._core(seed_width(check_whole(most_seeds, "most_seeds")), k).warmup(batch_sizes)

    def _core(self, width: int, k: int) -> Captured:
        """The search of vectors and padded seeds, for one width and k: on a GPU one upload, one graph, one download."""
        options = (self.dense_k, self.graph_k, self.alpha, self.damping, self.consensus, self.temperature, self.ties)
        key = (width, check_k(k), *options, self.passage_seeds, self.threads, *self.weights.values(), self.lexical_k)
        if key not in self._captured:

            def search(vectors: Any, nodes: Any, weights: Any, *words: Any) -> dict[str, Hits]:
                dense = dense_topk(vectors, self._corpus, self.dense_k, threads=self.threads)
                graph = self._walk(Seeds(nodes, weights), dense)
                lists = [dense, graph, Hits._trusted(*words)] if words else [dense, graph]
                return {"dense": dense, "graph": graph, "hits": self._fuse(lists, k)}

            shapes: list[tuple[tuple[int, ...], Any]] = [((self._corpus.dim,), np.float32)]
            shapes += [((width,), np.int64), ((width,), np.float64)]
            if self.lexical is not None:
                shapes += [((self.lexical_k,), np.int64), ((self.lexical_k,), np.float32), ((), np.int64)]
            self._captured[key] = capture(search, shapes)
        return self._captured[key]

    def _walk(self, seeds: Seeds, dense: Hits) -> PprHits:
        """The graph pool: passages by Personalized PageRank from the seeds; empty where there are none."""
        if self.passage_seeds > 0:
            seeds = seed_hits(seeds, calibrate(dense, "min_max", threads=self.threads), self.passage_seeds)
        return ppr_topk(
            self._graph,
            seeds,
            self.graph_k,
            among=self._passages,
            stop="tol",
            empty="skip",
            damping=self.damping,
            threads=self.threads,
        )

    def _fuse(self, lists: list[Hits], k: int) -> Hits:
        return fuse(
            lists,
            method="boltzmann",
            temperature=self.temperature,
            weights=tuple(self.weights.values()),
            ties=self.ties,
            consensus=self.consensus,
            k=k,
            threads=self.threads,
        )
