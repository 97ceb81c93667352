"""Find names of one entity: pairs with similar vectors, and abbreviations that a text explains."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_length, check_needs, check_number, checked_texts
from ..errors import InputError
from ..ops.dense import dense_topk
from ..types import Corpus

Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
CHUNK = 4096  # entities in one search
ANY = "*"  # stands for types without a bound
NEIGHBOURS = 32  # in the first search; more for entities that have more


def similar_pairs(
    vectors: Any,
    min_similarity: float | Mapping[str, float] = 0.8,
    *,
    types: Sequence[str] | None = None,
    threads: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return all pairs of vectors whose cosine is at least a bound.

    Parameters
    ----------
    vectors : Corpus, or array_like of float (E, d)
        Compared by cosine.
    min_similarity : float in [-1, 1], or mapping of str to float
        One bound, or one for each type; ``"*"`` stands for other types. A pair of different types must reach the larger
        of their bounds.
    types : sequence of str, E entries, optional
        Types such as :attr:`Memory.labels`, required if the bounds are a mapping. To join only some types, give the
        vectors of these.
    threads : int, optional

    Returns
    -------
    pairs : ndarray of int64, shape (M, 2)
        a < b in each row, rows ascending.
    similarities : ndarray of float32, shape (M,)

    Raises
    ------
    InputError
        A bound outside [-1, 1], types that are not strings or not one per vector, or a type without a bound.

    Examples
    --------
    >>> from hopfuse.extract import similar_pairs
    >>> similar_pairs([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]], 0.9)[0]
    array([[0, 2]])
    >>> types, bounds = ["ORG", "", "ORG"], {"ORG": 0.9, "*": 0.1}
    >>> similar_pairs([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]], bounds, types=types)[0]
    array([[0, 2]])
    """
    corpus = vectors if isinstance(vectors, Corpus) else Corpus.from_array(vectors, metric="cosine")
    corpus = corpus.with_metric("cosine")
    bounds = _bounds(min_similarity, types, len(corpus))
    found: list[Pairs] = []
    for start in range(0, len(corpus), CHUNK):
        rows = np.arange(start, min(start + CHUNK, len(corpus)))
        found += _neighbours(corpus, rows, bounds, threads)
    if not found:
        return np.zeros((0, 2), np.int64), np.zeros(0, np.float32)
    a, b, similarity = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((b, a))
    return np.stack([a, b], axis=1)[order], similarity[order]


