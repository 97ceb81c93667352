"""The search of PolicyRAG: arguments, filters and groups, results, answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._arrays.convert import to_numpy
from ..._validation import check_k, check_length, check_threads
from ...errors import InputError
from ...index import Index, IndexPart
from ...ops.capture import Captured, capture, placement
from ...ops.dense import dense_topk
from ...types import Corpus, Hits, LabelSets
from .._parts.config import check_index, check_unused, lacking, make_config, needed
from .._parts.filters import View
from .._parts.frozen import FrozenRecipe, joined
from .._parts.hits import filled, gathered
from .._parts.isolated import Group, in_order, part_of_matcher
from .._parts.mentions import Matcher, question_mentions
from .._parts.questions import check_texts, index_encoder, question_vectors, seed_width
from .._parts.seeding import EntitySeeder
from .._parts.spelling import spelled
from ..protocol import AllowScope, Needs
from ..results import SearchResult
from .config import Policy
from .core import Knowledge, Questions, restart, start, walk
from .facts import fact_corpus
from .gate import Verdict
from .graph import PolicyGraph, read_edge_weights
from .language_model import GATE, LanguageModel, grounded_answers, model_needed
from .rerank import Reranker
from .seeds import Candidates, ambiguous_surfaces, mentioned_candidates
from .trace import Outcome, trace_questions


@dataclass(frozen=True, eq=False)
class PolicyRAGResult(SearchResult):
    """The rankings of a batch of questions.

    Attributes
    ----------
    hits : Hits
        The re-ranked passages, (B, min(k, P)). A question without seeds has the hits of the dense list, or none.
    lists : dict of str to Hits
        ``"pool"``: the passages by projected score, before the re-ranking. ``"dense"``: the passages nearest to the
        question, if the policy reads them.
    facts : list of list of Verdict
        For each question the facts that the gate saw, the kept ones first: ``fact``, ``head``, ``relation``, ``tail``,
        ``score``, ``kept`` and ``reason``.
    seeds : list of dict of int to float
        The entities that each walk started from, and their shares of the restart mass on entities.
    traces : list of dict, or None
        One per question if ``trace=True``; see :meth:`PolicyRAG.search`.
    """

    facts: list[list[Verdict]] = field(default_factory=list, repr=False)
    seeds: list[dict[int, float]] = field(default_factory=list, repr=False)


class PolicyRAG(FrozenRecipe):
    """The PolicyRAG retrieval system over an index with a graph and, optionally, facts.

    Parameters
    ----------
    index : Index
        With a graph whose nodes 0 .. P-1 are passages. Edges of the type ``"synonym"`` are synonyms; other edges
        between entities are relations.
    config : Policy, optional
        Such as ``Policy.from_toml(text)``; by default the defaults of :class:`Policy`.
    encoder : optional
        Object with ``encode_queries(texts)``, in the space of the entities' vectors. It aligns entities with a
        question, and finds entities for mentions that match no name or alias. Without it, alignment is by names alone.
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
        check_index(index)
        policy = self.config = make_config(Policy, config, options)
        self.index, self.encoder = index, index_encoder(encoder, index)
        self.matcher, self.llm, self.threads = matcher, llm, check_threads(threads)
        lacks = self.missing(index, policy)
        if lacks is not None:
            raise lacks
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
        self._reranker = Reranker(policy.term_weights, index.titles, names, facts)
        self._recorded = self._record()
        collaborators = {"encoder": encoder, "fact_vectors": fact_vectors, "matcher": matcher, "llm": llm}
        self._arguments = (index, policy), {**collaborators, "threads": threads}

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
        return None

    @property
    def reach(self) -> int:
        """The most hits that a search can return: the pool of the re-ranking."""
        pool: int = self.config.reranking.pool
        return min(pool, self.index.num_passages)

    @property
    def needs(self) -> Needs:
        """Return the inputs that a search reads."""
        by_name = self.config.seeds.source != "question"
        return Needs(vectors=self._reads_corpus, texts=True, entities=by_name, facts=self.index.facts is not None)

    def search(
        self,
        queries: Sequence[str] | None = None,
        *,
        vectors: Any = None,
        entities: Sequence[Sequence[Any]] | None = None,
        edge_weights: Any = None,
        k: int = 10,
        allow: Any = None,
        allow_scope: AllowScope = "isolated",
        trace: bool = False,
    ) -> PolicyRAGResult:
        """Rank the passages for a batch of questions.

        Parameters
        ----------
        queries : sequence of str
            B questions.
        vectors : array_like of float (B, d), optional
            Vectors of the questions, in the space of the passages' vectors; by default the encoder's. Read if the
            policy seeds passages or falls back to them.
        entities : sequence of B sequences of str or int, optional
            Names as in the questions, or entity numbers of the index; by default the matcher's. Read unless the
            policy's source of seeds is ``"question"``.
        edge_weights : array_like of float (3,) or (B, 3), optional
            eta of relations, synonyms and context, for all questions or for each, instead of the policy's.
        k : int
            Hits per question, at most ``reranking.pool`` of the policy.
        allow : Where, ids of passages, bool (P,) or (B, P), or a sequence of B of these, optional
            Passages that a question may find, as in :meth:`PhaseGraph.search`. Questions are searched together if they
            see the same passages.
        allow_scope : {"isolated", "results"}
            ``"isolated"``: the answer is that of an index of the allowed passages alone, as in
            :meth:`PhaseGraph.search`. ``"results"``: the walk covers the whole graph, and only the dense list and the
            pool are restricted.
        trace : bool
            Adds ``traces``, one per question, with the candidate ``seeds`` and the factors of their weights, the kept
            and dropped ``facts`` with reasons, and for each hit the ``terms`` of its score, the exact ``attribution``
            of its projected score to the seeds (PPR is linear in its restart) and the strongest ``paths`` to it, with
            the facts behind their steps.

        Returns
        -------
        PolicyRAGResult
        """
        policy, index = self.config, self.index
        check_texts(queries)
        assert queries is not None
        batch, k = len(queries), min(self._checked_k(k), index.num_passages)
        view, (backend, records) = self._views.read(allow, batch, allow_scope), placement()
        if view is not None and allow_scope == "isolated" and batch:
            given = {"queries": queries, "vectors": vectors, "entities": entities}
            if edge_weights is not None:
                eta = read_edge_weights(edge_weights, batch, policy)
                given["edge_weights"] = np.broadcast_to(eta, (batch, eta.shape[-1]))
            return self._joined(self._searched(view, given, k=k, trace=trace), batch, k)
        run: dict[str, Any] = {"backend": backend, "threads": self.threads}
        mentioned: list[Candidates] = [{} for _ in queries]
        mentions: Sequence[Sequence[Any]] = [[] for _ in queries]
        if policy.seeds.source != "question":
            mentions = question_mentions(self.matcher, queries, entities, batch)
        own, vectors = self._vectors(spelled(queries, mentions, index), vectors)
        if policy.seeds.source != "question":
            seeds, specificity = self._seeder.seeds(mentions, **run), self._graph.specificity
            limits = (self._seeder.num_aliased, policy.seeds.ambiguous)
            unclear = [ambiguous_surfaces(row, *limits) for row in mentions]
            mentioned = [mentioned_candidates(*row, specificity) for row in zip(seeds, unclear, strict=True)]
        etas = None if edge_weights is None else read_edge_weights(edge_weights, batch, policy)

        groups, fell_back = list[tuple[NDArray[np.int64], Outcome]](), np.zeros(batch, bool)
        for rows, graph in self._groups(view, batch):
            at = rows.tolist()
            questions = Questions([queries[b] for b in at], _of(own, rows), [mentioned[b] for b in at])
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
            groups.append((rows, Outcome(questions.texts, graph, dense, origin, seeded, starts, eta, ranked, hits)))

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
            facts=_in_order([(rows, one.start.facts) for rows, one in groups]),
            seeds=_in_order([(rows, one.start.seeds) for rows, one in groups]),
        )

    def answer(self, queries: Sequence[str], found: PolicyRAGResult) -> list[str]:
        """Return the language model's answers from the first passages of a search alone.

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
        check_texts(queries)
        if self.llm is None:
            raise model_needed("answer()")
        check_length(len(queries), "queries", len(found.hits), "result")
        titles, texts = self.index.titles, self.index.texts
        return grounded_answers(self.llm, self.config.answers, queries, found.hits, titles, texts)

    @property
    def _reads_corpus(self) -> bool:
        return self.index.corpus is not None and self.config.reads_vectors

    def _checked_k(self, k: int) -> int:
        k, pool = check_k(k), self.config.reranking.pool
        if k > pool:
            raise InputError(
                "limit",
                "k",
                "{field} is {given}, and the policy ranks {allowed} passages; ask for fewer, or raise reranking.pool",
                given=k,
                allowed=pool,
            )
        return k

    def _vectors(self, queries: Sequence[str], vectors: Any) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
        """Return the questions' vectors in the space of entities and facts, and in the space of passages."""
        corpus = self.index.corpus
        if corpus is None:
            check_unused("vectors", vectors, "the index has no vectors")
        known = self._known
        compared = known.entities is not None or known.fact_vectors is not None
        needed = compared or (self.config.reads_vectors and vectors is None)
        own = question_vectors(self.encoder, queries, None) if needed and self.encoder is not None else None
        if corpus is None or not self.config.reads_vectors:
            return own, None
        return own, question_vectors(None, queries, own if vectors is None else vectors)

    def _dense(self, vectors: NDArray[Any], k: int, graph: PolicyGraph, run: Mapping[str, Any]) -> Hits:
        assert self.index.corpus is not None
        depth = min(max(k, self.config.seeds.passage_list), self.index.num_passages)
        return dense_topk(vectors, self.index.corpus, depth, allow=graph.passages, **run)

    def _of_part(self, part: IndexPart) -> dict[str, Any]:
        vectors = self._arguments[1]["fact_vectors"]
        if isinstance(vectors, Corpus):
            rows = vectors.vectors[part.facts]
            vectors = Corpus.from_stored(rows, metric=vectors.metric, storage=vectors.storage)
        elif vectors is not None:
            vectors = to_numpy(vectors, "fact_vectors")[part.facts]
        return {"matcher": part_of_matcher(self.matcher, part), "fact_vectors": vectors}

    def _joined(self, parts: Sequence[tuple[Group, PolicyRAGResult]], batch: int, k: int) -> PolicyRAGResult:
        """Return the result of a batch from those of its groups, in the whole index's numbers."""
        facts, seeds = [], []
        for group, found in parts:
            entities, numbers = group.part.entities, group.part.facts
            facts.append((group, [[_whole(one, entities, numbers) for one in row] for row in found.facts]))
            seeds.append((group, [{int(entities[e]): share for e, share in row.items()} for row in found.seeds]))
        rows = [group.part.passages for group, _ in parts]
        return PolicyRAGResult(
            **joined(self.index, parts, batch, k, rows), facts=in_order(facts, batch), seeds=in_order(seeds, batch)
        )

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


def _whole(verdict: Verdict, entities: NDArray[np.int64], facts: NDArray[np.int64]) -> Verdict:
    """Return a verdict with the whole index's numbers in place of a part's."""
    head, tail = int(entities[verdict.head]), int(entities[verdict.tail])
    return verdict._replace(fact=int(facts[verdict.fact]), head=head, tail=tail)


def _in_order(parts: Sequence[tuple[NDArray[np.int64], list[Any]]]) -> list[Any]:
    """Return the values of all questions, from those of each group."""
    placed = {b: value for rows, values in parts for b, value in zip(rows.tolist(), values, strict=True)}
    return [placed[b] for b in range(len(placed))]
