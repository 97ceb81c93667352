"""Drawn histories of a live index, compared with an index that is built anew of the same rows."""

from __future__ import annotations

import shutil
import sys
import tempfile
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.lexical import BM25
from hopfuse.recipes import RECIPES
from hypothesis import seed as seeded
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from index.live_model import DIM, WORDS, Model, differences, parts_that_differ, random_change, vector

SEEDS = st.integers(0, 2**32 - 1)


class History(RuleBasedStateMachine):
    """One writer, readers of another process's kind, and the rows in plain Python.

    One reader follows each change, the other only when it is compared. What they see is compared with an index that is
    built anew at drawn steps, since that takes longer than all the rest, and at the end: a difference stays.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.model, self.serial, self.seq = Model(), [0], 0
        self.model.rebuilt().save(self.folder)
        self.live = hf.Index.open(self.folder, writable=True)
        self.reader, self.late = (hf.Index.open(self.folder, live=True) for _ in range(2))

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

    @rule(seed=SEEDS)
    def change_often(self, seed: int) -> None:
        """Read each of some changes in the writer alone, which continues its own snapshots."""
        for step in range(3):
            self.change(seed + step)
            self.live.refresh()

    @rule()
    def read(self) -> None:
        rebuilt, index = self.model.rebuilt(), self.reader.index
        self.compare(index, rebuilt)
        assert differences(index, hf.Index.open(self.folder), statements=True) == []  # merged at once

    @rule()
    def read_late(self) -> None:
        self.compare(self.late.refresh(), self.model.rebuilt())

    def compare(self, index: hf.Index, rebuilt: hf.Index) -> None:
        assert differences(index, rebuilt) == []
        assert parts_that_differ(index, rebuilt) == []

    @rule()
    def compact(self) -> None:
        self.live.compact()

    @rule()
    def reopen(self) -> None:
        self.live.close()
        self.live = hf.Index.open(self.folder, writable=True)

    @invariant()
    def the_reader_follows(self) -> None:
        index = self.reader.refresh()
        assert index.seq == self.seq
        assert list(index.passage_ids) == list(self.model.passages)

    def teardown(self) -> None:
        try:
            if sys.exception() is not None:  # a step failed or was interrupted
                return
            rebuilt, opened = self.model.rebuilt(), hf.Index.open(self.folder, verify="full")
            for index in (self.live.refresh(), self.reader.refresh(), self.late.refresh()):
                self.compare(index, rebuilt)
                assert differences(index, opened, statements=True) == []
        finally:
            self.live.close()
            shutil.rmtree(self.folder)


def run_histories(examples: int, steps: int, seed: int | None = None) -> None:
    """Draw so many histories of so many steps; a seed draws the same ones each time, and new ones are drawn without."""
    machine = type("Drawn", (History,), {})
    chosen = settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    if seed is not None:
        machine, chosen = seeded(seed)(machine), settings(chosen, database=None)
    run_state_machine_as_test(machine, settings=chosen)


def compare_recipe(name: str, seed: int) -> None:
    """Search by a recipe that followed twelve changes, and by one over an index that is built anew."""
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
            own = searcher(name, model.rebuilt())
            asked = questions(model, own.needs.entities)
            found = recipe.search(**asked, at_least=change.seq)
            expected = own.search(**asked)
    assert found.seq == change.seq
    assert answers_of(found) == answers_of(expected)
    assert sum(map(len, found)) > 0


def answers_of(found: Any) -> Any:
    """Everything that a search says of its hits, and its traces."""
    hits = [[(hit.id, hit.row, hit.score, hit.title, hit.text) for hit in one] for one in found]
    return hits, found.traces


def searcher(name: str, index: hf.Index) -> Any:
    words = name in ("hybrid-rrf", "plain-hybrid", "triple-hybrid")
    return RECIPES[name](index, **({"lexical": BM25(index.lexical)} if words else {}))


def questions(model: Model, named: bool) -> dict[str, Any]:
    names = [name for name, is_word in model.entities.items() if not is_word]
    return {
        "queries": [" ".join(WORDS[:3]), WORDS[4], f"{WORDS[5]} {WORDS[5]}"],
        "vectors": np.stack([vector(seed) for seed in (3, 8, 12)]).reshape(3, DIM),
        **({"entities": [names[:1], names[1:3], names[:3]]} if named else {}),
        "k": 5,
        "trace": True,
    }
