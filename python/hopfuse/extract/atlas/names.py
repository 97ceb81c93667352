"""Names of places: comparing them, cleaning them, and choosing alternate ones to ask by."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Set
from functools import lru_cache

_PLAIN = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "ı": "i", "ß": "ss", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"})
_MARKS = re.compile(r"[^\w\s]|_")
_THE = re.compile(
    r"\b(Islands|Republic|United|States|Territory|Territories|Isle)\b"
    r"|^(Bahamas|Comoros|Gambia|Maldives|Netherlands|Philippines|Seychelles|Vatican)$"
)
_LATIN = re.compile("[A-Za-zÀ-ÖØ-öø-ɏ -]{4,40}")
_INNER_CAPITAL = re.compile(r"\w[A-ZÀ-Þ]")
_NOISE = re.compile(r"\s*[\[(].*|\s*\d+$")


@lru_cache(maxsize=1 << 18)
def fold(name: str) -> str:
    """The form two spellings of one name share: lower case, no accents, no punctuation.

    Examples
    --------
    >>> fold("São-Paulo") == fold("sao paulo")
    True
    """
    lowered = name.casefold()
    if not lowered.isascii():
        lowered = unicodedata.normalize("NFKD", lowered).translate(_PLAIN)
        lowered = "".join(c for c in lowered if not unicodedata.combining(c))
    return " ".join(_MARKS.sub(" ", lowered.replace("'", "").replace("’", "")).split())


def ascii_spelling(name: str) -> str | None:
    """The name as typed without accents, or None where that is the name itself or not Latin.

    Examples
    --------
    >>> ascii_spelling("Málaga"), ascii_spelling("Oslo")
    ('Malaga', None)
    """
    if name.isascii():
        return None
    bare = unicodedata.normalize("NFKD", name).translate(_PLAIN).replace("’", "'")
    bare = "".join(c for c in bare if not unicodedata.combining(c))
    return bare if bare.isascii() and bare != name else None


def with_article(country: str) -> str:
    """A country's name as it stands inside a sentence.

    Examples
    --------
    >>> with_article("Philippines"), with_article("Faroe Islands"), with_article("Peru")
    ('the Philippines', 'the Faroe Islands', 'Peru')
    """
    return f"the {country}" if _THE.search(country) else country


def tidy(name: str) -> str:
    """An ISO 3166-2 name without bracketed variants, its inversion undone.

    Examples
    --------
    >>> tidy("Bristol, City of"), tidy("Wales [Cymru GB-CYM]"), tidy("Tatarstan, Respublika")
    ('City of Bristol', 'Wales', 'Respublika Tatarstan')
    """
    head, comma, tail = re.sub(r"\s*[\[(].*?[\])]", "", name).replace(" / ", "-").strip("/ ").partition(", ")
    if not comma or "," in tail or " and " in tail or " y " in tail:
        return head + comma + tail
    return f"{tail} {head}"


def language_name(name: str) -> str:
    """An ISO 639-3 reference name without its bracketed note.

    Examples
    --------
    >>> language_name("Modern Greek (1453-)")
    'Modern Greek'
    """
    return _NOISE.sub("", name)


def alternates(name: str, candidates: Iterable[str], taken: Set[str], limit: int) -> tuple[str, ...]:
    """The alternate names that are least like the name itself.

    Parameters
    ----------
    name : str
        The canonical name.
    candidates : iterable of str
        Alternate names.
    taken : set of str
        Folded names that something else carries already.
    limit : int
        How many to return at most.

    Examples
    --------
    >>> alternates("Cologne", ["Koeln", "Köln", "Keulen", "Colognes"], set(), 2)
    ('Keulen', 'Koeln')
    """
    own = fold(name)
    kept: dict[str, str] = {}
    for candidate in sorted(candidates):
        folded = fold(candidate)
        if folded not in taken and not (folded in own or own in folded):
            kept[folded] = candidate
    by_likeness = sorted(kept, key=lambda folded: (_likeness(folded, own), folded))
    return tuple(kept[folded] for folded in by_likeness[:limit])


def reads_as_name(text: str) -> bool:
    """Whether it is a capitalised Latin name: no code, no other script, no transliteration sign.

    Examples
    --------
    >>> [name for name in ("Praha", "PRG", "Прага", "bu la ge") if reads_as_name(name)]
    ['Praha']
    """
    return text[:1].isupper() and bool(_LATIN.fullmatch(text)) and not _INNER_CAPITAL.search(text)


def _likeness(a: str, b: str) -> float:
    """Dice coefficient of the two names' letter pairs."""
    x, y = _pairs(a), _pairs(b)
    return 2 * len(x & y) / (len(x) + len(y)) if x and y else 1.0


@lru_cache(maxsize=1 << 16)
def _pairs(text: str) -> frozenset[str]:
    return frozenset(text[i : i + 2] for i in range(len(text) - 1))
