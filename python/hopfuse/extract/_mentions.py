"""What a spaCy document names, and where."""

from __future__ import annotations

from typing import Any

from ._title_links import Mention
from .canonical import canonical_key

NUMBERS = ("CARDINAL", "ORDINAL", "PERCENT", "QUANTITY")
#: What a title that a text names may not be taken for: a year is no novel.
UNNAMED = frozenset(("", "DATE", "TIME", "MONEY", *NUMBERS))
EDGES = " \t\n\"'“”‘’.,;:"


def places(doc: Any, linked: list[Mention], recognised: list[Mention]) -> dict[int, str]:
    """The name that each word is part of: of mentions that overlap the longest, of equal ones the title."""
    named: dict[int, str] = {}
    for start, end, name, _ in sorted([*linked, *recognised], key=lambda one: one.start - one.end):
        words = [word.i for word in doc.char_span(start, end, alignment_mode="expand")]
        if not any(at in named for at in words):
            named.update(dict.fromkeys(words, name))
    return named


def label_at(place: Mention, surface: str, recognised: list[tuple[Any, str]]) -> str:
    """The label of what the recogniser calls the same at this place: "Harry" says nothing of "When Harry Met Sally"."""
    key = canonical_key(surface)
    same = (
        ent.label_
        for ent, name in recognised
        if ent.start_char < place.end and place.start < ent.end_char and canonical_key(name) == key
    )
    return next(same, "")


def says_something(name: str) -> bool:
    return any(map(str.isalnum, name)) and name.lower() not in ("the", "a", "an")


def is_within(ent: Any, linked: list[Mention]) -> bool:
    """Whether an entity is a title, or a part of one: no "Harry" in "When Harry Met Sally"."""
    return any(one.start <= ent.start_char and ent.end_char <= one.end for one in linked)


def is_name(doc: Any, start: int, end: int) -> bool:
    """Whether a title in the text is a name there: "Home" in "Home is where the heart is" is none."""
    return any(
        word.pos_ == "PROPN" or word.ent_type_ not in UNNAMED
        for word in doc.char_span(start, end, alignment_mode="expand")
    )


def trimmed(ent: Any) -> str:
    """An entity without the possessive's ending and quotation marks."""
    name = ent[:-1].text if len(ent) > 1 and ent[-1].tag_ == "POS" else ent.text
    return " ".join(name.strip(EDGES).split())


def in_full(name: str, persons: list[str]) -> str:
    """For a surname the one person of the passage who has it."""
    full = dict.fromkeys(one for one in persons if one.split()[-1:] == [name] and one != name)
    return next(iter(full)) if len(full) == 1 else name
