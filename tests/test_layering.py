"""Keep docs/design.md's table of which room may import which, by reading imports; no private name of another room, no
circle, no helper that takes a recipe. Planted violations are caught.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import hopfuse
import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "hopfuse"
KERNELS = ROOT / "kernels"

# ---- The table ------------------------------------------------------------------------------------------------------

#: What every room may see: the checks, arrays and folding of texts that all share.
SHARED = {"errors", "_arrays", "_lazy", "_threads", "_validation", "text"}
#: Rooms whose public names make up the public API.
API = {"", "types", "ops", "fusion", "encoders", "index", "recipes", "io"} | SHARED
#: Rooms around the API, each with third-party libraries of its own.
AROUND = ("extract", "lexical", "llm", "adapters", "evaluate", "diagnose", "report", "stores")
#: Rooms of the package that a room may import, beside itself. "" is the package's own __init__.
ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "_lazy": set(),
    "text": {"errors", "_lazy"},
    "_validation": {"errors"},
    "_threads": {"_arrays", "errors", "_validation"},
    "_arrays": {"_native", "errors", "_validation"},
    "types": SHARED,
    "fusion": SHARED,
    "reference": {"fusion", "types"} | SHARED,
    "backends": {"_native", "fusion", "types"} | SHARED,
    "ops": {"backends", "fusion", "types"} | SHARED,
    "io": {"types"} | SHARED,
    "encoders": {"types"} | SHARED,
    "index": {"encoders", "io", "lexical", "types"} | SHARED,
    "recipes": {"encoders", "ops", "fusion", "index", "types"} | SHARED,
    **dict.fromkeys(AROUND, API | set(AROUND)),
    "retriever": {"encoders", "extract", "index", "lexical", "recipes", "types"} | SHARED,
    "adapters": API | set(AROUND) | {"client", "retriever"},
    "diagnose": API | set(AROUND) | {"retriever"},
    **dict.fromkeys(["serve", "offline"], API | set(AROUND) | {"retriever"}),
    "cli": API | set(AROUND) | {"serve", "offline", "retriever"},
    "client": API,
    "": API | set(AROUND) | {"backends", "reference", "retriever"},
    "__main__": {"cli"},
}
#: Third-party modules that a room, or one module, may import at its top, beside numpy.
EAGER: dict[str, set[str]] = {
    "cli": {"click", "rich"},
    "serve": {"httptools", "msgspec", "prometheus_client", "starlette", "uvicorn"},
    # Classes of these frameworks are the bases of the adapters' own; hopfuse.adapters does not import these modules.
    "hopfuse.adapters.dspy": {"dspy"},
    "hopfuse.adapters.haystack": {"haystack"},
    "hopfuse.adapters.langchain": {"langchain_core", "pydantic"},
    "hopfuse.adapters.llama_index": {"llama_index"},
}
#: Rooms that may import other third-party modules inside functions.
LAZY = {"encoders", "index", "io", "cli", "client", "serve", "offline", *AROUND}
#: The module of a higher room that a module imports by its name, with import_module, where the caller asks for it.
BY_NAME = {"hopfuse.index.index": "hopfuse.extract.building"}
#: Names that hopfuse loads at their first use, while it holds a lock: no module takes them while it is imported.
LOADED = {*hopfuse.__all__} - {"errors"}
#: Modules that no room may import: they run what they read.
UNSAFE = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
#: A recipe sees no files and no network.
OUTSIDE = {
    "os",
    "io",
    "pathlib",
    "shutil",
    "tempfile",
    "socket",
    "ssl",
    "http",
    "urllib",
    "ftplib",
    "subprocess",
    "mmap",
}
#: Classes of recipes; what uses a recipe takes the protocol, and what it is made of takes values.
RECIPES = {"GuidedWalk", "PhaseGraph", "PolicyRAG", "HybridRRF", "PlainHybrid", "TripleHybrid"}
#: Their names.
RECIPE_NAMES = {"guided-walk", "phase-graph", "policy-rag", "hybrid-rrf", "plain-hybrid", "triple-hybrid"}
#: Public methods of a named tuple, whatever their names begin with.
NAMED_TUPLE = {"_asdict", "_fields", "_field_defaults", "_make", "_replace"}
#: Headers of kernels/device that no other room reads.
DEVICE_ALONE = {"groups.h", "planted.h", "state.h", "tape.h"}
#: Headers of kernels/cpu that the bindings read: the table of kernels, input checks, changes of graphs, prepared
#: graphs, seeds, sums of terms, pools of threads and workspaces, the floating-point mode.
BOUND = {
    "float_mode.h",
    "graph_changes.h",
    "inputs.h",
    "kernels.h",
    "prepared_graph.h",
    "seeds.h",
    "terms.h",
    "threads.h",
    "workspace.h",
}


class Import(NamedTuple):
    module: str  # absolute; names imported from a package are part of it
    name: str  # that it is bound to
    line: int
    lazy: bool  # inside a function, or for types only
    typing_only: bool

    @property
    def is_loaded(self) -> bool:
        """Return whether it takes, while a module is imported, a name that hopfuse loads at its first use."""
        package, _, name = self.module.partition(".")
        return not self.lazy and package == "hopfuse" and self.name != package and name in LOADED

    def by_name(self, module: str) -> bool:
        """Return whether ``module`` may import this one by its name."""
        return self.lazy and not self.name and BY_NAME.get(module) == self.module


# ---- Python ---------------------------------------------------------------------------------------------------------


def module_name(path: Path, base: Path) -> str:
    parts = path.relative_to(base.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@lru_cache(maxsize=1)
def tree(source: str) -> ast.Module:
    return ast.parse(source)


@lru_cache(maxsize=1)
def nodes(source: str) -> list[ast.AST]:
    """Return the nodes of a file."""
    return list(ast.walk(tree(source)))


@cache
def imports_of(source: str, module: str, is_package: bool) -> list[Import]:
    """Return every import statement, every import_module("a name"), and every import_extra of one."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    return list(_walk(tree(source), package, re.search(r"\bimport_(module|extra)\b", source) is not None, False, False))


