"""The bench is run from the root of the repository; its tests import it from there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT
