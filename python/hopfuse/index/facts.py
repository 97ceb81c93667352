"""The sections ``fact.*``: triples of entities, and the passages that state each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from ..errors import FormatError, InputError
from ..types import Facts
from .sections import Section
from .strings import StringColumn, encode

Sections = Mapping[str, Section]


def fact_arrays(facts: Facts, num_passages: int, num_entities: int) -> dict[str, NDArray[Any]]:
    """The sections of facts over so many passages and entities, in file order."""
    if not isinstance(facts, Facts):
        raise InputError(f"facts are a {type(facts).__name__}; give Facts: Facts.from_names(rows, entities, passages)")
    if (facts.num_passages, facts.num_entities) != (num_passages, num_entities):
        raise InputError(
            f"the facts are over {facts.num_passages} passages and {facts.num_entities} entities, the index has "
            f"{num_passages} and {num_entities}; number them as the index does"
        )
    offsets, data = encode(facts.relations, "fact.relation")
    return {
        "fact.relation.offsets": offsets,
        "fact.relation.bytes": data,
        "fact.row": facts.rows,
        "fact.indptr": facts.indptr,
        "fact.passage": facts.passages,
    }


def load_facts(sections: Sections, num_passages: int, num_entities: int) -> Facts | None:
    """The facts, after a check of everything that a reader relies on; None where there are none."""
    if "fact.indptr" not in sections:
        return None
    try:
        return Facts(
            sections["fact.row"].whole(),
            list(_relations(sections)),
            sections["fact.indptr"].whole(),
            sections["fact.passage"].whole(),
            num_entities=num_entities,
            num_passages=num_passages,
        )
    except InputError as error:
        raise FormatError(f"{sections['fact.indptr'].label}: {error}") from None


def check_facts(sections: Sections) -> None:
    """Verify every string of the part, and its offsets as a whole."""
    if "fact.indptr" in sections:
        _relations(sections).check()


def facts_info(sections: Sections) -> dict[str, int] | None:
    """What ``Index.info`` says about the part."""
    if "fact.indptr" not in sections:
        return None
    return {
        "facts": sections["fact.row"].shape[0],
        "relations": len(_relations(sections)),
        "statements": sections["fact.passage"].shape[0],
    }


def _relations(sections: Sections) -> StringColumn:
    return StringColumn(sections["fact.relation.offsets"], sections["fact.relation.bytes"])
