"""The search of PolicyRAG: arguments, filters and groups, results, answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._validation import check_k, check_length, checked_texts
from ...errors import InputError
from ...index import Index
from ...ops.capture import Captured, auto_backend, capture
from ...ops.dense import dense_topk
from ...types import Hits, LabelSets
from .._parts.base import BaseRecipe
from .._parts.config import lacking, needed
from .._parts.filters import View
from .._parts.hits import filled, gathered
from .._parts.isolated import PassageGroup, in_order, joined
from .._parts.mentions import Matcher
from .._parts.questions import QuestionBatch, notes_of
from .._parts.seeding import EntitySeeder, Seed, seed_width
from ..protocol import AllowScope, Needs
from ..results import SearchResult
from .config import Policy
from .core import Knowledge, PolicyQuestions, restart, start, walk
from .gate import GateDecision, fact_corpus
from .graph import PolicyGraph, joined_passages, read_edge_weights
from .language_model import GATE, LanguageModel, grounded_answers, model_needed
from .rerank import PolicyReranker
from .seeds import Candidates, ambiguous_surfaces, mentioned_candidates
from .trace import PolicyOutcome, trace_questions


@dataclass(frozen=True, eq=False, repr=False)
class PolicyRAGResult(SearchResult):
    """The rankings of a batch of questions.

    Attributes
    ----------
    hits : Hits
        The re-ranked passages, (B, min(k, P)). A question without seeds has the hits of the dense list, or none.
    lists : dict of str to Hits
        ``"pool"``: the passages by projected score, before the re-ranking. ``"dense"``: the passages nearest to the
        question, if the policy reads them.
    facts : list of list of GateDecision
        For each question the facts that the gate saw, the kept ones first: ``fact``, ``head``, ``relation``, ``tail``,
        ``score``, ``kept`` and ``reason``.
    seeds : list of dict of int to float
        The entities that each walk started from, and their shares of the restart mass on entities.
    traces : list of dict, or None
        One per question if ``trace=True``, with the candidate ``seeds`` and the factors of their weights, and the kept
        and dropped ``facts`` with reasons. Each hit has the ``terms`` of its score, the exact ``attribution`` of its
        projected score to the seeds (PPR is linear in its restart) and the strongest ``paths`` to it, with the facts
        behind their steps.
    """

    facts: list[list[GateDecision]] = field(default_factory=list, repr=False)
    seeds: list[dict[int, float]] = field(default_factory=list, repr=False)


class PolicyRAG(BaseRecipe[PolicyRAGResult]):
    """A walk by a policy that a person edits; every score is attributed to seeds and paths.

    Parameters
    ----------
    index : Index
        With a graph whose nodes 0 .. P-1 are passages. Edges of the type ``"synonym"`` are synonyms; other edges
        between entities are relations.
    config : Policy, optional
        Such as ``Policy.from_toml(text)``; by default the defaults of :class:`Policy`.
    encoder : optional
        Object with ``encode_queries(texts)``, in the space of the entities' vectors. It aligns entities with a
        question, and finds entities for mentions that match no name or alias. Without it, alignment is only by names.
    fact_vectors : Corpus or array_like of float (F, d), optional
        Vectors of the index's facts, in the encoder's space. Without them, the score of a fact is the mean Dice
        coefficient of its labels with the question.
    matcher : optional
        Object with ``match(texts)`` (:class:`hopfuse.extract.EntityLinker`), for questions given without entities.
    llm : optional
        Object with ``ask(prompts, schema, check=...)`` (:class:`hopfuse.llm.ChatEndpoint`), for :meth:`answer` and for
        a policy whose gate is ``"llm"``.
    threads : int, optional
    **options
        Sections of :class:`Policy`; they override those of ``config``.

    References
    ----------
    PolicyRAG: Prompt-Guided Symbolic Graph Memory for Interpretable Multi-Hop Retrieval, 2025
    (https://openreview.net/forum?id=0xlI09pvBs). Passage seeds and the ranking of phrase seeds by their facts:
    HippoRAG 2 (Gutiérrez et al., From RAG to Memory, 2025). :class:`Policy` defines what the paper leaves open.

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
    >>> [hit.title for hit in found[0]], found.facts[0][0].reason
    (['Alien', 'Ridley Scott'], 'direct, one bridge')
    """

    name: ClassVar[str] = "policy-rag"
    Config: ClassVar[type[Policy]] = Policy
    collaborators: ClassVar[tuple[str, ...]] = ("encoder", "matcher", "fact_vectors", "llm")
    answers: ClassVar[bool] = True

    def __init__(
        self,
        index: Index,
        config: Policy | None = None,
        *,
        encoder: Any = None,
        fact_vectors: Any = None,
        matcher: Matcher | None = None,
        llm: LanguageModel | None = None,
        threads: int | None = None,
        **options: Any,
    ) -> None:
        made_with = {"encoder": encoder, "fact_vectors": fact_vectors, "matcher": matcher, "llm": llm}
        super().__init__(index, config, options, threads=threads, **made_with)
        self.llm, policy = llm, self.config
        source = policy.seeds.source
        if source != "entities" and encoder is None:
            raise needed("encoder", f"seeds.source = {source!r}", "that of the index's vectors")
        if policy.asks_model and llm is None:
            raise model_needed(GATE)
        facts, names, corpus = index.facts, tuple(index.entity_names), index.entity_corpus
        labels = LabelSets.from_labels([*names, *(() if facts is None else facts.relations)])
        entities = None if encoder is None or corpus is None else corpus.with_metric("cosine")
        by_vector = fact_corpus(fact_vectors, 0 if facts is None else len(facts))
        if policy.facts.scope == "all" and by_vector is None:
            raise needed("fact_vectors", "facts.scope = 'all'", "or set it to 'seeds'")
        self._known = Knowledge(facts, names, labels, entities, by_vector)
        self._graph = PolicyGraph.from_index(index, policy)
        self._seeder = EntitySeeder(index, self.encoder, policy.seeds.threshold)
        self._reranker = PolicyReranker(policy.term_weights, index.titles, names, facts)
        self._recorded = self._record()

    @staticmethod
    def paper() -> Policy:
        """Return :meth:`Policy.paper`: ``PolicyRAG(index, PolicyRAG.paper())``."""
        return Policy.paper()

    @classmethod
    def missing(cls, index: Index, config: Policy | None = None) -> InputError | None:
        """Return the error that says what the index lacks for this recipe, or None."""
        policy = Policy() if config is None else config
        if index.graph is None:
            return lacking("PolicyRAG", "graph")
        if index.corpus is None and policy.reads_vectors:
            return lacking("PolicyRAG", "corpus", fix=", or set seeds.passages = 0 and switches.dense_fallback = false")
        if index.entity_corpus is None and policy.seeds.source != "entities":
            return lacking("PolicyRAG", "entity_corpus", fix=", or set seeds.source = 'entities'")
        return joined_passages(index)

    @property
    def reach(self) -> int:
        """The most hits that a search can return: the pool of the re-ranking."""
        pool: int = self.config.reranking.pool
        return min(pool, self.index.num_passages)

    @cached_property
    def needs(self) -> Needs:
        """The inputs that a search reads."""
        by_name = self.config.seeds.source != "question"
        return Needs(vectors=self._reads_corpus, texts=True, entities=by_name, facts=self.index.facts is not None)

    def search(
        self,
        queries: Sequence[str | None] | None = None,
        *,
        vectors: Any = None,
        entities: Sequence[Sequence[Any] | None] | None = None,
        edge_weights: Any = None,
        k: int = 10,
        allow: Any = None,
        allow_scope: AllowScope = "isolated",
        trace: bool = False,
    ) -> PolicyRAGResult:
        """Rank the passages for a batch of questions.

        Parameters
        ----------
        queries, vectors, entities, k, allow, allow_scope, trace
            As in :meth:`PhaseGraph.search`. Every question needs its text. ``k`` is at most ``reranking.pool`` of the
            policy.
        edge_weights : array_like of float (3,) or (B, 3), optional
            eta of relations, synonyms and context, for all questions or for each, instead of the policy's.

        Returns
        -------
        PolicyRAGResult
        """
        asked = self._read(queries, vectors, entities)
        if edge_weights is not None:
            asked = asked._replace(edge_weights=read_edge_weights(edge_weights, asked.size, self.config))
        return self._answer(asked, k, allow, allow_scope, trace)

    def _search(self, asked: QuestionBatch, view: View | None, k: int, trace: bool) -> PolicyRAGResult:
        policy, index, batch, etas = self.config, self.index, asked.size, asked.edge_weights
        assert asked.texts is not None
        own, vectors = asked.encoded, asked.vectors if self._reads_corpus else None
        backend, records = auto_backend()
        run: dict[str, Any] = {"backend": backend, "threads": self.threads}
        seeds, unknown = list[list[Seed]](), set[str]()
        mentioned: list[Candidates] = [{} for _ in range(batch)]
        if asked.mentions is not None:
            (seeds, unknown), specificity = self._seeder.seeds(asked.mentions, **run), self._graph.specificity
            limits = (self._seeder.num_aliased, policy.seeds.ambiguous)
            unclear = [ambiguous_surfaces(row, *limits) for row in asked.mentions]
            mentioned = [mentioned_candidates(*row, specificity) for row in zip(seeds, unclear, strict=True)]

        groups, fell_back = list[tuple[NDArray[np.int64], PolicyOutcome]](), np.zeros(batch, bool)
        for rows, graph in self._groups(view, batch):
            at = rows.tolist()
            questions = PolicyQuestions([asked.texts[b] for b in at], _of(own, rows), [mentioned[b] for b in at])
            dense = None if vectors is None else self._dense(vectors[rows], k, graph, run)
            origin = start(policy, graph, self._known, questions, self.llm, **run)
            seeded, starts = restart(policy, origin.seeds, dense, index.num_passages, **run)
            eta = np.asarray(policy.edge_type_weights) if etas is None else _of(etas, rows[seeded])
            if records and view is None and etas is None:
                pool = self._recorded(starts.nodes, starts.weights)
            else:
                pool = walk(starts.nodes, starts.weights, policy=policy, graph=graph, eta=eta, **run)
            pool = gathered([(seeded, pool)], len(at))
            ranked = self._reranker.rank(graph, questions.texts, pool, origin.seeds, origin.kept, k)
            hits = ranked.hits
            if dense is not None and policy.switches.dense_fallback:
                hits = filled(ranked.hits, dense)
                fell_back[rows] = ranked.hits.counts == 0
            groups.append(
                (rows, PolicyOutcome(questions.texts, graph, dense, origin, seeded, starts, eta, ranked, hits))
            )

        lists = {"pool": gathered([(rows, one.ranked.pool) for rows, one in groups], batch)}
        near = [(rows, one.dense) for rows, one in groups if one.dense is not None]
        if near:
            lists["dense"] = gathered(near, batch)
        traces = None
        if trace:
            traces = _in_order([(rows, trace_questions(index, policy, one, self.threads)) for rows, one in groups])
        return PolicyRAGResult(
            gathered([(rows, one.hits) for rows, one in groups], batch),
            index,
            lists,
            traces,
            fell_back,
            notes_of(asked, seeds, unknown),
            facts=_in_order([(rows, one.start.facts) for rows, one in groups]),
            seeds=_in_order([(rows, one.start.seeds) for rows, one in groups]),
        )

    def answer(self, queries: Sequence[str], found: PolicyRAGResult) -> list[str]:
        """Return the language model's answers based only on the first passages of a search.

        Parameters
        ----------
        queries : sequence of str
            The questions that were searched.
        found : PolicyRAGResult
            The result of :meth:`search` for them.

        Returns
        -------
        list of str
            ``answers.not_found`` of the policy if the passages hold no answer, or if there are none.
        """
        queries = checked_texts(queries, "queries")
        if self.llm is None:
            raise model_needed("answer()")
        check_length(len(queries), "queries", len(found.hits), "result")
        titles, texts = found.index.titles, found.index.texts
        return grounded_answers(self.llm, self.config.answers, queries, found.hits, titles, texts)

    @property
    def _reads_corpus(self) -> bool:
        return self.index.corpus is not None and self.config.reads_vectors

    @cached_property
    def _compares_texts(self) -> bool:
        known = self._known
        return self.encoder is not None and (known.entities is not None or known.fact_vectors is not None)

    def _k(self, k: int) -> int:
        k, pool = check_k(k), self.config.reranking.pool
        if k > pool:
            raise InputError(
                "limit",
                "k",
                "{field} is {given}, and the policy ranks {allowed} passages; ask for fewer, or raise reranking.pool",
                given=k,
                allowed=pool,
            )
        return super()._k(k)

    def _dense(self, vectors: NDArray[Any], k: int, graph: PolicyGraph, run: Mapping[str, Any]) -> Hits:
        assert self.index.corpus is not None
        depth = min(max(k, self.config.seeds.passage_list), self.index.num_passages)
        return dense_topk(vectors, self.index.corpus, depth, allow=graph.passages, **run)

    def _joined(self, parts: Sequence[tuple[PassageGroup, PolicyRAGResult]], batch: int, k: int) -> PolicyRAGResult:
        """Return the result of a batch from those of its groups, in the whole index's numbers."""
        facts, seeds = [], []
        for group, found in parts:
            entities, numbers = group.entities, group.facts
            facts.append((group, [[_whole(one, entities, numbers) for one in row] for row in found.facts]))
            seeds.append((group, [{int(entities[e]): share for e, share in row.items()} for row in found.seeds]))
        own = {"facts": in_order(facts, batch), "seeds": in_order(seeds, batch)}
        return PolicyRAGResult(**joined(parts, self.index, batch, k, self.ranks, **own))

    def _groups(self, view: View | None, batch: int) -> Iterator[tuple[NDArray[np.int64], PolicyGraph]]:
        """Yield groups of questions that may find the same passages, with the graph that lists these."""
        if view is None or batch == 0:
            yield np.arange(batch), self._graph
            return
        for group, passages in enumerate(view.passages):
            yield np.flatnonzero(view.of == group), self._graph.listing(passages)

    def _record(self) -> Captured:
        """Return the walk and the projection: on a GPU one upload, one graph, one download."""
        policy, listed = self.config, min(self.config.seeds.passage_list, self.index.num_passages)
        width = seed_width(policy.seeds.most) + (listed if policy.passage_mass > 0 else 0)
        shapes: list[tuple[tuple[int, ...], Any]] = [((width,), np.int64), ((width,), np.float64)]
        fixed: dict[str, Any] = {"policy": policy, "graph": self._graph, "eta": policy.edge_type_weights}
        return capture(partial(walk, backend="auto", threads=self.threads, **fixed), shapes)


def _of(array: NDArray[Any] | None, rows: NDArray[np.int64]) -> Any:
    """Return the rows of some questions; a value for all questions is returned as it is."""
    return array if array is None or array.ndim == 1 else array[rows]


def _whole(verdict: GateDecision, entities: NDArray[np.int64], facts: NDArray[np.int64]) -> GateDecision:
    """Return a verdict with the whole index's numbers in place of a part's."""
    head, tail = int(entities[verdict.head]), int(entities[verdict.tail])
    return verdict._replace(fact=int(facts[verdict.fact]), head=head, tail=tail)


def _in_order(parts: Sequence[tuple[NDArray[np.int64], list[Any]]]) -> list[Any]:
    """Return the values of all questions, from those of each group."""
    placed = {b: value for rows, values in parts for b, value in zip(rows.tolist(), values, strict=True)}
    return [placed[b] for b in range(len(placed))]
