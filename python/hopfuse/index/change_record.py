"""Resolve a change: find the slots of the ids and names in it, and build the arrays of its batch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_list, check_type, checked_texts, wrong_value
from ..errors import InputError
from ..io import tables
from ..io.readers import read_table
from ..io.source import PASSAGES
from . import parts
from .additions import Additions, Deleted, ReadPassages, additions, merged_slots, restated
from .contents import PassageId, text_to_index
from .file.columns import string_arrays
from .filters import Where
from .log.records import LogRecord
from .names import ID_TYPES, Names, no_passage
from .parts.metadata_build import flattened, metadata_arrays
from .parts.passages import LABELS, label_arrays
from .supports import Deletions
from .write_scope import check_added, check_edges, check_kinds


@dataclass
class ChangeRows:
    """The additions and deletions of a change, by ids and names, in the order of the calls."""

    deleted: dict[str, list[Any]] = field(
        default_factory=lambda: {"passage": [], "entity": [], "alias": [], "edge": [], "fact": []}
    )
    replaced: list[PassageId] = field(default_factory=list)  # ids that are deleted if they exist
    where: list[Where] = field(default_factory=list)  # filters of passages that are deleted
    documents: list[Any] = field(default_factory=list)  # documents whose passages are deleted
    passages: list[dict[str, Any]] = field(default_factory=list)
    entities: list[dict[str, Any]] = field(default_factory=list)
    aliases: list[tuple[str, str]] = field(default_factory=list)
    merged: list[tuple[str, str]] = field(default_factory=list)  # the entity that stays, and one that goes
    edges: list[tuple[End, End, str, float, PassageId | None]] = field(default_factory=list)
    facts: list[tuple[str, str, str, PassageId]] = field(default_factory=list)
    read_edges: list[tuple[End, End, str, float, PassageId | None]] = field(default_factory=list)
    read_facts: list[tuple[str, str, str, PassageId]] = field(default_factory=list)  # their entities are not stated
    read: list[ReadPassages] = field(default_factory=list)
    source: str | None = None


class RecordBuilder:
    """Builds the arrays of a change's batch.

    Parameters
    ----------
    rows : ChangeRows
    names : Names
        The ids and names that exist before the change.
    only : Where, optional
        The filter of the change.
    encode : callable (list of str) -> ndarray or None
        Vectors of the entities that were read, None if entities have no vectors.
    terms_of : callable (list of str) -> list of list of str, optional
        Splits texts into BM25's terms; None without a lexical part.
    """

    def __init__(
        self,
        rows: ChangeRows,
        names: Names,
        only: Where | None,
        encode: Callable[[list[str]], NDArray[Any] | None],
        terms_of: Callable[[list[str]], list[list[str]]] | None,
    ) -> None:
        self._rows, self._names, self._only = rows, names, only
        self._encode, self._terms_of = encode, terms_of
        self._made: dict[str, NDArray[Any]] = {}
        self._hidden = self._hidden_passages()
        self._gone_passages = self._deleted_passages()
        self._heirs = merged_slots(names, rows.merged)
        self._gone_entities = set(map(names.entity, rows.deleted["entity"])) | set(self._heirs)
        self._new_passages: dict[PassageId, int] = {}
        self._new_entities: dict[str, int] = {}  # slots by name; of other spellings, those of known entities
        self._new_aliases: list[tuple[int, str]] = []
        self._stated: set[int] = set()  # slots of the entities that the change itself names
        self._found: set[int] = set()  # slots of those that it would add if they were missing

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the batch; none if nothing changes.

        Raises
        ------
        InputError
            The change names something that does not exist, adds something that exists, or exceeds its filter.
        """
        rows, names, made = self._rows, self._names, self._made
        set_rows(made, "delete.passage", sorted(self._gone_passages))
        set_rows(made, "delete.entity", sorted(self._gone_entities))
        self._add_passages()
        listed = self._listed_entities()
        fresh = [(name, part["word"]) for name, (part, _) in listed.items()]
        slots = self._new_passages, self._gone_entities, self._heirs
        read = [additions(one, names, *slots, fresh) for one in rows.read]
        if self._heirs:
            read.append(restated(names, self._heirs, self._deleted()))
            self._stated.update(self._heirs.values())
        if self._only is not None:
            check_kinds(dict.fromkeys(edge[2] for one in read for edge in one.edges), names.edge_types)
            read = [one._replace(aliases=[]) for one in read]  # others may hold the names
        self._add_entities(fresh, listed)
        self._add_aliases(read)
        self._add_edges(read)
        self._add_facts(read)
        self._state_entities([part["stated"] for part, _ in listed.values()], len(fresh))
        if rows.source is not None:
            made |= string_arrays("source.state", [rows.source])
        self._delete_orphans()
        return made

    def deletions(self) -> Deletions:
        """Return what the batch deletes; of a change with a filter, what its passages no longer state."""
        if not self._deletes:
            return Deletions(0, 0, 0, 0)
        names, batch, seen = self._names, LogRecord(self._made, self._names.slots), None
        gone = batch["delete.entity"]
        if self._only is not None:
            seen = names.allowed(self._only)
            gone = names.supports().entities_unseen(batch, seen)
        words = sum(map(names.is_word, gone.tolist()))
        facts = names.supports().num_facts_gone(batch, seen)
        return Deletions(len(self._gone_passages), gone.size - words, words, facts)

    def _delete_orphans(self) -> None:
        """Delete the entities that a reader made and that nothing supports any more."""
        made = self._made
        if not self._deletes:
            return
        orphans = self._names.orphans(LogRecord(made, self._names.slots))
        gone = self._gone_entities.union(orphans).difference(self._stated, self._found)
        if len(gone) > len(self._gone_entities):
            set_rows(made, "delete.entity", sorted(gone))

    @property
    def _deletes(self) -> bool:
        """Whether the batch deletes something."""
        return any(f"delete.{kind}" in self._made for kind in self._rows.deleted)

    # ---- Slots ----

    def _hidden_passages(self) -> set[int]:
        """Return the slots of named passages that the filter does not allow; refuse what it cannot bound."""
        rows, only, names = self._rows, self._only, self._names
        if only is None:
            return set()
        if any(rows.deleted[kind] for kind in ("entity", "alias", "edge", "fact")) or rows.aliases or rows.merged:
            raise InputError(
                "denied",
                None,
                "a change with the filter {only} can add passages, entities, edges and facts, and delete "
                "passages; other changes could affect passages outside the filter: make them without a filter",
                only=only,
            )
        check_edges(only, [*rows.edges, *rows.read_edges], names.edge_types)
        metadata = [row for part in rows.passages for row in part["metadata"]]
        flat = flattened(metadata, names.metadata.types, partial(place, rows.passages))
        check_added(only, [id for part in rows.passages for id in part["ids"]], flat, names.metadata.types)
        edges, facts = [*rows.edges, *rows.read_edges], [*rows.facts, *rows.read_facts]
        ends = [key for a, b, *_ in edges for what, key in (a, b) if what == "passage"]
        stating = [*(edge[4] for edge in edges), *(fact[3] for fact in facts)]
        return names.hidden([*rows.deleted["passage"], *rows.replaced, *ends, *stating], only)

    def _deleted_passages(self) -> set[int]:
        names, rows = self._names, self._rows
        gone = {names.passage(id) for id in rows.replaced if names.has_passage(id)} - self._hidden
        gone.update(map(self._deleted_passage, rows.deleted["passage"]))
        for one in rows.where:
            gone.update(names.matching(one if self._only is None else self._only & one))
        for document in rows.documents:
            gone.update(names.of_document(document, self._only))
        return gone

    def _deleted_passage(self, id: Any) -> int:
        """Return the slot of a passage that existed before the change."""
        if not self._names.has_passage(id) or self._names.passage(id) in self._hidden:
            raise InputError("unknown", None, "there is no passage with the id {given!r} in the index", given=id)
        return self._names.passage(id)

    def _old_passage(self, id: Any) -> int:
        slot = self._names.passage(id)
        if slot in self._hidden:
            raise no_passage(id)
        return slot

    def _passage(self, id: Any) -> int:
        return _kept_slot(self._new_passages, id, self._old_passage, self._gone_passages, "passage")

    def _entity(self, name: Any, *, stated: bool = True) -> int:
        """Return the slot of an entity by its name, or by a spelling with the key of one entity."""
        names, exists = self._names, self._exists
        if isinstance(name, str) and name not in self._new_entities and not any(map(exists, names.entities(name))):
            alike = [slot for slot in names.alike(name) if slot not in self._gone_entities and exists(slot)]
            if len(alike) == 1:
                self._new_entities[name] = alike[0]
        slot = _kept_slot(self._new_entities, name, partial(names.entity, exists=exists), self._gone_entities, "entity")
        if stated:
            self._stated.add(slot)
        return slot

    def _exists(self, slot: int) -> bool:
        """Return whether an entity exists for the change: it adds it, or a passage that its filter allows states it."""
        return self._only is None or slot in self._stated or slot in self._found or bool(self._seen[slot])

    @cached_property
    def _seen(self) -> NDArray[np.bool_]:
        """Which entities the passages state that the filter allows, by slot."""
        assert self._only is not None
        return self._names.supports().entities_seen(self._names.allowed(self._only))

    def _deleted(self) -> Deleted:
        """Return what the change deletes, by slots."""
        gone, entity = self._rows.deleted, self._names.entity
        return Deleted(
            self._gone_passages,
            self._gone_entities.difference(self._heirs),
            {(entity(name), alias) for name, alias in gone["alias"]},
            {(*sorted((self._old_end(a), self._old_end(b))), kind) for a, b, kind in gone["edge"]},
            {(entity(head), relation, entity(tail)) for head, relation, tail in gone["fact"]},
        )

    def _end(self, end: End, stated: bool) -> int:
        kind, key = end
        return self._passage(key) if kind == "passage" else -1 - self._entity(key, stated=stated)

    def _old_end(self, end: End) -> int:
        kind, key = end
        return self._old_passage(key) if kind == "passage" else -1 - self._names.entity(key)

    # ---- Arrays ----

    def _add_passages(self) -> None:
        parts, names = self._rows.passages, self._names
        ids = [id for part in parts for id in part["ids"]]
        if len(set(ids)) != len(ids) or len({type(id) for id in ids}) > 1:
            raise InputError(
                "duplicate",
                "passages",
                "the change adds two passages with the same id, or ids of two types; ids are distinct and of one type",
            )
        names.check_new_ids(ids, self._gone_passages, self._hidden, partial(place, parts))
        for label in LABELS:
            names.check_labels(label, [value for part in parts for value in part[label.codes]])
        if not parts:
            return
        self._made |= joined_arrays(parts, names.metadata.types)
        if self._terms_of is not None:
            self._made |= term_arrays(self._terms_of([text for part in parts for text in part["texts"]]))
        self._new_passages = {id: names.slots.passages + at for at, id in enumerate(ids)}

    def _listed_entities(self) -> dict[str, tuple[dict[str, Any], int]]:
        """Return the entities that are added by name: name to (part, position in the part)."""
        names, first = self._names, self._names.slots.entities
        self._new_entities = {names.name(slot): heir for slot, heir in self._heirs.items()}
        added: dict[str, tuple[dict[str, Any], int]] = {}
        keys: dict[str, int] = {}  # slots of the added entities, apart from words
        for part in self._rows.entities:
            for at, name in enumerate(part["names"]):
                known = [slot for slot in names.entities(name, words=part["word"]) if slot not in self._gone_entities]
                exists = bool(known) or name in self._new_entities
                is_hidden = bool(known) and name not in self._new_entities and not any(map(self._exists, known))
                if part["missing"] and not exists and not part["word"]:
                    known = [slot for slot in names.alike(name) if slot not in self._gone_entities]
                    known += [keys[key] for key in [names.key(name)] if key in keys]
                if is_hidden or (part["missing"] and (exists or known)):
                    slot = self._new_entities[name] if name in self._new_entities else known[0]
                    if not exists:
                        self._spell(name, slot)
                    (self._stated if part["stated"] else self._found).update(known or [slot])
                    continue
                if exists:
                    raise InputError(
                        "duplicate",
                        "names",
                        "{an} entity of {whole} has the name {given!r} already; names are distinct",
                        an="another" if name in added else "an",
                        whole="this change" if name in added else "the index",
                        given=name,
                    )
                self._new_entities[name] = first + len(added)
                if not part["word"]:
                    keys.setdefault(names.key(name), first + len(added))
                added[name] = part, at
        return added

    def _spell(self, name: str, slot: int) -> None:
        """Let a name stand for an entity that has the same key, and make it an alias, which a filter does not allow."""
        self._new_entities[name] = slot
        is_known = slot < self._names.slots.entities and name in self._names.aliases(slot)
        if self._only is None and not is_known:
            self._new_aliases.append((slot, name))

    def _add_entities(
        self, fresh: Sequence[tuple[str, bool]], listed: Mapping[str, tuple[dict[str, Any], int]]
    ) -> None:
        """Add the listed entities, and after them those that were read, whose vectors the encoder makes."""
        if not fresh:
            return
        self._made |= string_arrays("entity.name", [name for name, _ in fresh])
        self._made["entity.word"] = np.array([word for _, word in fresh], np.uint8)
        vectors = [part["entity.vectors"][at] for part, at in listed.values() if "entity.vectors" in part]
        was_read = [name for name, _ in fresh[len(listed) :]]
        own = self._encode(was_read) if was_read else None
        vectors += [] if own is None else [*own]
        if vectors:
            self._made["entity.vectors"] = np.stack(vectors)

    def _state_entities(self, listed: Sequence[bool], count: int) -> None:
        """Say which of the added entities, and which others from now on, a user stated: those that were read are not.

        ``listed`` has a bit for each entity that is added by name, the first ones of the ``count`` that are added.
        """
        first = self._names.slots.entities
        bits = np.zeros(count, np.uint8)
        bits[: len(listed)] = listed
        bits[[slot - first for slot in self._stated if slot >= first]] = 1
        if not bits.all():
            self._made["entity.stated"] = bits
        older = (slot for slot in self._stated if slot < first and slot not in self._gone_entities)
        set_rows(self._made, "stated.entity", sorted(slot for slot in older if not self._names.is_stated(slot)))

    def _add_aliases(self, read: Sequence[Additions]) -> None:
        made, rows = self._made, self._rows
        if rows.deleted["alias"]:
            set_rows(made, "delete.alias.entity", [self._names.entity(name) for name, _ in rows.deleted["alias"]])
            made |= string_arrays("delete.alias.name", [alias for _, alias in rows.deleted["alias"]])
        aliases = [(self._entity(name), alias) for name, alias in rows.aliases] + self._new_aliases
        aliases += dict.fromkeys(pair for one in read for pair in one.aliases)
        if aliases:
            set_rows(made, "alias.entity", [slot for slot, _ in aliases])
            made |= string_arrays("alias.name", [alias for _, alias in aliases])

    def _add_edges(self, read: Sequence[Additions]) -> None:
        made, rows, types = self._made, self._rows, dict[str, int]()
        deleted = [
            (self._old_end(a), self._old_end(b), types.setdefault(kind, len(types)))
            for a, b, kind in rows.deleted["edge"]
        ]
        set_rows(made, "delete.edge", deleted, 3)
        edges = [
            (self._end(a, stated), self._end(b, stated), kind, weight, -1 if by is None else self._passage(by))
            for given, stated in ((rows.edges, True), (rows.read_edges, False))
            for a, b, kind, weight, by in given
        ]
        edges += [edge for one in read for edge in one.edges]
        if edges:
            set_rows(made, "edge.end", [end for edge in edges for end in edge[:2]], 2)
            set_rows(made, "edge.type", [types.setdefault(edge[2], len(types)) for edge in edges])
            made["edge.weight"] = np.array([edge[3] for edge in edges])
            set_rows(made, "edge.passage", [edge[4] for edge in edges])
        if types:
            made |= string_arrays("edge.type_name", types)

    def _add_facts(self, read: Sequence[Additions]) -> None:
        made, names, relations = self._made, self._names, dict[str, int]()
        deleted = [
            (names.entity(head), relations.setdefault(relation, len(relations)), names.entity(tail))
            for head, relation, tail in self._rows.deleted["fact"]
        ]
        set_rows(made, "delete.fact", deleted, 3)
        facts = [
            (self._entity(h, stated=stated), r, self._entity(t, stated=stated), self._passage(p))
            for given, stated in ((self._rows.facts, True), (self._rows.read_facts, False))
            for h, r, t, p in given
        ]
        facts += [fact for one in read for fact in one.facts]
        set_rows(made, "fact.row", [(h, relations.setdefault(r, len(relations)), t, p) for h, r, t, p in facts], 4)
        if relations:
            made |= string_arrays("fact.relation", relations)


