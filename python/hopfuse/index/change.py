"""A change of an index: the additions and deletions of one batch, checked as they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from numpy.typing import NDArray

from .._validation import check_list, check_number, check_type, checked_texts, wrong_array, wrong_value
from ..errors import InputError
from .additions import ReadPassages, check_has, check_read
from .build import checked_corpus
from .change_record import EDGE_KEYS, ChangeRows, End, RecordBuilder, alias_pairs, edge_of, fact_rows, passage_arrays
from .contents import Contents, Failed, PassageId, passage_vectors
from .filters import Where
from .log.records import LEAST_WEIGHT, MOST_WEIGHT
from .names import Names
from .supports import Deletions


class Change:
    """An atomic batch of changes, from :meth:`hopfuse.LiveIndex.change`, committed at the end of its ``with`` block.

    An exception in the block discards it. Deletions apply to what existed before the change; additions come after all
    that exists, in the order of the calls.

    Attributes
    ----------
    seq : int or None
        The seq of the index after the commit; None before.
    deleted : Deletions or None
        After the commit, what the change deleted, also by replacing passages; None before.

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
        self,
        base: Contents,
        encoder: Any,
        commit: Callable[[Change], int],
        preview: Callable[[Change], Deletions],
        only: Where | None = None,
    ) -> None:
        self.seq: int | None = None
        self.deleted: Deletions | None = None
        if only is not None:
            check_type(only, "only", Where, "a filter: hopfuse.where(**conditions)")
        self._base, self._encoder, self._only = base, encoder, only
        self._commit, self._preview = commit, preview
        self._listed = ChangeRows()

    # ---- Passages ----

    def add_passages(
        self, passages: Any, *, vectors: Any = None, replace: bool = False, failed: Failed | None = None
    ) -> None:
        """Add passages, after the existing ones.

        Parameters
        ----------
        passages : path, Arrow table, or iterable of mappings
            Rows with ``id`` and ``text``, optionally ``title``, ``document``, ``language`` and ``metadata``, as in
            :meth:`hopfuse.Index.build`.
        vectors : array_like of float, shape (n, d), optional
            If the index has vectors; by default, those of the encoder that the index was opened with.
        replace : bool
            Delete existing passages with these ids, as :meth:`replace_passages` does.
        failed : callable, optional
            Takes the row of a passage that the encoder refuses, and the error, as in :meth:`hopfuse.Index.build`.

        Raises
        ------
        InputError
            Rows without ids, vectors that are missing or cannot be scored, or a passage without title and text whose
            vector the encoder is to make. Without ``replace``, an id that exists is
            refused at the commit.
        """
        part = passage_arrays(passages)
        if part["ids"]:
            if vectors is None and self._base.corpus is not None and self._encoder is not None:
                vectors = passage_vectors(self._encoder, part["texts"], part["ids"], failed, self._base.metric)
            own = self._vectors(vectors, "passage.vectors", part["texts"], len(part["ids"]))
            self._rows.passages.append(part if own is None else part | {"passage.vectors": own})
            self._rows.replaced += part["ids"] if replace else []

    def delete_passages(
        self,
        ids: Iterable[PassageId] | None = None,
        *,
        where: Where | None = None,
        document: str | int | None = None,
    ) -> None:
        """Delete passages by their ids, by a filter or by their document.

        Their edges, the edges that they state and their statements of facts go with them. So do names and words that a
        reader made (those that are not :attr:`Index.stated`), with their aliases and vectors, once no passage of the
        index has an edge with them, or states one or a fact about them.

        Parameters
        ----------
        ids : iterable of str or int, optional
            All must exist.
        where : Where, optional
            Delete the passages that the filter allows at the commit; there may be none.
        document : str or int, optional
            Delete the passages of this document at the commit; there may be none.

        Raises
        ------
        InputError
            None or several of the three are given. An id that does not exist, and a column of the filter that the index
            does not have, are refused at the commit.

        Examples
        --------
        >>> import tempfile, hopfuse as hf
        >>> from hopfuse.extract import WordReader, build_memory
        >>> folder = tempfile.mkdtemp()
        >>> rows = [{"id": "a", "text": "Ada wrote.", "metadata": {"user": "x"}}]
        >>> rows.append({"id": "b", "text": "Ada read.", "metadata": {"user": "y"}})
        >>> passages = hf.Index.build(passages=rows)
        >>> saved = build_memory(WordReader().read(rows)).index(passages=passages).save(folder)
        >>> with hf.Index.open(folder, writable=True) as live:
        ...     with live.change() as change:
        ...         change.delete_passages(where=hf.where(user="x"))
        ...     index = live.refresh()
        >>> list(index.passage_ids), list(index.entity_names), change.deleted
        (['b'], ['ada', 'read'], Deletions(passages=1, names=0, words=1, facts=0))
        """
        given = {"ids": ids, "where": where, "document": document}
        if sum(one is not None for one in given.values()) != 1:
            raise InputError(
                "missing" if all(one is None for one in given.values()) else "conflict",
                "ids",
                "passages are deleted by {field}, {@where} or {@document}; give one of them",
            )
        if ids is not None:
            self._rows.deleted["passage"] += check_list(ids, "ids")
        elif where is not None:
            self._rows.where.append(check_type(where, "where", Where, "a filter: hopfuse.where(**conditions)"))
        elif isinstance(document, str | int) and not isinstance(document, bool):
            self._rows.documents.append(document)
        else:
            raise wrong_value(document, "document", "a string or an integer", "type")

    def replace_passages(self, passages: Any, *, vectors: Any = None, failed: Failed | None = None) -> None:
        """Replace passages by their ids; edges and facts of the old ones are deleted.

        All must exist; ``add_passages(..., replace=True)`` replaces those that exist and adds the others.
        """
        before = len(self._rows.passages)
        self.add_passages(passages, vectors=vectors, failed=failed)
        for part in self._rows.passages[before:]:
            self._rows.deleted["passage"] += part["ids"]

    # ---- Entities ----

    def add_entities(
        self,
        names: Iterable[str],
        *,
        vectors: Any = None,
        words: bool = False,
        missing: bool = False,
        stated: bool = True,
    ) -> None:
        """Add entities: names after the existing names, words after the existing words.

        Parameters
        ----------
        names : iterable of str
            New names, which no entity has at the commit, unless ``missing``.
        vectors : array_like of float, shape (n, d2), optional
            As in :meth:`add_passages`; by default the encoder's vectors of the names.
        words : bool
            The entities are words, as ``index.words`` describes them.
        missing : bool
            Add only the names that no entity has. Names are matched exactly or, if none is equal, by their keys
            (:func:`hopfuse.extract.canonical_key`), then by aliases that one entity alone has: another spelling becomes
            an alias, unless the change has a filter.
            With ``stated``, those that exist are stated from now on.
        stated : bool
            The user states the entities (:attr:`Index.stated`); False if a reader found them in passages: they go with
            the last passage that has an edge with them or states something about them. The entities of a change's
            aliases are also stated.
        """
        given = checked_texts(names, "names")
        if words and self._base.words is None:
            raise InputError(
                "unsupported", "words", "{field}=True is given, but all entities of the index are names; leave it out"
            )
        if given:
            part: dict[str, Any] = {"names": given, "word": bool(words), "missing": missing, "stated": bool(stated)}
            own = self._vectors(vectors, "entity.vectors", given, len(given))
            self._rows.entities.append(part if own is None else part | {"entity.vectors": own})

    def delete_entities(self, names: Iterable[str]) -> None:
        """Delete entities, with their aliases, edges and facts."""
        self._rows.deleted["entity"] += check_list(names, "names")

    def add_aliases(self, aliases: Mapping[str, Sequence[str]]) -> None:
        """Add aliases of entities: a list for each entity's name."""
        self._rows.aliases += alias_pairs(aliases)

    def delete_aliases(self, aliases: Mapping[str, Sequence[str]]) -> None:
        """Delete aliases of entities; those that do not exist are ignored."""
        self._rows.deleted["alias"] += alias_pairs(aliases)

    def merge_entities(self, merge: Mapping[str, Sequence[str]]) -> None:
        """Merge entities into others: for each name of an entity that stays, the names of those that go.

        The names and aliases of those that go become aliases of the one that stays, and their edges and facts are its
        own. An edge with a passage counts once if both have it, with the weight of the entity that stays; edges between
        entities add up. Edges and facts between merged entities are left out, and so are vectors of those that go.

        Parameters
        ----------
        merge : mapping of str to sequence of str

        Raises
        ------
        InputError
            At the commit: a name of no entity or of several, a word, or an entity that is merged into itself, into two
            others, or into one that is merged as well.

        Examples
        --------
        >>> import tempfile, hopfuse as hf
        >>> folder, rows = tempfile.mkdtemp(), [{"id": "a", "text": "The USA."}, {"id": "b", "text": "The States."}]
        >>> graph = [{"src": 0, "dst": 2}, {"src": 1, "dst": 3}]
        >>> saved = hf.Index.build(passages=rows, entities=["USA", "United States"], graph=graph).save(folder)
        >>> with hf.Index.open(folder, writable=True) as live:
        ...     with live.change() as change:
        ...         change.merge_entities({"United States": ["USA"]})
        ...     index = live.refresh()
        >>> list(index.entity_names), list(index.entity_aliases), index.passage_frequency
        (['United States'], [('USA',)], array([2], dtype=int32))
        """
        check_type(merge, "merge", Mapping, "a mapping of an entity's name to a list of names")
        for kept, others in merge.items():
            self._rows.merged += [(kept, other) for other in checked_texts(others, f"merge[{kept!r}]")]

    @property
    def merges(self) -> bool:
        """Whether the change merges entities."""
        return bool(self._rows.merged)

    # ---- Edges and facts ----

    def add_edges(self, edges: Iterable[Mapping[str, Any]], *, stated: bool = True) -> None:
        """Add edges; parallel edges of a type are summed in the order of the statements.

        Parameters
        ----------
        edges : iterable of mappings
            ``src`` and ``dst``, each ``("passage", id)`` or ``("entity", name)``, which may be another spelling if one
            entity alone has its key (:func:`hopfuse.extract.canonical_key`); optionally ``type`` (str, by default
            the index's first), ``weight`` (2⁻⁶⁴ .. 2⁶⁴, by default 1) and, between two entities, ``stated_by``, the id
            of a passage: the edge is deleted with that passage. An edge at a passage belongs to that passage.
        stated : bool
            The user states the entities at the edges; False if a reader found them: see :meth:`add_entities`.
        """
        listed = self._rows.edges if stated else self._rows.read_edges
        first = self._first_type()
        for at, edge in enumerate(edges):
            field = f"edges[{at}]"
            ends, kind = edge_of(edge, field, EDGE_KEYS, first)
            weight = check_number(edge.get("weight", 1.0), f"{field}.weight", low=LEAST_WEIGHT, high=MOST_WEIGHT)
            by = edge.get("stated_by")
            if by is not None:
                _check_owner(field, ends, by)
            listed.append((*ends, kind, weight, by))

    def delete_edges(self, edges: Iterable[Mapping[str, Any]]) -> None:
        """Delete edges by ``src``, ``dst`` and ``type``: all their statements before this change."""
        first = self._first_type()
        for at, edge in enumerate(edges):
            ends, kind = edge_of(edge, f"edges[{at}]", EDGE_KEYS - {"weight", "stated_by"}, first)
            self._rows.deleted["edge"].append((*ends, kind))

    def add_facts(self, facts: Iterable[Sequence[Any]], *, stated: bool = True) -> None:
        """Add facts: rows (head, relation, tail, id) with the names of two entities and the id of the passage.

        Parameters
        ----------
        facts : iterable of sequences
        stated : bool
            The user states the entities of the facts; False if a reader found them: see :meth:`add_entities`.
        """
        check_has(self._base.facts, "facts", "facts")
        listed = self._rows.facts if stated else self._rows.read_facts
        listed += fact_rows(facts, 4, "(head, relation, tail, id of a passage)")

    def delete_facts(self, facts: Iterable[Sequence[str]]) -> None:
        """Delete facts (head, relation, tail): all their statements before this change."""
        self._rows.deleted["fact"] += fact_rows(facts, 3, "(head, relation, tail)")

    # ---- Extractions ----

    def add_memory(self, memory: ReadPassages) -> None:
        """Add the entities, words, edges and facts that were read in passages which this change adds.

        Entities of the index are matched by the keys of :func:`hopfuse.extract.build_memory`, then by aliases that one
        entity alone has, and another spelling of a name becomes an alias, except in a change with a filter, which adds
        none. New ones are not stated, and a stated one stays so (:attr:`Index.stated`). The result equals an index
        built from all passages, except for what a build derives from all of them together. The spelling of names, words
        and relations is the first one, conflicting facts are all kept, and no synonyms are found.

        Parameters
        ----------
        memory : Memory
            Its passages are among those of :meth:`add_passages` and :meth:`replace_passages`.

        Raises
        ------
        InputError
            Words were read differently from those of the index, or not at all; or the memory has parts that the index
            lacks. A passage that this change does not add is refused at the commit.

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
        self._rows.read.append(memory)

    # ---- The source ----

    def set_source(self, state: str) -> None:
        """Set :attr:`Index.source`, in the same batch as the rows that were read from the source.

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
        if self._only is not None:
            raise InputError(
                "denied", "state", "a change with a filter cannot set the source, which concerns all passages"
            )
        self._rows.source = check_type(state, "state", str, "a string")

    # ---- Commit ----

    def preview(self) -> Deletions:
        """Return what the change would delete if it were committed now; nothing is changed.

        Entities and facts that go with passages are counted. In a change with a filter, those count that no passage
        which the filter allows would state any more, whether or not others do.

        Raises
        ------
        InputError
            As in :meth:`commit`.

        Examples
        --------
        >>> import tempfile, hopfuse as hf
        >>> folder = tempfile.mkdtemp()
        >>> rows = [{"id": 1, "text": "The sea.", "document": "a"}, {"id": 2, "text": "A river.", "document": "a"}]
        >>> saved = hf.Index.build(passages=rows).save(folder)
        >>> with hf.Index.open(folder, writable=True) as live:
        ...     change = live.change()
        ...     change.delete_passages(document="a")
        ...     print(change.preview())
        Deletions(passages=2, names=0, words=0, facts=0)
        """
        return self._preview(self)

    def commit(self) -> int:
        """Check the change against the index, write it to the disk, and return its seq.

        Raises
        ------
        InputError
            The change names something that does not exist, or adds something that exists; nothing is changed.
        OSError
            The disk cannot be written; nothing is changed.
        """
        self._check_open()
        try:
            self.seq = self._commit(self)
        except BaseException:
            self.deleted = None
            raise
        return self.seq

    def __enter__(self) -> Change:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None and self.seq is None:
            self.commit()

    def _check_open(self) -> None:
        """Refuse a change that is committed already: what is added to it would be lost."""
        if self.seq is not None:
            raise InputError(
                "duplicate", None, "the change is committed already, as seq {seq}; make a new one", seq=self.seq
            )

    @property
    def _rows(self) -> ChangeRows:
        self._check_open()
        return self._listed

    def arrays(self, names: Names, terms_of: Callable[[list[str]], list[list[str]]]) -> dict[str, NDArray[Any]]:
        """Return the arrays of the batch, by slots; none if nothing changes."""
        builder = self._builder(names, terms_of)
        arrays = builder.arrays()
        self.deleted = builder.deletions()
        return arrays

    def deletions(self, names: Names, terms_of: Callable[[list[str]], list[list[str]]]) -> Deletions:
        """Return what the batch would delete."""
        builder = self._builder(names, terms_of)
        builder.arrays()
        return builder.deletions()

    def _builder(self, names: Names, terms_of: Callable[[list[str]], list[list[str]]]) -> RecordBuilder:
        tokenizer = terms_of if self._base.lexical is not None else None
        return RecordBuilder(self._rows, names, self._only, self._entity_vectors, tokenizer)

    def _first_type(self) -> str:
        """Return the first edge type of the index; refuse an index without a graph."""
        check_has(self._base.graph, "a graph", "edges")
        assert self._base.graph is not None
        return self._base.graph.edge_type_names[0]

    def _entity_vectors(self, names: list[str]) -> NDArray[Any] | None:
        return self._vectors(None, "entity.vectors", names, len(names))

    def _vectors(self, given: Any, section: str, texts: list[str], count: int) -> NDArray[Any] | None:
        """Return vectors in the precision of the index, by default the encoder's; None if the index has none."""
        own = self._base.corpus if section.startswith("passage") else self._base.entity_corpus
        if own is None:
            if given is not None:
                raise InputError(
                    "unused",
                    "vectors",
                    "{field} is given, but the index has no {section}; leave it out",
                    section=section,
                )
            return None
        if given is None:
            if self._encoder is None:
                raise InputError(
                    "missing",
                    "vectors",
                    "the index has {section}: give {field}, or open it with {@encoder}",
                    section=section,
                )
            given = self._encoder.encode_passages(texts)
        corpus = checked_corpus(given, "vectors", own.metric, own.precision)
        if (corpus.num_vectors, corpus.dim) != (count, own.dim):
            raise wrong_array(corpus.vectors, "vectors", f"of the shape {(count, own.dim)}")
        return corpus.vectors


def _check_owner(field: str, ends: Sequence[End], by: Any) -> None:
    """Refuse an edge at a passage that another passage states."""
    passages = [key for what, key in ends if what == "passage"]
    if passages and by not in passages:
        raise InputError(
            "conflict",
            f"{field}.stated_by",
            "{field} is {given!r}, and the edge is at the passage {passage!r}; an edge at a passage belongs to that "
            "passage: leave stated_by out",
            given=by,
            passage=passages[0],
        )