def _walk(node: ast.AST, package: list[str], calls: bool, lazy: bool, typing_only: bool) -> Iterator[Import]:
    """Go through statements, and through expressions only in a file that ``calls`` something that imports."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            bound = alias.asname or alias.name.split(".")[0]
            yield Import(alias.name, bound, node.lineno, lazy, typing_only)
    elif isinstance(node, ast.ImportFrom):
        base = package[: len(package) - node.level + 1] if node.level else []
        stem = ".".join([*base, *([node.module] if node.module else [])])
        for alias in node.names:
            yield Import(f"{stem}.{alias.name}", alias.asname or alias.name, node.lineno, lazy, typing_only)
    elif isinstance(node, ast.Call) and _called(node) in ("import_module", "import_extra") and node.args:
        name = node.args[0]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield Import(name.value, "", node.lineno, lazy, typing_only)
    inside = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    typed = node.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) else []
    for child in ast.iter_child_nodes(node):
        if calls or not isinstance(child, ast.expr):
            for_types = child in typed
            yield from _walk(child, package, calls, inside or for_types, typing_only or for_types)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def room_of(module: str) -> str:
    """ "ops" for hopfuse.ops.ppr, "" for hopfuse and for a public name of hopfuse."""
    parts = module.split(".")
    rooms = {*ROOMS, "_native"}
    return parts[1] if len(parts) > 1 and parts[1] in rooms else ""


def above(module: str) -> list[str]:
    """The module and the packages that it is in."""
    parts = module.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    room, found = room_of(module), []
    for one in imports_of(source, module, is_package):
        if one.by_name(module):
            continue
        top = one.module.split(".")[0]
        if top == "hopfuse":
            other = room_of(one.module)
            if other != room and other not in ROOMS[room]:
                found.append(f"{module}:{one.line} imports {one.module}: {room or 'hopfuse'} may not see {other}")
            if one.is_loaded and room != "cli":
                found.append(f"{module}:{one.line} imports {one.module}, which one thread loads at its first use")
            if room == other == "recipes" and module.count(".") >= 3:
                mine, theirs = module.split(".")[2], [*one.module.split("."), ""][2]
                if (PACKAGE / "recipes" / theirs).is_dir() and theirs not in ("_parts", mine):
                    found.append(f"{module}:{one.line} imports {one.module}: a recipe may not see another")
        elif top in UNSAFE:
            found.append(f"{module}:{one.line} imports {top}, which runs what it reads")
        elif top in sys.stdlib_module_names:
            if room == "recipes" and top in OUTSIDE:
                found.append(f"{module}:{one.line} imports {top}: a recipe sees no files and no network")
        elif top != "numpy" or room == "errors":
            ours = any(top in EAGER[name] for name in (room, *above(module)) if name in EAGER)
            ours = ours or (room in LAZY and one.lazy)
            if not ours:
                found.append(f"{module}:{one.line} imports {top}: {room or 'hopfuse'} may not, or not at its top")
    found += [f"{module}:{line} calls {name}" for line, name in unsafe_calls(source, room)]
    found += private_names(source, module, is_package)
    return found + recipe_parameters(source, module) + recipe_tests(source, module)


def unsafe_calls(source: str, room: str) -> Iterator[tuple[int, str]]:
    for node in nodes(source):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec", "__import__"):
            yield node.lineno, node.func.id
        if isinstance(node.func, ast.Name) and node.func.id == "open" and room == "recipes":
            yield node.lineno, "open: a recipe sees no files"
        for keyword in node.keywords:
            if keyword.arg == "allow_pickle" and not (
                isinstance(keyword.value, ast.Constant) and keyword.value.value is False
            ):
                yield node.lineno, "something with allow_pickle"


def private_names(source: str, module: str, is_package: bool = False) -> list[str]:
    """Return private names of another room that are imported, or read from imported names."""
    room, found = room_of(module), []
    bound: dict[str, str] = {}
    for one in imports_of(source, module, is_package):
        if one.module.split(".")[0] != "hopfuse":
            continue
        bound[one.name] = one.module if one.name != "hopfuse" else "hopfuse"
        if room_of(one.module) != room and is_private(one.module):
            found.append(f"{module}:{one.line} imports {one.module}: private to {room_of(one.module) or 'hopfuse'}")
    for node in nodes(source):
        chain = attributes(node)
        if len(chain) < 2 or chain[0] not in bound:
            continue
        dotted = ".".join([bound[chain[0]], *chain[1:]])
        if room_of(dotted) != room and is_private(dotted) and not is_private(bound[chain[0]]):
            found.append(f"{module}:{node.lineno} reads {dotted}: private to {room_of(dotted) or 'hopfuse'}")
    return found


def is_private(dotted: str) -> bool:
    """Return whether a name below a room is private; rooms whose own names begin so are shared, as the table says."""
    parts = dotted.split(".")[1:]
    below = parts[1:] if parts[:1] and parts[0] in {*ROOMS, "_native"} else parts
    return any(part.startswith("_") and not part.startswith("__") and part not in NAMED_TUPLE for part in below)


def attributes(node: ast.AST) -> list[str]:
    """Return ["a", "b", "c"] for a.b.c; an empty list if it does not begin with a name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) and parts else []