def _kept_slot(added: Mapping[Any, int], key: Any, find: Callable[[Any], int], gone: Set[int], what: str) -> int:
    """Return the slot of something that the change adds, or that exists and is not deleted."""
    slot = added.get(key) if isinstance(key, ID_TYPES) else None
    if slot is None:
        slot = find(key)
        if slot in gone:
            raise InputError(
                "conflict",
                None,
                "the change deletes the {what} {given!r}, and names it elsewhere; leave one out",
                what=what,
                given=key,
            )
    return slot


# ---- Arguments ----


End = tuple[str, Any]
_PAIR = (tuple, list)
_ENDS = {"src", "dst"}
EDGE_KEYS = {"src", "dst", "type", "weight", "stated_by"}


def passage_arrays(passages: Any) -> dict[str, Any]:
    """Return the arrays of a table of passages, with their ids, metadata and texts to index."""
    table = read_table(passages, PASSAGES)
    if table.num_rows and "id" not in table.columns:
        tables.refuse_value(table.where(0), "id", None, "a string or an integer: passages of a change need ids")
    texts, titles, ids = tables.texts(table, "text"), tables.texts(table, "title", default=""), tables.row_ids(table)
    return {
        **parts.passages.build(ids, titles, texts),
        **{label.codes: label.read(table, label.what, None) for label in LABELS},
        "ids": ids,
        "metadata": tables.objects(table, "metadata"),
        "where": table.where,
        "texts": [text_to_index(title, text) for title, text in zip(titles, texts, strict=True)],
    }


