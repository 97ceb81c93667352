"""Read passages that are added to an index, in the way in which those of its build were read."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ..index import Index
from ..io.skips import SKIP_FAILED, Skips
from .building import Reader
from .extraction import Progress
from .memory import Memory
from .memory_build import build_memory
from .words import WordReader


class AddedPassages:
    """Finds the entities, facts and words of passages that are added; words are read as those of the index.

    Parameters
    ----------
    index : Index
    facts : Reader, optional
        The reader of facts that the index was built with.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.extract.added import AddedPassages
    >>> added = AddedPassages(hf.Index.build([{"id": "a", "text": "Rivers flow."}], reader="words"))
    >>> added.expect(1)
    >>> added.read([{"id": "b", "text": "A river rises."}]).entities
    ('river', 'rises')
    """

    def __init__(self, index: Index, facts: Reader | None = None) -> None:
        self._facts = facts
        self._words = None if index.words is None else WordReader.like(index.words)
        self._skips: dict[str, Skips] = {}

    @property
    def reads(self) -> bool:
        """True if there is a reader of words or of facts."""
        return self._facts is not None or self._words is not None

    def expect(self, total: int | None) -> None:
        """Expect so many passages in all calls of :meth:`read` together, of which the reader's share may fail.

        If it is None, any may fail: the caller counts them.
        """
        share = 100.0
        if total is not None:
            share = SKIP_FAILED if self._facts is None else getattr(self._facts, "skip_failed", SKIP_FAILED)
        self._skips = {name: Skips(share, sys.maxsize if total is None else total) for name in ("facts", "words")}

    def read(self, rows: Sequence[Mapping[str, Any]], progress: Progress | None = None) -> Memory:
        """Return what the readers find in passages."""
        if self._facts is None:
            assert self._words is not None
            return build_memory(self._words.read(rows, progress=progress, skips=self._skips["words"]))
        counts: Any = {"skips": self._skips["facts"]} if hasattr(self._facts, "skip_failed") else {}
        found = self._facts.read(rows, progress=progress, **counts)
        return build_memory(found if self._words is None else self._words.add(found, skips=self._skips["words"]))
