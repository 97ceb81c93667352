"""Fetch pinned source packages: of Debian by ``apt-get source``, of PyPI as source distributions."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from .packages import Package, UnavailableError


@dataclass(frozen=True)
class SourcePackage(Package):
    """A pinned source package; its checksum is that of the upstream archive."""

    kind: ClassVar[str] = "-source"

    def fetch(self, work: Path) -> Path:
        """Return the upstream archive, fetched into an empty folder."""
        return (_from_debian if self.registry == "debian" else _from_pypi)(self, work)

    def __str__(self) -> str:
        """Return the registry, name and version, and that it is the source."""
        return f"{super().__str__()} (source)"


def source_lines(listed: str) -> str:
    """Return a file of Debian's sources with its packages replaced by their sources."""
    return re.sub(
        r"^(Types:.*|deb(?=\s))", lambda m: "deb-src" if m[0] == "deb" else "Types: deb-src", listed, flags=re.M
    )


def _from_debian(package: Package, work: Path) -> Path:
    """Return the upstream archive of a source package; the machine's own lists of packages stay as they are."""
    parts, lists = work / "parts", work / "lists"
    parts.mkdir()
    (lists / "partial").mkdir(parents=True)
    etc = Path("/etc/apt")
    for path in (etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))):
        if path.suffix in (".list", ".sources") and path.is_file():
            (parts / path.name).write_text(source_lines(path.read_text(encoding="utf-8")), encoding="utf-8")
    settings = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": parts,
        "Dir::State::lists": lists,
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]
    _run(package, [*apt, "update"], work)
    _run(package, [*apt, "source", "--download-only", f"{package.name}={package.version}"], work)
    return _only(package, sorted(work.glob("*.orig.tar.*")))


def _from_pypi(package: Package, work: Path) -> Path:
    """Return a source distribution."""
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary=:all:"]
    _run(package, [*pip, f"{package.name}=={package.version}"], work)
    return _only(package, sorted(path for path in work.iterdir() if path.is_file()))


def _run(package: Package, command: list[str], work: Path) -> None:
    if shutil.which(command[0]) is None:
        raise UnavailableError(f"{package}: the program {command[0]} is not installed")
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr or done.stdout).strip().splitlines()
        raise UnavailableError(f"{package}: {' '.join(command)} failed: {why[-1] if why else 'no output'}")


def _only(package: Package, archives: list[Path]) -> Path:
    if len(archives) != 1:
        raise UnavailableError(f"{package}: {len(archives)} archives where one is expected")
    return archives[0]
