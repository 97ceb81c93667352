"""Plots have the right marks in the right places, escape their text, and need no other files."""

import html
import re
import sys

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import MissingExtraError
from hopfuse.evaluate import Curve, Estimate, Grid, Qrels, score_distribution
from hopfuse.report import curve_plot, difference_bars, heat_map, histogram, stacked_bars
from refusals import refused

pytest.importorskip("matplotlib")

HOSTILE = "<script>alert('x')</script> $x^{ \x1b[31m &amp; 中🚀"


def shapes(svg):
    """Return the corners of the mark of each tooltip, by the tooltip's text."""
    found = re.findall(r'<title>([^<]*)</title>\s*<path d="([^"]*)"', svg)
    pairs = re.compile(r"(-?[\d.]+) (-?[\d.]+)")
    return {html.unescape(title): np.array(pairs.findall(path), float) for title, path in found}


def markers(svg):
    """Return the position of the marker of each tooltip."""
    found = re.findall(r'<title>([^<]*)</title>.*?<use [^>]*x="([\d.]+)" y="([\d.]+)"', svg, re.DOTALL)
    return {title: (float(x), float(y)) for title, x, y in found}


def size(corners):
    return np.ptp(corners, axis=0)


def test_bars_are_as_high_as_the_differences():
    bars = shapes(difference_bars([("a", 1.0), ("b", -0.5), ("c", 0.0), ("d", 0.25)]))
    assert set(bars) == {"a: +1", "d: +0.25", "b: -0.5"}
    heights = {name: size(corners)[1] for name, corners in bars.items()}
    assert heights["a: +1"] == pytest.approx(2 * heights["b: -0.5"]) == pytest.approx(4 * heights["d: +0.25"])
    assert bars["a: +1"][:, 0].max() < bars["d: +0.25"][:, 0].min() < bars["b: -0.5"][:, 0].min()
    assert bars["a: +1"][:, 1].max() == pytest.approx(bars["b: -0.5"][:, 1].min())  # both start at 0
    assert difference_bars([("a", 0.0)]) == "<p>No query differs.</p>"


def test_cells_of_a_heat_map():
    cells = shapes(heat_map(Grid([0.5, 2], [0, 1, 2], [[0.2, 0.0], [0.6, 0.1], [1.0, np.nan]], "T <K>", "J", "|m|")))
    assert len(cells) == 5
    high, low = cells["T <K> 0.5, J 2: 1"], cells["T <K> 2, J 0: 0"]
    assert (high.mean(axis=0) < low.mean(axis=0)).all()  # x grows to the right, y upwards
    assert len(shapes(heat_map(Grid(np.arange(100) / 7, [0.0], np.linspace(0, 1, 100)[None])))) == 100
    assert len(shapes(heat_map(Grid([1], [1], [[3.0]])))) == 1


def test_curves_are_where_the_numbers_are():
    one = Curve("one", {}, ((10, Estimate(0.5, 9, 0.4, 0.6)), (30, Estimate(0.7, 9, 0.6, 0.8))))
    two = Curve("<two>", {}, ((10, Estimate(0.4, 9)), (20, Estimate(0.8, 9, 0.8, 0.8))))
    svg = curve_plot([one, two], "pool", "recall@5", baseline=0.1)
    places = markers(svg)
    left, right, low, middle = (
        places[message]
        for message in ("10: 50.0 (40.0 .. 60.0)", "30: 70.0 (60.0 .. 80.0)", "10: 40.0", "20: 80.0 (80.0 .. 80.0)")
    )
    assert left[0] == low[0]
    assert middle[0] - left[0] == pytest.approx((right[0] - left[0]) / 2, abs=0.01)
    assert low[1] - left[1] == pytest.approx((left[1] - right[1]) / 2, abs=0.01)
    assert "&lt;two&gt;" in svg
    assert ">baseline<" in svg


def test_wide_ranges_are_drawn_by_their_logarithm():
    flat = Estimate(0.5, 9, 0.4, 0.6)
    places = markers(curve_plot([Curve("", {}, tuple((v, flat) for v in (10, 100, 1000)))], "pool", "mrr"))
    x = [place[0] for place in places.values()]
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.01)


def test_stacked_bars_are_as_long_as_their_parts():
    bars = shapes(stacked_bars([("Notes", {"walk": 1.0, "hub": -0.5, "title": 0.25}), ("b", {"walk": 0.5})], "score"))
    wide = {name: size(corners)[0] for name, corners in bars.items()}
    assert wide["Notes: walk 1"] == pytest.approx(2 * wide["Notes: hub -0.5"]) == pytest.approx(2 * wide["b: walk 0.5"])
    assert bars["Notes: walk 1"][:, 0].max() == pytest.approx(bars["Notes: title 0.25"][:, 0].min())
    assert bars["Notes: hub -0.5"][:, 0].max() == pytest.approx(bars["Notes: walk 1"][:, 0].min())
    assert stacked_bars([("a", {})], "score") == "<p>Nothing to draw.</p>"


@pytest.mark.parametrize("score", [0.0, 0.5, -3.0, 1e15, 1e17, -1e30, 3e38, 1e-40])
def test_scores_that_are_all_equal_are_drawn(score):
    found = score_distribution(hf.Hits([[0, 1, 2]], [[score] * 3]), Qrels(["a"], [[1]]))
    assert (np.diff(found.edges) > 0).all()
    assert (found.relevant[0], found.other[0]) == (1, 2)
    assert "relevant (1)" in histogram(found)


def test_a_plot_without_scores_is_a_note():
    nothing = score_distribution(hf.Hits([[-1]], [[0.0]]), Qrels(["a"], [[0]]))
    assert histogram(nothing) == "<p>No scores.</p>"


def test_text_is_escaped_and_a_plot_refers_to_nothing_outside():
    points = ((0.0, Estimate(0.5, 9, 0.4, 0.6)), (1.0, Estimate(0.7, 9, 0.6, 0.8)))
    found = score_distribution(hf.Hits([[0, 1]], [[1.0, 0.5]]), Qrels(["a"], [[1]]))
    for svg in (
        difference_bars([(HOSTILE, 1.0)]),
        curve_plot([Curve(HOSTILE, {}, points)], HOSTILE, HOSTILE, 0.2),
        heat_map(Grid([1, 2], [1], [[1, 2]], HOSTILE, HOSTILE, HOSTILE)),
        stacked_bars([(HOSTILE, {HOSTILE: 1.0})], HOSTILE),
        histogram(found, HOSTILE),
    ):
        assert "<script" not in svg
        assert "&lt;script&gt;" in svg
        assert "\x1b" not in svg
        assert not re.search(r"http|url\(|<style|<image|\son\w+=|data:|#1f6fb2|#1c1c1e", svg)
        assert svg.startswith("<svg")


def test_the_same_numbers_give_the_same_plot():
    assert difference_bars([("a", 1.0)]) == difference_bars([("a", 1.0)])


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with refused(MissingExtraError, "missing_extra"):
        difference_bars([("a", 1.0)])
