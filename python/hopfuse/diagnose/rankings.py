"""The rankings that are compared: each a recipe by the arguments of its retriever, or one of its legs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..index import Index
from ..ops.dense import dense_topk
from ..ops.projection import project_topk
from ..recipes import RECIPES, SearchResult
from ..retriever import Retriever
from ..types import Hits, Incidence

if TYPE_CHECKING:
    from ..extract import Match

#: Questions of a search, unless its time is measured.
CHUNK = 256
#: Hits per ranking.
DEPTH = 10
#: Entities whose scores are added to the passages that mention them.
ENTITIES = 100


def baseline_of(index: Index) -> str:
    """Return the ranking that the others are compared with: by vectors or, in an index without them, by words."""
    return "words" if index.corpus is None else "dense"


def retriever_of(given: Retriever | Index) -> Retriever:
    """Return a retriever over one state of an index."""
    return Retriever(given) if isinstance(given, Index) else given.of_state(given.index)


class Questions(NamedTuple):
    """Questions with their vectors and entities, a row for each; what is None is made by a retriever.

    Attributes
    ----------
    texts : sequence of (str or None), or None
    vectors : array_like of float (B, d), sequence of B vectors or None, or None
        By the encoder of the passages' vectors.
    entities : sequence of (sequence of str, int or Match, or None), or None
        Names as the questions have them, numbers of the index's entities, or matches.
    """

    texts: Sequence[str | None] | None
    vectors: Any = None
    entities: Sequence[Sequence[str | int | Match] | None] | None = None

    @property
    def size(self) -> int:
        """The number of questions."""
        return next((len(rows) for rows in self if rows is not None), 0)

    def batches(self, size: int = CHUNK, first: int = 0) -> Iterator[Questions]:
        """Yield ``size`` questions from the first on, then the next."""
        for at in range(first, self.size, size):
            rows: Any = (None if one is None else one[at : at + size] for one in self)
            yield Questions(*rows)

    def by(self, retriever: Retriever, k: int, *, trace: bool = False) -> SearchResult:
        """Return the results of a retriever; entities are searched by its encoder's vectors, if it has one."""
        needs = retriever.needs
        own = needs.vectors and (retriever.recipe.ranks == "passages" or retriever.encoder is None)
        entities = self.entities if needs.entities else None
        vectors = self.vectors if own else None
        return retriever.search(self.texts, vectors=vectors, entities=entities, k=k, trace=trace)


Search = Callable[["Questions"], Hits]


class Ranking(NamedTuple):
    """A ranking that is compared: the arguments of a retriever, and what of its results is ranked.

    Attributes
    ----------
    recipe : str
    options : mapping
        Fields of the recipe's config that differ from its defaults.
    words : bool
        Whether it reads the words of the retriever that is compared; else it reads none.
    leg : {"dense", "lexical", "graph"} or None
        The leg to rank by itself; None for the recipe's hits.
    detail : bool
        Whether it shows a part of another ranking, which a comparison may leave out.
    """

    recipe: str
    options: Mapping[str, Any] = MappingProxyType({})
    words: bool = False
    leg: str | None = None
    detail: bool = False

    def over(self, retriever: Retriever, words: Any = None, **options: Any) -> Retriever:
        """Return the retriever of the ranking, with the collaborators of another and further options."""
        merged = {**self.options, **options}
        return retriever.variant(self.recipe, words=words if self.words else "none", **merged)

    def arguments(self, index: Index) -> list[str]:
        """Return the arguments of ``hopfuse search`` and ``score`` that rank so.

        Examples
        --------
        >>> import hopfuse as hf
        >>> from hopfuse.diagnose import RANKINGS
        >>> index = hf.Index.build(passages=[{"text": "The sea."}])
        >>> RANKINGS["dense"].arguments(index)
        ['--recipe', 'plain-hybrid', '--words', 'none']
        >>> RANKINGS["phase-graph+words"].arguments(index)
        ['--recipe', 'phase-graph', '--words', 'auto']
        """
        kind, options = RECIPES[self.recipe], dict(self.options)
        if self.leg == "lexical" and index.corpus is not None:
            options["weights"] = (1.0, 0.0, 0.0)
        given = ["--recipe", self.recipe]
        for name, value in options.items():
            text = ",".join(f"{one:g}" for one in value) if isinstance(value, tuple) else f"{value}"
            given += ["--option", f"{name}={text.lower() if isinstance(value, bool) else text.removesuffix('.0')}"]
        own = kind.words(kind.Config())
        reads = own == "any" or (own == "stored" and index.lexical is not None)
        if "lexical" in kind.collaborators and self.words != reads:
            given += ["--words", "auto" if self.words else "none"]
        return given

    def search(self, retriever: Retriever) -> Search:
        """Return a search for :data:`DEPTH` passages by the ranking's own retriever."""
        if self.leg == "dense":
            corpus = retriever.index.corpus
            assert corpus is not None
            return lambda asked: dense_topk(asked.vectors, corpus, DEPTH, threads=retriever.threads)
        if self.leg == "lexical":
            return lambda asked: retriever.words.search(list(asked.texts or ()), DEPTH)
        if self.leg is not None:
            leg = self.leg
            return lambda asked: asked.by(retriever, 1).lists[leg]
        if retriever.recipe.ranks == "entities":
            return by_mention(retriever)
        return lambda asked: asked.by(retriever, DEPTH).hits


