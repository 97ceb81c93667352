"""BM25 in float64, written out from the formula, and terms by a regular expression of its own."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

WORD = re.compile(r"\w\w+|[ぁ-ん]")


def terms_of(text: str, stopwords: Sequence[str] = (), stem: Callable[[str], str] = str) -> list[str]:
    """Words of two characters and more or one kana, lower case, without stop words, stemmed, without accents.

    Of scripts without spaces, texts may have words of one or two characters.
    """
    dropped = set(stopwords)
    return [bare(stem(word)) for word in WORD.findall(text.lower()) if word not in dropped]


def bare(word: str) -> str:
    """Drop the accents of Latin letters."""
    parts = (part for part in unicodedata.normalize("NFD", word) if not "\u0300" <= part <= "\u036f")
    return unicodedata.normalize("NFC", "".join(parts))


def idf(n: int, df: int, method: str) -> float:
    """Kamphuis et al., ECIR 2020, table 1; Robertson's is cut off at 0, which keeps scores from being negative."""
    if method == "atire":
        return math.log(n / df)
    odds = (n - df + 0.5) / (df + 0.5)
    return math.log(1 + odds) if method == "lucene" else max(0.0, math.log(odds))


def oracle_scores(
    passages: Sequence[Sequence[str]], questions: Sequence[Sequence[str]], *, k1: float, b: float, method: str
) -> NDArray[np.float64]:
    """(B, P) scores; -inf where a passage scores 0 and so is no candidate.

    Robertson and Zaragoza 2009, equation 3.15, over the terms of a question with their repetitions; ATIRE's
    tf part is (k1 + 1) times as large.
    """
    n = len(passages)
    counts = [Counter(terms) for terms in passages]
    lengths = np.array([len(terms) for terms in passages], np.float64)
    mean = lengths.mean() if n else 0.0
    df = Counter(term for held in counts for term in held)
    out = np.zeros((len(questions), n))
    for q, terms in enumerate(questions):
        for term in terms:
            for p, held in enumerate(counts):
                if tf := held[term]:
                    part = tf / (tf + k1 * (1 - b + b * lengths[p] / mean))
                    out[q, p] += idf(n, df[term], method) * part * (k1 + 1 if method == "atire" else 1)
    return np.where(out > 0, out, -np.inf)
