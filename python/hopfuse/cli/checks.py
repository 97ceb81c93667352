"""Options that need or exclude others: tables of an option, the others, and the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .._validation import check_excludes, check_needs

#: An option, one or several others, and the reason, which ends the first clause of the sentence.
Rule = tuple[str, str | tuple[str, ...], str]


def stated(given: Mapping[str, Any], name: str) -> Any:
    """Return the value of an option, or None if it is not given."""
    value = given.get(name)
    return None if value is False or value == () else value


def check_rules(given: Mapping[str, Any], needs: Iterable[Rule] = (), excludes: Iterable[Rule] = ()) -> None:
    """Refuse an option without one of those that it needs, and an option beside one that it excludes.

    Parameters
    ----------
    given : mapping
        Values by name. One that is None, False or () is not given. A name may have a value behind it, as in ``"reader
        words"``.
    needs, excludes : iterable of (option, others, reason)
    """
    for option, others, reason in needs:
        check_needs(option, stated(given, option), others, _first(given, others), reason)
    for option, others, reason in excludes:
        check_excludes(option, stated(given, option), others, _first(given, others), reason)


def _first(given: Mapping[str, Any], others: str | tuple[str, ...]) -> Any:
    names = (others,) if isinstance(others, str) else others
    return next((value for name in names if (value := stated(given, name)) is not None), None)
