"""A state of an index with the recipe that searches it, and what a question must have for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_real, check_type, float32_of
from ..errors import HopfuseError, InputError
from ..index import Index
from ..recipes import Needs, Recipe, apply_options
from ..types import Corpus
from .collaborators import Collaborators, recipe_class, words_leg

#: Arguments of recipes that have another name in a retriever.
_ARGUMENTS = {"queries": "questions", "lexical": "words", "matcher": "names"}
#: What is lacking where an input cannot be made.
_MAKERS = {"vector": "no encoder makes", "entities": "nothing reads"}


@dataclass(frozen=True)
class RetrieverSettings:
    """The arguments of a retriever beside its index and its collaborators."""

    recipe: Any = None
    config: Any = None
    options: Mapping[str, Any] | None = None
    words: Any = None
    reranker: Any = None
    llm: Any = None
    threads: int | None = None
    strict: bool = False
    #: Whether a recipe that is named here was chosen by what the index held.
    chosen: bool = False


@dataclass(frozen=True, eq=False)
class RetrieverState:
    """A recipe over a state of an index, with its collaborators."""

    parts: Collaborators
    kind: type[Recipe]
    recipe: Recipe

    @classmethod
    def make(cls, parts: Collaborators, own: RetrieverSettings) -> RetrieverState:
        """Return the recipe that the settings, and for the rest the index, choose."""
        index = parts.index
        kind = recipe_class(index, own.recipe)
        try:
            if own.config is not None:
                check_type(own.config, "config", kind.Config, f"a {kind.Config.__name__}, which {kind.name} reads")
            config = apply_options(kind.Config() if own.config is None else own.config, own.options or {}, kind.name)
            lacks = kind.missing(index, config)
            if lacks is not None:  # before words are read or facts are encoded for it
                raise lacks
            made = {"encoder": parts.encoder, "matcher": parts.names, "llm": own.llm}
            made["lexical"] = words_leg(kind, config, own.words, parts)
            if "fact_vectors" in kind.collaborators:
                made["fact_vectors"] = parts.fact_vectors()
            taken = {name: made[name] for name in kind.collaborators}
            constructor: Any = kind
            return cls(parts, kind, constructor(index, config, threads=own.threads, **taken))
        except HopfuseError as error:
            raise renamed(error) from error.__cause__

    @property
    def index(self) -> Index:
        """The state of the index."""
        return self.parts.index

    @property
    def needs(self) -> Needs:
        """The inputs that a search reads."""
        return self.recipe.needs

    @property
    def space(self) -> Corpus | None:
        """The vectors that a question's is compared with; None if the recipe reads none."""
        return self.kind.space(self.parts.index) if self.recipe.needs.vectors else None

    @property
    def encodes_more(self) -> bool:
        """Whether an encoder encodes anything beside questions: names in them, or facts."""
        names = self.needs.entities and self.index.entity_corpus is not None
        return names or ("fact_vectors" in self.kind.collaborators and self.index.facts is not None)

    def encodes(self, text: Any, vector: Any) -> bool:
        """Return whether a search calls the encoder for a question."""
        if self.parts.encoder is None or not is_there(text):
            return False
        return (self.needs.vectors and vector is None) or bool(getattr(self.recipe, "encodes_all", True))

    def check_read(self, **arguments: Any) -> None:
        """Refuse arguments of a retriever that the recipe does not read."""
        reads = {
            "encoder": self.needs.vectors or self.encodes_more,
            "words": self.needs.words,
            "names": self.needs.entities,
            "llm": "llm" in self.kind.collaborators,
            "fact_vectors": "fact_vectors" in self.kind.collaborators,
            "reranker": self.kind.ranks == "passages",
        }
        for name, one in arguments.items():
            if not (reads[name] or one is None or (isinstance(one, str) and one == "none")):
                raise InputError(
                    "unused",
                    name,
                    "{field} is given, and {recipe} does not read it; leave it out",
                    recipe=self.kind.name,
                )

    # ---- A question --------------------------------------------------------------------------------------------------

    def check_inputs(self, text: Any, vector: Any, entities: Any) -> None:
        """Refuse a question that lacks an input and the text to make it from; True stands for what is given."""
        needs, name = self.needs, self.kind.name
        if is_there(text):
            return
        lacks_vector, lacks_entities = needs.vectors and vector is None, needs.entities and entities is None
        if text is not None and (needs.texts or lacks_vector or lacks_entities):
            raise InputError(
                "empty",
                "text",
                "{field} is {given!r}, which has no words, and {recipe} reads it; give it words",
                given=text,
                recipe=name,
            )
        if needs.texts:
            raise _missing("text", f"{name} needs it; give it")
        if lacks_vector:
            raise _missing("vector", f"so is the text, and {name} needs a vector; give one of them")
        if lacks_entities:
            raise _missing("entities", f"so is the text, and {name} walks from entities; give one of them")

    def lack(self, vector: Any, entities: Any) -> tuple[str, HopfuseError] | None:
        """Return the input that nothing makes for a question without it, and why; None if there is none."""
        encoder, space = self.parts.encoder, self.space
        if self.needs.vectors and vector is None:
            if encoder is None:
                assert self.parts.lack is not None
                return "vector", self.parts.lack
            if space is not None and encoder.dim != space.dim:
                return "vector", InputError(
                    "shape",
                    "encoder",
                    "{field} makes {given} values, and the vectors of the index have {allowed}; give their encoder",
                    given=encoder.dim,
                    allowed=space.dim,
                )
        lack = self.parts.names_lack() if self.needs.entities and entities is None else None
        return None if lack is None else ("entities", lack)

    def check_question(self, text: str | None, vector: Any, entities: Any) -> None:
        """Refuse a question that a search would refuse; fields of errors are named as for one question."""
        self.check_inputs(text, vector, entities)
        lack = self.lack(vector, entities)
        if lack is not None:
            raise _missing(lack[0], f"{_MAKERS[lack[0]]} it from the text; give it")
        if self.needs.vectors and vector is not None:
            self.check_vector(np.asarray(vector))
        if entities is not None and self.needs.entities:
            _check_numbers(entities, self.index.num_entities)

    def check_vector(self, vector: NDArray[Any]) -> None:
        """Refuse a vector of another dimension, or without a direction where one is needed."""
        space = self.space
        assert space is not None
        check_real(vector, "vector")
        if vector.shape != (space.dim,):
            raise InputError(
                "shape",
                "vector",
                "{field} has {given} values; the vectors of the index have {allowed}: use the encoder of the index",
                given=vector.size,
                allowed=space.dim,
            )
        if not np.isfinite(float32_of(vector)).all():
            raise InputError("finite", "vector", "{field} is not finite; encode the question again, or leave it out")
        if (space.metric == "cosine" or self.kind.by_cosine) and not vector.any():
            raise InputError(
                "zero",
                "vector",
                "{field} is all zeros and has no direction; encode the question again, or leave it out",
            )


