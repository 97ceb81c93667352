"""Debian's FAQs, handbooks and policies."""

from __future__ import annotations

import re
from pathlib import Path

from .books import Book, set_of
from .packages import Package
from .sets import Set

_INDEX = re.compile(r"index|search|appendix|^(?:ap-|ap[a-z]\.)|changelog|credits|upgrading-checklist|pr01")
BOOKS = (
    Book(
        "Debian FAQ",
        Package(
            "debian", "debian-faq", "11.1", "427426e0cfa6888622fc1d72631071cb4b5a1f86ccde722e7820bcef284de5d0", "GPL-2+"
        ),
        "usr/share/doc/debian/FAQ/*.en.html",
        skipped=_INDEX,
    ),
    Book(
        "The Debian Administrator's Handbook",
        Package(
            "debian",
            "debian-handbook",
            "11.20220922",
            "3d5dbeac1f1afc9c094eab9d0f701f6ecff99c4927d5a4794cf6c85678134faa",
            "GPL-2+ or CC-BY-SA-3.0",
        ),
        "usr/share/doc/debian-handbook/html/en-US/*.html",
        skipped=_INDEX,
    ),
    Book(
        "Debian Reference",
        Package(
            "debian",
            "debian-reference-en",
            "2.100",
            "9f31d3a17df505de09689ca255512ea58c1fc47c59bb1b0c7bf1c23362e9743f",
            "GPL-2+",
        ),
        "usr/share/debian-reference/*.en.html",
        skipped=_INDEX,
    ),
    Book(
        "Debian Policy Manual",
        Package(
            "debian",
            "debian-policy",
            "4.6.2.0",
            "ef9d01b625c3b87c3a845c2cd1b66f1a16e9240b2b9e5bee53472a00e8457a39",
            "GPL-2+",
        ),
        "usr/share/doc/debian-policy/policy.html/*.html",
        skipped=_INDEX,
    ),
    Book(
        "Debian Developer's Reference",
        Package(
            "debian",
            "developers-reference",
            "12.18",
            "0dba82f6fa16e373f2a84ad07e7971aa9264ad2e7d2ae46b37edbc9c5fd57e2e",
            "GPL-2+",
        ),
        "usr/share/developers-reference/*.html",
        skipped=re.compile(_INDEX.pattern + "|^developers-reference"),
    ),
    Book(
        "Securing Debian Manual",
        Package(
            "debian",
            "harden-doc",
            "3.19+nmu1",
            "77ffacb6f8af4afbdf39f3de6040a710ae6ffcc40e2fab5b5d312dfb11d28d94",
            "GPL-2+",
        ),
        "usr/share/doc/harden-doc/html/en-US/*.html",
        skipped=_INDEX,
    ),
)


def make(cache: Path) -> Set:
    """Return questions for sections of the six books."""
    about = "Debian's FAQs, handbooks and policies: headings that are questions, and others"
    return set_of("debian", about, BOOKS, cache)
