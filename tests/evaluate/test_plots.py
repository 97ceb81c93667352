"""What a sweep's plots show, and where in the picture."""

import itertools
import json
import re

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.evaluate import (
    Curve,
    Estimate,
    Grid,
    Qrels,
    heat_map,
    option_curves,
    score_distribution,
    sweep,
    sweep_grid,
)
from hopfuse.evaluate.svg import difference_bars, histogram
from hopfuse.evaluate.svg_axes import Axes, log_ticks, nice_ticks
from hopfuse.evaluate.svg_curves import curve_plot
from hopfuse.evaluate.svg_heat_map import colour

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
    with pytest.raises(InputError, match="numbers for both 'alpha' and 'heat'; their options are pool, method, alpha"):
        sweep_grid(swept, "alpha", "heat")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 1], [0], [[0, 0]]), "x is .*each above the last"),
        (([1], [], [[0]]), "y is "),
        (([1, 2], [0], [[0], [0]]), r"values have shape \(2, 1\); it must be \(1, 2\)"),
        (([1], [0], [[np.inf]]), "values are infinite"),
        (([1], [0], [[np.nan]]), "all NaN"),
    ],
)
def test_bad_grids_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Grid(*arguments)


def test_grids_are_frozen_and_strict_json():
    grid = Grid([1, 2], [0], [[0.5, np.nan]], "T", "J", "m")
    assert json.loads(json.dumps(grid.to_dict(), allow_nan=False))["values"] == [[0.5, None]]
    with pytest.raises(ValueError, match="read-only"):
        grid.values[0, 0] = 1


CELL = re.compile(r'<rect class="cell" x="([\d.]+)" y="([\d.]+)"[^>]*fill="(#\w+)"><title>([^<]*)</title>')


def test_cells_of_a_heat_map():
    drawn = heat_map(Grid([0.5, 2], [0, 1, 2], [[0.2, 0.0], [0.6, 0.1], [1.0, np.nan]], "T <K>", "J", "mean |m|"))
    cells = {title: (float(x), float(y), fill) for x, y, fill, title in CELL.findall(drawn)}
    assert len(cells) == 5
    high, low = cells["T &lt;K&gt; 0.5, J 2: 1"], cells["T &lt;K&gt; 2, J 0: 0"]
    assert (high[2], low[2]) == (colour(1), colour(0))
    assert cells["T &lt;K&gt; 0.5, J 1: 0.6"][2] == colour(0.6)
    assert high[0] < low[0]  # x grows to the right
    assert high[1] < low[1]  # y grows upwards
    assert ">-</text>" in drawn
    assert re.search(r'class="on-dark"[^>]*>0.1<', drawn)
    assert re.search(r'class="on-light"[^>]*>1<', drawn)
    flat = heat_map(Grid([1], [1], [[3.0]]))
    assert CELL.findall(flat)[0][2] == colour(0.5)


def test_many_cells_are_not_written_in_and_labels_do_not_overlap():
    drawn = heat_map(Grid(np.arange(100) / 7, [0.0], np.linspace(0, 1, 100)[None]))
    assert len(CELL.findall(drawn)) == 100
    assert "on-dark" not in drawn
    labels = re.findall(r'<text x="([\d.]+)" y="100.0" text-anchor="middle">([^<]*)<', drawn)
    places = [(float(x) - 3 * len(word), float(x) + 3 * len(word)) for x, word in labels]
    assert len(places) > 3
    assert all(one[1] < two[0] for one, two in itertools.pairwise(places))


def points(drawn, kind):
    return [
        [tuple(map(float, p.split(","))) for p in found.split()]
        for found in re.findall(rf'<{kind} class="[^"]*" points="([^"]*)"', drawn)
    ]


