"""Making the parts of a plan: here, in worker processes, or a share of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from .folder import Folder
from .plan import CHUNK
from .scoring import OpenScorer, PartMaker
from .workers import Workers


class Made(NamedTuple):
    """The outcome of a run.

    Attributes
    ----------
    parts : int
        Parts that were made; others were there.
    rows : int
        Their rows.
    replaced : int
        Workers that died, and were replaced.
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
) -> Made:
    """Make the parts of a plan that are not there yet.

    Any number of processes, on any number of machines that share the folder, may run shards of one plan at once, and
    a run that was killed goes on where it was. A part has the same bytes whoever makes it.

    Parameters
    ----------
    folder : Path
        Where the plan is.
    open_scorer : function
        Called with the plan and the number of threads; with several workers, a function of a module.
    workers : int
        Processes. With more than one, each has one kernel thread and maps the same index.
    threads : int, optional
        Kernel threads where ``workers`` is 1; by default all processors.
    shard : tuple of int
        (i, n): the i-th, from 1, of n shares of the parts.
    chunk : int
        Queries at a time. The parts do not depend on it.
    alone : bool
        Refuse to start while another process works in the folder.
    progress : function
        Called with the rows of each part that is there: first with those of all that were there before.

    Returns
    -------
    Made

    Raises
    ------
    InputError
        Another index, input file or version than the plan's, or what the recipe refuses.
    HopfuseError
        Workers that die again and again.

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
    Made(parts=2, rows=2, replaced=0)
    """
    place = Folder(folder)
    numbers = shard_parts(place.plan.num_parts, shard)
    if workers < 1:
        raise InputError(f"workers is {workers}; it must be at least 1")
    if workers > 1 and threads is not None:
        raise InputError("threads is given, and each of several workers has one thread; give one of the two")
    place.check()
    with place.lock(alone=alone):
        missing = place.missing(numbers)
        progress(sum(_rows(place, part) for part in numbers) - sum(_rows(place, part) for part in missing))
        crew = Workers(place, open_scorer, chunk)
        made = 0
        for part in crew.make(missing, workers) if workers > 1 else _alone(place, open_scorer, threads, chunk, missing):
            made += _rows(place, part)
            progress(_rows(place, part))
    return Made(len(missing), made, crew.replaced)


def verify(
    folder: Path,
    open_scorer: OpenScorer,
    *,
    sample: int = 3,
    threads: int | None = None,
    chunk: int = CHUNK,
    progress: Callable[[int], object] = lambda rows: None,
) -> list[int]:
    """Check that all parts are there, whole and of this plan; make some of them again, and compare every byte.

    Parameters
    ----------
    folder, open_scorer, threads, chunk, progress
        As in :func:`run`.
    sample : int
        How many parts are made again, chosen by the plan's digest.

    Returns
    -------
    list of int
        The parts that were made again.

    Raises
    ------
    InputError
        Parts that are missing, or of another plan; a part with other bytes.
    FormatError
        A part that is damaged.

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
    if sample < 0:
        raise InputError(f"sample is {sample}; it must be at least 0")
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
                f"{place.part(part)} has other bytes than the same queries give now: the part or what it was made from "
                "has changed; remove it and run again"
            )
        progress(_rows(place, part))
    return chosen


def shard_parts(parts: int, shard: tuple[int, int]) -> list[int]:
    """Return the parts of the i-th of n shares.

    Raises
    ------
    InputError
        A share that there is not.

    Examples
    --------
    >>> shard_parts(7, (2, 3))
    [1, 4]
    """
    number, shares = shard
    if not 1 <= number <= shares:
        raise InputError(
            f"shard is {number}/{shares}; allowed: 1/{max(shares, 1)} .. {max(shares, 1)}/{max(shares, 1)}"
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
