"""Record calls of the native module, made through the public API, for tests/build/replay.cpp.

``record_calls.py CALLS EXPECTED`` writes the calls with their inputs, and the results of this machine's best variant.
"""

from __future__ import annotations

import struct
import sys
from functools import partial
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse import _native
from hopfuse.backends import calls as files_of_calls
from hopfuse.backends import cpu_push, walks

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from native_kernels import COSTS, KERNELS


class Recorder:
    """A replacement of the native module in the CPU backend that records calls."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []
        self.expected: list[bytes] = []
        self.graphs: dict[int, int] = {}
        self.kept: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return partial(self.call, name) if name in KERNELS else getattr(_native, name)

    def call(self, op: str, *positional: Any, **fields: Any) -> Any:
        result = getattr(_native, op)(*positional, **fields)
        given = {**dict(zip(KERNELS[op].arguments, positional, strict=False)), **fields}
        self.add(op, self.flat({name: value for name, value in given.items() if name not in COSTS}))
        return result

    def add(self, op: str, values: dict[str, Any]) -> None:
        outputs, codes = KERNELS[op][1:] if op in KERNELS else ((), ())  # the replay makes the codes of vectors again
        fields = [
            self.field(name, value, name in outputs or name in codes)
            for name, value in values.items()
            if value is not None
        ]
        self.calls.append(self.text(op) + struct.pack("<I", len(fields)) + b"".join(fields))
        self.expected += [values[name].tobytes() for name in values if name in outputs]

    def flat(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields with those of dicts and lists as name.key, and graphs by the numbers of their calls.

        Numbers in dicts are float64.
        """
        found: dict[str, Any] = {}
        for name, value in fields.items():
            if isinstance(value, dict):
                for key, one in value.items():
                    found[f"{name}.{key}"] = one if isinstance(one, np.ndarray) else float(one)
            elif isinstance(value, list):
                found |= {f"{name}.{at}": one for at, one in enumerate(value)}
            else:
                found[name] = self.graphs[id(value)] if isinstance(value, _native.PreparedGraph) else value
        return found

    @staticmethod
    def text(value: str) -> bytes:
        return struct.pack("<I", len(value)) + value.encode()

    def field(self, name: str, value: Any, output: bool) -> bytes:
        if not isinstance(value, np.ndarray):
            value = np.array(value, np.float64 if isinstance(value, float) else np.int64)
        header = struct.pack(f"<BBI{value.ndim}q", output, value.itemsize, value.ndim, *value.shape)
        return self.text(name) + header + (b"" if output else value.tobytes())

    def PreparedGraph(self, **fields: Any) -> Any:  # noqa: N802
        made = _native.PreparedGraph(**fields)
        self.kept.append(made)
        self.graphs[id(made)] = len(self.calls)
        self.add("graph", fields)
        return made


# ---- The calls -----------------------------------------------------------------------------------------------


