"""FTS5 against SQLite's documented formula in float64: scores, ties, hostile questions, files, refusals."""

from __future__ import annotations

import math
import re
import sqlite3
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from compare import assert_hits_equal, assert_hits_wellformed
from hopfuse.errors import InputError
from hopfuse.lexical import FTS5
from hopfuse.text import RULE
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

TEXTS = [
    "Ada Lovelace wrote notes on the Analytical Engine.",
    "Charles Babbage designed engines; the engine was never built.",
    "",
    "The sea, the sea!",
    "The Thames flows through London to the sea.",
    "The sea, the sea!",
    "École des Ponts, naïve cafés",
]
QUESTIONS = ["Who designed the engine?", "sea", "sea SEA London", "", "zzz", 'NOT "sea" OR (* NEAR', "ecole cafe"]


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower().replace("é", "e").replace("ï", "i"))


def scores(texts: list[str], question: str) -> dict[int, float]:
    """k1 = 1.2, b = 0.75; each word of the question once."""
    rows = [words(text) for text in texts]
    mean = sum(map(len, rows)) / len(rows)
    found: dict[int, float] = {}
    for word in dict.fromkeys(words(question)):
        holding = [i for i, row in enumerate(rows) if word in row]
        idf = math.log((len(rows) - len(holding) + 0.5) / (len(holding) + 0.5))
        for i in holding:
            tf = rows[i].count(word)
            part = tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(rows[i]) / mean))
            found[i] = found.get(i, 0.0) + (idf if idf > 0 else 1e-6) * part
    return found


def check(texts: list[str], questions: list[str], k: int) -> None:
    hits = FTS5.build(texts, tokenizer="unicode61").search(questions, k)
    assert_hits_wellformed(hits)
    for b, question in enumerate(questions):
        expected = scores(texts, question)
        row = hits.row(b)
        assert len(row) == min(k, len(expected))
        ordered = sorted(expected.values(), reverse=True)[:k]
        assert [score for _, score in row] == pytest.approx(ordered, rel=1e-6)
        for passage, score in row:
            assert score == pytest.approx(expected[passage], rel=1e-6)


@pytest.mark.parametrize("k", [0, 1, 3, 20])
def test_scores_are_the_formulas(k: int) -> None:
    check(TEXTS, QUESTIONS, k)


@pytest.mark.parametrize("k", [10**8, 2**31 - 1])
def test_k_beyond_the_passages_takes_no_more_than_they_do(k: int) -> None:
    found = LEG.search(QUESTIONS, k)
    assert found.shape == (len(QUESTIONS), len(TEXTS))
    assert_hits_equal(found, LEG.search(QUESTIONS, len(TEXTS)))


@given(
    st.lists(st.lists(st.sampled_from(["sea", "sky", "red", "Sea", "not", "or", "near"]), max_size=6), min_size=1),
    st.lists(st.lists(st.sampled_from(["sea", "RED", "and", "near", "or"]), max_size=4), min_size=1, max_size=4),
)
def test_scores_of_drawn_texts(texts: list[list[str]], questions: list[list[str]]) -> None:
    check([" ".join(row) for row in texts], [" ".join(row) for row in questions], 5)


