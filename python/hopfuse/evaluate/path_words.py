"""A path of a PolicyRAG trace in words: its arrows, and the facts that they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

#: As many of a fact's passages are named.
NAMED_PASSAGES = 3


def arrow(step: Mapping[str, Any]) -> str:
    """How a path goes on to a step: by the fact that most passages state, from head to tail, or the type of the edge.

    An index does not keep which family a fact is of. So where there is no fact, or the walk leaves out an edge between
    the two, a relation is called by the families that the walk takes.

    Parameters
    ----------
    step : mapping
        Of one of the ``paths`` of a hit; not the first.

    Examples
    --------
    >>> fact = {"relation": "directed", "forward": False}
    >>> step = {"kind": "entity", "edge": "relation", "families": ["creation"], "walked": True, "facts": [fact]}
    >>> arrow(step)
    '←directed—'
    >>> arrow({**step, "walked": False})
    '—creation→'
    >>> arrow({"kind": "entity", "name": "Ada King", "edge": "synonym", "alias": "Ada"})
    '—synonym “Ada”→'
    >>> arrow({"kind": "passage", "edge": "context"})
    '—in→'
    """
    if step.get("facts") and step["walked"]:
        said = step["facts"][0]["relation"]
        return f"—{said}→" if step["facts"][0]["forward"] else f"←{said}—"
    if step["edge"] == "synonym" and step["alias"] != step["name"]:
        return f"—synonym “{step['alias']}”→"
    mention = "in" if step["kind"] == "passage" else "mentions"
    said = mention if step["edge"] == "context" else ", ".join(step.get("families", ())) or step["edge"]
    return f"—{said}→"


def path_words(path: Sequence[Mapping[str, Any]], passage: int) -> str:
    """A path from its seed to the hit, on one line.

    Parameters
    ----------
    path : sequence of mapping
        One of the ``paths`` of a hit.
    passage : int
        The hit's.

    Examples
    --------
    >>> ada = {"kind": "entity", "number": 4, "name": "Ada", "edge": None, "strength": 1.0}
    >>> notes = {"kind": "passage", "number": 0, "name": "Notes", "edge": "context", "strength": 0.25}
    >>> path_words([ada], 0)
    'Ada —in→ this'
    >>> path_words([ada, notes], 0)
    'Ada —in→ passage “Notes”'
    """
    words = [_node(path[0])]
    for step in path[1:]:
        words += [arrow(step), _node(step)]
    there = (path[-1]["kind"], path[-1]["number"]) == ("passage", passage)
    return " ".join(words if there else [*words, "—in→ this"])


def fact_words(path: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the relations of a path rest on: the families of each step, then its facts with number and who states them.

    The families are those that the walk takes between the two, not those of one fact. A step without a fact says so.

    Parameters
    ----------
    path : sequence of mapping
        One of the ``paths`` of a hit.

    Examples
    --------
    >>> fact = {"fact": 7, "head": "Scott", "relation": "directed", "tail": "Alien", "forward": False}
    >>> fact |= {"passages": [{"passage": 0, "id": "a", "title": "Alien"}], "num_passages": 1}
    >>> step = {"kind": "entity", "name": "Scott", "edge": "relation", "families": ["creation"], "facts": [fact]}
    >>> fact_words([{"kind": "entity", "name": "Alien", "edge": None}, step])
    ['Alien and Scott by creation', 'Scott —directed→ Alien, fact 7, stated in Alien']
    >>> fact_words([{"name": "Alien", "edge": None}, {**step, "facts": []}])
    ['Alien and Scott by creation, no fact']
    """
    lines = []
    for before, step in pairwise(path):
        if step["edge"] != "relation":
            continue
        ends = f"{before['name']} and {step['name']} by {', '.join(step['families'])}"
        lines += [ends, *map(_fact, step["facts"])] if step["facts"] else [f"{ends}, no fact"]
    return lines


def _fact(fact: Mapping[str, Any]) -> str:
    titles = [one["title"] or one["id"] for one in fact["passages"][:NAMED_PASSAGES]]
    more = fact["num_passages"] - len(titles)
    stated = ", ".join(titles) + (f" and {more} more" if more else "")
    return f"{fact['head']} —{fact['relation']}→ {fact['tail']}, fact {fact['fact']}, stated in {stated}"


def _node(step: Mapping[str, Any]) -> str:
    return f"passage “{step['name']}”" if step["kind"] == "passage" else str(step["name"])
