"""GuidedWalk: a walk over the entity graph that the question steers, from its own entities and those of an answer.

    question ─► vector ─► dense top-k ──────────┬─► first answer ─► entities of its best passages ─► second seeds ─┐
        ├─► entities ─► seeds ─► PPR (plain) ───┘                                                                  │
        │                 └────────────────────────────────────────────────────────────────────────────────────────┤
        ├─► vector ─► similarity of every passage ─► node weights ─► PPR (guided) ◄────────────────────────────────┘
        └─► other words ─► a lexical leg ─► boost ─────┘               │
                                                        RRF ◄──────────┴─ and the dense list ─► top k

In the guided walk, a passage and the edges to it are weighted by the passage's similarity to the question. A lexical
leg raises the weights of passages with words of the question other than the names in it. The dense list is fused into
the hits, so that a question without seeds has an answer. All questions of a batch go through every stage together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from ..._validation import check_names
from ...index import Index
from ...ops.boosting import boost_weights
from ...ops.capture import placement
from ...ops.dense import dense_topk
from ...ops.fusion import fuse
from ...ops.ppr import ppr_topk
from ...ops.seeding import add_entity_seeds
from ...ops.similarity import similarity_weights
from ...ops.vectors import check_queries
from ...types import Corpus, Graph, Hits, Incidence, Seeds
from .._parts.filters import View
from .._parts.hits import widened
from .._parts.lexical import LexicalLeg, lexical_pool
from .._parts.mentions import Matcher
from .._parts.notes import notes_of
from .._parts.other_words import other_words
from .._parts.questions import Asked
from .._parts.recorded import RecordedCores, RecordedRecipe
from .._parts.seeding import EntitySeeder, padded
from ..protocol import Needs, Words
from ..results import SearchResult
from .config import GuidedWalkConfig
from .trace import Outcome, trace_queries


def guided_walk(
    vectors: Any,
    seeds: Seeds,
    words: Hits | None,
    boosted: Hits | None,
    *,
    k: int,
    view: View | None,
    config: GuidedWalkConfig,
    corpus: Corpus,
    graph: Graph,
    mentions: Incidence,
    backend: str,
    threads: int | None,
) -> dict[str, Hits]:
    """Return the lists ``"dense"``, ``"guided"`` and, if used, ``"graph"`` and ``"lexical"``; ``"first"``, the answer
    whose entities are the second seeds; and ``"hits"``.

    Parameters
    ----------
    vectors : (B, d)
    seeds : Seeds (B, S)
        Entities that each question names, as nodes of the graph.
    words : Hits or None
        The lexical list that is fused into the hits.
    boosted : Hits or None
        Passages whose weights are raised, by words of the question other than the names in it.
    k : int
    view : View or None
        Passages that each question may find; None for all.
    config, corpus, graph, mentions, backend, threads
        The same for all questions. ``mentions`` has the entities of each passage, as nodes.
    """
    passages = np.arange(len(corpus))
    allow, ranked = (None, passages) if view is None else (view.allow, view.candidates)
    run: dict[str, Any] = {"backend": backend, "threads": threads}
    vectors = check_queries(vectors, corpus.dim, needs_length=True, backend=backend)
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
    weights = similarity_weights(vectors, corpus, tau=tau, floor=config.floor, **run)
    if boosted is not None:
        weights = boost_weights(weights, boosted, config.boost)
    answers = list(lists.values())
    for _ in range(config.depth):
        first = fuse(answers, method=config.ranks, k=config.second_top, **run)
        starts = walk_starts(seeds, first, mentions, config)
        walked = ppr_topk(graph, starts, config.graph_k, node_weights=weights, weighted_nodes=passages, **walk)
        answers = [walked]

    fused = {"guided": walked, "dense": lists["dense"]} | ({} if words is None else {"lexical": words})
    counts = tuple(config.weights(tuple(fused)).values())
    hits = fuse(list(fused.values()), method=config.ranks, weights=counts, k=k, **run)
    return {**lists, **fused, "first": first, "hits": hits}


def walk_starts(seeds: Seeds, first: Hits, mentions: Incidence, config: GuidedWalkConfig) -> Seeds:
    """Return the guided walk's restart: the seeds, and the entities of an answer beside them."""
    return add_entity_seeds(seeds, first, mentions, config.second_mass)


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
    seeds : Seeds
        The entities that each question names, as nodes of the graph; a row of padding if there are none.
    first : Hits
        The passages whose entities are the second seeds.
    starts : Seeds
        The guided walk's restart: the seeds, and then the second seeds.
    traces : list of dict, or None
        One per question if ``trace=True``: ``ranked_by`` (``"guided walk"``, or ``"dense"`` where it has no seeds, or
        ``"words"`` beside it), ``seeds`` (entity, surface, how it matched, weight), ``left_out`` (likewise, those that
        it may not see), ``allowed`` (how many passages it may find, or None), ``second_seeds`` (entity, share of the
        restart, and the passages of the first answer that it is from), each list with ranks and raw scores, and for
        each hit its ``ranks``, ``contributions``, ``weight`` (of the passage in the walk, 1 for the most similar one
        before any boost), ``attribution`` (what each seed gives to the walk's score there: ``named`` of it and
        ``second``) and ``paths`` (the strongest ones from a few seeds: nodes, the type of the edge to each, the path's
        strength there and, between two entities, their ``facts``). With a lexical leg whose words raise weights, also
        ``other_words`` (the question without the names that it mentions; None if nothing is left, as without a text),
        and for each hit ``boost`` (the factor of its weight for these words).
    """

    seeds: Seeds
    first: Hits
    starts: Seeds


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
        self._fixed: dict[str, Any] = {
            "config": self.config,
            "corpus": index.corpus,
            "graph": index.graph,
            "mentions": self._mentions,
            "threads": self.threads,
        }
        core = partial(guided_walk, view=None, backend="auto", **self._fixed)
        self._recorded = RecordedCores(core, index.corpus.dim, self._lexical_k, self._word_k)

    @cached_property
    def needs(self) -> Needs:
        """The inputs that a search reads."""
        words = self._lexical_k is not None or self._word_k is not None
        return Needs(vectors=True, entities=True, words=words)

    def _search(self, asked: Asked, view: View | None, k: int, trace: bool) -> GuidedWalkResult:
        assert asked.mentions is not None
        backend, records = placement()
        seeds, unknown = self._seeder.seeds(asked.mentions, asked.vectors, backend=backend, threads=self.threads)
        named = padded(seeds, self.index.num_passages)
        seen = None if view is None else view.allow
        texts = None if asked.texts is None else [text or "" for text in asked.texts]
        others = None if texts is None or self._word_k is None else other_words(texts, seeds, self.index)
        words = self._by_words(texts, self._lexical_k, asked.size, seen)
        boosted = self._by_words(others, self._word_k, asked.size)  # the walk goes over everything, whatever is listed

        if records and view is None:
            found = self._recorded(asked.vectors, named, words, boosted, k=k)
        else:
            found = guided_walk(asked.vectors, named, words, boosted, k=k, view=view, backend=backend, **self._fixed)
        hits, first = found.pop("hits"), found.pop("first")
        starts = walk_starts(named, first, self._mentions, self.config)
        outcome = Outcome(asked.vectors, self._mentions, seeds, named, others, boosted, first, found, hits, view)
        traces = trace_queries(self.index, self.config, outcome, self.threads) if trace else None
        notes = notes_of(asked, seeds, unknown, words, boosted)
        return GuidedWalkResult(hits, self.index, found, traces, notes=notes, seeds=named, first=first, starts=starts)

    def _by_words(self, texts: Sequence[str] | None, length: int | None, batch: int, seen: Any = None) -> Hits | None:
        """Return the lexical leg's list, ``length`` wide, empty without texts; None if the list has no part."""
        if length is None:
            return None
        if texts is None:
            return widened(Hits.from_lists([[]] * batch), length)
        return lexical_pool(self.lexical, texts, length, self.index.num_passages, seen)