def by_mention(retriever: Retriever) -> Search:
    """Return a search that ranks passages by the sum of the scores of the entities they mention.

    Parameters
    ----------
    retriever : Retriever
        Ranks the entities of an index with a graph. Scores below 0 count as 0.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import Questions, by_mention
    >>> passages = [{"text": "The sea."}, {"text": "Ada wrote."}]
    >>> index = hf.Index.build(
    ...     passages=passages, entities=["Ada"], entity_vectors=[[1.0, 0.0]], graph=[{"src": 1, "dst": 2}]
    ... )
    >>> search = by_mention(hf.Retriever(index, "triple-hybrid", mode="vector"))
    >>> search(Questions(["Who is Ada?"], [[0.5, 0.5]], [[]])).row(0)
    [(1, 0.7071067690849304)]
    """
    index = retriever.index
    assert index.graph is not None
    mentions = Incidence.from_graph(index.graph, index.num_passages)
    most = min(ENTITIES, max(1, index.num_entities))

    def search(asked: Questions) -> Hits:
        found = asked.by(retriever, most).hits
        scores = np.zeros((len(found), mentions.num_columns), np.float32)
        rows, columns = np.nonzero(np.arange(found.ids.shape[1]) < found.counts[:, None])
        scores[rows, index.num_passages + found.ids[rows, columns]] = np.maximum(found.scores[rows, columns], 0)
        return project_topk(scores, mentions, DEPTH, threads=retriever.threads)

    return search


_GRAPH = {"graph_k": DEPTH, "dense_k": 1, "dense_fallback": False}
#: The ranking that other systems have: words and vectors without a walk.
PLAIN = "plain-hybrid"
#: The walk alone.
WALK = "graph"
_OWN = {
    "dense": Ranking(PLAIN, leg="dense"),
    "words": Ranking(PLAIN, words=True, leg="lexical"),
    PLAIN: Ranking(PLAIN, words=True),
    WALK: Ranking("phase-graph", _GRAPH, leg="graph"),
    "graph-else-dense": Ranking("phase-graph", {"graph_k": DEPTH, "dense_k": DEPTH}, leg="graph", detail=True),
    "triple-vector": Ranking("triple-hybrid", {"mode": "vector"}, detail=True),
    "triple-graph": Ranking("triple-hybrid", {"mode": "graph"}, detail=True),
    "guided-walk": Ranking("guided-walk"),
    "guided-walk+words": Ranking("guided-walk", words=True),
    "phase-graph": Ranking("phase-graph"),
    "phase-graph+words": Ranking("phase-graph", words=True),
    "hybrid-rrf": Ranking("hybrid-rrf", words=True),
    "hybrid-convex": Ranking("hybrid-rrf", {"fusion": "convex"}, words=True),
}
#: The rankings that are compared: single legs and the plain hybrid, then recipes. One without a line has its defaults.
RANKINGS: Mapping[str, Ranking] = _OWN | {name: Ranking(name) for name in RECIPES if name not in _OWN}
