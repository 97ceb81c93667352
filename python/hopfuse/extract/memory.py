"""Memory: passages, entities and facts as a typed graph."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import as_int64, check_dtype, check_ids, check_shape, counted
from ..errors import InputError
from ..index import Index, WordInfo
from ..index.contents import PassageId
from ..text import canonical_key
from ..types import EdgeStatements, Facts, Graph
from ..types.edge_statements import NO_PASSAGE
from .words import word_keys

#: (head, relation, tail) and the passages that state it.
_Stated = Mapping[tuple[int, str, int], list[int]]


@dataclass(frozen=True)
class Fact:
    """A fact that some passages state.

    Attributes
    ----------
    head, tail : int
        Entities.
    relation : str
        The most frequent spelling.
    family : str
        The family of the predicate, which is the type of its edge.
    passages : tuple of int
        The passages that state it, ascending.
    """

    head: int
    relation: str
    tail: int
    family: str
    passages: tuple[int, ...]


@dataclass(frozen=True)
class FactConflict:
    """A functional predicate of a head with several tails in different passages, resolved by majority.

    Attributes
    ----------
    head : int
    relation : str
        The key of the predicate.
    kept : int
        The tail that most passages state, in a tie the first one.
    passages : tuple of int
        The passages that state it.
    dropped : dict of int to tuple of int
        The other tails, with the passages that state them.
    """

    head: int
    relation: str
    kept: int
    passages: tuple[int, ...]
    dropped: dict[int, tuple[int, ...]]


def resolve_conflicts(
    stated: _Stated, is_functional: Callable[[str], bool]
) -> tuple[dict[tuple[int, str, int], list[int]], tuple[FactConflict, ...]]:
    """Return the facts that are kept, in order, and the conflicts.

    Several tails in one passage are not a conflict: the passage means all of them.
    """
    tails: dict[tuple[int, str], list[int]] = defaultdict(list)
    for head, relation, tail in stated:
        if is_functional(relation):
            tails[head, relation].append(tail)
    conflicts, lost = [], set[tuple[int, str, int]]()
    for (head, relation), several in tails.items():
        times = Counter(passage for tail in several for passage in stated[head, relation, tail])
        if len(several) == 1 or max(times.values()) > 1:
            continue
        kept = max(several, key=lambda tail: len(stated[head, relation, tail]))  # the first of equal ones
        dropped = {tail: tuple(stated[head, relation, tail]) for tail in several if tail != kept}
        conflicts.append(FactConflict(head, relation, kept, tuple(stated[head, relation, kept]), dropped))
        lost |= {(head, relation, tail) for tail in dropped}
    return {fact: passages for fact, passages in stated.items() if fact not in lost}, tuple(conflicts)


class _EdgeBlock(NamedTuple):
    """Edges of one type: pairs of nodes, shape (n, 2), and weights, shape (n,)."""

    name: str
    pairs: NDArray[np.int64]
    weight: NDArray[np.float64]


def _graph_of(blocks: Sequence[_EdgeBlock], num_nodes: int) -> Graph:
    """Return the undirected graph of some blocks; blocks with the same name have the same type.

    Examples
    --------
    >>> pair = np.array([[0, 1]])
    >>> _graph_of([_EdgeBlock("context", pair, np.ones(1)), _EdgeBlock("word", pair, np.ones(1))], 2).edge_type_names
    ('context', 'word')
    """
    pairs = np.concatenate([block.pairs for block in blocks])
    number = {name: at for at, name in enumerate(dict.fromkeys(block.name for block in blocks))}
    return Graph.from_edges(
        pairs[:, 0],
        pairs[:, 1],
        np.concatenate([block.weight for block in blocks]),
        edge_type=np.concatenate([np.full(len(block.pairs), number[block.name]) for block in blocks]),
        edge_type_names=list(number),
        num_nodes=num_nodes,
        directed=False,
    )


CONTEXT, SYNONYM, WORD, SEQUENCE = "context", "synonym", "word", "sequence"


# ---- The memory ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Memory:
    """Passages with their entities and facts, from :func:`build_memory`.

    Attributes
    ----------
    ids : tuple of str or of int, P entries
    titles, texts : tuple of str, P entries
    entities : tuple of str, E entries
        The most frequent spelling of each entity; names first, then words.
    aliases : tuple of tuple of str, E entries
        Other spellings.
    mentions : ndarray of int64, shape (M, 2)
        Distinct pairs (passage, entity), ascending: the entries of the incidence matrix B.
    facts : tuple of Fact
        Distinct facts, in the order of their first statements.
    conflicts : tuple of FactConflict
        Disagreements of passages about a functional predicate: what was kept, and what was dropped.
    left_out : mapping of str to int
        Numbers of stated facts without an edge: ``"malformed"``, ``"generic"`` predicates, ``"loop"`` (from an entity
        to itself), ``"outvoted"``.
    labels : tuple of str, E entries
        The kind of thing of each entity: the label that passages give most often, in a tie the first one, or ``""``.
    words : WordInfo, optional
        How the passages' words were read; they are the entities ``words.first`` .. E-1. None if all entities are names.
    links : mapping of str to ndarray of int64, shape (L, 3)
        By type, pairs of entities that are joined without a fact, the lower number first, and the number of passages
        that link them.
    sequence : ndarray of int64, shape (S, 2)
        Consecutive passages of a document or conversation.
    link_passages : mapping of str to ndarray of int64, shape (., 3)
        By type, the two entities of a link and a passage that states it, one row per passage.
    documents : tuple of str, int or None, P entries
        The document or conversation that contains each passage.
    languages : tuple of str or None, P entries
        The BCP 47 tag of each passage's language.
    failures : mapping of int to str
        The passages that a reader left out, or of which it left out a part, each with the reason. They have no facts.
    """

    ids: tuple[PassageId, ...]
    titles: tuple[str, ...]
    texts: tuple[str, ...]
    entities: tuple[str, ...]
    aliases: tuple[tuple[str, ...], ...]
    mentions: NDArray[np.int64]
    facts: tuple[Fact, ...]
    conflicts: tuple[FactConflict, ...]
    left_out: dict[str, int] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    words: WordInfo | None = None
    links: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    sequence: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    link_passages: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    documents: tuple[str | int | None, ...] = ()
    languages: tuple[str | None, ...] = ()
    failures: dict[int, str] = field(default_factory=dict)

    @property
    def num_names(self) -> int:
        """Number of entities that are names."""
        return len(self.entities) if self.words is None else self.words.first

    @cached_property
    def document_frequency(self) -> NDArray[np.int64]:
        """Number of passages that mention each entity, shape (E,)."""
        return np.bincount(self.mentions[:, 1], minlength=len(self.entities)).astype(np.int64)

    @property
    def specificity(self) -> NDArray[np.float64]:
        """1 / (1 + document frequency), shape (E,)."""
        return np.asarray(1.0 / (1.0 + self.document_frequency), np.float64)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of words of each passage, shape (P,)."""
        return np.array([len(text.split()) for text in self.texts], np.int64)

    def graph(
        self, synonyms: Iterable[Sequence[int]] | NDArray[np.int64] = (), similarities: Sequence[float] | None = None
    ) -> Graph:
        """Return the undirected graph: nodes 0 .. P-1 are the passages, P .. P+E-1 the entities.

        Edge types: ``"context"`` (an entity and a passage that mentions it, weight 1). The families of facts (weight:
        number of statements of such facts between the two entities), and the types of :attr:`links` (weight: number of
        passages that link the two entities). Further types are ``"synonym"``, ``"word"`` (a word and a passage that
        contains it, weight 1) and ``"sequence"`` (consecutive passages, weight 1). If all entities are words, there is
        no ``"context"``.

        Parameters
        ----------
        synonyms : array_like of int (S, 2), optional
            Distinct pairs of entities (:func:`similar_pairs`, :meth:`abbreviated`).
        similarities : array_like of float (S,), optional
            Weights of these edges, by default 1.

        Raises
        ------
        InputError
            A pair with an unknown entity, a pair of an entity with itself, a repeated pair, or another number of
            similarities than pairs.
        """
        passages = len(self.ids)
        pairs = _checked_pairs(synonyms)
        weights = np.ones(len(pairs)) if similarities is None else _numbers(similarities, "similarities")
        check_shape(weights.shape, "similarities", (len(pairs),), reason="one number for each pair of synonyms")
        check_ids(pairs, "synonyms", len(self.entities))
        word = self.mentions[:, 1] >= self.num_names
        blocks = [self._mentioned(CONTEXT, ~word)] if self.num_names or self.words is None else []
        blocks += self._stated()
        blocks += [
            _EdgeBlock(name, passages + rows[:, :2], rows[:, 2].astype(np.float64)) for name, rows in self.links.items()
        ]
        if len(pairs):
            blocks.append(_EdgeBlock(SYNONYM, passages + pairs, np.asarray(weights, np.float64)))
        if self.words is not None:
            blocks.append(self._mentioned(WORD, word))
        if len(self.sequence):
            blocks.append(_EdgeBlock(SEQUENCE, self.sequence, np.ones(len(self.sequence))))
        return _graph_of(blocks, passages + len(self.entities))

    def _mentioned(self, name: str, rows: NDArray[np.bool_]) -> _EdgeBlock:
        pairs = self.mentions[rows] + np.array([0, len(self.ids)])
        return _EdgeBlock(name, pairs, np.ones(len(pairs)))

    def _stated(self) -> list[_EdgeBlock]:
        """Return the edges of the facts, one block per family."""
        stated: dict[str, Counter[tuple[int, int]]] = {}
        for fact in self.facts:
            low, high = sorted((fact.head, fact.tail))
            stated.setdefault(fact.family, Counter())[low, high] += len(fact.passages)
        blocks = []
        for family, counts in stated.items():
            pairs = len(self.ids) + np.array(list(counts), np.int64)
            blocks.append(_EdgeBlock(family, pairs, np.array(list(counts.values()), np.float64)))
        return blocks

    def statements(self, graph: Graph) -> EdgeStatements | None:
        """Return the edges of a graph from :meth:`graph` as passages state them; no passage states synonyms.

        Return None for a graph with other edges, for which it is not known which passages state them.
        """
        number = {name: at for at, name in enumerate(graph.edge_type_names)}
        passages = len(self.ids)
        src, dst, weight, kind = graph.edges()
        said = {fact.family for fact in self.facts} | set(self.links)
        if not said <= set(number):
            return None
        whole = (src < passages) | (dst < passages) | ~np.isin(kind, [number[name] for name in said])
        held = int(whole.sum())
        parts: list[tuple[NDArray[Any], ...]] = [
            (src[whole], dst[whole], kind[whole], weight[whole], np.full(held, NO_PASSAGE))
        ]
        rows = [(fact.head, fact.tail, number[fact.family], at) for fact in self.facts for at in fact.passages]
        rows += [(a, b, number[name], at) for name, found in self.link_passages.items() for a, b, at in found.tolist()]
        stated = np.array(rows, np.int64).reshape(-1, 4)
        ends = passages + np.sort(stated[:, :2], axis=1)
        parts.append((ends[:, 0], ends[:, 1], stated[:, 2], np.ones(len(rows)), stated[:, 3]))
        joined = [np.concatenate(part) for part in zip(*parts, strict=True)]
        statements = EdgeStatements(
            np.stack(joined[:2], axis=1).astype(np.int32),
            joined[2].astype(np.uint8),
            joined[3].astype(np.float64),
            joined[4].astype(np.int32),
        )
        made, given = statements.graph(graph).to_arrays(), graph.to_arrays()
        same = set(made) == set(given) and all(np.array_equal(made[name], given[name]) for name in made)
        return statements if same else None

    def stated_edges(self) -> Iterator[tuple[int, int, str, int]]:
        """Yield the edges of :meth:`graph`, except synonyms, as passages state them, each of weight 1.

        Yields
        ------
        (int, int, str, int)
            Two nodes, the edge's type, and the passage that states it if it joins two entities, else -1.
        """
        passages = len(self.ids)
        mentions = self.mentions.tolist()
        yield from ((p, passages + e, CONTEXT, NO_PASSAGE) for p, e in mentions if e < self.num_names)
        for fact in self.facts:
            yield from ((passages + fact.head, passages + fact.tail, fact.family, at) for at in fact.passages)
        for kind, rows in self.link_passages.items():
            yield from ((passages + a, passages + b, kind, at) for a, b, at in rows.tolist())
        yield from ((p, passages + e, WORD, NO_PASSAGE) for p, e in mentions if e >= self.num_names)
        yield from ((a, b, SEQUENCE, NO_PASSAGE) for a, b in self.sequence.tolist())

    def keys(self, words: Sequence[str]) -> list[str]:
        """Return the keys of words; forms of the same word have the same key.

        Examples
        --------
        >>> from hopfuse.extract import WordReader, build_memory
        >>> build_memory(WordReader().read([{"text": "Rivers flow."}])).keys(["rivers"])
        ['river']
        """
        if self.words is None:
            raise InputError("missing", "words", "{field} are given, and the memory has none")
        return word_keys(self.words, words)

    def index(self, graph: Graph | None = None, *, passages: Index | None = None, **options: Any) -> Index:
        """Return an index of the passages, entities, aliases, graph and facts.

        A reader made its entities: none is stated (:attr:`hopfuse.Index.stated`).

        Parameters
        ----------
        graph : Graph, optional
            Such as :meth:`graph` with synonyms; by default :meth:`graph` without.
        passages : Index, optional
            Of the same passages, which have metadata or vectors there.
        **options
            ``vectors``, ``entity_vectors``, ``encoder``, ``lexical``, ``metric`` and ``storage`` of
            :meth:`hopfuse.Index.build`.

        Raises
        ------
        InputError
            Other passages than the memory's, or in another order, or options that :meth:`hopfuse.Index.build` refuses.
        """
        if passages is not None and tuple(passages.passage_ids) != self.ids:
            raise InputError(
                "conflict",
                "passages",
                "the reader returned {count} for the {given} of {field}, or changed their order; it must return each "
                "once, in their order",
                given=counted(passages.num_passages, "passage"),
                count=counted(len(self.ids), "passage"),
            )
        stated = ((fact.head, fact.relation, fact.tail, at) for fact in self.facts for at in fact.passages)
        facts = None  # words have no facts
        if self.num_names or self.words is None:
            facts = Facts.from_numbers(stated, len(self.entities), len(self.ids))
        names = ("id", "title", "text", "document", "language")
        columns: list[Sequence[Any]] = [self.ids, self.titles, self.texts]
        columns += [given or (None,) * len(self.ids) for given in (self.documents, self.languages)]
        graph = self.graph() if graph is None else graph
        rows = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
        return Index.build(
            list(rows) if passages is None else passages,
            entities=[{"name": name, "stated": False} for name in self.entities],
            aliases={entity: names for entity, names in enumerate(self.aliases) if names},
            graph=graph,
            statements=self.statements(graph),
            facts=facts,
            words=self.words,
            **options,
        )

    def abbreviated(self, forms: Iterable[tuple[str, str]]) -> NDArray[np.int64]:
        """Return pairs of entities whose names are a short form, its long form, or both with one in parentheses.

        Parameters
        ----------
        forms : iterable of (str, str)
            Short and long forms, such as from :func:`abbreviations` of the texts and of the names.

        Returns
        -------
        ndarray of int64, shape (S, 2)
            a < b in each row, rows ascending.
        """
        rows = islice(self._names(), self.num_names)
        number = {canonical_key(name): e for e, row in enumerate(rows) for name in row}
        pairs = set[tuple[int, int]]()
        for short, long in forms:
            keys = map(canonical_key, (short, long, f"{long} ({short})", f"{short} ({long})"))
            pairs.update(combinations(sorted({number[key] for key in keys if key in number}), 2))
        return np.array(sorted(pairs), np.int64).reshape(-1, 2)

    def _names(self) -> Iterable[tuple[str, ...]]:
        return ((name, *others) for name, others in zip(self.entities, self.aliases, strict=True))

    def __repr__(self) -> str:
        counts = f"passages={len(self.ids)}, entities={self.num_names}, facts={len(self.facts)}"
        words = "" if self.words is None else f", words={len(self.entities) - self.num_names}"
        return f"Memory({counts}, conflicts={len(self.conflicts)}{words})"