def _neighbours(
    corpus: Corpus, rows: NDArray[np.int64], bounds: NDArray[np.float64], threads: int | None
) -> list[Pairs]:
    """Return the pairs (a, b) with a in ``rows`` and a < b, doubling lists that end above their bound."""
    k, found = min(NEIGHBOURS, len(corpus)), list[Pairs]()
    while rows.size:
        longer = list[NDArray[np.int64]]()
        step = max(1, CHUNK * NEIGHBOURS // k)  # keep the size of a search constant as k grows
        for part in (rows[start : start + step] for start in range(0, rows.size, step)):
            hits = dense_topk(corpus.vectors[part], corpus, k, threads=threads)
            more = (hits.scores[:, -1] >= bounds[part]) & (k < len(corpus))
            ids, scores = hits.ids[~more], hits.scores[~more]
            own = np.broadcast_to(part[~more, None], ids.shape)
            kept = (ids > own) & (scores >= np.maximum(bounds[own], bounds[ids]))
            found.append((own[kept], ids[kept], scores[kept]))
            longer.append(part[more])
        rows, k = np.concatenate(longer), min(2 * k, len(corpus))
    return found


def _bounds(given: Any, types: Sequence[str] | None, count: int) -> NDArray[np.float64]:
    names = [] if types is None else checked_texts(types, "types")
    if types is not None:
        check_length(len(names), "types", count, "vector")
    if not isinstance(given, Mapping):
        check_number(given, "min_similarity", low=-1, high=1)
        return np.full(count, float(given))
    check_needs("min_similarity", given, "types", types, "since it has a bound for each type")
    for name, bound in given.items():
        check_number(bound, f"min_similarity[{name!r}]", low=-1, high=1)
    absent = () if ANY in given else sorted(set(names) - set(given))
    if absent:
        raise InputError(
            "missing",
            f"min_similarity[{absent[0]!r}]",
            "{field} is missing; give it, or {any!r} for all types without a bound of their own",
            any=ANY,
        )
    return np.array([float(given[name if name in given else ANY]) for name in names])


# ---- One similarity for each label -----------------------------------------------------------------------------------


Bounds = float | Mapping[str, float]


def synonym_bounds(synonyms: str | Bounds, labels: Sequence[str] | None = None) -> float | dict[str, float]:
    """Return the minimum similarity of synonyms, or one for each label.

    Parameters
    ----------
    synonyms : str, float in [0, 1], or mapping of str to float
        As ``hopfuse build --synonyms`` takes it: ``"0.8"`` or ``"PERSON=0.85,*=0.9"``, where ``*`` stands for other
        labels; or what was read from it.
    labels : sequence of str, optional
        The labels that entities can have, if they are known; any other is refused.

    Returns
    -------
    float, or dict of str to float

    Raises
    ------
    InputError
        A bound is not a number in [0, 1], a label is missing or there twice, or no entity can have it.

    Examples
    --------
    >>> from hopfuse.extract import synonym_bounds
    >>> synonym_bounds("0.8"), synonym_bounds("PERSON=0.85,*=0.9", labels=["ORG", "PERSON"])
    (0.8, {'PERSON': 0.85, '*': 0.9})
    """
    if isinstance(synonyms, str) and "=" in synonyms:
        bounds = dict(_read(synonyms))
    elif isinstance(synonyms, Mapping):
        bounds = {label: _bound(given, label) for label, given in synonyms.items()}
    else:
        return check_number(_number(synonyms), "synonyms", low=0, high=1)
    if labels is not None:
        _check_labels(bounds, labels)
    return bounds


def synonym_pairs(
    vectors: Any, synonyms: Bounds, labels: Sequence[str], *, threads: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the pairs of entities that are similar enough; entities with a label without a bound are left out.

    Parameters
    ----------
    vectors : array_like of float (E, d)
        Compared by cosine.
    synonyms : float, or mapping of str to float
        From :func:`synonym_bounds`. A pair of different labels must reach the larger of their bounds.
    labels : sequence of str, E entries
        Labels such as :attr:`Memory.labels`.
    threads : int, optional

    Returns
    -------
    pairs : ndarray of int64, shape (M, 2)
        a < b in each row, rows ascending.
    similarities : ndarray of float32, shape (M,)

    Raises
    ------
    InputError
        The labels are not one per vector, or a bound is outside [-1, 1].

    Examples
    --------
    >>> from hopfuse.extract import synonym_pairs
    >>> synonym_pairs([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], {"ORG": 0.9}, ["ORG", "", "ORG"])[0]
    array([[0, 2]])
    """
    if not isinstance(synonyms, Mapping):
        return similar_pairs(vectors, synonyms, threads=threads)
    check_length(len(labels), "labels", len(vectors), "vector")
    rows = np.flatnonzero([ANY in synonyms or label in synonyms for label in labels])
    types = [labels[row] for row in rows.tolist()]
    pairs, similarities = similar_pairs(np.asarray(vectors)[rows], synonyms, types=types, threads=threads)
    return rows[pairs], similarities


def _read(given: str) -> Iterator[tuple[str, float]]:
    known = set[str]()
    for part in given.split(","):
        label, _, number = (piece.strip() for piece in part.partition("="))
        if not label:
            raise InputError(
                "syntax",
                "synonyms",
                "{field} is {given!r}, where {part!r} has no label; give one similarity, or one for each label: "
                "PERSON=0.85,ORG=0.8,*=0.9",
                given=given,
                part=part,
            )
        if label in known:
            raise InputError(
                "duplicate",
                "synonyms",
                "{field} is {given!r}, which has the label {label!r} twice; give it one similarity",
                given=given,
                label=label,
            )
        known.add(label)
        yield label, _bound(number, label)


def _bound(given: Any, label: str) -> float:
    return check_number(_number(given), f"synonyms[{label}]", low=0, high=1)


def _number(given: Any) -> Any:
    """Return the number that a text is, and anything else as it is."""
    try:
        return float(given) if isinstance(given, str) else given
    except ValueError:
        return given


def _check_labels(bounds: Mapping[str, float], known: Sequence[str]) -> None:
    for label in bounds:
        if label == ANY or label in known:
            continue
        if not known:
            raise InputError(
                "unused",
                "synonyms",
                "{field} has the label {label!r}, but only the reader spacy gives entities labels; give one similarity "
                "for all of them",
                label=label,
            )
        raise InputError(
            "unknown",
            "synonyms",
            "{field} has the label {label!r}; the reader's labels are {allowed}",
            label=label,
            allowed=", ".join(known),
        )


# ---- Abbreviations ---------------------------------------------------------------------------------------------------


_WINDOW = 500  # characters that are searched before a parenthesis; a long form has at most 15 words
_PARENTHESES = re.compile(r"\(([^()]{2,})\)")
_END_OF_SENTENCE = re.compile(r"[.!?;]\s|[()]")
_WORD = re.compile(r"\S+")


def abbreviations(texts: Iterable[str]) -> dict[tuple[str, str], int]:
    """Return abbreviations and their long forms, found by the algorithm of Schwartz and Hearst.

    Parameters
    ----------
    texts : iterable of str
        The 500 characters before each parenthesis are searched.

    Returns
    -------
    dict of (str, str) to int
        The number of occurrences of each pair (short, long), in the order of first occurrence.

    Notes
    -----
    A short form has 2 to 10 characters and at most two words, begins with a letter or digit, and contains a letter. Its
    long form ends right before the parenthesis and has at most ``min(|A| + 5, 2 |A|)`` words, where ``|A|`` is the
    length of the short form. Read from the right, the long form contains the letters and digits of the short form in
    order, the first one at the beginning of a word. "IMF (International Monetary Fund)" is also recognised.

    Raises
    ------
    InputError
        A single string, or an entry that is not a string.

    References
    ----------
    Schwartz and Hearst, A Simple Algorithm for Identifying Abbreviation Definitions in Biomedical Text, PSB 2003.

    Examples
    --------
    >>> from hopfuse.extract import abbreviations
    >>> abbreviations(["She led the International Monetary Fund (IMF) (2011)."])
    {('IMF', 'International Monetary Fund'): 1}
    """
    found: Counter[tuple[str, str]] = Counter()
    for text in checked_texts(texts):
        found.update(pair for match in _PARENTHESES.finditer(text) if (pair := _explained(text, match)))
    return dict(found)


def _explained(text: str, match: re.Match[str]) -> tuple[str, str] | None:
    inside = re.split(r"[,;]", match[1])[0].strip()
    begin = max(0, match.start() - _WINDOW)
    before = _END_OF_SENTENCE.split(text[begin : match.start()])[-1].rstrip()
    if _is_short(inside):
        long = _long_form(inside, before)
        return None if long is None else (inside, long)
    words = _WORD.findall(before)
    if words and _is_short(words[-1]) and _long_form(words[-1], inside) == inside:
        return words[-1], inside
    return None


def _is_short(form: str) -> bool:
    fits = 2 <= len(form) <= 10 and len(form.split()) <= 2 and form[0].isalnum()
    return fits and any(map(str.isalpha, form))


def _long_form(short: str, before: str) -> str | None:
    """Return the shortest suffix of ``before`` that contains the short form's characters in order."""
    words = list(_WORD.finditer(before))[-min(len(short) + 5, 2 * len(short)) :]
    if not words:
        return None
    begin = words[0].start()
    candidate, at = before[begin:], len(before) - begin - 1
    for i in range(len(short) - 1, -1, -1):
        wanted = short[i].lower()
        if not wanted.isalnum():
            continue
        while at >= 0 and (candidate[at].lower() != wanted or (i == 0 and at > 0 and candidate[at - 1].isalnum())):
            at -= 1
        if at < 0:
            return None
        at -= 1
    long = candidate[at + 1 :]
    # It must be longer than the short form, and not contain it as a word.
    return long if len(long) > len(short) and short not in long.split() else None
