"""GuidedWalk: a walk over the entity graph that the question steers, from its own entities and those of an answer.

    question ─► vector ─► dense top-k ──────────┬─► first answer ─► entities of each name's passage ─► second seeds ┐
        ├─► entities ─► seeds ─► PPR (plain) ───┘                                                                   │
        │                 └─────────────────────────────────────────────────────────────────────────────────────────┤
        ├─► vector, and that of the other words ─► similarities ─► node weights ─► PPR (guided) ◄───────────────────┘
        ├─► other words ─► a lexical leg ─► boost ───────────────────────┘             │
        └─► words ─► a lexical leg ─► list, and what each hit has of them ─► ranking ◄─┴─ and the dense list ─► top k

In the guided walk, a passage and the edges to it are weighted by the passage's similarity to the question. A lexical
leg raises the weights of passages with words of the question other than the names in it. In the ranking, the question's
rarest seed says how much the walk's list counts, and how much the dense and the lexical one, so that a question without
seeds has an answer. All questions of a batch go through every stage together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._validation import check_names
from ...index import Index
from ...ops.capture import auto_backend
from ...ops.dense import check_queries, dense_topk
from ...ops.fusion import fuse
from ...ops.ppr import ppr_topk
from ...ops.seeding import boost_weights, cover_seeds
from ...ops.similarity import similarity_weights
from ...types import Corpus, Graph, Hits, Incidence, Seeds
from .._parts.direct import (
    KEPT_AMONG,
    Rarest,
    WeightedRanking,
    best_direct,
    direct_terms,
    direct_weights,
    keep,
    name_seeds,
    rank_by_terms,
    rank_terms,
    rarest_seeds,
)
from .._parts.filters import View
from .._parts.hits import widened
from .._parts.lexical import LexicalLeg, lexical_pool
from .._parts.mentions import Matcher
from .._parts.questions import QuestionBatch, notes_of
from .._parts.recorded import RecordedCores, RecordedRecipe, RowOf
from .._parts.seeding import EntitySeeder, Seed, padded
from .._parts.spelling import other_words, spelled
from ..protocol import Needs, Words
from ..results import SearchResult
from .config import FIRST_K, WORD_K, GuidedWalkConfig
from .shares import SecondShares, add_second_seeds
from .trace import GuidedOutcome, trace_queries


def guided_walk(
    vectors: Any,
    seeds: Seeds,
    steering: Any,
    names: Any,
    boosted: Hits | None,
    *,
    k: int,
    view: View | None,
    config: GuidedWalkConfig,
    corpus: Corpus,
    graph: Graph,
    mentions: Incidence,
    shares: Incidence | SecondShares,
    backend: str,
    threads: int | None,
) -> dict[str, Hits]:
    """Return the lists ``"dense"``, ``"guided"`` and, if used, ``"graph"``; and ``"first"``, the passages whose
    entities are the second seeds.

    Parameters
    ----------
    vectors : (B, d)
    seeds : Seeds (B, S)
        Entities that each question names, as nodes of the graph.
    steering : (B, d)
        The vectors whose similarities weigh passages in the guided walk.
    names : float64 (B, S)
        The seeds' weights, 0 for a seed that is not a name.
    boosted : Hits or None
        Passages whose weights are raised, by words of the question other than the names in it.
    k : int
        Hits of the search; the lists do not depend on it.
    view : View or None
        Passages that each question may find; None for all.
    config, corpus, graph, mentions, shares, backend, threads
        The same for all questions. ``mentions`` has the entities of each passage, and ``shares`` their weights as
        second seeds: of all passages or, on the CPU, what makes them.
    """
    passages = range(len(corpus))
    allow, ranked = (None, passages) if view is None else (view.allow, view.candidates)
    run: dict[str, Any] = {"backend": backend, "threads": threads}
    given = vectors
    vectors = check_queries(given, corpus.dim, needs_length=True, backend=backend)
    steering = vectors if steering is given else check_queries(steering, corpus.dim, needs_length=True, backend=backend)
    walk: dict[str, Any] = {
        "candidates": ranked,
        "damping": config.damping,
        "edge_type_weights": config.edge_weights,
        "stop": "tol",
        "empty": "skip",
        **run,
    }

    lists = {"dense": dense_topk(vectors, corpus, config.dense_k, allow=allow, **run)}
    if config.first == "fused":
        lists["graph"] = ppr_topk(graph, seeds, config.graph_k, **walk)

    tau = config.decay(has_words=boosted is not None)
    weights = similarity_weights(steering, corpus, tau=tau, floor=config.floor, **run)
    if boosted is not None:
        weights = boost_weights(weights, boosted, config.boost, backend=backend)
    answers = list(lists.values())
    for _ in range(config.depth):
        answer = fuse(answers, method=config.ranks, k=FIRST_K, **run)
        first = cover_seeds(answer, Seeds(seeds.nodes, names), mentions, k=config.second_top, backend=backend)
        starts = add_second_seeds(seeds, first, shares, config.second_mass, backend=backend)
        walked = ppr_topk(graph, starts, config.graph_k, node_weights=weights, weighted_nodes=passages, **walk)
        answers = [walked]
    return {**lists, "guided": walked, "first": first}


def weights_of_names(
    seeds: Sequence[Sequence[Seed]], names: Sequence[Sequence[bool]], named: Seeds
) -> NDArray[np.float64]:
    """Return the weights of seeds as nodes, 0 for those that are not names, (B, S)."""
    weights = np.zeros(named.weights.shape)
    for b, (row, are_names) in enumerate(zip(seeds, names, strict=True)):
        weights[b, : len(row)] = np.where(are_names, named.weights[b, : len(row)], 0.0)
    return weights


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class GuidedWalkResult(SearchResult):
    """Results of a search.

    Attributes
    ----------
    hits : Hits
        The ranking; ids are passage rows of the index.
    lists : mapping of str to Hits
        ``"dense"``; ``"guided"`` (a :class:`~hopfuse.PprHits`; empty for a question without any seeds); ``"graph"``,
        the plain walk, if the first answer uses it; and ``"lexical"``, if such a list is fused into the hits.
    direct : ndarray of float64 (B,)
        How far each question is left to direct retrieval, by vectors and words, 0 to 1; 0 where the weights are the
        same for all questions.
    seeds : Seeds
        The entities that each question names, as nodes of the graph; a row of padding if there are none.
    first : Hits
        The passages whose entities are the second seeds.
    starts : Seeds
        The guided walk's restart: the seeds, and then the second seeds.
    traces : list of dict, or None
        One per question if ``trace=True``. A trace has:

        - ``ranked_by``: ``"guided walk"``, or ``"dense"`` where it has no seeds, or ``"words"`` beside it;
        - ``seeds``: entity, surface, how it matched, weight; ``left_out``: likewise, those that it may not see;
        - ``allowed``: how many passages it may find, or None;
        - ``second_seeds``: entity, share of the restart, and the passages of the first answer that it is from;
        - ``direct``, unless weights are given: the ``weight``, as of the attribute, and the ``reason`` in words;
        - each list, with ranks and raw scores;
        - with a lexical leg whose words raise weights, ``other_words``: the question without the names that it
          mentions; None if nothing is left, as without a text.

        A hit of a trace has:

        - ``ranks``, ``contributions``, and ``kept``: True for the best direct hit if it was moved up;
        - ``weight`` of the passage in the walk: 1 for the most similar one before any boost; with ``other_words`` also
          ``boost``, the factor of its weight for these words;
        - ``attribution``: what each seed gives to the walk's score there, ``named`` of it and ``second``;
        - ``paths``, the strongest ones from a few seeds: nodes, the type of the edge to each, the path's strength there
          and, between two entities, their ``facts``.
    """

    seeds: Seeds
    first: Hits
    starts: Seeds
    direct: NDArray[np.float64]


class GuidedWalk(RecordedRecipe[GuidedWalkResult]):
    """A walk steered by the question: passages' similarities weight its edges, and a first answer adds seeds.

    Parameters
    ----------
    index : Index
        With vectors and a graph.
    config : :class:`GuidedWalkConfig`, optional
    encoder, matcher, lexical, threads : optional
        As in :class:`PhaseGraph`.
    **options
        Fields of the config; they override those of ``config``.

    Raises
    ------
    InputError
        An index without vectors or a graph, an option that the config does not have or refuses, options of the lexical
        leg without one, or an encoder other than the index's.

    Notes
    -----
    A question without a text, or with an empty one, is searched without words: they raise no weights, and a lexical
    list is empty. With ``allow_scope="results"``, both walks go over the whole graph with the whole index's seeds and
    weights.

    On a GPU a search is recorded once and replayed (:func:`hopfuse.capture`), with room for 1,024 second seeds; a
    question with more is run again without the recording. With ``allow`` the operations run one by one. The answers are
    the same.

    References
    ----------
    Personalized PageRank from a question's entities: HippoRAG 2. Second seeds are pseudo-relevance feedback (Rocchio,
    1971). The node weights are this project's.

    Examples
    --------
    >>> import hopfuse as hf
    >>> index = hf.Index.build(
    ...     passages=[{"text": "Ada wrote notes on the Engine."}, {"text": "The Engine was built by Babbage."}],
    ...     vectors=[[1.0, 0.0], [0.0, 1.0]],
    ...     entities=["Ada", "Engine", "Babbage"],
    ...     graph=[{"src": 0, "dst": 2}, {"src": 0, "dst": 3}, {"src": 1, "dst": 3}, {"src": 1, "dst": 4}],
    ... )
    >>> recipe = hf.recipes.GuidedWalk(index, second_top=1)
    >>> found = recipe.search(vectors=[[1.0, 0.1]], entities=[["Ada"]], k=2)
    >>> [hit.text for hit in found[0]]
    ['Ada wrote notes on the Engine.', 'The Engine was built by Babbage.']
    >>> found.starts.nodes[found.starts.weights > 0]
    array([2, 3])
    """

    name: ClassVar[str] = "guided-walk"
    Config: ClassVar[type[GuidedWalkConfig]] = GuidedWalkConfig

    @classmethod
    def words(cls, config: Any = None) -> Words:
        """Return the lexical leg that the recipe uses by default: that of the index, if it has one."""
        return "stored"

    def __init__(
        self,
        index: Index,
        config: GuidedWalkConfig | None = None,
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
        self._lexical_k, self._word_k = self.config.lexical_lengths(lexical is not None, index.num_passages)
        check_names(self.config.edge_weights or (), "edge_weights", index.graph.edge_type_names)
        self._seeder = EntitySeeder(index, self.encoder, self.config.entity_threshold)
        self._mentions = Incidence.from_graph(index.graph, index.num_passages)
        self._shares = shares = SecondShares(self._mentions, index)
        self._fixed = fixed = {
            "config": self.config,
            "corpus": index.corpus,
            "graph": index.graph,
            "mentions": self._mentions,
            "threads": self.threads,
        }

        def core(vectors: Any, seeds: Seeds, *given: Any, k: int) -> dict[str, Hits]:
            return guided_walk(vectors, seeds, *given, k=k, view=None, shares=shares.whole, backend="auto", **fixed)

        dim = index.corpus.dim
        self._recorded = RecordedCores(core, dim, RowOf(np.float32, dim), RowOf(np.float64), self._word_k)

    @cached_property
    def needs(self) -> Needs:
        """The inputs that a search reads."""
        words = self._lexical_k is not None or self._word_k is not None
        return Needs(vectors=True, entities=True, words=words)

    def _search(self, asked: QuestionBatch, view: View | None, k: int, trace: bool) -> GuidedWalkResult:
        assert asked.mentions is not None
        backend, records = auto_backend()
        seeds, unknown = self._seeder.seeds(asked.mentions, asked.vectors, backend=backend, threads=self.threads)
        named = padded(seeds, self.index.num_passages)
        texts = None if asked.texts is None else [text or "" for text in asked.texts]
        read = None if texts is None else spelled(texts, asked.mentions, self.index)
        others = None if read is None else other_words(read, seeds, self.index)
        steering = asked.vectors
        if self._steers and read is not None and others is not None:
            steering = _steering_vectors(self.encoder, asked.vectors, read, others)
        words = self._by_words(texts, self._cover_k, asked.size, None if view is None else view.allow)
        boosted = self._by_other_words(others, read, words, asked.size, view)

        names = name_seeds(seeds, asked.texts, self.index)
        given = (asked.vectors, named, steering, weights_of_names(seeds, names, named), boosted)
        if records and view is None:
            lists = self._recorded(*given, k=k)
        else:
            shares = self._shares.whole if records else self._shares
            lists = guided_walk(*given, k=k, view=view, shares=shares, backend=backend, **self._fixed)
        first = lists.pop("first")
        if words is not None:
            lists["lexical"] = words.head(self._lexical_k or 1)
        rarest = rarest_seeds(seeds, names, self.index)
        ranking = self._ranked(lists, words if texts is not None else None, rarest, k)
        starts = add_second_seeds(named, first, self._shares, self.config.second_mass, backend="cpu")
        outcome = GuidedOutcome(
            steering, self._mentions, self._shares, seeds, named, others, boosted, first, lists, ranking, rarest, view
        )
        traces = trace_queries(self.index, self.config, outcome, self.threads) if trace else None
        notes = notes_of(asked, seeds, unknown, words, boosted)
        return GuidedWalkResult(
            ranking.hits, self.index, lists, traces, notes=notes, seeds=named, first=first, starts=starts,
            direct=ranking.direct,
        )  # fmt: skip

    def _ranked(
        self, lists: dict[str, Hits], words: Hits | None, rarest: Sequence[Rarest | None], k: int
    ) -> WeightedRanking:
        """Return the hits, by weights of each question or of all."""
        legs: tuple[str, ...] = ("guided", "dense", "lexical")
        fused = {name: lists[name] for name in legs if name in lists}
        ranks = self.config.ranks
        how: dict[str, Any] = {"backend": "cpu", "threads": self.threads}  # the lists are on the host
        if not self.config.by_question:
            counts = self.config.weights(tuple(fused))
            hits = fuse(list(fused.values()), method=ranks, weights=tuple(counts.values()), k=k, **how)
            return WeightedRanking(
                hits, np.zeros(len(hits)), {name: rank_terms(fused[name], ranks, counts[name]) for name in fused}
            )
        direct = direct_weights(rarest, self.index.num_passages)
        terms = direct_terms(fused, words, direct, ranks, self.index.num_passages)
        hits = rank_by_terms(fused, terms, k=max(k, KEPT_AMONG), threads=self.threads)
        hits, moved = keep(hits, best_direct(fused, ranks, self.threads), k)
        return WeightedRanking(hits, direct, terms, moved)

    @property
    def encodes_all(self) -> bool:
        """Whether a search calls the encoder for the text of a question whose vector is given."""
        return self._steers

    @cached_property
    def _steers(self) -> bool:
        """Return whether the encoder's vector of a question's other words steers the walk too."""
        if self.encoder is None:
            return False
        try:
            return self.encoder.dim == self._dim
        except ValueError:  # of any library; it states no dimension, and has no vector for the text that would tell it
            return True

    @property
    def lacks(self) -> dict[str, str]:
        """Return what this recipe over this index could use and does not have, and what that costs."""
        if self._steers:
            return {}
        cost = "a question steers the walk with its names and all, not with what it asks about them"
        return {"the encoder of the passages": f"{cost}; search with the encoder that made the passages' vectors"}

    @property
    def _cover_k(self) -> int | None:
        """Length of the list by all words, which also says what a hit has of a question's words."""
        length: int | None = self._lexical_k
        if length is None or not self.config.by_question:
            return length
        return max(length, min(WORD_K, self.index.num_passages))

    def _by_other_words(
        self, others: Sequence[str] | None, texts: Sequence[str] | None, words: Hits | None, batch: int, view: Any
    ) -> Hits | None:
        """Return the list by words other than names, of the whole index: the walk goes over everything.

        A question without names has its list by all words already.
        """
        if others is None or texts is None or words is None or view is not None or words.ids.shape[1] != self._word_k:
            return self._by_words(others, self._word_k, batch)
        rows = [b for b, (text, rest) in enumerate(zip(texts, others, strict=True)) if text != rest]
        if not rows:
            return words
        found = self._by_words([others[b] for b in rows], self._word_k, len(rows))
        assert found is not None
        ids, scores, counts = (np.array(part) for part in (words.ids, words.scores, words.counts))
        ids[rows], scores[rows], counts[rows] = found.ids, found.scores, found.counts
        return Hits.unchecked(ids, scores, counts)

    def _by_words(self, texts: Sequence[str] | None, length: int | None, batch: int, seen: Any = None) -> Hits | None:
        """Return the lexical leg's list, ``length`` wide, empty without texts; None if the list has no part."""
        if length is None:
            return None
        if texts is None:
            return widened(Hits.from_lists([[]] * batch), length)
        return lexical_pool(self.lexical, texts, length, self.index.num_passages, seen)


