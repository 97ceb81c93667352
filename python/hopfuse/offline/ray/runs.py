"""Runs of a plan by Ray Data, and scoring of a dataset."""

from __future__ import annotations

import gc
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..._validation import check_number, check_whole
from ...errors import HopfuseError, InputError
from ...io.queries import COLUMNS, Query
from ..folder import Folder
from ..parts import Output
from ..plan import CHUNK, make_plan
from ..run import RunCounts, shard_parts
from ..scoring import OpenScorer
from ..workers import MOST_DEATHS
from .actors import PartActor, PartReader, error_of_row
from .cluster import connected, cpus_of_actor, first_line, fitting, quiet

#: Default seconds that a run waits for resources that other jobs use, or that a lost node had.
PATIENCE = 30.0


def run(
    folder: Path,
    open_scorer: OpenScorer,
    *,
    actors: int = 1,
    num_gpus: float = 0,
    address: str | None = None,
    copy_index: Path | None = None,
    shard: tuple[int, int] = (1, 1),
    chunk: int = CHUNK,
    alone: bool = False,
    progress: Callable[[int], object] = lambda rows: None,
    patience: float = PATIENCE,
) -> RunCounts:
    """Make the missing parts of a plan by actors of Ray Data.

    All nodes must see the run's folder and the queries under the same paths, and the index, too, unless it is copied.
    An actor has one kernel thread. It requests a CPU from Ray, or less if no whole CPU would stay free: otherwise
    Ray's own tasks could wait for the actors forever.

    Parameters
    ----------
    folder : Path
        Folder of the plan.
    open_scorer : function
        Called in each actor with the plan and 1, its number of threads.
    actors : int
        Number of processes, which Ray places.
    num_gpus : float
        GPUs for each actor; 0.5 puts two actors on one GPU.
    address : str, optional
        ``host:port`` of a cluster that this machine belongs to. By default the cluster to which the process is
        connected, else that of the environment variable ``RAY_ADDRESS``, else a new one on this machine for the time of
        the run. Token authentication is on unless ``RAY_AUTH_MODE`` turns it off.
    copy_index : Path, optional
        A folder on each node's own disk, into which the first actor copies the index; all actors of the node map the
        copy, which stays. By default all map the plan's path.
    shard, chunk, alone, progress
        As in :func:`hopfuse.offline.run`.
    patience : float
        Seconds to wait for resources that other jobs use, or that a lost node had.

    Returns
    -------
    RunCounts
        ``replaced`` counts how often the death of an actor or a node restarted the pool.

    Raises
    ------
    InputError
        The actors do not fit, the cluster cannot be reached or has another token; and as in
        :func:`hopfuse.offline.run`.
    HopfuseError
        Actors die repeatedly without making a part.
    MissingExtraError
        Ray is not installed.
    """
    place = Folder(folder)
    numbers = shard_parts(place.plan.num_parts, shard)
    check_whole(actors, "actors")
    check_number(num_gpus, "num_gpus", low=0)
    check_number(patience, "patience", low=0)
    place.check()
    with place.lock(alone=alone):
        missing = place.missing(numbers)
        progress(_rows(place, numbers) - _rows(place, missing))
        deaths = 0
        if missing:
            what = (place.path.resolve(), open_scorer, chunk, None if copy_index is None else copy_index.resolve())
            with connected(address) as ray:
                deaths = _Rounds(ray, place, what, actors, num_gpus, progress, patience).make(missing)
    return RunCounts(len(missing), _rows(place, missing), deaths)


def score(
    queries: Any,
    directory: Path,
    folder: Path,
    open_scorer: OpenScorer,
    *,
    scoring: Mapping[str, Any],
    output: Output | None = None,
    part_rows: int | None = None,
    check: Callable[[Query, str], object] = lambda query, where: None,
    **how: Any,
) -> Any:
    """Score a dataset or a file of queries, and return the results as a dataset.

    All queries are checked before the first is scored. The folder keeps the plan and the parts: the same call continues
    a killed run, and :func:`hopfuse.offline.merge` merges the parts into one file.

    Parameters
    ----------
    queries : ray.data.Dataset or Path
        Rows of ``id``, ``text``, ``entities``, ``vector``, all optional. A dataset is written to the folder in its
        order, which must not change from run to run, since parts are ranges of rows.
    directory : Path
        The index.
    folder : Path
        Folder of the run.
    open_scorer : function
        As in :func:`run`.
    scoring, output, part_rows, check
        As in :func:`hopfuse.offline.make_plan`.
    **how
        As in :func:`run`.

    Returns
    -------
    ray.data.Dataset
        A row with ``id`` and ``hits`` for each query, in the order of the queries. The process stays connected to Ray.

    Raises
    ------
    InputError, HopfuseError, MissingExtraError
        As in :func:`run`; or a row is malformed or refused, or the folder has another plan.
    """
    place, given = Folder(folder), isinstance(queries, str | Path)
    with tempfile.TemporaryDirectory() as name, connected(how.pop("address", None), stay=True) as ray:
        path = Path(queries) if given else _written(queries, Path(name, "queries.jsonl"))
        plan = make_plan(path, directory, scoring=scoring, output=output, part_rows=part_rows, check=check)
        if not given:
            kept = str(folder.resolve() / "queries.jsonl")
            plan = replace(plan, queries=kept, inputs={"queries": {**plan.inputs["queries"], "path": kept}})
        place.create(plan, None if given else path)
        run(folder, open_scorer, **how)
        parts = [{"part": number} for number in range(place.plan.num_parts)]
        found = ray.data.from_items(parts).flat_map(PartReader(place.path.resolve()))
        found.context.execution_options.preserve_order = True
        return found


