"""A long call of every op, of thirty milliseconds or more, and a short one whose bits are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import hopfuse as hf
import numpy as np

OPS = ("calibrate", "dense_topk", "dense_exhaustive", "dice", "encode", "fuse", "ising", "ppr", "ppr_topk", "project")
OPS += ("project_topk", "similarity")


def calls(op: str, threads: int | None = None) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return a long call of an op, and a short one."""
    rng = np.random.default_rng(0)
    long, short = _MAKERS[op](rng, threads)
    return long, short


def _walks(op: str) -> Callable[[Any, Any], Iterator[Any]]:
    def make(rng: Any, threads: Any) -> Iterator[Any]:
        n = 30_000
        graph = hf.Graph.from_edges(*rng.integers(0, n, (2, 20 * n)), num_nodes=n)
        seeds = [{int(v): 1.0} for v in rng.integers(0, n, 16)]
        more = {"tol": 1e-9, "damping": 0.95, "threads": threads}
        if op == "ppr":
            out = np.empty((8, n), np.float32)
            yield lambda: hf.ppr(graph, seeds[:8], out=out, **more)
            yield lambda: hf.ppr(graph, seeds[:2], threads=threads).scores
        else:
            yield lambda: hf.ppr_topk(graph, seeds, 20, stop="tol", **more)
            yield lambda: hf.ppr_topk(graph, seeds[:2], 5, threads=threads).scores

    return make


def _dense(storage: Any, k: int, batch: int) -> Callable[[Any, Any], Iterator[Any]]:
    def make(rng: Any, threads: Any) -> Iterator[Any]:
        rows = rng.standard_normal((60_000, 256), dtype=np.float32)
        corpus = hf.Corpus.from_array(rows, storage=storage)
        queries = rng.standard_normal((batch, 256), dtype=np.float32)
        yield lambda: hf.dense_topk(queries, corpus, k, threads=threads)
        yield lambda: hf.dense_topk(queries[:3], corpus, 5, threads=threads).scores

    return make


def _encode(rng: Any, threads: Any) -> Iterator[Any]:
    rows = np.tile(rng.standard_normal((4000, 256), dtype=np.float32), (100, 1))

    def encode(count: int) -> Any:
        return hf.dense_topk(rows[:1], hf.Corpus.from_array(rows[:count], storage="int8"), 5, threads=threads).scores

    yield lambda: encode(400_000)
    yield lambda: encode(1000)


def _lists(op: str) -> Callable[[Any, Any], Iterator[Any]]:
    def make(rng: Any, threads: Any) -> Iterator[Any]:
        batch, k, nodes = 6000, 400, 1000
        ids = np.tile(np.argsort(rng.random((60, nodes)), axis=1)[:, :k], (batch // 60, 1))
        scores = np.tile(-np.sort(-rng.random((60, k), dtype=np.float32)), (batch // 60, 1))
        counts = np.full(batch, k)
        lists = [hf.Hits.unchecked(ids, scores, counts), hf.Hits.unchecked(ids[::-1].copy(), scores, counts)]
        few = [hf.Hits(one.ids[:9], one.scores[:9]) for one in lists]
        if op == "calibrate":
            many = hf.Hits.unchecked(np.tile(ids, (8, 1)), np.tile(scores, (8, 1)), np.tile(counts, 8))
            yield lambda: hf.calibrate(many, "softmax", threads=threads)
            yield lambda: hf.calibrate(few[0], "softmax", threads=threads).scores
        elif op == "fuse":
            yield lambda: hf.fuse(lists, method="boltzmann", k=50, threads=threads)
            yield lambda: hf.fuse(few, method="boltzmann", k=50, threads=threads).scores
        else:
            graph = hf.Graph.from_edges(*rng.integers(0, nodes, (2, 5000)), num_nodes=nodes)
            yield lambda: hf.ising_rerank(few[0], graph, steps=2000, threads=threads)
            yield lambda: hf.ising_rerank(few[0], graph, threads=threads).scores

    return make


def _dice(rng: Any, threads: Any) -> Iterator[Any]:
    texts = ["".join(map(chr, rng.integers(97, 123, 400))) for _ in range(60)]
    labels = hf.LabelSets.from_labels(texts)
    candidates = rng.integers(0, len(texts), (60 * 20_000, 1)).astype(np.int32)
    indptr = np.arange(61) * 20_000
    yield lambda: hf.dice_scores(texts, labels, candidates, indptr=indptr, threads=threads)
    yield lambda: hf.dice_scores(texts[:2], labels, candidates[:20], indptr=[0, 10, 20], threads=threads)


def _projection(op: str) -> Callable[[Any, Any], Iterator[Any]]:
    def make(rng: Any, threads: Any) -> Iterator[Any]:
        rows, columns, each = 200_000, 50_000, 12
        column = (np.arange(rows)[:, None] * 7 + np.arange(each) * 4001) % columns
        incidence = hf.Incidence.from_pairs(
            np.repeat(np.arange(rows), each), np.sort(column, axis=1).ravel(), num_rows=rows, num_columns=columns
        )
        scores = rng.random((160 if op == "project" else 320, columns), dtype=np.float32)
        if op == "project":
            yield lambda: hf.project(scores, incidence, threads=threads)
            yield lambda: hf.project(scores[:2], incidence, threads=threads)
        else:
            yield lambda: hf.project_topk(scores, incidence, 50, threads=threads)
            yield lambda: hf.project_topk(scores[:2], incidence, 50, threads=threads).scores

    return make


def _similarity(rng: Any, threads: Any) -> Iterator[Any]:
    corpus = hf.Corpus.from_array(rng.standard_normal((50_000, 512), dtype=np.float32), metric="cosine")
    queries = rng.standard_normal((200, 512), dtype=np.float32)
    yield lambda: hf.similarity_weights(queries, corpus, threads=threads)
    yield lambda: hf.similarity_weights(queries[:2], corpus, threads=threads)


_MAKERS: dict[str, Callable[[Any, Any], Iterator[Any]]] = {
    "dense_topk": _dense("int8", 10, 1500),
    "dense_exhaustive": _dense("float32", 10_000, 60),
    "dice": _dice,
    "encode": _encode,
    "similarity": _similarity,
    **{op: _lists(op) for op in ("calibrate", "fuse", "ising")},
    **{op: _walks(op) for op in ("ppr", "ppr_topk")},
    **{op: _projection(op) for op in ("project", "project_topk")},
}
