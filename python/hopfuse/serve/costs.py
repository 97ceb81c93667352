"""What queued work is going to take, from what batches took lately."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
        seen = list(self._means)  # a thread may add one meanwhile
        larger = [known for known in seen if known >= key]
        if larger:
            return self._means[min(larger)]
        smaller = max(seen, default=None)
        return 0.0 if smaller is None else self._means[smaller] * size / 2 ** (smaller - 1)


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
    >>> costs.add(Load(outside=1), 0.003, waited=0.5)
    >>> costs.of(Load(outside=1)), costs.of(Load(outside=1), outside=True)  # of a thread, and with the wait
    (0.003, 0.503)
    """

    def __init__(self, limit: int) -> None:
        self._limit, self.plain, self.filtered = limit, BatchTimes(limit), BatchTimes(limit)
        self.outside, self._whole = BatchTimes(limit), BatchTimes(limit)
        self._part: float | None = None

    def add(self, load: Load, seconds: float, waited: float = 0.0, *, corrects: bool = False) -> None:
        """Add the time of a batch, whose queries are all of one kind, without and with its wait outside."""
        if load.parts and not waited:  # beside a wait, little is known of theirs
            searched = self.of(replace(load, parts=0))
            self._part = averaged(self._part, max(0.0, seconds - searched) / load.parts, corrects=corrects)
        elif load.outside:
            self.outside.add(load.outside, seconds, corrects=corrects)
            self._whole.add(load.outside, seconds + waited, corrects=corrects)
        else:
            times = self.filtered if load.filtered else self.plain
            times.add(load.queries, seconds, corrects=corrects)

    def of(self, load: Load, *, outside: bool = False) -> float:
        """Return the estimated seconds of an amount of work, with its waits outside or without; 0 before any batch."""
        filtered, waiting = self.filtered or self.plain, (self._whole if outside else self.outside) or self.plain
        queries = self.plain.of(load.plain) + filtered.of(load.filtered) + waiting.of(load.outside)
        return queries + load.parts * (self._part or 0.0)

    def share(self, load: Load) -> float:
        """Return what an amount of work is charged, in estimated seconds.

        A query is charged as much in a small batch as in a full one, and something before any batch.
        """
        part = self._part or 0.0
        counts = ((load.plain, self.plain), (load.filtered, self.filtered), (load.outside, self.outside))
        return sum(self._query(*count) for count in counts) + load.parts * part

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
