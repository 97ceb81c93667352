"""Make questions of headings, and take the headings out of the texts that answer them."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise

from .markup import one_line
from .sets import Question, Section

#: Verbs of headings such as "Mounting a file system", which people ask as "How do I mount a file system?"
VERBS = """
access activate add administer allow apply assign attach authenticate avoid back backport build change check
choose clean clone close combine commit compare compile compress configure connect control convert copy create
customize debug declare define delete deny deploy detach detect determine disable display download edit enable
encrypt ensure enter escape estimate examine exclude expand explain export extend extract fetch filter find fix
force format generate get handle hide highlight identify import include increase initialize insert inspect
install integrate invoke keep limit link list load lock log maintain make manage map mark merge migrate modify
monitor mount move obtain open optimize orphan override pack pass patch perform pick port prepare prevent print
protect provide publish push put query read rebuild recover redirect reduce register reintroduce reload remove
rename repair replace report request reset resolve restore restrict retrieve return rewrite run save scan
schedule search secure select send serve set share show sign skip sort specify split start stop store submit
support switch test tidy track transfer transform translate tune undo uninstall unmount update upgrade upload
use validate verify view write
"""
_NOT_DOUBLED = {"administer", "edit", "filter", "limit", "list", "open", "recover", "register"}
#: Words that do not say what a heading is about.
STOP = """
a an the of to in on for and or with by from at as is are be it its you your my i how do does what why when
where which who can should not no more other about using via special case example examples note notes overview
introduction general miscellaneous additional further details summary section chapter
"""
#: A shorter text says too little to be an answer.
SHORTEST = 15
_NUMBER = re.compile(
    r"^(?:(?:chapter|appendix|section|part)\s+)?(?:[A-Z]?\d+(?:\.\d+)*\.?|[A-Z](?:\.\d+)*\.|[A-Z](?:\.\d+)+)\s+(?=\S)",
    re.I,
)
_DEPENDENT = re.compile(
    r"\b(?:this|these|those|above|below|following|previous)\b|^\W|^\w+ \d+:"
    r"|^(?:example|case|step|table|figure|update)\b",
    re.I,
)
_POINTER = re.compile(
    r"^(?:\(.{0,60}\)\s*)?(?:please |for .{0,80}, )?(?:see|refer to|consult|cf|read (?:the|section|perl\w+))\b", re.I
)
_ANNOUNCED = re.compile(r"^(?:in )?th(?:is|e following) (?:sub)?(?:section|chapter|document|page|appendix)s?\b", re.I)


def bare(heading: str) -> str:
    """Return a heading without its number and marks of links."""
    return _NUMBER.sub("", one_line(heading).strip(" -–¶#")).strip(" -–")


def is_question(heading: str) -> bool:
    """Return whether a heading is a question of at least three words."""
    return heading.endswith("?") and len(heading.split()) >= 3


def is_meaningful(heading: str, least: int) -> bool:
    """Return whether a heading says alone what is looked for, in at least so many words that carry meaning."""
    said = set(re.findall(r"[a-z]\w+", heading.casefold())) - set(STOP.split())
    return len(said) >= least and 3 <= len(heading.split()) <= 30 and not _DEPENDENT.search(heading)


def ask(heading: str, counts: Counter[str]) -> str:
    """Return what a person types who looks for a section: "How do I ...?" for a verb, else the heading.

    Words that the texts have more often in small letters, by ``counts``, are written so.
    """
    words = [_written(word, counts) for word in (heading.lower() if heading.isupper() else heading).split(" ")]
    verbs = _gerunds()
    if words[0].lower() in verbs and words[1] not in ("of", "is", "vs", "tool", "tools"):
        verb = [verbs[words[0].lower()]]
        later = [verbs.get(word, word) if before in ("and", "or") else word for before, word in pairwise(words)]
        return f"How do I {' '.join(verb + later)}?"
    return " ".join(words[1:] if words[0] in ("a", "an", "the") else words)


def _written(word: str, counts: Counter[str]) -> str:
    """Return a word of a title as the texts write it."""
    letters = re.search(r"[A-Za-z]+", word)
    if not letters or re.search(r".[A-Z]", word) or counts[letters[0]] > counts[letters[0].lower()]:
        return word
    return word.lower()


@cache
def _gerunds() -> dict[str, str]:
    """Return verbs by their forms that end with "ing"."""
    made = {}
    for verb in VERBS.split():
        doubled = re.search(r"[^aeiou][aeiou][bdglmnprt]$", verb) and verb not in _NOT_DOUBLED
        stem = verb[:-1] if verb.endswith("e") else verb + verb[-1] if doubled else verb
        made[f"{stem}ing"] = verb
    return made


def answers(text: str) -> bool:
    """Return whether a text is long enough to be an answer, and more than a reference to another place."""
    count = len(text.split())
    return count >= SHORTEST and not (count < 60 and (_POINTER.search(text) or _ANNOUNCED.search(text)))


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
    """Return sections without the given headings where they are repeated: in references and lists of contents.

    A heading that is no question, or of less than four words, is taken out only between quotation marks or if it stands
    alone; elsewhere it may be part of a sentence.
    """
    found = {_squeezed(heading): _pattern(heading) for heading in headings}
    made = []
    for section in sections:
        squeezed, text = _squeezed(section.text), section.text
        for words, pattern in found.items():
            if words in squeezed:
                text = pattern.sub("", text)
        made.append(replace(section, text=text.strip()) if text != section.text else section)
    return [section if section.text else replace(section, text="…") for section in made]  # their numbers stay


def _squeezed(text: str) -> str:
    """Return the words of a text, without case and punctuation."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def _pattern(heading: str) -> re.Pattern[str]:
    """Return a pattern of a repeated heading, with any punctuation and white space, and its quotation marks."""
    inner = r"\W+".join(map(re.escape, re.findall(r"\w+", heading)))
    if is_question(heading) and len(heading.split()) >= 4:
        return re.compile(rf"[\"'“‘]?\b{inner}\b[?.!\"'”’)]*", re.I)
    return re.compile(rf"[\"'“‘]{inner}[?.!]*[\"'”’]+[?.!]*[\"'”’]*|^[^\w\n]*{inner}[^\w\n]*$", re.I | re.M)
