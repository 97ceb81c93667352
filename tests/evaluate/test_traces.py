import hopfuse as hf
import pytest
from hopfuse.evaluate import PassageNames, Qrels, Run, differing_queries, evaluate, query_trace, traces


@pytest.fixture
def judged():
    names = PassageNames()
    a, b, c, d = (names.number(name) for name in "abcd")
    names.set_title("b", "The B")
    qrels = Qrels(
        ["q0", "q1", "q2"],
        [[a, b], [c], [d]],
        hops=[[[b], [a]], [], []],
        questions=["Who?", "", "When?"],
        answers=[["Ada"], [], ["noon"]],
    )
    dense = Run(hf.Hits([[a, c], [c, a], [a, b]], [[0.75, 0.5], [0.5, 0.25], [0.5, 0.25]]), ["ada", None, "noon"])
    graph = Run(hf.Hits([[b, a, c, d], [c, a, b, d], [a, d, b, c]], [[4.0, 3.0, 2.0, 1.0]] * 3))
    return qrels, {"dense": dense, "graph": graph}, names


def test_ranks_scores_hops_and_first_hits(judged):
    trace = query_trace(0, *judged)
    assert (trace["id"], trace["question"], trace["hops"]) == ("q0", "Who?", 2)
    second = {"id": "a", "title": None, "hop": 2}
    assert trace["gold"] == [
        {"id": "b", "title": "The B", "hop": 1, "runs": {"dense": None, "graph": {"rank": 1, "score": 4.0}}},
        {**second, "runs": {"dense": {"rank": 1, "score": 0.75}, "graph": {"rank": 2, "score": 3.0}}},
    ]
    assert [hit["id"] for hit in trace["first"]["graph"]] == ["b", "a", "c"]
    assert trace["first"]["dense"][1] == {"id": "c", "title": None, "score": 0.5}
    assert (trace["accepted"], trace["answers"]) == (["Ada"], {"dense": "ada"})


def test_unknown_hops_and_runs_without_answers(judged):
    qrels, runs, names = judged
    trace = query_trace(1, qrels, {"graph": runs["graph"]}, names, first=1)
    assert trace["hops"] is None
    assert trace["gold"][0]["hop"] is None
    assert len(trace["first"]["graph"]) == 1
    assert "answers" not in trace


def test_the_queries_that_differ(judged):
    qrels, runs, _names = judged
    result = evaluate(qrels, runs, ["hit@1", "recall@2"], baseline="dense")
    # q0: graph has both passages, dense one; q1: the same; q2: graph alone has the passage, second.
    assert differing_queries(result) == ("q0", "q2")
    assert list(traces(differing_queries(result), *judged)) == ["q0", "q2"]
    assert differing_queries(evaluate(qrels, runs, ["hit@1", "recall@2"])) == ()
