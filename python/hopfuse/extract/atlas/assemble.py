"""From keys to node numbers: the passages' rows, the entities' names and the typed edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .draft import Draft
from .model import EDGE_TYPES
from .names import ascii_spelling


@dataclass(frozen=True, slots=True)
class Assembled:
    """Row of each passage, names of the entity nodes, columns of the edges, facts."""

    row_of: dict[str, int]
    entities: tuple[str, ...]
    aliases: tuple[tuple[str, ...], ...]
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    edge_type: NDArray[np.uint8]
    weight: NDArray[np.float32]
    relations: tuple[str, ...]
    fact_rows: NDArray[np.int32]


def assemble(draft: Draft) -> Assembled:
    """Number passages by id and entities by key, each entity's alternate names right after it."""
    row_of = {id: row for row, id in enumerate(sorted(draft.passages))}
    node_of: dict[str, int] = {}
    entities: list[str] = []
    spellings: list[tuple[str, ...]] = []
    alias_edges: list[tuple[int, int]] = []
    for key in sorted(draft.names):
        node_of[key] = len(row_of) + len(entities)
        entities.append(draft.names[key])
        spellings.append(_spellings(draft.names[key], draft.plain[key]))
        for alternate in draft.alternates.get(key, ()):
            alias_edges.append((len(row_of) + len(entities), node_of[key]))
            entities.append(alternate)
            spellings.append(_spellings(alternate, alternate))
    columns = _edges(draft, row_of, node_of, alias_edges)
    entity_of = {key: node - len(row_of) for key, node in node_of.items()}
    return Assembled(row_of, tuple(entities), tuple(spellings), *columns, *_facts(draft, row_of, entity_of))


def _facts(
    draft: Draft, row_of: dict[str, int], entity_of: dict[str, int]
) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Relations, and each fact with the passages that state it: those about its subject that mention its object."""
    stating: dict[tuple[str, str], list[int]] = {}
    for id, passage in draft.passages.items():
        for mention in passage.mentions:
            stating.setdefault((passage.about, mention), []).append(row_of[id])
    relation_of = {name: at for at, name in enumerate(dict.fromkeys(f.relation for f in draft.facts))}
    rows = [
        (entity_of[f.subject], relation_of[f.relation], entity_of[f.object], row)
        for f in draft.facts
        for row in sorted(stating[f.subject, f.object])
    ]
    return tuple(relation_of), np.array(rows, np.int32).reshape(-1, 4)


def _spellings(name: str, plain: str) -> tuple[str, ...]:
    others = (plain, ascii_spelling(name), ascii_spelling(plain))
    return tuple(dict.fromkeys(o for o in others if o and o != name))


def _edges(
    draft: Draft, row_of: dict[str, int], node_of: dict[str, int], alias_edges: list[tuple[int, int]]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8], NDArray[np.float32]]:
    about = [(row_of[id], node_of[p.about]) for id, p in draft.passages.items()]
    mentions = [(row_of[id], node_of[m]) for id, p in draft.passages.items() for m in p.mentions]
    relations = [(node_of[f.subject], node_of[f.object]) for f in draft.facts]
    pairs = np.array(mentions + relations + alias_edges + about, np.int32).reshape(-1, 2)
    weight = np.concatenate(
        [
            _inverse_frequency([m for _, m in mentions]),
            _inverse_frequency([(f.relation, f.object) for f in draft.facts]),
            np.ones(len(alias_edges)),
        ]
    )
    weight = np.concatenate([weight, _about_weights(pairs, weight)])
    context, relation, alias = range(len(EDGE_TYPES))
    counts = [len(mentions), len(relations), len(alias_edges), len(about)]
    edge_type = np.repeat(np.array([context, relation, alias, context], np.uint8), counts)
    order = np.lexsort((pairs[:, 1], pairs[:, 0], edge_type))
    src, dst = np.ascontiguousarray(pairs[order].T)
    return src, dst, edge_type[order], weight[order].astype(np.float32)


def _inverse_frequency(targets: Sequence[Hashable]) -> NDArray[np.float64]:
    """1 over how often each target occurs: what is true of many things says little about one."""
    count = Counter(targets)
    return np.array([1.0 / count[target] for target in targets], np.float64)


def _about_weights(pairs: NDArray[np.int32], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights of the last pairs, passage and subject: as much as the subject's other edges in total."""
    others, about = pairs[: weight.size], pairs[weight.size :, 1]
    num_nodes = int(pairs.max()) + 1
    total = np.bincount(others.ravel(), weights=np.repeat(weight, 2), minlength=num_nodes)[about]
    passages = np.bincount(about, minlength=num_nodes)[about]
    return np.where(total > 0, total / passages, 1.0)
