"""The tier that the environment asks for (``tests/conftest.py`` describes them)."""

from __future__ import annotations

import os

_TIER = os.environ.get("HOPFUSE_TESTS")
#: Whether tests do everything. A module that reads this constant has tests that do more in the full tier.
FULL = _TIER in ("full", "rest")
#: Whether tests that do the same in the quick tier are left out.
REST = _TIER == "rest"
#: Examples of each property test, if the environment says how many.
DRAWS = os.environ.get("HOPFUSE_DRAWS")
