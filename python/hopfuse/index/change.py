"""A change of an index: what one batch adds and deletes, checked as it is said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..types import Corpus
from .additions import Additions, ReadPassages, additions, check_read
from .allowed import check_added, check_edges, check_memory
from .batch import LEAST_WEIGHT, MOST_WEIGHT, Slots
from .change_rows import (
    EDGE_KEYS,
    End,
    alias_pairs,
    end_of,
    fact_rows,
    joined_arrays,
    listed,
    living,
    passage_arrays,
    set_rows,
    term_arrays,
)
from .columns import string_arrays
from .contents import Contents, PassageId
from .filters import Where
from .names import Names, no_passage

if TYPE_CHECKING:
    from collections.abc import Callable


class Change:
    """One batch of changes, atomic: made by :meth:`hopfuse.LiveIndex.change`, committed where its ``with`` block ends.

    An exception in the block discards it. What it deletes was there before it; what it adds comes after everything
    that is there, in the order of the calls.

    Attributes
    ----------
    seq : int or None
        The index's counter after the commit; None before.

    Examples
    --------
    >>> import tempfile, hopfuse as hf
    >>> folder = tempfile.mkdtemp()
    >>> graph = [{"src": 0, "dst": 1, "type": "context"}]
    >>> made = hf.Index.build(passages=[{"id": "a", "text": "Ada wrote."}], entities=["Ada"], graph=graph).save(folder)
    >>> with hf.Index.open(folder, writable=True) as live:
    ...     with live.change() as change:
    ...         change.add_passages([{"id": "b", "text": "Babbage built."}])
    ...         change.add_entities(["Babbage"])
    ...         edge = {"src": ("passage", "b"), "dst": ("entity", "Babbage"), "type": "context", "stated_by": "b"}
    ...         change.add_edges([edge])
    ...     index = live.refresh()
    >>> change.seq, list(index.passage_ids), index.graph
    (1, ['a', 'b'], Graph(undirected, nodes=4, stored=4, types=['context']))
    """

    def __init__(
        self, base: Contents, encoder: Any, commit: Callable[[Change], int], only: Where | None = None
    ) -> None:
        self.seq: int | None = None
        self._base, self._encoder, self._commit, self._only = base, encoder, commit, only
        self._deleted: dict[str, list[Any]] = {"passage": [], "entity": [], "alias": [], "edge": [], "fact": []}
        self._put: list[Any] = []  # ids: deleted where they are there
        self._passages: list[dict[str, Any]] = []
        self._entities: list[dict[str, Any]] = []
        self._aliases: list[tuple[str, str]] = []
        self._edges: list[tuple[End, End, str, float, PassageId | None]] = []
        self._facts: list[tuple[str, str, str, PassageId]] = []
        self._read: list[ReadPassages] = []
        self._source: str | None = None

    # ---- Passages ----

    def add_passages(self, passages: Any, *, vectors: Any = None, replace: bool = False) -> None:
        """Add passages after all that are there.

        Parameters
        ----------
        passages : path, Arrow table, or iterable of mappings
            Rows with ``id`` and ``text``, optionally ``title`` and ``metadata``, as in :meth:`hopfuse.Index.build`.
        vectors : array_like of float, shape (n, d), optional
            Where the index has vectors; without them the encoder makes them that the index was opened with.
        replace : bool
            A passage that has the id of one of these is deleted, as by :meth:`replace_passages`.

        Raises
        ------
        InputError
            Rows without ids, vectors that cannot be scored or are missing. An id that a passage has is refused at the
            commit, without ``replace``.
        """
        part = passage_arrays(passages)
        if part["ids"]:
            own = self._vectors(vectors, "passage.vectors", part["texts"], len(part["ids"]))
            self._passages.append(part if own is None else part | {"passage.vectors": own})
            self._put += part["ids"] if replace else []

    def delete_passages(self, ids: Iterable[PassageId]) -> None:
        """Delete passages, with their edges, the edges that they state, and what they state of facts.

        Entities stay: see :meth:`delete_entities`.
        """
        self._deleted["passage"] += listed(ids, "ids")

    def replace_passages(self, passages: Any, *, vectors: Any = None) -> None:
        """Delete the passages that have these ids, and add these; edges and facts of the old ones go with them.

        All must be there; ``add_passages(..., replace=True)`` replaces those that are.
        """
        before = len(self._passages)
        self.add_passages(passages, vectors=vectors)
        for part in self._passages[before:]:
            self._deleted["passage"] += part["ids"]

    # ---- Entities ----

    def add_entities(
        self, names: Iterable[str], *, vectors: Any = None, words: bool = False, missing: bool = False
    ) -> None:
        """Add entities; those that are words come after all words that are there, names after all names.

        Parameters
        ----------
        names : iterable of str
            New ones, which no entity has at the commit, unless ``missing``.
        vectors : array_like of float, shape (n, d2), optional
            As in :meth:`add_passages`; the encoder makes those of names.
        words : bool
            They are words, as ``index.words`` reads them.
        missing : bool
            Add those alone that no entity has.
        """
        given = listed(names, "names")
        if not all(isinstance(name, str) for name in given):
            raise InputError("names are not all strings")
        if words and self._base.words is None:
            raise InputError("words are added to an index whose entities are all names; add them as names")
        if given:
            part: dict[str, Any] = {"names": given, "word": bool(words), "missing": missing}
            own = self._vectors(vectors, "entity.vectors", given, len(given))
            self._entities.append(part if own is None else part | {"entity.vectors": own})

    def delete_entities(self, names: Iterable[str]) -> None:
        """Delete entities, with their aliases, edges and facts."""
        self._deleted["entity"] += listed(names, "names")

    def add_aliases(self, aliases: Mapping[str, Sequence[str]]) -> None:
        """Add other names of entities: a list for each entity's name."""
        self._aliases += alias_pairs(aliases)

    def delete_aliases(self, aliases: Mapping[str, Sequence[str]]) -> None:
        """Delete other names of entities; one that is not there is nothing to delete."""
        self._deleted["alias"] += alias_pairs(aliases)

    # ---- Edges and facts ----

    def add_edges(self, edges: Iterable[Mapping[str, Any]]) -> None:
        """State edges: parallel ones of a type are summed in the order in which they are stated.

        Parameters
        ----------
        edges : iterable of mappings
            ``src`` and ``dst``, each ``("passage", id)`` or ``("entity", name)``; optionally ``type`` (str, by default
            the index's first), ``weight`` (2⁻⁶⁴ .. 2⁶⁴, by default 1) and, between two entities, ``stated_by``, the id
            of a passage: the edge goes with it, as one at a passage does anyway.
        """
        graph = self._base.graph
        if graph is None:
            raise InputError("the index has no graph; build it with one, if only of its nodes, to add edges")
        for at, edge in enumerate(edges):
            if not isinstance(edge, Mapping) or not {"src", "dst"} <= set(edge) <= EDGE_KEYS:
                raise InputError(
                    f"edges[{at}] is {edge!r}; it must be a mapping with src and dst; allowed: {sorted(EDGE_KEYS)}"
                )
            weight, kind = edge.get("weight", 1.0), edge.get("type", graph.edge_type_names[0])
            if (
                isinstance(weight, bool)
                or not isinstance(weight, int | float | np.number)
                or not LEAST_WEIGHT <= weight <= MOST_WEIGHT
            ):
                raise InputError(f"edges[{at}] has the weight {weight!r}; it must be a number from 2^-64 to 2^64")
            if not isinstance(kind, str):
                raise InputError(f"edges[{at}] has the type {kind!r}; it must be a string")
            ends = end_of(edge["src"], f"edges[{at}]"), end_of(edge["dst"], f"edges[{at}]")
            by = edge.get("stated_by")
            at_passages = [key for what, key in ends if what == "passage"]
            if by is not None and at_passages and by not in at_passages:
                raise InputError(
                    f"edges[{at}] is at the passage {at_passages[0]!r} and stated by {by!r}; it goes with the former: "
                    "leave stated_by out"
                )
            self._edges.append((*ends, kind, float(weight), by))

    def delete_edges(self, edges: Iterable[Mapping[str, Any]]) -> None:
        """Delete edges by ``src``, ``dst`` and ``type``: all that was stated of them before this change."""
        graph = self._base.graph
        for at, edge in enumerate(edges):
            if (
                graph is None
                or not isinstance(edge, Mapping)
                or not {"src", "dst"} <= set(edge) <= EDGE_KEYS - {"weight", "stated_by"}
            ):
                raise InputError(
                    f"edges[{at}] is {edge!r}; it must be a mapping with src, dst and type, of an index with a graph"
                )
            ends = end_of(edge["src"], f"edges[{at}]"), end_of(edge["dst"], f"edges[{at}]")
            self._deleted["edge"].append((*ends, edge.get("type", graph.edge_type_names[0])))

    def add_facts(self, facts: Iterable[Sequence[Any]]) -> None:
        """State facts: rows (head, relation, tail, id) of two entities' names, a relation, and the passage's id."""
        if self._base.facts is None:
            raise InputError("the index has no facts; build it with facts, if only an empty table, to add some")
        self._facts += fact_rows(facts, 4, "(head, relation, tail, id of a passage)")

    def delete_facts(self, facts: Iterable[Sequence[str]]) -> None:
        """Delete facts (head, relation, tail): all that was stated of them before this change."""
        self._deleted["fact"] += fact_rows(facts, 3, "(head, relation, tail)")

    # ---- What was read in texts ----

    def add_memory(self, memory: ReadPassages) -> None:
        """Add what was read in passages that this change adds: entities and words, their edges, and facts.

        Entities that the index has are found by what their writings share, as :func:`hopfuse.extract.build_memory`
        finds them; another writing of a name becomes an alias. The index then equals one that is built of all passages,
        but for what a build takes from all of them together: how a name, a word or a relation is written (here as it is
        first), disagreements of facts (here all are kept), and synonyms (here none).

        Parameters
        ----------
        memory : Memory
            Its passages are those of :meth:`add_passages` and :meth:`replace_passages`, or some of them.

        Raises
        ------
        InputError
            Words were read in another way than those of the index, or not at all; parts that the index does not have.
            A passage that this change does not add is refused at the commit.

        Examples
        --------
        >>> import tempfile, hopfuse as hf
        >>> from hopfuse.extract import WordReader, build_memory
        >>> folder, rows = tempfile.mkdtemp(), [{"id": "a", "text": "Ada wrote."}, {"id": "b", "text": "Ada read."}]
        >>> saved = build_memory(WordReader().read(rows[:1])).index().save(folder)
        >>> with hf.Index.open(folder, writable=True) as live:
        ...     with live.change() as change:
        ...         change.add_passages(rows[1:])
        ...         change.add_memory(build_memory(WordReader.like(live.index.words).read(rows[1:])))
        ...     list(live.refresh().entity_names), live.index.passage_frequency
        (['ada', 'wrote', 'read'], array([2, 1, 1], dtype=int32))
        """
        check_read(self._base, memory)
        self._read.append(memory)

    # ---- The source ----

    def set_source(self, state: str) -> None:
        """Keep what :attr:`Index.source` returns, in the same batch as what was read of the source.

        Examples
        --------
        >>> import tempfile, hopfuse as hf
        >>> folder = tempfile.mkdtemp()
        >>> saved = hf.Index.build(passages=[{"id": "a", "text": "Ada wrote."}]).with_source("row 1").save(folder)
        >>> with hf.Index.open(folder, writable=True) as live:
        ...     with live.change() as change:
        ...         change.add_passages([{"id": "b", "text": "Babbage built."}])
        ...         change.set_source("row 2")
        ...     live.refresh().source
        'row 2'
        """
        if not isinstance(state, str):
            raise InputError(f"state is a {type(state).__name__}; it must be a string")
        if self._only is not None:
            raise InputError("a change with a filter cannot set the source, which is that of all passages")
        self._source = state

    # ---- Commit ----

    def commit(self) -> int:
        """Check the change against what is there, put it on the disk, and return its seq; nothing is half done.

        Raises
        ------
        InputError
            Something that it names is not there, or is there already; nothing is changed.
        OSError
            The disk takes it not; nothing is changed.
        """
        if self.seq is not None:
            raise InputError(f"the change is committed already, as seq {self.seq}; make another")
        self.seq = self._commit(self)
        return self.seq

    def __enter__(self) -> Change:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None and self.seq is None:
            self.commit()

    def arrays(self, names: Names, terms_of: Callable[[list[str]], list[list[str]]]) -> dict[str, NDArray[Any]]:
        """Return the arrays of the batch, by the slots of what is there; empty if nothing changes."""
        before = names.slots
        made: dict[str, NDArray[Any]] = {}
        hidden = self._hidden(names)

        def old_passage(id: Any) -> int:
            slot = names.passage(id)
            if slot in hidden:
                raise no_passage(id)
            return slot

        put = {names.passage(id) for id in self._put if names.has_passage(id)} - hidden
        passages = sorted(put.union(map(old_passage, self._deleted["passage"])))
        entities = sorted(set(map(names.entity, self._deleted["entity"])))
        set_rows(made, "delete.passage", passages)
        set_rows(made, "delete.entity", entities)
        place = self._add_passages(made, names, passages, before, terms_of)
        listed_now = self._listed_entities(names, entities)
        fresh = [(name, part["word"]) for name, (part, _) in listed_now.items()]
        number = {name: before.entities + at for at, name in enumerate(listed_now)}
        read = [additions(one, names, place, entities, fresh) for one in self._read]
        if self._only is not None:
            aliases = [alias for one in read for _, alias in one.aliases]
            check_memory(self._only, aliases, {edge[2]: None for one in read for edge in one.edges}, names.edge_types)
        self._add_entities(made, fresh, listed_now)

        def passage(id: Any) -> int:
            return living(place, id, old_passage, passages, "passage")

        def entity(name: Any) -> int:
            return living(number, name, names.entity, entities, "entity")

        self._add_aliases(made, names, entity, read)
        self._add_edges(made, (passage, entity), (old_passage, names.entity), read)
        self._add_facts(made, names, passage, entity, read)
        if self._source is not None:
            made |= string_arrays("source.state", [self._source])
        return made

    def _hidden(self, names: Names) -> set[int]:
        """Return the slots of named passages that the filter does not allow; refuse what it cannot bound."""
        only = self._only
        if only is None:
            return set()
        if any(self._deleted[kind] for kind in ("entity", "alias", "edge", "fact")) or self._aliases:
            raise InputError(
                f"a change with the filter {only} adds passages, entities, edges and facts, and deletes passages; what "
                "else it changes could be others' too: change it without a filter"
            )
        check_edges(only, self._edges, names.edge_types)
        rows = [row for part in self._passages for row in part["metadata"]]
        check_added(only, [id for part in self._passages for id in part["ids"]], rows, names.metadata_types)
        ends = [key for a, b, *_ in self._edges for what, key in (a, b) if what == "passage"]
        stating = [*(edge[4] for edge in self._edges), *(fact[3] for fact in self._facts)]
        return names.hidden([*self._deleted["passage"], *self._put, *ends, *stating], only)

    def _add_passages(
        self, made: dict[str, Any], names: Names, gone: list[int], before: Slots, terms_of: Any
    ) -> dict[Any, int]:
        parts = self._passages
        ids = [id for part in parts for id in part["ids"]]
        if len(set(ids)) != len(ids) or len({type(id) for id in ids}) > 1:
            raise InputError(
                "the change adds two passages of one id, or ids of two types; ids are distinct and of one type"
            )
        names.check_new_ids(ids, gone)
        if not parts:
            return {}
        made |= joined_arrays(parts, names.metadata_types)
        if self._base.lexical is not None:
            made |= term_arrays(terms_of([text for part in parts for text in part["texts"]]))
        return {id: before.passages + at for at, id in enumerate(ids)}

    def _listed_entities(self, names: Names, gone: list[int]) -> dict[str, tuple[dict[str, Any], int]]:
        """Return the entities that are added by name: by it, their part, and their place there."""
        added: dict[str, tuple[dict[str, Any], int]] = {}
        for part in self._entities:
            for at, name in enumerate(part["names"]):
                there = names.has_entity(name, gone)
                if part["missing"] and (there or name in added):
                    continue
                if there:
                    raise InputError(f"an entity has the name {name!r} already")
                if name in added:
                    raise InputError("the change adds two entities of one name; names are distinct")
                added[name] = part, at
        return added

    def _add_entities(
        self, made: dict[str, Any], fresh: list[tuple[str, bool]], by_name: dict[str, tuple[dict[str, Any], int]]
    ) -> None:
        """Add entities by name, and behind them those that were read, with vectors of the encoder."""
        if not fresh:
            return
        made |= string_arrays("entity.name", [name for name, _ in fresh])
        made["entity.word"] = np.array([word for _, word in fresh], np.uint8)
        vectors = [part["entity.vectors"][at] for part, at in by_name.values() if "entity.vectors" in part]
        was_read = [name for name, _ in fresh[len(by_name) :]]
        own = self._vectors(None, "entity.vectors", was_read, len(was_read)) if was_read else None
        vectors += [] if own is None else [*own]
        if vectors:
            made["entity.vectors"] = np.stack(vectors)

    def _add_aliases(self, made: dict[str, Any], names: Names, entity: Any, read: Sequence[Additions]) -> None:
        if self._deleted["alias"]:
            set_rows(made, "delete.alias.entity", [names.entity(name) for name, _ in self._deleted["alias"]])
            made |= string_arrays("delete.alias.name", [alias for _, alias in self._deleted["alias"]])
        aliases = [(entity(name), alias) for name, alias in self._aliases]
        aliases += dict.fromkeys(pair for one in read for pair in one.aliases)
        if aliases:
            set_rows(made, "alias.entity", [slot for slot, _ in aliases])
            made |= string_arrays("alias.name", [alias for _, alias in aliases])

    def _add_edges(self, made: dict[str, Any], find: Any, find_old: Any, read: Sequence[Additions]) -> None:
        """Add edges; ``find`` finds passages and entities by id and name, ``find_old`` those before the change."""

        def end(one: End, find: Any = find) -> int:
            return find[0](one[1]) if one[0] == "passage" else -1 - int(find[1](one[1]))

        types: dict[str, int] = {}
        gone = [
            (end(a, find_old), end(b, find_old), types.setdefault(kind, len(types)))
            for a, b, kind in self._deleted["edge"]
        ]
        set_rows(made, "delete.edge", gone, 3)
        edges = [
            (end(a), end(b), kind, weight, -1 if by is None else find[0](by)) for a, b, kind, weight, by in self._edges
        ]
        edges += [edge for one in read for edge in one.edges]
        if edges:
            set_rows(made, "edge.end", [edge[:2] for edge in edges], 2)
            set_rows(made, "edge.type", [types.setdefault(edge[2], len(types)) for edge in edges])
            made["edge.weight"] = np.array([edge[3] for edge in edges])
            set_rows(made, "edge.passage", [edge[4] for edge in edges])
        if types:
            made |= string_arrays("edge.type_name", types)

    def _add_facts(
        self, made: dict[str, Any], names: Names, passage: Any, entity: Any, read: Sequence[Additions]
    ) -> None:
        relations: dict[str, int] = {}
        gone = [
            (names.entity(h), relations.setdefault(r, len(relations)), names.entity(t))
            for h, r, t in self._deleted["fact"]
        ]
        set_rows(made, "delete.fact", gone, 3)
        facts = [(entity(h), r, entity(t), passage(p)) for h, r, t, p in self._facts]
        facts += [fact for one in read for fact in one.facts]
        set_rows(made, "fact.row", [(h, relations.setdefault(r, len(relations)), t, p) for h, r, t, p in facts], 4)
        if relations:
            made |= string_arrays("fact.relation", relations)

    def _vectors(self, given: Any, section: str, texts: list[str], count: int) -> NDArray[Any] | None:
        """Return vectors as the index holds them."""
        own = self._base.corpus if section.startswith("passage") else self._base.entity_corpus
        if own is None:
            if given is not None:
                raise InputError(f"vectors are given, but the index has no {section}")
            return None
        if given is None:
            if self._encoder is None:
                raise InputError(f"the index has {section}: give vectors=, or open it with encoder=")
            given = self._encoder.encode_passages(texts)
        corpus = Corpus.unchecked(given, metric=own.metric, storage=own.precision).checked()
        if (corpus.num_vectors, corpus.dim) != (count, own.dim):
            raise InputError(
                f"vectors have shape ({corpus.num_vectors}, {corpus.dim}); {count} of {own.dim} components are needed"
            )
        return corpus.vectors
