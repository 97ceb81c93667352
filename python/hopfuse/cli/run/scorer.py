"""The scorer of a plan: a retriever with the options of ``hopfuse score``, and checks of its queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ... import Index
from ...errors import InputError
from ...io.qrels import trec_name
from ...io.queries import Query, count_queries
from ...offline import Output, Plan
from ...offline.parts import Row
from ...offline.plan import open_index
from ...recipes import note_data
from ..recipes import check_answers, language_model, open_retriever, search_options
from .queries import QueryInputs

#: The values of ``--with``.
EXTRAS = ("title", "text", "metadata", "legs")


def open_scorer(plan: Plan, threads: int | None) -> QueryScorer:
    """Return the scorer of a plan that ``hopfuse score`` made."""
    return QueryScorer(open_index(plan), {**plan.scoring, "threads": threads}, Path(plan.queries))


class QueryScorer:
    """Turns queries into rows of the result.

    Parameters
    ----------
    index : Index
    options : mapping
        Options of ``hopfuse score``.
    queries : Path
        The file of the queries, which may have a column ``vector``.
    """

    def __init__(self, index: Index, options: Mapping[str, Any], queries: Path) -> None:
        self._index, self._with, self._answers = index, tuple(options["extras"]), options["answers"]
        self._retriever = open_retriever(index, options, llm=language_model(options))
        self._search = search_options(index, options)
        check_answers(self._retriever, options)
        self._legs = tuple(self._retriever.check(options["k"], per_document=options["per_document"]).lists)
        recipe, vectors = self._retriever.recipe, options["vectors"]
        self.recipe, self._ids = recipe.name, recipe.hit_ids(index)
        self._inputs = QueryInputs(None if vectors is None else Path(vectors), count_queries(queries))
        reads: dict[str, Callable[[int], Any]] = {
            "title": index.titles.__getitem__,
            "text": index.texts.__getitem__,
            "metadata": self._metadata,
        }
        self._columns = {name: read for name, read in reads.items() if name in self._with}
        if recipe.ranks != "passages" and self._columns:
            raise InputError(
                "unused",
                "with",
                "{field} is {given}, but the hits of {recipe} are {ranks}, which have none; leave it out",
                given=", ".join(self._columns),
                recipe=recipe.name,
                ranks=recipe.ranks,
            )
        if "metadata" in self._with and not index.metadata:
            raise InputError(
                "unused", "with", "{field} is {given}, but the index has none; leave it out", given="metadata"
            )

    def output(self, kind: Any) -> Output:
        """Return the columns of the rows, for files of this kind."""
        return Output(
            kind,
            whole_ids=any(isinstance(id, int) for id in self._ids[:1]),
            columns=tuple(name for name in self._columns if name != "metadata"),
            metadata=dict(self._index.metadata.types) if "metadata" in self._with else {},
            legs=self._legs if "legs" in self._with else (),
            answers=self._answers,
        )

    def check_names(self) -> None:
        """Refuse ids of hits that a TREC file cannot hold."""
        for id in self._ids:
            trec_name(str(id))

    def check(self, query: Query, row: int, where: str) -> None:
        """Refuse a query that cannot be scored; the error names its row, the column and the fix."""
        self._inputs.check(self._retriever, query, row, where)

    def score(self, queries: Sequence[Query], first: int) -> list[Row]:
        """Return rows of the result for the queries ``first``, ``first + 1``, ... of the file."""
        inputs = self._inputs.of(queries, range(first, first + len(queries)))
        found = self._retriever.search(**inputs, **self._search)
        rows = [{"id": query.id, "hits": self._hits(found, at)} for at, query in enumerate(queries)]
        for row, notes in zip(rows, found.notes, strict=True):
            row |= {"notes": note_data(notes)} if notes else {}
        if self._answers:
            for row, answer in zip(rows, self._retriever.answer(inputs["questions"], found), strict=True):
                row["answer"] = answer
        return list(rows)

    def _hits(self, found: Any, query: int) -> list[dict[str, Any]]:
        legs = {leg: dict(found.lists[leg].row(query)) for leg in self._legs} if "legs" in self._with else {}
        hits = []
        for row, score in found.hits.row(query):
            hit = {"id": self._ids[row], "score": score}
            hit |= {name: read(row) for name, read in self._columns.items()}
            hits.append(hit | ({"legs": {leg: scores.get(row) for leg, scores in legs.items()}} if legs else {}))
        return hits

    def _metadata(self, row: int) -> dict[str, Any]:
        """Return a passage's metadata as JSON values."""
        found = self._index.metadata.row(row)
        return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in found.items()}