def graph(rng: np.random.Generator, n: int, edges: int, *, directed: bool, weighted: bool, types: int) -> hf.Graph:
    """Return a random graph with self-loops, parallel edges, two large hubs, and isolated and dangling nodes."""
    hubs = np.repeat([0, n // 2], [n // 3, 65])
    src = np.concatenate([rng.integers(0, n - n // 8, edges), hubs])
    dst = np.concatenate([rng.integers(0, n - n // 8, edges), rng.integers(0, n - n // 8, hubs.size)])
    return hf.Graph.from_edges(
        src,
        dst,
        rng.random(src.size) + 0.01 if weighted else None,
        num_nodes=n,
        directed=directed,
        edge_type=rng.integers(0, types, src.size) if types > 1 else None,
        edge_type_names=[f"t{i}" for i in range(types)] if types > 1 else None,
    )


def seeds(rng: np.random.Generator, g: hf.Graph, batch: int, within: np.ndarray) -> list[dict[int, float]]:
    return [{int(v): float(rng.random() + 0.1) for v in rng.choice(within, 5, replace=False)} for _ in range(batch)]


def ppr_calls(rng: np.random.Generator) -> None:
    for directed in (False, True):
        for weighted, types in ((False, 1), (True, 1), (True, 3)):
            g = graph(rng, 700, 2500, directed=directed, weighted=weighted, types=types)
            every = np.arange(g.num_nodes)
            for batch in (1, 3, 7, 13, 21, 37):
                damping = rng.choice([0.0, 0.3, 0.5, 0.85], batch)
                hf.ppr(g, seeds(rng, g, batch, every), damping=damping, tol=1e-6, threads=1)
            rows = seeds(rng, g, 9, every)
            hf.ppr(g, rows, damping=0.9, tol=1e-12, max_iter=12, threads=1)
            allowed = rng.random((9, g.num_nodes)) < 0.6
            common = np.flatnonzero(allowed[0])
            own = [seeds(rng, g, 1, np.flatnonzero(mask))[0] for mask in allowed]
            hf.ppr(g, seeds(rng, g, 9, common), allow=allowed[0], threads=1)
            hf.ppr(g, own, allow=allowed, threads=1)
            for k in (1, 10, g.num_nodes):
                hf.ppr_topk(g, rows, k, threads=1)
                hf.ppr_topk(g, rows, k, stop="tol", threads=1)
            hf.ppr_topk(g, rows, 5, candidates=np.arange(0, g.num_nodes, 3), threads=1)
            hf.ppr_topk(g, own, 5, allow=allowed, threads=1)
            if not directed:
                hf.ppr_topk(g, rows, 5, walk="local", threads=1)
                hf.ppr_topk(g, rows, 9, walk="local", prove="set", candidates=common, damping=0.8, threads=1)
            if types > 1:
                eta = rng.random((9, types)) / types
                hf.ppr(g, rows, edge_type_weights=eta, threads=1)
                hf.ppr(g, rows, edge_type_weights=eta, edge_type_norm="per_type", threads=1)
                hf.ppr(g, own, edge_type_weights=eta, edge_type_norm="per_type", allow=allowed, threads=1)
                hf.ppr(g, own, edge_type_weights=eta[0], allow=allowed, threads=1)
                hf.ppr_topk(g, rows, 7, edge_type_weights=eta, edge_type_norm="per_type", threads=1)
                if not directed:
                    hf.ppr_topk(g, rows, 7, walk="local", edge_type_weights=eta, threads=1)


def dense_calls(rng: np.random.Generator) -> None:
    for dim, rows in ((1, 50), (7, 400), (16, 400), (100, 1500), (387, 900)):
        x = rng.standard_normal((rows, dim)).astype(np.float32)
        x[rows // 3 : rows // 2] = x[0]  # ties
        for storage in ("float32", "float16", "bfloat16"):
            for metric in ("ip", "cosine"):
                corpus = hf.Corpus.from_array(x, metric=metric, storage=storage)
                for batch, k in ((1, 1), (3, 10), (7, 10), (25, 10), (4, rows)):
                    hf.dense_topk(rng.standard_normal((batch, dim)).astype(np.float32), corpus, k, threads=1)
                q = rng.standard_normal((5, dim)).astype(np.float32)
                masks = rng.random((5, rows)) < 0.4
                hf.dense_topk(q, corpus, 6, allow=masks[0], threads=1)
                hf.dense_topk(q, corpus, 6, allow=masks, threads=1)
                hf.dense_topk(q, corpus, 6, allow=np.flatnonzero(masks[0]), threads=1)
                hf.dense_topk(q, corpus, 6, allow=[np.flatnonzero(mask) for mask in masks], threads=1)


def hits(rng: np.random.Generator, batch: int, width: int, *, tied: bool) -> hf.Hits:
    ids = np.stack([rng.permutation(3 * width)[:width] for _ in range(batch)])
    scores = rng.integers(1, 5, ids.shape) if tied else rng.random(ids.shape)
    counts = rng.integers(0, width + 1, batch)
    ids[np.arange(width) >= counts[:, None]] = -1
    return hf.Hits(ids, scores.astype(np.float32))


def fusion_calls(rng: np.random.Generator) -> None:
    for tied in (False, True):
        lists = [hits(rng, 40, width, tied=tied) for width in (30, 100, 7)]
        for method in hf.fusion.calibration.CALIBRATIONS:
            options = {"lower": -1.0} if method == "theoretical_min_max" else {}
            hf.calibrate(lists[1], method, threads=1, **options)
        for ties in ("strict", "weak", "mean", "rank"):
            hf.calibrate(lists[1], "pit", ties=ties, threads=1)
        for method in hf.fusion.METHODS:
            hf.fuse(lists[:2], method=method, k=10, threads=1)
            hf.fuse(lists, method=method, k=200, consensus=0.5, threads=1)
        hf.fuse(lists, method="rrf", pool=20, prior=np.linspace(0.0, 1.0, 50), threads=1)
        hf.fuse(lists, method="linear", calibration="z_score", weights=[0.2, 0.3, 0.5], threads=1)
        hf.fuse(lists[:2], method="boltzmann", temperature=0.6, weights=rng.random((40, 2)), threads=1)


def ising_calls(rng: np.random.Generator) -> None:
    for weighted, types in ((False, 1), (True, 1), (True, 3)):
        g = graph(rng, 700, 2500, directed=False, weighted=weighted, types=types)
        for width in (1, 33, 100, 230):  # ids are drawn from three times as many
            found = hits(rng, 20, width, tied=types > 1)
            hf.ising_rerank(found, g, threads=1)
            hf.ising_rerank(found, g, coupling=2.0, temperature=0.7, relaxation=1.0, steps=7, blend=0.6, k=5, threads=1)


def dice_calls(rng: np.random.Generator) -> None:
    texts = ["".join(rng.choice(list("abcdefgh "), length)) for length in rng.integers(0, 60, 90)]
    for unit in ("bigrams", "words"):
        labels = hf.LabelSets.from_labels(texts[:60], unit=unit)
        for parts in (1, 3):
            ends = np.sort(rng.integers(0, 901, 29))
            candidates = rng.integers(0, 60, (900, parts))
            hf.dice_scores(texts[60:], labels, candidates, indptr=[0, *ends, 900], threads=1)


def similarity_calls(rng: np.random.Generator) -> None:
    for dim, rows in ((1, 50), (7, 400), (16, 400), (387, 900)):
        x = rng.standard_normal((rows, dim)).astype(np.float32)
        for storage in ("float32", "float16", "bfloat16"):
            corpus = hf.Corpus.from_array(x, storage=storage)
            for batch in (1, 3, 7, 25):
                q = rng.standard_normal((batch, dim)).astype(np.float32)
                masks = rng.random((batch, rows)) < 0.4
                for allow in (None, masks[0], masks):
                    hf.similarity_weights(q, corpus, tau=0.7, allow=allow, threads=1)


def project_calls(rng: np.random.Generator) -> None:
    for weighted in (False, True):
        rows, columns = 500, 300
        pairs = np.unique(np.concatenate([rng.integers(0, rows * columns, 3000), 7 * columns + np.arange(columns)]))
        weights = rng.random(pairs.size) if weighted else None
        row, column = np.divmod(pairs, columns)
        incidence = hf.Incidence.from_pairs(row, column, weights, num_rows=rows, num_columns=columns)
        for batch in (1, 3, 5, 8, 16, 37):
            scores = rng.integers(-8, 17, (batch, columns)) / 16
            scale = rng.random(rows) if batch % 2 else None
            hf.project(scores, incidence, scale=scale, threads=1)
            for k in (1, 50, rows):
                hf.project_topk(scores, incidence, k, scale=scale, threads=1)


def main(calls: Path, expected: Path) -> None:
    recorder = Recorder()
    for module in (*files_of_calls.modules(), cpu_push, walks):
        module._native = recorder  # type: ignore[attr-defined]
    rng = np.random.default_rng(20260101)
    ppr_calls(rng)
    dense_calls(rng)
    fusion_calls(rng)
    ising_calls(rng)
    dice_calls(rng)
    project_calls(rng)
    similarity_calls(rng)
    calls.write_bytes(struct.pack("<I", len(recorder.calls)) + b"".join(recorder.calls))
    expected.write_bytes(b"".join(recorder.expected))
    print(f"{len(recorder.calls)} calls recorded on {_native.isa()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
