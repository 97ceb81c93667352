"""docs/adding.md states what adding a thing costs: its lists are those of the sources, and a copy works."""

from __future__ import annotations

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import hopfuse as hf
import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "hopfuse"
NATIVE = Path(str(find_spec("hopfuse._native").origin))
PAGE = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
#: Where operations, fusion methods and build options are made, and what names them there.
ROOMS = (
    *("bindings", "kernels", "python/hopfuse/backends", "python/hopfuse/cli", "python/hopfuse/fusion"),
    *("python/hopfuse/index", "python/hopfuse/ops"),
)
FILES = ("CMakeLists.txt", "python/hopfuse/__init__.py", "python/hopfuse/_native.pyi")
EXAMPLES = {
    "An operation": r"(?<![a-z])(dice|Dice[A-Z]|DICE)",
    "A fusion method": r"\bcomb_anz\b|\bCombANZ\b|CombAnz",
    "An option of a build": r"\bfact_ends\b",
}
#: Files that name an example in a comment only, or describe it.
APART = {"kernels/README.md", "kernels/include/hopfuse/fusion/max.h"}


def listed(kind: str) -> set[str]:
    section = PAGE.partition(f"\n## {kind}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^- `([^`]+)`", section, re.MULTILINE))


def sources() -> list[Path]:
    rooms = [path for room in (*ROOMS, "python/hopfuse/reference") for path in (ROOT / room).rglob("*")]
    kinds = {".cpp", ".cu", ".h", ".md", ".py", ".pyi", ".txt"}
    return [path for path in (*rooms, *(ROOT / name for name in FILES)) if path.suffix in kinds]


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_list_is_that_of_the_sources(kind: str) -> None:
    named = {
        path.relative_to(ROOT).as_posix()
        for path in sources()
        if re.search(EXAMPLES[kind], f"{path.stem}\n{path.read_text(encoding='utf-8')}")
    }
    assert named - APART == listed(kind)


# ---- In a copy of the package ----------------------------------------------------------------------------------------


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the package, whose native module is a link."""

    def ignored(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if name == "__pycache__" or name.startswith("_native.")}

    target = tmp_path / "copy" / "hopfuse"
    shutil.copytree(PACKAGE, target, ignore=ignored)
    native = {path.name: path for path in (*PACKAGE.glob("_native.*"), NATIVE)}
    for name, path in native.items():
        (target / name).symlink_to(path)
    (tmp_path / "copy" / "kernels").symlink_to(ROOT / "kernels")
    return target


def changed(copy: Path) -> set[str]:
    """Return the files of the copy that the package has not, or has with other contents."""
    paths = [path for path in copy.rglob("*") if path.is_file() and not path.is_symlink()]  # a link: native
    files = [path.relative_to(copy) for path in paths if "__pycache__" not in path.parts]
    other = [
        file for file in files if not (PACKAGE / file).is_file() or not filecmp.cmp(copy / file, PACKAGE / file, False)
    ]
    return {f"python/hopfuse/{file.as_posix()}" for file in other}


def run(copy: Path, *command: str) -> str:
    """Return what a command of the copy prints."""
    packages = [path for path in sys.path if Path(path).name == "site-packages"]
    path = os.pathsep.join([str(copy.parent), *packages])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    python = [sys.executable, "-S"]  # without the hooks of an editable installation
    program = (
        "import sys, hopfuse; from hopfuse.cli import main; assert hopfuse.__file__ == sys.argv[1]; main(sys.argv[2:])"
    )
    done = subprocess.run(
        [*python, "-c", program, str(copy / "__init__.py"), *command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


RECIPE = {
    "config.py": '''
from dataclasses import dataclass

from .._parts.config import check_options, option


@dataclass(frozen=True)
class LongestConfig:
    """Options of Longest."""

    least: int = option(1, "Characters of a passage, at least.", low=1)

    def __post_init__(self):
        check_options(self)
''',
    "core.py": '''
from ...types import Hits
from .._parts.base import BaseRecipe
from ..protocol import Needs
from ..results import SearchResult
from .config import LongestConfig


class Longest(BaseRecipe[SearchResult]):
    """Passages by their length."""

    name, Config, collaborators = "longest", LongestConfig, ()
    needs = Needs(texts=True)

    def __init__(self, index, config=None, *, threads=None, **options):
        super().__init__(index, config, options, threads=threads)

    def _search(self, asked, view, k, trace):
        sizes = sorted(((len(text), -row) for row, text in enumerate(self.index.texts)), reverse=True)
        hits = [(-row, float(size)) for size, row in sizes if size >= self.config.least][:k]
        return SearchResult(Hits.from_lists([hits] * asked.size), self.index, {}, None)
''',
    "__init__.py": '"""Longest: passages by their length."""\n\nfrom .core import Longest as Longest\n',
}


def test_a_recipe_costs_its_folder_and_the_registry(copy: Path, tmp_path: Path) -> None:
    pytest.importorskip("click", reason="needs the extra cli")
    folder, registry = copy / "recipes" / "longest", copy / "recipes" / "__init__.py"
    folder.mkdir()
    for name, text in RECIPE.items():
        (folder / name).write_text(text.lstrip(), encoding="utf-8")
    text = registry.read_text(encoding="utf-8")
    text = text.replace("from .protocol import", "from .longest import Longest\nfrom .protocol import", 1)
    registry.write_text(text.replace('    "plain-hybrid": ', '    "longest": Longest,\n    "plain-hybrid": ', 1))
    hf.Index.build([{"text": text} for text in ("a sea", "a long river", "a pond")]).save(tmp_path / "index")
    own = ("--recipe", "longest", "--option", "least=6")
    found = json.loads(run(copy, "search", str(tmp_path / "index"), "Which?", *own, "--json"))
    assert [hit["text"] for hit in found["hits"]] == ["a long river", "a pond"]
    added = changed(copy)
    assert {file.replace("longest", "NAME").rpartition("/")[0] + "/" for file in added if "longest" in file} <= listed(
        "A recipe"
    )
    assert {file for file in added if "longest" not in file} == listed("A recipe") - {"python/hopfuse/recipes/NAME/"}


STORE = '''
"""Lines of a text file as passages."""

from contextlib import contextmanager
from pathlib import Path

from .row_batches import row_batches
from .tables import TableReader, check_whole_place


def open_place(place, queries):
    check_whole_place(place, queries)
    return LinesSource(place.partition(":")[2])


class LinesSource:
    def __init__(self, path):
        self._path = Path(path)

    @contextmanager
    def snapshot(self):
        yield TableReader(self._read)

    def _read(self, table):
        if table != "passages":
            return None
        lines = self._path.read_text(encoding="utf-8").splitlines()
        return row_batches(table, ({"id": number, "text": line} for number, line in enumerate(lines)))
'''


def test_a_store_costs_its_module(copy: Path, tmp_path: Path) -> None:
    for package, extra in (("click", "cli"), ("pyarrow", "arrow")):
        pytest.importorskip(package, reason=f"needs the extra {extra}")
    (copy / "stores" / "lines.py").write_text(STORE.lstrip(), encoding="utf-8")
    (tmp_path / "notes.txt").write_text("Ada wrote notes.\nThe Engine computes.\n", encoding="utf-8")
    run(copy, "build", "--from", f"lines:{tmp_path / 'notes.txt'}", "--out", str(tmp_path / "index"))
    assert list(hf.Index.open(tmp_path / "index").texts) == ["Ada wrote notes.", "The Engine computes."]
    files = {file.replace("lines.py", "NAME.py") for file in changed(copy)}
    assert files == listed("A store") - {"pyproject.toml"}  # it needs no library
