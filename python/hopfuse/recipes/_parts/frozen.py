"""Recipes as objects: their attributes do not change, and they can be pickled."""

from __future__ import annotations

from typing import Any


class FrozenRecipe:
    """Base of the recipes: attributes are set once, and a copy is made by the constructor from the same arguments.

    So a pickle holds the index (an opened one by its path) and the collaborators, and nothing that was derived.
    """

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self):
            kind = type(self).__name__
            raise AttributeError(f"{name} of a {kind} cannot be changed: make another {kind}")
        super().__setattr__(name, value)

    def __reduce__(self) -> Any:
        return _make, (type(self), *self._arguments)


def _make(kind: type[Any], positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return kind(*positional, **named)
