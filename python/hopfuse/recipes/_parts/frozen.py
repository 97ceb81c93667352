"""Base class of recipes: immutable, picklable, and able to search a part of the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows_cache import RowsCache
from ..._validation import check_length
from ...index import Index, IndexPart
from ...types import Corpus
from ..protocol import Ranks, Words
from .filters import View, Views
from .isolated import Group, in_order, joined_hits, part_of_leg, part_of_matcher


class FrozenRecipe:
    """Base class of the recipes. Attributes are set once, and copies are constructed from the same arguments.

    A pickle therefore holds the index (an opened one by its path) and the collaborators, but nothing derived.
    """

    ranks: ClassVar[Ranks] = "passages"
    collaborators: ClassVar[tuple[str, ...]] = ("encoder", "matcher", "lexical")
    by_cosine: ClassVar[bool] = True
    answers: ClassVar[bool] = False
    index: Index
    config: Any
    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self):
            kind = type(self).__name__
            raise AttributeError(f"{name} of a {kind} cannot be changed: make another {kind}")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.index!r})"

    def __reduce__(self) -> Any:
        return _make, (type(self), *self._arguments)

    @classmethod
    def words(cls, config: Any = None) -> Words:
        """Return the lexical leg that the recipe uses by default."""
        return "none"

    @classmethod
    def space(cls, index: Index) -> Corpus | None:
        """Return the vectors that a question's vector is compared with, or None if the index has none."""
        return index.corpus if cls.ranks == "passages" else index.entity_corpus

    @classmethod
    def hit_ids(cls, index: Index) -> Sequence[str | int]:
        """Return the ids of what the recipe ranks, by row."""
        return index.passage_ids if cls.ranks == "passages" else index.entity_names

    @property
    def reach(self) -> int:
        """The most hits that a search can return."""
        return self.index.num_passages if self.ranks == "passages" else self.index.num_entities

    @cached_property
    def _views(self) -> Views:
        return Views(self.index)

    @cached_property
    def _kept(self) -> RowsCache[Any]:
        return RowsCache(self.index.num_passages)

    def _of_part(self, part: IndexPart) -> dict[str, Any]:
        """Return the collaborators and the config that differ for a part of the index."""
        given = self._arguments[1]
        return {
            "matcher": part_of_matcher(given["matcher"], part),
            "lexical": part_of_leg(given["lexical"], part.passages),
        }

    def _searched(self, view: View, given: Mapping[str, Any], *, k: int, trace: bool) -> list[tuple[Group, Any]]:
        """Return each group of questions with its results from an index of its passages alone.

        ``given`` maps names of parameters of ``search`` to their values, one row per question.
        """
        batch = view.of.size
        for name, rows in given.items():
            if rows is not None:
                check_length(len(rows), name, batch, "query")
        found = []
        for number, passages in enumerate(view.passages):
            part = self.index.part(passages)
            recipe = self._kept.get(passages, partial(self._alone, part))
            group = Group(np.flatnonzero(view.of == number), part, self.index, batch)
            asked = {name: group.of(rows) for name, rows in given.items() if name != "entities"}
            if "entities" in given:
                asked["entities"] = group.mentions(given["entities"])
            found.append((group, recipe.search(**asked, k=max(1, k), trace=trace)))
        return found

    def _alone(self, part: IndexPart) -> Any:
        """Return this recipe over a part of the index."""
        named = {**self._arguments[1], "config": self.config, **self._of_part(part)}
        make: Any = type(self)
        return make(part.index, named.pop("config"), **named)


def joined(
    index: Index, parts: Sequence[tuple[Group, Any]], batch: int, k: int, rows: Sequence[NDArray[np.int64]]
) -> dict[str, Any]:
    """Return the fields of a batch's result, merged from the results of its groups.

    ``rows`` holds, for each group, the ids in the whole index by the ids of its part.
    """
    fields: dict[str, Any] = {"index": index, "lists": {}, "traces": None, "fell_back": None}
    fields["notes"] = in_order([(group, found.notes) for group, found in parts], batch)
    fields["hits"] = joined_hits([(group, found.hits) for group, found in parts], rows, batch, k)
    for name in parts[0][1].lists:
        fields["lists"][name] = joined_hits([(group, found.lists[name]) for group, found in parts], rows, batch, 0)
    if parts[0][1].traces is not None:
        fields["traces"] = in_order([(group, group.traces(found.traces)) for group, found in parts], batch)
    if parts[0][1].fell_back is not None:
        told = in_order([(group, found.fell_back) for group, found in parts], batch)
        fields["fell_back"] = np.array(told, np.bool_)
    return fields


def _make(kind: type[Any], positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return kind(*positional, **named)
