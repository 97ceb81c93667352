"""Search a batch of queries from several requests on a worker thread."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import FormatError, HopfuseError
from ..recipes import Recipe
from .errors import RefusalError, damaged
from .metrics import Metrics
from .schema import HitOut, ResultOut
from .snapshots import Query, Snapshot, ranks_entities

log = logging.getLogger("hopfuse.serve")


@dataclass(frozen=True, slots=True)
class Plan:
    """How to search a batch; work with equal plans shares one."""

    snapshot: Snapshot
    recipe: Recipe
    k: int
    trace: bool
    restricted: bool
    #: The request that the batch is for, or None for any.
    alone: object = None


@dataclass(frozen=True, slots=True)
class RequestShare:
    """The queries of one request in a batch, and the fields of passages to return."""

    queries: Sequence[Query]
    fields: frozenset[str]
    #: Whether a trace may name passages that the filter hides.
    sees_all: bool = True
    #: Whether it is searched to warm up, which no metric counts.
    warms_up: bool = False


class Runner:
    """Searches batches.

    Parameters
    ----------
    metrics : Metrics
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._collaborating = threading.Lock()  # matchers and lexical legs need not be thread-safe

    def run(self, plan: Plan, payloads: list[RequestShare]) -> list[Any]:
        """Search a batch; if it is refused, search each part alone, so that only the faulty one is refused."""
        try:
            return self._batch(plan, payloads)
        except FormatError:
            log.exception("the files of index %s are damaged", plan.snapshot.name)
            return [damaged()] * len(payloads)
        except HopfuseError as error:
            if len(payloads) == 1:
                return [error]
            return [one for payload in payloads for one in self.run(plan, [payload])]
        except Exception:
            log.exception("a search failed")
            said = RefusalError("failed", None, "the search failed; the server's log says why")
            return [said] * len(payloads)

    def _batch(self, plan: Plan, payloads: list[RequestShare]) -> list[list[ResultOut]]:
        queries = [query for share in payloads for query in share.queries]
        began = time.perf_counter()
        with self._collaborating:
            arguments = plan.snapshot.arguments(plan.recipe, queries)
        prepared, needs = time.perf_counter(), plan.recipe.needs
        with self._collaborating if needs.texts or needs.words else contextlib.nullcontext():
            found = plan.recipe.search(k=plan.k, trace=plan.trace, **arguments)
        searched = time.perf_counter()
        results, at = [], 0
        for share in payloads:
            results.append([_result(plan, found, b, share) for b in range(at, at + len(share.queries))])
            at += len(share.queries)
        if not payloads[0].warms_up:
            parts = self._metrics.parts
            parts["prepare"].observe(prepared - began)
            parts["recipe"].observe(searched - prepared)
            parts["passages"].observe(time.perf_counter() - searched)
            self._metrics.queries.labels(plan.snapshot.name).inc(len(queries))
        return results


def _result(plan: Plan, found: Any, query: int, share: RequestShare) -> ResultOut:
    """Return the result of one query."""
    if ranks_entities(plan.recipe.name):
        hits = [HitOut(hit.id, hit.score, *_fields(share.fields, hit)) for hit in found[query]]
    elif share.fields:
        ranked = [(plan.snapshot.passage(row), score) for row, score in found.hits.row(query)]
        hits = [HitOut(passage.id, score, *_fields(share.fields, passage)) for passage, score in ranked]
    else:
        ids = plan.snapshot.index.passage_ids
        hits = [HitOut(ids[row], score) for row, score in found.hits.row(query)]
    if found.traces is None:
        return ResultOut(hits)
    # The caller does not know the batch; passages that the filter left out may be another tenant's.
    hidden = ("query",) if share.sees_all else ("query", "left_out")
    return ResultOut(hits, {key: value for key, value in found.traces[query].items() if key not in hidden})


def _fields(fields: frozenset[str], one: Any) -> tuple[Any, ...]:
    """Return title, text and metadata of a hit; None for fields that are not requested or missing."""
    metadata = (one.metadata or None) if "metadata" in fields else None
    return one.title if "title" in fields else None, one.text if "text" in fields else None, metadata