def recipe_tests(source: str, module: str) -> list[str]:
    """Comparisons with the name or the class of a recipe: what a recipe is like stands on its class."""
    if room_of(module) in ("recipes", "retriever"):
        return []
    found = []
    for node in nodes(source):
        if isinstance(node, ast.Compare):
            compared = [part for side in (node.left, *node.comparators) for part in ast.walk(side)]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            compared = [part for side in node.args for part in ast.walk(side)]
        else:
            continue
        names = {part.value for part in compared if isinstance(part, ast.Constant) and isinstance(part.value, str)}
        names |= {part.id for part in compared if isinstance(part, ast.Name)}
        if names & (RECIPES | RECIPE_NAMES):
            found.append(f"{module}:{node.lineno} tests a recipe: ask its class what it is like")
    return found


def recipe_parameters(source: str, module: str) -> list[str]:
    """Functions that take a whole recipe: no room needs the class of one, and the recipes' own helpers take values."""
    inside = room_of(module) == "recipes"
    found = []
    for node in nodes(source):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for argument in given:
            named = set(re.findall(r"\w+", ast.unparse(argument.annotation))) if argument.annotation else set()
            if named & RECIPES or (inside and (argument.arg == "recipe" or "Recipe" in named)):
                found.append(f"{module}:{node.lineno} takes a recipe, {argument.arg}: take the values that are used")
    return found


