"""A long history of one index: a writer that is killed, three readers, and the rows in plain Python."""

from __future__ import annotations

import os
import signal
import traceback
from contextlib import closing
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from index.histories import answers_of
from index.live_model import DIM, WORDS, Model, differences, random_change, vector

#: Operations between two comparisons with an index that is built anew.
COMPARED = 200
#: A reader reads the log after so many operations.
READERS = (3, 7, 61)
#: The writer's retriever searches after so many operations, and so makes what it searches by from what it made before.
SEARCHED = 3


class NoChange:
    """Takes a change and makes none, so that the rows alone follow it."""

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **named: None


class Rows:
    """The rows after some operations; each operation is drawn from its number, so that two processes agree on it."""

    def __init__(self, seed: int) -> None:
        self.model, self.done, self._serial, self._seed = Model(), 0, [0], seed

    def apply(self, change: Any) -> None:
        """Draw the next operation, for the rows and for a change."""
        random_change(self.model, self.draw(), change, self._serial)
        self.done += 1

    def draw(self, of: int = 0) -> np.random.Generator:
        return np.random.default_rng((self._seed, self.done, of))

    def is_compared(self) -> bool:
        return self.done % COMPARED == 0


def run_operations(folder: Path, seed: int, count: int, life: int = 300) -> int:
    """Make so many operations by writers that are killed after at most ``life`` each; return how many were killed."""
    rows, kills = Rows(seed), 0
    rows.model.rebuilt().save(folder)
    warm_up()
    readers = [hf.Index.open(folder, live=True) for _ in READERS]
    while rows.done < count:
        with closing(Writer(folder, rows)) as writer:
            for _ in range(int(rows.draw(1).integers(1, life))):
                seq = writer.next()
                rows.apply(NoChange())
                for reader, every in zip(readers, READERS, strict=True):
                    if rows.done % every == 0:
                        assert reader.refresh().seq == seq
                if rows.is_compared():
                    compare(rows.model.rebuilt(), readers[0].refresh())
                if rows.done == count:
                    break
            before = readers[0].refresh().seq
            writer.kill(rows.draw(2))
        if hf.Index.open(folder).seq > before:  # the operation that was under way reached the disk
            rows.apply(NoChange())
        kills += 1
        opened = hf.Index.open(folder, verify="full")
        compare(rows.model.rebuilt(), opened, *(reader.refresh() for reader in readers))
    return kills


class Writer:
    """A process that makes an operation whenever it is told to."""

    def __init__(self, folder: Path, rows: Rows) -> None:
        orders, self._tell = os.pipe()
        self._hear, answers = os.pipe()
        self._is_closed, self._child = False, os.fork()
        if not self._child:
            try:
                os.close(self._tell)  # so that the orders end with the process that gives them
                _write(folder, rows, orders, answers)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(orders)
        os.close(answers)

    def next(self) -> int:
        """Make an operation, and return the seq after it."""
        os.write(self._tell, b".")
        answer = os.read(self._hear, 8)
        assert answer, "the writer failed"
        return int.from_bytes(answer, "little")

    def kill(self, rng: np.random.Generator) -> None:
        """Kill it somewhere in a next operation."""
        os.write(self._tell, b".")
        for _ in range(int(rng.integers(0, 40_000))):
            pass
        self.close()

    def close(self) -> None:
        """Kill it, if it was not killed before."""
        if not self._is_closed:
            self._is_closed = True
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
            os.close(self._tell)
            os.close(self._hear)


def _write(folder: Path, rows: Rows, orders: int, answers: int) -> None:
    with hf.Index.open(folder, writable=True) as live:
        retriever = hf.Retriever(live, encoder="none")
        while os.read(orders, 1):
            if rows.draw(3).random() < 0.02:
                live.compact()
            with live.change() as change:
                rows.apply(change)
            if rows.is_compared():
                rebuilt = rows.model.rebuilt()
                compare(rebuilt, retriever.index)
                compare_answers(retriever, rows.model, rebuilt)
            elif rows.done % SEARCHED == 0:
                retriever.search(**_questions(rows.model) | {"trace": False})
            os.write(answers, retriever.index.seq.to_bytes(8, "little"))


def warm_up() -> None:
    """Search once in this process, so that each writer finds the modules and patterns that a search needs."""
    model = Model()
    random_change(model, np.random.default_rng(0), NoChange(), [0])
    hf.Retriever(model.rebuilt(), encoder="none").search(**_questions(model))


def compare(rebuilt: hf.Index, *indexes: hf.Index) -> None:
    """Compare every array of some indexes with those of an index that is built anew."""
    for index in indexes:
        assert differences(index, rebuilt) == []


def compare_answers(retriever: hf.Retriever, model: Model, rebuilt: hf.Index) -> None:
    """Compare answers and traces with those over an index that is built anew."""
    expected = hf.Retriever(rebuilt, encoder="none")
    for allow in (None, hf.where(year__ge=2002)) if "year" in model.columns else (None,):
        asked = {**_questions(model), "allow": allow, "allow_scope": "results"}
        assert answers_of(retriever.search(**asked)) == answers_of(expected.search(**asked))


def _questions(model: Model) -> dict[str, Any]:
    """Return questions by words, by names and by words of the graph."""
    names = list(model.entities)
    return {
        "questions": [" ".join(WORDS[:3]), f"Who knows {' and '.join(names[:2])}?", " ".join(names[-3:]) or WORDS[0]],
        "vectors": np.stack([vector(seed) for seed in (3, 8, 12)]).reshape(3, DIM),
        "k": 5,
        "trace": True,
    }