def _checked_pairs(given: Any) -> NDArray[np.int64]:
    """Return distinct pairs of two entities, shape (S, 2)."""
    pairs = _numbers(given, "synonyms")
    if pairs.size == 0:
        return np.zeros((0, 2), np.int64)
    check_dtype(pairs, "synonyms", "iu", "integers")
    check_shape(pairs.shape, "synonyms", ("S", 2))
    ordered = np.sort(as_int64(pairs, "synonyms"), axis=1)
    same = ordered[:, 0] == ordered[:, 1]
    if same.any():
        raise InputError(
            "conflict",
            "synonyms",
            "{field} has a pair of entity {entity} and itself; leave such pairs out",
            entity=int(ordered[same][0, 0]),
        )
    distinct, times = np.unique(ordered, axis=0, return_counts=True)
    if len(distinct) != len(ordered):
        pair = tuple(distinct[int(np.argmax(times > 1))].tolist())
        raise InputError("duplicate", "synonyms", "{field} has the pair {given} twice; give it once", given=pair)
    return ordered


def _numbers(given: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(given if isinstance(given, np.ndarray) else list(given))
    except (TypeError, ValueError) as error:
        raise InputError("type", name, "{field} must be an array of numbers: {error}", error=error) from None
    check_dtype(array, name, "iuf", "numbers")
    return array
