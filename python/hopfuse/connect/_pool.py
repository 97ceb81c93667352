"""Many questions, so many at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Event
from typing import Any

from ._asking import StoppedError


def all_answers(
    answer: Callable[[int, Event], Any],
    keys: Sequence[str],
    concurrency: int,
    progress: Callable[[int, int], None] | None,
) -> list[Any]:
    """``answer(at, stop)`` for each question, those of one key once.

    The first failure stops what is not asked yet and wakes what waits; requests that are on their way end.
    """
    times, first = Counter(keys), dict[str, int]()
    for at, key in enumerate(keys):
        first.setdefault(key, at)
    found: dict[str, Any] = {}
    done, stop = 0, Event()

    def one(at: int) -> Any:
        try:
            return answer(at, stop)
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(concurrency) as pool:
        asked = {pool.submit(one, at): key for key, at in first.items()}
        try:
            for future in as_completed(asked):
                if isinstance(future.exception(), StoppedError):
                    continue  # the failure that stopped it is among the others
                key = asked[future]
                found[key] = future.result()
                done += times[key]
                if progress is not None:
                    progress(done, len(keys))
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return [found[key] for key in keys]
