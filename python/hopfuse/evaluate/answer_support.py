"""Whether the passages that a run finds hold the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from ..errors import InputError
from ..types import Hits
from .answers import normalised
from .metrics import Values
from .qrels import Qrels
from .relevance import relevance

Texts = Sequence[str] | Mapping[int, str]

_SAID_OF_ANYTHING = frozenset(("", "yes", "no"))


def findable_answers(qrels: Qrels) -> tuple[tuple[str, ...], ...]:
    """The accepted answers that a passage can be searched for, after :func:`normalised`.

    Yes and no are left out, for a passage that decides a question seldom has either word, and what has either seldom
    decides it; so is what has no character left (the answer "The").

    Returns
    -------
    tuple of tuples of str, B entries
        Distinct answers in their order; none for a question that :func:`answer_supported` leaves out.

    Examples
    --------
    >>> from hopfuse.evaluate import Qrels, findable_answers
    >>> q = Qrels(["a", "b", "c"], [[], [], []], answers=[["The Thames", "thames"], ["Yes"], []])
    >>> findable_answers(q)
    (('thames',), (), ())
    """
    return tuple(
        tuple(dict.fromkeys(answer for answer in map(normalised, row) if answer not in _SAID_OF_ANYTHING))
        for row in qrels.answers
    )


def answer_supported(hits: Hits, qrels: Qrels, k: int, texts: Texts) -> Values:
    """1 where one of a question's first k passages contains an accepted answer, else 0.

    Text and answer are compared after :func:`normalised`, and the answer must stand there as whole words: "art" is not
    in "party". A passage that contains the answer need not prove it, so this bounds what a reader of the passages can
    quote; it needs no gold passages.

    Parameters
    ----------
    hits : Hits
        B rows, at least k wide (a row may hold fewer valid hits).
    qrels : Qrels
        The accepted answers of the same B queries.
    k : int, at least 1
    texts : sequence of str, or mapping of int to str
        The text of each passage, by its id; an index's ``texts`` is one.

    Returns
    -------
    ndarray of float64, shape (B,)
        NaN for a question without :func:`findable_answers`: none is accepted, or only yes or no.

    Raises
    ------
    InputError
        Another number of queries, k below 1 or above the width of the hits, a passage without a text.

    References
    ----------
    As the recall of an answer string, Chen et al., ACL (2017), section 5.1.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, answer_supported
    >>> texts = ["Rivers of London", "It lies on the Thames."]
    >>> q = Qrels(["a", "b"], [[], []], answers=[["Thames"], ["yes"]])
    >>> answer_supported(hf.Hits([[1, 0], [0, 1]], [[0.9, 0.5], [0.9, 0.5]]), q, 1, texts)
    array([ 1., nan])
    """
    relevance(hits, qrels.gold_pairs, k)  # refuses what no metric takes
    words = lru_cache(maxsize=None)(lambda passage: _as_words(normalised(_text(texts, passage))))
    values = np.full(len(qrels), np.nan)
    for row, answers in enumerate(findable_answers(qrels)):
        if answers:
            sought = [_as_words(answer) for answer in answers]
            values[row] = any(one in words(passage) for passage, _ in hits.row(row)[:k] for one in sought)
    return values


def _as_words(text: str) -> str:
    """A normalised text whose every word, the first and the last too, has a space on both sides."""
    return f" {text} "


def _text(texts: Texts, passage: int) -> str:
    try:
        text = texts[passage]
    except (IndexError, KeyError):
        raise InputError(
            f"passage {passage} is among the hits, and texts has {len(texts)} passages without it; give every text"
        ) from None
    if not isinstance(text, str):
        raise InputError(f"the text of passage {passage} is {text!r}; it is a string")
    return text
