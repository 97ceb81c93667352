"""Make the parts of a plan, or a share of them, in this process or in worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._validation import check_excludes, check_whole
from ..errors import InputError
from .folder import Folder
from .plan import CHUNK
from .scoring import OpenScorer, PartMaker
from .workers import Workers


class RunCounts(NamedTuple):
    """The outcome of a run.

    Attributes
    ----------
    parts : int
        Parts that were made; the others existed.
    rows : int
        Rows of these parts.
    replaced : int
        Workers that died and were replaced.
    """

    parts: int
    rows: int
    replaced: int


def run(
    folder: Path,
    open_scorer: OpenScorer,
    *,
    workers: int = 1,
    threads: int | None = None,
    shard: tuple[int, int] = (1, 1),
    chunk: int = CHUNK,
    alone: bool = False,
    progress: Callable[[int], object] = lambda rows: None,
) -> RunCounts:
    """Make the missing parts of a plan.

    Any number of processes, on any number of machines that share the folder, may run shards of a plan at once. A killed
    run can be continued. The bytes of a part do not depend on its maker.

    Parameters
    ----------
    folder : Path
        Folder of the plan.
    open_scorer : function
        Called with the plan and the number of threads. With several workers it must be importable from a module.
    workers : int
        Number of processes. With more than one, each has one kernel thread, and all map the same index.
    threads : int, optional
        Kernel threads if ``workers`` is 1; by default all processors.
    shard : tuple of int
        (i, n) for the i-th of n shares of the parts; i starts at 1.
    chunk : int
        Number of queries scored at a time, which does not affect the parts.
    alone : bool
        Refuse to start while another process uses the folder.
    progress : function
        Called with the number of rows of each part: first with that of all existing parts.

    Returns
    -------
    RunCounts

    Raises
    ------
    InputError
        The index, an input file or a version is not the plan's, or the recipe refuses a query.
    HopfuseError
        Workers die repeatedly.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import hopfuse as hf
    >>> from hopfuse import offline
    >>> class LengthScorer:
    ...     def score(self, queries, first):
    ...         return [{"id": q.id, "hits": [{"id": "p", "score": float(len(q.text))}]} for q in queries]
    >>> with tempfile.TemporaryDirectory() as name:
    ...     place = pathlib.Path(name)
    ...     size = (place / "q.jsonl").write_text('{"text": "one"}\\n{"text": "three"}\\n')
    ...     generation = hf.Index.build(passages=[{"text": "A river."}]).save(place / "index")
    ...     plan = offline.make_plan(place / "q.jsonl", place / "index", scoring={}, part_rows=1)
    ...     offline.Folder(place / "run").create(plan)
    ...     offline.run(place / "run", lambda plan, threads: LengthScorer())
    RunCounts(parts=2, rows=2, replaced=0)
    """
    place = Folder(folder)
    numbers = shard_parts(place.plan.num_parts, shard)
    if check_whole(workers, "workers") > 1:
        check_excludes("threads", threads, "workers", workers, "which have one thread each")
    place.check()
    with place.lock(alone=alone):
        missing = place.missing(numbers)
        progress(sum(_rows(place, part) for part in numbers) - sum(_rows(place, part) for part in missing))
        crew = Workers(place, open_scorer, chunk)
        made = 0
        for part in crew.make(missing, workers) if workers > 1 else _alone(place, open_scorer, threads, chunk, missing):
            made += _rows(place, part)
            progress(_rows(place, part))
    return RunCounts(len(missing), made, crew.replaced)


def verify(
    folder: Path,
    open_scorer: OpenScorer,
    *,
    sample: int = 3,
    threads: int | None = None,
    chunk: int = CHUNK,
    progress: Callable[[int], object] = lambda rows: None,
) -> list[int]:
    """Check that all parts exist, are undamaged and belong to the plan; make some again, and compare every byte.

    Parameters
    ----------
    folder, open_scorer, threads, chunk, progress
        As in :func:`run`.
    sample : int
        Number of parts to make again, drawn with the plan's digest as seed.

    Returns
    -------
    list of int
        The parts that were made again.

    Raises
    ------
    InputError
        A part is missing, belongs to another plan, or has other bytes.
    FormatError
        A part is damaged.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import hopfuse as hf
    >>> from hopfuse import offline
    >>> class LengthScorer:
    ...     def score(self, queries, first):
    ...         return [{"id": q.id, "hits": [{"id": "p", "score": float(len(q.text))}]} for q in queries]
    >>> with tempfile.TemporaryDirectory() as name:
    ...     place = pathlib.Path(name)
    ...     size = (place / "q.jsonl").write_text('{"text": "one"}\\n{"text": "three"}\\n')
    ...     generation = hf.Index.build(passages=[{"text": "A river."}]).save(place / "index")
    ...     plan = offline.make_plan(place / "q.jsonl", place / "index", scoring={}, part_rows=1)
    ...     offline.Folder(place / "run").create(plan)
    ...     made = offline.run(place / "run", lambda plan, threads: LengthScorer())
    ...     offline.verify(place / "run", lambda plan, threads: LengthScorer(), sample=2)
    [0, 1]
    """
    place = Folder(folder)
    check_whole(sample, "sample", least=0)
    place.check()
    place.check_whole()
    plan = place.plan
    draw = np.random.default_rng(int(plan.digest[:16], 16))
    chosen = sorted(draw.choice(plan.num_parts, min(sample, plan.num_parts), replace=False).tolist())
    maker = PartMaker(place, open_scorer(plan, threads), chunk) if chosen else None
    for part in chosen:
        assert maker is not None
        if place.encode(part, maker.rows(part)) != place.part(part).read_bytes():
            raise InputError(
                "changed",
                "folder",
                "{path} differs from what the same queries give now: the part or its inputs have changed; "
                "remove it and run again",
                path=place.part(part),
            )
        progress(_rows(place, part))
    return chosen


def shard_parts(parts: int, shard: tuple[int, int]) -> list[int]:
    """Return the parts of the i-th of n shares.

    Raises
    ------
    InputError
        The share does not exist.

    Examples
    --------
    >>> shard_parts(7, (2, 3))
    [1, 4]
    """
    number, shares = shard
    if not 1 <= number <= shares:
        raise InputError(
            "range",
            "shard",
            "{field} is {given}; allowed: {allowed}",
            given=f"{number}/{shares}",
            allowed=f"1/{max(shares, 1)} .. {max(shares, 1)}/{max(shares, 1)}",
        )
    return list(range(number - 1, parts, shares))


def _alone(
    place: Folder, open_scorer: OpenScorer, threads: int | None, chunk: int, missing: list[int]
) -> Iterator[int]:
    if missing:
        maker = PartMaker(place, open_scorer(place.plan, threads), chunk)
        for part in missing:
            maker.make(part)
            yield part


def _rows(place: Folder, part: int) -> int:
    first, end = place.plan.row_range(part)
    return end - first
