"""The rules by which texts are folded and cut into names, words and terms. An index goes on under its own rule."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from ..errors import InputError

#: The numbers of the rules that this version knows.
RULES = (1, 2)
#: The rule under which words and terms are read if nothing else is said.
RULE = 2
#: The rule under which names are read.
NAME_RULE = 2


def check_rule(rule: Any, what: str, last: int = RULE) -> int:
    """Return the number of a rule as an int; ``what`` says what was read under it, ``last`` is its last rule.

    Raises
    ------
    InputError
        This version does not know the rule.

    Examples
    --------
    >>> check_rule(1, "words")
    1
    """
    if isinstance(rule, bool) or not isinstance(rule, Integral) or not 1 <= int(rule) <= last:
        raise InputError(
            "version",
            "rule",
            "the reading rule of the {what} is {given!r}, which only a later version of hopfuse can know; this one "
            "knows {allowed}: install a later version",
            what=what,
            given=rule,
            allowed=" and ".join(str(at) for at in RULES if at <= last),
        )
    return int(rule)