def circles(sources: dict[str, tuple[str, bool]]) -> list[list[str]]:
    """Files that import each other, by whatever way, at run time or for types: ``{module: (source, is_package)}``."""
    arrows: dict[str, set[str]] = {}
    for module, (source, is_package) in sources.items():
        reached = {one.module for one in imports_of(source, module, is_package) if not one.by_name(module)}
        arrows[module] = {file for name in reached if (file := file_of(name, sources)) not in (None, module)}
    return [sorted(circle) for circle in strongly_connected(arrows) if len(circle) > 1]


def file_of(name: str, sources: dict[str, tuple[str, bool]]) -> str | None:
    """The module, or the one that the name is read from; the native module is no file of the package."""
    if name.startswith("hopfuse._native"):
        return None
    while name and name not in sources:
        name = name.rpartition(".")[0]
    return name or None


def strongly_connected(arrows: dict[str, set[str]]) -> list[set[str]]:
    """Tarjan's algorithm."""
    number: dict[str, int] = {}
    least: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        number[node] = least[node] = len(number)
        stack.append(node)
        for other in sorted(arrows[node]):
            if other not in number:
                visit(other)
                least[node] = min(least[node], least[other])
            elif other in stack:
                least[node] = min(least[node], number[other])
        if least[node] == number[node]:
            at = stack.index(node)
            found.append(set(stack[at:]))
            del stack[at:]

    for node in sorted(arrows):
        if node not in number:
            visit(node)
    return found


FILES = {
    module_name(path, PACKAGE): (path.read_text(), path.name == "__init__.py") for path in sorted(PACKAGE.rglob("*.py"))
}


def test_a_module_imports_only_what_its_room_may() -> None:
    found = [one for module, (source, is_package) in FILES.items() for one in violations(source, module, is_package)]
    assert not found, "\n".join(found)


def test_no_file_imports_another_in_a_circle() -> None:
    found = circles(FILES)
    assert not found, "\n".join(" <-> ".join(circle) for circle in found)


def test_what_is_imported_by_name_is_in_the_design() -> None:
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    for module, other in BY_NAME.items():
        assert any(one.by_name(module) for one in imports_of(FILES[module][0], module, FILES[module][1])), module
        assert f"`{module.removeprefix('hopfuse.')}`" in page
        assert f"`{other.removeprefix('hopfuse.')}`" in page


def test_every_room_is_in_the_table() -> None:
    rooms = {path.stem if path.is_file() else path.name for path in PACKAGE.iterdir() if _is_room(path)}
    assert rooms <= set(ROOMS)
    assert {"errors", "types", "reference", "backends", "fusion", "ops", "index", "recipes"} <= rooms


def design_table() -> dict[str, str]:
    """Return the rooms that each room may import by docs/design.md."""
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    table = page.split("| package |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| (`[^|]+) \|[^|]*\| ([^|]+) \|$", table, re.MULTILINE)
    return {room: may for named, may in rows for room in re.findall(r"`([\w/]+)`", named)}


def test_the_table_is_that_of_the_design() -> None:
    stated = design_table()
    assert set(ROOMS) - {"", "__main__"} <= set(stated)
    for room in sorted(set(ROOMS) - {"", "__main__"} - SHARED):
        may = stated[room].replace("the four above", "")
        assert ("the public API" in may) == (ROOMS[room] >= API), room
        named = {other for other in ROOMS if other and re.search(rf"\b{other}\b", may)} - {room} - SHARED
        native = {"_native"} if "the native module" in may else set()
        others = API | set(AROUND) if "the public API" in may else SHARED
        assert named | native == ROOMS[room] - others, room


