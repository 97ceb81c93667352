"""Which room may import which: docs/design.md's table, kept by reading the imports. Planted violations are caught."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "hopfuse"
KERNELS = ROOT / "kernels"

# ---- The table ------------------------------------------------------------------------------------------------------

PUBLIC = {
    "",
    "errors",
    "types",
    "ops",
    "fusion",
    "index",
    "recipes",
    "encoders",
    "extract",
    "lexical",
    "connect",
    "evaluate",
    "adapters",
    "reference",
}
#: Rooms of the package that a room may import, beside itself. "" is the package's own __init__.
ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "types": {"errors"},
    "fusion": {"errors"},
    "reference": {"errors", "types"},
    "backends": {"_native", "errors", "types"},
    "ops": {"backends", "fusion", "errors", "types"},
    "index": {"errors", "types"},
    "recipes": {"ops", "fusion", "index", "errors", "types"},
    **dict.fromkeys(["encoders", "extract", "lexical", "connect", "adapters", "evaluate"], PUBLIC - {"reference"}),
    **dict.fromkeys(["cli", "server", "distributed"], PUBLIC - {"reference"}),
    "": PUBLIC | {"backends"},
}
#: Third-party modules that a room may import at its top, beside numpy.
EAGER: dict[str, set[str]] = {"cli": {"click", "rich"}}
#: Rooms that may import other third-party modules inside functions.
LAZY = {"index", "encoders", "extract", "lexical", "connect", "adapters", "evaluate", "cli", "server", "distributed"}
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
#: Headers of kernels/cpu that the bindings read: the table of kernels and the pool of workspaces.
BOUND = {"kernels.h", "workspace.h"}


class Import(NamedTuple):
    module: str  # absolute; names imported from a package are part of it
    line: int
    lazy: bool  # inside a function, or for types only
    typing_only: bool


# ---- Python ---------------------------------------------------------------------------------------------------------


def module_name(path: Path, base: Path) -> str:
    parts = path.relative_to(base.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(source: str, module: str, is_package: bool) -> Iterator[Import]:
    """Every import statement, and every import_module("a name")."""
    yield from _walk(ast.parse(source), module.split(".") if is_package else module.split(".")[:-1], False, False)


def _walk(node: ast.AST, package: list[str], lazy: bool, typing_only: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, node.lineno, lazy, typing_only)
    elif isinstance(node, ast.ImportFrom):
        base = package[: len(package) - node.level + 1] if node.level else []
        stem = ".".join([*base, *([node.module] if node.module else [])])
        for alias in node.names:
            yield Import(f"{stem}.{alias.name}", node.lineno, lazy, typing_only)
    elif isinstance(node, ast.Call) and _called(node) == "import_module" and node.args:
        name = node.args[0]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield Import(name.value, node.lineno, lazy, typing_only)
    for child in ast.iter_child_nodes(node):
        inside = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and child in node.body
        yield from _walk(child, package, inside or for_types, typing_only or for_types)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def room_of(module: str) -> str:
    """ "ops" for hopfuse.ops.ppr, "" for hopfuse and for a public name of hopfuse."""
    parts = module.split(".")
    rooms = {*ROOMS, "_native"}
    return parts[1] if len(parts) > 1 and parts[1] in rooms else ""


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    room, found = room_of(module), []
    for one in imports_of(source, module, is_package):
        top = one.module.split(".")[0]
        if top == "hopfuse":
            other = room_of(one.module)
            if other != room and other not in ROOMS[room]:
                found.append(f"{module}:{one.line} imports {one.module}: {room or 'hopfuse'} may not see {other}")
            if room == other == "recipes" and not is_package and not one.typing_only:
                stem = one.module.split(".")[2]
                if not stem.startswith("_") and stem != module.split(".")[2]:
                    found.append(f"{module}:{one.line} imports {one.module}: a recipe may not see another")
        elif top in UNSAFE:
            found.append(f"{module}:{one.line} imports {top}, which runs what it reads")
        elif top in sys.stdlib_module_names:
            if room == "recipes" and top in OUTSIDE:
                found.append(f"{module}:{one.line} imports {top}: a recipe sees no files and no network")
        elif top != "numpy" or room == "errors":
            ours = top in EAGER.get(room, set()) or (room in LAZY and one.lazy)
            ours = ours or (top in ("cupy", "cuda") and one.lazy and module.startswith("hopfuse.backends.cuda."))
            if not ours:
                found.append(f"{module}:{one.line} imports {top}: {room or 'hopfuse'} may not, or not at its top")
    return found + [f"{module}:{line} calls {name}" for line, name in unsafe_calls(source, room)]


def unsafe_calls(source: str, room: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
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


MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: module_name(path, PACKAGE))
def test_a_module_imports_only_what_its_room_may(path: Path) -> None:
    assert violations(path.read_text(), module_name(path, PACKAGE), path.name == "__init__.py") == []


def test_every_room_is_in_the_table() -> None:
    rooms = {path.stem if path.is_file() else path.name for path in PACKAGE.iterdir() if _is_room(path)}
    assert rooms <= set(ROOMS)
    assert {"errors", "types", "reference", "backends", "fusion", "ops", "index", "recipes"} <= rooms


def _is_room(path: Path) -> bool:
    return (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").exists()


def test_the_benchmarks_use_no_private_name_of_the_package() -> None:
    for path in sorted((ROOT / "bench").rglob("*.py")):
        for one in imports_of(path.read_text(), module_name(path, ROOT / "bench"), path.name == "__init__.py"):
            parts = one.module.split(".")
            private = [part for part in parts[1:] if part.startswith("_") and not part.startswith("__")]
            assert parts[0] != "hopfuse" or not private, f"{path}:{one.line} imports {one.module}"


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
    ("hopfuse.reference.fusion.rrf", "from ...backends import cpu"),
    ("hopfuse.backends.cpu", "from ..ops.ppr import ppr"),
    ("hopfuse.backends.cpu", "import cupy"),
    ("hopfuse.backends.cpu", "def f():\n    import cupy"),
    ("hopfuse.backends.first_use", "def f():\n    import cupy"),
    ("hopfuse.backends.cuda.cupy_runtime", "import cupy"),
    ("hopfuse.backends.cuda.cupy_runtime", "from importlib import import_module\nimport_module('cupy')"),
    ("hopfuse.backends.cuda.cupy_runtime", "def f():\n    import torch"),
    ("hopfuse.backends.cuda.ppr", "if True:\n    import cupy"),
    ("hopfuse.ops.ppr", "def f():\n    import cupy"),
    ("hopfuse.backends.cpu", "from ..index import Index"),
    ("hopfuse.fusion.rrf", "from ..types import Hits"),
    ("hopfuse.ops.ppr", "from ..reference import ppr"),
    ("hopfuse.ops.ppr", "from .. import _native"),
    ("hopfuse.ops.ppr", "from ..index import Index"),
    ("hopfuse.ops.ppr", "from importlib import import_module\nimport_module('hopfuse.recipes')"),
    ("hopfuse.index.index", "import pickle"),
    ("hopfuse.index.index", "def f():\n    import pickle"),
    ("hopfuse.index.index", "from ..ops.ppr import ppr"),
    ("hopfuse.index.index", "import pyarrow"),
    ("hopfuse.index.index", "import numpy as np\nnp.load('x', allow_pickle=True)"),
    ("hopfuse.index.index", "eval('1')"),
    ("hopfuse.recipes.phase_graph", "from ..backends import cpu"),
    ("hopfuse.recipes.phase_graph", "from .. import _native"),
    ("hopfuse.recipes.phase_graph", "from .other import Other"),
    ("hopfuse.recipes.phase_graph", "from . import other"),
    ("hopfuse.recipes.phase_graph", "from pathlib import Path"),
    ("hopfuse.recipes.phase_graph", "def f():\n    import urllib.request"),
    ("hopfuse.recipes.phase_graph", "open('file')"),
    ("hopfuse.recipes.phase_graph", "from ..encoders import Encoder"),
    ("hopfuse.cli.score", "from .. import _native"),
    ("hopfuse.cli.score", "from ..backends import explain"),
    ("hopfuse.cli.score", "import pyarrow"),
    ("hopfuse.recipes.phase_graph", "from ..lexical import BM25"),
    ("hopfuse.index.lexical", "from ..lexical import BM25"),
    ("hopfuse.lexical.bm25", "import bm25s"),
    ("hopfuse.encoders.word_llama", "import wordllama"),
    ("hopfuse.encoders.word_llama", "if True:\n    import wordllama"),
    ("hopfuse.evaluate.metrics", "from .._native import ppr"),
    ("hopfuse.extract.gazetteer", "from ..backends.cpu import thread_count"),
    ("hopfuse", "from . import _native"),
]

ALLOWED = [
    ("hopfuse.types.graph", "import numpy as np\nfrom ..errors import InputError\nfrom ._csr import build_csr"),
    ("hopfuse.backends.cuda.cupy_runtime", "def f():\n    import cupy"),
    ("hopfuse.backends.cuda.cublas", "def f():\n    return import_module('cuda.pathfinder')"),
    ("hopfuse.backends.cpu", "from .. import _native"),
    ("hopfuse.ops.ppr", "from ..backends import resolve\nfrom . import dense"),
    ("hopfuse.index.tables", "def f():\n    import pyarrow"),
    (
        "hopfuse.evaluate.rendering",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from rich.table import Table",
    ),
    ("hopfuse.recipes.phase_graph", "from ._seeding import Seed\nfrom ..index import Index\nfrom ..ops.ppr import ppr"),
    ("hopfuse.cli.score", "import click\nfrom .. import Hits, Index\nfrom ..recipes import PhaseGraph"),
    ("hopfuse.encoders.word_llama", "def f():\n    import_module('wordllama')"),
]


@pytest.mark.parametrize(("module", "source"), PLANTED)
def test_a_planted_import_is_caught(module: str, source: str) -> None:
    assert len(violations(source, module, is_package=module == "hopfuse")) >= 1


@pytest.mark.parametrize(("module", "source"), ALLOWED)
def test_an_allowed_import_is_let_through(module: str, source: str) -> None:
    assert violations(source, module) == []


# ---- C++ ------------------------------------------------------------------------------------------------------------

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)
PYTHON = re.compile(r"nanobind|pybind|Python\.h|numpy/")
CONTAINER = re.compile(r"\bstd::(vector|string|map|unordered_map|span|array|function|optional|unique_ptr|shared_ptr)\b")


def cpp_violations(source: str, path: str) -> list[str]:
    """``path`` is relative to the repository."""
    parts = Path(path).parts
    room = "bindings" if parts[0] == "bindings" else parts[1]
    found = []
    for quote, name in INCLUDE.findall(source):
        if room != "bindings" and PYTHON.search(name):
            found.append(f"{path} includes {name}: kernels know no Python")
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
    if room == "simt" and parts[:2] == ["..", "cuda"]:
        return True
    return (room != "include" and len(parts) == 1) or (room == "simt" and parts[0] == "hopfuse_simt")


SOURCES = sorted(
    path
    for folder in (KERNELS, ROOT / "bindings")
    for path in folder.rglob("*")
    if path.suffix in (".h", ".cpp", ".cu")
)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_source_file_includes_only_what_its_room_may(path: Path) -> None:
    assert cpp_violations(path.read_text(), path.relative_to(ROOT).as_posix()) == []


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
]


@pytest.mark.parametrize(("path", "source"), CPP_PLANTED)
def test_a_planted_include_is_caught(path: str, source: str) -> None:
    assert len(cpp_violations(source, path)) == 1
