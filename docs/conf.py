"""Settings of the documentation's site: ``python -m sphinx -W docs build/site``, extra ``docs``.

The API reference is generated: a page for each room of the package and, on it, every public name.
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
# Pages link files of the repository, which are no part of the site; tests/test_site.py keeps the links.
suppress_warnings = ["myst.header", "myst.xref_missing"]
html_theme = "furo"
html_title = f"hopfuse {release}"

#: The rooms of the reference in reading order, the package itself first.
ROOMS = (
    "hopfuse",
    "hopfuse.types",
    "hopfuse.fusion",
    "hopfuse.index",
    "hopfuse.recipes",
    "hopfuse.lexical",
    "hopfuse.encoders",
    "hopfuse.extract",
    "hopfuse.llm",
    "hopfuse.evaluate",
    "hopfuse.diagnose",
    "hopfuse.report",
    "hopfuse.offline",
    "hopfuse.offline.ray",
    "hopfuse.client",
    "hopfuse.adapters",
    "hopfuse.reference",
    "hopfuse.errors",
)


def heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


def directive(room: str, name: str, value: object, shown: set[int]) -> str:
    """Return how autodoc shows a name: a class with its methods, a function, or a value, each in its first room."""
    if inspect.isclass(value) or inspect.isfunction(value):
        if id(value) in shown:
            return f"``{name}`` is that of the package.\n"
        shown.add(id(value))
    if inspect.isclass(value):
        return f".. autoclass:: {room}.{name}\n   :members:\n"
    return f".. auto{'function' if callable(value) else 'data'}:: {room}.{name}\n"


def room_page(room: str, shown: set[int]) -> str:
    module = import_module(room)
    values = {name: getattr(module, name) for name in sorted(getattr(module, "__all__", ()), key=str.lower)}
    blocks = [heading(room, "="), f".. automodule:: {room}\n   :no-members:\n"]
    blocks += [directive(room, name, value, shown) for name, value in values.items() if not inspect.ismodule(value)]
    return "\n".join(blocks)


def write_reference(app: Any) -> None:
    """Write ``api/``: a page a room, and their index."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    shown: set[int] = set()
    for room in ROOMS:
        (folder / f"{room}.rst").write_text(room_page(room, shown), encoding="utf-8")
    entries = "\n".join(f"   {room}" for room in ROOMS)
    index = f"{heading('API reference', '=')}\n.. toctree::\n   :maxdepth: 1\n\n{entries}\n"
    (folder / "index.rst").write_text(index, encoding="utf-8")


def setup(app: Any) -> None:
    app.connect("builder-inited", write_reference)
