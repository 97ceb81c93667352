"""The metrics of ``/metrics``, in Prometheus' format: of this worker, and of all."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.parser import text_string_to_metric_families

from .workers import WorkerSlot

if TYPE_CHECKING:
    from .batcher import Batcher
    from .budget import ByteBudget


_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
#: Stages of a request: reading its body, the queue, its batch, and all of it.
STAGES = ("read", "queued", "search", "total")
#: Parts of a batch: encoding and matching, the recipe, and reading the passages of its hits.
PARTS = ("search", "passages")


#: What the gauges of the queue count.
QUEUE = {
    "requests": "Requests that wait for a batch, as a whole or in part.",
    "queries": "Queries that wait for a batch.",
    "bytes": "Bytes of arriving bodies, of requests until they are answered, and of answers until they are read.",
}


@dataclass
class InferenceCounts:
    """What is counted of the inference protocol's requests for an index, in nanoseconds.

    Attributes
    ----------
    queries, succeeded, failed : int
    success_ns, fail_ns, queue_ns, search_ns : int
        Of successful and failed requests, and of the former the time in the queue and in the search.
    last_ms : int
        Time of the last successful request, in milliseconds since 1970; 0 before.
    """

    queries: int = 0
    succeeded: int = 0
    failed: int = 0
    success_ns: int = 0
    fail_ns: int = 0
    queue_ns: int = 0
    search_ns: int = 0
    last_ms: int = 0


class Metrics:
    """The metrics of one server, in their own registry."""

    content_type = "text/plain; version=1.0.0; charset=utf-8"

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.inferences: defaultdict[str, InferenceCounts] = defaultdict(InferenceCounts)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        named: Any = {"registry": self.registry}
        self._requests = Counter("hopfuse_requests", "Requests.", ("route", "status"), **named)
        self._refusals = Counter("hopfuse_refusals", "Requests that were refused.", ("code",), **named)
        self.queries = Counter("hopfuse_queries", "Queries that were searched.", ("index",), **named)
        self.batch_queries = Histogram("hopfuse_batch_queries", "Queries in a batch.", buckets=SIZES, **named)
        parts = Histogram("hopfuse_batch_seconds", "Seconds of a batch, by part.", ("part",), buckets=_BUCKETS, **named)
        self.parts = {part: parts.labels(part) for part in PARTS}
        stages = Histogram(
            "hopfuse_request_seconds", "Seconds of a search request, by stage.", ("stage",), buckets=_BUCKETS, **named
        )
        self.stages = {stage: stages.labels(stage) for stage in STAGES}
        self._queue = {of: Gauge(f"hopfuse_queue_{of}", about, **named) for of, about in QUEUE.items()}
        self.threads_replaced = Counter("hopfuse_threads_replaced", "Searching threads that died.", **named)
        self.encoder_failures = Counter(
            "hopfuse_encoder_failures", "Calls of encoders that failed, or passed their limit.", ("reason",), **named
        )
        for reason in ("failed", "late"):
            self.encoder_failures.labels(reason)  # there from the start, as 0
        self._hung = Gauge("hopfuse_encoder_hung", "Calls of encoders that have passed their limit.", **named)
        self.seq = Gauge("hopfuse_index_seq", "Seq of the searched state of an index.", ("index",), **named)
        self.waiting = Gauge("hopfuse_seq_waiting", "Requests waiting for a seq.", ("index",), **named)
        self.changes = Counter("hopfuse_changes", "Changes that were committed.", ("index",), **named)
        self.change_seconds = Histogram(
            "hopfuse_change_seconds", "Seconds of a commit, until it is on the disk.", buckets=_BUCKETS, **named
        )
        self._connections = Gauge("hopfuse_connections", "Open connections.", **named)
        self.wrong_keys_delayed = Counter(
            "hopfuse_wrong_keys_delayed", "Requests with a wrong key whose refusal was delayed.", **named
        )
        self._changes = Gauge("hopfuse_changes_waiting", "Changes not yet on the disk.", **named)
        self.compactions = Counter("hopfuse_compactions", "Compactions of an index.", ("index",), **named)
        self.config_reloads = Counter(
            "hopfuse_config_reloads", "Configurations that were read again, by outcome.", ("outcome",), **named
        )
        for outcome in ("used", "refused"):
            self.config_reloads.labels(outcome)  # there from the start, as 0
        self.reload_seconds = Histogram(
            "hopfuse_reload_seconds", "Seconds from finding a change until it is searched.", ("index",), **named
        )
        self.reload_failures = Counter(
            "hopfuse_reload_failures", "States of an index that could not be served.", ("index",), **named
        )

    def watch(self, batcher: Batcher, budget: ByteBudget) -> None:
        """Report the queue of a batcher, and the bytes that requests hold."""
        self._queue["requests"].set_function(lambda: batcher.requests)
        self._queue["queries"].set_function(lambda: batcher.queries)
        self._queue["bytes"].set_function(lambda: budget.nbytes)

    def watch_connections(self, count: Callable[[], int]) -> None:
        """Report the number of open connections."""
        self._connections.set_function(count)

    def watch_encoders(self, count: Callable[[], int]) -> None:
        """Report the number of encoders' calls that hang."""
        self._hung.set_function(count)

    def watch_changes(self, count: Callable[[], int]) -> None:
        """Report the number of waiting changes."""
        self._changes.set_function(count)

    def answered(self, route: str, status: int, code: str | None = None) -> None:
        """Count a response; ``code`` names a refusal."""
        self._requests.labels(route, str(status)).inc()
        if code is not None:
            self._refusals.labels(code).inc()

    def text(self) -> bytes:
        """Return the metrics as text."""
        return generate_latest(self.registry)


