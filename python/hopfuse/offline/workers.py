"""Worker processes, which make parts over the same mapped index; another worker makes the part of one that dies."""

from __future__ import annotations

import logging
import os
import signal
import threading
import traceback
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ..errors import HopfuseError
from .folder import Folder
from .scoring import OpenScorer, PartMaker

_log = logging.getLogger(__name__)

#: Deaths of workers at the same part, or before their first part, after which a run fails.
MOST_DEATHS = 5


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    part: int | None = None
    ready: bool = False


class Workers:
    """Processes with one kernel thread each that make the parts of a run.

    Parameters
    ----------
    folder : Folder
    open_scorer : function
        A function that workers can import from a module.
    chunk : int
        Number of queries scored at a time.
    """

    def __init__(self, folder: Folder, open_scorer: OpenScorer, chunk: int) -> None:
        self._what = (folder.path, open_scorer, chunk)
        self._context = get_context("spawn")  # a fork would copy the kernel threads' locks in any state
        self._deaths: Counter[int | None] = Counter()
        self.replaced = 0

    def make(self, parts: Iterable[int], count: int) -> Iterator[int]:
        """Make parts by ``count`` processes; yield each once it is made.

        Raises
        ------
        HopfuseError
            A worker raised an error, or workers die repeatedly at one part. Finished parts stay.
        """
        waiting = deque(parts)
        workers = [self._started() for _ in range(min(count, len(waiting)))]
        try:
            while waiting or any(worker.part is not None for worker in workers):
                for pipe in connection.wait([worker.pipe for worker in workers]):
                    worker = next(one for one in workers if one.pipe is pipe)
                    done = self._heard(worker, waiting, workers)
                    if done is not None:
                        yield done
        finally:
            for worker in workers:
                _stop(worker)

    def _heard(self, worker: _Worker, waiting: deque[int], workers: list[_Worker]) -> int | None:
        """Handle a message or the death of a worker, and assign its next part; return the part that it has made."""
        try:
            kind, what = worker.pipe.recv()
        except (EOFError, OSError):
            workers.remove(worker)
            self._bury(worker, waiting)
            if waiting:
                _log.warning("a worker died with exit code %s; another replaces it", worker.process.exitcode)
                workers.append(self._started())
            return None
        if kind == "failed":
            raise what
        done, worker.part, worker.ready = worker.part, None, True
        self._deaths.pop(done, None)
        if waiting:
            worker.part = waiting.popleft()
            with suppress(OSError):  # if it has died, its pipe reports so at the next turn
                worker.pipe.send(worker.part)
        return done

    def _bury(self, worker: _Worker, waiting: deque[int]) -> None:
        """Put the part of a dead worker back at the head of the queue."""
        worker.pipe.close()
        worker.process.join()
        self.replaced += 1
        self._deaths[worker.part] += 1
        if worker.part is not None:
            waiting.appendleft(worker.part)
        if self._deaths[worker.part] >= MOST_DEATHS:
            where = "before their first part" if worker.part is None else f"at part {worker.part}"
            raise HopfuseError(
                "failed",
                "workers",
                "{deaths} workers died {where}, the last with exit code {exitcode} (-9: killed, often for lack of "
                "memory): give fewer {field} or a smaller {@chunk}, and run again; the finished parts stay. A script "
                'that starts workers needs `if __name__ == "__main__":`',
                deaths=MOST_DEATHS,
                where=where,
                exitcode=worker.process.exitcode,
            )

    def _started(self) -> _Worker:
        mine, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, *self._what), daemon=True)
        process.start()
        theirs.close()  # so that the pipe closes with the worker
        return _Worker(process, mine)


def _stop(worker: _Worker) -> None:
    """End a worker: an idle one exits by itself, and the work of another is no longer needed."""
    worker.pipe.close()
    if worker.part is not None or not worker.ready:
        worker.process.kill()
    worker.process.join()


# ---- In a worker -----------------------------------------------------------------------------------------------------


def _work(pipe: Connection, folder: Path, open_scorer: OpenScorer, chunk: int) -> None:
    """Make the parts received from the pipe, until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it, and this process ends with the parent
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    try:
        place = Folder(folder)
        maker = PartMaker(place, open_scorer(place.plan, 1), chunk)
        pipe.send(("ready", None))
        while True:
            try:
                part = pipe.recv()
            except EOFError:
                return
            maker.make(part)
            pipe.send(("made", part))
    except Exception as error:
        pipe.send(("failed", portable(error)))


def portable(error: Exception) -> Exception:
    """Return an error that can be sent to another process; an unexpected one becomes a text with its traceback."""
    if isinstance(error, (HopfuseError, OSError)):
        return error
    return RuntimeError("a worker failed:\n" + "".join(traceback.format_exception(error)))


def _leave_with_parent() -> None:
    """End this process when its parent ends, even by SIGKILL."""
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)