#: The arrays of passages, in the order of a payload.
_PASSAGE_ARRAYS = (
    *(f"passage.{part}" for part in ("length", "id.number", "vectors")),
    *(f"passage.{of}.{part}" for of in ("id", "title", "text") for part in ("offsets", "bytes")),
)


def joined_arrays(added: Sequence[Mapping[str, Any]], types: Mapping[str, str]) -> dict[str, Any]:
    """Return the arrays of several tables of passages as one; ``types`` are the index's types of metadata."""
    made = {name: added[0][name] for name in _PASSAGE_ARRAYS if name in added[0]}
    for name in made if len(added) > 1 else ():
        own = [part[name] for part in added]
        if name.endswith(".offsets"):
            own = [np.zeros(1, np.int64), np.cumsum(np.concatenate([np.diff(offsets) for offsets in own]))]
        made[name] = np.concatenate(own)
    for label in LABELS:
        made |= label_arrays(label, [value for part in added for value in part[label.codes]])
    return made | metadata_arrays([row for part in added for row in part["metadata"]], types, partial(place, added))


def place(added: Sequence[Mapping[str, Any]], row: int) -> str:
    """Describe a row of several tables of passages in an error message."""
    for part in added[:-1]:
        if row < len(part["ids"]):
            return str(part["where"](row))
        row -= len(part["ids"])
    return str(added[-1]["where"](row))


