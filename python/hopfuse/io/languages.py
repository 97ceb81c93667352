"""Language tags."""

from __future__ import annotations

import re

_TAG = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")
#: The tag of a language that is not known.
_UNDETERMINED = "und"


def language_tag(text: str) -> str | None:
    """Return a BCP 47 tag in its canonical case; None for ``und`` and for blank text.

    Raises
    ------
    ValueError
        The text is not such a tag.

    References
    ----------
    RFC 5646, Tags for Identifying Languages, 2009, section 2.1.1.

    Examples
    --------
    >>> [language_tag(text) for text in ("EN", "zh-hant-tw", "und", "")]
    ['en', 'zh-Hant-TW', None, None]
    """
    if not text.strip():
        return None
    if not _TAG.fullmatch(text):
        raise ValueError(text)
    parts = text.lower().split("-")
    if parts[0] == _UNDETERMINED:
        return None
    for at in range(1, len(parts)):
        if len(parts[at - 1]) > 1 and len(parts[at]) in (2, 4):  # not after a singleton such as x
            parts[at] = parts[at].upper() if len(parts[at]) == 2 else parts[at].title()
    return "-".join(parts)
