"""Every door answers as ``hopfuse.Retriever`` does.

Tests mirror the rooms of the package, and this folder is about all of them: each door is asked each question of
``doors/shapes.py`` over an index of each shape, by each recipe, and must give the ids, scores and notes of the
retriever, or an error of the same class, code and field. The conversions that a door makes stand in ``doors/doors.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import hopfuse as hf
import pytest
from doors.answers import Answer, Refusal, difference
from doors.doors import DOORS, OF_BATCH, Door, House
from doors.shapes import QUESTIONS, SHAPES, Question
from hopfuse.errors import HopfuseError
from hopfuse.recipes import RECIPES

#: The shapes that a slow door is asked over.
FEW = ("all", "live")
#: The shapes that a door is asked over by every recipe in the quick tier: all run over one, and few over the other.
BY_RECIPE = ("all", "texts")


def cells() -> Iterator[Any]:
    """Yield door, shape and recipe; what the quick tier leaves out is marked."""
    for name, door in DOORS.items():
        for shape in SHAPES:
            for recipe in (None, *RECIPES):
                if door.few and (recipe is not None or shape not in FEW):
                    continue
                quick = door.tier == "quick" and (recipe is None or (door.quick and shape in BY_RECIPE))
                marks = [] if quick else [pytest.mark.full]
                yield pytest.param(name, shape, recipe, id=f"{name}-{shape}-{recipe or 'default'}", marks=marks)


@cache
def expected(path: str, recipe: str | None) -> Mapping[str, Answer | Refusal] | Refusal:
    """Return the retriever's answer to each question, which it is asked alone; or the error that it cannot be made."""
    try:
        retriever = hf.Retriever(hf.Index.open(path), recipe)
    except HopfuseError as error:
        return Refusal.of(error, OF_BATCH)
    return {question.name: _alone(retriever, question) for question in QUESTIONS}


def _alone(retriever: hf.Retriever, one: Question) -> Answer | Refusal:
    try:
        found = retriever.search(
            one.text,
            vectors=None if one.vector is None else [one.vector],
            entities=None if one.entities is None else [one.entities],
            allow=None if one.allow is None else hf.where(**one.allow),
            k=one.k,
        )
    except HopfuseError as error:
        return Refusal.of(error, OF_BATCH)
    return Answer.of(found[0], found.notes[0])


def asked(
    door: Door, house: House, shape: str, recipe: str | None, questions: Sequence[Question]
) -> list[Answer | Refusal]:
    """Return a door's answers to questions of one k, or the error that it gives for all of them."""
    try:
        return list(door.ask(house, shape, recipe, questions))
    except Refusal as refusal:
        return [refusal] * len(questions)


@pytest.mark.parametrize(("name", "shape", "recipe"), list(cells()))
def test_the_same_answer(
    request: pytest.FixtureRequest, house: House, name: str, shape: str, recipe: str | None
) -> None:
    door, truth = DOORS[name], expected(house.path(shape), recipe)
    if door.missing:
        pytest.skip(f"{name} needs {', '.join(door.missing)}")
    if door.through is not None:
        fixture = door.through if door.named or recipe is None else "url_by_recipes"
        house = replace(house, **{door.through: request.getfixturevalue(fixture)})
    questions = [one for one in QUESTIONS if door.takes(one)]
    if isinstance(truth, Refusal):
        if not door.named:
            pytest.skip("a server does not start with a recipe that an index cannot run")
        (got,) = asked(door, house, shape, recipe, questions[:1])
        assert got == door.shown(truth)
        return
    groups: dict[Any, list[Question]] = {}
    for one in questions:  # those that are answered are asked at once, each refused one alone
        groups.setdefault(one.k if isinstance(truth[one.name], Answer) else one, []).append(one)
    differences = []
    for group in groups.values():
        answers = asked(door, house, shape, recipe, group)
        if len(group) > 1 and isinstance(answers[0], Refusal):
            answers = [one for question in group for one in asked(door, house, shape, recipe, [question])]
        pairs = zip(group, answers, strict=True)
        differences += [difference(one.name, door.shown(truth[one.name]), got) for one, got in pairs]
    if any(differences):
        pytest.fail("\n".join(filter(None, differences)), pytrace=False)
