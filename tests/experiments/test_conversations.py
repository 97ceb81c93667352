"""Sets of conversations: turns, questions and answers of small texts; the real packages in the full tier."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from pathlib import Path

import pytest

from experiments.corpora import office, propellor
from experiments.corpora.packages import UnavailableError
from experiments.corpora.sources import SourcePackage, source_lines


def comment(who: str, date: str, text: str, name: str = "username") -> str:
    """Return a comment as the wiki stores it."""
    return f'[[!comment format=mdwn\n {name}="{who}"\n subject="""re"""\n date="{date}"\n content="""\n{text}\n"""]]\n'


LONG = "the reason is in the way that it was built, so build it again with the other flag and look at what it prints"
PAGES = {
    "forum/Why_is_it_slow__63__.mdwn": "It takes an hour. Thanks.\n",
    "forum/Why_is_it_slow__63__/comment_2_b._comment": comment(
        "ann@x1",
        "2020-01-02T10:00:00Z",
        "> The reason\nI did so. Where does the program keep the file that it prints? Here:\n\n    is this code?",
    ),
    "forum/Why_is_it_slow__63__/comment_1_a._comment": comment(
        "http://joeyh.name/", "2020-01-01T10:00:00Z", f'Because [[the docs|docs/x]] say \\"so\\": {LONG}.'
    ),
    "forum/Why_is_it_slow__63__/comment_3_c._comment": comment("bob", "2020-01-03T10:00:00Z", LONG, "nickname"),
    "todo/merge_request.mdwn": "Please merge my branch. --[[ann]]\n\n> [[done]], thanks --[[Joey]]\n\n>> Why?\n",
    "todo/hello.mdwn": f"Could the next release greet the people who use it? --[[ann]]\n\n> No, {LONG}. --[[Joey]]\n",
}


def test_threads_have_their_turns_in_order_with_speakers_and_without_marks():
    slow, merge, hello = propellor.threads(PAGES)
    assert (slow.title, merge.title, hello.title) == ("Why is it slow?", "merge request", "hello")
    assert [turn.speaker for turn in slow.turns] == ["somebody", "joey", "ann", "bob"]
    assert slow.turns[1].text == f'Because the docs say "so": {LONG}.'
    assert slow.turns[2].text.startswith("I did so.")
    assert slow.turns[2].asks == "Where does the program keep the file that it prints?"
    assert [(turn.speaker, turn.text) for turn in merge.turns] == [
        ("ann", "Please merge my branch."),
        ("joey", "done, thanks"),
        ("somebody", "Why?"),
    ]


def test_the_turns_that_ask_are_taken_out_and_the_answers_are_gold():
    made = propellor.read(PAGES)
    asked = {row.question: row for row in made.questions}
    assert {question: row.type for question, row in asked.items()} == {
        "Why is it slow?": "opening",
        "Why is it slow: Where does the program keep the file that it prints?": "follow-up",
        "hello: Could the next release greet the people who use it?": "opening",
    }
    texts = [section.text for section in made.sections]
    assert not any("It takes an hour" in text or "I did so" in text or "greet" in text for text in texts)
    assert "ann: Please merge my branch." in texts  # nobody answered it
    found = {question: [texts[i].partition(":")[0] for i in row.gold] for question, row in asked.items()}
    assert [*found.values()] == [["joey"], ["bob"], ["joey"]]
    assert all(section.title == "" for section in made.sections)
    again = propellor.read({path: page for path, page in PAGES.items() if not path.startswith("todo/")})
    assert {row.id for row in again.questions} < {row.id for row in made.questions}  # other pages do not change ids


def test_a_season_is_a_memory_of_turns_and_its_questions_name_them():
    rows = [
        {"index": "7", "season": "02", "episode": "01", "character": "Ann", "text": "Not here."},
        {"index": "8", "season": "03", "episode": "01", "character": "Ann", "text": "I bought\n a boat."},
        {"index": "9", "season": "03", "episode": "01", "character": "Bob", "text": " "},
        {"index": "10", "season": "03", "episode": "02", "character": "Bob", "text": "It was blue."},
    ]
    made = office.read(rows, "8\tWhat did Ann buy?\n10 8\tWhich colour had it?\n")
    assert [(section.text, section.document) for section in made.sections] == [
        ("Ann: I bought a boat.", "03-01"),
        ("Bob: It was blue.", "03-02"),
    ]
    assert [(row.id, row.type, row.gold) for row in made.questions] == [
        ("office-8", "one turn", (0,)),
        ("office-10", "several turns", (1, 0)),
    ]


def test_the_questions_about_the_season_are_complete_and_asked_once():
    lines = [line.split("\t") for line in office.QUESTIONS.read_text(encoding="utf-8").splitlines()]
    assert len(lines) >= 400
    assert all(len(line) == 2 for line in lines)
    assert all(question.endswith("?") and numbers.replace(" ", "").isdigit() for numbers, question in lines)
    assert max(Counter(question for _, question in lines).values()) == 1
    assert max(Counter(numbers.split()[0] for numbers, _ in lines).values()) == 1  # it is the question's id


def test_lists_of_debians_packages_become_lists_of_sources():
    assert source_lines("Types: deb deb-src\nURIs: http://a/debian\n") == "Types: deb-src\nURIs: http://a/debian\n"
    assert source_lines("# deb x\ndeb http://a/debian main\n") == "# deb x\ndeb-src http://a/debian main\n"


def test_a_source_is_fetched_once_and_refused_with_the_reason(tmp_path, monkeypatch):
    (tmp_path / "p-1").mkdir()
    (tmp_path / "p-1" / "a.txt").write_text("text", encoding="utf-8")
    archive = tmp_path / "p_1.orig.tar.xz"
    os.system(f"tar -C {tmp_path} -cJf {archive} p-1")
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    programs = tmp_path / "bin"
    programs.mkdir()

    def apt_get(does: str) -> None:
        (programs / "apt-get").write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
        (programs / "apt-get").chmod(0o755)

    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    apt_get(f'case "$*" in *" source "*) cp {archive} .;; esac')
    package = SourcePackage("debian", "p", "1-1", checksum, "MIT")
    assert (package.unpack(tmp_path / "cache") / "p-1" / "a.txt").read_text(encoding="utf-8") == "text"
    with pytest.raises(UnavailableError, match="pinned"):
        SourcePackage("debian", "p", "1-1", "0" * 64, "MIT").unpack(tmp_path / "cache")
    apt_get("echo 'no such source' >&2; exit 100")
    with pytest.raises(UnavailableError, match="no such source"):
        SourcePackage("debian", "p", "2-1", "0" * 64, "MIT").unpack(tmp_path / "cache")
    assert package.unpack(tmp_path / "cache").is_dir()  # without the client


@pytest.mark.full
@pytest.mark.parametrize(("make", "questions", "turns"), [(office.make, 419, 6353), (propellor.make, 221, 938)])
def test_the_real_packages_make_the_sets(make, questions, turns, tmp_path: Path):
    try:
        made = make(tmp_path)
    except UnavailableError as error:
        pytest.skip(str(error))
    assert (len(made.questions), len(made.sections)) == (questions, turns)
    assert len({row.id for row in made.questions}) == questions
    assert len({section.document for section in made.sections}) > 20
    assert all(": " in section.text for section in made.sections)
