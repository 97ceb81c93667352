"""The rewritings of questions that ``hopfuse diagnose --stability`` compares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._validation import check_ids
from .aliases import substitute_aliases
from .rewriting import Rewriting, paraphrase

if TYPE_CHECKING:
    from ..extract import Match
    from ..index import Index


def rewritings(
    questions: Sequence[str], index: Index, entities: Sequence[Sequence[str | int | Match]] | None = None
) -> dict[str, Rewriting]:
    """Return two rewritings of the questions: paraphrases, and other names of an entity.

    Parameters
    ----------
    questions : sequence of str, B entries
    index : Index
        Has the other names.
    entities : sequence of sequences of str, int or Match, B entries, optional
        Entities of the questions by name, by number, or as found in the text. Each question has one mention of each.

    Returns
    -------
    dict of str to Rewriting
        ``"paraphrases"`` is of :func:`paraphrase`, ``"other names"`` of :func:`substitute_aliases`.

    Raises
    ------
    InputError
        The index has no entity of a number; else as those functions.
    MissingExtraError
        ``pyahocorasick`` is not installed.

    Examples
    --------
    >>> from hopfuse.diagnose import rewritings
    >>> from hopfuse.index import Index
    >>> index = Index.build(passages=[{"text": "-"}], entities=["New York"], aliases={"New York": ["NYC"]})
    >>> made = rewritings(["Which city is New York?"], index, [[0]])
    >>> made["other names"].rewritten, made["other names"].rewritten_entities
    (('Which city is NYC?',), [['NYC']])
    >>> made["paraphrases"].entities
    [['New York']]
    """
    mentions = None
    if entities is not None:
        mentions = [
            list(dict.fromkeys(_name_of(one, index, f"entities[{row}]") for one in found))
            for row, found in enumerate(entities)
        ]
    return {
        "paraphrases": paraphrase(questions, mentions),
        "other names": substitute_aliases(questions, index, mentions),
    }


def _name_of(entity: str | int | Match, index: Index, field: str) -> str:
    if isinstance(entity, str):
        return entity
    if isinstance(entity, int):
        check_ids(np.array([entity]), field, index.num_entities)
        return index.entity_names[entity]
    return entity.surface
