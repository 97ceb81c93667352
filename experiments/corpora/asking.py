"""Make questions of headings, and take the headings out of the texts that answer them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from .markup import one_line
from .sets import Question, Section

#: A shorter text says too little to be an answer.
SHORTEST = 15
_NUMBER = re.compile(r"^(?:(?:chapter|appendix|section|part)\s+)?(?:[A-Z]?\d+|[A-Z])(?:\.\d+)*\.?\s+(?=\S)", re.I)
_POINTER = re.compile(r"^(?:\(.{0,60}\)\s*)?(?:please |for .{0,80}, )?(?:see|refer to|read|consult|cf)\b", re.I)


def bare(heading: str) -> str:
    """Return a heading without its number and marks of links."""
    return _NUMBER.sub("", one_line(heading).strip(" -–¶#")).strip(" -–")


def is_question(heading: str) -> bool:
    """Return whether a heading is a question of at least three words."""
    return heading.endswith("?") and len(heading.split()) >= 3


def answers(text: str) -> bool:
    """Return whether a text is long enough to be an answer, and more than a reference to another place."""
    count = len(text.split())
    return count >= SHORTEST and not (count < 40 and _POINTER.search(text))


def key(text: str, digits: int = 8) -> str:
    """Return a short name of a text, which does not depend on where it stands."""
    return hashlib.sha256(one_line(text).casefold().encode()).hexdigest()[:digits]


def sample(questions: Iterable[Question], most: int) -> list[Question]:
    """Return at most so many questions, drawn by the hash of their ids, in their order."""
    rows = list(questions)
    kept = {row.id for row in sorted(rows, key=lambda row: key(f"drawn {row.id}", 64))[:most]}
    return [row for row in rows if row.id in kept]


def once(questions: Sequence[Question]) -> list[Question]:
    """Return the questions without those that are asked twice, by their words."""
    counts: dict[str, int] = {}
    for row in questions:
        counts[_squeezed(row.question)] = counts.get(_squeezed(row.question), 0) + 1
    return [row for row in questions if counts[_squeezed(row.question)] == 1]


def without(sections: Sequence[Section], headings: Iterable[str]) -> list[Section]:
    """Return sections without the given headings where they are repeated: in references and lists of contents."""
    found = {_squeezed(heading): _pattern(heading) for heading in headings if len(heading.split()) >= 4}
    made = []
    for section in sections:
        squeezed, text = _squeezed(section.text), section.text
        for words, pattern in found.items():
            if words in squeezed:
                text = pattern.sub("", text)
        made.append(replace(section, text=text.strip()) if text != section.text else section)
    return made


def _squeezed(text: str) -> str:
    """Return the words of a text, without case and punctuation."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def _pattern(heading: str) -> re.Pattern[str]:
    """Return a pattern of a heading with any punctuation and white space, and the quotation marks around it."""
    inner = r"\W+".join(map(re.escape, re.findall(r"\w+", heading)))
    return re.compile(rf"[\"'“‘(]?\b{inner}\b[?.!\"'”’)]*", re.I)