def _is_room(path: Path) -> bool:
    return (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").exists()


def test_benchmarks_and_examples_use_no_private_name_of_the_package() -> None:
    for path in sorted(path for room in ("bench", "examples", "experiments") for path in (ROOT / room).rglob("*.py")):
        for one in imports_of(path.read_text(), module_name(path, ROOT), path.name == "__init__.py"):
            parts = one.module.split(".")
            private = [part for part in parts[1:] if part.startswith("_") and not part.startswith("__")]
            assert parts[0] != "hopfuse" or not private, f"{path}:{one.line} imports {one.module}"


def test_programs_import_modules_that_there_are() -> None:
    """Some run only where an extra is installed."""
    gone = []
    for path in sorted(
        path for room in ("bench", "examples", "experiments", "tests") for path in (ROOT / room).rglob("*.py")
    ):
        for one in imports_of(path.read_text(encoding="utf-8"), module_name(path, ROOT), path.name == "__init__.py"):
            there = {one.module, one.module.rpartition(".")[0]} & {*FILES, "hopfuse._native"}
            if one.module.partition(".")[0] == "hopfuse" and not there:
                gone.append(f"{path}:{one.line} imports {one.module}")
    assert gone == []


PLANTED = [
    ("hopfuse.types.graph", "from ..ops.ppr import ppr"),
    ("hopfuse.types.graph", "from .. import ops"),
    ("hopfuse.types.graph", "import hopfuse"),
    ("hopfuse.types.graph", "import scipy.sparse"),
    ("hopfuse.types.graph", "def f():\n    import scipy.sparse"),
    ("hopfuse.errors", "import numpy as np"),
    ("hopfuse.errors", "from .types import Graph"),
    ("hopfuse.reference.pagerank", "from .. import _native"),
    ("hopfuse.reference.pagerank", "from hopfuse import _native"),
    ("hopfuse.reference.pagerank", "import hopfuse._native"),
    ("hopfuse.reference.pagerank", "def f():\n    from ..ops.ppr import ppr"),
    ("hopfuse.reference.fusion", "from ..backends import cpu"),
    ("hopfuse.backends.cpu", "from ..ops.ppr import ppr"),
    ("hopfuse.backends.cpu", "import cupy"),
    ("hopfuse.backends.cpu", "def f():\n    import cupy"),
    ("hopfuse.backends.first_use", "def f():\n    import cupy"),
    ("hopfuse.backends.cuda.interop", "import cupy"),
    ("hopfuse.backends.cuda.interop", "from importlib import import_module\nimport_module('cupy')"),
    ("hopfuse.backends.cuda.interop", "def f():\n    import torch"),
    ("hopfuse.backends.cuda.interop", "def f():\n    return import_module('cuda.pathfinder')"),
    ("hopfuse.ops.ppr", "def f():\n    import cupy"),
    ("hopfuse.backends.cpu", "from ..index import Index"),
    ("hopfuse.fusion.ranks", "from ..types import Hits"),
    ("hopfuse.ops.ppr", "from ..reference import ppr"),
    ("hopfuse.ops.ppr", "from .. import _native"),
    ("hopfuse.ops.ppr", "from ..index import Index"),
    ("hopfuse.ops.ppr", "from importlib import import_module\nimport_module('hopfuse.recipes')"),
    ("hopfuse.index.index", "import pickle"),
    ("hopfuse.index.index", "def f():\n    import pickle"),
    ("hopfuse.index.index", "from ..ops.ppr import ppr"),
    ("hopfuse.index.index", "def f():\n    from ..extract import building"),
    ("hopfuse.index.index", "from importlib import import_module\nimport_module('hopfuse.extract.building')"),
    ("hopfuse.index.index", "def f():\n    import_module('hopfuse.extract.memory')"),
    ("hopfuse.index.build", "def f():\n    import_module('hopfuse.extract.building')"),
    ("hopfuse.index.index", "import pyarrow"),
    ("hopfuse.index.index", "import numpy as np\nnp.load('x', allow_pickle=True)"),
    ("hopfuse.index.index", "eval('1')"),
    ("hopfuse.recipes.phase_graph.core", "from ...backends import cpu"),
    ("hopfuse.recipes.phase_graph.core", "from ... import _native"),
    ("hopfuse.recipes.phase_graph.core", "from ..hybrid_rrf.core import HybridRRF"),
    ("hopfuse.recipes.phase_graph.core", "from .. import hybrid_rrf"),
    ("hopfuse.recipes.phase_graph.core", "from pathlib import Path"),
    ("hopfuse.recipes.phase_graph.core", "def f():\n    import urllib.request"),
    ("hopfuse.recipes.phase_graph.core", "open('file')"),
    ("hopfuse.recipes.phase_graph.core", "from ...llm import ChatEndpoint"),
    ("hopfuse.encoders.protocol", "from ..index import Index"),
    ("hopfuse.cli.score", "from .. import _native"),
    ("hopfuse.cli.score", "from ..backends import backend_info"),
    ("hopfuse.cli.score", "import pyarrow"),
    ("hopfuse.recipes.phase_graph.core", "from ...lexical import BM25"),
    ("hopfuse.index.change", "from ..extract import canonical_key"),
    ("hopfuse.lexical.bm25", "import bm25s"),
    ("hopfuse.encoders.word_llama", "import wordllama"),
    ("hopfuse.encoders.word_llama", "if True:\n    import wordllama"),
    ("hopfuse.types.graph", "def f():\n    import_extra('scipy', 'reading')"),
    ("hopfuse.evaluate.metrics", "from .._native import ppr"),
    ("hopfuse.extract.gazetteer", "from ..backends.cpu import thread_count"),
    ("hopfuse", "from . import _native"),
    ("hopfuse.ops.fusion", "from .. import fusion as methods"),
    ("hopfuse.serve.service", "from .. import Index"),
    ("hopfuse.evaluate.sweep", "from hopfuse import fusion"),
]

ALLOWED = [
    ("hopfuse.types.graph", "import numpy as np\nfrom ..errors import InputError\nfrom .._arrays.csr import build_csr"),
    ("hopfuse.backends.cpu", "from .. import _native"),
    ("hopfuse.ops.ppr", "from ..backends import resolve\nfrom . import dense"),
    ("hopfuse.io.tables", "def f():\n    import pyarrow"),
    (
        "hopfuse.report.tables",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from rich.table import Table",
    ),
    (
        "hopfuse.recipes.phase_graph.core",
        "from ._seeding import Seed\nfrom ..index import Index\nfrom ..ops.ppr import ppr",
    ),
    ("hopfuse.cli.score", "import click\nfrom .. import Hits, Index\nfrom ..recipes import PhaseGraph"),
    ("hopfuse.encoders.word_llama", "def f():\n    import_module('wordllama')"),
    ("hopfuse.encoders.word_llama", "def f():\n    import_extra('wordllama', 'WordLlamaEncoder')"),
    ("hopfuse.index.index", "def f():\n    import_module('hopfuse.extract.building')"),
    (
        "hopfuse.serve.service",
        "from .. import __version__\nfrom ..index import Index\ndef f():\n    from .. import Index",
    ),
    ("hopfuse.ops.fusion", "from ..fusion import Max"),
    ("hopfuse.ops.fusion", "import hopfuse.fusion"),
]


@pytest.mark.parametrize(("module", "source"), PLANTED)
def test_a_planted_import_is_caught(module: str, source: str) -> None:
    assert len(violations(source, module, is_package=module == "hopfuse")) >= 1


@pytest.mark.parametrize(("module", "source"), ALLOWED)
def test_an_allowed_import_is_let_through(module: str, source: str) -> None:
    assert violations(source, module) == []


PRIVATE = [
    "from ..ops._calls import run",
    "from ..types.hits import _pad",
    "from ..types import _columns",
    "def f():\n    from ..ops._calls import run",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..types.hits import _Pad",
    "from importlib import import_module\nimport_module('hopfuse.ops._calls')",
    "from ..types import Hits\nHits._make_up(ids)",
    "from ..types import hits\nx = hits._pad",
    "from ..types import hits as lists\nx = lists.Hits._pad",
    "import hopfuse.types.hits\nhopfuse.types.hits._pad(1)",
    "from .. import _HOMES",
]
NOT_PRIVATE = [
    "from ._parts import run\nfrom . import _more\n_more._deep()",
    "from ..types import Needs\nNeeds._fields",
    "from .._validation import check_k\nfrom .._arrays import rows\nrows.gather()",
    "from ..types import Hits\nHits.__doc__",
    "from ..types import Hits\ndef f(hits: Hits):\n    return self._hits",
]


@pytest.mark.parametrize("source", PRIVATE)
def test_a_planted_private_name_is_caught(source: str) -> None:
    assert len(private_names(source, "hopfuse.recipes.results")) == 1
    assert len(violations(source, "hopfuse.recipes.results")) >= 1


@pytest.mark.parametrize("source", NOT_PRIVATE)
def test_names_of_the_own_room_and_public_ones_are_let_through(source: str) -> None:
    assert private_names(source, "hopfuse.recipes.results") == []


CIRCLES: list[tuple[dict[str, str], list[list[str]]]] = [
    ({"a": "from . import b", "b": "from . import a"}, [["a", "b"]]),
    ({"a": "from .b import f", "b": "def f():\n    from .a import g"}, [["a", "b"]]),
    (
        {"a": "from .b import f", "b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import T"},
        [["a", "b"]],
    ),
    ({"a": "from importlib import import_module\nimport_module('hopfuse.b')", "b": "from . import a"}, [["a", "b"]]),
    ({"a": "from . import b", "b": "from . import c", "c": "from .a import f"}, [["a", "b", "c"]]),
    (
        {"a": "from . import b", "b": "from . import a", "c": "from . import d", "d": "from . import c"},
        [["a", "b"], ["c", "d"]],
    ),
    ({"": "from .a import f", "a": "from . import f"}, [["", "a"]]),
    ({"": "from .a import f", "a": "from . import b", "b": "from . import _native"}, []),
    ({"a": "from . import b, c", "b": "from . import c", "c": "import numpy"}, []),
]


@pytest.mark.parametrize(("files", "expected"), CIRCLES)
def test_planted_circles_are_found(files: dict[str, str], expected: list[list[str]]) -> None:
    sources = {f"hopfuse.{name}".rstrip("."): (source, not name) for name, source in files.items()}
    found = sorted(circles(sources))
    assert found == [[f"hopfuse.{name}".rstrip(".") for name in circle] for circle in expected]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("hopfuse.recipes.phase_graph.walk", "def walk(recipe): ..."),
        ("hopfuse.recipes.phase_graph.walk", "def walk(one: PhaseGraph): ..."),
        ("hopfuse.recipes.phase_graph.walk", "def walk(k, *, one: Recipe | None = None): ..."),
        ("hopfuse.recipes.phase_graph.walk", "class Walk:\n    def __init__(self, recipe: Any): ..."),
        ("hopfuse.recipes.phase_graph.walk", "async def walk(one: 'hf.recipes.PolicyRAG'): ..."),
        ("hopfuse.recipes.phase_graph.walk", "walk = lambda recipe: recipe.index"),
        ("hopfuse.diagnose.stability", "def stability(recipe: HybridRRF): ..."),
        ("hopfuse.cli.eval", "def judge(recipe: Sequence[TripleHybrid]): ..."),
    ],
)
def test_a_planted_recipe_among_parameters_is_caught(module: str, source: str) -> None:
    assert len(recipe_parameters(source, module)) == 1
    assert len(violations(source, module)) >= 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("hopfuse.recipes.phase_graph.core", "class PhaseGraph:\n    def search(self, config: PhaseGraphConfig): ..."),
        ("hopfuse.cli.eval", "def judge(recipe: Recipe): ..."),
        ("hopfuse.recipes.phase_graph.core", "def rank(index: Index, config: PhaseGraphConfig) -> PhaseGraph: ..."),
    ],
)
def test_configs_and_the_protocol_outside_are_let_through(module: str, source: str) -> None:
    assert recipe_parameters(source, module) == []


