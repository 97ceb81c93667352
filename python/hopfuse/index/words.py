"""The way the words of an index were read, as the index keeps it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InputError

#: The algorithms of Snowball, of all its releases, by the names that PyStemmer has for them.
STEMMERS = (
    *("arabic", "armenian", "basque", "catalan", "czech", "danish", "dutch", "dutch_porter", "english", "esperanto"),
    *("estonian", "finnish", "french", "german", "german2", "greek", "hindi", "hungarian", "indonesian", "irish"),
    *("italian", "kraaij_pohlmann", "lithuanian", "lovins", "nepali", "norwegian", "persian", "polish", "porter"),
    *("portuguese", "romanian", "russian", "serbian", "sesotho", "spanish", "swedish", "tamil", "turkish", "yiddish"),
)


@dataclass(frozen=True)
class WordInfo:
    """The words among an index's entities, and how texts are read as words: a question must be read in the same way.

    Parameters
    ----------
    first : int
        Words are the entities ``first`` .. E-1; those before are names.
    stemmer : str, optional
        The Snowball algorithm that makes words one which differ in their endings.
    tagger : str, optional
        The spaCy model whose lemmas the words are; then there is no stemmer.
    stopwords : sequence of str
        Words that are left out, strictly ascending.

    Raises
    ------
    InputError
        Anything that is not as above.

    Examples
    --------
    >>> from hopfuse.index import WordInfo
    >>> WordInfo(0, "english", None, ("of", "the"))
    WordInfo(first=0, stemmer='english', tagger=None, stopwords=('of', 'the'))
    """

    first: int
    stemmer: str | None = None
    tagger: str | None = None
    stopwords: Sequence[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.first, bool) or not isinstance(self.first, int | np.integer) or self.first < 0:
            raise InputError(f"the first word is entity {self.first!r}; it must be an integer, at least 0")
        check_stemmer(self.stemmer)
        if self.tagger is not None and (not isinstance(self.tagger, str) or not self.tagger):
            raise InputError(f"the words' tagger is {self.tagger!r}; it must be the name of a model, or None")
        if self.stemmer is not None and self.tagger is not None:
            raise InputError(
                f"words have the stemmer {self.stemmer!r} and the tagger {self.tagger!r}; they are stems or lemmas"
            )
        if isinstance(self.stopwords, str) or not all(isinstance(word, str) for word in self.stopwords):
            raise InputError(f"the words' stopwords are {self.stopwords!r}; they must be a sequence of strings")
        words = tuple(self.stopwords)
        if any(a >= b for a, b in itertools.pairwise(words)):
            raise InputError("the words' stopwords do not ascend strictly; sort them, each once")
        object.__setattr__(self, "first", int(self.first))
        object.__setattr__(self, "stopwords", words)


def check_stemmer(name: str | None) -> None:
    """Refuse what is no algorithm of Snowball."""
    if name is not None and name not in STEMMERS:
        raise InputError(f"stemmer is {name!r}; Snowball has {', '.join(STEMMERS)}")
