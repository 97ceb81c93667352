"""Predicates: their families, generic ones, and functional ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from types import MappingProxyType

from .._validation import wrong_type
from ..errors import InputError
from ..text import canonical_key

OTHER = "other"
RESERVED_TYPES = frozenset((OTHER, "context", "synonym", "title", "sentence", "word", "sequence"))
#: A predicate belongs to the first family of which it contains a word.
FAMILIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "kinship": (
            *("father", "mother", "parent", "son", "daughter", "child", "children", "brother", "sister", "sibling"),
            *("married", "spouse", "wife", "husband", "divorced", "grandson", "granddaughter", "uncle", "aunt"),
        ),
        "birth": ("born", "birth", "birthplace"),
        "death": ("died", "death", "killed", "buried", "assassinated"),
        "creation": (
            *("directed", "director", "wrote", "written", "writer", "author", "authored", "composed", "composer"),
            *("produced", "producer", "created", "creator", "designed", "designer", "founded", "founder", "developed"),
            *("invented", "built", "painted", "recorded", "published", "released", "starred", "starring", "performed"),
        ),
        "location": (
            *("located", "location", "capital", "city", "country", "region", "county", "state", "border", "borders"),
            *("headquartered", "headquarters", "lives", "lived", "resides", "near", "situated", "north", "south"),
            *("east", "west", "flows"),
        ),
        "membership": (
            *("member", "plays", "played", "belongs", "part", "joined", "team", "club", "band", "league", "signed"),
            *("owned", "owner", "owns", "subsidiary"),
        ),
        "office": (
            *("president", "minister", "mayor", "governor", "king", "queen", "ceo", "chairman", "elected", "served"),
            *("worked", "works", "employed", "position", "succeeded", "appointed", "professor"),
        ),
        "education": ("studied", "educated", "graduated", "attended", "degree", "student", "school"),
        "award": ("won", "award", "awarded", "prize", "nominated", "medal"),
        "time": ("year", "date", "began", "started", "ended", "opened", "established", "since", "aired"),
    }
)
#: Predicates that carry no information beyond a mention.
GENERIC: frozenset[str] = frozenset(
    (
        *("is", "are", "was", "were", "be", "been", "has", "have", "had", "in", "of", "on", "at", "for", "with", "by"),
        *("and", "include", "includes", "included", "including", "mention", "mentions", "related to", "relates to"),
        *("associated with", "is associated with", "was associated with", "refers to", "known as", "is known as"),
        *("is related to", "involves", "features", "contains"),
    )
)
#: Predicates with one true tail for each head. "born in" is not one: its tail may be a place, a country or a year.
FUNCTIONAL: frozenset[str] = frozenset(
    (
        *("date of birth", "birth date", "born on", "was born on", "place of birth", "birthplace"),
        *("date of death", "death date", "died on", "place of death", "release year", "father", "mother"),
    )
)


class Predicates:
    """The families of predicates, and sets of generic and functional ones.

    Parameters
    ----------
    families : mapping of str to collection of str
        Single words by family. A predicate belongs to the first family of which it contains a word, else to
        ``"other"``.
    generic : collection of str
        Predicates whose facts make no edge.
    functional : collection of str
        Predicates with one true tail for each head. If passages disagree, the majority decides.

    Raises
    ------
    InputError
        A family with the name of another edge type (``"other"``, ``"context"``, ``"synonym"``, ``"title"``,
        ``"sentence"``, ``"word"`` or ``"sequence"``), a single string instead of a collection, or an entry of several
        words.

    Examples
    --------
    >>> from hopfuse.extract import Predicates
    >>> known = Predicates()
    >>> known.family("was directed by"), known.family("resembles")
    ('creation', 'other')
    >>> known.is_generic("Is"), known.is_functional("Place of birth")
    (True, True)
    """

    def __init__(
        self,
        families: Mapping[str, Collection[str]] = FAMILIES,
        generic: Collection[str] = GENERIC,
        functional: Collection[str] = FUNCTIONAL,
    ) -> None:
        for family in RESERVED_TYPES.intersection(families):
            raise InputError(
                "conflict",
                "families",
                "{field} has {given!r}, which is the name of another edge type; rename it",
                given=family,
            )
        listed = [(f"families[{name!r}]", words) for name, words in families.items()]
        for what, words in (*listed, ("generic", generic), ("functional", functional)):
            if isinstance(words, str):
                raise wrong_type(words, what, "a collection of strings")
        self._family: dict[str, str] = {}
        for family, words in families.items():
            for word in words:
                key = canonical_key(word)
                if len(key.split()) != 1:
                    raise InputError(
                        "syntax",
                        f"families[{family!r}]",
                        "{field} has {given!r}, which is not one word; give its most specific word",
                        given=word,
                    )
                self._family.setdefault(key, family)
        self._rank = {family: at for at, family in enumerate(families)}
        self._generic = {canonical_key(name) for name in generic}
        self._functional = {canonical_key(name) for name in functional}

    def family(self, relation: str) -> str:
        """Return the family of a predicate."""
        found = {self._family[word] for word in canonical_key(relation).split() if word in self._family}
        return min(found, key=self._rank.__getitem__, default=OTHER)

    def is_generic(self, relation: str) -> bool:
        """Return whether facts with the predicate make no edge."""
        return canonical_key(relation) in self._generic

    def is_functional(self, relation: str) -> bool:
        """Return whether a head has one true tail of the predicate."""
        return canonical_key(relation) in self._functional


@cache
def default_predicates() -> Predicates:
    """Return the predicates by default, made once."""
    return Predicates()
