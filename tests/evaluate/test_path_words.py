"""Paths in words: which way a fact goes, what an edge is called without one, who states it."""

from __future__ import annotations

from typing import Any

import pytest
from hopfuse.evaluate.path_words import NAMED_PASSAGES, arrow, fact_words, path_words


def entity(name: str, edge: str | None = None, **more: Any) -> dict[str, Any]:
    return {"kind": "entity", "number": 1, "name": name, "edge": edge, "strength": 0.5, **more}


def fact(number: int, forward: bool, *titles: str) -> dict[str, Any]:
    passages = [{"passage": at, "id": f"p{at}", "title": title} for at, title in enumerate(titles)]
    ends = {"head": "Ada", "tail": "London"} if forward else {"head": "London", "tail": "Ada"}
    return {"fact": number, **ends, "relation": "born in", "forward": forward, "passages": passages}


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (entity("London", "relation", families=["birth"], facts=[fact(1, True), fact(2, False)]), "—born in→"),
        (entity("London", "relation", families=["birth"], facts=[fact(2, False)]), "←born in—"),
        (entity("London", "relation", families=["birth", "death"], facts=[]), "—birth, death→"),
        (entity("Ada King", "synonym", alias="Ada King"), "—synonym→"),
        (entity("Ada King", "synonym", alias="Countess"), "—synonym “Countess”→"),
        (entity("Ada", "context", passage={}), "—mentions→"),
        ({**entity("Notes", "context", passage={}), "kind": "passage"}, "—in→"),
    ],
)
def test_arrows(step, said) -> None:
    assert arrow(step) == said


def test_a_path_ends_in_the_hit() -> None:
    notes = {**entity("Notes", "context", passage={}), "kind": "passage", "number": 7}
    path = [entity("Ada"), notes, entity("Engine", "context", passage={})]
    assert path_words(path, 3) == "Ada —in→ passage “Notes” —mentions→ Engine —in→ this"
    assert path_words(path[:2], 7) == "Ada —in→ passage “Notes”"
    assert path_words(path[:2], 3) == "Ada —in→ passage “Notes” —in→ this"


def test_facts_name_who_states_them() -> None:
    titles = ["Ada", "", "London", "Byron", "Lords"]
    facts = [fact(4, False, *titles), fact(9, True, "Notes")]
    path = [entity("Ada"), entity("London", "relation", families=["birth"], facts=facts)]
    assert NAMED_PASSAGES == 3
    assert fact_words(path) == [
        "birth: London —born in→ Ada, fact 4, stated in Ada, p1, London and 2 more",
        "birth: Ada —born in→ London, fact 9, stated in Notes",
    ]
    bare = [
        entity("Ada"),
        entity("London", "relation", families=["birth"], facts=[]),
        entity("X", "synonym", alias="X"),
    ]
    assert fact_words(bare) == ["birth: Ada and London, no fact"]
    assert fact_words([entity("Ada")]) == []
