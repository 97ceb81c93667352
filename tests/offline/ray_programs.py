"""Programs that tests start beside a Ray cluster; each prints one line of JSON, its error included."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import hopfuse as hf
from hopfuse import offline
from hopfuse.errors import HopfuseError
from hopfuse.offline import ray as by_ray
from offline.scorers import HashScorer, SlowScorer, open_dying, open_held, open_slow


def open_marking(plan: offline.Plan, threads: int) -> SlowScorer:
    """Leaves a file named after the index's directory and the GPUs that this process sees."""
    place = Path(plan.scoring["marks"], str(os.getpid()))
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES")
    place.write_text(json.dumps({"index": plan.index["directory"], "gpus": gpus, "threads": threads}))
    return SlowScorer(0.05)


def open_hash_of_index(plan: offline.Plan, threads: int) -> HashScorer:
    """Opens the plan's index, too."""
    assert offline.open_index(plan).num_passages == 2
    return HashScorer()


OPENING = {"slow": open_slow, "dying": open_dying, "held": open_held, "marking": open_marking}


def run(folder: str, opening: str, how: str) -> Any:
    """Make the missing parts."""
    options = json.loads(how)
    if "copy_index" in options:
        options["copy_index"] = Path(options["copy_index"])
    return by_ray.run(Path(folder), OPENING[opening], chunk=5, **options)._asdict()


def busy(folder: str, opening: str, how: str) -> Any:
    """Make the missing parts while an actor of another kind has most of the cluster."""
    import ray

    with by_ray.connected(json.loads(how)["address"]):

        @ray.remote(num_cpus=1.8)
        class Holder:
            def here(self) -> bool:
                return True

        holder = Holder.remote()
        assert ray.get(holder.here.remote())
        return run(folder, opening, json.dumps({"actors": 2, "patience": 1.0}))


def score(queries: str, index: str, folder: str, address: str) -> Any:
    """Score a dataset that tasks of a whole CPU read, by as many actors as there are CPUs; count what comes back."""
    import ray

    with by_ray.connected(address, stay=True):
        dataset = ray.data.read_parquet(queries, override_num_blocks=3)
        found = by_ray.score(
            dataset, Path(index), Path(folder), open_hash_of_index, scoring={"k": 3}, part_rows=10, actors=2
        )
        return list(found.iter_rows())


def by_retriever(queries: str, index: str, folder: str, address: str) -> Any:
    """Score by a retriever that is pickled for the actors; return the rows."""
    scorer = offline.RetrieverScorer(hf.Retriever.open(index), k=2)
    with by_ray.connected(address, stay=True):
        how = {"scoring": {"k": 2}, "part_rows": 10, "actors": 2}
        found = by_ray.score(Path(queries), Path(index), Path(folder), lambda plan, threads: scorer, **how)
        return [json.loads(json.dumps(row, default=lambda value: value.tolist())) for row in found.iter_rows()]


if __name__ == "__main__":
    try:
        found = {"run": run, "busy": busy, "score": score, "by_retriever": by_retriever}[sys.argv[1]](*sys.argv[2:])
    except HopfuseError as error:
        found = error.data()
    print(json.dumps(found, default=lambda value: value.tolist()))