@pytest.mark.parametrize(
    ("source", "module", "count"),
    [
        ('print(1 if name == "guided-walk" else 2)', "hopfuse.serve.app", 1),
        ('print(name in ("a", "triple-hybrid"))', "hopfuse.cli.recipes", 1),
        ("print(isinstance(recipe, PolicyRAG))", "hopfuse.offline.scoring", 1),
        ("print(kind is Recipes.PolicyRAG, kind is PolicyRAG)", "hopfuse.cli.recipes", 1),
        ('print(name == "guided-walk")', "hopfuse.retriever.collaborators", 0),
        ('TABLE = {"graph": Ranking("phase-graph")}', "hopfuse.diagnose.rankings", 0),
    ],
)
def test_a_test_of_a_recipe_is_found(source: str, module: str, count: int) -> None:
    assert len(recipe_tests(source, module)) == count


# ---- C++ ------------------------------------------------------------------------------------------------------------

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)
PYTHON = re.compile(r"nanobind|pybind|Python\.h|numpy/")
TOOLKIT = re.compile(r"^(cuda|cuda_runtime(_api)?|cublas\w*|nvrtc)\.h$")
CONTAINER = re.compile(r"\bstd::(vector|string|map|unordered_map|span|array|function|optional|unique_ptr|shared_ptr)\b")


