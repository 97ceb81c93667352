"""Add, delete and read passages of an index here or on a server, for the stores of frameworks."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, Literal, NamedTuple
from weakref import WeakValueDictionary, finalize

import numpy as np

from .._validation import check_type, wrong_type
from ..client import Client
from ..encoders import recorded_encoder
from ..errors import InputError
from ..extract import WordReader, build_memory
from ..index import Index, LiveIndex, Where
from .searcher import Filter, Searcher, as_where, conditions_of

#: What to do with a passage whose id exists.
Existing = Literal["replace", "skip", "refuse"]
Row = Mapping[str, Any]
#: How an index is built for a directory that has none.
NEW = {"reader": "words", "metric": "cosine"}


class StoredPassage(NamedTuple):
    """A passage as a store returns it."""

    id: str | int
    title: str
    text: str
    document: str | int | None
    metadata: dict[str, Any]


class PassageStore:
    """Passages that a framework adds, deletes and reads; :attr:`searcher` finds what was added at once.

    Attributes
    ----------
    searcher : Searcher
    """

    searcher: Searcher

    def add(self, rows: Iterable[Row], existing: Existing = "replace") -> list[str | int]:
        """Add passages, all or none, and return the ids of those that were written.

        Parameters
        ----------
        rows : iterable of mappings
            ``id`` and ``text``; optionally ``title``, ``document``, ``metadata`` and ``vector``, which is not used if
            the index has no vectors. An index here uses vectors that all of the rows have, else its encoder's.
        existing : {"replace", "skip", "refuse"}
            What to do with a passage whose id exists, or that comes twice.

        Raises
        ------
        InputError
            A row that the index refuses, or, with ``"refuse"``, an id that exists; nothing is added.
        """
        raise NotImplementedError

    def delete(self, ids: Iterable[str | int]) -> int:
        """Delete the passages with these ids, as far as they exist, and return their number."""
        raise NotImplementedError

    def delete_all(self, allow: Filter | None = None) -> int:
        """Delete the passages that a filter allows, by default all, and return their number."""
        raise NotImplementedError

    def ids_of(self, documents: Iterable[str | int]) -> list[str | int]:
        """Return the ids of the passages of some documents."""
        wanted = {str(one) for one in documents}
        return [one.id for one in self.matching() if one.document is not None and str(one.document) in wanted]

    def read(self, ids: Iterable[str | int]) -> list[StoredPassage]:
        """Return the passages with these ids, as far as they exist."""
        raise NotImplementedError

    def matching(self, allow: Filter | None = None) -> list[StoredPassage]:
        """Return the passages that a filter allows, by default all, in the order in which they were added."""
        raise NotImplementedError

    def count(self, allow: Filter | None = None) -> int:
        """Return the number of passages that a filter allows, by default of all."""
        raise NotImplementedError

    def close(self) -> None:
        """Release what the store holds: a directory's lock, if no other store of this process uses it; connections."""
        raise NotImplementedError

    def __deepcopy__(self, _: Any) -> PassageStore:
        """Return the store itself: frameworks copy their programs."""
        return self


