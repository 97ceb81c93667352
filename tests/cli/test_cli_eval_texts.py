"""``eval`` and ``sweep`` with passages' texts: answers in the first passages."""

import json

import pytest
from cli.cli_files import about, hopfuse, write_jsonl
from hopfuse.evaluate import in_test_half

ANSWERS = {"q1": "The Thames", "q2": "yes", "q3": "Ada"}  # q1 is in the tune half
TEXTS = {"river": "It is the Thames.", "sea": "Yes, salty.", "notes": "She wrote notes."}


def hits(*passages):
    return [{"id": p, "score": 1 - at / 10} for at, p in enumerate(passages)]


@pytest.fixture
def judged(tmp_path):
    questions = [{"id": id, "gold": ["river", "sea"], "hops": [["river"], ["sea"]]} for id in ANSWERS]
    write_jsonl(tmp_path / "gold.jsonl", [{**row, "answer": ANSWERS[row["id"]]} for row in questions])
    write_jsonl(tmp_path / "run.jsonl", [{"id": id, "hits": hits("sea", "river", "notes")} for id in ANSWERS])
    titles = {"notes": {"title": "Ada Lovelace"}}
    write_jsonl(tmp_path / "passages.jsonl", [{"id": p, "text": t, **titles.get(p, {})} for p, t in TEXTS.items()])
    return tmp_path


def arguments(folder):
    metrics = [part for k in (1, 2, 3) for part in ("--metric", f"answer_supported@{k}")]
    run = ("--run", f"r={folder / 'run.jsonl'}")
    return ["eval", "--qrels", folder / "gold.jsonl", *run, *metrics, "--metric", "hops_recovered@1"]


def test_answers_in_titles_and_texts(judged, tmp_path):
    output = hopfuse(*arguments(judged), "--passages", judged / "passages.jsonl", "--out", tmp_path / "r.json").stdout
    assert (
        "1 have no answer that a passage could contain (none, or yes or no); answer_supported leaves them out" in output
    )
    found = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    values = found["per_query"]["values"]["r"]
    assert [values[f"answer_supported@{k}"] for k in (1, 2, 3)] == [[0, None, 0], [1, None, 0], [1, None, 1]]
    assert values["hops_recovered@1"] == [0.5, 0.5, 0.5]
    assert found["groups"][0]["estimates"]["r"]["answer_supported@3"]["n"] == 2


@pytest.mark.parametrize("command", ["eval", "sweep"])
def test_missing_texts_and_answers_are_refused(refused_here, judged, command):
    metric = ("--metric", "answer_supported@1")
    runs = [part for name in ("a", "b") for part in ("--run", f"{name}={judged / 'run.jsonl'}")]
    args = (command, "--qrels", judged / "gold.jsonl", *runs, *metric)
    assert refused_here(*args) == about("missing", "texts")
    write_jsonl(judged / "few.jsonl", [{"id": "river", "text": "It is the Thames."}])
    line = refused_here(*args, "--passages", judged / "few.jsonl")
    assert line == about("missing", "passages", count="2 passages", example="sea")
    write_jsonl(judged / "titles.jsonl", [{"id": "river", "title": "River"}])
    assert refused_here(*args, "--passages", judged / "titles.jsonl") == about("missing", place="line 1")


def test_a_sweep_selects_by_answer_supported(judged, tmp_path):
    ids = [f"q{at}" for at in range(20)]
    write_jsonl(judged / "gold.jsonl", [{"id": id, "gold": ["sea"], "answer": "Thames"} for id in ids])
    orders = {"a": ("sea", "notes", "river"), "b": ("river", "sea", "notes")}
    for name, order in orders.items():
        write_jsonl(judged / f"{name}.jsonl", [{"id": id, "hits": hits(*order)} for id in ids])
    runs = [part for name in orders for part in ("--run", f"{name}={judged / name}.jsonl")]
    method = ("--method", "linear", "--alpha", "0.1,0.9", "--metric", "answer_supported@1")
    out = ("--passages", judged / "passages.jsonl", "--out", tmp_path / "s.json")
    hopfuse("sweep", "--qrels", judged / "gold.jsonl", *runs, *method, *out)
    found = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert found["sweep"]["selected"] == {"leg": "b"}
    means = {json.dumps(trial["options"]): trial["estimate"]["mean"] for trial in found["sweep"]["tune"]}
    assert means['{"leg": "a"}'] == 0
    assert [mean for options, mean in means.items() if "0.1" in options] == [1]
    assert len(found["test"]["per_query"]["ids"]) == int(in_test_half(ids).sum())
