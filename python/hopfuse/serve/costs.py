"""What queued work is going to take, from what batches took lately."""

from __future__ import annotations

from dataclasses import dataclass

#: Weight of the latest batch in the moving average of batch times.
NEWEST = 0.2
#: Most that one batch counts as, in terms of the average: a machine that was suspended did not become that slow.
OUTLIER = 4.0
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
        Queries without and with a filter.
    parts : int
        Parts of an index that have to be made for the filters.
    """

    plain: int = 0
    filtered: int = 0
    parts: int = 0

    def __add__(self, other: Load) -> Load:
        return Load(self.plain + other.plain, self.filtered + other.filtered, self.parts + other.parts)

    def __sub__(self, other: Load) -> Load:
        return self + other.by(-1)

    def by(self, factor: int) -> Load:
        """Return a multiple of this amount."""
        return Load(factor * self.plain, factor * self.filtered, factor * self.parts)

    @property
    def queries(self) -> int:
        """All queries."""
        return self.plain + self.filtered


class BatchTimes:
    """Moving averages of batch times, by batch size in powers of two; a larger batch counts as several of the limit.

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
        self._means: dict[int, float] = {}

    def __bool__(self) -> bool:
        """Return whether a batch was seen."""
        return bool(self._means)

    def add(self, size: int, seconds: float, *, corrects: bool = False) -> None:
        """Add the time of a batch; one that corrects brings the average down to it."""
        if size > self._limit:
            size, seconds = self._limit, seconds * self._limit / size
        key = size.bit_length()
        self._means[key] = averaged(self._means.get(key), seconds, corrects=corrects)

    def of(self, queries: int) -> float:
        """Return the estimated seconds for so many queries, in batches of the limit; 0 before any batch."""
        whole, rest = divmod(queries, self._limit)
        return whole * self._one(self._limit) + (self._one(rest) if rest else 0.0)

    def _one(self, size: int) -> float:
        """Return the time of a batch; for an unseen size that of the next larger one, else scaled from the largest."""
        key = size.bit_length()
        if key in self._means:
            return self._means[key]
        larger = [known for known in self._means if known >= key]
        if larger:
            return self._means[min(larger)]
        smaller = max(self._means, default=None)
        return 0.0 if smaller is None else self._means[smaller] * size / 2 ** (smaller - 1)


class Costs:
    """Estimates of the seconds that work takes: queries without filters, queries with filters, and parts to be made.

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
    """

    def __init__(self, limit: int) -> None:
        self._limit, self.plain, self.filtered = limit, BatchTimes(limit), BatchTimes(limit)
        self._part: float | None = None

    def add(self, load: Load, seconds: float, *, corrects: bool = False) -> None:
        """Add the time of a batch, whose queries all have filters, or none."""
        if load.parts:
            searched = self.of(Load(load.plain, load.filtered))
            self._part = averaged(self._part, max(0.0, seconds - searched) / load.parts, corrects=corrects)
        else:
            times = self.filtered if load.filtered else self.plain
            times.add(load.queries, seconds, corrects=corrects)

    def of(self, load: Load) -> float:
        """Return the estimated seconds of an amount of work; 0 for a kind of work before any batch."""
        filtered = self.filtered or self.plain
        return self.plain.of(load.plain) + filtered.of(load.filtered) + load.parts * (self._part or 0.0)

    def share(self, load: Load) -> float:
        """Return what an amount of work is charged, in estimated seconds.

        A query is charged as much in a small batch as in a full one, and something before any batch.
        """
        part = self._part or 0.0
        return self._query(load.plain, self.plain) + self._query(load.filtered, self.filtered) + load.parts * part

    def _query(self, queries: int, times: BatchTimes) -> float:
        return queries * max(UNKNOWN, (times or self.plain).of(self._limit) / self._limit)

    @property
    def most_parts(self) -> int:
        """The number of parts that a batch may make."""
        return 1 if not self._part else max(1, int(SLICE / self._part))


def averaged(mean: float | None, seconds: float, *, corrects: bool = False) -> float:
    """Return a moving average with one more time; one that corrects brings the average down to it."""
    known = seconds if mean is None else min(mean, seconds) if corrects else mean
    return known + NEWEST * (min(seconds, OUTLIER * known) - known)
