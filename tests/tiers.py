"""The tiers of tests (``tests/conftest.py`` describes them): which one the environment asks for, and its tests."""

from __future__ import annotations

import itertools
import os
import zlib
from collections import Counter, defaultdict
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
#: Folders whose tests the quick tier runs on a sample of their cases. Of a test on the CPU, every two values of two
#: parameters occur together; of one of the emulator itself, and where only the build is new (``HOPFUSE_TESTS=sample``),
#: every value of each occurs.
SAMPLED = ("api", "kernels", "reference", "simt")
PAIRS, VALUES = 2, 1
#: If pairs need more cases than this, they are of values too.
MOST_PAIRS = 12
#: The most cases of a test that runs on the emulator alone, unless it is that of the orders of threads.
MOST_EMULATED = 2
SAMPLE = _TIER == "sample"
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
        if takes and _variant(item) == "simt":
            name = item.nodeid.partition("[")[0]
            takes = cases[name] % EMULATED == 0 and item.get_closest_marker("emulator_full") is None
            cases[name] += 1
        if takes:
            kept.append(item)
    return _sampled(kept)


def _sampled(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Leave out, of tests of the folders that are sampled, the cases whose values occur in others."""
    tests = defaultdict[tuple[str, str], list[pytest.Item]](list)
    for item in items:
        if _folder(item) in SAMPLED and _variant(item) != "simt":  # of which a sample is taken before
            tests[item.nodeid.partition("[")[0], _variant(item).partition("-")[0]].append(item)
    left_out = {item for cases in tests.values() for item in {*cases} - {*_sample(cases)}}
    return [item for item in items if item not in left_out]


def _sample(cases: Sequence[pytest.Item]) -> list[pytest.Item]:
    values = covering(cases, VALUES)
    if cases[0].get_closest_marker("emulator") is not None:
        return values if cases[0].get_closest_marker("every_order") is not None else values[:MOST_EMULATED]
    pairs = values if SAMPLE or _folder(cases[0]) == "simt" else covering(cases, PAIRS)
    return pairs if len(pairs) <= MOST_PAIRS else values


def covering(cases: Sequence[pytest.Item], strength: int) -> list[pytest.Item]:
    """Return few cases in which all values occur that so many parameters have together in any case."""
    if len(cases) == 1:
        return [*cases]
    left = {}
    for case in cases:
        values = sorted((name, id(value)) for name, value in _params(case).items())
        left[case] = {*itertools.combinations(values, min(strength, len(values)))}
    by_chance = sorted(cases, key=lambda case: zlib.crc32(case.nodeid.encode()))
    kept = list[pytest.Item]()
    while any(left.values()):
        most = max(by_chance, key=lambda case: len(left[case]))
        kept.append(most)
        found = left[most].copy()
        for others in left.values():
            others -= found
    return kept


def _params(item: pytest.Item) -> dict[str, object]:
    call = getattr(item, "callspec", None)
    return {} if call is None else call.params


def _variant(item: pytest.Item) -> str:
    return str(_params(item).get("variant", ""))


def _folder(item: pytest.Item) -> str:
    return item.nodeid.removeprefix("tests/").partition("/")[0]


def _does_more_in_full(item: pytest.Item) -> bool:
    """Return whether a test of both tiers does more in the full one."""
    drawn = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return drawn or _folder(item) in MORE_IN_FULL or hasattr(getattr(item, "module", None), "FULL")