# ---- Metrics of all workers ------------------------------------------------------------------------------------------


#: Seconds for a worker to send its metrics; one that does not is reported as down.
_SECONDS = 2.0


class WorkerMetrics:
    """Exchanges metrics with the other workers of a server.

    Parameters
    ----------
    slot : WorkerSlot
        The slot of this worker.
    metrics : Metrics
    """

    def __init__(self, slot: WorkerSlot, metrics: Metrics) -> None:
        self._slot, self._metrics = slot, metrics
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen for other workers."""
        path = self._path(self._slot.number)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # left by the worker before
        self._server = await asyncio.start_unix_server(self._send, path)

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def text(self) -> bytes:
        """Return the metrics of all workers; each sample has the label ``worker``."""
        pages = await asyncio.gather(*(self._page(number) for number in range(self._slot.count)))
        return await asyncio.to_thread(merge_metrics, dict(enumerate(pages)))

    def _path(self, number: int) -> str:
        return str(self._slot.folder / f"{number}.sock")

    async def _send(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(self._metrics.text())
        await writer.drain()
        writer.close()

    async def _page(self, number: int) -> bytes | None:
        if number == self._slot.number:
            return self._metrics.text()
        try:
            async with asyncio.timeout(_SECONDS):
                reader, writer = await asyncio.open_unix_connection(self._path(number))
                try:
                    return await reader.read()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return None


def merge_metrics(pages: Mapping[int, bytes | None]) -> bytes:
    """Merge the metrics of workers, and add which of them are up.

    Parameters
    ----------
    pages : mapping of int to bytes
        The page ``/metrics`` of each worker by its number; None for one that did not answer.

    Examples
    --------
    >>> from hopfuse.serve import merge_metrics
    >>> page = b"# HELP a_total Of a.\\n# TYPE a_total counter\\na_total 3.0\\n"
    >>> print(merge_metrics({0: page, 1: None}).decode().partition("# HELP hopfuse")[0], end="")
    # HELP a_total Of a.
    # TYPE a_total counter
    a_total{worker="0"} 3.0
    """
    families: dict[str, Metric] = {}
    for number, page in pages.items():
        for family in () if page is None else text_string_to_metric_families(page.decode()):
            whole = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            for sample in family.samples:
                labels = {**sample.labels, "worker": str(number)}
                whole.add_sample(sample.name, labels, sample.value)
    up = families["hopfuse_worker_up"] = Metric("hopfuse_worker_up", "Whether a worker answers.", "gauge")
    for number, page in pages.items():
        up.add_sample(up.name, {"worker": str(number)}, float(page is not None))
    registry = CollectorRegistry()
    registry.register(_MergedCollector(families.values()))
    return generate_latest(registry)


class _MergedCollector:
    """Metric families as a collector."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Any:
        return self._families
