"""Settings of the documentation site: ``python -m sphinx -W docs build/site``, group ``docs``.

Each page of the API reference (docs/api.py) is replaced by one with the whole docstrings of all its names.
"""

from __future__ import annotations

import inspect
import sys
import typing
from pathlib import Path
from typing import Any

import hopfuse
from pygments.lexers.data import JsonLexer

sys.path.insert(0, str(Path(__file__).parent))  # Sphinx runs this file without its folder on the path
import api

project = "hopfuse"
author = "The hopfuse authors"
release = version = hopfuse.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
autodoc_typehints = "none"  # numpydoc's sections have the types
autodoc_member_order = "bysource"
# Pages link to files of the repository that are not part of the site; tests/test_site.py checks these links.
suppress_warnings = ["myst.header", "myst.xref_missing"]
html_theme = "furo"
html_title = f"hopfuse {release}"

#: Where docs/api.py writes the pages of packages.
REFERENCE = "api/"


def directive(package: str, name: str, value: object) -> str:
    """Return the directive of a name; a class or function that another page has is only mentioned."""
    if api.is_documented(value) and (home := api.homes()[id(value)]) != package:
        return f"``{name}``: see :py:obj:`{home}.{name}`.\n"
    if inspect.isclass(value):
        foreign = ", ".join(base.__name__ for base in value.__mro__ if not base.__module__.startswith("hopfuse"))
        return f".. autoclass:: {package}.{name}\n   :members:\n   :inherited-members: {foreign}\n"
    if typing.get_origin(value) is not None:  # autodoc takes an alias for what it stands for
        return f".. py:data:: {package}.{name}\n\n   {api.constant(value)}\n"
    return f".. auto{'function' if inspect.isroutine(value) else 'data'}:: {package}.{name}\n"


def package_page(package: str) -> str:
    """Return the page of a package, with all docstrings."""
    names = api.public_names(package)
    blocks = [f".. automodule:: {package}\n   :no-members:\n"]
    blocks += [directive(package, name, value) for name, value in names.items() if not inspect.ismodule(value)]
    return f"# {package}\n\n````{{eval-rst}}\n" + "\n".join(blocks) + "````\n"


def with_docstrings(app: Any, name: str, source: list[str]) -> None:
    """Replace the page of a package, as it is in the checkout, by one with all docstrings."""
    if name.removeprefix(REFERENCE) in api.PACKAGES and name.startswith(REFERENCE):
        source[0] = package_page(name.removeprefix(REFERENCE))


def setup(app: Any) -> None:
    app.add_lexer("jsonl", JsonLexer)
    app.connect("source-read", with_docstrings)
