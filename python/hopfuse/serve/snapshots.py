"""One state of an index with its recipes, encoder and matcher."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import Index
from .._validation import check_choice
from ..errors import InputError
from ..index import where
from ..recipes import RECIPES, Needs, Recipe, apply_options, spelled
from .config import IndexConfig
from .errors import in_request
from .keys import Principal


class Collaborators(NamedTuple):
    """What searches an index besides its own data; each may be None.

    Attributes
    ----------
    encoder, matcher, lexical
        As arguments of recipes.

    Examples
    --------
    >>> from hopfuse.serve import Collaborators
    >>> Collaborators(encoder=None).matcher is None
    True
    """

    encoder: Any = None
    matcher: Any = None
    lexical: Any = None


class Passage(NamedTuple):
    """A passage as it is sent; metadata is None if there is none."""

    id: str | int
    title: str
    text: str
    metadata: dict[str, Any] | None


#: Size of the cache of passages that were hits: reading one from the file takes 25 us.
PASSAGES = 4096
#: ``load(index, config)`` returns the collaborators of an index.
Load = Callable[[Index, IndexConfig], Collaborators]


@dataclass(frozen=True, eq=False)
class Query:
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


class Snapshot:
    """One state of an index, with its recipes and collaborators.

    Parameters
    ----------
    name : str
        Name of the index in requests.
    index : Index
    config : IndexConfig
    collaborators : Collaborators
    threads : int, optional
    before : Snapshot, optional
        The previous snapshot, from which vectors of common facts are taken.
    """

    def __init__(
        self,
        name: str,
        index: Index,
        config: IndexConfig,
        collaborators: Collaborators,
        threads: int | None = None,
        before: Snapshot | None = None,
    ) -> None:
        self.name, self.index, self.config = name, index, config
        self.encoder, self.matcher, self.lexical = collaborators
        self.seq = index.seq
        self._threads = threads
        #: Rows of facts by text, and the arrays of vectors that they index.
        self._known_facts: tuple[dict[str, int], list[NDArray[np.float32]]] = (
            ({}, []) if before is None else before._known_facts
        )
        self._fact_vectors: Any = None
        self._rows: dict[str, NDArray[np.int64]] = {}  # by key
        # Bound to the index, not to the snapshot, which would then be in a reference cycle.
        self.passage = lru_cache(PASSAGES)(partial(_passage, index))
        self.default_recipe = config.recipe or default_recipe(index, self.lexical is not None)
        #: Recipes that are made in advance, the default one first.
        self.recipes = {one: self.make(one, {}) for one in dict.fromkeys((self.default_recipe, *config.recipes))}
        self.recipe = self.recipes[self.default_recipe]

    def make(self, name: str, options: Mapping[str, Any]) -> Recipe:
        """Return a recipe over the index.

        Raises
        ------
        InputError
            The recipe or an option does not exist, a value is refused, or the index does not support the recipe.
        """
        kind: Any = RECIPES.get(name)
        if kind is None:
            check_choice(name, "recipe", RECIPES)
        own = self.config.options if name == self.default_recipe else {}
        config = apply_options(apply_options(kind.Config(), own, name), options, name)
        lacks = kind.missing(self.index, config)
        if lacks is not None:
            raise lacks
        takes = inspect.signature(kind).parameters
        parts = {"encoder": self.encoder, "matcher": self.matcher, "lexical": self._leg(name), "threads": self._threads}
        if "fact_vectors" in takes:
            parts["fact_vectors"] = self._vectors_of_facts()
        recipe: Recipe = kind(self.index, config, **{key: part for key, part in parts.items() if key in takes})
        return recipe

    def _leg(self, recipe: str) -> Any:
        """Return the lexical leg over passages, by default for hybrid-rrf, and for guided-walk if the index has one."""
        own = recipe == "guided-walk" and self.index.lexical is not None
        wanted = recipe == "hybrid-rrf" or own or self.config.lexical is not None
        return self.lexical if wanted and not ranks_entities(recipe) else None

    def _vectors_of_facts(self) -> Any:
        """Return the encoder's vectors of all facts; each distinct text is encoded once."""
        facts = self.index.facts
        if self._fact_vectors is None and self.encoder is not None and facts is not None:
            texts = list(facts.texts(self.index.entity_names))
            place, known = self._known_facts
            new = [text for text in dict.fromkeys(texts) if text not in place]
            vectors = np.concatenate([*known, self.encoder.encode_passages(new)])
            place = place | {text: at for at, text in enumerate(new, len(vectors) - len(new))}
            self._fact_vectors = vectors[np.array([place[text] for text in texts], np.int64)]
            self._known_facts = {text: at for at, text in enumerate(texts)}, [self._fact_vectors]
        return self._fact_vectors

    def sample(self, recipe: Recipe) -> Query:
        """Return a query for warming a recipe up, which needs no encoding or matching."""
        index, needs = self.index, recipe.needs
        vector = None
        if needs.vectors:
            dim = self.dim_for(recipe) or 1
            vector = np.full(dim, 1 / dim, np.float32)
        names: list[str | int] = [0] if index.num_entities else []
        return Query(index.texts[0][:200] or "text", vector, names)

    def warm_up(self) -> None:
        """Search one query by each recipe, and read all ids, so that the first request does not wait for it."""
        if self.index.num_passages:
            k = min(10, self.index.num_passages)
            for recipe in self.recipes.values():
                recipe.search(k=k, **self.arguments(recipe, [self.sample(recipe)]))
            self.read_ids()

    def read_ids(self) -> None:
        """Read all ids of passages, which the first lookup would do."""
        self.index.row_of(self.index.passage_ids[0])

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
                return None if seen is None else self._rows_of_key(principal, seen)
            if isinstance(allow, Mapping):
                mask = self.index.mask(where(**allow))
                return np.flatnonzero(mask if seen is None else mask & seen)
            if seen is not None:
                return np.unique([self._row_seen(id, seen) for id in allow]).astype(np.int64)
            return np.unique(self.index.rows_of(allow)) if len(allow) else np.zeros(0, np.int64)
        except InputError as error:
            raise (in_request(error, field) if isinstance(allow, Mapping) else error.at(field=field)) from None

    def _rows_of_key(self, principal: Principal, seen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return a key's rows as the same object each time, so that a batch of one key has one filter."""
        if principal.name not in self._rows:
            self._rows[principal.name] = np.flatnonzero(seen)
        return self._rows[principal.name]

    def _row_seen(self, id: Any, seen: NDArray[np.bool_]) -> int:
        """Return a passage's row; one that the key does not see is refused like one that does not exist."""
        try:
            row = self.index.row_of(id)
        except InputError:
            row = -1
        if row < 0 or not seen[row]:
            raise InputError("unknown", None, "there is no passage with the id {given!r}", given=id)
        return row

    def dim_for(self, recipe: Recipe) -> int | None:
        """Return the dimension of query vectors; None if the recipe reads none."""
        if not recipe.needs.vectors:
            return None
        corpus = self.index.entity_corpus if ranks_entities(recipe.name) else self.index.corpus
        return None if corpus is None else corpus.dim

    def arguments(self, recipe: Recipe, queries: Sequence[Query]) -> dict[str, Any]:
        """Return the arguments of ``recipe.search`` for a batch; missing vectors and entities are made here."""
        needs = recipe.needs
        allow = _allowed(queries, self.index.num_passages)
        texts = [query.text or "" for query in queries] if needs.texts or needs.words else None
        entities = self._entities(queries, allow) if needs.entities else [()] * len(queries)
        return {
            "queries": texts,
            "vectors": self._vectors(queries, entities) if needs.vectors else None,
            "entities": entities if needs.entities else None,
            "allow": allow,
        }

    def _vectors(self, queries: Sequence[Query], entities: Sequence[Sequence[Any]]) -> NDArray[np.float32]:
        without = [at for at, query in enumerate(queries) if query.vector is None]
        texts = spelled([queries[at].text or "" for at in without], [entities[at] for at in without], self.index)
        made = iter(self.encoder.encode_queries(texts) if texts else ())
        return np.stack([next(made) if query.vector is None else query.vector for query in queries])

    def _entities(self, queries: Sequence[Query], allow: Any) -> list[Sequence[Any]]:
        unread = [at for at, query in enumerate(queries) if query.entities is None]
        found: list[Any] = [query.entities for query in queries]
        if unread:
            texts = [queries[at].text or "" for at in unread]
            seen = allow[unread] if allow is not None and allow.ndim == 2 else allow
            matched = self.matcher.match(texts) if seen is None else self.matcher.match(texts, allow=seen)
            for at, names in zip(unread, matched, strict=True):
                found[at] = names
        return found


def _passage(index: Index, row: int) -> Passage:
    return Passage(index.passage_ids[row], index.titles[row], index.texts[row], index.metadata.row(row) or None)


def ranks_entities(recipe: str) -> bool:
    """Return whether a recipe's hits are entities; those of the others are passages."""
    return recipe == "triple-hybrid"


def default_recipe(index: Index, lexical: bool) -> str:
    """Return the name of the best recipe that an index supports, as :func:`hopfuse.recipes.default` chooses it."""
    if not RECIPES["guided-walk"].missing(index):
        return "guided-walk"
    if index.corpus is None and index.graph is None and not lexical:
        raise InputError("missing", "lexical", "the index has only texts; give {field}, to search it by words")
    return "hybrid-rrf"


def _allowed(queries: Sequence[Query], num_passages: int) -> NDArray[np.bool_] | None:
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


def check_query(snapshot: Snapshot, recipe: str, needs: Needs, query: Query, field: str) -> None:
    """Refuse a query that lacks an input of the recipe which the server cannot make.

    Raises
    ------
    InputError
    """
    if query.text is None:
        if needs.texts:
            raise lacking(f"{field}.text", f"{recipe} needs it; give it")
        if needs.vectors and query.vector is None:
            raise lacking(f"{field}.vector", f"so is the text, and {recipe} needs a vector; give one of them")
        if needs.entities and query.entities is None:
            raise lacking(f"{field}.entities", f"so is the text, and {recipe} walks from entities; give one of them")
    if needs.vectors and query.vector is None and snapshot.encoder is None:
        raise lacking(f"{field}.vector", "the server has no encoder; give it, or start the server with one")
    if needs.entities and query.entities is None and snapshot.matcher is None:
        raise lacking(f"{field}.entities", "the server cannot find names in texts; give it, [] for none")


def lacking(field: str, reason: str) -> InputError:
    """Return the error for an input that is missing, and that the server cannot make."""
    return InputError("missing", field, "{field} is missing, and {reason}", reason=reason)
