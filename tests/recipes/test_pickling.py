"""Recipes go to other processes, used or not, with their index: whole, or by directory and generation."""

from __future__ import annotations

import pickle
from pathlib import Path

import hopfuse as hf
import numpy as np
import pytest
from golden.make import MENTIONS, QUESTIONS, world
from hopfuse.recipes import RECIPES


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_a_used_recipe_pickles(tmp_path: Path, name: str) -> None:
    index, encoder = world()
    index.save(tmp_path)
    for one in (index, hf.Index.open(tmp_path)):
        recipe = RECIPES[name](one, encoder=encoder)
        assert repr(recipe) == f"{type(recipe).__name__}({one!r})"
        options = {"entities": MENTIONS} if recipe.needs.entities else {}
        before = recipe.search(QUESTIONS, k=3, **options)
        again = pickle.loads(pickle.dumps(recipe)).search(QUESTIONS, k=3, **options)
        assert np.array_equal(before.hits.ids, again.hits.ids)
        assert np.array_equal(before.hits.scores, again.hits.scores)
