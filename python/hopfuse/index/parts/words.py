"""Words: which entities are words, and how they were read."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._validation import check_choice, check_excludes, check_text, check_type, check_whole
from ...text import RULE, check_rule
from ...types.term_matrix import check_words
from ..file.columns import string_arrays, string_column
from ..file.sections import Arrays, ArraysOrSections, Sections, damage_of
from ..log.rows import Places

#: The algorithms of all releases of Snowball, by PyStemmer's names.
STEMMERS = (
    *("arabic", "armenian", "basque", "catalan", "czech", "danish", "dutch", "dutch_porter", "english", "esperanto"),
    *("estonian", "finnish", "french", "german", "german2", "greek", "hindi", "hungarian", "indonesian", "irish"),
    *("italian", "kraaij_pohlmann", "lithuanian", "lovins", "nepali", "norwegian", "persian", "polish", "porter"),
    *("portuguese", "romanian", "russian", "serbian", "sesotho", "spanish", "swedish", "tamil", "turkish", "yiddish"),
)

#: The sections that no change changes.
_KEPT = {*(f"word.{name}.{part}" for name in ("setting", "stopword") for part in ("offsets", "bytes")), "word.rule"}
#: The reading rule of a part that does not say its own.
FIRST_RULE = 1


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

    def with_first(self, first: int) -> WordInfo:
        """Return the same with another first word; the rest is not checked again."""
        if first == self.first:
            return self
        found = copy(self)
        object.__setattr__(found, "first", check_whole(first, "first", least=0))
        return found


def check_stemmer(name: str | None) -> None:
    """Refuse a name that is not an algorithm of Snowball."""
    if name is not None:
        check_choice(name, "stemmer", STEMMERS)


# ---- Sections ----


def build(words: WordInfo, num_entities: int) -> Arrays:
    """Return the sections ``word.*``."""
    check_type(words, "words", WordInfo, "a WordInfo")
    _check_first(words, num_entities)
    return {
        **string_arrays("word.setting", [words.stemmer or "", words.tagger or ""]),
        "word.first": np.array([words.first], np.int64),
        **string_arrays("word.stopword", words.stopwords),
        "word.rule": np.array([words.rule], np.int64),
    }


def load(sections: Sections, num_entities: int) -> WordInfo | None:
    """Return which entities are words and how they were read, verified, or None if there are none."""
    if "word.first" not in sections:
        return None
    stemmer, tagger = string_column(sections, "word.setting")
    (first,) = sections["word.first"].whole().tolist()
    with damage_of(sections["word.first"]):
        rule = load_rule(sections, "word.rule", "words")
        words = WordInfo(first, stemmer or None, tagger or None, tuple(string_column(sections, "word.stopword")), rule)
        _check_first(words, num_entities)
    return words


def moved(words: WordInfo, at: Places) -> tuple[WordInfo, Arrays]:
    """Return the words of a part, and their sections: they follow the names that are left."""
    found = words.with_first(at.num_names)
    return found, build(found, at.entities.size)


def merge(words: WordInfo, sections: Sections, at: Places) -> tuple[WordInfo, ArraysOrSections]:
    """Return the words after changes, and their sections: all but the first one come from the generation."""
    found = words.with_first(at.num_names)
    same = {name: section for name, section in sections.items() if name in _KEPT}
    own = {"word.rule": np.array([words.rule], np.int64), "word.first": np.array([found.first], np.int64)}
    return found, own | same


def _check_first(words: WordInfo, num_entities: int) -> None:
    check_whole(words.first, "words.first", num_entities, least=0)


def info(sections: Sections) -> dict[str, Any] | None:
    """Return the words' part of ``Index.info``."""
    if "word.first" not in sections:
        return None
    stemmer, tagger = string_column(sections, "word.setting")
    return {
        "words": sections["entity.alias.rows"].shape[0] - 1 - sections["word.first"].whole().tolist()[0],
        "stemmer": stemmer or None,
        "tagger": tagger or None,
        "rule": load_rule(sections, "word.rule", "words"),
        "stopwords": len(string_column(sections, "word.stopword")),
    }


def load_rule(sections: Sections, name: str, what: str, last: int = RULE) -> int:
    """Return the number of a part's reading rule, verified."""
    if name not in sections:
        return FIRST_RULE
    with damage_of(sections[name]):
        return check_rule(sections[name].whole().tolist()[0], what, last)
