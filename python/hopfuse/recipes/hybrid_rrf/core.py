"""HybridRRF: lexical, dense and graph retrieval, fused by weighted reciprocal ranks, with a prior.

    question ─► words ──► lexical leg ─────────────► pool (lexical_k) ─► (.2 + .6w)/(5 + rank) ─┐
        │         └─────► titles in the question ──► exact ────────────► bonus/(5 + rank) ──────┤
        ├─► vector ─────► dense top-k ─────────────► pool (dense_k) ───► (.4 + .6w)/(5 + rank) ─┼► Σ × prior ► top k
        └─► entities ─┬─► seeds, 1/frequency ─► PPR ─► pool (graph_k) ─► (1 - w)/(5 + rank) ────┘
                      └─► the rarest ─► w

w says how far a question is left to words and vectors: near 0 if few passages contain its rarest entity, 1 if it has
none. A leg that is absent or finds nothing adds exactly 0. If only the lexical leg finds something, RRF keeps its order
(without a prior or a bonus, and with a weight above 0).
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..._validation import check_length
from ...index import Index, IndexPart
from ...ops.capture import auto_backend
from ...ops.dense import dense_topk
from ...ops.fusion import fuse
from ...ops.ppr import ppr_topk
from ...text import fold, spaced, unaccented
from ...types import Corpus, Graph, Hits, Seeds
from .._parts.base import BaseRecipe
from .._parts.config import needed
from .._parts.direct import FusedOutcome, Rarest, direct_weights, name_seeds, rarest_seeds
from .._parts.filters import View, only
from .._parts.hits import fall_back
from .._parts.lexical import LexicalLeg, lexical_pool
from .._parts.mentions import Matcher
from .._parts.questions import QuestionBatch, notes_of
from .._parts.seeding import EntitySeeder, Seed, padded
from ..protocol import Needs, Words
from ..results import SearchResult
from .config import HybridRRFConfig, PlainHybridConfig
from .trace import trace_ranks


def hybrid_rrf(
    words: Hits | None,
    vectors: Any,
    seeds: Seeds | None,
    titles: Hits | None,
    *,
    view: View | None,
    config: HybridRRFConfig,
    corpus: Corpus | None,
    graph: Graph | None,
    num_passages: int,
    backend: str,
    threads: int | None,
) -> dict[str, Hits]:
    """Return the lists of the legs that are present.

    Parameters
    ----------
    words : Hits or None
        The lexical list.
    vectors : (B, d)
        Read if there is a corpus.
    seeds : Seeds (B, S)
        Entities, as nodes of the graph; read if there is one.
    titles : Hits or None
        Passages whose title the question names.
    view : View or None
        Passages that each question may find; None for all.
    config, corpus, graph, num_passages, backend, threads
        The same for all questions.
    """
    passages = np.arange(num_passages)
    allow, ranked = (None, passages) if view is None else (view.allow, view.candidates)
    lists = {} if words is None else {"lexical": words}

    if corpus is not None:
        lists["dense"] = dense_topk(
            vectors, corpus, min(config.dense_k, num_passages), allow=allow, backend=backend, threads=threads
        )

    if graph is not None:
        lists["graph"] = ppr_topk(
            graph,
            seeds,
            config.graph_k,
            candidates=ranked,
            damping=config.damping,
            stop="tol",
            empty="skip",
            backend=backend,
            threads=threads,
        )

    return lists if titles is None else {**lists, "exact": titles}


class HybridRRF(BaseRecipe[SearchResult]):
    """Words, vectors and a graph, as far as they are present, fused by weighted reciprocal ranks.

    Parameters
    ----------
    index : Index
        Its vectors are the dense leg and its graph is the graph leg; either may be absent.
    config : :class:`HybridRRFConfig`, optional
    encoder, matcher, threads : optional
        As in :class:`PhaseGraph`.
    lexical : optional
        Object with ``search(questions, k)``, which returns Hits over the index's passages
        (:class:`hopfuse.lexical.BM25`, or :class:`hopfuse.lexical.FTS5` if only SQLite is installed).
    **options
        Fields of the config; they override those of ``config``.

    Raises
    ------
    InputError
        No leg, an option that the config does not have or refuses, an importance of another length than the index's
        passages, or an encoder other than the index's.

    Notes
    -----
    ``lists`` of a result has the recipe's lists among ``"lexical"``, ``"dense"``, ``"graph"`` and ``"exact"`` (passages
    whose title the question names). Where ``fell_back`` is True, the graph list is the beginning of the dense list.

    A trace has ``seeds``, ``left_out`` (entities that the question names but may not see), ``allowed`` (the number of
    passages that it may find, or None), and ``fell_back`` (whether the dense list replaces its graph list). Each list
    has ranks and raw scores. Each hit has its ranks, the prior's factor, under RRF the contribution of each rank, and,
    if it is in the graph list, its ``paths`` as in :class:`GuidedWalkResult`. Over a graph, unless weights are given,
    it has ``direct``: the ``weight`` w, how far the question is left to words and vectors, and the ``reason`` in words.

    References
    ----------
    score = Σ w/(k + rank), ranks from 1: Cormack, Clarke & Büttcher, SIGIR 2009. TM2C2: Bruch, Gai & Ingber, TOIS 2023.

    Examples
    --------
    >>> import hopfuse as hf
    >>> texts = ["Ada wrote notes on the Engine.", "The Engine was built by Babbage.", "The sea."]
    >>> index = hf.Index.build(passages=[{"text": text} for text in texts])
    >>> recipe = hf.recipes.HybridRRF(index, lexical=hf.lexical.FTS5.build(texts))
    >>> found = recipe.search(["Who built the engine?"], k=2)
    >>> found[0][0].text
    'The Engine was built by Babbage.'
    """

    name: ClassVar[str] = "hybrid-rrf"
    Config: ClassVar[type[HybridRRFConfig]] = HybridRRFConfig
    by_cosine: ClassVar[bool] = False

    @classmethod
    def words(cls, config: Any = None) -> Words:
        """Return the lexical leg that the recipe uses by default: that of the index, else one over its texts."""
        return "any"

    def __init__(
        self,
        index: Index,
        config: HybridRRFConfig | None = None,
        *,
        encoder: Any = None,
        matcher: Matcher | None = None,
        lexical: LexicalLeg | None = None,
        threads: int | None = None,
        **options: Any,
    ) -> None:
        made_with = {"encoder": encoder, "matcher": matcher, "lexical": lexical, "threads": threads}
        super().__init__(index, config, options, **made_with)
        self._graph = index.graph if self.config.walk else None
        if lexical is None and index.corpus is None and self._graph is None:
            raise needed("lexical", type(self).__name__, "or an index with vectors or, unless walk is false, a graph")
        prior = self.config.importance
        if prior is not None:
            check_length(prior.factors.size, "importance", index.num_passages, "passage")
        self._seeder = EntitySeeder(index, self.encoder, self.config.entity_threshold)
        self._titles = _TitleMatcher(index.titles) if self.config.exact_bonus > 0 else None
        by_cosine = self.config.fusion == "convex" and index.corpus is not None
        self._fixed: dict[str, Any] = {
            "config": self.config,
            "corpus": index.corpus.with_metric("cosine") if index.corpus is not None and by_cosine else index.corpus,
            "graph": self._graph,
            "num_passages": index.num_passages,
            "threads": self.threads,
        }

    def _config_of(self, part: IndexPart) -> HybridRRFConfig:
        config: HybridRRFConfig = self.config
        if config.importance is None:
            return config
        return replace(config, importance=config.importance.part(part.passages))

    @staticmethod
    def adr() -> HybridRRFConfig:
        """Return :meth:`HybridRRFConfig.adr`: ``HybridRRF(index, HybridRRF.adr())``."""
        return HybridRRFConfig.adr()

    @cached_property
    def needs(self) -> Needs:
        """The inputs that a search reads."""
        words = self.lexical is not None
        return Needs(
            vectors=self.index.corpus is not None,
            texts=words or self._titles is not None,
            entities=self._graph is not None,
            words=words,
        )

    def _search(self, asked: QuestionBatch, view: View | None, k: int, trace: bool) -> SearchResult:
        backend, seen = auto_backend().backend, None if view is None else view.allow
        seeds, starts, unknown = list[list[Seed]](), None, set[str]()
        if asked.mentions is not None:
            run: dict[str, Any] = {"backend": backend, "threads": self.threads}
            seeds, unknown = self._seeder.seeds(asked.mentions, asked.vectors, **run)
            starts = padded(seeds, self.index.num_passages)
        words = lexical_pool(self.lexical, asked.texts, self._lexical_k, self.index.num_passages, seen)
        titles = None if self._titles is None else only(self._titles.search(asked.texts or ()), seen)

        lists = hybrid_rrf(words, asked.vectors, starts, titles, view=view, backend=backend, **self._fixed)
        lists, fell_back = fall_back(lists, dense_fallback=self.config.dense_fallback)
        rarest: list[Rarest | None] = [None] * asked.size
        if self._graph is not None:
            rarest = rarest_seeds(seeds, name_seeds(seeds, asked.texts, self.index), self.index)
        direct = direct_weights(rarest, self.index.num_passages)
        how = self.config.fusing(tuple(lists), direct)
        hits = fuse(list(lists.values()), k=k, backend=backend, threads=self.threads, **how)
        traces = None
        if trace:
            outcome = FusedOutcome(seeds, starts, rarest, direct, lists, hits, view, fell_back)
            traces = trace_ranks(self.index, self.config, outcome)
        notes = notes_of(asked, seeds, unknown, words, titles)
        return SearchResult(hits, self.index, lists, traces, None if starts is None else fell_back, notes)

    @property
    def _lexical_k(self) -> int:
        length: int = self.config.lexical_k
        return min(length, self.index.num_passages)


class PlainHybrid(HybridRRF):
    """The hybrid that other systems have: words and vectors of equal weight, fused by RRF with k = 60, without a walk.

    What a graph has to beat on ordinary questions. Parameters, errors, lists and traces are as for :class:`HybridRRF`;
    the options are :class:`PlainHybridConfig`.

    References
    ----------
    RRF and k = 60: Cormack, Clarke & Büttcher, SIGIR 2009.

    Examples
    --------
    >>> import hopfuse as hf
    >>> texts = ["Ada wrote notes on the Engine.", "The Engine was built by Babbage.", "The sea."]
    >>> index = hf.Index.build(passages=[{"text": text} for text in texts])
    >>> found = hf.Retriever(index, "plain-hybrid").search(["Who built the engine?"], k=2)
    >>> [hit.row for hit in found[0]]
    [1, 0]
    """

    name: ClassVar[str] = "plain-hybrid"
    Config: ClassVar[type[HybridRRFConfig]] = PlainHybridConfig


# ---- Titles ----------------------------------------------------------------------------------------------------------


class _TitleMatcher:
    """Find titles in questions, ignoring case, accents and punctuation."""

    def __init__(self, titles: Sequence[str]) -> None:
        self._passages: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for passage, title in enumerate(titles):
            words = _words(title)
            if words:
                self._passages[words].append(passage)
        self._lengths = sorted({len(words) for words in self._passages}, reverse=True)

    def search(self, queries: Sequence[str]) -> Hits:
        """Return the passages whose title each question names, scored by the number of words in the title."""
        return Hits.from_lists([self._row(_words(query)) for query in queries])

    def _row(self, words: tuple[str, ...]) -> list[tuple[int, float]]:
        found: dict[int, float] = {}
        for n in self._lengths:
            for begin in range(len(words) - n + 1):
                for passage in self._passages.get(words[begin : begin + n], ()):
                    found.setdefault(passage, float(n))
        return sorted(found.items(), key=lambda hit: (-hit[1], hit[0]))


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a text: letters with their marks, and digits; + and # distinguish C, C++ and C#.

    Accents do not count; scripts without spaces are cut into pairs of characters.
    """
    folded = spaced(unaccented(fold(text)))
    kept = (part if unicodedata.category(part)[0] in "LMN" or part in "+#" else " " for part in folded)
    return tuple("".join(kept).split())
