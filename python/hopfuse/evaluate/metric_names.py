"""Metrics by name: ``"recall@5"``, ``"map"``, ``"answer_f1"``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ..errors import InputError
from ..types import Hits
from .metrics import (
    Values,
    answer_supported,
    answer_values,
    average_precision,
    distractor_suppression,
    exact_match,
    full_support,
    hit,
    hops_recovered,
    last_hop,
    last_hop_recall,
    ndcg,
    precision,
    r_precision,
    recall,
    reciprocal_rank,
    token_f1,
)
from .qrels import Qrels
from .runs import Run


@dataclass(frozen=True)
class Metric:
    """A metric with its cut-off, made by :func:`parse_metric`.

    Attributes
    ----------
    name : str
        As written, for instance ``"recall@5"``.
    binary : bool
        True if values are 0 or 1: the mean has a Wilson interval, and runs are compared by McNemar's test.
    per_query : callable (Hits or Run, Qrels) -> ndarray of float64, shape (B,)
    reads_texts, reads_baseline : bool
        True if the metric needs a :class:`Run` with the passages' texts, or with a baseline.
    counts_gold : bool
        True if the value depends only on the gold passages: trec_eval counts 0 for a query that has none.
    reads_grades : bool
        True if the grades of gold passages matter.
    """

    name: str
    binary: bool
    per_query: Callable[[Hits | Run, Qrels], Values]
    reads_texts: bool = False
    reads_baseline: bool = False
    counts_gold: bool = False
    reads_grades: bool = False


_AT_K: dict[str, tuple[Callable[..., Values], bool]] = {
    "recall": (recall, False),
    "precision": (precision, False),
    "hit": (hit, True),
    "full_support": (full_support, True),
    "last_hop": (last_hop, True),
    "last_hop_recall": (last_hop_recall, False),
    "hops_recovered": (hops_recovered, False),
    "mrr": (reciprocal_rank, False),
    "map": (average_precision, False),
    "ndcg": (ndcg, False),
}
_SUPPORT, _SUPPRESSION = "answer_supported", "distractor_suppression"
_EVERY_AT_K = (*_AT_K, _SUPPORT, _SUPPRESSION)
_WITHOUT_K: dict[str, Callable[..., Values]] = {
    "mrr": reciprocal_rank,
    "map": average_precision,
    "ndcg": ndcg,
    "r_precision": r_precision,
}
#: Those whose value for a query without gold passages is NaN for other reasons, such as unknown hops.
_OF_HOPS = ("last_hop", "last_hop_recall", "hops_recovered")
_ANSWERS: dict[str, tuple[Callable[[str, Sequence[str]], float], bool]] = {
    "answer_em": (exact_match, True),
    "answer_f1": (token_f1, False),
}


def parse_metric(name: str) -> Metric:
    """Return the metric with a name such as ``"recall@5"``.

    Parameters
    ----------
    name : str
        ``recall@k``, ``precision@k``, ``hit@k``, ``full_support@k``, ``last_hop@k``, ``last_hop_recall@k``,
        ``hops_recovered@k``, ``ndcg@k``, ``mrr@k``, ``map@k`` with a positive integer k; ``ndcg``, ``mrr``, ``map`` or
        ``r_precision`` over all the hits;
        ``answer_supported@k`` for a :class:`Run` with texts; ``distractor_suppression@k`` for one with a baseline;
        ``answer_em`` or ``answer_f1`` for one with answers.

    Raises
    ------
    InputError
        Any other name.

    Examples
    --------
    >>> from hopfuse.evaluate import parse_metric
    >>> parse_metric("last_hop@5").binary
    True
    """
    if name in _ANSWERS:
        score, binary = _ANSWERS[name]
        return Metric(name, binary, partial(_of_answers, score))
    if name in _WITHOUT_K:
        of_hits = partial(_of_hits, _WITHOUT_K[name], {})
        return Metric(name, False, of_hits, counts_gold=True, reads_grades=name == "ndcg")
    match = re.fullmatch(r"([a-z_]+)@([1-9][0-9]*)", name)
    if match is None or match[1] not in _EVERY_AT_K:
        raise InputError(
            "choice",
            "metric",
            "{field} is {given!r}; allowed: {allowed}, with k at least 1 (recall@5)",
            given=name,
            allowed=", ".join((*_WITHOUT_K, *_ANSWERS, *(f"{kind}@k" for kind in _EVERY_AT_K))),
        )
    if match[1] == _SUPPORT:
        return Metric(name, True, partial(_of_texts, int(match[2])), reads_texts=True)
    if match[1] == _SUPPRESSION:
        return Metric(name, False, partial(_against_baseline, int(match[2])), reads_baseline=True)
    function, binary = _AT_K[match[1]]
    of_hits = partial(_of_hits, function, {"k": int(match[2])})
    return Metric(name, binary, of_hits, counts_gold=match[1] not in _OF_HOPS, reads_grades=match[1] == "ndcg")


def _of_hits(function: Callable[..., Values], options: Mapping[str, int], run: Hits | Run, qrels: Qrels) -> Values:
    return function(run.hits if isinstance(run, Run) else run, qrels, **options)


def _of_texts(k: int, run: Hits | Run, qrels: Qrels) -> Values:
    if not isinstance(run, Run) or run.texts is None:
        raise _missing("texts", "a Run with the passages' texts, or --passages a file with 'text'")
    _check_accepted(qrels)
    return answer_supported(run.hits, qrels, k, run.texts)


def _against_baseline(k: int, run: Hits | Run, qrels: Qrels) -> Values:
    if not isinstance(run, Run) or run.baseline is None:
        raise _missing("baseline", "evaluate() a baseline (--baseline NAME), or a Run with the baseline's hits")
    return distractor_suppression(run.hits, run.baseline, qrels, k)


def _of_answers(score: Callable[[str, Sequence[str]], float], run: Hits | Run, qrels: Qrels) -> Values:
    if not isinstance(run, Run) or run.answers is None:
        raise _missing("answers", "a Run with answers, or rows with 'answer' in its file")
    _check_accepted(qrels)
    return answer_values(score, run.answers, qrels)


def _check_accepted(qrels: Qrels) -> None:
    if not any(qrels.answers):
        raise InputError("missing", "qrels", "{field} has no accepted answers; give 'answer' with the queries")


def _missing(part: str, fix: str) -> InputError:
    return InputError("missing", part, "the run has no {field}; give {fix}", fix=fix)
