import json
import re
from importlib import import_module
from itertools import product

import hopfuse as hf
import numpy as np
import pytest
from cli.cli_files import about, hopfuse, write_jsonl
from cli.test_cli_eval import Page
from hopfuse.evaluate import in_test_half

IDS = [f"q{i}" for i in range(60)]
RNG = np.random.default_rng(11)
#: Both legs find the gold passage late for half of the queries, each for another half.
SCORES = {leg: RNG.random((60, 12)).astype(np.float32) for leg in ("dense", "graph")}
for at in range(60):
    SCORES["dense"][at, 0] = 0.95 if at % 2 else 0.55
    SCORES["graph"][at, 0] = 0.60 if at % 2 else 0.90


@pytest.fixture(scope="module")
def legs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    gold = [{"id": name, "gold": [f"p{at}-0"], "question": f"Question {at}?"} for at, name in enumerate(IDS)]
    write_jsonl(folder / "gold.jsonl", gold)
    for leg, scores in SCORES.items():
        rows = [[{"id": f"p{at}-{c}", "score": float(s)} for c, s in enumerate(row)] for at, row in enumerate(scores)]
        write_jsonl(folder / f"{leg}.jsonl", [{"id": q, "hits": row} for q, row in zip(IDS, rows, strict=True)])
    return folder


def arguments(legs):
    runs = ("--run", f"dense={legs / 'dense.jsonl'}", "--run", f"graph={legs / 'graph.jsonl'}")
    return ["sweep", "--qrels", legs / "gold.jsonl", *runs, "--metric", "hit@1"]


GRID = ("--method", "linear,rrf,boltzmann", "--alpha", "0.2,0.5,0.8", "--pool", "4,12", "--temperature", "auto,0.5,1")


@pytest.fixture(scope="module")
def done(legs, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    args = (*arguments(legs), *GRID, "--also", "mrr", "--out", out / "s.json", "--html", out / "s.html")
    output = hopfuse(*args).stdout
    return (
        output,
        json.loads((out / "s.json").read_text(encoding="utf-8")),
        (out / "s.html").read_text(encoding="utf-8"),
    )


def test_the_trials_are_those_of_fuse_on_the_tune_half(done):
    _, found, _ = done
    trials = found["sweep"]["tune"]
    # Two legs; linear and rrf with three alphas and two pools; Boltzmann with three temperatures too.
    assert len(trials) == 2 + 6 + 6 + 18
    assert trials[0]["options"] == {"leg": "dense"}
    tune = np.flatnonzero(~in_test_half(IDS))
    lists = [hf.Hits(np.tile(np.arange(12), (tune.size, 1)), SCORES[leg][tune]) for leg in ("dense", "graph")]
    for trial in trials[2:]:
        options = dict(trial["options"])
        alpha = options.pop("alpha")
        fused = hf.fuse(lists, weights=(alpha, 1 - alpha), k=12, **options)
        assert trial["estimate"]["mean"] == pytest.approx(np.mean(fused.ids[:, 0] == 0))
    best = max(trials, key=lambda trial: trial["estimate"]["mean"])
    assert found["sweep"]["selected"] == best["options"]


def test_the_winner_is_judged_on_the_test_half(done):
    message, found, _ = done
    test = [q for q, odd in zip(IDS, in_test_half(IDS), strict=True) if odd]
    assert found["test"]["per_query"]["ids"] == test
    assert found["test"]["runs"] == ["dense", "selected"]
    assert found["test"]["metrics"] == ["hit@1", "mrr"]
    assert (found["sweep"]["selected_on"], found["sweep"]["judged_on"]) == ("tune", "test")
    winner = found["sweep"]["test"][1]
    mean = found["test"]["groups"][0]["estimates"]["selected"]["hit@1"]["mean"]
    assert winner["estimate"]["mean"] == mean
    assert f"{100 * mean:.1f} against the baseline's" in message
    assert set(found["scores"]) == {"dense", "selected", "graph"}
    assert set(found["traces"]) >= set(found["test"]["won"]["selected"]["hit@1"])
    won = found["traces"][found["test"]["won"]["selected"]["hit@1"][0]]["gold"][0]["runs"]
    assert won["dense"]["rank"] > won["selected"]["rank"] == 1
    assert won["graph"] is not None


def test_table_and_page_show_it(done):
    message, found, text = done
    assert "…" not in message
    assert max(map(len, message.splitlines()[2:])) <= 80
    words = " ".join(message.split())
    for title in ("tune queries: the best", "hit@1 against alpha", "hit@1 against pool", "run once", "won by selected"):
        assert title in words
    page = Page(text)
    assert (page.open, page.refers) == ([], [])
    assert "script" not in page.seen
    assert "http" not in text
    # A plot for each of three options, two histograms for each of three lists, bars for each of two metrics.
    assert page.seen.count("svg") == 3 + 2 * 3 + 2
    assert set(found["sweep"]["curves"]) == {"alpha", "pool", "temperature"}
    drawn = [point for curves in found["sweep"]["curves"].values() for curve in curves for point in curve["points"]]
    titles = re.findall(r"<title>([\d.]+): ([\d.]+) \(", text)
    assert sorted((float(v), float(m)) for v, m in titles) == sorted(
        (float(point["value"]), round(100 * point["mean"], 1)) for point in drawn
    )
    assert "Selected options" in text


def test_each_method_is_tried_with_the_options_that_it_has(legs, tmp_path):
    grid = ("--method", "comb_sum,rrf", "--consensus", "0,0.5", "--calibration", "min_max,pit", "--pool", "graph=6")
    further = ("--option", "rank_constant=10,60", "--show", 0, "--out", tmp_path / "s.json")
    output = hopfuse(*arguments(legs), *grid, *further).stdout
    assert "won by" not in output
    trials = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))["sweep"]["tune"]
    options = [trial["options"] for trial in trials if "method" in trial["options"]]
    expected = [
        {"method": "comb_sum", "consensus": c, "calibration": how, "pool graph": 6}
        for c in (0, 0.5)
        for how in ("min_max", "pit")
    ]
    expected += [
        {"method": "rrf", "consensus": c, "pool graph": 6, "rank_constant": n} for c in (0, 0.5) for n in (10, 60)
    ]
    assert sorted(map(repr, map(sorted, map(dict.items, options)))) == sorted(
        map(repr, map(sorted, map(dict.items, expected)))
    )
    rows = np.flatnonzero(~in_test_half(IDS))
    lists = [hf.Hits(np.tile(np.arange(12), (rows.size, 1)), SCORES[leg][rows]) for leg in ("dense", "graph")]
    for trial in trials[2:]:
        own = dict(trial["options"])
        fused = hf.fuse(lists, pool=[None, own.pop("pool graph")], k=12, **own)
        assert trial["estimate"]["mean"] == pytest.approx(np.mean(fused.ids[:, 0] == 0))