def cpp_violations(source: str, path: str) -> list[str]:
    """``path`` is relative to the repository."""
    parts = Path(path).parts
    room = "bindings" if parts[0] == "bindings" else parts[1]
    found = []
    for quote, name in INCLUDE.findall(source):
        if room != "bindings" and PYTHON.search(name):
            found.append(f"{path} includes {name}: kernels know no Python")
        elif TOOLKIT.search(name):
            found.append(f"{path} includes {name}: no CUDA header is needed to build")
        elif quote == "<":
            if room == "include" and name not in ("cmath", "cstdint"):
                found.append(f"{path} includes <{name}>: a contract needs <cstdint> and <cmath> alone")
            if room == "cuda":
                found.append(f"{path} includes <{name}>: NVRTC has no standard headers")
        elif not name.startswith("hopfuse/") and not _may_include(room, name):
            found.append(f"{path} includes {name}: {room} may not")
    if room == "include":
        found += [f"{path} names std::{name} in a contract" for name in CONTAINER.findall(source)]
    return found


def _may_include(room: str, name: str) -> bool:
    parts = name.split("/")
    if room == "bindings" and parts[:3] == ["..", "kernels", "cpu"]:
        return len(parts) == 4 and parts[3] in BOUND
    if room == "bindings" and parts[:3] == ["..", "kernels", "device"]:
        return len(parts) == 4 and parts[3] not in DEVICE_ALONE
    if room in ("cuda", "device") and parts[0] == "arguments":
        return len(parts) == 2
    if room == "simt" and parts[:2] == ["..", "cuda"]:
        return True
    return (room != "include" and len(parts) == 1) or (room == "simt" and parts[0] == "hopfuse_simt")