def set_rows(made: dict[str, Any], name: str, rows: Sequence[Any], columns: int = 0) -> None:
    """Set an array of integers, unless it is empty."""
    if rows:
        made[name] = np.array(rows, np.int64).reshape((-1, columns) if columns else -1)


def alias_pairs(aliases: Any) -> list[tuple[str, str]]:
    """Return the pairs (name of an entity, alias)."""
    check_type(aliases, "aliases", Mapping, "a mapping of an entity's name to a list of aliases")
    return [(name, alias) for name, own in aliases.items() for alias in checked_texts(own, f"aliases[{name!r}]")]


def fact_rows(given: Any, width: int, what: str) -> list[tuple[Any, ...]]:
    """Return facts as tuples of ``width`` parts; ``what`` describes them in errors."""
    rows = []
    for at, row in enumerate(check_list(given, "facts")):
        whole = isinstance(row, Sequence) and not isinstance(row, str) and len(row) == width
        if not whole or not all(isinstance(part, str) for part in row[:3]):
            raise wrong_value(row, f"facts[{at}]", what, "type")
        rows.append(tuple(row))
    return rows


def edge_of(edge: Any, field: str, keys: Set[str], first: str) -> tuple[tuple[End, End], str]:
    """Return the ends and the type of an edge, by default the index's first type; it may have these keys."""
    if not isinstance(edge, Mapping) or not _ENDS <= edge.keys() <= keys:
        raise wrong_value(edge, field, f"a mapping with src and dst; allowed: {', '.join(sorted(keys))}", "type")
    kind = check_type(edge.get("type", first), f"{field}.type", str, "a string")
    return (_end(edge["src"], f"{field}.src"), _end(edge["dst"], f"{field}.dst")), kind


def _end(end: Any, field: str) -> End:
    """Return the end of an edge: its kind, and its id or name."""
    if not isinstance(end, _PAIR) or len(end) != 2 or end[0] not in ("passage", "entity"):
        raise wrong_value(end, field, "('passage', id) or ('entity', name)", "type")
    return (end[0], end[1])


def term_arrays(rows: list[list[str]]) -> dict[str, Any]:
    """Return the counts of each term in each passage, in CSR form by term."""
    columns = defaultdict[str, list[tuple[int, int]]](list)
    for passage, row in enumerate(rows):
        for term, count in Counter(row).items():
            columns[term].append((passage, count))
    terms = sorted(columns)
    entries = [entry for term in terms for entry in columns[term]]
    return {
        **string_arrays("lexical.term", terms),
        "lexical.indptr": np.array([0, *accumulate(len(columns[term]) for term in terms)], np.int64),
        "lexical.passage": np.array([passage for passage, _ in entries], np.int64),
        "lexical.count": np.array([count for _, count in entries], np.int32),
    }