class _Rounds:
    """Makes parts by successive pools of actors; a pool ends when its parts are made or an actor dies."""

    def __init__(
        self,
        ray: Any,
        place: Folder,
        what: tuple[Any, ...],
        actors: int,
        num_gpus: float,
        progress: Callable[[int], object],
        patience: float,
    ) -> None:
        self._ray, self._place, self._what, self._progress = ray, place, what, progress
        self._actors, self._gpus, self._patience = actors, num_gpus, patience
        self._cpus = cpus_of_actor(self._nodes(), actors, num_gpus)

    def make(self, parts: Sequence[int]) -> int:
        """Make the parts, and return how many pools ended by the death of an actor."""
        left, deaths, fruitless, wanted = list(parts), 0, 0, self._actors
        while left:
            self._wait_for_room(wanted)
            wanted, before = 1, len(left)  # after a death the pool may have fewer actors
            try:
                for part in self._pool(left):
                    left.remove(part)
                    self._progress(_rows(self._place, [part]))
            except self._ray.exceptions.RayError as error:
                deaths += 1
                missing = self._place.missing(left)  # a part may exist whose message was lost
                self._progress(_rows(self._place, left) - _rows(self._place, missing))
                left = missing
                fruitless = fruitless + 1 if len(left) == before else 0
                if fruitless >= MOST_DEATHS:
                    raise HopfuseError(
                        "failed",
                        "actors",
                        "{field} died {deaths} times without making a part; the first missing part is {part}. "
                        "They often lack memory: give fewer workers or a smaller chunk, and run again; the finished "
                        "parts stay. Ray reports: {reason}",
                        deaths=MOST_DEATHS,
                        part=left[0],
                        reason=first_line(error),
                    ) from error
        return deaths

    def _pool(self, parts: Sequence[int]) -> Iterator[int]:
        """Yield each part once it is made."""
        data = self._ray.data
        with warnings.catch_warnings(), quiet(data):
            warnings.simplefilter("ignore")  # of max_restarts, see pyproject.toml
            blocks = data.from_items([{"part": part} for part in parts], override_num_blocks=len(parts))
            # Ray would restart a dead actor forever, even without resources for it or if its part kills it.
            made = blocks.map_batches(
                PartActor,
                fn_constructor_args=self._what,
                batch_size=1,
                compute=data.ActorPoolStrategy(size=min(self._actors, len(parts)), max_tasks_in_flight_per_actor=2),
                num_cpus=self._cpus,
                num_gpus=self._gpus or None,
                max_restarts=0,
                max_task_retries=0,
            )
            for row in made.iter_rows():
                if row["error"]:
                    raise error_of_row(row["error"])
                yield int(row["part"])

    def _wait_for_room(self, wanted: int) -> None:
        until = time.monotonic() + self._patience
        while True:
            gc.collect()  # an ended pool keeps its resources while its actors' handles are in reference cycles
            free = self._ray.available_resources()
            room = min(fitting([free], self._cpus, self._gpus), fitting(self._nodes(), self._cpus, self._gpus))
            if room >= wanted:
                return
            if time.monotonic() > until:
                raise InputError(
                    "busy",
                    "actors",
                    "the Ray cluster has {free_cpus:g} free CPUs and {free_gpus:g} free GPUs: {allowed} actors of "
                    "{cpus:g} CPUs and {gpus:g} GPUs fit, and {given} are needed. Give fewer workers, wait for other "
                    "jobs, or add nodes, and run again: the finished parts stay",
                    free_cpus=free.get("CPU", 0.0),
                    free_gpus=free.get("GPU", 0.0),
                    allowed=room,
                    cpus=self._cpus,
                    gpus=self._gpus,
                    given=wanted,
                )
            time.sleep(0.5)

    def _nodes(self) -> list[Mapping[str, float]]:
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]


def _written(dataset: Any, path: Path) -> Path:
    """Write the rows of a dataset as JSON lines; the bytes depend only on the rows and their order."""
    dataset.context.execution_options.preserve_order = True
    with open(path, "w", encoding="utf-8") as file:
        for row in dataset.iter_rows():
            known = {name: _plain(row[name]) for name in COLUMNS if row.get(name) is not None}
            file.write(json.dumps(known, ensure_ascii=False) + "\n")
    return path


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _rows(place: Folder, parts: Sequence[int]) -> int:
    return sum(end - first for first, end in map(place.plan.row_range, parts))
