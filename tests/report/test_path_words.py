"""Paths in words: a fact's direction, the name of an edge without facts, the passages that state it."""

from __future__ import annotations

from typing import Any

import pytest
from hopfuse.report import arrow, fact_words, path_words


def entity(name: str, edge: str | None = None, **more: Any) -> dict[str, Any]:
    return {"kind": "entity", "number": 1, "name": name, "edge": edge, "strength": 0.5, **more}


def fact(number: int, forward: bool, *titles: str) -> dict[str, Any]:
    passages = [{"passage": at, "id": f"p{at}", "title": title} for at, title in enumerate(titles)]
    ends = {"head": "Ada", "tail": "London"} if forward else {"head": "London", "tail": "Ada"}
    return {
        "fact": number,
        **ends,
        "relation": "born in",
        "forward": forward,
        "passages": passages,
        "num_passages": len(passages),
    }


def relation(families: list[str], *facts: dict[str, Any], walked: bool = True) -> dict[str, Any]:
    return entity("London", "relation", families=families, walked=walked, facts=list(facts))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (relation(["birth"], fact(1, True), fact(2, False)), "—born in→"),
        (relation(["birth"], fact(2, False)), "←born in—"),
        (relation(["birth", "death"], fact(2, False)), "←born in—"),
        (relation(["birth", "death"]), "—birth, death→"),
        (relation(["death"], fact(1, True), walked=False), "—death→"),
        (relation(["death"], walked=False), "—death→"),
        (entity("Ada King", "synonym", alias="Ada King"), "—synonym→"),
        (entity("Ada King", "synonym", alias="Countess"), "—synonym “Countess”→"),
        (entity("Ada", "context", passage={}), "—mentions→"),
        ({**entity("Notes", "context", passage={}), "kind": "passage"}, "—in→"),
    ],
)
def test_arrows(step, message) -> None:
    assert arrow(step) == message


def test_a_path_ends_in_the_hit() -> None:
    notes = {**entity("Notes", "context", passage={}), "kind": "passage", "number": 7}
    path = [entity("Ada"), notes, entity("Engine", "context", passage={})]
    assert path_words(path, 3) == "Ada —in→ passage “Notes” —mentions→ Engine —in→ this"
    assert path_words(path[:2], 7) == "Ada —in→ passage “Notes”"
    assert path_words(path[:2], 3) == "Ada —in→ passage “Notes” —in→ this"


def test_facts_name_the_passages_that_state_them() -> None:
    titles = ["Ada", "", "London", "Byron", "Lords"]
    facts = [fact(4, False, *titles), fact(9, True, "Notes")]
    path = [entity("Ada"), relation(["birth"], *facts)]
    assert fact_words(path) == [
        "Ada and London by birth",
        "London —born in→ Ada, fact 4, stated in Ada, p1, London and 2 more",
        "Ada —born in→ London, fact 9, stated in Notes",
    ]
    assert fact_words([entity("Ada"), relation(["birth"]), entity("X", "synonym", alias="X")]) == [
        "Ada and London by birth, no fact"
    ]
    assert fact_words([entity("Ada")]) == []


def test_passages_that_are_not_listed_are_counted() -> None:
    stated = {**fact(4, False, "Ada", "London", "Notes", "Byron", "Lords"), "num_passages": 4000}
    assert fact_words([entity("Ada"), relation(["birth"], stated)])[1].endswith("in Ada, London, Notes and 3997 more")
    few = {**fact(4, False, "Ada", "London", "Notes")}
    assert fact_words([entity("Ada"), relation(["birth"], few)])[1].endswith("stated in Ada, London, Notes")


def test_families_are_of_the_step_and_not_of_its_facts() -> None:
    lines = fact_words([entity("Ada"), relation(["award", "birth"], fact(4, False, "A"), fact(9, True, "B"))])
    assert lines[0] == "Ada and London by award, birth"
    assert len(lines) == 3
    assert not any("award" in line for line in lines[1:])
