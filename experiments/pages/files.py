"""Every page and table, from the recorded results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.machine import ROOT

from ..record import RECORDED, read_results
from .advice import advice
from .findings import findings
from .flow import flowed
from .sets import set_pages
from .tables import tables


def recorded(folder: Path = RECORDED) -> dict[str, Any]:
    """Return the recorded results by the name of their file."""
    return {path.stem: read_results(path) for path in sorted(folder.glob("*.json"))}


def files(results: dict[str, Any]) -> dict[Path, str]:
    """Return the text of every page and table by its path in docs/."""
    pages = {Path("quality.md"): advice(results), Path("experiments.md"): findings(results)}
    pages |= {Path("quality", name): text for name, text in set_pages(results).items()}
    pages = {path: flowed(text) for path, text in pages.items()}
    return pages | {Path("results", "quality", name): text for name, text in tables(results).items()}


def write(docs: Path = ROOT / "docs") -> list[Path]:
    """Write all of them; return those that changed."""
    changed = []
    for path, text in files(recorded()).items():
        place = docs / path
        if not place.exists() or place.read_text(encoding="utf-8") != text:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed
