"""Inputs of recipes for diagnose and compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import Index
from ..._validation import check_needs
from ...diagnose import Questions
from ...encoders import Encoder
from ...encoders.protocol import first_unencodable
from ...errors import InputError
from ...evaluate import PassageNames, Qrels, read_qrels
from ...extract import Match, QuestionMatcher
from ...io.queries import Query, read_queries
from ...lexical import BM25, FTS5, leg_of, words_of
from ...recipes import RECIPES, AllowScope, Policy, PolicyRAG, Recipe, spelled
from ...retriever import recipe_class
from ..filters import read_filter
from ..recipes import config_of
from ..run.queries import _INSTEAD, _read_vectors, text_of, unjudged, unknown_gold

PARTS = {}


def default_recipe(index: Index) -> str:
    return recipe_class(index, None).name


class QueryInputs:
    """Makes the inputs of queries.

    Vectors are those of a file with a row for each of ``total`` queries, the queries' ``own``, or the encoder's;
    entities are as given, or found in the text among those of the passages ``alone``.
    """

    def __init__(
        self,
        index: Index,
        vectors: Path | None,
        encoder: Encoder | None,
        total: int,
        *,
        case_sensitive: bool,
        alone: NDArray[np.bool_] | None = None,
        own: bool = False,
    ) -> None:
        self.encoder, self._index = encoder, index
        self._own = own
        self._vectors = None if vectors is None else _read_vectors(vectors, total)
        self._matcher, self._alone = QuestionMatcher(index, case_sensitive=case_sensitive), alone

    def vectors(self, queries: list[Query], first: int, entities: Sequence[Sequence[Any]] = ()) -> NDArray[Any]:
        """Return vectors of the queries ``first``, ``first + 1``, ... of the file.

        The encoder reads a text with the names among its ``entities`` as a recipe's does.
        """
        if self._vectors is not None:
            return np.asarray(self._vectors[first : first + len(queries)])
        if self._own:
            return np.stack([query.vector for query in queries if query.vector is not None])
        assert self.encoder is not None
        texts = [text_of(q, "to be encoded", _INSTEAD) for q in queries]
        return self.encoder.encode_queries(spelled(texts, entities, self._index) if entities else texts)

    def check_text(self, query: Query, instead: str, where: str) -> None:
        """Refuse a query without a text that can be encoded."""
        assert self.encoder is not None
        if first_unencodable(self.encoder.encode_queries, [text_of(query, "to be encoded", instead, place=where)]) == 0:
            raise InputError(
                "empty",
                "text",
                "query {id!r} has no words that the encoder reads; give it some{instead}, or leave it out",
                id=query.id,
                instead=instead,
            ).at(where)

    def entities(self, queries: list[Query]) -> list[Sequence[str | int | Match]]:
        """Return the entities of each query, as given or found in its text."""
        without = [text_of(q, "to find names in", _INSTEAD) for q in queries if q.entities is None]
        names = iter(self._matcher.match(without, allow=self._alone) if without else [])
        return [next(names) if q.entities is None else q.entities for q in queries]


@dataclass(frozen=True, eq=False)
class BoundRecipe:
    """A recipe over an index, with the arguments that a command passes to each search."""

    name: str
    recipe: Recipe
    ids: Sequence[Any]
    allow: NDArray[np.bool_] | None = None
    allow_scope: AllowScope = "isolated"

    @property
    def purpose(self) -> str:
        """What the text of a question is needed for, as words of an error; empty if it is not needed."""
        if not self.recipe.needs.texts:
            return ""
        leg = getattr(self.recipe, "lexical", None)
        return f"for {self.name}" if leg is None else f"for {type(leg).__name__}'s list"

    @property
    def alone(self) -> NDArray[np.bool_] | None:
        """The allowed passages if the filter isolates them, else None."""
        return self.allow if self.allow_scope == "isolated" else None

    def search(self, texts: list[str] | None, vectors: Any, entities: Any, k: int, *, trace: bool = False) -> Any:
        """Return the recipe's own result."""
        options: dict[str, Any] = {"allow": self.allow, "allow_scope": self.allow_scope, "trace": trace}
        return self.recipe.search(texts, vectors=vectors, entities=entities, k=k, **options)

    def check(self, k: int) -> Any:
        """Run a search of no questions, so that errors of every search are raised early; return its result."""
        index, needs = self.recipe.index, self.recipe.needs
        corpus = index.entity_corpus if self.name == "triple-hybrid" else index.corpus
        vectors = np.zeros((0, corpus.dim), np.float32) if needs.vectors and corpus is not None else None
        return self.search([] if needs.texts else None, vectors, [] if needs.entities else None, k)


def hit_ids(index: Index, options: Mapping[str, Any]) -> Sequence[str | int]:
    """Return the ids of hits by row: names of entities for triple-hybrid, else ids of passages."""
    name = options.get("recipe") or default_recipe(index)
    return index.entity_names if name == "triple-hybrid" else index.passage_ids


