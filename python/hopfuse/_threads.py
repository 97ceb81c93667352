"""Determine the number of threads of a call, from its argument, the environment, or the available processors.

Also make threads that run in a context of their own.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ._arrays import native
from ._validation import MAX_THREADS, check_threads, check_whole

if TYPE_CHECKING:
    from pathlib import Path

_sharing = threading.local()


@contextmanager
def sharing(calls: Callable[[], int]) -> Iterator[None]:
    """Let this thread's calls use their share of the threads that they may use: divided by ``calls()``, rounded up.

    ``calls()`` is the number of threads that make calls at present, at least 1.

    Examples
    --------
    >>> from hopfuse._threads import sharing, thread_count
    >>> with sharing(lambda: 2):
    ...     thread_count(3), thread_count(1)
    (2, 1)
    """
    _sharing.calls = calls
    try:
        yield
    finally:
        del _sharing.calls


def own_thread(work: Callable[..., object], *args: Any, name: str, daemon: bool = True) -> threading.Thread:
    """Return a thread that will run ``work(*args)`` in an empty context.

    Free-threaded Python lets a thread inherit the context of the one that starts it
    (``sys.flags.thread_inherit_context``). A thread that serves several callers, or outlives its caller, must not: a
    cancelled call would stop the work of others.

    Examples
    --------
    >>> from hopfuse._threads import own_thread
    >>> thread = own_thread(print, "done", name="hopfuse-example")
    >>> thread.start(); thread.join()
    done
    """
    return threading.Thread(target=Context().run, args=(work, *args), name=name, daemon=daemon)


def thread_count(threads: int | None) -> int:
    """Return the number of threads of a call, or this thread's share of it within :func:`sharing`.

    It is ``threads``, else HOPFUSE_NUM_THREADS, else OMP_NUM_THREADS, else the number of available processors: the
    smaller of the process's CPU affinity and its control group's CPU quota, rounded up.
    """
    calls = getattr(_sharing, "calls", None)
    whole = _whole_count(threads)
    return whole if calls is None else -(-whole // calls())


def _whole_count(threads: int | None) -> int:
    given = check_threads(threads)
    if given is not None:
        return given
    environment = native().environment  # os.environ takes ten times as long
    text = environment("HOPFUSE_NUM_THREADS")
    if text:
        return check_whole(int(text) if text.isdecimal() else text, "HOPFUSE_NUM_THREADS", MAX_THREADS)
    # OMP_NUM_THREADS may list one number per nesting level; the first applies. Anything else is ignored.
    listed = environment("OMP_NUM_THREADS")
    if listed:
        first = listed.split(",")[0].strip()
        if first.isdecimal() and int(first) >= 1:
            return min(int(first), MAX_THREADS)
    return _processors()


def _processors() -> int:
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota()
    return max(1, min(affinity, MAX_THREADS if quota is None else math.ceil(quota)))


@lru_cache(maxsize=1)
def cpu_quota(proc: str | Path = "/proc/self/cgroup", mount: str | Path = "/sys/fs/cgroup") -> float | None:
    """Return the CPU quota of this process's control groups, in processors; None if there is no limit.

    Version 2 keeps it in ``cpu.max`` of the group and its ancestors, version 1 in ``cpu.cfs_quota_us``. A folder of
    version 1 may name its controllers in another order than ``/proc`` does, or only one of them.

    Examples
    --------
    >>> from hopfuse._threads import cpu_quota
    >>> cpu_quota() is None or cpu_quota() > 0
    True
    """
    from pathlib import Path  # here and not above, since it would take a thirtieth of the time of importing hopfuse

    mount = Path(mount)
    try:
        lines = Path(proc).read_text().splitlines()
    except OSError:
        return None
    quotas = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = _folder_of(controllers, mount) if controllers else mount
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):  # inside a container the path may not exist below the mount
            quotas.append(_quota_of(folder))
            if folder == root:
                break
    return min((quota for quota in quotas if quota is not None), default=None)


def _folder_of(controllers: str, mount: Path) -> Path:
    names = controllers.split(",")
    orders = (",".join(order) for order in itertools.permutations(names))
    return next((mount / name for name in (*orders, "cpu") if (mount / name).is_dir()), mount / controllers)


def _quota_of(folder: Path) -> float | None:
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))
        return float(quota) / float(period) if quota != "max" and float(quota) > 0 else None
    except (OSError, ValueError, ZeroDivisionError):
        return None
