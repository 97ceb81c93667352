"""The default recipe for an index."""

from __future__ import annotations

from typing import Any

from ..index import Index
from ._parts.config import check_index, needed
from ._parts.lexical import LexicalLeg
from ._parts.mentions import Matcher
from .guided_walk.core import GuidedWalk
from .hybrid_rrf.core import HybridRRF


def default(
    index: Index,
    encoder: Any = None,
    matcher: Matcher | None = None,
    lexical: LexicalLeg | None = None,
    threads: int | None = None,
) -> GuidedWalk | HybridRRF:
    """Return the best recipe that an index can run, with its default options.

    Parameters
    ----------
    index : Index
        With vectors and a graph, the recipe is :class:`GuidedWalk`; with only one of them, or with a lexical leg,
        :class:`HybridRRF`.
    encoder, matcher, lexical, threads : optional
        Passed to the recipe.

    Raises
    ------
    InputError
        There are neither vectors nor a graph nor a lexical leg.

    Examples
    --------
    >>> import hopfuse as hf
    >>> texts = ["Ada wrote notes on the Engine.", "The Engine was built by Babbage.", "The sea."]
    >>> index = hf.Index.build(passages=[{"text": text} for text in texts])
    >>> recipe = hf.recipes.default(index, lexical=hf.lexical.FTS5.build(texts))
    >>> recipe.search(["Who built the engine?"], k=1)[0][0].text
    'The Engine was built by Babbage.'
    """
    collaborators: dict[str, Any] = {"encoder": encoder, "matcher": matcher, "lexical": lexical, "threads": threads}
    check_index(index)
    if not GuidedWalk.missing(index):
        return GuidedWalk(index, **collaborators)
    if index.corpus is None and index.graph is None and lexical is None:
        raise needed(
            "lexical",
            "an index of texts alone",
            "such as hopfuse.lexical.words_of(index); or build it with an encoder's vectors (and a graph)",
        )
    return HybridRRF(index, **collaborators)