SOURCES = sorted(
    path
    for folder in (KERNELS, ROOT / "bindings")
    for path in folder.rglob("*")
    if path.suffix in (".h", ".cpp", ".cu")
)


def test_a_source_file_includes_only_what_its_room_may() -> None:
    assert len(SOURCES) > 50
    found = [one for path in SOURCES for one in cpp_violations(path.read_text(), path.relative_to(ROOT).as_posix())]
    assert not found, "\n".join(found)


def test_the_bindings_hold_no_arithmetic_on_data() -> None:
    """No loop over an array's elements: a loop variable never indexes what .data() gave."""
    for path in sorted((ROOT / "bindings").glob("*")):
        assert not re.search(r"\.data\(\)\s*\[|\*\s*\w+\.data\(\)", path.read_text()), path


CPP_PLANTED = [
    ("kernels/include/hopfuse/ppr.h", "#include <vector>"),
    ("kernels/include/hopfuse/ppr.h", "#include <Python.h>"),
    ("kernels/include/hopfuse/ppr.h", '#include "../cpu/kernels.h"'),
    ("kernels/include/hopfuse/ppr.h", "void f(const std::vector<float>&);"),
    ("kernels/include/hopfuse/fusion/rrf.h", '#include "linear.h"'),
    ("kernels/cpu/ppr_f32.cpp", "#include <nanobind/nanobind.h>"),
    ("kernels/cpu/ppr_f32.cpp", '#include "../../bindings/common.h"'),
    ("kernels/cpu/ppr_f32.cpp", '#include "../cuda/ppr.cu"'),
    ("kernels/cuda/ppr.cu", '#include "../cpu/simd.h"'),
    ("kernels/cuda/ppr.cu", "#include <vector>"),
    ("kernels/simt/runner.cpp", '#include "../cpu/simd.h"'),
    ("bindings/ppr.cpp", '#include "../kernels/cpu/ppr_block.h"'),
    ("bindings/ppr.cpp", '#include "../kernels/cpu/simd.h"'),
    ("bindings/device.h", '#include "../kernels/device/state.h"'),
    ("kernels/device/ppr.cpp", "#include <nanobind/nanobind.h>"),
    ("kernels/device/ppr.cpp", "#include <cuda.h>"),
    ("kernels/device/ppr.cpp", '#include "../cpu/ppr_rows.h"'),
    ("kernels/device/ppr.cpp", '#include "ppr_walk/arguments.h"'),
    ("kernels/include/hopfuse/ppr.h", '#include "arguments/ppr_f32.h"'),
]


@pytest.mark.parametrize(("path", "source"), CPP_PLANTED)
def test_a_planted_include_is_caught(path: str, source: str) -> None:
    assert len(cpp_violations(source, path)) == 1
