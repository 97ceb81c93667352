"""Facts from what a user has: made already, or a table of statements."""

from __future__ import annotations

from typing import Any

from ..errors import InputError
from ..types import Facts
from ..types.fact_rows import merged, numbered
from . import columns
from .readers import read_table
from .tables import Spec, Table

STATEMENTS = Spec(
    "facts", ("head", "relation", "tail", "passage"), (), ("head", "relation", "tail", "passage"), others=False
)
ENDS = ("name", "node")
"""What heads and tails of a table are."""


def given_facts(facts: Any, ends: str, names: list[str], num_passages: int) -> Facts | None:
    """The facts themselves, or those of a table whose ends are names of entities, or nodes of the graph."""
    if facts is None or isinstance(facts, Facts):
        if ends != "name":
            raise InputError(
                f"fact_ends is {ends!r}, which says what a table's heads and tails are; facts are no table"
            )
        return facts
    table = read_table(facts, STATEMENTS)
    passages = columns.integers(table, "passage", num_passages).tolist()
    relations = columns.texts(table, "relation")
    if ends == "node":
        heads, tails = (_entities(table, name, num_passages, len(names)) for name in ("head", "tail"))
        made = merged(zip(heads, relations, tails, passages, strict=True))
    else:
        written = zip(columns.texts(table, "head"), relations, columns.texts(table, "tail"), passages, strict=True)
        made = merged(numbered(written, names, table.where))
    return Facts(*made, num_entities=len(names), num_passages=num_passages)


def check_ends(ends: str) -> None:
    """Refuse the option before anything large is read."""
    if ends not in ENDS:
        raise InputError(f"fact_ends is {ends!r}; allowed: {', '.join(ENDS)}")


def _entities(table: Table, name: str, num_passages: int, num_entities: int) -> list[int]:
    nodes = columns.integers(table, name, num_passages + num_entities).tolist()
    for at, node in enumerate(nodes):
        if node < num_passages:
            allowed = f"{num_passages} .. {num_passages + num_entities - 1}"
            raise InputError(f"{table.where(at)} has {name} = {node}, a passage; it must be an entity's node {allowed}")
    return [node - num_passages for node in nodes]
