"""A sweep's metric against its options: curves and grids."""

import json

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.evaluate import Grid, Qrels, option_curves, sweep, sweep_grid
from refusals import refused

QRELS = Qrels([f"query {i}" for i in range(200)], [[i] for i in range(200)])


def system(options, rows):
    """Better with pool, best at alpha 0.5 for "a"; "b" is worse and does not read alpha."""
    good = options["pool"] * 10 + (20 - int(40 * abs(options["alpha"] - 0.5)) if "alpha" in options else 0)
    return hf.Hits(np.where(rows % 100 < good, rows, rows + 1000)[:, None], np.ones((rows.size, 1)))


TRIALS = [{"method": "a", "alpha": a, "pool": p} for p in (3, 1) for a in (0.75, 0.5, 0.25)]
TRIALS += [{"method": "b", "pool": p} for p in (1, 2)] + [{"method": "c", "pool": 2}]


@pytest.fixture(scope="module")
def swept():
    return sweep(system, QRELS, TRIALS, baseline={"pool": 1}, metric="hit@1")


def test_curves_go_through_the_best_trial_of_each_method(swept):
    curves = option_curves(swept)
    assert list(curves) == ["pool", "alpha"]
    assert [curve.label for curve in curves["pool"]] == ["a", "b"]
    (alpha,) = curves["alpha"]
    assert alpha.others == {"method": "a", "pool": 3}
    assert [value for value, _ in alpha.points] == [0.25, 0.5, 0.75]
    assert {e for _, e in alpha.points} == {t.estimate for t in swept.tune if t.options["pool"] == 3}
    assert alpha.points[1][1] is swept.selected.estimate
    a, b = curves["pool"]
    assert (a.others, b.others) == ({"method": "a", "alpha": 0.5}, {"method": "b"})
    assert [value for value, _ in b.points] == [1, 2]
    text = json.dumps([curve.to_dict() for curve in curves["pool"]], allow_nan=False)
    assert json.loads(text)[0]["points"][1]["value"] == 3
    assert json.loads(text)[0]["points"][1]["mean"] == swept.selected.estimate.mean


def test_a_grid_of_a_sweep_has_the_best_trial_at_each_crossing(swept):
    grid = sweep_grid(swept, "alpha", "pool")
    assert (grid.x.tolist(), grid.y.tolist()) == ([0.25, 0.5, 0.75], [1, 3])
    by = {(t.options["alpha"], t.options["pool"]): t.estimate.mean for t in swept.tune if "alpha" in t.options}
    assert grid.values.tolist() == [[by[a, p] for a in (0.25, 0.5, 0.75)] for p in (1, 3)]
    assert (grid.x_label, grid.y_label, grid.label) == ("alpha", "pool", "hit@1")
    with refused(InputError, "unknown", "x"):
        sweep_grid(swept, "alpha", "heat")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (([1, 1], [0], [[0, 0]]), ("order", "x")),
        (([1], [], [[0]]), ("order", "y")),
        (([1, 2], [0], [[0], [0]]), ("shape", "values")),
        (([1], [0], [[np.inf]]), ("finite", "values")),
        (([1], [0], [[np.nan]]), ("finite", "values")),
    ],
)
def test_bad_grids_are_refused(arguments, error):
    with refused(InputError, *error):
        Grid(*arguments)


def test_grids_are_frozen_and_strict_json():
    grid = Grid([1, 2], [0], [[0.5, np.nan]], "T", "J", "m")
    assert json.loads(json.dumps(grid.to_dict(), allow_nan=False))["values"] == [[0.5, None]]
    with pytest.raises(ValueError, match="read-only"):
        grid.values[0, 0] = 1
