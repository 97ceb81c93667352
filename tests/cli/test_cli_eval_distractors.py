"""``eval`` and ``sweep`` by the baseline's distractors."""

import json

import pytest
from cli.cli_files import about, hopfuse, write_jsonl

FOUND = {"dense": ("wrong", "right", "worse"), "graph": ("right", "other", "wrong")}


@pytest.fixture
def judged(tmp_path):
    ids = [f"q{at}" for at in range(20)]
    write_jsonl(tmp_path / "gold.jsonl", [{"id": id, "gold": ["right"]} for id in ids])
    for name, found in FOUND.items():
        hits = [{"id": p, "score": 1 - at / 10} for at, p in enumerate(found)]
        write_jsonl(tmp_path / f"{name}.jsonl", [{"id": id, "hits": hits} for id in ids])
    runs = [part for name in FOUND for part in ("--run", f"{name}={tmp_path / name}.jsonl")]
    return ["--qrels", tmp_path / "gold.jsonl", *runs]


def test_the_baseline_is_the_one_named(judged, tmp_path):
    metrics = [part for k in (1, 2, 3) for part in ("--metric", f"distractor_suppression@{k}")]
    hopfuse("eval", *judged, "--baseline", "dense", *metrics, "--out", tmp_path / "r.json")
    values = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["per_query"]["values"]
    # "wrong" is the distractor of one hit and of two, "worse" one of three.
    assert {metric: row[0] for metric, row in values["graph"].items()} == {
        "distractor_suppression@1": 1.0,
        "distractor_suppression@2": 1.0,
        "distractor_suppression@3": 0.5,
    }
    assert all(set(row) == {0.0} for row in values["dense"].values())


def test_a_sweep_counts_its_baselines(judged, tmp_path):
    out = ("--metric", "recall@1", "--also", "distractor_suppression@3", "--out", tmp_path / "s.json")
    hopfuse("sweep", *judged, "--method", "linear", "--alpha", "0.9", "--baseline", "dense", *out)
    found = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert found["sweep"]["selected"] == {"leg": "graph"}
    assert found["test"]["groups"][0]["estimates"]["graph"]["distractor_suppression@3"]["mean"] == 0.5


def test_nothing_is_chosen_by_what_the_baseline_cannot_win(judged, tmp_path, refused_here):
    out = ("--metric", "distractor_suppression@2", "--out", tmp_path / "s.json")
    message = refused_here("sweep", *judged, "--method", "linear", "--alpha", "0.9", "--baseline", "dense", *out)
    assert message == about("unsupported", "metric")
    assert not (tmp_path / "s.json").exists()


def test_without_a_baseline_it_is_refused(judged, refused_here):
    message = refused_here("eval", *judged, "--metric", "distractor_suppression@2")
    assert message == about("missing", "baseline", place="run 'dense', distractor_suppression@2")
