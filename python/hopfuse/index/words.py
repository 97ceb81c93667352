"""How the words of an index were read, as the index stores it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._validation import check_choice, check_excludes, check_text, check_whole
from ..text import RULE, check_rule
from ..types.term_matrix import check_words

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
    WordInfo(first=0, stemmer='english', tagger=None, stopwords=('of', 'the'), rule=2)
    """

    first: int
    stemmer: str | None = None
    tagger: str | None = None
    stopwords: Sequence[str] = ()
    rule: int = RULE

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", check_whole(self.first, "first", least=0))
        check_stemmer(self.stemmer)
        if self.tagger is not None:
            check_text(self.tagger, "tagger")
        check_excludes("stemmer", self.stemmer, "tagger", self.tagger)
        object.__setattr__(self, "stopwords", check_words(self.stopwords, "stopwords"))
        object.__setattr__(self, "rule", check_rule(self.rule, "words"))


def check_stemmer(name: str | None) -> None:
    """Refuse a name that is not an algorithm of Snowball."""
    if name is not None:
        check_choice(name, "stemmer", STEMMERS)
