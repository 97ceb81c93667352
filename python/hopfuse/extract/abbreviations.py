"""Find abbreviations that a text explains: "the International Monetary Fund (IMF)"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from .._validation import checked_texts

WINDOW = 500  # characters that are searched before a parenthesis; a long form has at most 15 words
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
    order, the first one at the beginning of a word. "IMF (International Monetary Fund)" is recognised too.

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
    begin = max(0, match.start() - WINDOW)
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
