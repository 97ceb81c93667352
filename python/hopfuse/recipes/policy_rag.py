"""PolicyRAG: retrieval over a graph of facts, by a policy that a person edits.

    question ─► names, vector ─► candidates ─► facts around them ─► gate ─► kept facts ─┐
        │                             └────────── align · spec · aliasOK ◄──────────────┘
        │                                                ▼
        ├─► vector ─► dense top-k ─► passage seeds ─► restart s ─► typed PPR ─► projection u = B'v ─► pool
        │                                                                                              ▼
        └─► title, coverage, path, hubs ────────────────────────────────────────────► re-ranking ─► top k

All questions of a batch go through every stage together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..index import Index
from ..ops._checks import check_k
from ..ops.calibration import calibrate
from ..ops.capture import Captured, capture
from ..ops.dense import dense_topk
from ..ops.ppr import ppr
from ..ops.projection import project_topk
from ..ops.seeding import seed_hits
from ..types import Hits, LabelSets, Seeds
from ._fact_gate import LanguageModel, Verdict, judge
from ._fact_search import FactFinder
from ._mentions import Matcher, question_mentions
from ._phrase_seeds import CandidateFinder, phrase_seeds
from ._policy import Policy
from ._policy_answers import grounded_answers
from ._policy_graph import PolicyGraph
from ._policy_needs import check_depth, check_needs, passage_mass, reads_vectors
from ._policy_rerank import Reranker
from ._policy_trace import trace_policy
from ._questions import check_queries, checked_threshold, question_vectors, seed_width
from ._rows import filled, spread, take
from ._seeding import EntitySeeder, TextEncoder


@dataclass(frozen=True, eq=False)
class PolicyRAGResult:
    """What a search found; ids are passage rows of the index.

    Attributes
    ----------
    hits : Hits
        The re-ranked passages; those of a question without seeds are the dense list's, or none.
    pool : Hits
        The passages by their projected scores, before the re-ranking.
    facts : list of list of Verdict
        For each question the facts that the gate saw: ``fact``, ``head``, ``relation``, ``tail``, ``score``, ``kept``
        and ``reason``, the kept ones first.
    seeds : list of dict of int to float
        Entities that each walk started from, and their shares of the restart's phrase part.
    traces : list of dict, or None
        One per question where ``explain=True``; see :meth:`PolicyRAG.search`.
    """

    hits: Hits
    pool: Hits
    facts: list[list[Verdict]]
    seeds: list[dict[int, float]]
    traces: list[dict[str, Any]] | None


class PolicyRAG:
    """The PolicyRAG retrieval system over an index with a graph of entities and, for its facts, ``facts``.

    Parameters
    ----------
    index : Index
        With a graph; nodes 0 .. P-1 are passages. Edges of the type ``"synonym"`` are synonyms, the others between
        entities relations.
    policy : Policy, optional
        ``Policy.from_toml(text)``; by default the defaults of :class:`Policy`.
    encoder : optional
        ``encode_queries(texts)``, in the space of the entities' vectors: for the alignment of entities with a question,
        and for mentions that no name or alias matches. Without it, alignment is by names alone.
    fact_vectors : Corpus or array_like of float (F, d), optional
        Of the index's facts, in the encoder's space. Without them a fact's score is its labels' mean Dice coefficient
        with the question.
    matcher : optional
        ``match(texts)``, for questions given without their entities (:class:`hopfuse.extract.Gazetteer`).
    llm : optional
        ``ask(prompts, schema, check=...)`` (:class:`hopfuse.connect.ChatEndpoint`): for :meth:`answer`, and for a
        policy whose gate is ``"llm"``.
    entity_threshold : float
        Cosine similarity from which the nearest entity by embedding counts as matched.
    threads : int, optional

    References
    ----------
    PolicyRAG: Prompt-Guided Symbolic Graph Memory for Interpretable Multi-Hop Retrieval, 2025
    (https://openreview.net/forum?id=0xlI09pvBs); passage seeds and the ranking of phrase seeds by their facts:
    HippoRAG 2 (Gutiérrez et al., From RAG to Memory, 2025). What the paper leaves open is defined by :class:`Policy`.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.extract import Extraction, build_memory
    >>> memory = build_memory([
    ...     Extraction("a", "Alien", "Ridley Scott directed Alien.", (), (("Ridley Scott", "directed", "Alien"),)),
    ...     Extraction("b", "Ridley Scott", "Scott was born in South Shields.", ("Ridley Scott",), ()),
    ... ])
    >>> text = "version = 1\\n[seeds]\\npassages = 0.0\\n[switches]\\ndense_fallback = false"
    >>> policy = hf.recipes.Policy.from_toml(text)
    >>> recipe = hf.recipes.PolicyRAG(memory.index(), policy)
    >>> found = recipe.search(["Who directed Alien?"], entities=[["Alien"]], k=2)
    >>> found.hits.ids, found.facts[0][0].reason
    (array([[0, 1]]), 'direct, one bridge')
    """

    def __init__(
        self,
        index: Index,
        policy: Policy | None = None,
        *,
        encoder: TextEncoder | None = None,
        fact_vectors: Any = None,
        matcher: Matcher | None = None,
        llm: LanguageModel | None = None,
        entity_threshold: float = 0.8,
        threads: int | None = None,
    ) -> None:
        self.policy = check_needs(policy, index, encoder, llm)
        self._passage_mass = passage_mass(self.policy)
        self.index, self.encoder, self.matcher, self.llm, self.threads = index, encoder, matcher, llm, threads
        self.prepared = PolicyGraph.of(index, self.policy)
        relations = () if index.facts is None else index.facts.relations
        self.names = tuple(index.entity_names)
        labels = LabelSets.from_labels([*self.names, *relations])
        seeder = EntitySeeder(index, encoder, checked_threshold(entity_threshold))
        entities = index.entity_corpus
        self._corpus = None if encoder is None or entities is None else entities.with_metric("cosine")
        self._candidates = CandidateFinder(self.policy, seeder, labels, self._corpus, self.prepared.frequency, threads)
        self._facts = FactFinder(index, self.policy, self.names, labels, fact_vectors, threads)
        self._reranker = Reranker(index, self.policy, self.names, self.prepared)
        self._core = self._captured()

    def search(
        self,
        queries: Sequence[str],
        *,
        vectors: Any = None,
        entities: Sequence[Sequence[Any]] | None = None,
        edge_weights: Any = None,
        k: int = 10,
        explain: bool = False,
    ) -> PolicyRAGResult:
        """Rank the passages for a batch of questions.

        Parameters
        ----------
        queries : sequence of str
            B questions.
        vectors : array_like of float (B, d), optional
            Of the questions, in the space of the passages' vectors; by default the encoder's. Read where the policy
            seeds passages or falls back to them.
        entities : sequence of B sequences of str or int, optional
            Names as the questions have them, or entity numbers of the index; by default the matcher's. Read unless the
            policy's source of seeds is ``"question"``.
        edge_weights : array_like of float (3,) or (B, 3), optional
            eta of relations, synonyms and context, for all questions or for each, instead of the policy's.
        k : int
            At most ``reranking.pool`` of the policy.
        explain : bool
            Adds ``traces``: per question ``seeds`` with their factors, ``facts`` kept and dropped with the reason, and
            for each hit the re-ranking ``terms``, the exact ``attribution`` of its projected score to the seeds (PPR is
            linear in its restart) and the strongest ``paths`` that lead to it, with the facts behind their steps.

        Returns
        -------
        PolicyRAGResult
        """
        k = check_k(k)
        check_queries(queries)
        check_depth(k, self.policy)
        asked, dense = self._read(queries, vectors, k)
        by_name = self.policy.seeds.source != "question"
        mentions = question_mentions(self.matcher, queries, entities, len(queries)) if by_name else [[]] * len(queries)
        candidates = self._candidates.find(queries, asked, mentions)
        facts = judge(self.policy, self.llm, queries, self._facts.find(queries, asked, candidates), candidates)
        kept = [[verdict for verdict in row if verdict.kept] for row in facts]
        candidates = self._candidates.add_ends(queries, asked, candidates, kept)
        weights = [phrase_seeds(*pair, self.policy.seeds.most) for pair in zip(candidates, kept, strict=True)]
        seeds = [{e: w / sum(row.values()) for e, w in row.items()} for row in weights]
        eta = None if edge_weights is None else self.prepared.weights_of(edge_weights, len(seeds), _able(seeds))
        pool, starts = self._walk(seeds, dense, eta)
        ranked = self._reranker.rank(queries, pool, seeds, kept, k)
        hits = filled(ranked.hits, dense) if dense is not None and self.policy.switches.dense_fallback else ranked.hits
        found = PolicyRAGResult(hits, pool, facts, seeds, None)
        if not explain:
            return found
        walked = np.asarray(self.prepared.weights) if eta is None else eta
        return trace_policy(self, queries, found, candidates, ranked, starts, walked)

    def answer(self, queries: Sequence[str], found: PolicyRAGResult) -> list[str]:
        """Answers from the first passages of a search alone, by the language model; what the policy says otherwise.

        Parameters
        ----------
        queries : sequence of str
            Those that were searched.
        found : PolicyRAGResult
            What :meth:`search` returned for them.

        Returns
        -------
        list of str
            ``answers.not_found`` of the policy where the passages hold no answer, or where there is none.
        """
        check_queries(queries)
        if self.llm is None:
            raise InputError(
                "answers need a language model; give the recipe llm=, such as hopfuse.connect.ChatEndpoint"
            )
        if len(queries) != len(found.hits):
            raise InputError(f"{len(queries)} queries for {len(found.hits)} results; give those that were searched")
        return grounded_answers(self.llm, self.policy, self.index, queries, found.hits)

    def _read(self, queries: Sequence[str], vectors: Any, k: int) -> tuple[NDArray[Any] | None, Hits | None]:
        """The encoder's vectors of the questions, made once, and the passages nearest to each, where they are read."""
        corpus, near = self.index.corpus, reads_vectors(self.policy)
        if corpus is None and vectors is not None:
            raise InputError("vectors= is given, and the index has no vectors; leave it out")
        needed = self._corpus is not None or self._facts.by_vectors or (near and vectors is None)
        asked = self.encoder.encode_queries(list(queries)) if needed and self.encoder is not None else None
        if corpus is None or not near:
            return asked, None
        given = question_vectors(None, queries, asked if vectors is None else vectors, corpus.dim)
        return asked, dense_topk(given, corpus, max(k, self.policy.seeds.passage_list), threads=self.threads)

    @property
    def term_weights(self) -> dict[str, float]:
        """What each re-ranking term counts."""
        return self._reranker.weights

    def _walk(
        self, seeds: Sequence[dict[int, float]], dense: Hits | None, eta: NDArray[Any] | None
    ) -> tuple[Hits, Seeds]:
        """The pool of each question, empty where it has no seed, and where the walks of the others start."""
        able, first = _able(seeds), self.index.num_passages
        rows = [{first + e: mass for e, mass in seeds[b].items()} for b in able.tolist()]
        starts = Seeds.from_rows(rows, seed_width(self.policy.seeds.most))
        if dense is not None and self._passage_mass > 0:
            shares = calibrate(dense.head(self.policy.seeds.passage_list), "min_max", threads=self.threads)
            starts = seed_hits(starts, take(shares, able), self._passage_mass)
        found = self._core(starts.nodes, starts.weights) if eta is None else self.pool_of(starts, eta)
        return spread(found, able, len(seeds)), starts

    def _captured(self) -> Captured:
        """The walk and the projection of restarts of one width: on a GPU one upload, one graph, one download."""
        width = seed_width(self.policy.seeds.most) + (self.policy.seeds.passage_list if self._passage_mass > 0 else 0)
        shapes: list[tuple[tuple[int, ...], Any]] = [((width,), np.int64), ((width,), np.float64)]
        return capture(lambda *starts: self.pool_of(Seeds(*starts), self.prepared.weights), shapes)

    def pool_of(self, starts: Seeds, eta: Any) -> Hits:
        """The numeric core: v = typed PPR of the restarts, u = B'v by length and IPF, and its best passages."""
        walk, prepared = self.policy.walk, self.prepared
        v = ppr(
            prepared.graph,
            starts,
            damping=walk.damping,
            tol=walk.tol,
            edge_type_weights=eta,
            edge_type_norm=cast(Any, walk.edge_type_norm),
            threads=self.threads,
        )
        pool = min(self.policy.reranking.pool, max(1, self.index.num_passages))
        return project_topk(v.scores, prepared.incidence, pool, scale=prepared.scale, threads=self.threads)


def _able(seeds: Sequence[dict[int, float]]) -> NDArray[np.int64]:
    """The questions that have a seed."""
    return np.flatnonzero([bool(row) for row in seeds])
