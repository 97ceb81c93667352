"""Print what pyproject.toml requires for the build ("build") or in its dependency groups, one requirement a line.

``pip install -r <(python3 .ci/requires.py bench)`` works with a pip that is older than dependency groups (25.1).
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def requirements(names: Iterable[str]) -> list[str]:
    """Return the requirements of the build and of groups."""
    stated = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    groups: dict[str, list[str]] = {"build": stated["build-system"]["requires"], **stated["dependency-groups"]}
    unknown = sorted(set(names := tuple(names)) - set(groups))
    if unknown:
        raise SystemExit(f"no group {', '.join(unknown)}; there are {', '.join(groups)}")
    return [requirement for name in names for requirement in groups[name]]


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1:])))
