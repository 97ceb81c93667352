"""Answer metrics: exact match, token F1, and whether the retrieved passages contain an answer."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from .._validation import check_length, check_list, check_some, check_type
from ..errors import InputError
from ..text import fold, spaced
from ..types import Hits
from .metrics import Values, relevance
from .qrels import Qrels

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise_answer(answer: str) -> str:
    """Return an answer folded, without punctuation and English articles, and with single spaces.

    :func:`hopfuse.text.fold` makes case and other spellings of the same characters equal. Punctuation is that of ASCII,
    as published, and that of other scripts; typographic quotes and dashes stay.

    References
    ----------
    Rajpurkar et al., EMNLP (2016), section 6.1; other scripts: Lewis et al., MLQA, ACL (2020), section 4.

    Examples
    --------
    >>> from hopfuse.evaluate import normalise_answer
    >>> normalise_answer("The  Beatles!")
    'beatles'
    """
    folded = fold(answer).translate(_ASCII_PUNCTUATION)
    if not folded.isascii():
        folded = "".join(one for one in folded if not _is_foreign_punctuation(one))
    return " ".join(_ARTICLES.sub(" ", folded).split())


@lru_cache(maxsize=1 << 12)
def _is_foreign_punctuation(character: str) -> bool:
    """Return whether a character is punctuation, but not of Latin script."""
    return not (character < "\u0300" or "\u2000" <= character < "\u2070") and unicodedata.category(character)[0] == "P"


def exact_match(answer: str, accepted: Sequence[str]) -> float:
    """Return 1 if an answer equals an accepted one after :func:`normalise_answer`, else 0.

    Parameters
    ----------
    answer : str
    accepted : sequence of str, at least one

    Raises
    ------
    InputError
        No accepted answer.

    References
    ----------
    Rajpurkar et al., EMNLP (2016), section 6.1.

    Examples
    --------
    >>> from hopfuse.evaluate import exact_match
    >>> exact_match("the Beatles", ["Beatles", "The Fab Four"])
    1.0
    """
    return _best(lambda given, right: float(given == right), answer, accepted)


def token_f1(answer: str, accepted: Sequence[str]) -> float:
    """Return the F1 score of an answer's tokens against the accepted answer that matches best.

    Tokens are the words after :func:`normalise_answer`, in scripts without spaces single characters, counted with
    multiplicity. If either side has none (an answer
    such as "The"), the score is 1 if both have none, else 0. Parameters and errors are those of :func:`exact_match`.

    Returns
    -------
    float
        In [0, 1].

    References
    ----------
    Rajpurkar et al., EMNLP (2016), section 6.1; no tokens: Rajpurkar, Jia and Liang, ACL (2018).

    Examples
    --------
    >>> from hopfuse.evaluate import token_f1
    >>> token_f1("keyboard keys", ["keyboard function keys"])
    0.8
    """
    return _best(_overlap, answer, accepted)


def answer_values(score: Callable[[str, Sequence[str]], float], answers: Sequence[str | None], qrels: Qrels) -> Values:
    """Return the score of each query: 0 if it was not answered, NaN if it has no accepted answer.

    Parameters
    ----------
    score : callable (str, sequence of str) -> float
        :func:`exact_match` or :func:`token_f1`.
    answers : sequence of str or None, B entries
    qrels : Qrels
        Has the accepted answers of the same B queries.

    Returns
    -------
    ndarray of float64, shape (B,)

    Raises
    ------
    InputError
        The numbers of answers and queries differ.

    Examples
    --------
    >>> from hopfuse.evaluate import Qrels, answer_values, exact_match
    >>> q = Qrels(["a", "b", "c"], [[], [], []], answers=[["no"], ["yes"], []])
    >>> answer_values(exact_match, ["No.", None, "x"], q)
    array([ 1.,  0., nan])
    """
    check_length(len(answers), "answers", len(qrels), "query")
    values = [
        np.nan if not accepted else 0.0 if answer is None else score(answer, accepted)
        for answer, accepted in zip(answers, qrels.answers, strict=True)
    ]
    return np.array(values, np.float64)


def _best(score: Callable[[str, str], float], answer: str, accepted: Sequence[str]) -> float:
    accepted = check_some(check_list(accepted, "accepted", "a list of strings"), "accepted", "accepted answer")
    given = normalise_answer(answer)
    return max(score(given, normalise_answer(right)) for right in accepted)


def _overlap(given: str, right: str) -> float:
    ours, theirs = (Counter(spaced(text, pairs=False).split()) for text in (given, right))
    if not ours or not theirs:
        return float(ours == theirs)
    return 2 * (ours & theirs).total() / (ours.total() + theirs.total())


Texts = Sequence[str] | Mapping[int, str]

_NOT_SEARCHABLE = frozenset(("", "yes", "no"))


def findable_answers(qrels: Qrels) -> tuple[tuple[str, ...], ...]:
    """Return the accepted answers that can be looked for in a passage, after :func:`normalise_answer`.

    Yes and no are left out, because finding these words in a passage says little about the answer; so are answers that
    become empty ("The").

    Returns
    -------
    tuple of tuples of str, B entries
        Distinct answers in order; empty for a question that :func:`answer_supported` leaves out.

    Examples
    --------
    >>> from hopfuse.evaluate import Qrels, findable_answers
    >>> q = Qrels(["a", "b", "c"], [[], [], []], answers=[["The Thames", "thames"], ["Yes"], []])
    >>> findable_answers(q)
    (('thames',), (), ())
    """
    return tuple(
        tuple(dict.fromkeys(answer for answer in map(normalise_answer, row) if answer not in _NOT_SEARCHABLE))
        for row in qrels.answers
    )


def answer_supported(hits: Hits, qrels: Qrels, k: int, texts: Texts) -> Values:
    """Return 1 if one of a question's first k passages contains an accepted answer, else 0.

    Texts and answers are compared after :func:`normalise_answer`, as whole words: "art" is not in "party". In scripts
    without spaces, every character is a word. A passage
    may contain the answer without supporting it, so the metric is an upper bound for a reader that quotes the passages.
    It needs no gold passages.

    Parameters
    ----------
    hits : Hits
        B rows.
    qrels : Qrels
        The accepted answers of the same B queries.
    k : int, at least 1
    texts : sequence of str, or mapping of int to str
        The text of each passage by id, such as an index's ``texts``.

    Returns
    -------
    ndarray of float64, shape (B,)
        NaN for a question without :func:`findable_answers`: it accepts no answer, or only yes or no.

    Raises
    ------
    InputError
        The numbers of queries differ, k is below 1, or a passage has no text.

    References
    ----------
    Chen et al., ACL (2017), section 5.1.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, answer_supported
    >>> texts = ["Rivers of London", "It lies on the Thames."]
    >>> q = Qrels(["a", "b"], [[], []], answers=[["Thames"], ["yes"]])
    >>> answer_supported(hf.Hits([[1, 0], [0, 1]], [[0.9, 0.5], [0.9, 0.5]]), q, 1, texts)
    array([ 1., nan])
    """
    relevance(hits, qrels.gold_pairs, k)  # checks the arguments
    words = lru_cache(maxsize=None)(lambda passage: _as_words(normalise_answer(_text(texts, passage))))
    values = np.full(len(qrels), np.nan)
    for row, answers in enumerate(findable_answers(qrels)):
        if answers:
            sought = [_as_words(answer) for answer in answers]
            values[row] = any(one in words(passage) for passage, _ in hits.row(row)[:k] for one in sought)
    return values


def _as_words(text: str) -> str:
    """Return a normalised text with a space on both sides of every word."""
    return f" {' '.join(spaced(text, pairs=False).split())} "


def _text(texts: Texts, passage: int) -> str:
    try:
        text = texts[passage]
    except (IndexError, KeyError):
        raise InputError(
            "missing",
            "texts",
            "{field} has {count} passages, and lacks passage {passage}, which is among the hits; give its text",
            passage=passage,
            count=len(texts),
        ) from None
    return str(check_type(text, f"texts[{passage}]", str, "a string"))
