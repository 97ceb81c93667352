import io
import json
import re
from hashlib import md5

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.evaluate import (
    Estimate,
    Qrels,
    Run,
    Sweep,
    Trial,
    holm,
    in_test_half,
    mcnemar_exact,
    option_curves,
    split_rows,
    sweep,
)
from hopfuse.report import sweep_tables
from refusals import refused

IDS = [f"query {i}" for i in range(200)]
QRELS = Qrels(IDS, [[i] for i in range(200)])


def test_halves_are_chosen_by_the_parity_of_the_md5():
    test = in_test_half(IDS)
    assert test.tolist() == [int(md5(i.encode()).hexdigest(), 16) % 2 == 1 for i in IDS]
    assert 70 < test.sum() < 130
    assert in_test_half(reversed(IDS)).tolist() == test[::-1].tolist()
    assert in_test_half(["é"]).tolist() == [int(md5(b"\xc3\xa9").hexdigest(), 16) % 2 == 1]
    assert in_test_half([]).shape == (0,)


def test_rows_of_a_split():
    tune, test = split_rows(QRELS, "tune"), split_rows(QRELS, "test")
    assert sorted([*tune, *test]) == split_rows(QRELS, "all").tolist() == list(range(200))
    with refused(InputError, "choice", "split"):
        split_rows(QRELS, "dev")
    with refused(InputError, "empty", "split"):
        split_rows(Qrels(["q1"], [[1]]), "test")


class System:
    """A run that finds a fixed share of the passages and records its calls."""

    def __init__(self):
        self.asked = []

    def __call__(self, options, rows):
        self.asked.append((dict(options), rows.tolist()))
        good = options["depth"] * 10 + options.get("bonus", 0)
        ids = np.where(rows % 100 < good, rows, rows + 1000)
        return hf.Hits(ids[:, None], np.ones((rows.size, 1)))


GRID = {"depth": [1, 3, 6], "bonus": [0, 5]}


def test_the_best_on_tune_is_run_once_on_test():
    system = System()
    result = sweep(system, QRELS, GRID, baseline={"depth": 1, "bonus": 0}, metric="hit@1")
    tune, test = split_rows(QRELS, "tune").tolist(), split_rows(QRELS, "test").tolist()
    combinations = [{"depth": d, "bonus": b} for d in (1, 3, 6) for b in (0, 5)]
    assert system.asked[:6] == [(options, tune) for options in combinations]
    assert system.asked[6:] == [(combinations[0], test), (combinations[5], test)]
    assert result.selected.options == {"depth": 6, "bonus": 5}
    assert [trial.options for trial in result.tune] == combinations
    assert [trial.options for trial in result.test] == [combinations[0], combinations[5]]
    assert result.test[1].estimate.mean == np.mean([row % 100 < 65 for row in test])
    wins = sum(10 <= row % 100 < 65 for row in test)
    assert (result.test[1].comparison.wins, result.test[1].comparison.p_value) == (wins, mcnemar_exact(wins, 0))
    assert result.test[1].comparison.p_holm == result.test[1].comparison.p_value


def test_p_values_are_corrected_for_the_number_of_trials():
    result = sweep(System(), QRELS, GRID, baseline={"depth": 1, "bonus": 0}, metric="hit@1")
    assert result.tune[0].comparison is None
    compared = [trial.comparison for trial in result.tune[1:]]
    np.testing.assert_array_equal([c.p_holm for c in compared], holm([c.p_value for c in compared]))
    assert compared[-1].p_holm == 5 * compared[-1].p_value


def test_a_baseline_outside_the_grid_and_one_that_is_best():
    system = System()
    result = sweep(system, QRELS, {"depth": [2, 4]}, baseline={"depth": 9}, metric="hit@1")
    assert result.selected.options == {"depth": 9}
    assert len(result.tune) == 3
    assert len(result.test) == 1
    assert len(system.asked) == 4
    assert str(result).startswith("hit@1: the baseline was selected (depth=9, of 3 on ")


def test_the_first_of_equal_trials_is_selected():
    result = sweep(System(), QRELS, {"depth": [4, 10, 20]}, baseline={"depth": 1}, metric="hit@1")
    assert result.selected.options == {"depth": 10}


def test_the_report_has_the_selected_options_and_both_halves():
    result = sweep(System(), QRELS, {"depth": [4]}, baseline={"depth": 1}, metric="hit@1")
    n, m = len(split_rows(QRELS, "tune")), len(split_rows(QRELS, "test"))
    message = str(result)
    assert f"selected depth=4, of 2 on {n} tune queries" in message
    assert f"on {m} test queries" in message
    back = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert back["selected"] == {"depth": 4}
    assert back["test"][1]["comparison"]["wins"] == result.test[1].comparison.wins
    assert back["tune"][0]["comparison"] is None


def test_trials_with_different_options_are_run_once_each():
    system, trials = System(), [{"depth": 2}, {"depth": 1, "bonus": 0}, {"depth": 3, "bonus": 1}, {"depth": 2}]
    result = sweep(system, QRELS, trials, baseline={"depth": 1, "bonus": 0}, metric="hit@1")
    assert [trial.options for trial in result.tune] == [trials[1], trials[0], trials[2]]
    assert len(system.asked) == 3 + 2
    with refused(InputError, "empty", "grid"):
        sweep(system, QRELS, [], baseline={"depth": 1}, metric="hit@1")


