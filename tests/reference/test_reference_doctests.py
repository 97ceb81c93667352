"""The examples in the oracle's docstrings run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import hopfuse.reference
import pytest

MODULES = ["hopfuse.reference"] + [
    found.name for found in pkgutil.walk_packages(hopfuse.reference.__path__, "hopfuse.reference.")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", hopfuse.reference.__all__)
def test_public_names_are_documented_and_functions_have_an_example(name: str) -> None:
    public = getattr(hopfuse.reference, name)
    assert public.__doc__
    assert inspect.isclass(public) or ">>>" in public.__doc__