@pytest.mark.parametrize("k", [1, 3, 40])
@pytest.mark.parametrize("spare", [0, 1, 1000])
def test_the_best_are_those_of_all(k: int, spare: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many passages tie, exactly or once rounded, about where SQLite's list ends."""
    draw = np.random.default_rng(k)
    rows = draw.choice(["the", "the", "the", "of", "sea", "sky"], (60, 6))
    texts = [" ".join(row[: 1 + at % 6]) for at, row in enumerate(rows)]
    leg, asked = FTS5.build(texts), ["the sea", "of the", "the", "sky sea of the"]
    every = leg.search(asked, len(texts))
    monkeypatch.setattr("hopfuse.lexical.fts5.EXTRA_HITS", spare)
    found = leg.search(asked, k)
    assert found.ids.tolist() == every.ids[:, :k].tolist()
    assert found.scores.tolist() == every.scores[:, :k].tolist()


LEG = FTS5.build(TEXTS)


def test_a_part_reads_only_its_own_passages() -> None:
    read: list[str] = []
    leg = FTS5.build([*TEXTS, *(f"passage {at}" for at in range(500))])
    leg._connection.set_trace_callback(read.append)
    part = leg.part(np.array([1, 3, 5]))
    assert part.search(["sea", "engine"], 9).ids.tolist() == [[1, 2, -1], [0, -1, -1]]
    texts = [statement for statement in read if "SELECT text" in statement]
    assert texts == [f"SELECT text FROM passages_fts5 WHERE rowid = {row}" for row in (1, 3, 5)]


@given(st.text())
def test_no_question_is_a_command(question: str) -> None:
    found = LEG.search([question, question + " sea"], 9)
    assert_hits_wellformed(found)
    assert {3, 5} <= {passage for passage, _ in found.row(1)}
    assert found.row(0) == LEG.search([question], 9).row(0)


def test_equal_passages_stand_by_id_and_words_are_stemmed() -> None:
    assert [passage for passage, _ in LEG.search(["sea"], 2).row(0)] == [3, 5]
    assert [passage for passage, _ in LEG.search(["engine"], 9).row(0)] == [1, 0]
    assert LEG.num_passages == len(TEXTS)
    assert repr(LEG) == "FTS5(passages=7)"


def test_accents_and_case_are_dropped_however_they_are_written() -> None:
    leg = FTS5.build(["E\u0301cole moderne", "la mer", "école"], tokenizer="unicode61")
    once = leg.search(["école"], 3)
    assert [passage for passage, _ in once.row(0)] == [2, 0]
    for question in ("e\u0301cole", "école ecole", "ÉCOLE Ecole"):
        assert_hits_equal(leg.search([question], 3), once)


SCRIPTS = [
    "艾瑞克能打开哪里？",
    "दिल्ली भारत की राजधानी है",
    "Daten\u00adbank und ﬁle",
    "서울의 강",
    "ไปไหน",
    "مُحَمَّد",
    "Le société, Łódź",
]


@pytest.mark.parametrize("tokenizer", ["porter unicode61", "unicode61", "ascii"])
def test_words_of_any_script(tokenizer: str) -> None:
    leg = FTS5.build([unicodedata.normalize("NFD", text) for text in SCRIPTS], tokenizer=tokenizer)
    asked = {
        "瑞克": [0],
        "राजधानी": [1],
        "datenbank": [2],
        "FILE": [2],
        "서울": [3],
        "ไหน": [4],
        "محمد": [5],
        "Lodz SOCIETE": [6],
    }
    found = leg.search([*asked, "दल"], 9)
    rows = [[passage for passage, _ in found.row(b)] for b in range(len(asked) + 1)]
    assert rows == [*asked.values(), []]
    part = leg.part(np.array([0, 3]))
    assert [passage for passage, _ in part.search(["서울"], 9).row(0)] == [1]
    assert_hits_equal(part.search(["서울의 瑞克"], 9), FTS5.build([SCRIPTS[0], SCRIPTS[3]]).search(["서울의 瑞克"], 9))


def test_trigrams_find_parts_of_words_in_any_script() -> None:
    found = FTS5.build(SCRIPTS, tokenizer="trigram").search(["瑞克能打开", "TENBANK", "odz"], 9)
    assert [[passage for passage, _ in found.row(b)] for b in range(3)] == [[0], [2], [6]]


def test_a_database_of_before_is_read_by_its_rule(tmp_path: Path) -> None:
    """hopfuse 0.1.0 stored texts composed, and no rule."""
    file = tmp_path / "words.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE VIRTUAL TABLE passages_fts5 USING fts5(text, tokenize='porter unicode61')")
        connection.executemany("INSERT INTO passages_fts5(rowid, text) VALUES (?, ?)", enumerate(SCRIPTS))
    connection.close()
    asked = ["艾瑞克能打开哪里", "瑞克", "bank", "datenbank", "société"]
    for leg in (FTS5(file), FTS5(file).part(np.arange(len(SCRIPTS)))):
        found = leg.search(asked, 9)
        assert [[passage for passage, _ in found.row(b)] for b in range(5)] == [[0], [], [2], [], [6]]
    with sqlite3.connect(file) as connection:
        connection.execute(f"PRAGMA user_version = {RULE + 1}")
    connection.close()
    with refused(InputError, "version", "rule", given=RULE + 1):
        FTS5(file)


def test_threads_ask_one_database() -> None:
    expected = LEG.search(QUESTIONS, 5)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: LEG.search(QUESTIONS, 5), range(32)):
            assert_hits_equal(found, expected)


def test_a_file_is_written_whole_and_opened_again(tmp_path: Path) -> None:
    file = tmp_path / "words ?#.sqlite"
    built = FTS5.build(TEXTS, path=file)
    opened = FTS5(file)
    assert_hits_equal(opened.search(QUESTIONS, 5), built.search(QUESTIONS, 5))
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    before = file.read_bytes()
    with refused(InputError, "exists", "path"):
        FTS5.build(["other"], path=file)
    assert file.read_bytes() == before
    (tmp_path / f"{file.name}.partial").write_text("mine")
    FTS5.build(["other"], path=tmp_path / "words ?#.sqlite.2")
    assert (tmp_path / f"{file.name}.partial").read_text() == "mine"
    with refused(InputError, "missing", "path"):
        FTS5.build(["other"], path=tmp_path / "absent" / "words.sqlite")
    opened.close()
    with pytest.raises(sqlite3.ProgrammingError):
        opened.search(["sea"], 1)


def test_any_other_database_is_refused(tmp_path: Path) -> None:
    with refused(InputError, "missing", "path"):
        FTS5(tmp_path / "absent.sqlite")
    text = tmp_path / "text.sqlite"
    text.write_text("no database, but long enough to be read as one " * 20)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE passages(text)")
    connection.close()
    fake = tmp_path / "fake.sqlite"
    with sqlite3.connect(fake) as connection:
        connection.execute("CREATE TABLE passages_fts5_docsize(id)")
    connection.close()
    for file in (text, other, fake):
        with refused(InputError, "damaged", "path"):
            FTS5(file)


@pytest.mark.parametrize(
    ("texts", "options", "refusal"),
    [
        ("one text", {}, ("type", "texts")),
        (["a", 3], {}, ("type", "texts[1]")),
        (["a"], {"tokenizer": "words"}, ("choice", "tokenizer")),
        (["a"], {"tokenizer": "x', content='"}, ("choice", "tokenizer")),
        (["a"], {"tokenizer": 3}, ("choice", "tokenizer")),
        (["a"], {"tokenizer": "unicode61\0"}, ("choice", "tokenizer")),
        (["lone \ud800"], {}, ("syntax", "texts[0]")),
    ],
)
def test_bad_texts_and_options_are_refused(
    texts: object, options: dict[str, str], refusal: tuple[str, str | None]
) -> None:
    with refused(InputError, *refusal):
        FTS5.build(texts, **options)  # type: ignore[arg-type]


def test_bad_questions_are_refused() -> None:
    with pytest.raises(InputError):
        LEG.search("sea", 1)
    with pytest.raises(InputError):
        LEG.search(["sea"], -1)
    assert LEG.search([], 2).shape == (0, 2)
    assert np.isneginf(LEG.search(["zzz"], 2).scores).all()
