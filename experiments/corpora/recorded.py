"""Record the figures of the sets, which python -m experiments.pages reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..record import RECORDED

RESULTS = RECORDED / "corpora.json"


def record(made: dict[str, Any], results: Path = RESULTS) -> None:
    """Add the figures of folders by name to the recorded ones."""
    known = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}
    merged = dict(sorted({**known, **made}.items()))
    results.write_text(json.dumps(merged, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
