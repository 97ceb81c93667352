"""Drawn histories of changes, refreshes and compactions against an index that is built of the rows anew.

``.ci/soak`` draws more and longer ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
import variants
from hopfuse.recipes import RECIPES
from tiers import FULL

pytest.importorskip("bm25s", reason="the model's lexical part is BM25's (extra text)")

from index import histories, operations
from index.histories import answers_of, compare_recipe, questions, run_histories, searcher
from index.live_model import Model, random_change
from index.operations import run_operations


def test_a_snapshot_is_the_index_of_its_rows() -> None:
    run_histories(8 if FULL else 3, 10)


def test_a_long_history_with_writers_that_are_killed(tmp_path: Path) -> None:
    assert run_operations(tmp_path / "index", 0, 1_000 if FULL else 60, life=30) > 1


def test_a_change_that_the_index_lacks_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(model: Model, rng: np.random.Generator, change: Any, serial: list[int], **options: Any) -> None:
        random_change(model, rng, operations.NoChange() if serial[0] > 20 else change, serial, **options)

    monkeypatch.setattr(operations, "random_change", lost)
    with pytest.raises(AssertionError):
        run_operations(tmp_path / "index", 0, 60, life=30)
    monkeypatch.setattr(histories, "random_change", lost)
    history = histories.History()
    for seed in range(9):
        history.change(seed)
    for compared in (history.read, history.read_late, history.teardown):
        with pytest.raises(AssertionError):
            compared()
    assert not Path(history.folder).exists()


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_recipe_answers_as_over_an_index_that_is_built_anew(name: str) -> None:
    compare_recipe(name, seed=0)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_recipe_follows_an_index_on_the_emulator_as_one_that_is_built_anew_on_the_cpu(
    name: str, seed: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device's copies of what was searched before are those of that snapshot alone."""
    reason = variants.missing(variants.SIMT)
    if reason is not None:
        pytest.skip(reason)
    runtime = variants.simt_runtime()
    runtime.launches.clear()
    rng, model, serial, hits = np.random.default_rng(seed), Model(), [0], 0
    model.rebuilt().save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        recipe = live.follow(lambda index: searcher(name, index))
        for step in range(8):
            for _ in range(3 if step == 0 else 1):
                with live.change() as change:
                    random_change(model, rng, change, serial, joined=name != "policy-rag")
            if step == 4:
                live.compact()
            monkeypatch.delenv("HOPFUSE_BACKEND", raising=False)
            own = searcher(name, model.rebuilt())
            asked = questions(model, own.needs.entities)
            expected = own.search(**asked)
            monkeypatch.setenv("HOPFUSE_BACKEND", variants.SIMT)
            found = recipe.search(**asked, at_least=change.seq)
            assert answers_of(found) == answers_of(expected)
            hits += sum(map(len, found))
    assert hits > 0
    assert runtime.launches
