"""Data that frozen types derive from their arrays."""

from __future__ import annotations

from typing import Any


class KeepsDerived:
    """A frozen type with a dict ``derived``: what operations derive from its arrays once.

    Pickling and copying leave it out: it holds prepared memory of a process, and comes again at the next use.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "derived": {}}
