"""Describe what a retriever uses, what it lacks and what that costs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..extract import QuestionMatcher
from ..lexical import BM25, FTS5
from ..types import TermMatrix
from .state import RetrieverState


@dataclass(frozen=True)
class Description:
    """What a retriever uses and lacks, in words and as data; ``str()`` gives sentences.

    Attributes
    ----------
    recipe : str
        Its name.
    ranks : {"passages", "entities"}
    chosen : bool
        Whether the recipe was chosen by what the index holds.
    reads : tuple of str
        What a search reads of a question: ``"vector"``, ``"text"``, ``"entities"``, ``"words"``.
    encoder, names, words, facts, reranker : str or None
        What makes vectors, finds names and ranks by words; how facts are searched; None if there is none.
    lacks : dict of str to str
        What is missing, and what that costs.

    Examples
    --------
    >>> import hopfuse as hf
    >>> retriever = hf.Retriever(hf.Index.build(passages=[{"text": "The sea."}]), words="fts5")
    >>> about = retriever.describe()
    >>> about.recipe, about.words
    ('hybrid-rrf', 'FTS5 built from the texts')
    """

    recipe: str
    ranks: str
    chosen: bool
    reads: tuple[str, ...]
    encoder: str | None
    names: str | None
    words: str | None
    facts: str | None
    reranker: str | None
    lacks: dict[str, str]

    def data(self) -> dict[str, Any]:
        """Return the description as plain values."""
        return asdict(self) | {"reads": list(self.reads)}

    def __str__(self) -> str:
        why = ", chosen by what the index holds," if self.chosen else ""
        reads = ", ".join(self.reads) or "nothing"
        lines = [f"{self.recipe}{why} ranks {self.ranks}. It reads of a question: {reads}."]
        uses = {"Vectors": self.encoder, "Names": self.names, "Words": self.words, "Facts": self.facts}
        lines += [f"{part}: {one}." for part, one in {**uses, "Reranker": self.reranker}.items() if one is not None]
        lines += [f"Without {part}: {cost}." for part, cost in self.lacks.items()]
        return "\n".join(lines)


def describe(state: RetrieverState, *, chosen: bool, reranker: Any) -> Description:
    """Return what a recipe over a state of an index uses and lacks."""
    needs, parts = state.needs, state.parts
    leg, reads_facts = getattr(state.recipe, "lexical", None), "fact_vectors" in state.kind.collaborators
    encodes = parts.encoder is not None and (needs.vectors or state.encodes_more)
    read = {"vector": needs.vectors, "text": needs.texts, "entities": needs.entities, "words": needs.words}
    facts = None
    if reads_facts and state.index.facts is not None:
        facts = "by their words" if parts.fact_vectors() is None else "by vectors"
    return Description(
        recipe=state.kind.name,
        ranks=state.kind.ranks,
        chosen=chosen,
        reads=tuple(name for name, one in read.items() if one),
        encoder=f"{parts.encoder.name}, {parts.encoder.dim} dimensions" if encodes and parts.encoder else None,
        names=_names_words(parts.names) if needs.entities else None,
        words=None if leg is None else _leg_words(leg, state.index.lexical),
        facts=facts,
        reranker=None if reranker is None else repr(reranker),
        lacks=_lacks(state),
    )


def _names_words(matcher: Any) -> str | None:
    if matcher is None:
        return None
    return "those of the index" if isinstance(matcher, QuestionMatcher) else repr(matcher)


def _leg_words(leg: Any, stored: TermMatrix | None) -> str:
    if isinstance(leg, BM25):
        terms = f"{leg.matrix.num_terms:,} terms"
        return f"BM25 of the index, {terms}" if leg.matrix is stored else f"BM25 built from the texts, {terms}"
    return "FTS5 built from the texts" if isinstance(leg, FTS5) else repr(leg)


def _lacks(state: RetrieverState) -> dict[str, str]:
    """Return what is missing, and what that costs."""
    index, needs, parts, lacks = state.index, state.needs, state.parts, dict[str, str]()
    if needs.vectors and parts.encoder is None:
        lacks["an encoder"] = f"a question needs its vector ({parts.lack})"
    if state.kind.space(index) is None and state.kind.ranks == "passages":
        lacks["vectors"] = (
            "passages are found by words and by the graph, not by meaning; build the index with an encoder"
        )
    if index.graph is None and "matcher" in state.kind.collaborators:
        lacks["a graph"] = (
            "passages that answer in several steps are found only if they resemble the question; build the index with "
            "a reader, such as words"
        )
    if "lexical" in state.kind.collaborators and not needs.words and state.kind.ranks == "passages":
        lacks["words"] = (
            "a rare word or a number of the question is found only if the vectors show it; build the index with BM25"
        )
    lack = parts.names_lack() if needs.entities else None
    if lack is not None or (needs.entities and parts.names is None):
        lacks["names"] = "a walk starts only from entities that are given" + ("" if lack is None else f" ({lack})")
    return lacks | getattr(state.recipe, "lacks", {})