def test_the_baseline_may_win(legs, tmp_path):
    grid = ("--method", "rrf", "--pool", "graph=1", "--alpha", "0.01", "--baseline", "dense")
    output = hopfuse(*arguments(legs), *grid, "--out", tmp_path / "s.json", "--html", tmp_path / "s.html").stdout
    found = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert "the baseline was selected (leg='dense', of 3 on" in output
    assert found["test"]["runs"] == ["dense"]
    assert "Queries won and lost" not in (tmp_path / "s.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--baseline", "words"), about("choice", "baseline", given="words")),
        (("--method", "best"), about("choice", "methods", given="best")),
        (("--method", "rrf", "--temperature", "1"), about("unused", "grid", unused="temperature", methods="rrf")),
        (("--pool", "words=3"), about("unknown", "pool", given="words")),
        (("--pool", "many"), about("range", "pool[0]", given="many")),
        (("--alpha", "0.5,"), about("syntax", "alpha", given="0.5,")),
        (("--alpha", "half"), about("range", "alpha", given="half")),
        (("--alpha", "1.5"), about("range", "alpha", given=1.5)),
        (("--option", "rank_constant"), about("syntax", "option", given="rank_constant")),
    ],
)
def test_bad_options_are_refused(refused_here, legs, change, message):
    assert refused_here(*arguments(legs), *change) == message


def trials_of(legs, out, *grid):
    output = hopfuse(*arguments(legs), *grid, "--out", out).stdout
    return output, [trial["options"] for trial in json.loads(out.read_text(encoding="utf-8"))["sweep"]["tune"][2:]]


def test_options_given_several_times_add_up(legs, tmp_path):
    pools = ("--pool", "3", "--pool", "9,3", "--pool", "graph=2", "--pool", "graph=4")
    further = (
        "--option",
        "rank_constant=10",
        "--option",
        "rank_constant=60",
        "--alpha",
        "0.5",
        "--option",
        "alpha=0.2",
    )
    _, trials = trials_of(legs, tmp_path / "s.json", "--method", "rrf", *pools, *further)
    grid = product((0.5, 0.2), (3, 9), (2, 4), (10, 60))
    names = ("alpha", "pool", "pool graph", "rank_constant")
    assert trials == [{"method": "rrf", **dict(zip(names, values, strict=True))} for values in grid]


def test_a_method_without_the_calibrations_is_left_out(legs, refused_here, tmp_path):
    grid = ("--method", "boltzmann, linear", "--calibration", "z_score")
    message, trials = trials_of(legs, tmp_path / "s.json", *grid)
    assert trials == [{"method": "linear", "calibration": "z_score"}]
    assert "boltzmann can use none of the calibrations given; not tried" in message
    line = refused_here(*arguments(legs), "--method", "boltzmann", "--calibration", "z_score")
    assert line == about("unsupported", "methods")


def test_the_fused_run_has_a_name_that_no_leg_has(legs, tmp_path):
    files = {"A": "dense", "selected": "graph", "selected by the sweep": "graph"}
    runs = [arg for name, leg in files.items() for arg in ("--run", f"{name}={legs / f'{leg}.jsonl'}")]
    grid = ("--method", "linear", "--alpha", "0.5", "--metric", "hit@1")
    out = ("--out", tmp_path / "s.json", "--html", tmp_path / "s.html")
    hopfuse("sweep", "--qrels", legs / "gold.jsonl", *runs, *grid, *out)
    found = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert found["sweep"]["selected"]["method"] == "linear"
    assert found["test"]["runs"] == ["A", "selected by the sweep, 2"]
    assert set(found["scores"]) == {*files, "selected by the sweep, 2"}


def test_other_metrics_are_checked_before_the_sweep(refused_here, legs, monkeypatch):
    def never(*_, **__):
        raise AssertionError("swept")

    monkeypatch.setattr(import_module("hopfuse.cli.sweep"), "sweep", never)
    assert refused_here(*arguments(legs), "--also", "recal@5") == about("choice", "metric", given="recal@5")
    message = refused_here(*arguments(legs), "--also", "answer_em")
    assert message == about("missing", "answers")


def test_one_run_is_not_swept(refused_here, legs):
    line = refused_here("sweep", "--qrels", legs / "gold.jsonl", "--run", f"dense={legs / 'dense.jsonl'}")
    assert line == about("missing", "legs")
