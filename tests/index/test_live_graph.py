"""The graph of a live index whose snapshots continue each other, against one that is built of all edges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest


class Rows:
    """Passages, entities and statements of edges in plain Python, and the change that makes them."""

    def __init__(self, rng: np.random.Generator, directed: bool) -> None:
        self.rng, self.directed, self.serial, self.types = rng, directed, 0, ["near"]
        self.passages, self.names = [f"p{i}" for i in range(6)], [f"e{i}" for i in range(9)]
        self.edges: list[dict[str, Any]] = []

    def ends(self) -> list[tuple[str, str]]:
        return [("passage", id) for id in self.passages] + [("entity", name) for name in self.names]

    def drawn(self, count: int, types: list[str]) -> list[dict[str, Any]]:
        ends, made = self.ends(), []
        for _ in range(count if ends else 0):
            src, dst = (ends[i] for i in self.rng.integers(0, len(ends), 2))
            if self.edges and self.rng.random() < 0.4:  # an edge that is there is stated again
                again = self.edges[self.rng.integers(len(self.edges))]
                src, dst = again["src"], again["dst"]
            weight = float(self.rng.choice([1.0, 0.1, 3.3]))
            edge = {"src": src, "dst": dst, "type": str(self.rng.choice(types)), "weight": weight}
            if {src[0], dst[0]} == {"entity"} and self.passages and self.rng.random() < 0.6:
                edge["stated_by"] = str(self.rng.choice(self.passages))
            made.append(edge)
        return made

    def graph(self) -> hf.Graph:
        place = {end: at for at, end in enumerate(self.ends())}
        return hf.Graph.from_edges(
            [place[e["src"]] for e in self.edges],
            [place[e["dst"]] for e in self.edges],
            np.array([e["weight"] for e in self.edges], np.float64),
            num_nodes=len(place),
            directed=self.directed,
            edge_type=[self.types.index(e["type"]) for e in self.edges] if len(self.types) > 1 else None,
            edge_type_names=self.types,
        )

    def key(self, edge: dict[str, Any]) -> Any:
        ends = edge["src"], edge["dst"]
        return ends if self.directed else frozenset(ends), edge["type"]

    def some(self, values: list[Any], chance: float) -> list[Any]:
        return [value for value in values if self.rng.random() < chance]

    def delete(self, change: Any) -> None:
        gone = [{k: e[k] for k in ("src", "dst", "type")} for e in self.some(self.edges, 0.1)]
        change.delete_edges(gone)
        keys = {self.key(edge) for edge in gone}
        self.edges = [edge for edge in self.edges if self.key(edge) not in keys]
        passages, names = self.some(self.passages, 0.1), self.some(self.names, 0.05)
        change.delete_passages(passages)
        change.delete_entities(names)
        lost = {("passage", id) for id in passages} | {("entity", name) for name in names}
        self.edges = [e for e in self.edges if not {e["src"], e["dst"]} & lost and e.get("stated_by") not in passages]
        self.passages = [id for id in self.passages if id not in passages]
        self.names = [name for name in self.names if name not in names]

    def add(self, change: Any, types: list[str]) -> None:
        self.serial += 1
        new = [f"p{100 * self.serial + i}" for i in range(self.rng.integers(0, 3))]
        names = [f"e{100 * self.serial + i}" for i in range(self.rng.integers(0, 3))]
        change.add_passages([{"id": id, "text": id} for id in new])
        change.add_entities(names)
        self.passages += new
        self.names += names
        edges = self.drawn(int(self.rng.integers(0, 8)), types)
        change.add_edges(edges)
        self.edges += edges
        self.types += [kind for kind in dict.fromkeys(e["type"] for e in edges) if kind not in self.types]


def assert_same(index: hf.Index, rows: Rows) -> None:
    assert index.graph is not None
    built, found = rows.graph(), index.graph
    assert found.edge_type_names == built.edge_type_names
    ours, theirs = found.to_arrays(), built.to_arrays()
    assert list(ours) == list(theirs)
    assert [name for name in theirs if ours[name].tobytes() != theirs[name].tobytes()] == []
    mentions = hf.Incidence.from_graph(built, len(rows.passages))
    often = np.bincount(mentions.indices, minlength=built.num_nodes)[len(rows.passages) :]
    assert index.passage_frequency is not None
    assert index.passage_frequency.tolist() == often.tolist()
    assert list(index.info()["graph"]["edge_types"].values()) == built.counts_of_types().tolist()
    statements = index.edge_statements
    if statements is not None:
        summed = statements.graph(found).to_arrays()
        assert [name for name in theirs if summed[name].tobytes() != theirs[name].tobytes()] == []
    else:
        assert built.counts_of_types().sum() == len(rows.edges)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("types", [["near"], ["near", "far"]])
@pytest.mark.parametrize("seed", range(3))
def test_continued_graphs_equal_those_of_all_edges(tmp_path: Path, directed: bool, types: list[str], seed: int) -> None:
    rows = Rows(np.random.default_rng(seed), directed)
    rows.edges = rows.drawn(40, types[:1])
    index = hf.Index.build(
        passages=[{"id": id, "text": id} for id in rows.passages], entities=rows.names, graph=rows.graph()
    )
    assert index.graph is not None
    src, dst, weight, _ = (column.tolist() for column in index.graph.edges())
    ends, one = rows.ends(), {"type": "near", "stated_by": None}
    rows.edges = [  # the file has each edge once
        {"src": ends[a], "dst": ends[b], "weight": heavy, **one} for a, b, heavy in zip(src, dst, weight, strict=True)
    ]
    index.save(tmp_path)
    reader = hf.Index.open(tmp_path, live=True)
    with hf.Index.open(tmp_path, writable=True) as live:
        for step in range(25):
            with live.change() as change:
                if step % 3:
                    rows.delete(change)
                if step > 1:
                    rows.add(change, types if step > 4 else types[:1])
            if step % 4 == 1:
                continue  # so that the next snapshot takes two changes
            if step == 15:
                live.compact()
            assert_same(reader.refresh(), rows)
            assert_same(live.refresh(), rows)
    assert_same(hf.Index.open(tmp_path, verify="full"), rows)