def open_store(
    source: Any,
    *,
    encoder: Any = None,
    create: Mapping[str, Any] | None = None,
    key: str | None = None,
    index: str | None = None,
    **settings: Any,
) -> PassageStore:
    """Return a store over a directory, a writable live index, or a server.

    Parameters
    ----------
    source : path, LiveIndex or str
        A directory, which this process alone may change while the store is open, and where an empty index is made if
        there is none; a LiveIndex opened with ``writable=True``; or the URL of a server with ``--writable``.
    encoder : Encoder or its name, optional
        Of passages and questions, for an index here; by default the one whose name the index keeps.
    create : mapping, optional
        Arguments of :meth:`hopfuse.Index.build` if an index is made, over ``{"reader": "words", "metric": "cosine"}``,
        such as ``{"metadata_types": {"user": "string"}}``, by which an empty index can be filtered.
    key, index, **settings
        As of :class:`.searcher.Searcher`.

    Raises
    ------
    InputError
        ``source`` has another type or cannot be changed, or the directory is open for writing elsewhere.

    Examples
    --------
    >>> import tempfile
    >>> from hopfuse.adapters.store import open_store
    >>> store = open_store(tempfile.mkdtemp())
    >>> store.add([{"id": "a", "text": "Ada wrote notes."}, {"id": "b", "text": "Babbage built the engine."}])
    ['a', 'b']
    >>> store.searcher.search(["Who wrote notes?"], k=1)[0][0].id, store.delete(["a", "c"]), store.count()
    ('a', 1, 1)
    """
    if isinstance(source, str) and source.startswith(("http://", "https://")):
        given = {"encoder": encoder, **settings}
        about = {name: value for name, value in given.items() if value is not None}
        return ServerStore(source, Searcher(source, key=key, index=index, **about), key=key, index=index)
    if isinstance(source, LiveIndex):
        folder = _Folder(source)
    elif isinstance(source, str | os.PathLike):
        folder = _opened(Path(source), encoder, {**NEW, **(create or {})})
    else:
        raise wrong_type(source, "source", "a directory, a LiveIndex that is open for writing, or the URL of a server")
    return FolderStore(folder, Searcher(folder.live, key=key, index=index, encoder=encoder, **settings))


# ---- A directory -----------------------------------------------------------------------------------------------------


class _Folder:
    """A directory that is open for writing, shared by the stores of this process that use it."""

    def __init__(self, live: LiveIndex[Index]) -> None:
        live.change()  # refuses one that is open for reading
        self.live, self.lock = live, RLock()
        words = live.index.words
        self.words = None if words is None else WordReader.like(words)


_FOLDERS: WeakValueDictionary[str, _Folder] = WeakValueDictionary()
_OPENING = RLock()


def _opened(path: Path, encoder: Any, create: Mapping[str, Any]) -> _Folder:
    """Return the folder that this process has open, or open it; an index is made if there is none."""
    with _OPENING:
        place = os.path.realpath(path)
        found = _FOLDERS.get(place)
        if found is None:
            if not path.exists() or not any(path.iterdir()):
                _create(path, encoder, create)
            built = Index.open(path).encoder
            if encoder is None and built is not None:
                encoder = recorded_encoder(built.name, built.dim, built.normalize)
            live = Index.open(path, writable=True, encoder=encoder)
            found = _FOLDERS[place] = _Folder(live)
            finalize(found, live.close)
        return found


