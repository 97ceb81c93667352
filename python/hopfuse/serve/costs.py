"""What queued work is going to take, from what batches took lately."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable
from dataclasses import dataclass, replace

#: Weight of the latest batch in the moving average of batch times.
NEWEST = 0.2
#: Most that one batch counts as, in terms of the average: a machine that was suspended did not become that slow.
OUTLIER = 4.0
#: Seconds after the latest batch of a kind from which on its average may be out of date.
STALE = 1.0
#: Seconds that a query is charged at least.
UNKNOWN = 1e-6
#: Seconds that a batch may spend on making parts of an index before other work gets its turn.
SLICE = 0.025


@dataclass(frozen=True, slots=True)
class Load:
    """An amount of work.

    Attributes
    ----------
    plain, filtered : int
        Queries without and with a filter, of batches that do not wait outside.
    parts : int
        Parts of an index that have to be made for the filters.
    outside : int
        Queries of batches that may wait for something outside, such as an encoder.
    outside_parts : int
        Those of the parts that are for such queries.
    """

    plain: int = 0
    filtered: int = 0
    parts: int = 0
    outside: int = 0
    outside_parts: int = 0

    def __add__(self, other: Load) -> Load:
        return Load(
            self.plain + other.plain,
            self.filtered + other.filtered,
            self.parts + other.parts,
            self.outside + other.outside,
            self.outside_parts + other.outside_parts,
        )

    def __sub__(self, other: Load) -> Load:
        return self + other.by(-1)

    def by(self, factor: int) -> Load:
        """Return a multiple of this amount."""
        counts = self.plain, self.filtered, self.parts, self.outside, self.outside_parts
        return Load(*(factor * count for count in counts))

    @property
    def queries(self) -> int:
        """All queries."""
        return self.plain + self.filtered + self.outside

    @property
    def inside(self) -> Load:
        """The work of batches that do not wait outside."""
        return Load(self.plain, self.filtered, self.parts - self.outside_parts)


class BatchTimes:
    """Moving averages of batch times, by batch size in powers of two; a larger batch counts as several of the limit.

    An average is out of date ``STALE`` seconds after the latest batch of its sizes, whatever else has run since.

    Examples
    --------
    >>> from hopfuse.serve import BatchTimes
    >>> times = BatchTimes(32)
    >>> times.add(1, 0.002)
    >>> times.add(32, 0.016)
    >>> times.of(1), times.of(32), times.of(64)
    (0.002, 0.016, 0.032)
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._means: dict[int, tuple[float, float]] = {}  # and the end of the latest batch

    def __bool__(self) -> bool:
        """Return whether a batch was seen."""
        return bool(self._means)

    def add(self, size: int, seconds: float, *, began: float | None = None, ended: float | None = None) -> None:
        """Add the time of a batch, which began and ended now by default.

        A batch that began when its average was out of date brings it down to its own time.
        """
        if size > self._limit:
            size, seconds = self._limit, seconds * self._limit / size
        key, ended = size.bit_length(), time.monotonic() if ended is None else ended
        mean, latest = self._means.get(key, (0.0, -math.inf))
        corrects = (ended if began is None else began) - latest > STALE
        self._means[key] = averaged(mean, seconds, corrects=corrects), ended

    def of(self, queries: int, since: float = -math.inf) -> float:
        """Return the estimated seconds for that many queries, in batches of the limit; 0 before any batch.

        With ``since``, only averages with a batch since then count, and no size is estimated from another one.
        """
        whole, rest = divmod(queries, self._limit)
        return whole * self._one(self._limit, since) + (self._one(rest, since) if rest else 0.0)

    def _one(self, size: int, since: float = -math.inf) -> float:
        """Return the time of a batch; for an unseen size that of the next larger one, else scaled from the largest."""
        key = size.bit_length()
        found = self._means.get(key)
        if found is not None:
            return found[0] if found[1] >= since else 0.0
        means = dict(self._means)  # a thread may add one meanwhile
        if not means or since > -math.inf:
            return 0.0
        larger = [known for known in means if known >= key]
        if larger:
            return means[min(larger)][0]
        smaller = max(means)
        return means[smaller][0] * size / (1 << smaller - 1)


