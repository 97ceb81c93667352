"""An index together with what searches it: the only package that chooses a recipe, an encoder, names or words.

May import the packages around the API; ``cli``, ``serve``, ``offline``, ``adapters`` and ``diagnose`` import it.
"""

from .collaborators import NAMES, WORDS, recipe_class
from .description import Description
from .encoding import EncoderCalls, calling
from .retriever import Retriever

__all__ = ["NAMES", "WORDS", "Description", "EncoderCalls", "Retriever", "calling", "recipe_class"]
