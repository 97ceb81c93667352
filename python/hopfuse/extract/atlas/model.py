"""What an atlas is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import Facts, Graph

EDGE_TYPES = ("context", "relation", "alias")


@dataclass(frozen=True, slots=True)
class Question:
    """A question whose evidence is known, hop by hop.

    Attributes
    ----------
    id : str
    text : str
        Names only the first place of the chain.
    type : str
        What is asked of what, for example ``"city-currency"``.
    answer : str
        Stands word for word in the last hop's passage, and in no earlier one.
    hops : tuple of int
        Row of the passage that each hop needs, in order: 2 or 3 of them.
    entities : tuple of str
        The names in the text, as asked.
    by_alias : bool
        Whether the place is asked for by an alternate name.
    """

    id: str
    text: str
    type: str
    answer: str
    hops: tuple[int, ...]
    entities: tuple[str, ...]
    by_alias: bool

    @property
    def num_hops(self) -> int:
        """2 or 3."""
        return len(self.hops)

    @property
    def last_hop(self) -> int:
        """Row of the passage that holds the answer."""
        return self.hops[-1]


@dataclass(frozen=True, eq=False)
class Atlas:
    """Passages, a typed graph and questions about the world. Immutable; see :func:`build_atlas`.

    Nodes 0 .. P-1 are the passages, P .. N-1 the entities.

    Attributes
    ----------
    ids, titles, texts : tuple of str, length P
        Passages, sorted by id.
    entities : tuple of str, length N - P
        A name for each entity, each different. An alternate name is an entity of its own.
    aliases : tuple of tuple of str, length N - P
        Other spellings and short forms of each entity's name; several entities may share one.
    src, dst : ndarray of int32, shape (E,)
        End points of the undirected edges.
    edge_type : ndarray of uint8, shape (E,)
        Index into ``edge_type_names``: a passage and an entity it is about or mentions (context),
        two entities of one fact (relation), an alternate name and what it names (alias).
    weight : ndarray of float32, shape (E,)
        Inverse frequency: a mention weighs 1 over the number of passages that mention the entity,
        a relation 1 over the number of facts that say the same of the same object, an alias 1. The
        edges between an entity and the passages about it weigh together as much as all its others,
        so that a walker at an entity is as likely to read about it as to walk on.
    relations : tuple of str
        What the facts say, in the order of their first use.
    fact_rows : ndarray of int32, shape (S, 4)
        Head (an entity), relation, tail (an entity), and a passage that states it: one about the head that mentions the
        tail.
    questions : tuple of Question
        Sorted by id.
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
    edge_type_names: tuple[str, ...] = EDGE_TYPES

    @property
    def num_passages(self) -> int:
        """P."""
        return len(self.ids)

    @property
    def num_entities(self) -> int:
        """N - P."""
        return len(self.entities)

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.num_passages + self.num_entities

    def __repr__(self) -> str:
        return (
            f"Atlas(passages={self.num_passages}, entities={self.num_entities}, edges={self.src.size}, "
            f"questions={len(self.questions)})"
        )

    def graph(self) -> Graph:
        """The typed, undirected graph of the edges."""
        return Graph.from_edges(
            self.src,
            self.dst,
            self.weight,
            num_nodes=self.num_nodes,
            edge_type=self.edge_type,
            edge_type_names=self.edge_type_names,
        )

    def facts(self) -> Facts:
        """The facts with the passages that state them."""
        rows = ((head, self.relations[kind], tail, passage) for head, kind, tail, passage in self.fact_rows.tolist())
        return Facts.from_numbers(rows, self.num_entities, self.num_passages)
