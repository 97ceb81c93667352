"""How much a recipe's ranking changes when its questions are asked in another way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .. import Hits, Index
from ..errors import InputError
from ..evaluate import Qrels, Rewriting, paraphrase, rank_stability, substitute_aliases
from .inputs import QueryInputs, chunks, text_of
from .joining import joined
from .queries import Query
from .recipe_choice import RECIPES, Chosen

CHUNK = 256
#: Recipes whose hits are passages.
STABLE = tuple(name for name in RECIPES if name != "triple-hybrid")
VALUES = ("rbo", "jaccard", "first_gold_kept")


def stability_section(
    recipes: Iterable[Chosen],
    index: Index,
    inputs: QueryInputs,
    rows: Sequence[Query],
    qrels: Qrels | None,
    *,
    k: int,
) -> list[dict[str, Any]]:
    """A row for each recipe and each way to rewrite the questions.

    Parameters
    ----------
    recipes : iterable of Chosen
        Some of ``STABLE``.
    index : Index
    inputs : QueryInputs
        With an encoder.
    rows : sequence of Query
        With texts. Where none of them has entities, they are found in the rewritten questions anew.
    qrels : Qrels or None
        Of the same questions.
    k : int
        Hits that are asked for, and compared.

    Returns
    -------
    list of dict
        ``recipe``, ``rewriting``, ``questions`` that were rewritten, and the means of :func:`rank_stability`; None
        where there is nothing to average.
    """
    made = rewritings(index, inputs, rows)
    section = []
    for chosen in recipes:
        for kind, rewriting in made.items():
            row: dict[str, Any] = {"recipe": chosen.name, "rewriting": kind, "questions": int(rewriting.changed.sum())}
            section.append(row | _means(chosen, inputs, rewriting, qrels, k))
    return section


def rewritings(index: Index, inputs: QueryInputs, rows: Sequence[Query]) -> dict[str, Rewriting]:
    """The questions paraphrased, and with an entity called by another name."""
    texts = [text_of(row, "to be rewritten") for row in rows]
    mentions = None
    if any(row.entities is not None for row in rows):
        found = inputs.entities(list(rows))
        mentions = [[_name_of(one, index, row.id) for one in part] for part, row in zip(found, rows, strict=True)]
    return {"paraphrases": paraphrase(texts, mentions), "other names": substitute_aliases(texts, index, mentions)}


def _name_of(entity: str | int, index: Index, query: str) -> str:
    if isinstance(entity, str):
        return entity
    if not 0 <= entity < index.num_entities:
        raise InputError(f"query {query!r} has the entity {entity}; the index has 0 .. {index.num_entities - 1}")
    return index.entity_names[entity]


def _means(
    chosen: Chosen, inputs: QueryInputs, rewriting: Rewriting, qrels: Qrels | None, k: int
) -> dict[str, float | None]:
    if not rewriting.changed.any():
        return dict.fromkeys(VALUES)

    def search(questions: list[str], entities: list[Sequence[str]] | None) -> Hits:
        given = [None if entities is None else list[str | int](entities[at]) for at in range(len(questions))]
        asked = [Query("", text, row) for text, row in zip(questions, given, strict=True)]
        return joined([_hits(chosen, inputs, part, k) for part in chunks(iter(asked), CHUNK)])

    summary = rank_stability(search, rewriting, k=k, qrels=qrels).summary()
    return {name: summary[name].to_dict()["mean"] for name in VALUES}


def _hits(chosen: Chosen, inputs: QueryInputs, part: list[Query], k: int) -> Hits:
    texts = [str(query.text) for query in part]
    found: Hits = chosen.search(texts, inputs.vectors(part, 0), inputs.entities(part), k).hits
    return found