def is_there(given: Any) -> bool:
    """Return whether an input of a question is given; a text without words is not."""
    return given is not None and not (isinstance(given, str) and not given.strip())


def renamed(error: HopfuseError) -> HopfuseError:
    """Return a recipe's error with the names that its arguments have in a retriever."""
    field, bracket, rest = (error.field or "").partition("[")
    others = {name: error.values.get(name) for name in ("needed", "other")}
    named = {name: _ARGUMENTS[one] for name, one in others.items() if isinstance(one, str) and one in _ARGUMENTS}
    if field not in _ARGUMENTS and not named:
        return error
    found = error.about(_ARGUMENTS.get(field, field) + bracket + rest)
    found.values = {**error.values, **named}
    return found


def _missing(field: str, reason: str) -> InputError:
    return InputError("missing", field, "{field} is missing, and {reason}", reason=reason)


def _check_numbers(entities: Sequence[Any], size: int) -> None:
    """Refuse the number of an entity that the index does not have."""
    for at, one in enumerate(entities):
        if isinstance(one, int | np.integer) and not 0 <= one < size:
            raise InputError(
                "unknown",
                f"entities[{at}]",
                "{field} is {given}, and the index has the entities 0 .. {last}; correct the number, or give the name",
                given=int(one),
                last=size - 1,
            )
