"""The sections of the HTML report about a sweep."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from .curves import option_curves
from .html_parts import figure, table
from .svg_curves import MOST, curve_plot
from .sweep import Sweep
from .sweep_rendering import TEST_COLUMNS, TUNE_COLUMNS, option_text, ranked, trial_cells


def sweep_sections(sweep: Sweep) -> Iterator[str]:
    """What was selected where, the test half, a plot for each option, and every trial.

    Examples
    --------
    >>> import hopfuse as hf
    >>> import numpy as np
    >>> from hopfuse.evaluate import Qrels, sweep
    >>> qrels = Qrels([f"q{i}" for i in range(40)], [[i] for i in range(40)])
    >>> def run(options, rows):
    ...     found = np.where(rows % 10 < options["good"], rows, rows + 100)
    ...     return hf.Hits(found[:, None], np.ones((rows.size, 1)))
    >>> page = "".join(sweep_sections(sweep(run, qrels, {"good": [2, 8]}, baseline={"good": 1}, metric="hit@1")))
    >>> "<svg" in page, "selected: good 8" in page
    (True, True)
    """
    tuned, tested = sweep.tune[0].estimate.n, sweep.test[0].estimate.n
    yield f"<h2>What was selected</h2><p>{escape(str(sweep))}.</p>"
    yield f"<p>{escape(_HALVES)}</p>"
    rows = [trial_cells(trial, sweep, holm=False) for trial in sweep.test]
    yield table(f"{sweep.metric} on {tested} test queries, run once", TEST_COLUMNS, rows)
    curves = option_curves(sweep)
    if curves:
        yield f'<h2>{escape(sweep.metric)} by option</h2><p>{escape(_CURVES)}</p><div class="panels">'
        for option, found in curves.items():
            drawn = f"; the best {MOST} of {len(found)} methods" if len(found) > MOST else ""
            others = "; ".join(dict.fromkeys(option_text(curve.others) for curve in found[:MOST] if curve.others))
            caption = f"{tuned} tune queries{drawn}" + (f". Other options: {others}" if others else "")
            yield figure(curve_plot(found, option, sweep.metric, sweep.tune[0].estimate.mean), caption)
        yield "</div>"
    yield "<h2>Every trial</h2>"
    rows = [trial_cells(trial, sweep, holm=True) for trial in ranked(sweep)]
    inside = table(f"{sweep.metric} on {tuned} tune queries", TUNE_COLUMNS, rows)
    yield f"<details><summary>{len(rows)} trials on the tune half, the best first</summary>{inside}</details>"


_HALVES = (
    "All trials were run on the tune half of the queries, by the MD5 of their ids; the baseline and the selected "
    "options alone were run on the test half, once. p on the tune half is corrected by Holm for the number of trials; "
    "what counts is the test half."
)
_CURVES = (
    "On the tune half, with 95 % bands. A method's other options are those of its best trial, so the best point of a "
    "curve is better here than elsewhere. Values that are words, such as auto, are among the trials below."
)
