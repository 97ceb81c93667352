"""Write docs/api/, the reference of all public names as Markdown: ``python docs/api.py``.

A page has a package's names, with signatures, the first sentence of their docstrings, and their parameters. Every
version of Python writes the same pages. The site (docs/conf.py) has the whole docstrings in their place.
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parent / "api"
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


def public_names(package: str) -> dict[str, Any]:
    """Return the names of a package's ``__all__`` and what they stand for, in alphabetical order."""
    module = import_module(package)
    return {name: getattr(module, name) for name in sorted(getattr(module, "__all__", ()), key=str.lower)}


def is_documented(value: object) -> bool:
    """Return whether a value has a docstring of its own."""
    return inspect.isclass(value) or inspect.isroutine(value)


@functools.cache
def homes() -> dict[int, str]:
    """Return the package whose page has each class and function, by the identity of these: the first below hopfuse."""
    found: dict[int, str] = {}
    for package in (*PACKAGES[1:], PACKAGES[0]):
        for value in public_names(package).values():
            if is_documented(value):
                found.setdefault(id(value), package)
    return found


# ---- Docstrings ------------------------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """A parameter or an attribute: its name or names, its type, and the first sentence about it."""

    names: str
    kind: str
    says: str

    def line(self) -> str:
        """Return a line of a list."""
        names = ", ".join(f"`{name.strip()}`" for name in self.names.split(","))
        return f"- {names}" + (f" ({self.kind})" if self.kind else "") + (f": {self.says}" if self.says else "")


def markdown(text: str) -> str:
    """Return a docstring's text as one line of Markdown."""
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", " ".join(text.split()))
    text = re.sub(r":math:`([^`]*)`", r"`\1`", text).replace("``", "`")
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if at % 2 else re.sub(r"([<*])", r"\\\1", part) for at, part in enumerate(parts))


