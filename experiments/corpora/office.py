"""Questions about what was said in a season of The Office, over all its turns.

The turns come from a package. A language model that read fourteen episodes wrote the questions, in other words than the
turns' where there are others, and named the turns that answer them; each question was read against its turns. What is
retrieved for a question played no part.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path

from .sets import Question, Section, Set
from .sources import SourcePackage

TURNS = SourcePackage(
    "pypi",
    "schrutepy",
    "0.1.3",
    "377434f45676e488cf7e6d879757ac49c99bad322eda2021909ce83aab4216c3",
    "MIT (the package); the dialogue belongs to the series' owners: not to be passed on",
)
#: A line holds the numbers of the turns that answer a question, a tab, and the question.
QUESTIONS = Path(__file__).with_name("office_questions.tsv")
SEASON = "03"


def make(cache: Path) -> Set:
    """Return the questions over the season's turns."""
    folder = TURNS.unpack(cache)
    with next(folder.glob("*/data/schrute.csv")).open(encoding="utf-8", newline="") as file:
        return read(csv.DictReader(file), QUESTIONS.read_text(encoding="utf-8"))


def read(rows: Iterable[Mapping[str, str]], asked: str) -> Set:
    """Return the set of rows of the package's table and lines of questions."""
    sections: list[Section] = []
    at: dict[str, int] = {}
    for row in rows:
        text = " ".join(row["text"].split())
        if row["season"] == SEASON and text:
            at[row["index"]] = len(sections)
            sections.append(Section("", f"{row['character']}: {text}", f"{row['season']}-{row['episode']}"))
    questions = []
    for line in asked.splitlines():
        numbers, _, question = line.partition("\t")
        turns = numbers.split()
        kind = "one turn" if len(turns) == 1 else "several turns"
        questions.append(Question(f"office-{turns[0]}", kind, question, "", tuple(at[turn] for turn in turns)))
    return Set(
        "office",
        "Questions about what was said in a season of The Office; an episode is a conversation",
        (TURNS,),
        tuple(sections),
        tuple(questions),
        longest=None,
    )
