"""Histories of changes, refreshes, compactions and reopenings against an index that is built of the rows anew."""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
import variants
from hopfuse.lexical import BM25
from hopfuse.recipes import RECIPES
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from index.live_model import DIM, WORDS, Model, differences, random_change, vector

pytest.importorskip("bm25s", reason="the model's lexical part is BM25's (extra lexical)")

SEEDS = st.integers(0, 2**32 - 1)


class History(RuleBasedStateMachine):
    """One writer, a reader of another process's kind, and the rows in plain Python."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.model, self.serial, self.seq = Model(), [0], 0
        self.model.rebuilt().save(self.folder)
        self.live = hf.Index.open(self.folder, writable=True)
        self.reader = hf.Index.open(self.folder, live=True)

    @initialize(seed=SEEDS)
    def first(self, seed: int) -> None:
        for step in range(3):
            self.change(seed + step)

    @rule(seed=SEEDS)
    def change(self, seed: int) -> None:
        before = self.seq
        with self.live.change() as change:
            random_change(self.model, np.random.default_rng(seed), change, self.serial)
        assert change.seq in (before, before + 1)  # a change of nothing is no batch
        self.seq = change.seq

    @rule(seed=SEEDS)
    def abandon(self, seed: int) -> None:
        change = self.live.change()
        random_change(Model(passages=dict(self.model.passages)), np.random.default_rng(seed), change, [10**6])
        change.__exit__(RuntimeError, RuntimeError(), None)
        assert change.seq is None

    @rule()
    def compact(self) -> None:
        self.live.compact()

    @rule()
    def reopen(self) -> None:
        self.live.close()
        self.live = hf.Index.open(self.folder, writable=True)

    @invariant()
    def the_reader_sees_the_rows(self) -> None:
        index = self.reader.refresh()
        assert index.seq == self.seq
        assert differences(index, self.model.rebuilt()) == []

    def teardown(self) -> None:
        rebuilt = self.model.rebuilt()
        assert differences(self.live.refresh(), rebuilt) == []
        assert differences(hf.Index.open(self.folder, verify="full"), rebuilt) == []
        self.live.close()
        shutil.rmtree(self.folder)


@pytest.mark.parametrize(
    ("examples", "steps"), [(8, 10), pytest.param(500, 40, marks=pytest.mark.full)], ids=["short", "long"]
)
def test_a_snapshot_is_the_index_of_its_rows(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        History, settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    )


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 40))])
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_recipe_answers_as_over_an_index_that_is_built_anew(name: str, seed: int) -> None:
    rng, model, serial = np.random.default_rng(seed), Model(), [0]
    with tempfile.TemporaryDirectory() as folder:
        model.rebuilt().save(folder)
        with hf.Index.open(folder, writable=True) as live:
            recipe = live.follow(lambda index: searcher(name, index))
            for step in range(12):
                with live.change() as change:
                    random_change(model, rng, change, serial, joined=name != "policy-rag")
                if step == 6:
                    live.compact()
            asked = questions(model)
            if name == "triple-hybrid":
                del asked["entities"]  # it finds entities by their vectors
            found = recipe.search(**asked, at_least=change.seq)
            expected = searcher(name, model.rebuilt()).search(**asked)
    assert found.seq == change.seq
    assert answers(found) == answers(expected)
    assert sum(map(len, found)) > 0


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
    launches = variants.simt_runtime().launches
    launches.clear()
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
            asked = questions(model)
            if name == "triple-hybrid":
                del asked["entities"]
            monkeypatch.delenv("HOPFUSE_BACKEND", raising=False)
            expected = searcher(name, model.rebuilt()).search(**asked)
            monkeypatch.setenv("HOPFUSE_BACKEND", variants.SIMT)
            found = recipe.search(**asked, at_least=change.seq)
            assert answers(found) == answers(expected)
            hits += sum(map(len, found))
    assert hits > 0
    assert launches


def answers(found: Any) -> Any:
    """Everything that a search says of its hits, and its traces."""
    hits = [[(hit.id, hit.row, hit.score, hit.title, hit.text) for hit in one] for one in found]
    return hits, found.traces


def searcher(name: str, index: hf.Index) -> Any:
    lexical = {"lexical": BM25(index.lexical)} if name in ("hybrid-rrf", "triple-hybrid") else {}
    return RECIPES[name](index, **lexical)


def questions(model: Model) -> dict[str, Any]:
    names = [name for name, is_word in model.entities.items() if not is_word]
    return {
        "queries": [" ".join(WORDS[:3]), WORDS[4], f"{WORDS[5]} {WORDS[5]}"],
        "vectors": np.stack([vector(seed) for seed in (3, 8, 12)]).reshape(3, DIM),
        "entities": [names[:1], names[1:3], names[:3]],
        "k": 5,
        "trace": True,
    }
