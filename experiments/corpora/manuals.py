"""The manuals of SQLite, the Apache HTTP server and Git."""

from __future__ import annotations

import re
from pathlib import Path

from .books import LEFT_OUT, Book, set_of
from .packages import Package
from .sets import Set

BOOKS = (
    Book(
        "SQLite",
        Package(
            "debian",
            "sqlite3-doc",
            "3.40.1-2+deb12u2",
            "466e30d7066e2641fa13e56bc662a2ad521b8cc9c17dde9c9dac3d4f105e32f2",
            "public domain",
        ),
        "usr/share/doc/sqlite3/*.html",
        LEFT_OUT | {"nosearch", "fancy_toc", "toc_header"},
        re.compile(
            r"index|keyword|sitemap|changes|chronology|^doc|toc|hp1|copyright|news|requirements|books|^speed|^mostdep|^fileformat\.|^c_inter"
        ),
    ),
    Book(
        "Apache HTTP Server",
        Package(
            "debian",
            "apache2-doc",
            "2.4.71-1~deb12u1",
            "a7b3d1131c1c63dbf9999b28e75f9a133d30f70492b419936bd51759ac77a01f",
            "Apache-2.0",
        ),
        "usr/share/doc/apache2-doc/manual/en/**/*.html",
        LEFT_OUT | {"page-header", "path", "toplang", "bottomlang", "quickview", "seealso", "up", "top", "related"},
        re.compile(r"index|sitemap|quickreference|directives"),
    ),
    Book(
        "Git",
        Package(
            "debian",
            "git-doc",
            "1:2.39.5-0+deb12u3",
            "3c89668a11053a6bafade3de1f611f4613db31e082af63f43d8c5b69ad8795ec",
            "GPL-2",
        ),
        "usr/share/doc/git/html/**/*.html",
        LEFT_OUT,
        re.compile(r"index|git-(?:sh-|diff|show|rev-list|format-patch|config|annotate)|cmds-"),
    ),
)


def make(cache: Path) -> Set:
    """Return questions for sections of the three manuals."""
    return set_of("manuals", "The manuals of SQLite, the Apache HTTP server and Git: headings", BOOKS, cache)
