"""One state of an index with what searches it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.distinct import distinct
from ..errors import HopfuseError, InputError
from ..index import Index, Where, where
from ..index.file.generations import generation_name
from ..recipes import RECIPES
from ..retriever import Retriever
from .config import IndexConfig
from .errors import in_request
from .keys import Principal


class SentPassage(NamedTuple):
    """A passage as it is sent; metadata is None if there is none."""

    id: str | int
    title: str
    text: str
    metadata: dict[str, Any] | None


#: Size of the cache of passages that were hits, without long ones: reading one from the file takes 25 us.
PASSAGES = 4096


@dataclass(frozen=True, eq=False)
class SearchQuery:
    """A checked query.

    Attributes
    ----------
    text : str or None
    vector : ndarray of float32, shape (d,), or None
    entities : list of str or int, or None
        None to find them in the text.
    allow : ndarray of int64, or None
        Ascending rows of the allowed passages; None for all.
    """

    text: str | None = None
    vector: NDArray[np.float32] | None = None
    entities: list[str | int] | None = None
    allow: NDArray[np.int64] | None = None


class IndexSnapshot:
    """One state of an index, with the retrievers of requests.

    Parameters
    ----------
    name : str
        Name of the index in requests.
    config : IndexConfig
    retriever : Retriever
        Of the state, with the recipe of requests that name none.
    """

    def __init__(self, name: str, config: IndexConfig, retriever: Retriever) -> None:
        self.name, self.retriever, self.index = name, retriever, retriever.index
        self.seq = self.index.seq
        self._bytes = _file_bytes(self.index)
        #: Retrievers that are made in advance, by recipe, the default one first.
        self.retrievers = {retriever.recipe.name: retriever}
        for recipe in config.recipes:
            if recipe not in self.retrievers:
                self.retrievers[recipe] = retriever.variant(recipe)
        self._rows: dict[Where, NDArray[np.int64]] = {}  # by the filter of keys
        # Bound to the index, not to the snapshot, which would then be in a reference cycle.
        self.passage = lru_cache(PASSAGES)(partial(_passage, self.index))

    def part_of(self, row: int, fields: frozenset[str]) -> SentPassage:
        """Return a passage with some of its fields, the others empty; it is not kept."""
        index = self.index
        return SentPassage(
            index.passage_ids[row],
            index.titles[row] if "title" in fields else "",
            index.texts[row] if "text" in fields else "",
            index.metadata.row(row) or None if "metadata" in fields else None,
        )

    @cached_property
    def recipes(self) -> list[str]:
        """The names of the recipes that the index can run."""
        return [name for name, kind in RECIPES.items() if not kind.missing(self.index)]

    @cached_property
    def longest(self) -> int:
        """A bound of the bytes of a passage: of its id, title, text and metadata."""
        index = self.index
        ids: Any = index.passage_ids
        return sum(one.longest() for one in (ids, index.titles, index.texts, index.metadata))

    @property
    def reads_texts(self) -> bool:
        """Whether a text is enough for the default recipe."""
        try:
            self.retriever.check_question("text")
        except HopfuseError:
            return False
        return True

    def is_shortened(self) -> bool:
        """Return whether the index's file is shorter than it was, so that its pages cannot be read."""
        return _file_bytes(self.index, self._bytes) < self._bytes

    def warm_up(self) -> None:
        """Search one query by each recipe, so that the first request does not wait for what is made only once."""
        for retriever in self.retrievers.values():
            retriever.warm_up()
        _ = self.longest

    def visible(self, principal: Principal) -> NDArray[np.bool_] | None:
        """Return the passages that a key sees, bool (P,); None for all.

        Raises
        ------
        InputError
            The key's filter names a column that the index does not have.
        """
        if principal.where is None:
            return None
        try:
            return self.index.mask(principal.where)
        except InputError as error:
            raise in_request(error, f"keys.{principal.name}.filter") from None

    def rows(self, allow: Sequence[Any] | Mapping[str, Any] | None, principal: Principal, field: str) -> Any:
        """Return the ascending rows allowed by a query's own filter and its key's; None for all.

        Parameters
        ----------
        allow : ids of passages, or conditions on metadata, optional
        principal : Principal
        field : str
            Name of the field in refusals.
        """
        seen = self.visible(principal)
        try:
            if allow is None:
                return None if principal.where is None or seen is None else self._rows_of_key(principal.where, seen)
            if isinstance(allow, Mapping):
                mask = self.index.mask(where(**allow))
                return np.flatnonzero(mask if seen is None else mask & seen)
            return distinct(self._rows_of(allow, seen)) if len(allow) else np.zeros(0, np.int64)
        except InputError as error:
            raise (in_request(error, field) if isinstance(allow, Mapping) else error.at(field=field)) from None

    def valid_rows(self, rows: NDArray[np.int64] | None, at: Any) -> NDArray[np.int64]:
        """Return those of some rows, ascending, None for all, whose passages are valid at a time."""
        mask = self.index.mask(self.index.valid_at(at))
        return np.flatnonzero(mask) if rows is None else rows[mask[rows]]

    def has_part(self, rows: NDArray[np.int64]) -> bool:
        """Return whether the part of the index with these passages exists, so that a search need not make it."""
        mask = np.zeros(self.index.num_passages, np.bool_)
        mask[rows] = True
        return mask in self.index.parts

    def _rows_of_key(self, filter: Where, seen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return a key's rows as the same object each time, so that a batch of one key has one filter."""
        if filter not in self._rows:
            self._rows[filter] = np.flatnonzero(seen)
        return self._rows[filter]

    def _rows_of(self, ids: Sequence[Any], seen: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """Return passages' rows; one that the key does not see is refused like one that does not exist."""
        if seen is None:
            return self.index.rows_of(ids)
        try:
            rows = self.index.rows_of(ids)
            first = None if seen[rows].all() else ids[int(np.argmin(seen[rows]))]
        except InputError:
            first = next(id for id in ids if not self._sees(id, seen))
        if first is not None:
            raise InputError("unknown", None, "there is no passage with the id {given!r}", given=first)
        return rows

    def _sees(self, id: Any, seen: NDArray[np.bool_]) -> bool:
        try:
            return bool(seen[self.index.row_of(id)])
        except InputError:
            return False


def _file_bytes(index: Index, otherwise: int = 0) -> int:
    """Return the size of the index's file; ``otherwise`` if it is removed, which does a mapped one no harm."""
    if index.directory is None or index.generation is None:
        return otherwise
    try:
        return (index.directory / generation_name(index.generation)).stat().st_size
    except OSError:
        return otherwise


def _passage(index: Index, row: int) -> SentPassage:
    return SentPassage(index.passage_ids[row], index.titles[row], index.texts[row], index.metadata.row(row) or None)


def own_id(index: Index, given: str) -> str | int | None:
    """Return an id of a path or a query in the type of the index's ids; None if no id can be written so."""
    ids = index.passage_ids
    if not (len(ids) and isinstance(ids[0], int)):
        return given
    digits = given.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 20):
        return None
    return int(given) if str(int(given)) == given else None


def allowed(queries: Sequence[SearchQuery], num_passages: int) -> NDArray[np.bool_] | None:
    """Return the masks of a batch: (P,) if all queries have the same rows, by identity, else (B, P); None for all."""
    first = queries[0].allow
    if all(query.allow is first for query in queries):
        if first is None:
            return None
        queries = queries[:1]
    masks = np.zeros((len(queries), num_passages), np.bool_)
    for mask, query in zip(masks, queries, strict=True):
        mask[query.allow] = True
    return masks if len(queries) > 1 else masks[0]
