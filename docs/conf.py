"""Settings of the documentation site: ``python -m sphinx -W docs build/site``, group ``docs``.

The API reference is generated: a page for each package, with every public name.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import hopfuse

project = "hopfuse"
author = "The hopfuse authors"
release = version = hopfuse.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc"]
exclude_patterns = ["api/_*"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
autodoc_typehints = "none"  # numpydoc's sections have the types
autodoc_member_order = "bysource"
# Pages link to files of the repository that are not part of the site; tests/test_site.py checks these links.
suppress_warnings = ["myst.header", "myst.xref_missing"]
html_theme = "furo"
html_title = f"hopfuse {release}"

#: The packages of the reference in reading order.
PACKAGES = (
    "hopfuse",
    "hopfuse.types",
    "hopfuse.fusion",
    "hopfuse.index",
    "hopfuse.stores",
    "hopfuse.recipes",
    "hopfuse.retriever",
    "hopfuse.text",
    "hopfuse.lexical",
    "hopfuse.encoders",
    "hopfuse.extract",
    "hopfuse.llm",
    "hopfuse.evaluate",
    "hopfuse.diagnose",
    "hopfuse.report",
    "hopfuse.offline",
    "hopfuse.offline.ray",
    "hopfuse.serve",
    "hopfuse.client",
    "hopfuse.adapters",
    "hopfuse.adapters.dialects",
    "hopfuse.reference",
    "hopfuse.errors",
)


def heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


def directive(package: str, name: str, value: object, shown: set[int]) -> str:
    """Return the directive of a name; a class or function that an earlier page has is only mentioned."""
    if inspect.isclass(value) or inspect.isfunction(value):
        if id(value) in shown:
            return f"``{name}`` is documented on an earlier page.\n"
        shown.add(id(value))
    if inspect.isclass(value):
        foreign = ", ".join(base.__name__ for base in value.__mro__ if not base.__module__.startswith("hopfuse"))
        return f".. autoclass:: {package}.{name}\n   :members:\n   :inherited-members: {foreign}\n"
    return f".. auto{'function' if callable(value) else 'data'}:: {package}.{name}\n"


def package_page(package: str, shown: set[int]) -> str:
    module = import_module(package)
    values = {name: getattr(module, name) for name in sorted(getattr(module, "__all__", ()), key=str.lower)}
    blocks = [heading(package, "="), f".. automodule:: {package}\n   :no-members:\n"]
    blocks += [directive(package, name, value, shown) for name, value in values.items() if not inspect.ismodule(value)]
    return "\n".join(blocks)


def write_reference(app: Any) -> None:
    """Write ``api/``: a page per package, and their index."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    shown: set[int] = set()
    for package in PACKAGES:
        (folder / f"{package}.rst").write_text(package_page(package, shown), encoding="utf-8")
    entries = "\n".join(f"   {package}" for package in PACKAGES)
    index = f"{heading('API reference', '=')}\n.. toctree::\n   :maxdepth: 1\n\n{entries}\n"
    (folder / "index.rst").write_text(index, encoding="utf-8")


def setup(app: Any) -> None:
    app.connect("builder-inited", write_reference)
