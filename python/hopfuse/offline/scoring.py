"""Scorers of queries, and the maker of parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from ..errors import InputError
from ..io.queries import Query, QueryRows
from ..recipes import note_data
from ..retriever import Retriever
from .folder import Folder
from .parts import Row
from .plan import CHUNK, Plan


class Scorer(Protocol):
    """Turns queries into rows of the result, which must depend only on the query and the plan.

    Examples
    --------
    >>> class LengthScorer:
    ...     def score(self, queries, first):
    ...         return [{"id": q.id, "hits": [{"id": "p", "score": float(len(q.text))}]} for q in queries]
    """

    def score(self, queries: Sequence[Query], first: int) -> Sequence[Row]:
        """Return a row for each of the queries ``first``, ``first + 1``, ... of the file."""
        ...


#: Opens the scorer of a plan with so many threads (None for all). Each worker process opens its own, so the function
#: must be importable from a module.
OpenScorer = Callable[[Plan, int | None], Scorer]


class RetrieverScorer:
    """Scores queries by a retriever, with the texts, vectors and entities that they have.

    Parameters
    ----------
    retriever : Retriever
        It makes the vectors and finds the entities that queries do not have.
    k : int
        Hits of a query.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse import offline
    >>> from hopfuse.io.queries import Query
    >>> scorer = offline.RetrieverScorer(hf.Retriever(hf.Index.from_texts(["A river.", "The sea."])), k=1)
    >>> scorer.score([Query("q", "Which sea?", None, None)], 0)[0]["hits"][0]["id"]
    1
    """

    def __init__(self, retriever: Retriever, k: int = 10) -> None:
        self._retriever, self._k = retriever, k

    def score(self, queries: Sequence[Query], first: int) -> list[Row]:
        """Return a row for each query: ``id``, ``hits`` and, if there are any, ``notes``."""
        found = self._retriever.search(
            [query.text for query in queries],
            vectors=[query.vector for query in queries],
            entities=[query.entities for query in queries],
            k=self._k,
        )
        rows: list[dict[str, Any]] = []
        for query, hits, notes in zip(queries, found, found.notes, strict=True):
            rows.append({"id": query.id, "hits": [{"id": hit.id, "score": hit.score} for hit in hits]})
            if notes:
                rows[-1]["notes"] = note_data(notes)
        return list(rows)


class PartMaker:
    """Makes parts of a plan, one after another.

    Parameters
    ----------
    folder : Folder
    scorer : Scorer
    chunk : int
        Number of queries scored at a time, which does not affect the parts.
    """

    def __init__(self, folder: Folder, scorer: Scorer, chunk: int = CHUNK) -> None:
        self._folder, self._scorer, self._chunk = folder, scorer, chunk
        self._queries = QueryRows(Path(folder.plan.queries))

    def make(self, part: int) -> None:
        """Make a part, unless it exists."""
        if not self._folder.has(part):
            self._folder.add(part, self.rows(part))

    def rows(self, part: int) -> list[Row]:
        """Return the rows of a part.

        Raises
        ------
        InputError
            The file of queries has fewer rows than the plan.
        """
        plan, found = self._folder.plan, list[Row]()
        first, end = plan.row_range(part)
        offset = plan.offset(part)
        for start in range(first, end, self._chunk):
            count = min(self._chunk, end - start)
            queries = self._queries.read(start, count, offset)
            if len(queries) != count:
                raise InputError(
                    "changed",
                    "queries",
                    "{field}: {path} has {given} rows; it had {allowed} when planned",
                    path=plan.queries,
                    given=start + len(queries),
                    allowed=plan.rows,
                )
            found += self._scorer.score(queries, start)
        return found
