"""The examples of every public module run, and every public name is documented with one."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import os
import pkgutil
from types import ModuleType

import hopfuse
import numpy as np
import pytest
from hopfuse.errors import MissingExtraError

MODULES = ["hopfuse"] + [
    found.name
    for found in pkgutil.walk_packages(hopfuse.__path__, "hopfuse.")
    if not any(part.startswith("_") for part in found.name.split("."))
]
#: Modules that nothing documents by itself: constants, data and the program.
PUBLIC = [
    "hopfuse",
    "hopfuse.connect",
    "hopfuse.encoders",
    "hopfuse.evaluate",
    "hopfuse.extract",
    "hopfuse.fusion",
    "hopfuse.index",
    "hopfuse.lexical",
    "hopfuse.recipes",
    "hopfuse.reference",
    "hopfuse.types",
]


def load(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if isinstance(error, MissingExtraError) or not str(error.name).startswith("hopfuse"):
            pytest.skip(f"{name} needs an extra: {error}")
        raise


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str, tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch) -> None:
    module = load(name)
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    with np.printoptions(threshold=1000, precision=8, suppress=False):
        for test in doctest.DocTestFinder(recurse=True).find(module, name):
            try:
                runner.run(test, out=report.append)
            except MissingExtraError as error:
                pytest.skip(str(error))
    if any("MissingExtraError" in line for line in report):
        pytest.skip(f"{name}'s examples need an extra")
    assert not report, "".join(report)


def public_names() -> list[tuple[str, str]]:
    return [(module, name) for module in PUBLIC for name in getattr(importlib.import_module(module), "__all__", [])]


def is_result(made: type) -> bool:
    """A type that functions return and nobody constructs: fields, and no Parameters to give."""
    fields = dataclasses.is_dataclass(made) or hasattr(made, "_fields")
    return fields and "Parameters\n" not in str(made.__doc__)


@pytest.mark.parametrize(("module", "name"), public_names())
def test_a_public_name_is_documented_with_an_example(module: str, name: str) -> None:
    made = getattr(importlib.import_module(module), name)
    text = str(inspect.getdoc(made) or "")
    assert len(text) > 10, f"{module}.{name} has no docstring"
    if inspect.isclass(made):
        text += "".join(str(member.__doc__) for key, member in vars(made).items() if not key.startswith("_"))
        if is_result(made):
            return
    if inspect.ismodule(made) or not callable(made):
        return
    assert "Examples\n" in text, f"{module}.{name} has no Examples section"
    assert ">>>" in text, f"{module}.{name} shows nothing"


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_module_says_what_it_is_for(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    for public in getattr(module, "__all__", []):
        assert hasattr(module, public)
