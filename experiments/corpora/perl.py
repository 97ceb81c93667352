"""Perl's FAQ over its manual pages."""

from __future__ import annotations

import re
from pathlib import Path

from .asking import answers, is_question, key, once, without
from .markup import pod_parts
from .packages import Package
from .sets import Question, Section, Set

DOC = Package(
    "debian",
    "perl-doc",
    "5.36.0-7+deb12u4",
    "f4269cff4576d6f02a6756df842988e58451c7e945b08517dd235531b24e48f8",
    "GPL-1+ or Artistic",
)
#: Lists of contents, histories of releases, licences and pages in other languages.
LEFT_OUT = re.compile(r"perl(.*delta|toc|faq|hist|artistic|gpl|cn|jp|ko|tw|modlib|uniprops|api|intern)$")


def make(cache: Path) -> Set:
    """Return the questions of perlfaq1 to perlfaq9 and all manual pages."""
    pages = sorted(DOC.unpack(cache).glob("usr/share/perl/*/pod/perl*.pod"))
    return read({page.stem: page.read_text(encoding="utf-8", errors="replace") for page in pages})


def read(pages: dict[str, str]) -> Set:
    """Return the set of manual pages by name."""
    sections: list[Section] = []
    questions: list[Question] = []
    for name, page in pages.items():
        if LEFT_OUT.match(name):
            continue
        title = name
        for part in pod_parts(page, entries=name in ("perlfunc", "perlvar")):
            if part.heading in ("AUTHOR AND COPYRIGHT", "AUTHOR", "AUTHORS", "VERSION", "COPYRIGHT"):
                continue
            if part.heading == "NAME":
                title = part.text.partition("\n")[0]
                continue
            asked = name.startswith("perlfaq") and part.level == 2 and is_question(part.heading)
            if asked and answers(part.text):
                row = f"perlfaq-{key(part.heading)}"
                questions.append(Question(row, "faq", part.heading, "", (len(sections),)))
            text = part.text if name.startswith("perlfaq") else f"{part.heading}\n\n{part.text}".strip()
            if part.text:
                sections.append(Section(title, text, name))
    questions = once(questions)
    return Set(
        "perl",
        "Perl's FAQ over its manual pages: headings of perlfaq1 to perlfaq9",
        (DOC,),
        tuple(without(sections, [row.question for row in questions])),
        tuple(questions),
    )
