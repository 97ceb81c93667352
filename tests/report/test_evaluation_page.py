"""The parts of the page that no command shows, and the errors."""

import re

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.evaluate import (
    Grid,
    PassageNames,
    Qrels,
    Run,
    differing_queries,
    evaluate,
    score_distribution,
    score_distributions,
    split_rows,
    sweep,
    traces,
)
from hopfuse.report import evaluation_page
from refusals import refused


@pytest.fixture
def judged():
    names = PassageNames()
    passages = [names.number(name) for name in "abcd"]
    qrels = Qrels(["q0", "q1"], [passages[:1], passages[1:2]])
    dense, graph = (Run(hf.Hits([row, row], [[0.75, 0.5], [0.5, 0.25]])) for row in ([2, 0], [0, 1]))
    runs = {"dense": dense, "graph": graph}
    return evaluate(qrels, runs, ["hit@1"], baseline="dense"), qrels, runs, names


def test_a_phase_diagram_is_on_the_page(judged):
    temperature, coupling = np.linspace(0.2, 2, 4), np.linspace(0, 2, 3)
    m = np.zeros((3, 4))
    for _ in range(500):
        m = np.tanh((0.01 + coupling[:, None] * m) / temperature)
    text = evaluation_page(*judged, diagrams=[Grid(temperature, coupling, m, "temperature", "coupling", "mean |m|")])
    assert "<h2>mean |m| by temperature and coupling</h2>" in text
    cells = dict(re.findall(r"<title>(temperature [^:]*): ([\d.]+)</title>", text))
    assert len(cells) == 12
    assert float(cells["temperature 0.2, coupling 2"]) == pytest.approx(1, abs=1e-4)
    assert float(cells["temperature 2, coupling 0"]) == pytest.approx(0.005, abs=1e-4)
    assert "<title>temperature" not in evaluation_page(*judged)


def test_legs_are_in_the_traces_and_their_scores_are_drawn(judged):
    leg = Run(hf.Hits([[1, 3], [1, 3]], [[8.0, 2.0], [4.0, 2.0]]))
    text = evaluation_page(*judged, legs={"<words>": leg}, calibration="max")
    assert "<th>rank in &lt;words&gt;</th>" in text
    assert "<h3>&lt;words&gt;</h3>" in text
    assert text.count("after max, query by query") == 3
    auc = score_distribution(leg.hits, judged[1]).auc
    assert f"raw scores; AUC {auc:.3f}" in text
    with refused(InputError, "duplicate", "legs"):
        evaluation_page(*judged, legs={"graph": leg})


def test_the_level_of_detectable_differences_is_stated(judged):
    assert "with a power of 0.8 at 5 %, not corrected for the number of runs" in " ".join(
        evaluation_page(*judged).split()
    )


def test_a_sweep_of_equal_values_over_equal_scores_is_drawn():
    qrels, names = Qrels([f"q{i}" for i in range(40)], [[i] for i in range(40)]), PassageNames()
    for passage in range(140):
        names.number(str(passage))

    def run(options, rows):
        found = np.where(rows % 10 < options.get("good", 1), rows, rows + 100)
        return hf.Hits(found[:, None], np.full((rows.size, 1), 1e17))

    result = sweep(run, qrels, {"good": [2, 2]}, baseline={}, metric="hit@1")
    test = qrels.take(split_rows(qrels, "test"))
    runs = {name: Run(hits) for name, hits in zip(("base", "selected"), result.test_runs, strict=True)}
    page = evaluation_page(evaluate(test, runs, ["hit@1"], baseline="base"), test, runs, names, sweep=result)
    assert "2 trials on the tune half" in page
    assert page.count("raw scores") == 2


def test_other_runs_or_judgements_are_refused(judged):
    evaluation, qrels, runs, names = judged
    with refused(InputError, "changed", "runs"):
        evaluation_page(evaluation, qrels, {"dense": runs["dense"]}, names)
    with refused(InputError, "changed", "runs"):
        evaluation_page(evaluation, qrels.take([1, 0]), runs, names)


def test_recorded_results_give_the_same_page(judged):
    evaluation, qrels, runs, names = judged
    traced = traces(differing_queries(evaluation), qrels, runs, names)
    known = evaluation_page(*judged, distributions=score_distributions(qrels, runs, "max"), traced=traced)
    assert known == evaluation_page(*judged, calibration="max")
    assert known != evaluation_page(*judged, distributions={}, traced=traced)
