"""Ranking metrics: a value per query, NaN for a query without the judgements that the metric needs."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arrays.convert import to_numpy
from .._arrays.distinct import distinct
from .._validation import check_length, check_list, check_some, check_type, check_whole
from ..errors import InputError
from ..text import fold, spaced
from ..types import Hits
from .qrels import Qrels, RelevantPairs


def relevance(hits: Hits, judged: RelevantPairs, k: int | None = None) -> NDArray[np.bool_]:
    """Return which of the first k hits of each query are relevant.

    Parameters
    ----------
    hits : Hits
        B rows.
    judged : RelevantPairs
        :attr:`Qrels.gold_pairs` or :attr:`Qrels.last_hop_pairs` of the same B queries.
    k : int, at least 1, optional
        By default all hits.

    Returns
    -------
    ndarray of bool, shape (B, min(k, width of the hits))
        False at padding.

    Raises
    ------
    InputError
        The numbers of queries differ, k is below 1, or hits are not on the host.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, relevance
    >>> q = Qrels(["a"], gold=[[5, 8]])
    >>> relevance(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), q.gold_pairs, 2)
    array([[ True, False]])
    """
    return gains(hits, judged, k) > 0


def gains(hits: Hits, judged: RelevantPairs, k: int | None = None) -> NDArray[np.int64]:
    """Return the grades of the first k hits of each query, 0 for passages that are not relevant.

    Parameters and errors are as for :func:`relevance`.

    Returns
    -------
    ndarray of int64, shape (B, min(k, width of the hits))
        0 at padding.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, gains
    >>> q = Qrels(["a"], gold=[[5, 8]], grades=[[2, 1]])
    >>> gains(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), q.gold_pairs)
    array([[1, 0, 2]])
    """
    width = _check(hits, judged, k)
    ids = to_numpy(hits.ids, "hits")[:, :width]
    valid = np.arange(width) < to_numpy(hits.counts, "hits")[:, None]
    known = distinct(judged.passage)
    if known.size == 0:
        return np.zeros(ids.shape, np.int64)
    at = np.minimum(np.searchsorted(known, ids), known.size - 1)
    pair = np.arange(ids.shape[0], dtype=np.int64)[:, None] * known.size + at
    wanted = judged.query * known.size + np.searchsorted(known, judged.passage)
    order = np.argsort(wanted)
    place = np.minimum(np.searchsorted(wanted, pair, sorter=order), wanted.size - 1)
    found = valid & (known[at] == ids) & (wanted[order][place] == pair)
    return np.where(found, judged.grade[order][place], 0)


def _check(hits: Hits, judged: RelevantPairs, k: int | None) -> int:
    queries, width = hits.shape
    check_length(queries, "hits", judged.sizes.size, "query")
    return width if k is None else min(check_whole(k, "k"), width)


Values = NDArray[np.float64]


def recall(hits: Hits, qrels: Qrels, k: int) -> Values:
    """Return the share of a query's gold passages that are among its first k hits.

    As in trec_eval, a list of fewer than k hits is not extended: passages that it lacks count as not found.

    Parameters
    ----------
    hits : Hits
        B rows.
    qrels : Qrels
        Judgements of the same B queries, in the same order.
    k : int, at least 1

    Returns
    -------
    ndarray of float64, shape (B,)
        In [0, 1]; NaN for a query without gold passages.

    Raises
    ------
    InputError
        The numbers of queries differ, or k is below 1.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, recall
    >>> recall(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), Qrels(["a"], [[5, 8]]), 2)
    array([0.5])
    """
    found = relevance(hits, qrels.gold_pairs, k).sum(axis=1)
    return _where_judged(found / np.maximum(qrels.gold_pairs.sizes, 1), qrels.gold_pairs.sizes)


def precision(hits: Hits, qrels: Qrels, k: int) -> Values:
    """Return the share of the first k hits that are gold passages.

    As in trec_eval, the number is divided by k even for lists of fewer hits. Parameters, returned shape and errors are
    as for :func:`recall`.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, precision
    >>> precision(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), Qrels(["a"], [[5, 8]]), 4)
    array([0.5])
    """
    return _where_judged(relevance(hits, qrels.gold_pairs, k).sum(axis=1) / k, qrels.gold_pairs.sizes)


def r_precision(hits: Hits, qrels: Qrels) -> Values:
    """Return the precision, and recall, of the first R hits of a query, where R is the number of its gold passages.

    Parameters, returned shape and errors are otherwise as for :func:`recall`.

    References
    ----------
    Buckley and Voorhees, in TREC: Experiment and Evaluation in Information Retrieval (2005), section 3.1.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, r_precision
    >>> r_precision(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), Qrels(["a"], [[5, 8]]))
    array([0.5])
    """
    sizes = qrels.gold_pairs.sizes
    relevant = relevance(hits, qrels.gold_pairs)
    first = np.arange(relevant.shape[1]) < sizes[:, None]
    return _where_judged((relevant & first).sum(axis=1) / np.maximum(sizes, 1), sizes)


def hit(hits: Hits, qrels: Qrels, k: int) -> Values:
    """Return 1 if at least one gold passage is among the first k hits, else 0.

    Parameters, returned shape and errors are as for :func:`recall`.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, hit
    >>> hit(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), Qrels(["a"], [[5, 8]]), 1)
    array([1.])
    """
    found = relevance(hits, qrels.gold_pairs, k).any(axis=1)
    return _where_judged(found, qrels.gold_pairs.sizes)


def full_support(hits: Hits, qrels: Qrels, k: int) -> Values:
    """Return 1 if all gold passages are among the first k hits, else 0.

    Parameters, returned shape and errors are as for :func:`recall`.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, full_support
    >>> full_support(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), Qrels(["a"], [[5, 8]]), 3)
    array([1.])
    """
    found = relevance(hits, qrels.gold_pairs, k).sum(axis=1)
    return _where_judged(found == qrels.gold_pairs.sizes, qrels.gold_pairs.sizes)


def last_hop(hits: Hits, qrels: Qrels, k: int) -> Values:
    """Return 1 if at least one passage of the last hop is among the first k hits, else 0.

    NaN for a query whose last hop is not known (:attr:`Qrels.num_without_last_hop` counts them).
    Parameters, returned shape and errors are as for :func:`recall`.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, last_hop
    >>> q = Qrels(["a", "b"], gold=[[5, 8], [1]], last_hop=[[5], []])
    >>> last_hop(hf.Hits([[8, 2], [1, 3]], [[0.9, 0.5], [0.7, 0.1]]), q, 2)
    array([ 0., nan])
    """
    found = relevance(hits, qrels.last_hop_pairs, k).any(axis=1)
    return _where_judged(found, qrels.last_hop_pairs.sizes)


def last_hop_recall(hits: Hits, qrels: Qrels, k: int) -> Values:
    """Return the share of the last hop's passages that are among the first k hits.

    Unlike :func:`last_hop`, it is 1 only if all passages of the last hop are found, of which a comparison has several.
    NaN for a query whose last hop is not known. Parameters, returned shape and errors are as for :func:`recall`.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, last_hop_recall
    >>> q = Qrels(["a", "b"], gold=[[5, 8], [1]], last_hop=[[5, 8], []])
    >>> last_hop_recall(hf.Hits([[8, 2], [1, 3]], [[0.9, 0.5], [0.7, 0.1]]), q, 2)
    array([0.5, nan])
    """
    sizes = qrels.last_hop_pairs.sizes
    return _where_judged(relevance(hits, qrels.last_hop_pairs, k).sum(axis=1) / np.maximum(sizes, 1), sizes)


def reciprocal_rank(hits: Hits, qrels: Qrels, k: int | None = None) -> Values:
    """Return 1 / rank of the first gold passage among the first k hits, 0 if there is none.

    The mean over queries is the MRR. Without k, all hits count. Parameters, returned shape and
    errors are otherwise as for :func:`recall`.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, reciprocal_rank
    >>> reciprocal_rank(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), Qrels(["a"], [[2]]))
    array([0.5])
    """
    relevant = relevance(hits, qrels.gold_pairs, k)
    if relevant.shape[1] == 0:
        return _where_judged(np.zeros(len(qrels)), qrels.gold_pairs.sizes)
    ranks = 1 / (1 + relevant.argmax(axis=1))
    return _where_judged(np.where(relevant.any(axis=1), ranks, 0.0), qrels.gold_pairs.sizes)


def ndcg(hits: Hits, qrels: Qrels, k: int | None = None) -> Values:
    """Return the normalised discounted cumulative gain at k.

    The gain of a hit is its grade, its discount is 1 / log2(1 + rank). The ideal ranking has the gold passages in
    descending order of grade. Without k, all hits count, and all gold passages are in the ideal ranking. Parameters,
    returned shape and errors are otherwise as for :func:`recall`.

    References
    ----------
    Järvelin and Kekäläinen, ACM TOIS 20 (2002).

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, ndcg
    >>> ndcg(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), Qrels(["a"], [[5, 8]]), 3).round(3)
    array([0.92])
    """
    judged = qrels.gold_pairs
    reached = _discounted(gains(hits, judged, k))
    most = int(judged.sizes.max(initial=0))
    best = _discounted(_ideal_gains(judged, most if k is None else min(k, most)))
    return _where_judged(reached / np.where(judged.sizes > 0, best, 1), judged.sizes)


def average_precision(hits: Hits, qrels: Qrels, k: int | None = None) -> Values:
    """Return the average precision: the sum of the precisions at the ranks of gold passages, over their number.

    The mean over queries is the MAP. A gold passage that is not among the hits adds 0. Without k, all hits
    count. Parameters, returned shape and errors are otherwise as for :func:`recall`.

    References
    ----------
    Buckley and Voorhees, in TREC: Experiment and Evaluation in Information Retrieval (2005), section 3.1.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, average_precision
    >>> average_precision(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), Qrels(["a"], [[5, 8]])).round(3)
    array([0.833])
    """
    relevant = relevance(hits, qrels.gold_pairs, k)
    precision = np.cumsum(relevant, axis=1) / np.arange(1, relevant.shape[1] + 1)
    sizes = qrels.gold_pairs.sizes
    return _where_judged((precision * relevant).sum(axis=1) / np.maximum(sizes, 1), sizes)


def _discounted(gain: NDArray[np.int64]) -> Values:
    """Return the discounted sum of each row, added in order, so that the nDCG of a perfect ranking is exactly 1."""
    discount = 1 / np.log2(np.arange(2, gain.shape[1] + 2))
    return np.cumsum(gain * discount, axis=1)[:, -1] if gain.shape[1] else np.zeros(len(gain))


def _ideal_gains(judged: RelevantPairs, k: int) -> NDArray[np.int64]:
    """Return the k highest grades of each query in descending order, shape (B, k), padded with 0."""
    order = np.lexsort((-judged.grade, judged.query))
    rank = np.arange(order.size) - np.repeat(np.cumsum(judged.sizes) - judged.sizes, judged.sizes)
    kept = rank < k
    ideal = np.zeros((judged.sizes.size, k), np.int64)
    ideal[judged.query[order][kept], rank[kept]] = judged.grade[order][kept]
    return ideal


def _where_judged(values: ArrayLike, sizes: NDArray[np.int64]) -> Values:
    return np.where(sizes > 0, np.asarray(values, np.float64), np.nan)


def hops_recovered(hits: Hits, qrels: Qrels, k: int) -> Values:
    """Return the share of a question's hops that have a gold passage among its first k hits.

    One passage recovers a hop, even if the hop has several; a passage of two hops recovers both. Hops without passages
    are not counted.

    Parameters
    ----------
    hits : Hits
        B rows.
    qrels : Qrels
        Judgements of the same B queries, with ``hops``.
    k : int, at least 1

    Returns
    -------
    ndarray of float64, shape (B,)
        In [0, 1]; NaN for a query whose hops are not known.

    Raises
    ------
    InputError
        The numbers of queries differ, or k is below 1.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, hops_recovered
    >>> q = Qrels(["a"], gold=[[5, 8, 2]], hops=[[[5, 2], [8]]])
    >>> hops_recovered(hf.Hits([[2, 7, 8]], [[0.9, 0.5, 0.1]]), q, 2)
    array([0.5])
    """
    relevance(hits, qrels.gold_pairs, k)  # checks the arguments
    values = np.full(len(qrels), np.nan)
    for row, hops in enumerate(qrels.hops):
        judged = [hop for hop in hops if hop]
        if judged:
            found = {passage for passage, _ in hits.row(row)[:k]}
            values[row] = sum(not found.isdisjoint(hop) for hop in judged) / len(judged)
    return values


def distractor_suppression(hits: Hits, baseline: Hits, qrels: Qrels, k: int) -> Values:
    """Return the share of a question's distractors that are not among its first k hits.

    A distractor is a passage that is not gold but is among the first k hits of the baseline, usually the dense leg: it
    looks like an answer but is not. Only the baseline's passages count, so wrong passages that the run adds do not
    lower the value; precision counts those. Since an empty list suppresses every distractor, read the metric together
    with recall at the same k.

    Parameters
    ----------
    hits, baseline : Hits
        B rows each.
    qrels : Qrels
        Judgements of the same B queries.
    k : int, at least 1

    Returns
    -------
    ndarray of float64, shape (B,)
        In [0, 1]; NaN for a query without gold passages, or if the baseline's first k hits are all gold.

    Raises
    ------
    InputError
        The numbers of queries differ, or k is below 1.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, distractor_suppression
    >>> dense = hf.Hits([[4, 1, 6]], [[0.9, 0.5, 0.1]])
    >>> fused = hf.Hits([[1, 6, 4]], [[0.9, 0.5, 0.1]])
    >>> distractor_suppression(fused, dense, Qrels(["a"], [[1]]), 2)
    array([1.])
    """
    relevance(hits, qrels.gold_pairs, k)  # checks the arguments
    gold = relevance(baseline, qrels.gold_pairs, k)
    values = np.full(len(qrels), np.nan)
    for row in np.flatnonzero(qrels.gold_pairs.sizes > 0).tolist():
        first = baseline.row(row)[:k]
        wrong = {passage for (passage, _), right in zip(first, gold[row], strict=False) if not right}
        if wrong:
            kept = {passage for passage, _ in hits.row(row)[:k]}
            values[row] = len(wrong - kept) / len(wrong)
    return values


# ---- Answers ---------------------------------------------------------------------------------------------------------


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise_answer(answer: str) -> str:
    """Return an answer folded, without punctuation and English articles, and with single spaces.

    :func:`hopfuse.text.fold` makes case and other spellings of the same characters equal. Punctuation means ASCII's, as
    published, and other scripts'; typographic quotes and dashes stay.

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
    such as "The"), the score is 1 if both have none, else 0. Parameters and errors are as for :func:`exact_match`.

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
