"""Facts: triples of entities, and the passages that state them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from ..._validation import check_type
from ...errors import InputError
from ...types import Facts
from ..file.columns import string_arrays, string_column
from ..file.sections import Section, damage_of

Sections = Mapping[str, Section]
Arrays = dict[str, NDArray[Any]]


def build(facts: Facts, num_passages: int, num_entities: int) -> Arrays:
    """Return the sections ``fact.*``."""
    check_type(facts, "facts", Facts, "Facts: Facts.from_names(rows, entities, passages)")
    if (facts.num_passages, facts.num_entities) != (num_passages, num_entities):
        raise InputError(
            "length",
            "facts",
            "{field} are over {given[0]} passages and {given[1]} entities, the index has {allowed[0]} and "
            "{allowed[1]}; number them as the index does",
            given=(facts.num_passages, facts.num_entities),
            allowed=(num_passages, num_entities),
        )
    return {
        **string_arrays("fact.relation", facts.relations),
        "fact.row": facts.rows,
        "fact.indptr": facts.indptr,
        "fact.passage": facts.passages,
    }


def load(sections: Sections, num_passages: int, num_entities: int) -> Facts | None:
    """Return the facts, verified, or None if there are none."""
    if "fact.indptr" not in sections:
        return None
    with damage_of(sections["fact.indptr"]):
        return Facts(
            sections["fact.row"].whole(),
            list(string_column(sections, "fact.relation")),
            sections["fact.indptr"].whole(),
            sections["fact.passage"].whole(),
            num_entities=num_entities,
            num_passages=num_passages,
        )


def info(sections: Sections) -> dict[str, int] | None:
    """Return the facts' part of ``Index.info``."""
    if "fact.indptr" not in sections:
        return None
    return {
        "facts": sections["fact.row"].shape[0],
        "relations": len(string_column(sections, "fact.relation")),
        "statements": sections["fact.passage"].shape[0],
    }
