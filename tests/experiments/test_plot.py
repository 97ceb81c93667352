"""docs/quality-and-time.svg is drawn from the committed results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.chart import Mark, panels
from experiments import plot, times


def test_the_plot_is_current() -> None:
    assert plot.PLOT.read_text(encoding="utf-8") == plot.draw(), "run: python -m experiments.plot"


def test_a_changed_time_changes_the_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.loads(times.OUT.read_text(encoding="utf-8"))
    found["sets"]["hotpotqa"]["ms"]["dense"]["32"]["median"] *= 2
    monkeypatch.setattr(plot, "OUT", tmp_path / "times.json")
    plot.OUT.write_text(json.dumps(found), encoding="utf-8")
    assert plot.draw() != plot.PLOT.read_text(encoding="utf-8")


def test_times_and_qualities_are_of_the_same_searches() -> None:
    """Times were taken later than qualities; recall over all questions is near that of the half that is published."""
    taken = json.loads(times.OUT.read_text(encoding="utf-8"))["sets"]
    quality = json.loads(plot.RESULTS.read_text(encoding="utf-8"))
    for name, graph in times.SETS.items():
        for run in plot.RANKINGS:
            everything, half = taken[name]["recall@5"][run], quality[name][graph]["means"][run]["recall@5"]
            assert abs(everything - half) < 0.04, (name, run)


def test_each_ranking_has_a_shape_of_its_own() -> None:
    shapes = [about[1] for about in plot.RANKINGS.values()]
    assert len(set(shapes)) == len(shapes)


def test_a_mark_outside_the_axis_is_refused() -> None:
    with pytest.raises(ValueError, match="within 60 and 100"):
        panels("title", "ms", (60, 100), {"a set": [Mark(1.0, 59.0, "dense", "circle", "below")]})
