"""Read suites of Debian with lists and downloads of their own, so that the system's packages do not change."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from workplace import Workplace

MIRROR = "http://deb.debian.org/debian"
#: The key that signs the archive; on Ubuntu, the package debian-archive-keyring has it.
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


def newest_first(versions: Iterable[str]) -> list[str]:
    """Return versions of Debian packages, distinct and in falling order of their numbers."""
    return sorted(set(versions), key=lambda version: [int(part) for part in re.findall(r"\d+", version)], reverse=True)


def source_versions(listed: str) -> list[str]:
    """Return the versions in the output of ``apt-cache madison``, of sources alone, the newest first."""
    rows = [[cell.strip() for cell in line.split("|")] for line in listed.splitlines()]
    return newest_first(row[1] for row in rows if len(row) == 3 and row[2].endswith("Sources"))


@dataclass
class Debian:
    """Suites of Debian, the newest last, for an architecture, else the machine's; a folder keeps what apt reads.

    Lists of sources are read for those who ask for one.
    """

    w: Workplace
    folder: Path
    suites: tuple[str, ...]
    architecture: str | None = None
    with_sources: bool = False

    @cached_property
    def options(self) -> list[str]:
        """The options of apt by which it reads these suites alone, after its first look at them."""
        if shutil.which("apt-get") is None:
            raise RuntimeError("Debian's suites are read by apt-get, which is not here")
        for partial in ("lists/partial", "cache/archives/partial"):
            (self.folder / partial).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()  # no package is installed in it, so that the C library is among the downloads
        kinds = ("deb", "deb-src") if self.with_sources else ("deb",)
        lines = [f"{kind} [signed-by={KEYS}] {MIRROR} {suite} main\n" for suite in self.suites for kind in kinds]
        (self.folder / "sources.list").write_text("".join(lines), encoding="utf-8")
        settings: dict[str, str | Path] = {
            "Dir::Etc::sourcelist": self.folder / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": self.folder / "lists",
            "Dir::State::status": self.folder / "status",
            "Dir::Cache": self.folder / "cache",
            "APT::Sandbox::User": "root",
        }
        if self.architecture is not None:
            settings |= {"APT::Architecture": self.architecture, "APT::Architectures": self.architecture}
        options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        self.w.run("apt-get", *options, "-q", "update")
        return options

    def apt(self, *command: str, cwd: Path | None = None) -> str:
        """Run a program of apt over these suites alone."""
        return self.w.run(command[0], *self.options, *command[1:], cwd=cwd)

    def unpack(self, target: Path, *packages: str, alone: tuple[str, ...] = ()) -> dict[str, str]:
        """Unpack packages with all that they need, and some alone, into a folder; return the version of each."""
        downloads = self.folder / "cache" / "archives"
        for old in downloads.glob("*.deb"):
            old.unlink()
        self.apt("apt-get", "-q", "-y", "--no-install-recommends", "--download-only", "install", *packages)
        if alone:
            self.apt("apt-get", "-q", "download", *alone, cwd=downloads)
        found = sorted(downloads.glob("*.deb"))
        for one in found:
            self.w.run("dpkg-deb", "-x", one, target)
        return dict(one.name.split("_")[:2] for one in found)

    def source(self, package: str, target: Path) -> str | None:
        """Unpack the newest source of a package that the mirror has; return its version, or None if it has none."""
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
