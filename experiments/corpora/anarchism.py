"""An Anarchist FAQ: politics and history, in answers of up to thousands of words."""

from __future__ import annotations

import re
from pathlib import Path

from .asking import answers, bare, is_question, key, once, sample, without
from .markup import html_parts
from .packages import Package
from .sets import Question, Section, Set

FAQ = Package(
    "debian", "anarchism", "15.3-3", "cf21c10948b00e923c62eb31c39a3390413fa26c5ee0e3b925feb0ec7fe42948", "GPL-2"
)


def make(cache: Path) -> Set:
    """Return the questions of all sections and appendices."""
    pages = [
        *sorted(FAQ.unpack(cache).glob("usr/share/doc/anarchism/html/sec*.html")),
        *sorted(FAQ.unpack(cache).glob("usr/share/doc/anarchism/html/append*.html")),
    ]
    return read({page.stem: page.read_text(encoding="utf-8", errors="replace") for page in pages})


def read(pages: dict[str, str]) -> Set:
    """Return the set of the FAQ's pages by name."""
    sections: list[Section] = []
    questions: list[Question] = []
    for name, page in pages.items():
        for part in html_parts(page):
            heading = bare(re.split(r"\s[A-J]\.\d+\.\d+\s", part.heading)[0])  # some contain a list of contents
            if not part.text:
                continue
            if is_question(heading) and answers(part.text):
                row = f"anarchism-{key(heading)}"
                questions.append(Question(row, "faq", heading, "", (len(sections),)))
            sections.append(Section("An Anarchist FAQ", part.text, name))
    questions = sample(once(questions), 400)
    return Set(
        "anarchism",
        "An Anarchist FAQ: politics and history, headings that are questions",
        (FAQ,),
        tuple(without(sections, [row.question for row in questions])),
        tuple(questions),
        longest=400,  # of the median answer's 2,000 words
    )
