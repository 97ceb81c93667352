"""How good answers are: exact match and token F1."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from ..errors import InputError
from .metrics import Values
from .qrels import Qrels

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(answer: str) -> str:
    """An answer in lower case, without ASCII punctuation and English articles, white space made single.

    References
    ----------
    Rajpurkar et al., EMNLP (2016), section 6.1.

    Examples
    --------
    >>> from hopfuse.evaluate import normalised
    >>> normalised("The  Beatles!")
    'beatles'
    """
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(answer: str, accepted: Sequence[str]) -> float:
    """1 where an answer equals one of the accepted ones after :func:`normalised`, else 0.

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
    """Harmonic mean of precision and recall of the tokens, against the accepted answer it fits best.

    Tokens are the words after :func:`normalised`, counted as often as they occur. Where either side has
    none (an answer such as "The"), it is 1 if both have none, else 0. Parameters and errors are those of
    :func:`exact_match`.

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
    """A score for each query: 0 where it was not answered, NaN where no answer is accepted.

    Parameters
    ----------
    score : callable (str, sequence of str) -> float
        :func:`exact_match` or :func:`token_f1`.
    answers : sequence of str or None, B entries
    qrels : Qrels
        With the accepted answers of the same B queries.

    Returns
    -------
    ndarray of float64, shape (B,)

    Raises
    ------
    InputError
        Another number of answers than queries.

    Examples
    --------
    >>> from hopfuse.evaluate import Qrels, answer_values, exact_match
    >>> q = Qrels(["a", "b", "c"], [[], [], []], answers=[["no"], ["yes"], []])
    >>> answer_values(exact_match, ["No.", None, "x"], q)
    array([ 1.,  0., nan])
    """
    if len(answers) != len(qrels):
        raise InputError(f"{len(answers)} answers for {len(qrels)} queries; give one per query, or None")
    values = [
        np.nan if not accepted else 0.0 if answer is None else score(answer, accepted)
        for answer, accepted in zip(answers, qrels.answers, strict=True)
    ]
    return np.array(values, np.float64)


def _best(score: Callable[[str, str], float], answer: str, accepted: Sequence[str]) -> float:
    if isinstance(accepted, str) or not accepted:
        raise InputError(f"accepted is {accepted!r}; give a list of one or more accepted answers")
    given = normalised(answer)
    return max(score(given, normalised(right)) for right in accepted)


def _overlap(given: str, right: str) -> float:
    ours, theirs = Counter(given.split()), Counter(right.split())
    if not ours or not theirs:
        return float(ours == theirs)
    return 2 * (ours & theirs).total() / (ours.total() + theirs.total())
