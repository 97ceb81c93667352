"""What a retriever uses, what it lacks and what that costs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


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
    ('hybrid-rrf', 'FTS5(passages=1)')
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
