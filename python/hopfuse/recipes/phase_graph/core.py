"""PhaseGraph: dense retrieval and a walk over the entity graph, fused as Boltzmann probabilities.

    question ─► vector ─► dense top-k ──────────────────────────────► pool (dense_k) ───► PIT ─┐
        │                    └─(passage seeds)─┐                                               │
        ├─► entities ─► seeds, 1/frequency ────┴─► PPR ─► passages ─► pool (graph_k) ───► PIT ─┼─► Boltzmann ─► top k
        └─► words ─► a lexical leg, if given ───────────────────────► pool (lexical_k) ─► PIT ─┘

The rarest of a question's entities gives the weights of its lists: the fewer passages contain it, the more the walk's.
With another fusion method, it replaces Boltzmann, and its calibration replaces PIT. All questions of a batch go through
every stage together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from ..._validation import check_names
from ...index import Index
from ...ops.calibration import calibrate
from ...ops.capture import auto_backend
from ...ops.dense import dense_topk
from ...ops.fusion import fuse
from ...ops.ppr import ppr_topk
from ...ops.seeding import add_passage_seeds
from ...types import Corpus, Graph, Hits, Seeds
from .._parts.direct import FusedOutcome, direct_weights, name_seeds, rarest_seeds
from .._parts.filters import View
from .._parts.hits import fall_back
from .._parts.lexical import LexicalLeg, lexical_length, lexical_pool
from .._parts.mentions import Matcher
from .._parts.questions import QuestionBatch, notes_of
from .._parts.recorded import RecordedCores, RecordedRecipe
from .._parts.seeding import EntitySeeder, padded
from ..protocol import Needs
from ..results import SearchResult
from .config import LEXICAL_K, PhaseGraphConfig
from .trace import trace_queries


def phase_graph(
    vectors: Any,
    seeds: Seeds,
    words: Hits | None,
    *,
    k: int,
    view: View | None,
    config: PhaseGraphConfig,
    corpus: Corpus,
    graph: Graph,
    backend: str,
    threads: int | None,
) -> dict[str, Hits]:
    """Return the lists ``"dense"``, ``"graph"`` and, if given, ``"lexical"``.

    If all questions have the same weights, also return their fusion ``"hits"``.

    Parameters
    ----------
    vectors : (B, d)
    seeds : Seeds (B, S)
        Entities, as nodes of the graph.
    words : Hits or None
        The lexical list.
    k : int
    view : View or None
        Passages that each question may find; None for all.
    config, corpus, graph, backend, threads
        The same for all questions.
    """
    passages = np.arange(len(corpus))
    allow, ranked = (None, passages) if view is None else (view.allow, view.candidates)
    run: dict[str, Any] = {"backend": backend, "threads": threads}

    dense = dense_topk(vectors, corpus, config.dense_k, allow=allow, **run)

    if config.passage_seeds > 0:
        shares = calibrate(dense, "min_max", **run)
        seeds = add_passage_seeds(seeds, shares, config.passage_seeds, backend=backend)
    walked = ppr_topk(
        graph,
        seeds,
        config.graph_k,
        candidates=ranked,
        damping=config.damping,
        edge_type_weights=config.edge_weights,
        stop="tol",
        empty="skip",
        **run,
    )

    lists = {"dense": dense, "graph": walked} | ({} if words is None else {"lexical": words})
    if config.by_question:
        return lists
    return {**lists, "hits": fuse(list(lists.values()), k=k, **config.fusing(tuple(lists)), **run)}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PhaseGraphResult(SearchResult):
    """Results of a search.

    Attributes
    ----------
    hits : Hits
        The fused ranking; ids are passage rows of the index.
    lists : mapping of str to Hits
        ``"dense"``, ``"graph"`` (a :class:`~hopfuse.PprHits`) and, with a lexical leg, ``"lexical"``: the fused lists
        with their raw scores. Where ``fell_back`` is True, the graph list holds hits of the dense list, and its
        evidence describes a walk without a pass.
    seeds : Seeds
        The entities that each question's walk started from, as nodes of the graph; a row of padding if there are none.
    traces : list of dict, or None
        One per question if ``trace=True``. A trace has:

        - ``seeds``: entity, surface, kind of match, weight; ``left_out``: the entities that it may not see;
        - ``allowed``: the number of passages that it may find, or None;
        - ``fell_back``: whether the dense list replaces its graph list;
        - ``direct``, unless weights are given: the ``weight`` w, for how far the question is left to vectors and words,
          and the ``reason``;
        - the lists ``dense``, ``graph`` and, if given, ``lexical``: rank, raw score, ``percentile`` or, for another
          calibration, ``calibrated``, and ``probability`` or ``share``;
        - ``temperatures``, if the method has one for each list;
        - for each hit ``ranks``, ``contributions`` and ``consensus`` and, if it is in the graph list, ``paths`` as in
          :class:`GuidedWalkResult`.

        Shares and contributions exist if a fused score is the weighted sum of the scores from fusing each list by
        itself.
    """

    seeds: Seeds


class PhaseGraph(RecordedRecipe[PhaseGraphResult]):
    """A dense list and a walk from the question's entities, fused by the Boltzmann distributions of their scores.

    Parameters
    ----------
    index : Index
        With vectors and a graph.
    config : :class:`PhaseGraphConfig`, optional
    encoder : optional
        Object with ``encode_queries(texts)`` or ``encode_query(texts)``. It encodes questions given as text, and
        mentions of entities that match no name or alias. It must be the encoder that the index was built with, if the
        index records one.
    matcher : optional
        Object with ``match(texts)``, which returns for each text a list of matches with an ``entity`` number
        (:class:`hopfuse.extract.EntityLinker`). It finds the entities of questions given without them.
    lexical : optional
        Object with ``search(questions, k)``, which returns Hits over the index's passages
        (:class:`hopfuse.lexical.BM25`), as a third list. Questions then need their text.
    threads : int, optional
        CPU threads. Default: HOPFUSE_NUM_THREADS, else all processors of the process.
    **options
        Fields of the config; they override those of ``config``.

    Raises
    ------
    InputError
        An index without vectors or a graph, an option that the config does not have or refuses, options of the lexical
        leg without one, or an encoder other than the index's.

    Notes
    -----
    On a GPU a search is recorded once and replayed (:func:`hopfuse.capture`). With ``allow_scope="results"``, and for a
    method that refuses negative scores under a calibration that keeps their sign, the operations run one by one. The
    answers are the same.

    References
    ----------
    PhaseGraph (percentile ranks, Boltzmann fusion, T = 2/3 mean energy). Passage seeds: HippoRAG 2. The lexical leg is
    this project's.

    Examples
    --------
    >>> import hopfuse as hf
    >>> index = hf.Index.build(
    ...     passages=[{"text": "Ada wrote notes on the Engine."}, {"text": "The Engine was built by Babbage."}],
    ...     vectors=[[1.0, 0.0], [0.0, 1.0]],
    ...     entities=["Ada", "Engine", "Babbage"],
    ...     graph=[{"src": 0, "dst": 2}, {"src": 0, "dst": 3}, {"src": 1, "dst": 3}, {"src": 1, "dst": 4}],
    ... )
    >>> recipe = hf.recipes.PhaseGraph(index, alpha=0.6)
    >>> found = recipe.search(vectors=[[1.0, 0.1]], entities=[["Ada"]], k=2)
    >>> [hit.text for hit in found[0]]
    ['Ada wrote notes on the Engine.', 'The Engine was built by Babbage.']
    >>> found.hits.ids
    array([[0, 1]])
    """

    name: ClassVar[str] = "phase-graph"
    Config: ClassVar[type[PhaseGraphConfig]] = PhaseGraphConfig
    by_cosine: ClassVar[bool] = False

    def __init__(
        self,
        index: Index,
        config: PhaseGraphConfig | None = None,
        *,
        encoder: Any = None,
        matcher: Matcher | None = None,
        lexical: LexicalLeg | None = None,
        threads: int | None = None,
        **options: Any,
    ) -> None:
        made_with = {"encoder": encoder, "matcher": matcher, "lexical": lexical, "threads": threads}
        super().__init__(index, config, options, **made_with)
        assert index.corpus is not None
        assert index.graph is not None
        self._lexical_k = lexical_length(
            lexical,
            lexical_weight=self.config.lexical_weight,
            lexical_k=self.config.lexical_k,
            default=LEXICAL_K,
            num_passages=index.num_passages,
        )
        check_names(self.config.edge_weights or (), "edge_weights", index.graph.edge_type_names)
        _check_fusion(self.config, 2 if lexical is None else 3)
        self._seeder = EntitySeeder(index, self.encoder, self.config.entity_threshold)
        self._fixed: dict[str, Any] = {
            "config": self.config,
            "corpus": index.corpus,
            "graph": index.graph,
            "threads": self.threads,
        }
        core = partial(phase_graph, view=None, backend="auto", **self._fixed)
        self._recorded = RecordedCores(core, index.corpus.dim, None if lexical is None else self._lexical_k)

    @staticmethod
    def paper() -> PhaseGraphConfig:
        """Return :meth:`PhaseGraphConfig.paper`: ``PhaseGraph(index, PhaseGraph.paper())``."""
        return PhaseGraphConfig.paper()

    @cached_property
    def needs(self) -> Needs:
        """The inputs that a search reads."""
        words = self.lexical is not None
        return Needs(vectors=True, texts=words, entities=True, words=words)

    def _search(self, asked: QuestionBatch, view: View | None, k: int, trace: bool) -> PhaseGraphResult:
        assert asked.mentions is not None
        backend, records = auto_backend()
        seeds, unknown = self._seeder.seeds(asked.mentions, asked.vectors, backend=backend, threads=self.threads)
        starts = padded(seeds, self.index.num_passages)
        seen = None if view is None else view.allow
        words = lexical_pool(self.lexical, asked.texts, self._lexical_k, self.index.num_passages, seen)

        if records and view is None and self._is_recorded:
            lists = self._recorded(asked.vectors, starts, words, k=k)
        else:
            lists = phase_graph(asked.vectors, starts, words, k=k, view=view, backend=backend, **self._fixed)
        hits = lists.pop("hits", None)
        lists, fell_back = fall_back(lists, dense_fallback=self.config.dense_fallback)
        rarest = rarest_seeds(seeds, name_seeds(seeds, asked.texts, self.index), self.index)
        direct = direct_weights(rarest, self.index.num_passages)
        if hits is None or fell_back.any():  # on the host, whose results equal the device's bit for bit
            how = self.config.fusing(tuple(lists), direct)
            hits = fuse(list(lists.values()), k=k, backend="cpu", threads=self.threads, **how)

        traces = None
        if trace:
            outcome = FusedOutcome(seeds, starts, rarest, direct, lists, hits, view, fell_back)
            traces = trace_queries(self.index, self.config, outcome)
        notes = notes_of(asked, seeds, unknown, words)
        return PhaseGraphResult(hits, self.index, lists, traces, fell_back, notes, seeds=starts)

    @property
    def _is_recorded(self) -> bool:
        return not self.config.refuses_negative


def _check_fusion(config: PhaseGraphConfig, lists: int) -> None:
    """Refuse options that do not fit this number of lists."""
    config.fusion.kernel_options(lists)
    if config.rule is not None:
        config.rule.kernel_options(lists)
