"""Collect the metrics of all workers: whichever answers ``/metrics`` asks the others through Unix sockets."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from .metrics import Metrics
from .workers import WorkerSlot

#: Seconds for a worker to send its metrics; one that does not is reported as down.
SECONDS = 2.0


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
            async with asyncio.timeout(SECONDS):
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
