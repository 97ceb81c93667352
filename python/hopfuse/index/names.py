"""The slots of passages and entities by id and name, against which a change of an index is checked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import counted
from ..errors import InputError
from ..text import canonical_key
from .contents import Contents, PassageId
from .filters import Where
from .log.records import LogRecord, Slots
from .log.rows import DeltaRows
from .parts.passages import DOCUMENT, LABELS, Label, label_values
from .slot_metadata import SlotMetadata
from .supports import Supports, statements_in
from .write_scope import meets

#: Returns a key for each name; spellings of the same thing have the same key.
Keys = Callable[[Sequence[str]], Sequence[str]]

#: The types of ids of passages.
ID_TYPES = (str, int, np.integer)
#: Characters of an alias's key from which it is found in other spellings; a shorter one may be a code, such as "IT".
LEAST_ALIAS = 4
#: The number of batches after which statements about entities are counted, whether or not one deletes something.
_MOST_UNCOUNTED = 256
#: The arrays of a batch that change aliases, in the order in which they apply.
_ALIASES = ("delete.alias", "alias")


class Names:
    """Slots of the passages' ids and of the entities' names, after the last batch."""

    def __init__(self, base: Contents, delta: DeltaRows) -> None:
        self.base = base
        self.slots, self._delta = delta.after, delta
        self.rule = base.name_rule  # refuses names that another rule folds
        self.relations = dict.fromkeys(delta.relations)
        first = base.num_entities if base.words is None else base.words.first
        self._is_word = bytearray(first) + bytearray(b"\1") * (base.num_entities - first)
        self._is_word += delta["entity.word"].tobytes()
        self._is_stated = bytearray(b"\1") * delta.after.entities
        if delta.knows("entity.stated"):
            self._is_stated = bytearray(delta.whole("entity.stated").tobytes())
        self._state(delta)
        self._numbered = {label for label in LABELS if label.numbers and delta.knows(label.numbers)}
        self._named = {label for label in LABELS if delta.knows(f"{label.strings}.offsets")}
        self._aliases: dict[int, list[str]] = {}
        self._by_alias: dict[str, list[int]] | None = None
        self._keyed: dict[bool, dict[str, list[int]]] = {False: {}, True: {}}  # by: are they words
        self._keyed_to = {False: 0, True: 0}
        self._word_keys: Keys | None = None  # of the words, if a change has looked for one
        self._kind: type | None = None
        self._exists = bytearray()  # by slot of a passage
        self._passages: dict[PassageId, int] = {}
        self._entities: dict[str, list[int]] = {}
        self._id_of: dict[int, PassageId] = {}
        self._name_of: dict[int, str] = {}
        self.metadata = SlotMetadata(base, delta)
        self.edge_types = delta.edge_types
        self._documents: dict[str | int, list[int]] = {}  # slots by document, of the batches that were applied
        self._supports: Supports | None = None
        self._uncounted: list[LogRecord] = []
        ids: Sequence[PassageId] = delta.whole("passage.id.number").tolist() or delta.column("passage.id")
        self._add(ids, delta.column("entity.name"), Slots(0, 0))
        self._delete(delta)
        aliases = [(of, kind, *pair) for kind, name in enumerate(_ALIASES) for of, pair in _dated(delta, name)]
        for _, kind, slot, alias in sorted(aliases, key=lambda one: one[:2]):
            self._follow_alias(kind, slot, alias)

    def rows(self) -> DeltaRows:
        """Return the rows of the index when the names were read; nothing may have been applied since."""
        assert self.slots == self._delta.after
        return self._delta

    def apply(self, batch: LogRecord) -> None:
        """Apply a batch."""
        self._count(batch)
        self._delete(batch)
        for kind, name in enumerate(_ALIASES):
            if f"{name}.entity" in batch.arrays:
                for slot, alias in zip(batch[f"{name}.entity"].tolist(), batch.strings(f"{name}.name"), strict=True):
                    self._follow_alias(kind, slot, alias)
        self._is_word += batch["entity.word"].astype(np.uint8).tobytes()
        count = batch.after.entities - batch.before.entities
        added = batch["entity.stated"].tobytes() if "entity.stated" in batch.arrays else b"\1" * count
        self._is_stated += added
        self._state(batch)
        self._numbered |= {label for label in LABELS if label.numbers in batch.arrays}
        self._named |= {label for label in LABELS if f"{label.strings}.offsets" in batch.arrays}
        self.relations |= dict.fromkeys(batch.strings("fact.relation"))
        ids: Sequence[PassageId] = batch["passage.id.number"].tolist() or batch.strings("passage.id")
        self._add(ids, batch.strings("entity.name"), batch.before)
        self.metadata.append(batch)
        self._add_documents(batch)
        self.edge_types += [kind for kind in batch.strings("edge.type_name") if kind not in self.edge_types]
        self.slots = batch.after

    def passage(self, id: Any) -> int:
        """Return the slot of an existing passage."""
        slot = self._passages.get(id) if _is_id(id) else None
        if slot is None:
            raise no_passage(id)
        return slot

    def has_passage(self, id: Any) -> bool:
        """Return whether a passage with the id exists."""
        return _is_id(id) and id in self._passages

    def hidden(self, ids: Iterable[Any], only: Where) -> set[int]:
        """Return the slots of the passages with these ids that a filter does not allow."""
        return self._not_allowed({self._passages[id] for id in ids if self.has_passage(id)}, only)

    def _not_allowed(self, slots: Collection[int], only: Where) -> set[int]:
        ordered = sorted(slots)
        if not ordered:
            return set()
        allowed = meets(only, [self.metadata.row(slot) for slot in ordered], self.metadata.types)
        return {slot for slot, is_allowed in zip(ordered, allowed, strict=True) if not is_allowed}

    def matching(self, only: Where) -> list[int]:
        """Return the slots of the passages that a filter allows, ascending."""
        found: list[int] = np.flatnonzero(self.allowed(only)).tolist()
        return found

    def allowed(self, only: Where) -> NDArray[np.bool_]:
        """Return which passages exist and are allowed by a filter, by slot."""
        return self.metadata.mask(only) & self._exist()

    def of_document(self, document: Any, only: Where | None = None) -> list[int]:
        """Return the slots of the passages of a document, ascending, apart from those that a filter does not allow."""
        if not _is_id(document):
            return []
        slots = [slot for slot in self._read_in(document) if slot in self._id_of]
        slots += [slot for slot in self._documents.get(document, ()) if slot in self._id_of]
        hidden = set() if only is None else self._not_allowed(slots, only)
        return [slot for slot in slots if slot not in hidden]

    def _read_in(self, document: str | int) -> list[int]:
        """Return the slots of the passages of a document when the names were read, whether or not they still exist."""
        delta, label = self._delta, DOCUMENT
        known: Sequence[Any] = label_values(delta.sections, label)
        kind = str if label in self._named else int
        if not delta.knows(label.codes) or not isinstance(document, kind):
            return []
        place = bisect_left(known, document)
        if place == len(known) or known[place] != document:
            numbers = label in self._numbered
            added: list[Any] = delta[label.numbers].tolist() if numbers else delta.strings(label.strings)
            if document not in added:
                return []
            place = len(known) + added.index(document)
        found: list[int] = np.flatnonzero(delta.whole(label.codes) == place).tolist()
        return found

    def _add_documents(self, batch: LogRecord) -> None:
        if DOCUMENT.codes in batch.arrays:
            values = batch[DOCUMENT.numbers].tolist() or batch.strings(DOCUMENT.strings)
            for slot, code in enumerate(batch[DOCUMENT.codes].tolist(), batch.before.passages):
                if code >= 0:
                    self._documents.setdefault(values[code], []).append(slot)

    def _exist(self) -> NDArray[np.bool_]:
        """Return which passages exist, by slot."""
        return np.frombuffer(bytes(self._exists), np.bool_)

    def orphans(self, batch: LogRecord) -> list[int]:
        """Return the slots, ascending, of entities that a batch leaves without a statement, and no user stated."""
        if 0 not in self._is_stated:
            return []
        return [slot for slot in self.supports().orphans(batch).tolist() if not self._is_stated[slot]]

    def supports(self) -> Supports:
        """Return the statements about entities after the last batch."""
        if self._supports is None:
            self._supports = Supports(self.base, self._delta)
            for batch in self._uncounted:
                self._supports.apply(batch)
            self._uncounted = []
        return self._supports

    def _count(self, batch: LogRecord) -> None:
        """Count the statements of a batch, or keep them until there is a need to."""
        if self._supports is not None:
            self._supports.apply(batch)
            return
        self._uncounted.append(statements_in(batch))
        if len(self._uncounted) == _MOST_UNCOUNTED:
            self.supports()

    def entity(self, name: Any, exists: Callable[[int], bool] | None = None) -> int:
        """Return the slot of the only entity with a name; of a name and a word, that of the name.

        ``exists`` returns whether a slot counts; by default all do.
        """
        slots = self._entities.get(name, []) if isinstance(name, str) else []
        slots = slots if exists is None else list(filter(exists, slots))
        slots = [slot for slot in slots if not self._is_word[slot]] or slots
        if len(slots) != 1:
            raise InputError(
                "duplicate" if slots else "unknown",
                None,
                "{count} have the name {given!r}; it must be the name of one entity, which exists or is added first",
                count=counted(len(slots), "entity"),
                given=name,
            )
        return slots[0]

    def check_new_ids(
        self, ids: Sequence[PassageId], gone: Collection[int], hidden: Collection[int], where: Callable[[int], str]
    ) -> None:
        """Refuse ids that exist and are not those of the slots ``gone``, and ids of another type than the index's.

        Those of the slots ``hidden`` cannot be replaced.
        """
        for at, id in enumerate(ids):
            if self._kind is not None and not isinstance(id, self._kind):
                raise InputError(
                    "type",
                    "id",
                    "the id {given!r} is of another type than the index's ids, {allowed}",
                    given=id,
                    allowed=self._kind.__name__,
                ).at(where(at))
            slot = self._passages.get(id)
            if slot is not None and slot not in gone:
                if slot in hidden:
                    raise InputError(
                        "duplicate", "id", "a passage has the id {given!r} already; give another id", given=id
                    ).at(where(at))
                raise InputError(
                    "duplicate",
                    "id",
                    "a passage has the id {given!r} already; give another id, or use {@replace}",
                    given=id,
                ).at(where(at))

    def check_labels(self, label: Label, values: Sequence[str | int | None]) -> None:
        """Refuse labels of another type than those that the index has."""
        known = int if label in self._numbered else str if label in self._named else None
        for value in values:
            if known is not None and value is not None and not isinstance(value, known):
                raise InputError(
                    "type",
                    label.what,
                    "a passage has the {what} {given!r}, which is of another type than the index's {what}s, {allowed}",
                    what=label.what,
                    given=value,
                    allowed=known.__name__,
                )

    def is_stated(self, slot: int) -> bool:
        """Return whether a user stated an entity."""
        return bool(self._is_stated[slot])

    def entities(self, name: str, *, words: bool = False) -> list[int]:
        """Return the slots of the entities with a name that are words, or those that are not."""
        return [slot for slot in self._entities.get(name, ()) if self._is_word[slot] == words]

    def is_word(self, slot: int) -> bool:
        """Return whether an entity is a word."""
        return bool(self._is_word[slot])

    def key(self, name: str) -> str:
        """Return the key of a name by the index's rule; spellings of the same name have the same key."""
        return canonical_key(name, rule=self.rule)

    def alike(self, name: str) -> list[int]:
        """Return the slots of the entities, apart from words, that a spelling of a name may mean, ascending.

        They have a name with its key or, if none has, one has an alias with it. An alias whose key is shorter than
        :data:`LEAST_ALIAS` must be equal.
        """
        key = self.key(name)
        found = self._with(key, lambda names: list(map(self.key, names)), words=False)
        if found:
            return found
        owners = [slot for slot in self._aliased().get(key, ()) if self._is_called(slot, name, key)]
        return owners if len(owners) == 1 else []

    def _is_called(self, slot: int, name: str, key: str) -> bool:
        """Return whether an existing entity has an alias with a key."""
        own = self.aliases(slot) if slot in self._name_of else ()
        return name in own or (len(key) >= LEAST_ALIAS and any(self.key(alias) == key for alias in own))

    def _aliased(self) -> dict[str, list[int]]:
        """Return the slots of the entities that have, or had, an alias, by its key."""
        if self._by_alias is None:
            self._by_alias = {}
            rows = dict(enumerate(self.base.entity_aliases)) | self._aliases
            for slot in sorted(rows):
                if not self._is_word[slot]:
                    self._add_alias_keys(slot, rows[slot])
        return self._by_alias

    def _add_alias_keys(self, slot: int, aliases: Iterable[str]) -> None:
        if self._by_alias is not None:
            for key in dict.fromkeys(map(self.key, aliases)):
                slots = self._by_alias.setdefault(key, [])
                if slot not in slots:
                    slots.append(slot)

    def words_with(self, key: str, keys: Keys) -> list[int]:
        """Return the slots of the words that have a key; ``keys`` must be the same function at every call."""
        if self._word_keys is None:
            self._word_keys = keys
        return self._with(key, keys, words=True)

    def read_keys_as(self, other: Names) -> None:
        """Read the keys of names and of words now if other names have read theirs."""
        if other._keyed_to[False]:
            self.alike("")
        if other._word_keys is not None:
            self.words_with("", other._word_keys)

    def _with(self, key: str, keys: Keys, *, words: bool) -> list[int]:
        table, start = self._keyed[words], self._keyed_to[words]
        if start < self.slots.entities:
            fresh = [slot for slot in range(start, self.slots.entities) if self._is_word[slot] == words]
            fresh = [slot for slot in fresh if slot in self._name_of]
            for own, slot in zip(keys([self._name_of[slot] for slot in fresh]), fresh, strict=True):
                table.setdefault(own, []).append(slot)
            self._keyed_to[words] = self.slots.entities
        return [slot for slot in table.get(key, ()) if slot in self._name_of]

    def name(self, slot: int) -> str:
        """Return the name of an existing entity."""
        return self._name_of[slot]

    def aliases(self, slot: int) -> list[str]:
        """Return the aliases of an entity."""
        if slot not in self._aliases:
            known = slot < self.base.num_entities
            self._aliases[slot] = list(self.base.entity_aliases[slot]) if known else []
        return self._aliases[slot]

    def _delete(self, rows: LogRecord | DeltaRows) -> None:
        for slot in rows["delete.passage"].tolist():
            id = self._id_of.pop(slot)
            self._exists[slot] = 0
            if self._passages[id] == slot:  # not yet that of a later passage with the same id
                del self._passages[id]
        for slot in rows["delete.entity"].tolist():
            self._entities[self._name_of.pop(slot)].remove(slot)

    def _state(self, rows: LogRecord | DeltaRows) -> None:
        for slot in rows["stated.entity"].tolist():
            self._is_stated[slot] = 1

    def _follow_alias(self, kind: int, slot: int, alias: str) -> None:
        if _ALIASES[kind] == "alias":
            self.aliases(slot).append(alias)
            self._add_alias_keys(slot, [alias])
        else:
            self._aliases[slot] = [one for one in self.aliases(slot) if one != alias]

    def _add(self, ids: Sequence[PassageId], names: Iterable[str], first: Slots) -> None:
        self._exists += b"\1" * len(ids)
        for slot, id in enumerate(ids, first.passages):
            self._passages[id] = slot
            self._id_of[slot] = id
        if len(ids):
            self._kind = str if isinstance(ids[0], str) else int
        for slot, name in enumerate(names, first.entities):
            self._entities.setdefault(name, []).append(slot)
            self._name_of[slot] = name


def _dated(delta: DeltaRows, name: str) -> list[tuple[int, tuple[int, str]]]:
    """Return the batch, the entity and the alias of each row."""
    pairs = zip(delta[f"{name}.entity"].tolist(), delta.strings(f"{name}.name"), strict=True)
    return list(zip(delta.batch(f"{name}.entity").tolist(), pairs, strict=True))


def no_passage(id: Any) -> InputError:
    """Return the error for an id that no passage has, or only passages outside the filter of a change."""
    return InputError(
        "unknown", None, "there is no passage with the id {given!r} in the index or in this change", given=id
    )


def _is_id(id: Any) -> bool:
    return isinstance(id, ID_TYPES) and not isinstance(id, bool)
