"""Names of places: compare and clean them, and choose alternate names for questions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Set
from functools import lru_cache

_PLAIN = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "ı": "i", "ß": "ss", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"})
_PUNCTUATION = re.compile(r"[^\w\s]|_")
_WITH_ARTICLE = re.compile(
    r"\b(Islands|Republic|United|States|Territory|Territories|Isle)\b"
    r"|^(Bahamas|Comoros|Gambia|Maldives|Netherlands|Philippines|Seychelles|Vatican)$"
)
_LATIN = re.compile("[A-Za-zÀ-ÖØ-öø-ɏ -]{4,40}")
_INNER_CAPITAL = re.compile(r"\w[A-ZÀ-Þ]")


def _without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text).translate(_PLAIN)
    return "".join(c for c in decomposed if not unicodedata.combining(c))


@lru_cache(maxsize=1 << 18)
def fold(name: str) -> str:
    """Return a name in lower case without accents and punctuation, the same for all its spellings."""
    lowered = name.casefold()
    if not lowered.isascii():
        lowered = _without_accents(lowered)
    return " ".join(_PUNCTUATION.sub(" ", lowered.replace("'", "").replace("’", "")).split())


def contains(text: str, answer: str) -> bool:
    """Return whether a text has the answer as whole words, or literally if it is not a word (``.pe``, ``+51``)."""
    return f" {fold(answer)} " in f" {fold(text)} " if answer[0].isalnum() else answer in text


def spellings(name: str, plain: str) -> tuple[str, ...]:
    """Return other spellings of an entity's name: the short form, and both without accents."""
    others = (plain, *(_without_accents(n).replace("’", "'") for n in (name, plain) if not n.isascii()))
    return tuple(dict.fromkeys(o for o in others if o != name and (o == plain or o.isascii())))


def with_article(country: str) -> str:
    """Return a country's name as in a sentence: "the Netherlands", "Peru"."""
    return f"the {country}" if _WITH_ARTICLE.search(country) else country


def subdivision_name(name: str) -> str:
    """Return an ISO 3166-2 name without bracketed variants and inversion: "City of Bristol"."""
    head, comma, tail = re.sub(r"\s*[\[(].*?[\])]", "", name).replace(" / ", "-").strip("/ ").partition(", ")
    if not comma or "," in tail or " and " in tail or " y " in tail:
        return head + comma + tail
    return f"{tail} {head}"


def subdivision_names(name: str) -> tuple[str, ...]:
    """Return an ISO 3166-2 name and its bracketed variants: "Catalunya" and "Cataluña"."""
    return tuple(map(subdivision_name, (name, *re.findall(r"[\[(](.*?)[\])]", name))))


def language_name(name: str) -> str:
    """Return an ISO 639-3 reference name without its bracketed note."""
    return re.sub(r"\s*[\[(].*|\s*\d+$", "", name)


def reads_as_name(text: str) -> bool:
    """Return whether a text is a capitalised Latin name: no code, no other script, no transliteration sign."""
    return text[:1].isupper() and bool(_LATIN.fullmatch(text)) and not _INNER_CAPITAL.search(text)


def alternates(name: str, candidates: Iterable[str], taken: Set[str], limit: int) -> tuple[str, ...]:
    """Return the alternate names least similar to the name, except those whose folded form is taken."""
    own = fold(name)
    kept: dict[str, str] = {}
    for candidate in sorted(candidates):
        folded = fold(candidate)
        if folded not in taken and not (folded in own or own in folded):
            kept[folded] = candidate
    by_likeness = sorted(kept, key=lambda folded: (_likeness(folded, own), folded))
    return tuple(kept[folded] for folded in by_likeness[:limit])


def _likeness(a: str, b: str) -> float:
    """Return the Dice coefficient of the two names' letter pairs."""
    x, y = ({name[i : i + 2] for i in range(len(name) - 1)} for name in (a, b))
    return 2 * len(x & y) / (len(x) + len(y)) if x and y else 1.0