# ---- Steering vectors ------------------------------------------------------------------------------------------------


def _steering_vectors(encoder: Any, vectors: Any, texts: Sequence[str], others: Sequence[str]) -> Any:
    """Return the sum of each question's vector and that of its words other than names, (B, d).

    A question without names, or whose other words the encoder has no vector for, keeps its own.

    Parameters
    ----------
    encoder : Encoder
        Of the passages.
    vectors : ndarray (B, d)
        Of the questions; vectors that the walk refuses are returned as they are.
    texts, others : sequence of B str
        The questions, and the questions without the names in them.
    """
    array = np.asarray(vectors)
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        return vectors
    asked = enumerate(zip(texts, others, strict=True))
    rest = {b: other for b, (text, other) in asked if other != text and any(map(str.isalnum, other))}
    made = {b: one for b, one in _vectors_of(encoder, rest).items() if one.shape == array.shape[1:]}
    if not made:
        return vectors
    rows = np.array(list(made))
    with np.errstate(over="ignore", invalid="ignore"):  # the walk refuses such vectors
        own = _unit_rows(np.asarray(array, np.float64)[rows])
        both = own + _unit_rows(np.array(list(made.values()), np.float64))
        steering = np.array(array, np.float32)
        is_long = np.sum(both * both, axis=1) > 1e-12  # False for NaN
    steering[rows[is_long]] = both[is_long]
    return steering


def _vectors_of(encoder: Any, texts: Mapping[int, str]) -> dict[int, NDArray[Any]]:
    """Return the encoder's vectors of texts by number, without those that it has none for."""
    if not texts:
        return {}
    try:
        return dict(zip(texts, np.asarray(encoder.encode_queries(list(texts.values()))), strict=True))
    except ValueError:  # of any library; one text without a vector refuses them all
        if len(texts) == 1:
            return {}
        return {b: found for one in texts for b, found in _vectors_of(encoder, {one: texts[one]}).items()}


def _unit_rows(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows scaled to length 1; a row of zeros stays."""
    lengths = np.sqrt(np.sum(vectors * vectors, axis=1, keepdims=True))
    scaled: NDArray[np.float64] = np.divide(vectors, lengths, out=np.zeros(vectors.shape), where=lengths > 0)
    return scaled
