"""Make what searches a state of an index besides its own data: an encoder, names, legs of words, vectors of facts."""

from __future__ import annotations

from copy import copy
from threading import Lock
from typing import Any
from weakref import ref

from .._validation import check_choice, wrong_type
from ..encoders import Encoder, as_encoder, open_encoder, recorded_encoder
from ..errors import HopfuseError, InputError, MissingExtraError
from ..extract import QuestionMatcher
from ..index import EncoderInfo, Index
from ..lexical import KINDS
from ..recipes import RECIPES, Recipe
from .encoding import SharedEncoder, shared, shared_encoder
from .fact_vectors import FactVectors
from .legs import leg_over

#: Kinds of legs of words, and ways to find names, that are chosen by name.
WORDS = (*KINDS, "none")
NAMES = ("any-case", "case-sensitive", "none")


class Collaborators:
    """The collaborators of the recipes over one state of an index; each is made once, at its first use.

    Parameters
    ----------
    index : Index
    encoder : Encoder or str, optional
        An encoder, its name, or ``"none"``; by default the one whose name the index keeps.
    names : matcher or str, optional
        A matcher, or one of :data:`NAMES`; by default ``"any-case"``.
    fact_vectors : optional
        As of :class:`hopfuse.recipes.PolicyRAG`; by default the encoder's.

    Attributes
    ----------
    encoder : Encoder or None
    lack : HopfuseError or None
        Why there is no encoder although the index has vectors.
    names : matcher or None
        None if no names are looked for.
    """

    def __init__(self, index: Index, encoder: Any = None, names: Any = None, fact_vectors: Any = None) -> None:
        self.index = index
        self._wanted = encoder, names, fact_vectors
        self._lock = Lock()
        #: Those of the state before, as long as it is searched.
        self._before: ref[Collaborators] | None = None
        self._legs: dict[tuple[str | None, str], Any] = {}
        self._fact_vectors = fact_vectors
        self._facts: FactVectors | None = None
        #: Whether the names are indexed, and the error if their package is not installed.
        self._names: tuple[bool, MissingExtraError | None] = False, None
        self.encoder, self.lack = _encoder_of(encoder, index.encoder)
        self.names = _matcher_of(names, index)

    def of_state(self, index: Index) -> Collaborators:
        """Return the collaborators of another state of the index, with the same encoder, names and vectors of facts."""
        encoder, names, fact_vectors = self._wanted
        keeps_encoder = encoder is not None or index.encoder == self.index.encoder
        other = Collaborators(index, "none" if keeps_encoder else None, "none", fact_vectors)
        if keeps_encoder:
            other.encoder, other.lack = self.encoder, self.lack
        other._wanted, other._before = self._wanted, ref(self)
        follows = callable(getattr(self.names, "of_state", None))
        other.names = self.names.of_state(index) if follows else _matcher_of(names, index)
        if self._names == (True, None) and _needed_for_names(index) == _needed_for_names(self.index):
            other._names = self._names
        return other

    def with_encoder(self, encoder: Any) -> Collaborators:
        """Return these collaborators with another encoder; the names and the legs are shared."""
        other = copy(self)
        other._wanted, other._facts = (encoder, *self._wanted[1:]), None
        other._fact_vectors = self._wanted[2]
        other.encoder, other.lack = _encoder_of(encoder, self.index.encoder)
        return other

    def leg(self, kind: str | None, over: str) -> Any:
        """Return a leg of words over the passages or the names of the entities.

        Parameters
        ----------
        kind : str, optional
            One of :data:`hopfuse.lexical.KINDS`.
            By default the index's own over passages, else as ``"auto"``.
        over : {"passages", "entities"}
        """
        with self._lock:
            if (kind, over) not in self._legs:
                before = None if self._before is None else self._before()
                known = None if before is None else before._legs.get((kind, over))
                earlier = None if before is None or known is None else (before.index, known)
                self._legs[kind, over] = leg_over(self.index, kind, over, earlier)
            return self._legs[kind, over]

    def names_lack(self) -> MissingExtraError | None:
        """Return why no names are found in texts, or None; the index's names are indexed if that is not done."""
        if not self._names[0]:
            lack = None
            if isinstance(self.names, QuestionMatcher):
                try:
                    self.names.match(["which"])
                except MissingExtraError as error:
                    lack = error
            self._names = True, lack
        return self._names[1]

    def fact_vectors(self) -> Any:
        """Return the vectors of all facts, or None without an encoder; each distinct text is encoded once."""
        facts = self.index.facts
        with self._lock:
            if self._fact_vectors is None and self.encoder is not None and facts is not None:
                if self._facts is None:
                    before = None if self._before is None else self._before()
                    is_same = before is not None and before.encoder is self.encoder
                    known = before._facts if before is not None and is_same else None
                    earlier = None if before is None or known is None else (before.index, known)
                    self._facts = FactVectors(self.index, self.encoder, earlier)
                return self._facts.vectors
            return self._fact_vectors