def test_lines_and_bands_are_where_the_numbers_are():
    one = Curve("one", {}, ((10, Estimate(0.5, 9, 0.4, 0.6)), (30, Estimate(0.7, 9, 0.6, 0.8))))
    two = Curve("<two>", {}, ((10, Estimate(0.4, 9, 0.4, 0.4)), (20, Estimate(0.8, 9, 0.8, 0.8))))
    drawn = curve_plot([one, two], "pool", "recall@5")
    (ours, theirs), bands = points(drawn, "polyline"), points(drawn, "polygon")
    assert ours[0][0] == theirs[0][0] < theirs[1][0] < ours[1][0]
    assert theirs[1][0] - ours[0][0] == pytest.approx((ours[1][0] - ours[0][0]) / 2, abs=0.11)
    # 10 percent points are as far apart in the band as in the line; what is higher lies higher.
    step = theirs[0][1] - ours[0][1]
    assert step > 0
    low, high = ours[0][1], ours[1][1]
    assert [y for _, y in bands[0]] == pytest.approx([low + step, high + step, high - step, low - step], abs=0.21)
    assert "&lt;two&gt;" in drawn
    assert "<title>30: 70.0 (60.0 .. 80.0)</title>" in drawn
    below = curve_plot([one, two], "pool", "recall@5", baseline=0.1)
    (line,) = re.findall(r'<line class="reference"[^>]* y1="([\d.]+)" y2="\1"/>', below)
    # The baseline is 40 points below the first mean, on a scale that has room for it.
    ours, theirs = points(below, "polyline")
    assert float(line) - ours[0][1] == pytest.approx(4 * (theirs[0][1] - ours[0][1]), abs=0.3)


def test_wide_ranges_are_drawn_by_their_logarithm():
    flat = Estimate(0.5, 9, 0.4, 0.6)
    (line,) = points(curve_plot([Curve("", {}, tuple((v, flat) for v in (10, 100, 1000)))], "pool", "mrr"), "polyline")
    assert line[1][0] - line[0][0] == pytest.approx(line[2][0] - line[1][0], abs=0.11)


def test_ticks():
    assert nice_ticks(0, 1) == [0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert log_ticks(10, 1000) == [10, 20, 50, 100, 200, 500, 1000]
    rng = np.random.default_rng(1)
    for low, power in rng.normal(scale=(100, 3), size=(200, 2)).tolist():
        span = 10**power
        ticks = nice_ticks(low, low + span)
        assert 1 <= len(ticks) <= 6
        assert all(low - span * 1e-6 <= t <= low + span * (1 + 1e-6) for t in ticks)
    assert Axes(0, 100, 0, 50, x=(1, 100), y=(0, 1), log_x=True).place_x(10) == pytest.approx(50)


def test_histograms_have_area_one():
    hits = hf.Hits([[0, 1, 2, 3], [0, 1, 2, 3]], [[0.0, 0.25, 0.5, 1.0], [0.0, 0.0, 0.75, 1.0]])
    found = score_distribution(hits, Qrels(["a", "b"], [[3], [2, 0]]), bins=4)
    right, wrong = points(histogram(found), "polyline")
    for outline, counts in ((right, found.relevant), (wrong, found.other)):
        floor = outline[0][1]
        heights = np.array([floor - y for _, y in outline[1:-1:2]])
        np.testing.assert_allclose(heights / heights.sum(), counts / counts.sum(), atol=2e-3)
    assert "No scores." in histogram(score_distribution(hf.Hits([[-1]], [[0.0]]), Qrels(["a"], [[0]])))


@pytest.mark.parametrize("score", [0.0, 0.5, -3.0, 1e15, 1e17, -1e30, 3e38, 1e-40])
def test_scores_that_are_all_equal_are_drawn(score):
    found = score_distribution(hf.Hits([[0, 1, 2]], [[score] * 3]), Qrels(["a"], [[1]]))
    assert (np.diff(found.edges) > 0).all()
    assert (found.relevant[0], found.other[0]) == (1, 2)
    drawn = histogram(found)
    right, wrong = points(drawn, "polyline")
    assert len({x for x, _ in right}) == len({x for x, _ in wrong}) == 26
    assert len(set(re.findall(r'text-anchor="middle">([^<]+)<', drawn))) >= 3


@pytest.mark.parametrize("value", [0.0, 2.0, -2.0, 1e17, -1e17, 5e-324])
def test_axes_and_ticks_of_one_value(value):
    axes = Axes(0, 100, 0, 50, x=(value, value), y=(value, value))
    assert (axes.place_x(value), axes.place_y(value)) == (0, 50)
    ticks = nice_ticks(value, value)
    assert 2 <= len(ticks) <= 6
    assert all(-1e-9 <= axes.place_x(tick) <= 100 + 1e-9 for tick in ticks)
    assert nice_ticks(0.0, 5e-324) == nice_ticks(0.0, 1.0)


def test_bars_say_when_there_is_none():
    assert "No query differs." in difference_bars([("a", 0.0)])
    drawn = difference_bars([("a", 1.0), ("b", -0.5)])
    assert (drawn.count("<rect"), ">+1<" in drawn, ">-0.5<" in drawn) == (2, True, True)
