"""The scorer of a plan: a recipe with the options of ``hopfuse score``, and checks of its queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import Index
from ..._validation import check_excludes
from ...errors import InputError
from ...io.npy import read_npy
from ...io.qrels import trec_name
from ...io.queries import Query, count_queries, read_queries
from ...offline import Output, Plan
from ...offline.parts import Row
from ...offline.plan import open_index
from ..options import encoder_for
from ..recipes import bind, check_given, language_model
from .queries import QueryInputs, text_of, unknown_entity

#: The values of ``--with``.
EXTRAS = ("title", "text", "metadata", "legs")
#: Rows of vectors that are checked at a time.
BLOCK = 65536
#: Recipes that compare questions by the index's metric; the others use cosines, which a zero vector does not have.
INNER_PRODUCTS = ("phase-graph", "hybrid-rrf")


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
        self._index, self._k, self._with = index, options["k"], tuple(options["extras"])
        vectors = None if options["vectors"] is None else Path(options["vectors"])
        own = next((query.vector is not None for query in read_queries(queries)), False)
        llm = language_model(options["recipe"], options["policy"], options)
        encoder = encoder_for(index, options["encoder"], queries if own else vectors)
        self.bound = bound = bind(index, options, encoder=encoder, llm=llm)
        self._own = own and bound.recipe.needs.vectors
        if self._own:
            check_excludes("vectors", vectors, "queries", queries, "which have the column 'vector'")
        check_given(bound, queries if self._own else vectors, encoder)
        self._legs = tuple(bound.check(self._k).lists)
        self._answers = options["answers"]
        self._given = vectors
        self._inputs = QueryInputs(
            index,
            vectors,
            encoder,
            count_queries(queries),
            case_sensitive=options["case_sensitive"],
            alone=bound.alone,
            own=self._own,
        )
        reads: dict[str, Callable[[int], Any]] = {
            "title": index.titles.__getitem__,
            "text": index.texts.__getitem__,
            "metadata": self._metadata,
        }
        self._columns = {name: read for name, read in reads.items() if name in self._with}
        if bound.name == "triple-hybrid" and self._columns:
            raise InputError(
                "unused",
                "with",
                "{field} is {given}, but triple-hybrid's hits are entities, which have none; leave it out",
                given=", ".join(self._columns),
            )
        if "metadata" in self._with and not index.metadata:
            raise InputError(
                "unused", "with", "{field} is {given}, but the index has none; leave it out", given="metadata"
            )

    def output(self, kind: Any) -> Output:
        """Return the columns of the rows, for files of this kind."""
        return Output(
            kind,
            whole_ids=any(isinstance(id, int) for id in self.bound.ids[:1]),
            columns=tuple(name for name in self._columns if name != "metadata"),
            metadata=dict(self._index.metadata.types) if "metadata" in self._with else {},
            legs=self._legs if "legs" in self._with else (),
            answers=self._answers,
        )

    # ---- Checks before anything is scored ----------------------------------------------------------------------------

    def check_files(self) -> None:
        """Refuse a file of vectors that the index cannot be searched with; the error names the row."""
        if self._given is None:
            return
        vectors = read_npy(self._given, "vectors")
        for first in range(0, len(vectors), BLOCK):
            self._check_vectors(vectors[first : first + BLOCK], first)

    def check_names(self) -> None:
        """Refuse ids of hits that a TREC file cannot hold."""
        for id in self.bound.ids:
            trec_name(str(id))

    def check(self, query: Query, where: str) -> None:
        """Refuse a query that cannot be scored; the error names its row, the column and the fix."""
        needs = self.bound.recipe.needs
        with_vectors = "" if self._own or self._given is not None or not needs.vectors else " and --vectors"
        instead = "" if needs.texts else f", or 'entities' ([] for none){with_vectors}"
        if needs.texts:
            text_of(query, self.bound.purpose, place=where)
        if needs.vectors and self._own:
            self._check_own(query.vector, where)
        elif needs.vectors and self._given is None:
            self._inputs.check_text(query, instead, where)
        if needs.entities and query.entities is None:
            text_of(query, "to find names in", instead, place=where)
        for entity in query.entities or () if needs.entities else ():
            if isinstance(entity, int) and not 0 <= entity < self._index.num_entities:
                raise unknown_entity(entity, self._index).at(where)

    def _check_own(self, vector: NDArray[Any] | None, where: str) -> None:
        if vector is None:
            raise InputError(
                "missing", "vector", "{field} is missing, but other rows have it; give each row a vector"
            ).at(where)
        self._check_vectors(vector[None], 0, where)

    def _check_vectors(self, vectors: NDArray[Any], first: int, where: str | None = None) -> None:
        """Refuse vectors of the rows ``first``, ``first + 1``, ... of the file, or that of the row ``where``."""
        corpus = self._index.entity_corpus if self.bound.name == "triple-hybrid" else self._index.corpus
        dim = None if corpus is None else corpus.dim
        if vectors.shape[1] != dim:
            raise InputError(
                "shape",
                "vectors" if where is None else "vector",
                "{field} has {given} numbers, the index's vectors have {allowed}; encode the query with the index's "
                "encoder",
                given=vectors.shape[1],
                allowed=dim,
            ).at(where)
        bad = ~np.isfinite(vectors.astype(np.float32)).all(axis=1)
        if self._index.metric == "cosine" or self.bound.name not in INNER_PRODUCTS:
            bad |= ~vectors.any(axis=1)
        if not bad.any():
            return
        at = int(np.flatnonzero(bad)[0])
        field = f"vectors[{first + at}]" if where is None else "vector"
        if vectors[at].any():
            raise InputError("finite", field, "{field} is not finite; encode the query again, or leave it out").at(
                where
            )
        raise InputError(
            "zero", field, "{field} is all zeros and has no direction; encode the query again, or leave it out"
        ).at(where)

    # ---- Scoring -----------------------------------------------------------------------------------------------------

    def score(self, queries: Sequence[Query], first: int) -> list[Row]:
        """Return rows of the result for the queries ``first``, ``first + 1``, ... of the file."""
        bound, needs, asked = self.bound, self.bound.recipe.needs, list(queries)
        texts = [q.text or "" for q in asked] if needs.words else None
        if needs.texts:
            texts = [text_of(q, bound.purpose) for q in asked]
        entities = self._inputs.entities(asked) if needs.entities else None
        vectors = self._inputs.vectors(asked, first, entities or ()) if needs.vectors else None
        found = bound.search(texts, vectors, entities, self._k)
        rows: list[Row] = [{"id": q.id, "hits": self._hits(found, row)} for row, q in enumerate(asked)]
        if not self._answers:
            return rows
        answers = bound.recipe.answer(texts or [], found)  # type: ignore[attr-defined]
        return [{**row, "answer": answer} for row, answer in zip(rows, answers, strict=True)]

    def _hits(self, found: Any, query: int) -> list[dict[str, Any]]:
        legs = {leg: dict(found.lists[leg].row(query)) for leg in self._legs} if "legs" in self._with else {}
        hits = []
        for row, score in found.hits.row(query):
            hit = {"id": self.bound.ids[row], "score": score}
            hit |= {name: read(row) for name, read in self._columns.items()}
            hits.append(hit | ({"legs": {leg: scores.get(row) for leg, scores in legs.items()}} if legs else {}))
        return hits

    def _metadata(self, row: int) -> dict[str, Any]:
        """Return a passage's metadata as JSON values."""
        found = self._index.metadata.row(row)
        return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in found.items()}
