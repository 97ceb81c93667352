"""Other Pythons for the full tier: which is taken, what is kept, and what a wheel for several of them must have."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / ".ci"))

import check_wheel
import debian
import interpreters
import library_parts
from interpreters import Interpreter

LISTED = """
python3.13 | 3.13.5-2+deb13u5 | http://deb.debian.org/debian trixie/main Sources
python3.13 |  3.13.15-1 | http://deb.debian.org/debian sid/main Sources
python3.13 |  3.13.18-1 | http://deb.debian.org/debian sid/main Sources
python3.13 |  3.13.19-1 | http://deb.debian.org/debian sid/main amd64 Packages
python3.13 |  3.13.15-1 | http://deb.debian.org/debian trixie/main Sources
"""


class Place:
    """A workplace whose commands are noted, and fail if they name a version that the mirror does not have."""

    def __init__(self, missing: str = "nothing") -> None:
        self.commands, self.missing, self.folder = list[list[str]](), missing, Path()

    def run(self, *command: Any, cwd: Path | None = None, **_: str) -> str:
        words = [str(word) for word in command]
        self.commands.append(words)
        if any(self.missing in word for word in words):
            raise RuntimeError("404 Not Found")
        if "madison" in words:
            return LISTED
        if "source" in words:
            assert cwd is not None
            (cwd / "python3.13_3.13.15.orig.tar.xz").touch()
        return "3.13.15t\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep interpreters in a folder of the test's own, and find no program on the path."""
    monkeypatch.setattr(interpreters, "FOLDER", tmp_path / "pythons")
    monkeypatch.setattr(interpreters, "located", lambda _: None)
    return tmp_path / "pythons"


def test_sources_are_tried_from_the_newest_until_the_mirror_has_one(tmp_path: Path) -> None:
    assert debian.source_versions(LISTED) == ["3.13.18-1", "3.13.15-1", "3.13.5-2+deb13u5"]
    place: Any = Place(missing="3.13.18")
    suites = debian.Debian(place, tmp_path / "apt", interpreters.SUITES)
    assert suites.source("python3.13", tmp_path / "source") == "3.13.15-1"
    asked = [words[-1] for words in place.commands if "source" in words]
    assert asked == ["python3.13=3.13.18-1", "python3.13=3.13.15-1"]
    none: Any = Place(missing="python3.13=")
    assert debian.Debian(none, tmp_path / "apt", ("sid",)).source("python3.13", tmp_path / "source") is None


def test_apt_reads_debians_suites_alone_and_changes_nothing_of_the_system(tmp_path: Path) -> None:
    place: Any = Place()
    suites = debian.Debian(place, tmp_path / "apt", interpreters.SUITES, with_sources=True)
    assert place.commands == []
    for _ in range(2):  # the lists are read before the first
        suites.apt("apt-cache", "madison", "python3.14")
    assert [command[0] for command in place.commands] == ["apt-get", "apt-cache", "apt-cache"]
    settings = dict(word.split("=", 1) for word in place.commands[-1] if "=" in word)
    assert {settings[f"Dir::{name}"] for name in ("State::lists", "State::status", "Cache", "Etc::sourcelist")} == {
        str(tmp_path / "apt" / name) for name in ("lists", "status", "cache", "sources.list")
    }
    assert settings["Dir::Etc::sourceparts"] == "/dev/null"
    lines = (tmp_path / "apt" / "sources.list").read_text().splitlines()
    assert len(lines) == 4
    assert "APT::Architecture" not in settings
    arm = debian.Debian(place, tmp_path / "arm", ("bookworm",), "arm64")
    assert {"APT::Architecture=arm64", "APT::Architectures=arm64"} < set(arm.options)
    (alone,) = (tmp_path / "arm" / "sources.list").read_text().splitlines()
    assert alone == lines[0].replace(f" {interpreters.SUITES[0]} ", " bookworm ")
    assert all(" http://deb.debian.org/debian " in line and "signed-by=" in line for line in lines)


def test_a_whole_interpreter_is_kept_and_a_half_made_one_is_made_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[str]()

    def unpacked(version: str, target: Path, _: debian.Debian) -> str:
        assert not (target / "half").exists()
        made.append(version)
        return f"{version}.10-1"

    monkeypatch.setattr(interpreters, "unpacked", unpacked)
    place: Any = Place()
    suites = debian.Debian(place, folder / "apt", interpreters.SUITES)
    (folder / "3.14").mkdir(parents=True)
    (folder / "3.14" / "half").touch()
    for _ in range(2):
        found = interpreters.packaged("3.14", suites)
        assert found == Interpreter(
            "3.14",
            folder / "3.14" / "usr" / "bin" / "python3.14",
            "Debian's packages 3.14.10-1",
            folder / "3.14" / "usr" / "include",
        )
    assert made == ["3.14"]