def _needed_for_names(index: Index) -> tuple[Any, ...]:
    """Return what determines which packages find names in questions: are there names, and how words are read."""
    words = index.words
    return (index.num_entities > 0,) if words is None else (words.first > 0, words.stemmer, words.tagger)


def _encoder_of(wanted: Any, built: EncoderInfo | None) -> tuple[Encoder | None, HopfuseError | None]:
    """Return an encoder that threads may share; without one, the error that says why."""
    if isinstance(wanted, SharedEncoder):
        return wanted, None
    if wanted is None and built is None:
        return None, InputError(
            "missing",
            "encoder",
            "{field} is missing, and the index does not keep the name of an encoder; give {field}, or {@vectors}",
        )
    if wanted is None:
        assert built is not None
        own = built.name, built.dim, built.normalize
        try:
            return shared_encoder(own, lambda: recorded_encoder(*own)), None
        except HopfuseError as error:
            return None, error
    if isinstance(wanted, str) and wanted == "none":
        return None, InputError(
            "missing", "encoder", "{field} is 'none', so texts are not encoded; give {field}, or {@vectors}"
        )
    if isinstance(wanted, str):
        return shared_encoder(wanted, lambda: open_encoder(wanted)), None
    return shared_encoder(id(wanted), lambda: as_encoder(wanted)), None


def _matcher_of(wanted: Any, index: Index) -> Any:
    """Return what finds names in questions, or None if nothing is to find them."""
    if wanted is None or isinstance(wanted, str):
        way = "any-case" if wanted is None else check_choice(wanted, "names", NAMES)
        return None if way == "none" else QuestionMatcher(index, case_sensitive=way == "case-sensitive")
    if not callable(getattr(wanted, "match", None)):
        raise wrong_type(wanted, "names", f"a matcher with match(texts), or one of {', '.join(NAMES)}")
    return shared(wanted)


#: The recipes that search an index by default: the first one that can run on it.
_DEFAULTS = ("guided-walk", "hybrid-rrf")


def recipe_class(index: Index, recipe: Any) -> type[Recipe]:
    """Return the class of a recipe by its name; by default the first of :data:`_DEFAULTS` that the index can run.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.retriever.collaborators import recipe_class
    >>> recipe_class(hf.Index.build(passages=[{"text": "The sea."}]), None).name
    'hybrid-rrf'
    """
    if recipe is None:
        return next(kind for kind in map(RECIPES.__getitem__, _DEFAULTS) if not kind.missing(index))
    if isinstance(recipe, type) and hasattr(recipe, "Config"):
        return recipe
    if not isinstance(recipe, str):
        raise wrong_type(recipe, "recipe", f"a name ({', '.join(RECIPES)}) or a class of recipes")
    return RECIPES[check_choice(recipe, "recipe", RECIPES)]


def words_leg(kind: type[Recipe], config: Any, wanted: Any, parts: Collaborators) -> Any:
    """Return the leg of words of a recipe, or None: as wanted, else as the recipe's class says (``words``)."""
    named = wanted is None or isinstance(wanted, str)
    way = check_choice(wanted, "words", WORDS) if wanted is not None and named else None
    if "lexical" not in kind.collaborators:
        return None
    if not named:
        return shared(wanted)
    default = kind.words(config)
    stored = parts.index.lexical is not None and kind.ranks == "passages"
    if way == "none" or (way is None and (default == "none" or (default == "stored" and not stored))):
        return None
    return parts.leg(way, kind.ranks)
