"""Names of properties as words: "directedBy" is "directed by"."""

from __future__ import annotations

import re
from itertools import pairwise

# On the shape of a name: U for a capital, l for a small letter, s for "s", 9 for a digit, . for the rest.
_BEGINS = re.compile(r"(?<=[ls])(?=U)|(?<=9)(?=U[ls])|(?<=U)(?=U[ls])")
_PLURAL = re.compile(r"(?<=U)Us(?![ls])")  # "ISBNs" is one word


def words_of(name: str) -> str:
    """The words of a name in camelCase; acronyms stay, the capitals that other words than the first begin with do not.

    Examples
    --------
    >>> [words_of(name) for name in ("placeOfBirth", "hasISBN", "hasISBNs", "inHTMLFormat", "top10Songs", "wrote")]
    ['place of birth', 'has ISBN', 'has ISBNs', 'in HTML format', 'top10 songs', 'wrote']
    >>> [words_of(name) for name in ("isA", "isAPartOf", "hasXCoordinate")]
    ['is a', 'is a part of', 'has X coordinate']
    """
    shape = _PLURAL.sub("UU", "".join(map(_kind, name)))
    cuts = [0, *(match.start() for match in _BEGINS.finditer(shape)), len(name)]
    first, *others = (name[begin:end] for begin, end in pairwise(cuts))
    return " ".join(" ".join((first, *map(_small, others))).split())


def _kind(character: str) -> str:
    if character.isupper():
        return "U"
    if character.islower():
        return "s" if character == "s" else "l"
    return "9" if character.isdigit() else "."


def _small(word: str) -> str:
    """A word without its capital; what is all capitals is an acronym, but for the article of "isA"."""
    article = word[0] == "A" and not word[1:2].isalnum()
    return word[0].lower() + word[1:] if article or word[1:2].islower() else word
