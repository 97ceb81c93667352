import json

import numpy as np
import pytest
from cli.cli_files import hopfuse, write_jsonl
from hopfuse import Index, ppr_topk
from hopfuse.evaluate import error_correlation

# In the tiny index p4 has no edge, and so has Turing but for p5: components {p0, p1, p2, p3 and their entities},
# {p4}, {p5, Turing}.
QUESTIONS = [
    {"id": "connected", "text": "What of Ada?", "gold": ["p0", "p3"]},
    {"id": "apart", "text": "What of Turing?", "gold": ["p5", "p0"]},
    {"id": "seedless", "text": "What of nothing?", "gold": ["p4"]},
    {"id": "unjudged", "text": "What of London?"},
]


@pytest.fixture
def asked(index, files, tmp_path):
    write_jsonl(tmp_path / "questions.jsonl", QUESTIONS)
    write_jsonl(tmp_path / "gold.jsonl", QUESTIONS[:3])
    np.save(tmp_path / "vectors.npy", np.load(files / "query_vectors.npy")[:4])
    inputs = ("--questions", tmp_path / "questions.jsonl", "--vectors", tmp_path / "vectors.npy")
    return ["diagnose", index, *inputs, "--k", 3]


def test_every_number_by_hand(asked, index, tmp_path):
    found = json.loads(hopfuse(*asked, "--qrels", tmp_path / "gold.jsonl", "--json").stdout)
    graph = Index.open(index).graph
    assert found["graph"] == {
        "passages": 6,
        "entities": 6,
        "components": 3,
        "nodes in the largest": 9 / 12,
        "passages without an edge": 1,
        "entities without an edge": 0,
    }
    assert found["names"]["names of several entities"] == 0
    assert found["seeds"] == {
        "questions": 4,
        "with seeds": 3 / 4,
        "seeds of a question, median": 1.0,
        "all gold passages connected to a seed": 1 / 3,
    }
    assert (found["mass"]["walks"], found["mass"]["hubs"]) == (3, 1)
    assert 0 < found["mass"]["hubs' share of the mass, mean"] < 1
    # The walk for Turing has two nodes, the others at most nine.
    assert 1 <= found["mass"]["effective nodes, median"] <= 9
    assert [row["size"] for row in found["pools"]] == [5, 6]
    assert found["pools"][1] == {"size": 6, "dense": 0.0, "graph": (0 + 1 / 2 + 1) / 3, "either": 0.0}
    legs = found["legs"]
    assert legs["full_support@3 judged"] == 3
    assert legs["both"] + legs["dense alone"] + legs["graph alone"] + legs["neither"] == 3
    # Walks find p0 alone of Ada's component within 3 hits, or p0 and p3.
    ada = ppr_topk(graph, [{6: 1.0}], 3, among=np.arange(6)).ids[0].tolist()
    assert legs["both"] + legs["graph alone"] == int({0, 3} <= set(ada))


def test_without_judgements_only_what_needs_none(asked):
    found = json.loads(hopfuse(*asked, "--json").stdout)
    assert set(found) == {"graph", "names", "seeds", "mass", "legs"}
    assert set(found["legs"]) == {"overlap@3, mean"}
    assert "all gold passages connected to a seed" not in found["seeds"]


def test_tables(asked, tmp_path):
    said = hopfuse(*asked, "--qrels", tmp_path / "gold.jsonl").stdout
    for line in ("components", "with seeds", "entropy in bits, median", "correlation of errors", "gold lost"):
        assert line in said
    assert "0.750" in said


def test_legs_that_always_agree_have_no_correlation():
    assert np.isnan(error_correlation(np.ones(3), np.ones(3)))


def test_questions_none_of_which_has_a_seed(asked, files, tmp_path):
    write_jsonl(tmp_path / "questions.jsonl", [{"id": "a", "text": "What of nothing?"}] * 4)
    found = json.loads(hopfuse(*asked, "--json").stdout)
    assert found["seeds"]["with seeds"] == 0
    assert found["mass"]["walks"] == 0
    assert "entropy in bits, median" not in found["mass"]
    assert found["legs"]["overlap@3, mean"] == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("--encoder", "wordllama"), "--vectors or --encoder, and not both"),
        (("--pool", 2), "--k is 3, and the lists are 2 long"),
        (("--qrels", "others"), "judges none of the 4 questions, such as 'connected'"),
        (("--qrels", "strange"), "has gold passages that the index does not have: 1, one 'p99'"),
    ],
)
def test_what_cannot_be_diagnosed_is_said(refused_here, asked, tmp_path, change, said):
    write_jsonl(tmp_path / "others.jsonl", [{"id": "x", "gold": ["p1"]}])
    write_jsonl(tmp_path / "strange.jsonl", [{"id": "apart", "gold": ["p1", "p99"]}])
    change = (change[0], tmp_path / f"{change[1]}.jsonl") if change[0] == "--qrels" else change
    assert said in refused_here(*asked, *change)


def test_no_questions(refused_here, index, tmp_path):
    write_jsonl(tmp_path / "none.jsonl", [])
    np.save(tmp_path / "none.npy", np.zeros((0, 8), np.float32))
    inputs = ("--questions", tmp_path / "none.jsonl", "--vectors", tmp_path / "none.npy", "--k", 3)
    assert "has no questions" in refused_here("diagnose", index, *inputs)
