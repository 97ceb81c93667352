"""The fast-graphrag adapter against its own storage of a graph: the same scores, by the same code; its own files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hopfuse.adapters import fast_graphrag as adapter
from hopfuse.adapters import igraph as walks
from hopfuse.errors import InputError
from refusals import refused

TOLERANCE = 1e-6

#: Of the packages that fast-graphrag imports.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")


def test_other_objects_are_refused() -> None:
    class IGraphStorage:
        """Something of that name alone."""

    for wrong in (3, IGraphStorage()):
        with refused(InputError, "type", "storage"):
            adapter.accelerate(wrong)


def make_storage(folder: Path, damping: float = 0.85) -> Any:
    """Return an empty storage of fast-graphrag's over a folder."""
    pytest.importorskip("fast_graphrag", reason="fast-graphrag is not installed; .ci/full's part integrations has it")
    from fast_graphrag._storage._gdb_igraph import IGraphStorage, IGraphStorageConfig
    from fast_graphrag._storage._namespace import Workspace
    from fast_graphrag._types import TEntity, TId, TRelation

    storage = IGraphStorage[TEntity, TRelation, TId](IGraphStorageConfig(TEntity, TRelation, ppr_damping=damping))
    storage.namespace = Workspace.new(str(folder)).make_for("graph")
    return storage


async def fill(storage: Any, nodes: int, edges: int, seed: int) -> None:
    """Add entities and relations at random, by the storage's own methods."""
    from fast_graphrag._types import TEntity, TRelation

    draw = np.random.default_rng(seed)
    await storage.insert_start()
    storage.set_in_progress(True)
    for node in range(nodes):
        await storage.upsert_node(TEntity(name=f"entity {node}", type="THING", description=""), None)
    pairs = draw.integers(0, nodes, (edges, 2)).tolist()
    relations = [TRelation(source=f"entity {a}", target=f"entity {b}", description="", chunks=[]) for a, b in pairs]
    await storage.insert_edges(edges=relations)
    await storage.insert_done()
    storage.set_in_progress(False)


def some_weights(nodes: int, seed: int) -> Any:
    from scipy.sparse import csr_matrix

    draw = np.random.default_rng(seed)
    weights = np.where(draw.random(nodes) < 0.1, draw.random(nodes), 0.0)
    weights[0] = 0.5
    return csr_matrix(weights.reshape(1, -1).astype(np.float32))


async def scores(storage: Any, weights: Any) -> np.ndarray[Any, Any]:
    made = await storage.score_nodes(weights)
    assert made.dtype == np.float32
    return np.asarray(made.toarray())


@pytest.mark.parametrize("damping", [0.5, 0.85])
def test_its_scores_are_its_own(damping: float, tmp_path: Path) -> None:
    async def run() -> None:
        storage = make_storage(tmp_path, damping)
        await fill(storage, 60, 150, seed=1)
        await storage.query_start()  # loads what was written
        asked = [*(some_weights(60, seed) for seed in range(5)), None]
        own = [await scores(storage, weights) for weights in asked]
        assert adapter.accelerate(storage) is storage
        assert adapter.accelerate(storage) is storage
        for weights, expected in zip(asked, own, strict=True):
            np.testing.assert_allclose(await scores(storage, weights), expected, atol=TOLERANCE, rtol=0)
        assert isinstance(storage._graph.personalized_pagerank(), list)
        assert type(storage._graph).__name__ == "AcceleratedGraph"

    asyncio.run(run())


def test_a_graph_that_is_loaded_or_changed_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, read = [], walks._read
    monkeypatch.setattr(walks, "_read", lambda *given: reads.append(1) or read(*given))

    async def run() -> None:
        storage = adapter.accelerate(make_storage(tmp_path))
        await fill(storage, 40, 80, seed=2)
        weights = some_weights(40, 3)
        await storage.query_start()
        first = await scores(storage, weights)
        assert (await scores(storage, weights) == first).all()
        assert len(reads) == 1
        storage.set_in_progress(False)
        await storage.insert_start()  # loads the graph that it wrote, an igraph.Graph
        storage.set_in_progress(True)
        assert type(storage._graph).__name__ == "Graph"
        await storage.insert_edges(indices=[(0, 39), (1, 38)], attrs={"description": ["", ""], "chunks": [[], []]})
        await storage.insert_done()
        storage.set_in_progress(False)
        await storage.query_start()
        second = await scores(storage, weights)
        assert len(reads) == 2
        plain = make_storage(tmp_path)
        await plain.query_start()
        np.testing.assert_allclose(second, await scores(plain, weights), atol=TOLERANCE, rtol=0)
        assert abs(second - first).max() > 1e-4

    asyncio.run(run())


def test_an_empty_graph_is_its_own(tmp_path: Path) -> None:
    async def run() -> None:
        storage = adapter.accelerate(make_storage(tmp_path))
        await storage.insert_start()
        assert (await storage.score_nodes(None)).shape == (1, 0)

    asyncio.run(run())
