"""From what a user has to the sections of an index; everything is checked before anything is made."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, InputError
from ..types import Corpus, Graph, Incidence
from ..types.graph import MAX_NODES
from . import columns
from .format import METRICS, STORAGES, Settings
from .graph_check import check_graph, check_symmetry
from .readers import existing_file, read_table
from .strings import encode
from .tables import Spec

PASSAGES = Spec("passages", ("text",), ("title", "id"), ("id", "text", "title"), others=True)
ENTITIES = Spec("entities", ("name",), (), ("name",), others=True)
EDGES = Spec("graph", ("src", "dst"), ("type", "weight"), ("src", "dst", "type", "weight"), others=False)

Arrays = dict[str, NDArray[Any]]


def check_settings(metric: str, storage: str) -> None:
    """Refuse options before anything large is read."""
    if metric not in METRICS:
        raise InputError(f"metric is {metric!r}; allowed: {', '.join(METRICS)}")
    if storage not in STORAGES:
        raise InputError(f"storage is {storage!r}; allowed: {', '.join(STORAGES)}")


def passage_arrays(passages: Any) -> Arrays:
    """The sections ``passage.*`` that hold text."""
    table = read_table(passages, PASSAGES)
    texts = columns.texts(table, "text")
    return {
        **_strings("passage.id", columns.row_ids(table)),
        **_strings("passage.title", columns.texts(table, "title", default="")),
        **_strings("passage.text", texts),
        "passage.length": np.array([len(text.split()) for text in texts], np.int32),
    }


def entity_names(entities: Any) -> list[str] | None:
    """Names from a list of str or a table; None where there is nothing."""
    if entities is None:
        return None
    if isinstance(entities, (list, tuple)) and all(isinstance(name, str) for name in entities):
        return list(entities)
    return columns.texts(read_table(entities, ENTITIES), "name")


def load_vectors(vectors: Any, what: str, rows: int, metric: Any, storage: Any) -> Corpus | None:
    """A corpus over an array or an .npy file of (rows, d) numbers."""
    if vectors is None:
        return None
    array = _read_npy(Path(vectors), what) if isinstance(vectors, (str, os.PathLike)) else vectors
    try:
        corpus = Corpus.from_array(array, metric=metric, storage=storage)
    except InputError as error:
        raise InputError(f"{what}: {error}") from None
    if corpus.num_vectors != rows:
        raise InputError(f"{what} has {corpus.num_vectors} rows; there are {rows} to describe, one vector each")
    return corpus


def load_graph(graph: Any, num_passages: int, num_entities: int | None) -> Graph | None:
    """The graph itself, checked, or one built from an edge table."""
    if graph is None:
        return None
    if not isinstance(graph, Graph):
        return _graph_from_table(graph, num_passages, num_entities)
    _check_nodes(graph.num_nodes, num_passages, num_entities)
    try:
        check_graph(graph.to_arrays())
        if not graph.directed:
            check_symmetry(graph.to_arrays())
    except FormatError as error:
        raise InputError(f"graph: {error}; build it with Graph.from_edges") from None
    return graph


def entity_arrays(names: list[str], aliases: Any) -> Arrays:
    """The sections ``entity.*`` that hold text."""
    rows = _alias_rows(names, aliases)
    return {
        **_strings("entity.name", names),
        "entity.alias.rows": np.cumsum([0, *map(len, rows)], dtype=np.int64),
        **_strings("entity.alias", [alias for row in rows for alias in row]),
    }


def graph_arrays(graph: Graph, num_passages: int) -> Arrays:
    """The sections ``graph.*``, and what is counted on the graph."""
    mentioned = np.bincount(Incidence.from_graph(graph, num_passages).indices, minlength=graph.num_nodes)
    return {
        "entity.passage_frequency": mentioned[num_passages:].astype(np.int32),
        **_strings("graph.type_name", graph.edge_type_names),
        "graph.edge_count": np.bincount(graph.edges()[3], minlength=graph.num_edge_types).astype(np.int64),
        **{f"graph.{name}": array for name, array in graph.to_arrays().items()},
    }


def settings_of(metric: str, storage: str, graph: Graph | None) -> Settings:
    """What the header will say."""
    return Settings(metric, storage, graph is not None and graph.directed)


def _strings(name: str, values: Sequence[str]) -> Arrays:
    offsets, data = encode(values, name)
    return {f"{name}.offsets": offsets, f"{name}.bytes": data}


def _read_npy(path: Path, what: str) -> NDArray[Any]:
    if path.suffix.lower() != ".npy":
        raise InputError(f"{what} is the path {str(path)!r}; allowed: an array, or the path of an .npy file")
    try:
        array = np.load(existing_file(path, what), mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"{what}: {path} cannot be read as an .npy array: {error}") from None
    return np.asarray(array)


def _graph_from_table(edges: Any, num_passages: int, num_entities: int | None) -> Graph:
    table = read_table(edges, EDGES)
    limit = MAX_NODES if num_entities is None else num_passages + num_entities
    src, dst = columns.integers(table, "src", limit), columns.integers(table, "dst", limit)
    weight, types = columns.weights(table, "weight"), columns.categories(table, "type")
    largest = int(max(src.max(initial=-1), dst.max(initial=-1)))
    return Graph.from_edges(
        src,
        dst,
        weight,
        num_nodes=max(num_passages, largest + 1) if num_entities is None else limit,
        edge_type=None if types is None else types[0],
        edge_type_names=None if types is None else types[1],
    )


def _check_nodes(nodes: int, num_passages: int, num_entities: int | None) -> None:
    if num_entities is None and nodes < num_passages:
        raise InputError(f"graph has {nodes} nodes for {num_passages} passages; nodes 0 .. P-1 are the passages")
    if num_entities is not None and nodes != num_passages + num_entities:
        raise InputError(
            f"graph has {nodes} nodes; {num_passages} passages and {num_entities} entities are "
            f"{num_passages + num_entities}: pass num_nodes={num_passages + num_entities} to Graph.from_edges"
        )


def _alias_rows(names: list[str], aliases: Any) -> list[list[str]]:
    rows: list[list[str]] = [[] for _ in names]
    if aliases is None:
        return rows
    if not isinstance(aliases, Mapping):
        raise InputError(f"aliases is a {type(aliases).__name__}; it must map an entity's index or name to its aliases")
    index = {name: e for e, name in enumerate(names)}
    repeated = {name for e, name in enumerate(names) if index[name] != e}
    for key, values in aliases.items():
        if not isinstance(values, (list, tuple)) or not all(isinstance(alias, str) for alias in values):
            raise InputError(f"aliases[{key!r}] is {values!r}; it must be a list of strings")
        if isinstance(key, str) and key in repeated:
            raise InputError(f"aliases has the name {key!r}, which several entities bear; use the entity's index")
        entity = index.get(key, -1) if isinstance(key, str) else _entity_index(key)
        if not 0 <= entity < len(names):
            raise InputError(
                f"aliases has the key {key!r}, which is not among the {len(names)} entities; "
                "a key is an entity's name or its index 0 .. E-1"
            )
        rows[entity].extend(values)
    return rows


def _entity_index(key: Any) -> int:
    return -1 if isinstance(key, bool) or not isinstance(key, (int, np.integer)) else int(key)
