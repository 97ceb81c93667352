"""The worker of ``peers.resident``, which may run at an earlier commit, so it uses only what all commits have.

Reads pickled messages from standard input: a task, then (batch, turn) for each call, or None to get the answer of the
last call. Each message gets one pickled reply.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

import hopfuse as hf

Call = Callable[[int, int], Any]


def ppr(task: dict[str, Any]) -> Call:
    """Return a function that walks for the first queries."""
    src, dst, weight = task["edges"]
    graph = hf.Graph.from_edges(src, dst, weight, num_nodes=task["num_nodes"])

    def walk(batch: int, turn: int) -> Any:
        return hf.ppr(graph, task["restarts"][:batch], threads=task["threads"], **task["options"]).scores

    return walk


def ppr_topk(task: dict[str, Any]) -> Call:
    """Return a function that finds the best nodes for the first queries."""
    src, dst, weight = task["edges"]
    graph = hf.Graph.from_edges(src, dst, weight, num_nodes=task["num_nodes"])

    def walk(batch: int, turn: int) -> Any:
        return _ranked(hf.ppr_topk(graph, task["restarts"][:batch], threads=task["threads"], **task["options"]))

    return walk


def dense(task: dict[str, Any]) -> Call:
    """Return a function that searches a corpus for the first queries."""
    corpus, queries = hf.Corpus.from_array(task["vectors"]), task["queries"]
    return lambda batch, turn: _ranked(hf.dense_topk(queries[:batch], corpus, task["k"], threads=task["threads"]))


def fuse(task: dict[str, Any]) -> Call:
    """Return a function that fuses all lists."""
    lists = [hf.Hits(ids, scores) for ids, scores in task["lists"]]
    return lambda batch, turn: _ranked(hf.fuse(lists, threads=task["threads"], **task["options"]))


def phase_graph(task: dict[str, Any]) -> Call:
    """Return a function that searches for a turn's questions, with the settings of the paper."""
    src, dst, weight = task["edges"]
    index = hf.Index.build(
        passages=[{"text": ""} for _ in task["vectors"]],
        vectors=task["vectors"],
        graph=hf.Graph.from_edges(src, dst, weight, num_nodes=task["num_nodes"]),
        entities=task["names"],
    )
    paper = getattr(hf.recipes.PhaseGraph, "paper", None)  # the default settings of commits without it
    config = () if paper is None else (paper(),)
    recipe = hf.recipes.PhaseGraph(index, *config, threads=task["threads"])

    def search(batch: int, turn: int) -> Any:
        rows = [(turn * batch + b) % len(task["mentions"]) for b in range(batch)]
        entities = [task["mentions"][row] for row in rows]
        return _ranked(recipe.search(vectors=task["query_vectors"][rows], entities=entities, k=task["k"]).hits)

    return search


def _ranked(hits: Any) -> tuple[Any, Any]:
    return hits.ids, hits.scores


CALLS = {"dense": dense, "fuse": fuse, "phase_graph": phase_graph, "ppr": ppr, "ppr_topk": ppr_topk}


def main() -> None:
    """Answer until standard input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keeps output of libraries apart from the replies

    def reply(message: Any) -> None:
        pickle.dump(message, answers, protocol=pickle.HIGHEST_PROTOCOL)
        answers.flush()

    messages = sys.stdin.buffer
    task = pickle.load(messages)
    call = CALLS[task["op"]](task)
    reply("ready")
    found = None
    while True:
        try:
            asked = pickle.load(messages)
        except EOFError:
            return
        if asked is None:
            reply(found)
        else:
            found = call(*asked)
            reply("done")


if __name__ == "__main__":
    main()
