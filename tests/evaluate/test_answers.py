import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.evaluate import Qrels, Run, answer_supported, answer_values, exact_match, normalise_answer, token_f1
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


@pytest.mark.parametrize(
    ("answer", "accepted"),
    [
        ("Zu\u0308rich", "Zürich"),
        ("Straße", "STRASSE"),
        ("Daten\u00adbank", "Datenbank"),
        ("東京。", "東京"),
        ("दिल्ली।", "दिल्ली"),
        ("１９１４", "1914"),
    ],
)
def test_spellings_of_an_answer_are_equal(answer: str, accepted: str) -> None:
    assert exact_match(answer, [accepted]) == token_f1(answer, [accepted]) == 1.0


@pytest.mark.parametrize(
    ("answer", "accepted", "expected"),
    [("東京都", "東京", 0.8), ("दिल्ली", "दल्ल", 0.0), ("서울 시", "서울시", 0.0), ("ไทย", "ไท", 0.8)],
)
def test_scripts_without_spaces_are_compared_by_characters(answer: str, accepted: str, expected: float) -> None:
    assert token_f1(answer, [accepted]) == pytest.approx(expected)


def test_an_answer_is_found_within_a_text_without_spaces() -> None:
    qrels = Qrels(["a", "b", "c"], [[], [], []], answers=[["艾瑞克"], ["瑞能"], ["art"]])
    hits = hf.Hits([[0], [0], [1]], [[1.0], [1.0], [1.0]])
    assert answer_supported(hits, qrels, 1, ["艾瑞克能打开哪里", "the party"]).tolist() == [1.0, 0.0, 0.0]
