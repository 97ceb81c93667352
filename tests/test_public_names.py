"""Tests of upper rooms import public names alone, so that the code behind them can move."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "python" / "hopfuse"
#: The kernels' own rooms test what is below the public names; the others are their helpers.
LOWER = {"api", "build", "cuda", "kernels", "reference", "simt", "stand_in"}
HELPERS = {
    "conftest.py",
    "emulated_device.py",
    "native_kernels.py",
    "test_prose.py",
    "test_site.py",
    "test_variants.py",
    "variants.py",
}
#: Rooms whose modules are each the adapter of one library, imported by its users.
PUBLIC_MODULES = ("adapters", "stores")


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements below a node, and not the expressions, which are most of a file."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from statements(child)


def private_names(path: Path) -> Iterator[str]:
    """Yield the names that a test imports from inside the package."""
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.startswith("hopfuse") and not is_public(one.name))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "hopfuse":
            assert node.module is not None
            if not is_public(node.module):
                yield node.module
            else:
                yield from (f"{node.module}.{one.name}" for one in node.names if is_inner(node.module, one.name))


def is_public(module: str) -> bool:
    """Return whether a module is a package, one of the package's own modules, or an adapter."""
    parts = module.split(".")[1:]
    if any(part.startswith("_") for part in parts):
        return False
    return len(parts) < 2 or PACKAGE.joinpath(*parts).is_dir() or (len(parts) == 2 and parts[0] in PUBLIC_MODULES)


def is_inner(module: str, name: str) -> bool:
    """Return whether a name of a public module is private, or a module inside it."""
    if name.startswith("_"):
        return True
    inner = PACKAGE.joinpath(*module.split(".")[1:], f"{name}.py").exists()
    if not inner or is_public(f"{module}.{name}"):
        return False
    return isinstance(getattr(importlib.import_module(module), name, None), ModuleType | None)


@pytest.mark.parametrize("package", ["hopfuse", "hopfuse.text", "hopfuse.types"])
def test_lazy_names_are_those_that_type_checkers_see(package):
    module = importlib.import_module(package)
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    (typed,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    seen = {alias.name: node.module for node in typed.body for alias in node.names if alias.name != "*"}
    for home in (node.module for node in typed.body if node.names[0].name == "*"):
        defined = vars(importlib.import_module(f"{package}.{home}"))
        seen |= {name: home for name in module.__all__ if name in defined and name not in seen}
    eager = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(module.__all__) - eager == set(seen)
    for name, home in seen.items():
        defining = importlib.import_module(f"{package}.{home or name}")
        assert getattr(module, name) is (getattr(defining, name) if home else defining)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'missing'"):
        _ = module.missing


def test_tests_of_upper_rooms_import_public_names():
    wrong = {}
    for path in sorted(TESTS.rglob("*.py")):
        inner = path.relative_to(TESTS)
        if inner.parts[0] not in LOWER | HELPERS and (names := sorted(set(private_names(path)))):
            wrong[str(inner)] = names
    assert wrong == {}


def test_a_private_name_is_found(tmp_path):
    test = tmp_path / "test_planted.py"
    test.write_text(
        "import hopfuse\nfrom hopfuse.index import Index, live\nfrom hopfuse.index.log.frames import scan\n"
        "from hopfuse.evaluate import sweep\nfrom hopfuse._validation import check_k\n"
        "from hopfuse.adapters import igraph\n"
    )
    assert [*private_names(test)] == ["hopfuse.index.live", "hopfuse.index.log.frames", "hopfuse._validation"]
