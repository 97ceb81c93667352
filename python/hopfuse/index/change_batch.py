"""Resolve a change: find the slots of the ids and names in it, and build the arrays of its batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .additions import Additions, ReadPassages, additions
from .change_rows import End, joined_arrays, place, set_rows, term_arrays
from .contents import PassageId
from .file.columns import string_arrays
from .filters import Where
from .merge_entities import Deleted, merged_slots, restated
from .names import ID_TYPES, Names, no_passage
from .parts.metadata_build import flattened
from .parts.passages import LABELS
from .write_scope import check_added, check_edges, check_memory


@dataclass
class ChangeRows:
    """The additions and deletions of a change, by ids and names, in the order of the calls."""

    deleted: dict[str, list[Any]] = field(
        default_factory=lambda: {"passage": [], "entity": [], "alias": [], "edge": [], "fact": []}
    )
    replaced: list[PassageId] = field(default_factory=list)  # ids that are deleted if they exist
    passages: list[dict[str, Any]] = field(default_factory=list)
    entities: list[dict[str, Any]] = field(default_factory=list)
    aliases: list[tuple[str, str]] = field(default_factory=list)
    merged: list[tuple[str, str]] = field(default_factory=list)  # the entity that stays, and one that goes
    edges: list[tuple[End, End, str, float, PassageId | None]] = field(default_factory=list)
    facts: list[tuple[str, str, str, PassageId]] = field(default_factory=list)
    read: list[ReadPassages] = field(default_factory=list)
    source: str | None = None


class BatchBuilder:
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
            read.append(restated(names.rows(), names, self._heirs, self._deleted()))
            self._stated.update(self._heirs.values())
        if self._only is not None:
            aliases = [alias for one in read for _, alias in one.aliases]
            kinds = dict.fromkeys(edge[2] for one in read for edge in one.edges)
            check_memory(self._only, aliases, kinds, names.edge_types)
        self._add_entities(fresh, listed)
        self._add_aliases(read)
        self._add_edges(read)
        self._add_facts(read)
        self._state_entities([part["stated"] for part, _ in listed.values()], len(fresh))
        if rows.source is not None:
            made |= string_arrays("source.state", [rows.source])
        return made

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
        check_edges(only, rows.edges, names.edge_types)
        metadata = [row for part in rows.passages for row in part["metadata"]]
        flat = flattened(metadata, names.metadata_types, partial(place, rows.passages))
        check_added(only, [id for part in rows.passages for id in part["ids"]], flat, names.metadata_types)
        ends = [key for a, b, *_ in rows.edges for what, key in (a, b) if what == "passage"]
        stating = [*(edge[4] for edge in rows.edges), *(fact[3] for fact in rows.facts)]
        return names.hidden([*rows.deleted["passage"], *rows.replaced, *ends, *stating], only)

    def _deleted_passages(self) -> set[int]:
        names, rows = self._names, self._rows
        replaced = {names.passage(id) for id in rows.replaced if names.has_passage(id)} - self._hidden
        return replaced.union(map(self._old_passage, rows.deleted["passage"]))

    def _old_passage(self, id: Any) -> int:
        slot = self._names.passage(id)
        if slot in self._hidden:
            raise no_passage(id)
        return slot

    def _passage(self, id: Any) -> int:
        return _kept_slot(self._new_passages, id, self._old_passage, self._gone_passages, "passage")

    def _entity(self, name: Any) -> int:
        """Return the slot of an entity by its name, or by a spelling with the key of one entity."""
        names = self._names
        if isinstance(name, str) and name not in self._new_entities and not names.entities(name):
            alike = [slot for slot in names.alike(name) if slot not in self._gone_entities]
            if len(alike) == 1:
                self._new_entities[name] = alike[0]
        slot = _kept_slot(self._new_entities, name, names.entity, self._gone_entities, "entity")
        self._stated.add(slot)
        return slot

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

    def _end(self, end: End) -> int:
        kind, key = end
        return self._passage(key) if kind == "passage" else -1 - self._entity(key)

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
        names.check_new_ids(ids, self._gone_passages, partial(place, parts))
        for label in LABELS:
            names.check_labels(label, [value for part in parts for value in part[label.codes]])
        if not parts:
            return
        self._made |= joined_arrays(parts, names.metadata_types)
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
                if part["missing"] and not exists and not part["word"]:
                    known = [slot for slot in names.alike(name) if slot not in self._gone_entities]
                    known += [keys[key] for key in [names.key(name)] if key in keys]
                if part["missing"] and (exists or known):
                    slot = self._new_entities[name] if name in self._new_entities else known[0]
                    if not exists:
                        self._spell(name, slot)
                    if part["stated"]:
                        self._stated.update(known or [slot])
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
            (self._end(a), self._end(b), kind, weight, -1 if by is None else self._passage(by))
            for a, b, kind, weight, by in rows.edges
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
        facts = [(self._entity(h), r, self._entity(t), self._passage(p)) for h, r, t, p in self._rows.facts]
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
