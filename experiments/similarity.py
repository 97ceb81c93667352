"""Compare units for the tau of a guided walk; writes experiments/results/similarity.json.

python -m experiments.similarity [--data FOLDER]

``python -m experiments.pages`` reads it. Each question's walk is run once on a grid
of temperatures; a unit then gives each question the temperature tau times the spread of its similarities.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hopfuse.encoders import WordLlamaEncoder
from hopfuse.evaluate import in_test_half
from numpy.typing import NDArray
from scipy.sparse import csr_array

from .folders import add_data_option, read_lines, read_tsv
from .walks import guided_walk, potentials

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "experiments" / "results" / "similarity.json"
FOLDERS = ("hotpotqa", "musique-train", "2wiki-dev300")
DAMPING, PASSES, K = 0.5, 12, 5
#: Temperatures a third of an octave apart, so the nearest one is at most a sixth away.
TEMPERATURES = 0.01 * 2.0 ** (np.arange(22) / 3)
STEPS = 6  # of tau, per octave
HALVES = ("tune", "test")
PROJECTED, SEED = 128, 0

Floats = NDArray[np.float32]


def largest(cosines: Floats, nth: int) -> Floats:
    """Return the nth largest value of each row."""
    at = cosines.shape[1] - nth
    return np.partition(cosines, at, axis=1)[:, at]


def quantile_gap(low: float, high: float) -> Callable[[Floats], Floats]:
    """Return the function that computes the gap between two quantiles of each row."""
    return lambda cosines: np.quantile(cosines, high, axis=1) - np.quantile(cosines, low, axis=1)


#: Measures of a question's spread of similarities over all passages.
UNITS: Mapping[str, Callable[[Floats], Floats]] = {
    "1: the cosine itself": lambda c: np.ones(len(c), np.float32),
    "standard deviation": lambda c: c.std(axis=1),
    "interquartile range": quantile_gap(0.25, 0.75),
    "90 % less 10 %": quantile_gap(0.1, 0.9),
    "maximum less mean": lambda c: c.max(axis=1) - c.mean(axis=1),
    "maximum less median": quantile_gap(0.5, 1.0),
    "maximum less 10th": lambda c: c.max(axis=1) - largest(c, 10),
    "maximum less 100th": lambda c: c.max(axis=1) - largest(c, 100),
    "maximum less 1000th": lambda c: c.max(axis=1) - largest(c, 1000),
    "maximum less 99 %": quantile_gap(0.99, 1.0),
}


class Walks(NamedTuple):
    """A folder's graph, and its questions with seeds and a known last hop."""

    weights: csr_array  # (N, N), symmetric
    restarts: Floats  # (N, Q)
    last_hops: list[list[int]]
    rows: NDArray[np.int64]  # of the questions, in the folder's files
    is_test: NDArray[np.bool_]


def read_walks(folder: Path) -> Walks:
    """Read a folder; seeds are the entities in a question, weighted 1 / (number of their passages)."""
    nodes = list(read_tsv(folder / "graph" / "nodes.tsv"))
    a, b, kinds, counts = zip(*read_tsv(folder / "graph" / "edges.tsv"), strict=True)
    ends, weight = np.array([a, b], np.int64), np.array(counts, np.float32)
    loop = ends[0] == ends[1]
    both = np.concatenate([ends, ends[::-1, ~loop]], axis=1)
    data = np.concatenate([weight, weight[~loop]])
    matrix = csr_array((data, both), shape=(len(nodes), len(nodes)), dtype=np.float32)
    context = ends[:, np.array(kinds) == "context"]
    frequency = np.bincount(context.ravel(), minlength=len(nodes))
    named: dict[str, list[int]] = {}
    for node, kind, name in nodes:
        if kind == "entity":
            named.setdefault(" ".join(name.casefold().split()), []).append(int(node))
    questions, mentions = (list(read_lines(folder / name)) for name in ("queries.jsonl", "query_entities.jsonl"))
    columns, last_hops, rows = [], [], []
    for row, (question, mention) in enumerate(zip(questions, mentions, strict=True)):
        seeds = {v for name, _ in mention["entities"] for v in named.get(" ".join(name.casefold().split()), ())}
        if not seeds or not question["last_hop"]:
            continue
        column = np.zeros(len(nodes), np.float32)
        for seed in seeds:
            column[seed] = 1 / max(frequency[seed], 1)
        columns.append(column / column.sum())
        last_hops.append(question["last_hop"])
        rows.append(row)
    is_test = in_test_half([questions[row]["id"] for row in rows])
    return Walks(matrix, np.ascontiguousarray(np.array(columns).T), last_hops, np.array(rows), is_test)


def vectors_of(folder: Path, encoder: WordLlamaEncoder) -> dict[str, tuple[Floats, Floats]]:
    """Return unit vectors of questions and passages by each encoder."""
    questions, passages = (np.load(folder / f"{kind}_emb.f16.npy").astype(np.float32) for kind in ("query", "passage"))
    asked = [line["question"] for line in read_lines(folder / "queries.jsonl")]
    texts = [f"{line['title']}\n{line['text']}" for line in read_lines(folder / "passages.jsonl")]
    draw = np.random.default_rng(SEED).standard_normal((questions.shape[1], PROJECTED))
    onto = np.linalg.qr(draw)[0].astype(np.float32)
    return {
        "MiniLM": (unit(questions), unit(passages)),
        "WordLlama": (encoder.encode_queries(asked), encoder.encode_passages(texts)),
        f"MiniLM on {PROJECTED}": (unit(questions @ onto), unit(passages @ onto)),
    }


