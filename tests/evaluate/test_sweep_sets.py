"""Options chosen on several sets: the smallest worst loss, test halves read once, and the errors."""

from __future__ import annotations

import io
import json
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.evaluate import JudgedSet, Qrels, compare, holm, split_rows, sweep_sets
from hopfuse.report import sets_tables
from refusals import refused

SIZES = {"news": 120, "films": 80, "notes": 100}
#: Right answers in 20 by set and value of the option: no value is the best of two sets.
RIGHT = {"news": [18, 12, 16, 15], "films": [4, 14, 10, 9], "notes": [7, 9, 12, 13]}
GRID = {"way": [0, 1, 2, 3]}


class System:
    """A system that answers a share of the questions correctly, and records its calls."""

    def __init__(self, name: str) -> None:
        self.right, self.size = RIGHT[name], SIZES[name]
        ids = [f"{name} {i}" for i in range(self.size)]
        self.qrels = Qrels(ids, [[i] for i in range(self.size)])
        self.asked: list[tuple[int, list[int]]] = []

    def __call__(self, options: Any, rows: Any) -> hf.Hits:
        self.asked.append((options["way"], rows.tolist()))
        place = np.argsort(np.argsort(rows))  # of so many rows, the same share is right on either half
        found = np.where(place % 20 < self.right[options["way"]], rows, rows + 1000)
        return hf.Hits(found[:, None], np.ones((rows.size, 1)))


@pytest.fixture
def systems() -> dict[str, System]:
    return {name: System(name) for name in SIZES}


def swept(systems: dict[str, System], **change: Any) -> Any:
    sets = {name: JudgedSet(system, system.qrels) for name, system in systems.items()}
    arguments = {"grid": GRID, "baseline": {"way": 0}, "metric": "hit@1", **change}
    return sweep_sets(sets, arguments.pop("grid"), **arguments)


def tune_means(system: System) -> list[float]:
    rows = split_rows(system.qrels, "tune")
    return [float(np.mean(np.arange(rows.size) % 20 < right)) for right in system.right]


def test_chosen_is_the_least_worst_loss(systems: dict[str, System]) -> None:
    found = swept(systems)
    means = {name: tune_means(system) for name, system in systems.items()}
    losses = {way: [max(row) - row[way] for row in means.values()] for way in range(4)}
    worst = min(range(4), key=lambda way: max(losses[way]))
    mean = min(range(4), key=lambda way: sum(losses[way]))
    assert (found.selected.options, found.by_mean.options) == ({"way": worst}, {"way": mean})
    assert [trial.options["way"] for trial in found.trials] == [0, 1, 2, 3]
    for way, trial in enumerate(found.trials):
        assert list(trial.losses.values()) == losses[way]
        assert (trial.worst, trial.mean) == (max(losses[way]), sum(losses[way]) / 3)
    assert {name: trial.options["way"] for name, trial in found.best.items()} == {"news": 0, "films": 1, "notes": 3}


def test_a_test_half_is_read_once_by_each_finalist_and_after_the_choice(systems: dict[str, System]) -> None:
    found = swept(systems)
    for name, system in systems.items():
        tune, test = (split_rows(system.qrels, half).tolist() for half in ("tune", "test"))
        assert system.asked[:4] == [(way, tune) for way in range(4)]
        finalists = {0, *(t.options["way"] for t in (found.selected, found.by_mean, found.best[name]))}
        assert sorted(system.asked[4:]) == [(way, test) for way in sorted(finalists)]


def test_the_winner_is_compared_on_the_test_halves(systems: dict[str, System]) -> None:
    found = swept(systems)
    raw = []
    for name, system in systems.items():
        rows = np.arange(len(split_rows(system.qrels, "test")))
        values = [(rows % 20 < right).astype(float) for right in system.right]
        chosen, best = (t.options["way"] for t in (found.selected, found.best[name]))
        one = found.test[name]
        assert one.estimates["selected"].mean == values[chosen].mean()
        assert one.estimates["best"].mean == values[best].mean()
        expected = compare(values[chosen], values[best], binary=True)
        assert (one.against_best.low, one.against_best.high) == (expected.low, expected.high)
        raw.append(compare(values[chosen], values[0], binary=True).p_value)
    assert [one.against_baseline.p_holm for one in found.test.values()] == holm(raw).tolist()


def test_the_first_of_equal_trials_is_chosen_and_equal_options_run_once(systems: dict[str, System]) -> None:
    found = swept(systems, grid=[{"way": 2}, {"way": 2}, {"way": 0}])
    assert len(found.trials) == 2
    one = swept({"news": systems["news"]}, grid={"way": [0]})
    assert one.selected is one.trials[0] is one.by_mean
    assert one.selected.worst == 0.0


def test_the_text_and_the_dictionary(systems: dict[str, System]) -> None:
    found = swept(systems)
    message = str(found)
    assert "of 4 trials; on the tune halves it is at most" in message
    assert all(f"{name}, test half: " in message for name in systems)
    back = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (back["num_trials"], back["selected"]["options"]) == (4, dict(found.selected.options))
    assert set(back["test"]["news"]["estimates"]) == {"baseline", "selected", "by mean", "best"}
    console = pytest.importorskip("rich.console").Console(width=80, record=True, file=io.StringIO())
    tables = sets_tables(found, show=1)
    console.print(*(table.to_rich() for table in tables))
    text = console.export_text()
    assert "…" not in text
    assert len(tables[0].rows) == len({0, *(t.options["way"] for t in (found.selected, *found.best.values()))})
    assert [row.cells[0] for row in tables[1].rows] == list(SIZES)


def test_an_invalid_sweep_is_refused(systems: dict[str, System]) -> None:
    with refused(InputError, "empty", "sets"):
        swept({})
    with refused(InputError, "empty", "grid"):
        swept(systems, grid={})
    with refused(InputError, "unsupported", "metric"):
        swept(systems, metric="distractor_suppression@5")
    with refused(InputError, "empty", "metric"):
        swept(systems, metric="last_hop@1")
    assert not any(asked for name in ("films", "notes") for asked in systems[name].asked)
