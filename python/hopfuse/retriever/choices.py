"""The choices of a retriever: which recipe searches an index, and with which words."""

from __future__ import annotations

from typing import Any

from .._validation import check_choice, wrong_type
from ..index import Index
from ..recipes import RECIPES, Recipe
from .collaborators import WORDS, Collaborators
from .serialized import shared

#: The recipes that search an index by default: the first one that can run on it.
DEFAULTS = ("guided-walk", "hybrid-rrf")


def recipe_class(index: Index, recipe: Any) -> type[Recipe]:
    """Return the class of a recipe by its name; by default the first of :data:`DEFAULTS` that the index can run.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.retriever.choices import recipe_class
    >>> recipe_class(hf.Index.build(passages=[{"text": "The sea."}]), None).name
    'hybrid-rrf'
    """
    if recipe is None:
        return next(kind for kind in map(RECIPES.__getitem__, DEFAULTS) if not kind.missing(index))
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