def unit(rows: Floats) -> Floats:
    """Return rows scaled to length 1."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def recalls(walks: Walks, cosines: Floats) -> NDArray[np.float64]:
    """Return last_hop_recall@5 of each question at each temperature, shape (Q, temperatures)."""
    found = [walked(walks, cosines, float(temperature)) for temperature in TEMPERATURES]
    return np.stack(found, axis=1)


def walked(walks: Walks, cosines: Floats, temperature: float) -> NDArray[np.float64]:
    """Return the share of each question's last hop among the first five passages of its guided walk."""
    z = potentials(cosines.T, len(walks.restarts), temperature)
    x = guided_walk(walks.weights, walks.restarts, z, DAMPING, PASSES)
    best = np.argsort(-x[: cosines.shape[1]], axis=0, kind="stable")[:K].T
    return np.array([np.isin(hop, row).mean() for hop, row in zip(walks.last_hops, best, strict=True)])


class Measured(NamedTuple):
    """A folder with an encoder: recall of each question at each temperature, its spreads, and its half."""

    recall: NDArray[np.float64]
    spreads: Mapping[str, Floats]
    is_test: NDArray[np.bool_]

    def mean(self, test: bool, places: NDArray[np.int64]) -> float:
        """Return the mean recall of one half, with a temperature for each question."""
        value = self.recall[np.arange(len(places)), places]
        return float(100 * value[self.is_test == test].mean())


Places = Callable[[Measured], NDArray[np.int64]]


class Encoder(NamedTuple):
    """An encoder's measurements on all folders, which have equal weight."""

    folders: Mapping[str, Measured]

    def reached(self, places: Places) -> dict[str, list[float]]:
        """Return the recall on the tune and test halves of each folder."""
        chosen = [(one, places(one)) for one in self.folders.values()]
        return {half: [one.mean(half == "test", at) for one, at in chosen] for half in HALVES}

    def own_best(self) -> dict[str, Any]:
        """Return the temperature that is best on the tune halves, and its recall."""
        tried = [self.reached(everywhere(place)) for place in range(len(TEMPERATURES))]
        place = int(np.argmax([np.mean(one["tune"]) for one in tried]))
        return {"temperature": float(TEMPERATURES[place]), **tried[place]}


def everywhere(place: int) -> Places:
    """Return the same place in the grid for all questions."""
    return lambda one: np.full(len(one.recall), place)


def in_units(unit_name: str, tau: float) -> Places:
    """Return the places in the grid nearest to tau times each question's spread."""

    def places(one: Measured) -> NDArray[np.int64]:
        place = np.log2(np.maximum(tau * one.spreads[unit_name], 1e-9) / TEMPERATURES[0]) * 3
        return np.clip(np.rint(place), 0, len(TEMPERATURES) - 1).astype(np.int64)

    return places


def study(encoders: Mapping[str, Encoder]) -> dict[str, Any]:
    """Return each unit's tau with the smallest worst loss on the tune halves, and its losses on both halves."""
    own = {name: encoder.own_best() for name, encoder in encoders.items()}
    units = {}
    for unit_name in UNITS:
        spreads = [one.spreads[unit_name] for encoder in encoders.values() for one in encoder.folders.values()]
        low, high = np.log2(0.5 * TEMPERATURES[[0, -1]] / np.median(np.concatenate(spreads)))
        trials = [tried(unit_name, float(tau), encoders, own) for tau in 2.0 ** np.arange(low, high, 1 / STEPS)]
        best = min(trials, key=lambda one: (max(one["tune"].values()), sum(one["tune"].values())))
        units[unit_name] = {**best, "trials": len(trials)}
    first = next(iter(encoders.values())).folders
    halves = {name: [int((~one.is_test).sum()), int(one.is_test.sum())] for name, one in first.items()}
    return {"questions": halves, "own": own, "units": units}


def tried(unit_name: str, tau: float, encoders: Mapping[str, Encoder], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return each encoder's mean loss over the folders, relative to its own best temperature."""
    found = {name: encoder.reached(in_units(unit_name, tau)) for name, encoder in encoders.items()}
    losses = {
        half: {name: float(np.mean(own[name][half]) - np.mean(found[name][half])) for name in encoders}
        for half in HALVES
    }
    return {"tau": tau, **losses}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.similarity", description=__doc__)
    add_data_option(parser)
    args = parser.parse_args()
    encoder = WordLlamaEncoder()
    measured: dict[str, dict[str, Measured]] = {}
    for name in FOLDERS:
        if not (args.data / name).is_dir():
            parser.error(f"{args.data} has no folder {name}; give --data")
        walks = read_walks(args.data / name)
        for model, (questions, passages) in vectors_of(args.data / name, encoder).items():
            cosines = questions[walks.rows] @ passages.T
            spreads = {unit_name: spread(cosines) for unit_name, spread in UNITS.items()}
            measured.setdefault(model, {})[name] = Measured(recalls(walks, cosines), spreads, walks.is_test)
    results = study({model: Encoder(folders) for model, folders in measured.items()})
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
