"""The examples of every module run, and every public name is documented with one."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import os
import pkgutil
import tempfile
import typing
from collections.abc import Iterator
from types import ModuleType

import hopfuse
import numpy as np
import pytest
from hopfuse.errors import MissingExtraError

MODULES = [
    "hopfuse",
    *(found.name for found in pkgutil.walk_packages(hopfuse.__path__, "hopfuse.") if "__main__" not in found.name),
]
ROOMS = sorted({name.split(".")[1] if "." in name else "" for name in MODULES} - {"_native"})
#: Packages whose public names are documented, each with an example.
PUBLIC = [
    "hopfuse",
    "hopfuse.client",
    "hopfuse.encoders",
    "hopfuse.diagnose",
    "hopfuse.evaluate",
    "hopfuse.extract",
    "hopfuse.fusion",
    "hopfuse.index",
    "hopfuse.lexical",
    "hopfuse.llm",
    "hopfuse.offline",
    "hopfuse.recipes",
    "hopfuse.reference",
    "hopfuse.report",
    "hopfuse.serve",
    "hopfuse.text",
    "hopfuse.types",
]


def modules_of(room: str) -> list[str]:
    return [name for name in MODULES if name.split(".")[1:2] == ([room] if room else [])]


def load(name: str) -> ModuleType | None:
    """Return the module, or None if it needs an extra that is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if isinstance(error, MissingExtraError) or not str(error.name).startswith("hopfuse"):
            return None
        raise


def failures(module: ModuleType) -> list[str] | None:
    """Return the reports of failed examples, or None if one needs an extra that is not installed."""
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    reports: list[str] = []
    with np.printoptions(threshold=1000, precision=8, suppress=False):
        for test in doctest.DocTestFinder(recurse=True).find(module, module.__name__):
            runner.run(test, out=reports.append)
    return None if any("MissingExtraError" in line for line in reports) else reports


@pytest.mark.parametrize("room", ROOMS)
def test_examples_run(
    room: str, tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch, model_in_memory: None
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where examples leave what they save
    failed, absent = [], []
    for name in modules_of(room):
        module = load(name)
        reports = None if module is None else failures(module)
        if reports is None:
            absent.append(name)
        else:
            failed += reports
    assert not failed, "".join(failed)
    if absent:
        pytest.skip(f"all examples ran but those of {', '.join(absent)}, which need an extra")


def is_result(made: type) -> bool:
    """Return whether functions return the type and callers do not construct it: it has fields but no Parameters."""
    fields = dataclasses.is_dataclass(made) or hasattr(made, "_fields")
    return fields and "Parameters\n" not in str(made.__doc__)


def lacks(module: str, name: str) -> Iterator[str]:
    """Yield what is missing in the documentation of a public name."""
    if not hasattr(importlib.import_module(module), name):
        yield f"{module}.{name} is in __all__ and does not exist"
        return
    made = getattr(importlib.import_module(module), name)
    if typing.get_origin(made) is not None:  # an alias of annotations has no docstring of its own
        return
    text = str(inspect.getdoc(made) or "")
    if len(text) <= 10:
        yield f"{module}.{name} has no docstring"
    if inspect.ismodule(made) or not callable(made) or (inspect.isclass(made) and is_result(made)):
        return
    if inspect.isclass(made):
        text += "".join(str(member.__doc__) for key, member in vars(made).items() if not key.startswith("_"))
    if "Examples\n" not in text or ">>>" not in text:
        yield f"{module}.{name} has no section of examples"


def test_every_public_name_is_documented_with_an_example() -> None:
    names = [(module, name) for module in PUBLIC for name in getattr(importlib.import_module(module), "__all__", [])]
    assert len(names) > 200
    lacking = [lack for module, name in names for lack in lacks(module, name)]
    assert not lacking, "\n".join(lacking)


def test_every_public_package_has_a_docstring() -> None:
    assert [name for name in PUBLIC if not importlib.import_module(name).__doc__] == []
