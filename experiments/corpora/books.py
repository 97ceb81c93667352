"""Read books of HTML pages, and ask for their sections by the headings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path

from .asking import answers, ask, bare, is_meaningful, is_question, key, once, sample, without
from .markup import html_parts
from .packages import Package
from .sets import Question, Section, Set

#: Classes, ids and roles of navigation, contents and marks in the pages of DocBook, Sphinx and others.
LEFT_OUT = frozenset(
    [
        *("toc", "list-of-tables", "list-of-figures", "navheader", "navfooter", "docnav", "banner", "index"),
        *("sphinxsidebar", "related", "navigation", "footer", "toctree-wrapper", "headerlink", "contents"),
    ]
)


#: A section under a heading that is no question may only announce what comes below it, if it is shorter.
LONG_ENOUGH = 40


@dataclass(frozen=True)
class Book:
    """The pages of a manual in a package, and what of them is no text."""

    name: str
    package: Package
    pages: str  #: a glob from the root of the package
    left_out: frozenset[str] = LEFT_OUT
    skipped: re.Pattern[str] = field(default=re.compile(r"$^"))  #: names of pages without text of their own


def set_of(name: str, about: str, books: Sequence[Book], cache: Path) -> Set:
    """Return the set of at most 400 questions for sections of books."""
    sections, questions = read(name, books, contents(books, cache), most=400)
    return Set(name, about, tuple(book.package for book in books), sections, questions)


def contents(books: Iterable[Book], cache: Path) -> dict[str, dict[str, str]]:
    """Return the pages of each book by name."""
    return {
        book.name: {
            str(page.relative_to(book.package.unpack(cache))): page.read_text(encoding="utf-8", errors="replace")
            for page in sorted(book.package.unpack(cache).glob(book.pages))
            if not book.skipped.search(page.name)
        }
        for book in books
    }


def read(
    name: str, books: Sequence[Book], pages: Mapping[str, Mapping[str, str]], most: int
) -> tuple[tuple[Section, ...], tuple[Question, ...]]:
    """Return the sections of books and at most so many questions, those that are headings first.

    No section has its heading. Its title is that of the book and the chapter or page. A text that stands in several
    pages is kept once.
    """
    sections: list[Section] = []
    texts: set[str] = set()
    found: list[tuple[str, int]] = []
    for book in books:
        for page, text in pages[book.name].items():
            if re.search(r'<html[^>]* lang="(?!en)', text):
                continue
            chapter = chapter_of(text)
            title = f"{book.name}: {chapter}" if chapter and chapter != book.name else book.name
            for part in html_parts(text, book.left_out):
                heading = bare(part.heading).rstrip(".")
                if not part.text or part.text in texts:
                    continue
                texts.add(part.text)
                if heading and heading != chapter and answers(part.text):
                    found.append((heading, len(sections)))
                sections.append(Section(title, part.text, f"{book.name}/{page}"))
    counts = Counter(word for section in sections for word in re.findall(r"[A-Za-z]+", section.text))
    asked = [
        Question(f"{name}-{key(f'{sections[at].document} {heading}')}", "faq", heading, "", (at,))
        for heading, at in found
        if is_question(heading) and is_meaningful(heading, 2)
    ]
    bare_ones = [
        Question(f"{name}-{key(f'{sections[at].document} {heading}')}", "heading", ask(heading, counts), "", (at,))
        for heading, at in found
        if not heading.endswith("?") and is_meaningful(heading, 3) and len(sections[at].text.split()) >= LONG_ENOUGH
    ]
    both = once([*asked, *bare_ones])
    faq = sample((row for row in both if row.type == "faq"), most)
    rest = sample((row for row in both if row.type == "heading"), most - len(faq))
    kept = sorted([*faq, *rest], key=lambda row: row.gold)
    headings = {at: heading for heading, at in found}
    return tuple(without(sections, [headings[row.gold[0]] for row in kept])), tuple(kept)


def chapter_of(text: str) -> str:
    """Return the chapter that a page is part of, or the title of the page."""
    up = re.search(r'<link rel="up" href="[^"]*" title="((?:Chapter|Part|Appendix) [^"]*)"', text)
    title = re.search(r"<title[^>]*>(.*?)</title>", text, re.S | re.I)
    return bare(re.split(r" [—–-] ", unescape(up[1] if up else title[1] if title else ""))[0])
