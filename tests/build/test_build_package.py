"""The contents of the distributions, and the stub of the native module, which must match it."""

from __future__ import annotations

import ast
import email
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from hopfuse import _native

ROOT = Path(__file__).parents[2]


def built(kind: str, folder: Path) -> Path:
    """A distribution made by the project's own backend; the wheel without compiling, for its other contents."""
    pytest.importorskip("scikit_build_core", reason="the build backend is not installed")
    settings = {"wheel.cmake": "false", "wheel.py-api": "py3"} if kind == "wheel" else {}
    code = f"import sys; from scikit_build_core import build; build.build_{kind}(sys.argv[1], {settings!r})"
    subprocess.run([sys.executable, "-c", code, str(folder)], cwd=ROOT, check=True, capture_output=True, text=True)
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(built("wheel", tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def sdist_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    with tarfile.open(built("sdist", tmp_path_factory.mktemp("sdist"))) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def sources() -> set[str]:
    """Return every module of the package in the checkout, by its path in the wheel."""
    package = ROOT / "python"
    return {path.relative_to(package).as_posix() for path in (package / "hopfuse").rglob("*.py")}


def test_wheel_holds_every_module_the_stub_and_the_typing_marker(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    assert sources() <= names
    assert {"hopfuse/py.typed", "hopfuse/_native.pyi", "hopfuse/index/FORMAT.md"} <= names
    assert {f"hopfuse/extract/prompts/{step}.txt" for step in ("entities", "triples")} <= names


def test_wheel_holds_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"hopfuse"}
    assert not [name for name in wheel.namelist() if re.search(r"(^|/)tests?[/_]|\.(cpp|h|pyc)$", name)]


def test_numpy_is_the_only_dependency(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    requires = email.message_from_bytes(wheel.read(name)).get_all("Requires-Dist", [])
    always = [requirement for requirement in requires if "extra ==" not in requirement]
    assert [re.match(r"[\w-]+", requirement)[0] for requirement in always] == ["numpy"]  # type: ignore[index]


def test_no_extra_of_the_readme_brings_torch(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    requires = email.message_from_bytes(wheel.read(name)).get_all("Requires-Dist", [])
    apart = ("encode", "cuda12", "cuda13")  # no command of the README installs these
    readme = [r for r in requires if not any(f'extra == "{extra}"' in r for extra in apart)]
    heavy = re.compile(r"torch|sentence-transformers|transformers|cupy|nvidia|cuda|triton(?!client)", re.IGNORECASE)
    assert readme
    assert not [requirement for requirement in readme if heavy.match(requirement)]
    assert not [requirement for requirement in readme if re.match(r"hopfuse\[.*(encode|cuda)", requirement)]


def test_the_extras_for_gpus_bring_nvrtc_alone(wheel: zipfile.ZipFile) -> None:
    """A device needs its driver; what no wheel has compiled, NVRTC of the driver's release compiles."""
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    requires = email.message_from_bytes(wheel.read(name)).get_all("Requires-Dist", [])
    for release, package in (("12", "nvidia-cuda-nvrtc-cu12"), ("13", "nvidia-cuda-nvrtc")):
        (nvrtc,) = [one for one in requires if re.search(rf"""extra == ["']cuda{release}["']""", one)]
        assert re.match(rf"{package}>={release}\b", nvrtc)
    assert not [one for one in requires if one.startswith("cupy")]


def test_wheel_has_the_command(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt")]
    assert "hopfuse = hopfuse.cli:main" in wheel.read(name).decode().replace("hopfuse=", "hopfuse = ")


def test_sdist_builds_on_its_own(sdist_names: set[str]) -> None:
    kernels = {
        path.relative_to(ROOT).as_posix()
        for room in ("kernels", "bindings")
        for path in (ROOT / room).rglob("*")
        if path.suffix in {".cpp", ".h", ".cu", ".py"}
    }
    assert kernels
    assert kernels | {"CMakeLists.txt", "pyproject.toml", "LICENSE", "README.md"} <= sdist_names
    assert {f"python/{name}" for name in sources()} <= sdist_names
    assert {"examples/quickstart.py", "examples/atlas/__main__.py"} <= sdist_names
    assert not [name for name in sdist_names if name.endswith((".so", ".pyc"))]


def test_sdist_has_what_the_tests_read(sdist_names: set[str]) -> None:
    """README's command for the tests runs in an unpacked source distribution."""
    folders = ("tests", "bench", "experiments", "docs", "examples", ".ci", ".github")
    made = {ROOT / "docs" / "api"}
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*") if not made & {*path.parents})
    files = {
        path.relative_to(ROOT).as_posix() for path in paths if path.is_file() and path.parent.name != "__pycache__"
    }
    assert len(files) > 900
    assert sorted(files - sdist_names) == []


# ---- The stub ------------------------------------------------------------------------------------------------


def public(names: list[str]) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def stub() -> ast.Module:
    return ast.parse((ROOT / "python" / "hopfuse" / "_native.pyi").read_text(encoding="utf-8"))


def test_stub_names_what_the_module_has() -> None:
    named: list[str] = []
    for node in stub().body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            named.append(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            named.append(node.target.id)
    assert public(named) == public(dir(_native))


def test_stub_has_the_arguments_of_every_function() -> None:
    functions = {node.name: node for node in stub().body if isinstance(node, ast.FunctionDef)}
    assert functions
    for name, node in functions.items():
        signature = getattr(_native, name).__nb_signature__[0][0]
        header = signature.partition("(")[2].rpartition(")")[0]
        arguments = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        # Names come before a colon; types have none outside brackets.
        flat = re.sub(r"\[[^\[\]]*\]", "", re.sub(r"\[[^\[\]]*\]", "", re.sub(r"\([^()]*\)", "", header)))
        assert re.findall(r"(\w+):", flat) == arguments, name