class Costs:
    """Estimates of the seconds that work takes: queries without filters, with filters, and outside; parts to be made.

    Parameters
    ----------
    limit : int
        Queries of a batch.

    Examples
    --------
    >>> costs = Costs(32)
    >>> costs.add(Load(plain=1), 0.002)
    >>> costs.of(Load(filtered=1)), costs.most_parts  # as without a filter, until one was seen
    (0.002, 1)
    >>> costs.add(Load(filtered=1, parts=1), 0.012)
    >>> round(costs.of(Load(plain=1, filtered=1, parts=2)), 6), costs.most_parts
    (0.024, 2)
    >>> costs.add(Load(outside=1), 0.003, 0.503)
    >>> costs.of(Load(outside=1)), costs.of(Load(outside=1), outside=True)  # of a thread, and with the call
    (0.003, 0.503)
    """

    def __init__(self, limit: int) -> None:
        self._limit, self.plain, self.filtered = limit, BatchTimes(limit), BatchTimes(limit)
        self.outside, self._whole, self._part = BatchTimes(limit), BatchTimes(limit), BatchTimes(1)

    def add(
        self,
        load: Load,
        thread: float,
        whole: float | None = None,
        *,
        began: float | None = None,
        ended: float | None = None,
    ) -> None:
        """Add the seconds of a batch, whose queries are all of one kind.

        Parameters
        ----------
        load : Load
        thread : float
            Seconds for which it had a thread's place.
        whole : float, optional
            Seconds with its calls outside, of a batch that gave its place to another one meanwhile. Such a batch says
            little of the time of parts.
        began, ended : float, optional
            As of :meth:`BatchTimes.add`.
        """
        if load.parts and whole is None:
            made = max(0.0, thread - self.of(replace(load, parts=0)))
            self._part.add(load.parts, made, began=began, ended=ended)
            return
        made = self._part.of(load.parts)
        times = self.outside if load.outside else self.filtered if load.filtered else self.plain
        times.add(load.queries, max(0.0, thread - made), began=began, ended=ended)
        if load.outside:
            whole = thread if whole is None else whole
            self._whole.add(load.outside, max(0.0, whole - made), began=began, ended=ended)

    def of(self, load: Load, *, outside: bool = False, since: float = -math.inf) -> float:
        """Return the estimated seconds of an amount of work, with its calls outside or without; 0 before any batch.

        ``since``: as of :meth:`BatchTimes.of`.
        """
        seconds = self.plain.of(load.plain, since) if load.plain else 0.0
        if load.filtered:
            seconds += (self.filtered or self.plain).of(load.filtered, since)
        if load.outside:
            seconds += ((self._whole if outside else self.outside) or self.plain).of(load.outside, since)
        if load.parts:
            seconds += self._part.of(load.parts, since)
        return seconds

    def alone(self, load: Load) -> float:
        """Return the seconds of work in batches of its own or, if that is more, in full ones; with its calls."""
        return max(self.of(load, outside=True), self.share(load))

    def kind(self, load: Load) -> Hashable:
        """Return what the loads have in common whose estimates are the same averages."""
        return bool(load.outside), bool(load.filtered), bool(load.parts), min(load.queries, self._limit).bit_length()

    def share(self, load: Load) -> float:
        """Return what an amount of work is charged, in estimated seconds, with its calls outside.

        A query is charged as much in a small batch as in a full one, and something before any batch.
        """
        counts = ((load.plain, self.plain), (load.filtered, self.filtered), (load.outside, self._whole))
        return sum(self._query(*count) for count in counts if count[0]) + self._part.of(load.parts)

    def _query(self, queries: int, times: BatchTimes) -> float:
        return queries * max(UNKNOWN, (times or self.plain).of(self._limit) / self._limit)

    @property
    def most_parts(self) -> int:
        """The number of parts that a batch may make."""
        part = self._part.of(1)
        return max(1, int(SLICE / part)) if part else 1


def averaged(mean: float, seconds: float, *, corrects: bool = False) -> float:
    """Return a moving average with one more time; one that corrects brings the average down to it."""
    if not mean:
        return seconds
    known = min(mean, seconds) if corrects else mean
    return known + NEWEST * (min(seconds, OUTLIER * known) - known)
