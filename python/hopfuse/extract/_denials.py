"""What a sentence denies or leaves open: verbs that state no fact, words of an enumeration that it excludes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

OPEN = frozenset(("if", "whether", "unless"))
CLOSING = frozenset("\"'”’)]")
DENYING = ("neg", "det", "preconj", "cc")
LONGER = frozenset(("longer", "more"))
DEPTH = 16  # verbs above a verb


def is_stated(verb: Any) -> bool:
    """Whether a verb is no question, stands under no "if", and neither it nor what governs it is negated."""
    if _ending(verb.doc, verb.sent) == "?":
        return False
    negates = True
    for _ in range(DEPTH):
        if any(child.dep_ == "mark" and child.lower_ in OPEN for child in verb.children):
            return False
        if negates and _is_negated(verb):
            return False
        if verb.dep_ not in ("xcomp", "ccomp", "conj"):
            return True
        negates = negates and _reaches(verb.head, verb)
        verb = verb.head
    return True


def is_denied(word: Any) -> bool:
    """A noun or a preposition after "not", "neither" or "no"."""
    return any(_is_not(child) or child.lower_ in ("neither", "no") for child in word.lefts if child.dep_ in DENYING)


def several(word: Any) -> Iterator[Any]:
    """A word and those that "and" joins to it, without the denied ones: after "not", "neither" and "nor"."""
    waiting = [(word, False)]
    while waiting:
        one, excluded = waiting.pop()
        excluded = excluded or any(child.lower_ == "neither" for child in one.lefts)
        if not (excluded or is_denied(one)):
            yield one
        excluded = excluded or any(child.dep_ == "cc" and child.lower_ == "nor" for child in one.children)
        waiting += [(child, excluded) for child in reversed(list(one.children)) if child.dep_ == "conj"]


def _ending(doc: Any, sentence: Any) -> str:
    """The last word that is no quotation mark or bracket."""
    places = range(sentence.end - 1, sentence.start - 1, -1)
    return next((doc[at].text for at in places if doc[at].text not in CLOSING), "")


def _is_not(word: Any) -> bool:
    """ "not", but for "not only"."""
    after = word.i + 1
    return word.dep_ == "neg" and not (after < len(word.doc) and word.doc[after].lower_ == "only")


def _is_negated(verb: Any) -> bool:
    """ "never married", "no longer married", "neither married nor"."""
    parts = [verb, *(child for child in verb.children if child.dep_ in ("aux", "auxpass"))]
    for child in (child for part in parts for child in part.children):
        if _is_not(child) or (child.dep_ in ("preconj", "cc") and child.lower_ == "neither"):
            return True
        if child.lower_ in LONGER and any(map(_is_not, child.children)):
            return True
    return False


def _reaches(head: Any, verb: Any) -> bool:
    """Whether a negation of the head is one of the verb: "did not visit or see", but not "did not visit, and saw"."""
    if verb.dep_ != "conj":
        return bool(verb.i > head.i)  # "he left, she did not stay": what stands before is a sentence of its own
    if any(child.dep_ in ("nsubj", "nsubjpass", "aux", "auxpass") for child in verb.children):
        return False
    joins = {child.lower_ for child in head.children if child.dep_ == "cc"}
    if "but" in joins:
        return False
    return bool(joins & {"or", "nor"}) or verb.tag_ in ("VB", "VBN", "VBG")