def test_repeated_values_of_a_grid_are_run_once():
    system = System()
    result = sweep(system, QRELS, {"depth": [2, 2, 4, 2.0], "bonus": [0]}, baseline={"depth": 1}, metric="hit@1")
    assert [trial.options for trial in result.tune[1:]] == [{"depth": 2, "bonus": 0}, {"depth": 4, "bonus": 0}]
    assert len(system.asked) == 3 + 2
    compared = [trial.comparison for trial in result.tune[1:]]
    assert [c.p_holm for c in compared] == holm([c.p_value for c in compared]).tolist()


@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_numpy_scalars_are_accepted(kind):
    depths, baseline = list(np.arange(2, 5, dtype=kind)), {"depth": kind(1), "flag": np.bool_(True)}
    grids = ({"depth": depths, "flag": [np.bool_(True)]}, [{"depth": d, "flag": np.bool_(True)} for d in depths])
    for grid in grids:
        result = sweep(System(), QRELS, grid, baseline=baseline, metric="hit@1")
        (curve,) = option_curves(result)["depth"]
        assert [value for value, _ in curve.points] == [1, 2, 3, 4]
        assert "flag" not in option_curves(result)
        back = json.loads(json.dumps([result.to_dict(), curve.to_dict()], allow_nan=False))
        assert back[0]["selected"] == {"depth": 4, "flag": True}
        assert "selected depth=4, flag=True" in str(result).replace("4.0", "4")


def test_numpy_scalars_in_trials_and_curves():
    estimate = Estimate(0.5, 9, 0.4, 0.6)
    trials = tuple(Trial({"depth": value, "word": "auto"}, estimate, None) for value in (np.int64(3), np.float64(0.5)))
    made = Sweep("mrr", trials, trials[0], trials[:1], ())
    (curve,) = option_curves(made)["depth"]
    assert json.loads(json.dumps(made.to_dict()))["selected"] == {"depth": 3, "word": "auto"}
    assert [point["value"] for point in json.loads(json.dumps(curve.to_dict()))["points"]] == [0.5, 3]


def test_the_runs_of_the_test_half_are_kept():
    result = sweep(System(), QRELS, {"depth": [4]}, baseline={"depth": 1}, metric="hit@1")
    test = split_rows(QRELS, "test")
    for trial, run in zip(result.test, result.test_runs, strict=True):
        np.testing.assert_array_equal(run.ids, System()(trial.options, test).ids)


def shown(tables):
    console = pytest.importorskip("rich.console")
    out = console.Console(width=80, record=True, file=io.StringIO())
    out.print(*tables)
    return out.export_text()


def test_tables_of_a_sweep_fit_80_columns():
    grid = {"depth": [1, 3, 6], "bonus": [0, 5], "a long name of an option, [red]": ["a long value of it"]}
    baseline = {"depth": 1, "bonus": 0, "a long name of an option, [red]": "a long value of it"}
    result = sweep(System(), QRELS, grid, baseline=baseline, metric="hit@1")
    tables = sweep_tables(result, show=2)
    text = shown([table.to_rich() for table in tables])
    assert "…" not in text
    assert "[red]" in text
    assert [len(table.rows) for table in tables] == [3, 3, 2, 2]
    n, m = len(split_rows(QRELS, "tune")), len(split_rows(QRELS, "test"))
    assert f"hit@1 on {n} tune queries: the best 3 of 6 trials" in text
    assert f"hit@1 on {m} test queries: run once" in text
    best = result.selected.comparison
    assert re.search(rf"selected: depth 6, bonus 5, .* {best.wins} +{best.losses} +<0.0001\n", text)
    assert f"{100 * result.test[1].estimate.mean:.1f}" in text.split("run once")[1]


def test_other_metrics_and_runs_with_answers():
    qrels = Qrels(IDS, [[i] for i in range(200)], answers=[["yes"]] * 200)

    def answering(options, rows):
        return Run(System()({"depth": 1}, rows), ["yes" if row % 4 < options["good"] else "no" for row in rows])

    result = sweep(answering, qrels, {"good": [1, 3]}, baseline={"good": 0}, metric="answer_f1")
    assert result.selected.options == {"good": 3}
    assert result.test[1].comparison.both is None


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"grid": {}}, ("empty", "grid")),
        ({"grid": {"depth": []}}, ("empty", "grid['depth']")),
        ({"grid": {"depth": "12"}}, ("type", "grid['depth']", {"given": "str"})),
        ({"metric": "bpref"}, ("choice", "metric", {"given": "bpref"})),
        ({"metric": "last_hop@1"}, ("empty", "metric", {"given": "last_hop@1"})),
        ({"qrels": Qrels(["q1"], [[1]])}, ("empty", "split", {"given": "test"})),
    ],
)
def test_invalid_sweeps_are_refused(change, error):
    arguments = {"qrels": QRELS, "grid": {"depth": [2]}, "metric": "hit@1", **change}
    with refused(InputError, *error):
        sweep(System(), arguments.pop("qrels"), arguments.pop("grid"), baseline={"depth": 1}, **arguments)
