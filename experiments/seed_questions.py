"""Questions about the atlas that name a place, four styles of typing them, and the passages that answer them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import NamedTuple

from hopfuse.extract import FUNCTION_WORDS

from examples.atlas import Atlas

COUNT = 300
COMMON_SHARE = 5  # one in five questions is about a name that is a common word
#: Names that are common words, even if the atlas's texts do not use them so.
COMMON = ("of", "nice", "reading", "bath", "mobile", "time")
#: Questions about a place, and the suffix of the id of its country's passage with the answer.
TEMPLATES = (
    ("What is the currency of the country where {} is?", "/currency"),
    ("Which languages are spoken in the country of {}?", "/languages"),
    ("What is the calling code of the country that {} belongs to?", "/connections"),
    ("How do people pay in the country with {}, in which currency?", "/currency"),
    ("Which countries border the country where {} lies?", "/borders"),
    ("In the country of {}, what is the capital?", ""),
    ("Does {} have an internet domain of its own, or what is its country's?", "/connections"),
)
_DROPPED, _SIGNS = re.compile(r"['’.?!]"), re.compile(r"[^\w\s]")


class SeedQuestion(NamedTuple):
    """A question, the entity in it, the passage with its answer, and whether the name is a common word."""

    text: str
    entity: int
    answer: int
    common: bool


def without_punctuation(text: str) -> str:
    """Return a text as it is typed without punctuation marks.

    Examples
    --------
    >>> without_punctuation("What's the capital of Saint-Denis' country?")
    'Whats the capital of Saint Denis country'
    """
    return " ".join(_SIGNS.sub(" ", _DROPPED.sub("", text)).split())


#: Styles of typing a question.
MANNERS: dict[str, Callable[[str], str]] = {
    "as written": str,
    "lower case": str.lower,
    "upper case": str.upper,
    "without punctuation": without_punctuation,
}


def seed_questions(atlas: Atlas, count: int = COUNT) -> list[SeedQuestion]:
    """Return questions about places, chosen by hashes of their names, so the same in every process.

    Names that are disambiguated by a bracket or a comma are left out, because people do not type them.
    """
    countries = dict(_countries(atlas))
    inside = {head: tail for head, kind, tail, _ in atlas.fact_rows.tolist() if atlas.relations[kind] == "in"}
    words = {word for text in atlas.texts for word in re.findall(r"\b[a-z]+\b", text)} | FUNCTION_WORDS | set(COMMON)
    row_of = {id: row for row, id in enumerate(atlas.ids)}
    places = sorted(inside, key=lambda entity: _hash(atlas.entities[entity]))
    plain = [entity for entity in places if not re.search(r"[,(]", atlas.entities[entity])]
    common = [entity for entity in plain if atlas.entities[entity].lower() in words]
    common.sort(key=lambda entity: atlas.entities[entity].lower() not in COMMON)
    others = [entity for entity in plain if atlas.entities[entity].lower() not in words]
    share = count // COMMON_SHARE
    asked: list[SeedQuestion] = []
    for part, size in ((common, share), (others, count - share)):
        made = _asked(atlas, part, inside, countries, row_of, part is common, size)
        asked += [question for question, _ in zip(made, range(size), strict=False)]
    return asked


def _asked(
    atlas: Atlas,
    places: list[int],
    inside: dict[int, int],
    countries: dict[int, str],
    row_of: dict[str, int],
    common: bool,
    count: int,
) -> Iterator[SeedQuestion]:
    """Yield questions about places, cycling through the templates; places without an answer are left out."""
    for turn in range(1 + count // max(1, len(places))):
        for at, entity in enumerate(places):
            text, part = TEMPLATES[(at + turn) % len(TEMPLATES)]
            country = entity
            while country in inside:
                country = inside[country]
            row = row_of.get(f"{countries.get(country)}{part}")
            if row is not None:
                yield SeedQuestion(text.format(atlas.entities[entity]), entity, row, common)


def _countries(atlas: Atlas) -> Iterator[tuple[int, str]]:
    """Yield each country with the id of its passage, the one that states its continent."""
    for head, kind, _, row in atlas.fact_rows.tolist():
        if atlas.relations[kind] == "continent":
            yield head, atlas.ids[row]


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
