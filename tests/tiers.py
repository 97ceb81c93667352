"""The tiers of tests (``tests/conftest.py`` describes them): which one the environment asks for, and its tests."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

import pytest

_TIER = os.environ.get("HOPFUSE_TESTS")
#: Whether tests do everything. A module that imports this constant has tests that do more in the full tier.
FULL = _TIER in ("full", "rest")
#: Whether tests that do the same in the quick tier are left out.
REST = _TIER == "rest"
#: Examples of each property test, if the environment says how many.
DRAWS = os.environ.get("HOPFUSE_DRAWS")
#: The quick tier runs one in this many cases of a test on the emulator.
EMULATED = 21
#: Folders whose tests do more in the full tier: commands run in processes, other architectures, builds of the emulator.
#: Elsewhere, the modules that import ``FULL``.
MORE_IN_FULL = ("cli", "cuda", "simt")


def selected(items: Sequence[pytest.Item], *, full: bool, rest: bool) -> list[pytest.Item]:
    """Return the tests of a tier: the quick one, the full one, or what the full one adds."""
    if full and not rest:
        return list(items)
    quick = _quick(items)
    if not rest:
        return quick
    same = {item for item in quick if not _does_more_in_full(item)}
    return [item for item in items if item not in same]


def _quick(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    kept, cases = [], Counter[str]()
    for item in items:
        takes = item.get_closest_marker("full") is None
        call = getattr(item, "callspec", None)
        if takes and call is not None and call.params.get("variant") == "simt":
            name = item.nodeid.partition("[")[0]
            takes = cases[name] % EMULATED == 0 and item.get_closest_marker("emulator_full") is None
            cases[name] += 1
        if takes:
            kept.append(item)
    return kept


def _does_more_in_full(item: pytest.Item) -> bool:
    """Return whether a test of both tiers does more in the full one."""
    drawn = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    folder = item.nodeid.removeprefix("tests/").partition("/")[0]
    return drawn or folder in MORE_IN_FULL or hasattr(getattr(item, "module", None), "FULL")