def first_sentence(text: str) -> str:
    """Return the first sentence of the first paragraph of a text."""
    paragraph = " ".join(text.strip().partition("\n\n")[0].split())
    return markdown(re.split(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.) +(?=[A-Z`\"])", paragraph)[0])


def section(text: str, name: str) -> str:
    """Return what stands under a heading of a docstring, or nothing."""
    found = re.search(rf"^{name}\n-+\n(.*?)(?=^\S[^\n]*\n-{{3,}}$|\Z)", text, re.DOTALL | re.MULTILINE)
    return found[1] if found else ""


def entries(text: str, name: str) -> list[Entry]:
    """Return the entries of a docstring's section, such as "Parameters"."""
    made = []
    for block in re.split(r"^(?=\S)", section(text, name), flags=re.MULTILINE):
        head, _, rest = block.partition("\n")
        names, _, kind = head.partition(":")
        if names:
            made.append(Entry(names.strip(), markdown(kind), first_sentence(rest)))
    return made


# ---- Names -----------------------------------------------------------------------------------------------------------


#: Characters of a default value, and what is in those that read otherwise in each process.
LONGEST = 80
UNREADABLE = (" at 0x", "<", "set(", "mappingproxy(")


def shown(default: object) -> str:
    """Return a default value as a reader may write it."""
    if inspect.isclass(default) or inspect.isroutine(default):
        return str(default.__name__)
    text = repr(default)
    return "…" if len(text) > LONGEST or any(word in text for word in UNREADABLE) else text


def signature(value: Any, *, bound: bool = False) -> str:
    """Return the parameters of a function or class with their defaults, without annotations."""
    taken = list(inspect.signature(value).parameters.values())[bound:]
    plain = [one.replace(annotation=inspect.Parameter.empty, default=inspect.Parameter.empty) for one in taken]
    words, starred = [], False
    for one, bare in zip(taken, plain, strict=True):
        starred = starred or one.kind is one.VAR_POSITIONAL
        if one.kind is one.KEYWORD_ONLY and not starred:
            words, starred = [*words, "*"], True
        words.append(str(bare) + ("" if one.default is one.empty else f"={shown(one.default)}"))
    return f"({', '.join(words)})"


def members(kind: type, listed: dict[int, str]) -> Iterator[str]:
    """Yield a line for each public method and property of a class, and one for those that earlier classes listed.

    ``listed`` has the class that listed each member, by the identity of the member.
    """
    found: dict[str, Any] = {}
    for base in reversed([base for base in kind.__mro__ if base.__module__.startswith("hopfuse")]):
        found |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    earlier: dict[str, list[str]] = {}
    for name, value in sorted(found.items()):
        is_attribute = isinstance(value, property | functools.cached_property)
        if not (is_attribute or inspect.isfunction(value) or isinstance(value, classmethod | staticmethod)):
            continue
        if (owner := listed.setdefault(id(value), kind.__name__)) != kind.__name__:
            earlier.setdefault(owner, []).append(f"`.{name}`")
            continue
        bound = not isinstance(value, classmethod | staticmethod)
        call = "" if is_attribute else signature(getattr(kind, name), bound=bound)
        says = first_sentence(inspect.getdoc(value) or inspect.getdoc(getattr(kind, name)) or "")
        yield f"- `.{name}{call}`" + (f": {says}" if says else "")
    for owner, names in earlier.items():
        yield f"- As in `{owner}`: {', '.join(names)}"


def constant(value: object) -> str:
    """Return what a public name is that is neither a module nor a class or function."""
    if typing.get_origin(value) is typing.Literal:
        return f"One of {', '.join(f'`{one!r}`' for one in typing.get_args(value))}, as an annotation."
    if typing.get_origin(value) is not None:
        return "An alias for annotations."
    kind = "mapping" if isinstance(value, Mapping) else type(value).__name__
    return f"A constant of type `{kind}`."


def described(package: str, name: str, value: Any, listed: dict[int, str]) -> str:
    """Return the part of a page about a name."""
    if inspect.ismodule(value):
        page = f"{package}.{name}"
        title = f"[`{page}`]({page}.md)" if page in PACKAGES else f"`{page}`"
        return f"## {name}\n\nThe module {title}: {first_sentence(value.__doc__ or '')}"
    if not is_documented(value):
        return f"## {name}\n\n{constant(value)}"
    home = homes()[id(value)]
    if home != package:
        return f"## {name}\n\nThe name [`{home}.{value.__name__}`]({home}.md#{value.__name__.lower()})."
    text = inspect.getdoc(value) or ""
    taken, fields = entries(text, "Parameters"), entries(text, "Attributes")
    call = signature(value) if taken or not inspect.isclass(value) else ""
    blocks = [f"## {name}", f"`{name}{call}`" if call else "", first_sentence(text)]
    blocks += ["\n".join(entry.line() for entry in (*taken, *fields))]
    if inspect.isclass(value):
        blocks += ["\n".join(members(value, listed))]
    return "\n\n".join(block for block in blocks if block)


# ---- Pages -----------------------------------------------------------------------------------------------------------


def summary(package: str) -> str:
    """Return the first sentence of a package's docstring."""
    return first_sentence(import_module(package).__doc__ or "")


def page(package: str) -> str:
    """Return the page of a package."""
    listed: dict[int, str] = {}
    parts = [described(package, name, value, listed) for name, value in public_names(package).items()]
    return "\n\n".join([f"# {package}", summary(package), *parts]) + "\n"


def index() -> str:
    """Return the page that lists the others."""
    lines = [f"- [`{package}`]({package}.md): {summary(package)}" for package in PACKAGES]
    tree = "\n".join(("```{toctree}", ":hidden:", "", *PACKAGES, "```"))
    text = (
        "All public names, by package. The docstrings have more: shapes, types, errors and an example each "
        "(`help(hf.ppr)`)."
    )
    return "\n\n".join(["# API reference", text, "\n".join(lines), tree]) + "\n"


def pages() -> dict[str, str]:
    """Return the text of each page, by the name of its file."""
    return {"index.md": index()} | {f"{package}.md": page(package) for package in PACKAGES}


def write() -> None:
    """Write all pages, and delete those of packages that are gone."""
    FOLDER.mkdir(exist_ok=True)
    made = pages()
    for old in FOLDER.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
