"""The pages of docs/api/ are what docs/api.py writes, and have every public name with its parameters."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

for package in ("click", "httptools", "msgspec", "prometheus_client", "starlette", "uvicorn"):
    pytest.importorskip(package, reason="the reference imports the server")

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))
import api  # noqa: E402

COMMITTED = {path.name: path.read_text(encoding="utf-8") for path in sorted(api.FOLDER.glob("*.md"))}
LIMIT = 30_000  # characters of a page


def test_the_pages_are_current() -> None:
    made = api.pages()
    stale = sorted(name for name in made.keys() | COMMITTED.keys() if made.get(name) != COMMITTED.get(name))
    assert stale == [], f"run: {Path(sys.executable).name} docs/api.py"


def test_every_public_package_has_a_page_in_the_index() -> None:
    folder = ROOT / "python" / "hopfuse"
    packages = {"hopfuse"} | {f"hopfuse.{path.parent.name}" for path in folder.glob("[!_]*/__init__.py")}
    public = {one for one in packages if hasattr(importlib.import_module(one), "__all__")}
    assert public - {"hopfuse.backends", "hopfuse.cli", "hopfuse.io", "hopfuse.ops"} <= set(api.PACKAGES)
    tree = re.search(r"```{toctree}\n:hidden:\n\n(.*?)\n```", COMMITTED["index.md"], re.DOTALL)
    assert tree is not None
    assert tree[1].splitlines() == list(api.PACKAGES)


@pytest.mark.parametrize("package", api.PACKAGES)
def test_a_page_has_each_name_and_each_parameter(package: str) -> None:
    text = COMMITTED[f"{package}.md"]
    assert len(text) < LIMIT
    parts = {part.partition("\n")[0]: part for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]}
    names = api.public_names(package)
    assert list(parts) == list(names)
    for name, value in names.items():
        if inspect.isfunction(value) and api.homes()[id(value)] == package and "Parameters" in (value.__doc__ or ""):
            listed = set(re.findall(r"`\*{0,2}(\w+)`", " ".join(re.findall(r"^- (.*)", parts[name], re.MULTILINE))))
            assert set(inspect.signature(value).parameters) <= listed | undescribed(value), name


def undescribed(value: object) -> set[str]:
    """Return the parameters that a docstring does not list."""
    text = inspect.getdoc(value) or ""
    listed = {name.strip(" *") for entry in api.entries(text, "Parameters") for name in entry.names.split(",")}
    return set(inspect.signature(value).parameters) - listed  # type: ignore[arg-type]


def test_no_page_depends_on_an_address_or_an_annotation() -> None:
    whole = "".join(COMMITTED.values())
    assert re.findall(r"0x[0-9a-f]{6,}|<class |typing\.", whole) == []
    assert re.findall(r"^`\w+\([^`]*->", whole, re.MULTILINE) == []


def test_an_entry_of_a_docstring_becomes_a_line() -> None:
    text = """Do it. Then rest.

    Parameters
    ----------
    first, second : int, optional
        How many ``items``, as :class:`~hopfuse.types.Hits` has them, e.g. two. By default 1.

        Another paragraph.
    **more
        Options < 2.

    Returns
    -------
    int
    """
    text = inspect.cleandoc(text)
    assert api.first_sentence(text) == "Do it."
    lines = [entry.line() for entry in api.entries(text, "Parameters")]
    assert lines == [
        "- `first`, `second` (int, optional): How many `items`, as `Hits` has them, e.g. two.",
        "- `**more`: Options \\< 2.",
    ]
    assert api.entries(text, "Attributes") == []


def test_a_signature_shows_values_that_a_reader_can_write() -> None:
    def made(first: int, *, kind: type = int, empty: object = object(), rate: float = 0.5) -> None:
        raise AssertionError

    assert api.signature(made) == "(first, *, kind=int, empty=…, rate=0.5)"
    assert api.signature(made, bound=True) == "(*, kind=int, empty=…, rate=0.5)"
