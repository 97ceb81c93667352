"""docs/dependencies.md lists every package in pyproject.toml with the extra or the group that needs it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STATED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, GROUPS = STATED["project"], STATED["dependency-groups"]
PAGE = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")


def declared(requirements: list[str]) -> set[str]:
    """Return the packages of requirements, without their versions, extras and hopfuse itself."""
    return {re.match(r"[\w.-]+", text)[0] for text in requirements} - {"hopfuse"}  # type: ignore[index]


def rows() -> list[list[str]]:
    packages = PAGE.partition("<!-- end of extras -->")[2]
    lines = [line for line in packages.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def listed() -> dict[str, set[str]]:
    """Return the packages that the page has for each extra and group; the core is ""."""
    found: dict[str, set[str]] = {}
    for cells in rows():
        *extras, package = cells[: len(cells) - 4]
        for extra in re.findall(r"`([\w-]+)`", extras[0]) if extras else [""]:
            found.setdefault(extra, set()).add(package.strip("`"))
    return found


def test_every_package_is_listed_with_its_extra() -> None:
    stated = {"": declared(PROJECT["dependencies"])}
    assert not PROJECT["optional-dependencies"].keys() & GROUPS.keys()
    stated |= {name: declared(texts) for name, texts in (PROJECT["optional-dependencies"] | GROUPS).items()}
    assert listed() == {extra: packages for extra, packages in stated.items() if packages}


def test_every_package_has_a_licence_a_size_and_a_release() -> None:
    described = {}
    for *_, package, why, licence, size, release in rows():
        assert why, package
        if not why.startswith("see `"):
            described[package] = (licence, size, re.match(r"\S+, 20\d\d-\d\d", release))
    assert [package for package, facts in described.items() if not all(facts)] == []
    assert {package for *_, package, _, _, _, _ in rows()} == set(described)
