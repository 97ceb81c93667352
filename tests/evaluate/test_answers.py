import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.evaluate import Qrels, Run, answer_values, exact_match, normalise_answer, token_f1
from hopfuse.types import Hits
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The Beatles", "beatles"),
        ("  a   theatre,  an anthem ", "theatre anthem"),
        ("U.S.A.", "usa"),
        ("rock'n'roll", "rocknroll"),
        ("the", ""),
        ("A-Team", "ateam"),
        ("Zoë’s", "zoë’s"),
    ],
)
def test_normalised(answer, expected):
    assert normalise_answer(answer) == expected


def test_exact_match_takes_the_best_of_the_accepted():
    assert exact_match("an  Engine.", ["motor", "Engine"]) == 1.0
    assert exact_match("engines", ["Engine"]) == 0.0
    assert exact_match("", ["the"]) == 1.0


@pytest.mark.parametrize(
    ("answer", "accepted", "expected"),
    [
        ("keyboard keys", ["keyboard function keys"], 2 * 1 * (2 / 3) / (1 + 2 / 3)),
        ("to be or not to be", ["to be"], 2 * (2 / 6) * 1 / (2 / 6 + 1)),
        ("be be", ["be"], 2 * (1 / 2) / (3 / 2)),
        ("London", ["Paris", "London bridge"], 2 * 1 * (1 / 2) / (3 / 2)),
        ("Paris", ["London"], 0.0),
        ("the", ["a"], 1.0),
        ("the", ["London"], 0.0),
    ],
)
def test_token_f1_by_hand(answer, accepted, expected):
    assert token_f1(answer, accepted) == pytest.approx(expected, rel=1e-15)


@given(st.text(), st.text())
def test_f1_is_symmetric_and_one_where_they_match(a, b):
    assert token_f1(a, [b]) == token_f1(b, [a])
    assert 0 <= token_f1(a, [b]) <= 1
    assert token_f1(a, [a]) == exact_match(a, [a]) == 1
    assert exact_match(a, [b]) <= token_f1(a, [b])


@pytest.mark.parametrize(("accepted", "code"), [([], "empty"), ("yes", "type")])
def test_no_accepted_answer_is_refused(accepted, code):
    with refused(InputError, code, "accepted"):
        exact_match("yes", accepted)


def test_values_per_query():
    q = Qrels(["a", "b", "c"], [[], [], []], answers=[["no"], ["yes"], []])
    np.testing.assert_array_equal(answer_values(token_f1, ["No!", None, "x"], q), [1, 0, np.nan])
    with refused(InputError, "length", "answers"):
        answer_values(token_f1, ["x", "y"], q)


def test_a_run_has_an_answer_for_every_row():
    with refused(InputError, "length", "answers"):
        Run(Hits([[1], [2]], [[1.0], [1.0]]), ["x"])
    run = Run(Hits([[1], [2]], [[1.0], [1.0]]), ["x", None]).take([1, 0])
    assert (run.answers, run.hits.ids.tolist()) == ([None, "x"], [[2], [1]])
