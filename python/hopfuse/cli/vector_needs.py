"""Whether a recipe reads vectors of the questions, by its mode, its policy and the index; and where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .. import Index
from ..errors import InputError
from ..recipes._policy_needs import reads_vectors
from .inputs import check_one_source
from .policy import read_policy
from .recipe_choice import READS
from .recipe_settings import read_settings


def check_source(option: str, vectors: Path | None, encoder: str | None, unread: str, *, encodes: bool = False) -> None:
    """Refuse both or neither of vectors and an encoder; where nothing reads them, each that is given.

    Parameters
    ----------
    option : str
        What gives the vectors.
    vectors, encoder : optional
        What they and ``--encoder`` name.
    unread : str
        :func:`why_unread`.
    encodes : bool
        Whether something else than the questions is encoded: :func:`encodes_more`.
    """
    if not unread:
        check_one_source(vectors, encoder, option)
        return
    if vectors is not None:
        raise InputError(f"{option} is given, and {unread} reads no vectors of questions; leave it out")
    if encoder is not None and not encodes:
        raise InputError(f"--encoder is given, and {unread} reads no vectors; leave it out")


def why_unread(recipe: str, index: Index, policy: Path | None, settings: Sequence[str]) -> str:
    """What reads no vectors of the questions, in words; empty where they are read.

    Parameters
    ----------
    recipe : str
        As ``--recipe`` names it.
    index : Index
    policy, settings
        What ``--policy`` and ``--option`` are given.

    Examples
    --------
    >>> import hopfuse as hf
    >>> index = hf.Index.build(passages=[{"text": "The sea."}])
    >>> why_unread("hybrid-rrf", index, None, [])
    'hybrid-rrf over an index without vectors'
    >>> why_unread("triple-hybrid", index, None, ["mode=lexical"])
    'triple-hybrid with mode=lexical'
    """
    if recipe == "triple-hybrid":
        mode = read_settings(recipe, settings, READS[recipe]).asked.get("mode")
        return "triple-hybrid with mode=lexical" if mode == "lexical" else ""
    if recipe == "policy-rag" and not reads_vectors(read_policy(policy)):
        return "policy-rag by this policy"
    if recipe == "hybrid-rrf" and index.corpus is None:
        return "hybrid-rrf over an index without vectors"
    return ""


def encodes_more(recipe: str, index: Index) -> bool:
    """Whether an encoder serves a recipe that reads no vectors of questions: for facts, or for names nearly alike."""
    return recipe == "policy-rag" or (recipe == "hybrid-rrf" and index.entity_corpus is not None)
