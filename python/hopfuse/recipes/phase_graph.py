"""PhaseGraph: dense retrieval and a walk over the entity graph, fused as Boltzmann probabilities.

    question ─► vector ─► dense top-k ──────────────────────────────► pool (dense_k) ───► PIT ─┐
        │                    └─(passage seeds)─┐                                               │
        ├─► entities ─► seeds, 1/frequency ────┴─► PPR ─► passages ─► pool (graph_k) ───► PIT ─┼─► Boltzmann ─► top k
        └─► words ─► a lexical leg, where there is one ─────────────► pool (lexical_k) ─► PIT ─┘

Another fusion method stands in Boltzmann's place, its scale in PIT's. An Ising mean field comes behind it, where the
recipe reranks. All questions of a batch go through every stage together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from ..errors import InputError
from ..fusion import Calibration, FusionMethod
from ..fusion.calibration import CalibrationName, Ties
from ..index import Index
from ..ops._checks import check_k, check_whole
from ..ops.capture import Captured, capture
from ..ops.dense import dense_topk
from ..ops.ising import ising_rerank
from ..types import Hits, PprHits, Seeds
from . import _fusing
from ._allowed import View, Views
from ._ising import Ising, read_ising
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
from ._walk import checked_mass, read_type_weights, walk


@dataclass(frozen=True, eq=False)
class PhaseGraphResult:
    """What a search found.

    Attributes
    ----------
    hits : Hits
        The fused ranking, reranked where the recipe does; ids are passage rows of the index.
    dense, graph : Hits
        The two pools with their raw scores; the graph pool (a :class:`~hopfuse.PprHits`) of a query without seeds is
        empty.
    seeds : Seeds
        The entities that each query's walk started from, as nodes of the graph; a row of padding where it had none.
    traces : list of dict, or None
        One per query where ``explain=True``; see :meth:`PhaseGraph.search`.
    lexical : Hits, or None
        The lexical pool with its raw scores, where the recipe has such a leg.
    fused : Hits, or None
        The fused candidates with their scores before reranking, where the recipe reranks.
    """

    hits: Hits
    dense: Hits
    graph: PprHits
    seeds: Seeds
    traces: list[dict[str, Any]] | None
    lexical: Hits | None = None
    fused: Hits | None = None


class PhaseGraph:
    """The PhaseGraph retrieval system over an index.

    Parameters
    ----------
    index : Index
        With vectors and a graph.
    alpha : float, optional
        Weight of the dense leg in [0, 1], 0.7 by default; the graph leg has 1 - alpha.
    dense_k, graph_k : int
        Pool caps: list lengths matter as much as alpha.
    damping : float
        Of the walk (:func:`hopfuse.ppr`).
    edge_weights : mapping of str to float, optional
        What edges of a type count in the walk, by its name in the index's graph; 1 where it is not named. ``{"synonym":
        0}`` leaves the links between synonyms out.
    method : str or :class:`hopfuse.fusion.FusionMethod`
        What fuses the pools: a name or an object of :mod:`hopfuse.fusion`. Weights are the legs': a method that reads
        none takes neither ``alpha`` nor ``lexical_weight``.
    calibration : str or :class:`hopfuse.fusion.Calibration`, optional
        What scores go through first; by default the method's own.
    temperature : "auto" or float > 0, optional
        Of Boltzmann distributions, where the method has them; "auto", 2/3 of a list's mean energy, by default.
    ties : {"strict", "weak", "mean", "rank"}, optional
        Tie rule of the percentile ranks; "strict" by default.
    consensus : float
        Added to passages that are in two pools or more (0.5 to 1.5 in the paper; probabilities are far smaller).
    ising : :class:`Ising` or float
        Reranks the fused candidates by the entities that they share; a number is the blend. 0: off.
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
    lexical_weight : float, optional
        Weight of the lexical leg, at least 0, beside ``alpha`` and 1 - alpha. What serves depends on the questions: the
        default, 0.3 as the graph's, was not fitted to any.
    lexical_k : int, optional
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
        alpha: float | None = None,
        dense_k: int = 100,
        graph_k: int = 30,
        damping: float = 0.5,
        edge_weights: Mapping[str, float] | None = None,
        method: str | FusionMethod = "boltzmann",
        calibration: CalibrationName | Calibration | None = None,
        temperature: float | Literal["auto"] | None = None,
        ties: Ties | None = None,
        consensus: float = 0.0,
        ising: Ising | float = 0.0,
        passage_seeds: float = 0.0,
        encoder: Any = None,
        matcher: Any = None,
        lexical: LexicalLeg | None = None,
        lexical_weight: float | None = None,
        lexical_k: int | None = None,
        entity_threshold: float = 0.8,
        threads: int | None = None,
    ) -> None:
        if index.corpus is None or index.graph is None:
            raise InputError("PhaseGraph needs an index with vectors and a graph; build it with vectors= and graph=")
        self.index, self._corpus, self.threads = index, index.corpus, threads
        self.method, self.calibration, self.ties = _fusing.chosen_method(method, temperature), calibration, ties
        _fusing.check_weighted(self.method, alpha=alpha, lexical_weight=lexical_weight)
        self.alpha, self.consensus = _fusing.checked_alpha(alpha), _fusing.checked_consensus(consensus)
        self.dense_k, self.graph_k = check_whole(dense_k, "dense_k"), check_whole(graph_k, "graph_k")
        self.damping, self.passage_seeds = checked_damping(damping), checked_mass(passage_seeds)
        self.type_weights = read_type_weights(index.graph, edge_weights)
        if lexical is None:
            _fusing.check_unread(lexical_weight=lexical_weight, lexical_k=lexical_k)
        self.lexical, self.lexical_weight = checked_leg(lexical, 0.3 if lexical_weight is None else lexical_weight)
        self.lexical_k = check_whole(100 if lexical_k is None else lexical_k, "lexical_k")
        self.ising = read_ising(ising)
        self._shared = self.ising.graph(index.graph, index.num_passages)
        self._captured: dict[tuple[Any, ...], Captured] = {}
        self.encoder, self.matcher = encoder, matcher
        self._seeder = EntitySeeder(index, encoder, checked_threshold(entity_threshold))
        self._views = Views(index.graph, index.num_passages)
        self._check_options()

    def search(
        self,
        queries: Sequence[str] | None = None,
        *,
        vectors: Any = None,
        entities: Sequence[Sequence[Any]] | None = None,
        k: int = 10,
        allowed: Any = None,
        shared_graph: bool = False,
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
            Hits of each question; with ``ising`` at most its candidates.
        allowed : array_like of bool (P,) or (B, P), of int ids, or a sequence of B id lists, optional
            Passages that a question may see, for all questions or for each. The others change no answer: the dense list
            has none of them, the walk goes over the allowed passages and the entities next to those alone, and what a
            name finds and how often an entity occurs (a seed's weight) is read of those entities and passages. Entities
            that a question names and may not see are no seeds; its trace lists them. Three things are of the whole
            index all the same: edges between two entities that it may see, whoever stated them (a type is left out by
            ``edge_weights`` of 0); the names that a ``matcher`` knows; and a lexical leg's counts of words. A leg
            whose ``search`` has no ``allow=`` is asked for lists of all P passages.
        shared_graph : bool
            The walk goes over everything with the whole index's seeds, and only what is listed is restricted. Each
            distinct set of passages then is a walk of its own.
        explain : bool
            Adds ``traces``: per query ``seeds`` (entity, surface, how it matched, weight), ``left_out`` (likewise,
            those that it may not see) and ``allowed`` (how many passages it may, or None); ``dense``, ``graph`` and any
            ``lexical`` pool (rank, raw score, ``percentile`` or, on another scale, ``calibrated``, ``probability`` or
            ``share``); ``temperatures``; and for each hit its ``ranks``, ``contributions``, ``consensus`` and, where
            reranked, its ``fused`` score and rank. A share, and contributions, are there where a fused score is the
            weighted sum of what the method makes of each list alone; ``temperatures`` where the method has one a list.

        Returns
        -------
        PhaseGraphResult

        Notes
        -----
        On a GPU a search is one recording, replayed (:func:`hopfuse.capture`). With ``allowed``, and for a method that
        refuses scores below 0 on a scale that keeps them, the operations run one by one, with the same answers.
        """
        if queries is not None:
            check_queries(queries)
        self.ising.check_k(k := check_k(k))
        vectors = question_vectors(self.encoder, queries, vectors, self._corpus.dim)
        view = self._views.read(allowed, len(vectors), shared_graph)
        seeds = question_seeds(self._seeder, self.matcher, queries, entities, len(vectors), self.threads, view)
        seen = None if view is None else view.allow
        lexical = lexical_pool(self.lexical, queries, self.lexical_k, self.index.num_passages, seen)

        starts = padded(seeds, self.index.num_passages)
        words = () if lexical is None else (lexical.ids, lexical.scores, lexical.counts)
        alone = view is not None or _fusing.looks_at_scores(self.method, self.rule)
        core: Any = partial(self._answer, k, view) if alone else self._core(int(starts.nodes.shape[1]), k)
        found = core(vectors, starts.nodes, starts.weights, *words) | ({} if lexical is None else {"lexical": lexical})
        traces = trace_queries(self, seeds, found, view) if explain else None
        dense, graph, hits = found["dense"], found["graph"], found["hits"]
        return PhaseGraphResult(hits, dense, graph, starts, traces, lexical, found.get("fused"))

    @property
    def rule(self) -> Calibration | None:
        """What scores go through before the method reads them; None where it reads ranks."""
        return _fusing.rule_of(self.method, self.calibration, self.ties)

    @property
    def weights(self) -> dict[str, float]:
        """What each leg counts, where the method reads weights."""
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

        Nor is there for searches that are not recorded: see the notes of :meth:`search`.

        Parameters
        ----------
        k : int
            As in :meth:`search`.
        batch_sizes : sequence of int
        most_seeds : int
            Entities of a question; the width is a power of two, and each has recordings of its own.
        """
        self.ising.check_k(k := check_k(k))
        core = self._core(seed_width(check_whole(most_seeds, "most_seeds")), k)
        core.warmup([] if _fusing.looks_at_scores(self.method, self.rule) else batch_sizes)

    def _core(self, width: int, k: int) -> Captured:
        """The search of vectors and padded seeds, for one width and k: on a GPU one upload, one graph, one download."""
        options = (self.dense_k, self.graph_k, self.damping, self.consensus, self.passage_seeds, repr(self.method))
        scale = (self.calibration, self.ties, self.ising, *self.weights.values(), self.lexical_k)
        key = (width, k, *options, *scale, self.threads)
        if key not in self._captured:
            shapes: list[tuple[tuple[int, ...], Any]] = [((self._corpus.dim,), np.float32)]
            shapes += [((width,), np.int64), ((width,), np.float64)]
            if self.lexical is not None:
                shapes += [((self.lexical_k,), np.int64), ((self.lexical_k,), np.float32), ((), np.int64)]
            self._captured[key] = capture(partial(self._answer, k, None), shapes)
        return self._captured[key]

    def _answer(
        self, k: int, view: View | None, vectors: Any, nodes: Any, weights: Any, *words: Any
    ) -> dict[str, Hits]:
        """Every stage behind the texts."""
        allow = None if view is None else view.allow
        dense = dense_topk(vectors, self._corpus, self.dense_k, allow=allow, threads=self.threads)
        graph = walk(self, Seeds(nodes, weights), dense, view)
        lists = [dense, graph, Hits._trusted(*words)] if words else [dense, graph]
        found = {"dense": dense, "graph": graph}
        if not self.ising.blend:
            return found | {"hits": _fusing.fuse_pools(self, lists, k)}
        fused = _fusing.fuse_pools(self, lists, self.ising.candidates)
        best = ising_rerank(fused, self._shared, k=k, threads=self.threads, **self.ising.options)
        return found | {"fused": fused, "hits": best}
