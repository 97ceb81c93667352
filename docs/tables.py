"""Write the lists and tables of README.md and docs/ that follow from pyproject.toml, the package and result files.

``python docs/tables.py`` rewrites what stands between their markers; tests/test_tables.py fails if that changes a page.
"""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hopfuse.recipes import RECIPES
from measured import MEASURED

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 120


def extras(project: dict[str, Any] | None = None) -> str:
    """Return all extras with what ``[tool.hopfuse.extras]`` of pyproject.toml says of each; equal ones share it."""
    project = project or tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    said: dict[str, str] = project["tool"]["hopfuse"]["extras"]
    declared = project["project"]["optional-dependencies"]
    if set(said) != set(declared):
        raise ValueError(f"[tool.hopfuse.extras] and the extras differ in {sorted(set(said) ^ set(declared))}")
    names: dict[str, list[str]] = {}
    for name, text in said.items():
        names.setdefault(text, []).append(f"`{name}`")
    listed = ", ".join(f"{_joined(of)} ({text})" for text, of in names.items())
    return textwrap.fill(f"Extras: {listed}.", WIDTH, break_long_words=False, break_on_hyphens=False)


def _joined(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def recipes(folder: str) -> str:
    """Return a table of the recipes, for a page from which ``folder`` leads to docs/."""
    lines = ["| Recipe | Class | Ranks | What it does |", "|---|---|---|---|"]
    for name, kind in RECIPES.items():
        page = f"{kind.__module__.split('.')[2].replace('_', '-')}.md"
        says = (kind.__doc__ or "").strip().splitlines()[0].rstrip(".")
        lines.append(f"| `{name}` | [{kind.__name__}]({folder}{page}) | {kind.ranks} | {says} |")
    return "\n".join(lines)


#: The lists of each page, by their markers.
LISTS: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"extras": extras, "recipes": lambda: recipes("docs/")},
    "docs/retriever.md": {"recipes": lambda: recipes("")},
    **MEASURED,
}


def current(page: str) -> str:
    """Return a page with its lists as they should be."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, made in LISTS[page].items():
        begin, end = f"<!-- {name}: python docs/tables.py -->\n", f"\n<!-- end of {name} -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"{page} has no place for the list of {name}")
        before, _, rest = text.partition(begin)
        text = before + begin + made() + end + rest.partition(end)[2]
    return text


if __name__ == "__main__":
    for page in LISTS:
        (ROOT / page).write_text(current(page), encoding="utf-8")
