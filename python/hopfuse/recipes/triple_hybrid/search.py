"""The search of TripleHybrid: reading arguments, filters, results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from ...errors import InputError
from ...index import Index
from ...ops.capture import auto_backend
from ...types import Incidence, LabelSets
from .._parts.base import BaseRecipe
from .._parts.config import lacking, needed
from .._parts.filters import View
from .._parts.lexical import LexicalLeg
from .._parts.questions import QuestionBatch, notes_of
from ..protocol import Needs, Ranks, Words
from ..results import Hit, SearchResult
from .config import TripleHybridConfig
from .core import Knowledge, rank, visible_to
from .trace import trace_questions


@dataclass(frozen=True, eq=False, repr=False)
class TripleHybridResult(SearchResult):
    """The rankings of a batch of questions; ids are entities of the index.

    ``result[b]`` is a list of :class:`Hit` whose ``id`` and ``title`` are the entity's name and whose ``row`` is its
    number; ``text`` is empty.

    Attributes
    ----------
    hits : Hits
        The ranking of the mode, (B, min(k, E)).
    lists : dict of str to Hits
        The lists that the ranking was made from, with their raw scores: ``"vector"`` (cosines) and ``"graph"``
        (positive mean Dice coefficients) for ``mode="hybrid"``, else the one list of the mode.
    traces : list of dict, or None
        One per question if ``trace=True``, with its ``seeds`` and their cosines (for modes with seeds), and for each
        hit its score in each list, the list that decides its rank (``by``), and the best triple that leads to it.
    """

    def _row(self, ranked: list[tuple[int, float]]) -> list[Hit]:
        names = self.index.entity_names
        return [Hit(names[row], row, score, names[row], "") for row, score in ranked]


class TripleHybrid(BaseRecipe[TripleHybridResult]):
    """Rank entities by their vectors, and by the facts that lead to them from the nearest entities.

    Parameters
    ----------
    index : Index
        With facts and vectors of its entities, which are compared by cosine, so that the scores of both lists are at
        most 1. ``mode="vector"`` needs no facts; ``mode="lexical"`` needs neither.
    config : TripleHybridConfig, optional
    encoder : optional
        Object with ``encode_queries(texts)``, for questions given without vectors.
    lexical : optional
        Object with ``search(questions, k)``, which returns Hits over the entities (:class:`hopfuse.lexical.BM25` of
        their names), for ``mode="lexical"``.
    threads : int, optional
    **options
        Fields of :class:`TripleHybridConfig`; they override those of ``config``.

    Notes
    -----
    With ``allow``, entities that occur in no allowed passage are not listed. An entity occurs in a passage if the graph
    joins them or if the passage states a fact about the entity. With ``allow_scope="results"``, seeds and facts come
    from the whole index.

    References
    ----------
    s = max(s_vec, s_graph + 1e-6) over the union of the lists. s_graph is the largest mean Dice coefficient of the
    question with the labels of a fact that leads to the entity (Dice, Ecology 26, 1945; Sørensen, 1948). Both lists are
    calibrated to [0, 1] first, which the published method (:meth:`paper`) does not do.

    Examples
    --------
    >>> import hopfuse as hf
    >>> films = hf.Index.build(
    ...     passages=[{"text": "Alien, by Ridley Scott, is in English."}],
    ...     entities=["Alien", "Ridley Scott", "English"],
    ...     entity_vectors=[[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]],
    ...     facts=[
    ...         {"head": "Alien", "relation": "directed by", "tail": "Ridley Scott", "passage": 0},
    ...         {"head": "Alien", "relation": "in language", "tail": "English", "passage": 0},
    ...     ],
    ... )
    >>> recipe = hf.recipes.TripleHybrid(films, mode="graph", seeds=1)
    >>> found = recipe.search(["who directed alien"], vectors=[[1.0, 0.0]], k=2)
    >>> [hit.id for hit in found[0]]
    ['Ridley Scott', 'English']
    """

    name: ClassVar[str] = "triple-hybrid"
    Config: ClassVar[type[TripleHybridConfig]] = TripleHybridConfig
    ranks: ClassVar[Ranks] = "entities"
    collaborators: ClassVar[tuple[str, ...]] = ("encoder", "lexical")

    @classmethod
    def words(cls, config: TripleHybridConfig | None = None) -> Words:
        """Return the lexical leg that the recipe uses by default: one over the entities' names in mode "lexical"."""
        return "any" if config is not None and config.mode == "lexical" else "none"

    def __init__(
        self,
        index: Index,
        config: TripleHybridConfig | None = None,
        *,
        encoder: Any = None,
        lexical: LexicalLeg | None = None,
        threads: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(index, config, options, encoder=encoder, lexical=lexical, threads=threads)
        if self.config.mode == "lexical" and lexical is None:
            raise needed("lexical", "mode='lexical'", "such as BM25 over the entities' names")
        facts = index.facts
        labels = None
        if self.config.reads_facts and facts is not None:
            names = [*index.entity_names, *facts.relations]
            labels = LabelSets.from_labels(names, unit=self.config.unit, repeats=self.config.repeats)
        corpus = None if index.entity_corpus is None else index.entity_corpus.with_metric("cosine")
        self._known = Knowledge(facts, labels, corpus, self.lexical, index.num_entities)
        self._mentions = None if index.graph is None else Incidence.from_graph(index.graph, index.num_passages)

    @staticmethod
    def paper() -> TripleHybridConfig:
        """Return :meth:`TripleHybridConfig.paper`: ``TripleHybrid(index, TripleHybrid.paper())``."""
        return TripleHybridConfig.paper()

    @classmethod
    def missing(cls, index: Index, config: TripleHybridConfig | None = None) -> InputError | None:
        """Return the error that says what the index lacks for this recipe, or None."""
        config = TripleHybridConfig() if config is None else config
        if config.reads_facts and (index.facts is None or index.entity_corpus is None):
            return lacking("TripleHybrid", "facts", "entity_corpus")
        if config.reads_vectors and index.entity_corpus is None:
            return lacking("TripleHybrid", "entity_corpus")
        return None

    @cached_property
    def needs(self) -> Needs:
        """The inputs that a search reads."""
        config = self.config
        return Needs(
            vectors=config.reads_vectors,
            texts=config.mode != "vector",
            facts=config.reads_facts,
            words=config.mode == "lexical",
        )

    def _search(self, asked: QuestionBatch, view: View | None, k: int, trace: bool) -> TripleHybridResult:
        config, index = self.config, self.index
        visible = None if view is None else visible_to(view, self._mentions, index.facts, index.num_entities)
        run: dict[str, Any] = {"backend": auto_backend().backend, "threads": self.threads}
        found = rank(config, self._known, asked.texts, asked.vectors, k, visible=visible, **run)
        traces = None
        if trace:
            traces = trace_questions(found, config.calibration, index.facts, index.entity_names)
        notes = notes_of(asked, None, (), found.lists.get("lexical"))
        return TripleHybridResult(found.hits, index, found.lists, traces, notes=notes)