def test_the_newest_free_threaded_python_that_can_be_had_is_compiled_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, compiled = list[str](), list[str]()

    class Suites(debian.Debian):
        has = ""

        def source(self, package: str, target: Path) -> str | None:
            asked.append(package)
            return "3.13.15-1" if package == self.has else None

    def compile(source: Path, target: Path, origin: str, w: Any) -> str:
        compiled.append(target.name)
        target.mkdir(parents=True)
        interpreters.keep(target, origin)
        return origin

    monkeypatch.setattr(interpreters, "compiled", compile)
    place: Any = Place()
    suites = Suites(place, folder / "apt", ("sid",))
    with pytest.raises(RuntimeError, match=r"no source of Python 3\.14 or 3\.13"):
        interpreters.free_threaded(suites)
    asked.clear()
    suites.has = "python3.13"
    for _ in range(2):
        found = interpreters.free_threaded(suites)
        assert (found.name, found.origin, found.is_free_threaded) == ("3.13t", "Debian's source 3.13.15-1", True)
        assert found.program == folder / "3.13t" / "bin" / "python3.13t"
    assert (asked, compiled) == (["python3.14", "python3.13"], ["3.13t"])
    assert interpreters.version_of(found, place) == "3.13.15t"
    with pytest.raises(RuntimeError, match=r"is Python 3\.13\.15t, not 3\.14"):
        interpreters.version_of(Interpreter("3.14", found.program, ""), place)


def test_a_program_that_only_complains_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    shim = tmp_path / "python3.99"
    shim.write_text("#!/bin/sh\necho 'command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    works = tmp_path / "python3.98"
    works.symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(interpreters.Path, "home", lambda: tmp_path)
    assert interpreters.located("3.99") is None
    assert interpreters.located("3.97") is None
    assert interpreters.located("3.98") == works
    pyenv = tmp_path / ".pyenv" / "versions" / "3.99.4" / "bin"
    pyenv.mkdir(parents=True)
    (pyenv / "python3.99").symlink_to(sys.executable)
    assert interpreters.located("3.99") == pyenv / "python3.99"


def wheel(folder: Path, tag: str, module: str) -> Path:
    path = folder / f"hopfuse-0.1.0-{tag}-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(path, "w") as made:
        for name in (f"hopfuse/{module}", "hopfuse/py.typed", "hopfuse/_native.pyi", *check_wheel.kernel_sources()):
            made.writestr(name, "")
    return path


def test_a_wheel_of_the_stable_abi_has_a_module_of_it(tmp_path: Path) -> None:
    check_wheel.main(wheel(tmp_path, "cp312-abi3", "_native.abi3.so"), False)
    check_wheel.main(wheel(tmp_path, "cp314-cp314t", "_native.cpython-314t-x86_64-linux-gnu.so"), False)
    with pytest.raises(SystemExit, match="tagged for the stable ABI"):
        check_wheel.main(wheel(tmp_path, "cp312-abi3", "_native.cpython-312-x86_64-linux-gnu.so"), False)


def test_one_wheel_is_built_for_all_pythons_with_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The free-threaded one has its own; what cannot be had here is in the report."""
    found = [Interpreter(name, Path(f"python{name}"), "") for name in ("3.13", "3.14", "3.14t")]
    built, tested = list[str](), dict[str, str]()
    monkeypatch.setattr(library_parts, "interpreters", lambda _: (found, ["3.12"]))
    monkeypatch.setattr(library_parts, "version_of", lambda one, _: f"{one.name}.0")

    def wheel_for(one: Interpreter, *_: Any) -> Path:
        built.append(one.name)
        return Path(f"wheel of {one.name}")

    def results_on(one: Interpreter, clone: Any, wheel: Path, extras: Any, w: Any) -> str:
        tested[one.name] = str(wheel)
        return "9 passed"

    monkeypatch.setattr(library_parts, "wheel_for", wheel_for)
    monkeypatch.setattr(library_parts, "results_on", results_on)
    place: Any = Place()
    place.clone = lambda name: tmp_path / name
    line = library_parts.pythons(place)
    assert line == "3.12: none here; 3.13.0: 9 passed; 3.14.0: 9 passed; 3.14t.0: 9 passed"
    assert built == ["3.13", "3.14t"]
    assert tested == {"3.13": "wheel of 3.13", "3.14": "wheel of 3.13", "3.14t": "wheel of 3.14t"}
