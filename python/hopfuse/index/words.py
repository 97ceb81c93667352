"""How the words of an index were read, as the index stores it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..types.reading_rule import RULE, check_rule

#: The algorithms of all releases of Snowball, by PyStemmer's names.
STEMMERS = (
    *("arabic", "armenian", "basque", "catalan", "czech", "danish", "dutch", "dutch_porter", "english", "esperanto"),
    *("estonian", "finnish", "french", "german", "german2", "greek", "hindi", "hungarian", "indonesian", "irish"),
    *("italian", "kraaij_pohlmann", "lithuanian", "lovins", "nepali", "norwegian", "persian", "polish", "porter"),
    *("portuguese", "romanian", "russian", "serbian", "sesotho", "spanish", "swedish", "tamil", "turkish", "yiddish"),
)


@dataclass(frozen=True)
class WordInfo:
    """The words among an index's entities, and how they are read from texts. Questions must be read in the same way.

    Parameters
    ----------
    first : int
        The entities ``first`` .. E-1 are words; those before are names.
    stemmer : str, optional
        The Snowball algorithm that reduces words to stems.
    tagger : str, optional
        The spaCy model that reduces words to lemmas, instead of a stemmer.
    stopwords : sequence of str
        Words that are left out, in strictly ascending order.
    rule : int
        The number of the rule by which texts are folded and cut into words.

    Raises
    ------
    InputError
        An argument that is not as above.

    Examples
    --------
    >>> from hopfuse.index import WordInfo
    >>> WordInfo(0, "english", None, ("of", "the"))
    WordInfo(first=0, stemmer='english', tagger=None, stopwords=('of', 'the'), rule=1)
    """

    first: int
    stemmer: str | None = None
    tagger: str | None = None
    stopwords: Sequence[str] = ()
    rule: int = RULE

    def __post_init__(self) -> None:
        if isinstance(self.first, bool) or not isinstance(self.first, int | np.integer) or self.first < 0:
            raise InputError(
                "range", None, "the first word is entity {first!r}; it must be an integer, at least 0", first=self.first
            )
        check_stemmer(self.stemmer)
        if self.tagger is not None and (not isinstance(self.tagger, str) or not self.tagger):
            raise InputError(
                "UNSORTED",
                None,
                "the words' tagger is {given!r}; it must be the name of a model, or None",
                given=self.tagger,
            )
        if self.stemmer is not None and self.tagger is not None:
            raise InputError(
                "conflict",
                None,
                "words have both the stemmer {stemmer!r} and the tagger {tagger!r}; give one of them",
                stemmer=self.stemmer,
                tagger=self.tagger,
            )
        if isinstance(self.stopwords, str) or not all(isinstance(word, str) for word in self.stopwords):
            raise InputError(
                "type",
                None,
                "the words' stopwords are {given!r}; they must be a sequence of strings",
                given=self.stopwords,
            )
        words = tuple(self.stopwords)
        if any(a >= b for a, b in itertools.pairwise(words)):
            raise InputError("UNSORTED", None, "the words' stopwords do not ascend strictly; sort them, each once")
        object.__setattr__(self, "first", int(self.first))
        object.__setattr__(self, "rule", check_rule(self.rule, "words"))
        object.__setattr__(self, "stopwords", words)


def check_stemmer(name: str | None) -> None:
    """Refuse a name that is not an algorithm of Snowball."""
    if name is not None and name not in STEMMERS:
        raise InputError(
            "UNSORTED", "stemmer", "{field} is {given!r}; Snowball has {names}", given=name, names=", ".join(STEMMERS)
        )
