"""Triples of a knowledge graph beside dense text: the Dice-Sørensen hybrid.

    question ─► vector ─► dense top-k over entity texts ──────────────────► vector list ───────┐
        │                   └─► seeds ─► their triples, both directions, n hops               max ─► top k
        │                                           ▼                                          │
        ├─► bigrams or words ─► mean Dice with head, relation, tail                            │
        │                                           └─► the other end ─► graph list, + 1e-6 ───┘
        └─► words ─► a lexical leg, where there is one (a mode of its own) ─► lexical list

All questions of a batch go through every stage together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..ops._checks import check_k, check_whole
from ..ops.dense import dense_topk
from ..ops.dice import dice_scores
from ..ops.fusion import fuse
from ..types import Corpus, Hits, LabelSets, Triples
from ..types.label_sets import Unit
from ._fact_trace import trace_questions
from ._facts import BIAS, best_entities, facts_around
from ._lexical import LexicalLeg, checked_leg, lexical_pool
from ._questions import check_queries, question_vectors

Mode = Literal["hybrid", "graph", "vector", "lexical"]
Scale = Literal["none", "min_max", "max"]
SCALES: tuple[Scale, ...] = ("none", "min_max", "max")
"""Calibrations whose scores are at most 1, so that the bias survives float32."""
MODES: tuple[Mode, ...] = ("hybrid", "graph", "vector", "lexical")


@dataclass(frozen=True, eq=False)
class TripleHybridResult:
    """What a search found; ids are entities.

    Attributes
    ----------
    hits : Hits
        The ranking of the mode that was asked for.
    lists : dict of str to Hits
        What it was made of, with its own scores: ``"vector"`` (cosines) and ``"graph"`` (mean Dice coefficients, above
        0) under ``mode="hybrid"``, else the mode's own.
    traces : list of dict, or None
        One per question where ``explain=True``; see :meth:`TripleHybrid.search`.
    """

    hits: Hits
    lists: dict[str, Hits]
    traces: list[dict[str, Any]] | None


class TripleHybrid:
    """Entities by their text, and by the triples that lead to them from the entities that the text finds.

    Parameters
    ----------
    triples : Triples
    vectors : Corpus, or array_like of float (N, d)
        Of entity i's text in row i; compared by cosine, so that both lists' scores are at most 1.
    seeds : int
        The best entities by vector start from their triples.
    hops : int
        1: triples with a seed at one end; above that, those of the entities reached, too.
    unit : {"bigrams", "words"}
        What Dice compares (:class:`hopfuse.LabelSets`).
    repeats : bool
        Multisets, as APOC's ``sorensenDiceSimilarity`` has them.
    vector_k, graph_k : int
        List lengths.
    calibration : {"none", "min_max", "max"}
        What each list's scores go through before the maximum (:func:`hopfuse.calibrate`). The method has none: cosines
        and Dice coefficients are then compared as they are, and an encoder whose cosines are all large hides the graph.
    encoder : optional
        ``encode_queries(texts)``, for questions given without their vectors.
    lexical : optional
        ``search(questions, k)``, Hits over the entities (:class:`hopfuse.lexical.BM25` of their texts).
    threads : int, optional

    References
    ----------
    s = max(s_vec, s_graph + 1e-6) over the union of the lists; s_graph is the largest mean Dice coefficient of the
    question with the labels of a triple that leads to the entity: Dice, Ecology 26, 1945; Sørensen, 1948.

    Examples
    --------
    >>> import hopfuse as hf
    >>> films = hf.Triples([("Alien", "directed by", "Ridley Scott"), ("Alien", "in language", "English")])
    >>> recipe = hf.recipes.TripleHybrid(films, [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], seeds=1)
    >>> found = recipe.search(["who directed alien"], vectors=[[1.0, 0.0]], k=2, mode="graph", explain=True)
    >>> [hit["name"] for hit in found.traces[0]["hits"]]
    ['Ridley Scott', 'English']
    """

    def __init__(
        self,
        triples: Triples,
        vectors: Any,
        *,
        seeds: int = 10,
        hops: int = 1,
        unit: Unit = "bigrams",
        repeats: bool = False,
        vector_k: int = 100,
        graph_k: int = 100,
        calibration: Scale = "none",
        encoder: Any = None,
        lexical: LexicalLeg | None = None,
        threads: int | None = None,
    ) -> None:
        if not isinstance(triples, Triples):
            raise InputError(f"triples is a {type(triples).__name__}; wrap them: hf.Triples(rows)")
        corpus = vectors if isinstance(vectors, Corpus) else Corpus.from_array(vectors, metric="cosine")
        if len(corpus) != len(triples.entities):
            raise InputError(f"{len(corpus)} vectors for {len(triples.entities)} entities; give one for each")
        self.triples, self.corpus = triples, corpus.with_metric("cosine")
        self.seeds, self.hops = check_whole(seeds, "seeds"), check_whole(hops, "hops")
        self.vector_k, self.graph_k = check_whole(vector_k, "vector_k"), check_whole(graph_k, "graph_k")
        if calibration not in SCALES:
            raise InputError(f"calibration is {calibration!r}; allowed: {', '.join(SCALES)}")
        self.calibration: Scale = calibration
        self.encoder, self.threads = encoder, threads
        self.lexical, _ = checked_leg(lexical, 1.0)
        self.labels = LabelSets.from_labels([*triples.entities, *triples.relations], unit=unit, repeats=repeats)
        self._rows = triples.rows + np.array([0, len(triples.entities), 0], np.int32)  # relations come behind entities

    def search(
        self,
        queries: Sequence[str],
        *,
        vectors: Any = None,
        k: int = 10,
        mode: Mode = "hybrid",
        explain: bool = False,
    ) -> TripleHybridResult:
        """Rank the entities for a batch of questions.

        Parameters
        ----------
        queries : sequence of str
            B questions.
        vectors : array_like of float (B, d), optional
            Of the questions; by default the encoder's. ``mode="lexical"`` needs none.
        k : int
        mode : {"hybrid", "graph", "vector", "lexical"}
        explain : bool
            Adds ``traces``: per question its ``seeds`` with their cosines (where the mode has some), and for each hit
            the score in each list that has it, the list that counts (``by``), and the best triple that leads to it.

        Returns
        -------
        TripleHybridResult
        """
        check_queries(queries)
        if mode not in MODES:
            raise InputError(f"mode is {mode!r}; allowed: {', '.join(MODES)}")
        k, seeds, facts = check_k(k), None, None
        lists: dict[str, Hits]
        if mode == "lexical":
            lists = {mode: self._lexical(queries, k)}
        elif mode == "vector":
            lists = {mode: self._nearest(queries, vectors, k)}
        else:
            nearest = self._nearest(queries, vectors, max(self.seeds, self.vector_k))
            seeds = nearest.head(self.seeds)
            graph, facts = self._graph(queries, seeds, k if mode == "graph" else self.graph_k)
            lists = {"graph": graph} if mode == "graph" else {"vector": nearest.head(self.vector_k), "graph": graph}
        hits = self._union(lists, k) if mode == "hybrid" else lists[mode]
        traces = trace_questions(self, seeds, lists, facts, hits) if explain else None
        return TripleHybridResult(hits, lists, traces)

    def _nearest(self, queries: Sequence[str], vectors: Any, k: int) -> Hits:
        asked = question_vectors(self.encoder, queries, vectors, self.corpus.dim)
        return dense_topk(asked, self.corpus, k, threads=self.threads)

    def _graph(self, queries: Sequence[str], seeds: Hits, k: int) -> tuple[Hits, NDArray[np.int64]]:
        """The entities that the seeds' triples lead to, each by the triple that is most like the question."""
        facts = facts_around(self.triples, seeds, self.hops)
        rows, indptr = self._rows[facts.fact], facts.indptr(len(queries))
        scores = dice_scores(queries, self.labels, rows, indptr=indptr, threads=self.threads)
        return best_entities(facts, scores, len(queries), k)

    def _union(self, lists: dict[str, Hits], k: int) -> Hits:
        """s = max(s_vec, s_graph + 1e-6)."""
        both = [lists["vector"], lists["graph"]]
        return fuse(both, method="max", bias=(0.0, BIAS), calibration=self.calibration, k=k, threads=self.threads)

    def _lexical(self, queries: Sequence[str], k: int) -> Hits:
        found = lexical_pool(self.lexical, queries, k, len(self.triples.entities))
        if found is None:
            raise InputError("mode='lexical' needs a recipe with lexical=, such as BM25 over the entities' texts")
        return found