def bind(
    index: Index,
    options: Mapping[str, Any],
    *,
    encoder: Encoder | None = None,
    llm: Any = None,
) -> BoundRecipe:
    """Return the recipe that the options of :func:`recipe_options` describe.

    Raises
    ------
    InputError
        An option that the recipe does not have, or an index that it cannot run on.
    """
    name = options.get("recipe") or default_recipe(index)
    kind: Any = RECIPES[name]
    config = config_of(name, options)
    check_index(name, index, config)
    given: dict[str, Any] = {"encoder": encoder, "threads": options.get("threads")}
    lexical = options.get("words")
    if "lexical" in signature(kind).parameters:
        given["lexical"] = lexical_leg(name, index, config, lexical)
        for field in ("lexical_k", "lexical_weight"):
            check_needs(field, options.get(field), "lexical", given["lexical"], "whose list it is about")
    elif lexical is not None:
        raise unread("lexical", name)
    if kind is PolicyRAG:
        given |= {"llm": llm, "fact_vectors": fact_vectors(index, config, encoder)}
        if llm is None and config.switches.gate and config.facts.gate == "llm":
            raise no_model()
    recipe = kind(index, config, **given)
    allow = read_filter(options, index)
    check_needs("allow_scope", options.get("allow_scope"), ("allow", "where"), allow)
    return BoundRecipe(name, recipe, hit_ids(index, options), allow, options.get("allow_scope") or "isolated")


def unread(field: str, recipe: str, readers: Sequence[str] = ()) -> InputError:
    """Return the error for an option that a recipe does not read; ``readers`` are those that do."""
    return InputError(
        "unused",
        field,
        "{field} is given, and {recipe} does not read it{others}; leave it out",
        recipe=recipe,
        others=f", as {', '.join(readers)} would" if readers else "",
    )


def no_model() -> InputError:
    """Return the error for a policy that asks a language model, without one."""
    return InputError(
        "missing",
        "model",
        'the policy has facts.gate = "llm", which needs {field} and {@endpoint}; give them to hopfuse score, search or '
        'trace, or set facts.gate to "rules"',
    )


def check_index(name: str, index: Index, config: Any = None) -> None:
    """Refuse an index that a recipe cannot run on, with an error that names the options of ``hopfuse build``."""
    kind: Any = RECIPES[name]
    lacks = kind.missing(index, config)
    if lacks is not None:
        absent = [words for part, words in PARTS.items() if part in lacks.allowed and getattr(index, part) is None]
        raise InputError(
            "missing",
            "index",
            "{field} has {parts}, so {recipe} cannot run on it; build the index with them, or {fix}",
            recipe=name,
            parts=" and ".join(absent),
            fix="choose --recipe hybrid-rrf, which runs on it" if name != "hybrid-rrf" else "give --lexical",
        )


def fact_vectors(index: Index, policy: Policy, encoder: Encoder | None) -> Any:
    """Return vectors of all facts for PolicyRAG, or None without an encoder."""
    if encoder is not None and index.facts is not None:
        return encoder.encode_passages(index.facts.texts(index.entity_names))
    if policy.facts.scope == "all":
        raise InputError(
            "missing", "encoder", 'the policy has facts.scope = "all", which needs {field}, and an index with facts'
        )
    return None


def lexical_leg(name: str, index: Index, config: Any, kind: str | None) -> BM25 | FTS5 | None:
    """Return the leg of ``--lexical``: over the entities' names for triple-hybrid, else over the passages.

    By default, guided-walk uses the index's own if there is one, and hybrid-rrf makes one for any index.
    """
    if name == "triple-hybrid":
        if config.mode == "lexical":
            return leg_of(list(index.entity_names), kind or "auto")
        if kind not in (None, "none"):
            check_needs("lexical", kind, "option mode=lexical", None, "with which triple-hybrid reads it")
        return None
    if kind is None and name == "guided-walk" and index.lexical is not None:
        return words_of(index)
    kind = kind or ("auto" if name == "hybrid-rrf" else "none")
    return None if kind == "none" else words_of(index, kind)


def judged_questions(index: Index, queries: Path, judgements: Path, inputs: QueryInputs) -> tuple[Qrels, Questions]:
    """Return the judgements, by row of the index, and the questions that they judge."""
    names = PassageNames(index.passage_ids)
    qrels = read_qrels(judgements, names)
    if len(names) > index.num_passages:
        raise unknown_gold(judgements, len(names) - index.num_passages, names.name(index.num_passages))
    rows = list(read_queries(queries))
    at = {id: row for row, id in enumerate(qrels.ids)}
    kept = [number for number, row in enumerate(rows) if row.id in at]
    if not kept:
        raise unjudged(judgements, rows)
    asked = [rows[number] for number in kept]
    texts = [text_of(query, "for the lexical leg") for query in asked]
    questions = Questions(texts, inputs.vectors(rows, 0)[kept], inputs.entities(asked))
    return qrels.take(np.array([at[row.id] for row in asked])), questions