def _create(path: Path, encoder: Any, create: Mapping[str, Any]) -> None:
    """Make an empty index, unless another process does so first: a directory appears with its index or not at all."""
    given = None if isinstance(encoder, str) and encoder == "none" else encoder
    empty = Index.build([], encoder=given, **create)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        empty.save(draft)
        os.chmod(draft, 0o777 & ~_umask())
        with contextlib.suppress(OSError):  # the other process's index is opened
            os.replace(draft, path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _umask() -> int:
    found = os.umask(0o077)
    os.umask(found)
    return found


class FolderStore(PassageStore):
    """A store over an index in this process; see :func:`open_store`."""

    def __init__(self, folder: _Folder, searcher: Searcher) -> None:
        self._folder: _Folder | None = folder
        self.searcher = searcher

    def add(self, rows: Iterable[Row], existing: Existing = "replace") -> list[str | int]:
        """Add passages; see :class:`PassageStore`."""
        own, folder = _distinct(rows, existing), self._open()
        with folder.lock:
            index = folder.live.index  # for what it has, which no change adds or takes away
            if existing == "skip":
                index = folder.live.snapshot()
                own = [row for row in own if _row_of(index, row["id"]) is None]
            if own:
                vectors = [row.pop("vector", None) for row in own]
                with folder.live.change() as change:
                    all_given = index.dim is not None and all(one is not None for one in vectors)
                    given = np.stack([np.asarray(one, np.float32) for one in vectors]) if all_given else None
                    change.add_passages(own, vectors=given, replace=existing == "replace")
                    if folder.words is not None:
                        change.add_memory(build_memory(folder.words.read(own)))
        return [row["id"] for row in own]

    def delete(self, ids: Iterable[str | int]) -> int:
        """Delete passages by their ids; see :class:`PassageStore`."""
        folder, wanted = self._open(), [*dict.fromkeys(ids)]
        with folder.lock:
            try:
                return _delete(folder.live, wanted)
            except InputError as error:
                if error.code != "unknown":
                    raise
            ids_of_rows = folder.live.snapshot().passage_ids
            return _delete(folder.live, [ids_of_rows[row] for row in self._rows(wanted)])

    def delete_all(self, allow: Filter | None = None) -> int:
        """Delete passages by a filter; see :class:`PassageStore`."""
        folder = self._open()
        if allow is None:
            return self.delete(folder.live.snapshot().passage_ids)
        with folder.live.change() as change:
            change.delete_passages(where=as_where(allow))
        return 0 if change.deleted is None else change.deleted.passages

    def ids_of(self, documents: Iterable[str | int]) -> list[str | int]:
        """Return the ids of the passages of some documents."""
        wanted, index = {str(one) for one in documents}, self._open().live.snapshot()
        codes = [code for code, name in enumerate(index.documents.values) if str(name) in wanted]
        if index.documents.codes is None or not codes:
            return []
        return [index.passage_ids[row] for row in np.flatnonzero(np.isin(index.documents.codes, codes)).tolist()]

    def read(self, ids: Iterable[str | int]) -> list[StoredPassage]:
        """Return passages by their ids; see :class:`PassageStore`."""
        return _stored(self._open().live.snapshot(), self._rows(ids))

    def matching(self, allow: Filter | None = None) -> list[StoredPassage]:
        """Return passages by a filter; see :class:`PassageStore`."""
        index = self._open().live.snapshot()
        return _stored(index, _matching(index, allow))

    def count(self, allow: Filter | None = None) -> int:
        """Return a number of passages; see :class:`PassageStore`."""
        index = self._open().live.snapshot()
        return index.num_passages if allow is None else len(_matching(index, allow))

    def close(self) -> None:
        """Close the store; see :class:`PassageStore`. Searches go on, and follow other writers."""
        self._folder = None

    def _rows(self, ids: Iterable[str | int]) -> list[int]:
        index = self._open().live.snapshot()
        rows = [_row_of(index, id) for id in dict.fromkeys(ids)]
        return [row for row in rows if row is not None]

    def _open(self) -> _Folder:
        if self._folder is None:
            raise InputError("denied", None, "the store is closed; make a new one")
        return self._folder


def _row_of(index: Index, id: str | int) -> int | None:
    """Return the row of a passage, also if frameworks have an integer id as a string; None if there is none."""
    if index.num_passages and isinstance(index.passage_ids[0], int) and isinstance(id, str):
        id = int(id) if id.removeprefix("-").isdecimal() else id
    row = index.find(id)
    return None if row < 0 else row


def _matching(index: Index, allow: Filter | None) -> list[int]:
    if allow is None:
        return list(range(index.num_passages))
    return np.flatnonzero(index.mask(as_where(allow))).tolist()


def _delete(live: LiveIndex[Index], ids: list[str | int]) -> int:
    """Delete passages, all of which exist, and return their number."""
    if ids:
        with live.change() as change:
            change.delete_passages(ids)
    return len(ids)


def _stored(index: Index, rows: Iterable[int]) -> list[StoredPassage]:
    return [
        StoredPassage(
            index.passage_ids[row], index.titles[row], index.texts[row], index.documents[row], index.metadata.row(row)
        )
        for row in rows
    ]


# ---- A server --------------------------------------------------------------------------------------------------------


class ServerStore(PassageStore):
    """A store over a server's index; see :func:`open_store`. It does not list passages by a filter."""

    def __init__(self, url: str, searcher: Searcher, *, key: str | None, index: str | None) -> None:
        self.searcher, self._index = searcher, index
        self._client = Client(url, key=key)
        finalize(self, self._client.close)  # frameworks do not close their stores

    def add(self, rows: Iterable[Row], existing: Existing = "replace") -> list[str | int]:
        """Add passages; see :class:`PassageStore`."""
        own = _distinct(rows, existing)
        if existing != "replace":
            known = {one.id for one in self.read(row["id"] for row in own)}
            if known and existing == "refuse":
                raise _exists(next(row["id"] for row in own if row["id"] in known))
            own = [row for row in own if row["id"] not in known]
        if any("vector" in row for row in own) and not self._has_vectors:
            own = [{name: value for name, value in row.items() if name != "vector"} for row in own]
        if own:
            self._wrote(self._client.add_passages(own, replace=existing == "replace", index=self._index))
        return [row["id"] for row in own]

    def delete(self, ids: Iterable[str | int]) -> int:
        """Delete passages by their ids; see :class:`PassageStore`."""
        deleted = 0
        for id in dict.fromkeys(ids):
            with _unless_unknown():
                self._wrote(self._client.delete_passage(id, index=self._index))
                deleted += 1
        return deleted

    def delete_all(self, allow: Filter | None = None) -> int:
        """Delete passages by conditions; see :class:`PassageStore`."""
        if allow is None:
            return self.delete([one.id for one in self.matching()])
        conditions = conditions_of(allow) if isinstance(allow, Where) else allow
        deleted = self._client.delete_passages(where=conditions, index=self._index)
        if deleted.seq is not None:
            self._wrote(deleted.seq)
        return deleted.passages

    def read(self, ids: Iterable[str | int]) -> list[StoredPassage]:
        """Return passages by their ids; see :class:`PassageStore`."""
        found = []
        for id in dict.fromkeys(ids):
            with _unless_unknown():
                found.append(_served(self._client.passage(id, **self._where())))
        return found

    def matching(self, allow: Filter | None = None) -> list[StoredPassage]:
        """Return all passages, in the order of their ids."""
        if allow is not None:
            raise InputError(
                "unsupported",
                "allow",
                "{field} is given, and a server lists passages without a filter; open the index here",
            )
        return [_served(one) for page in self._client.passages(**self._where()) for one in page]

    def count(self, allow: Filter | None = None) -> int:
        """Return a number of passages; see :class:`PassageStore`."""
        return len(self.matching(allow))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    @cached_property
    def _has_vectors(self) -> bool:
        """Return whether the server's searches read vectors."""
        listed = {one["name"]: one for one in self._client.indexes()}
        about = next(iter(listed.values())) if self._index is None else listed[self._index]
        return about["dim"] is not None

    def _where(self) -> Any:
        return {"index": self._index, "at_least": self.searcher.written}

    def _wrote(self, seq: int) -> None:
        self.searcher.written = max(seq, self.searcher.written or 0)


@contextlib.contextmanager
def _unless_unknown() -> Iterator[None]:
    """Leave out a passage that does not exist."""
    try:
        yield
    except InputError as error:
        if error.code != "unknown":
            raise


def _served(one: Any) -> StoredPassage:
    about = one.get("title") or "", one["text"], one.get("document"), one.get("metadata") or {}
    return StoredPassage(one["id"], *about)


# ---- Rows ------------------------------------------------------------------------------------------------------------


def _distinct(rows: Iterable[Row], existing: Existing) -> list[dict[str, Any]]:
    """Return rows without repeated ids: the last one of each, or the first if those that exist are skipped."""
    found: dict[Any, dict[str, Any]] = {}
    for at, row in enumerate(rows):
        own = dict(check_type(row, f"rows[{at}]", Mapping, "a mapping"))
        if own["id"] in found and existing == "refuse":
            raise _exists(own["id"])
        if existing == "replace":
            found.pop(own["id"], None)
        found.setdefault(own["id"], own)
    return list(found.values())


def _exists(id: Any) -> InputError:
    return InputError("duplicate", "id", "{field} is {given!r}, which exists; give another, or replace it", given=id)
