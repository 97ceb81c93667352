"""Cache of data derived from the arrays of a frozen type."""

from __future__ import annotations

from typing import Any


class KeepsDerived:
    """Base of frozen types with a dict ``derived``, where operations cache what they compute from the arrays.

    Pickling and copying leave the cache empty: it may hold memory of this process, and is filled again on use.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "derived": {}}
