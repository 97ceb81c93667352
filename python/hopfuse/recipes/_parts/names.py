"""Nodes and passages of an index as plain data."""

from __future__ import annotations

from typing import Any

from ...index import Index


def named_node(index: Index, node: int) -> dict[str, Any]:
    """Return a node as plain data: its kind, its number within the kind, and its name."""
    first = index.num_passages
    if node < first:
        return {"kind": "passage", "number": node, "name": index.titles[node] or str(index.passage_ids[node])}
    return {"kind": "entity", "number": node - first, "name": index.entity_names[node - first]}


def named_passage(index: Index, passage: int) -> dict[str, Any]:
    """Return a passage as plain data."""
    return {"passage": passage, "id": index.passage_ids[passage], "title": index.titles[passage]}
