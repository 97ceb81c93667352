"""Filters by metadata against Python's own comparisons, row by row."""

from __future__ import annotations

import operator
from datetime import UTC, datetime
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse import where
from hopfuse.errors import InputError
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

TIMES = [datetime(2024, 5, day, tzinfo=UTC) for day in (1, 2, 3)]
POOLS: dict[str, list[Any]] = {
    "flag": [True, False],
    "year": [-1, 0, 2020, 2**62],
    "rank": [-0.5, 0.0, 2.5, float("inf")],
    "name": ["", "a", "ab", "b", "東"],
    "day": TIMES,
}
TAGS = ["a", "b", "c"]
TYPES = {"flag": "bool", "year": "int64", "rank": "float64", "name": "string", "day": "timestamp", "tags": "strings"}
PYTHON = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


@st.composite
def conditions(draw: Any) -> tuple[str, str, Any]:
    column = draw(st.sampled_from([*POOLS, "tags"]))
    if column == "tags":
        kind = draw(st.sampled_from(["any", "all", "none", "exists"]))
        return column, kind, draw(st.booleans() if kind == "exists" else st.lists(st.sampled_from([*TAGS, "zz"])))
    kind = draw(st.sampled_from(["eq", "ne", "in", "exists"] if column == "flag" else [*PYTHON, "in", "exists"]))
    others = {"year": [7], "name": ["aa", "zz"], "rank": [1]}.get(column, [])
    one = st.sampled_from([*POOLS[column], *others])
    return column, kind, draw(st.booleans() if kind == "exists" else st.lists(one) if kind == "in" else one)


def holds(row: dict[str, Any], column: str, kind: str, value: Any) -> bool:
    found = row.get(column)
    if kind == "exists":
        return (found is not None) == value
    if found is None:
        return False
    if kind in ("any", "all", "none"):
        return {"any": any, "all": all, "none": lambda some: not any(some)}[kind](tag in found for tag in value)
    return found in value if kind == "in" else PYTHON[kind](found, value)


trees = st.recursive(
    conditions(),
    lambda inner: st.tuples(st.sampled_from("&|"), inner, inner) | st.tuples(st.just("~"), inner),
    max_leaves=4,
)


def as_filter(tree: Any) -> hf.Where:
    if tree[0] == "~":
        return ~as_filter(tree[1])
    if tree[0] in ("&", "|"):
        a, b = as_filter(tree[1]), as_filter(tree[2])
        return a & b if tree[0] == "&" else a | b
    return where(**{f"{tree[0]}__{tree[1]}": tree[2]})


def meets(row: dict[str, Any], tree: Any) -> bool:
    if tree[0] == "~":
        return not meets(row, tree[1])
    if tree[0] in ("&", "|"):
        return {"&": all, "|": any}[tree[0]](meets(row, one) for one in tree[1:])
    return holds(row, *tree)


@st.composite
def row(draw: Any) -> dict[str, Any]:
    values = {name: draw(st.none() | st.sampled_from(pool)) for name, pool in POOLS.items()}
    return values | {"tags": draw(st.none() | st.lists(st.sampled_from(TAGS), max_size=4))}


@settings(max_examples=2 * settings().max_examples)
@given(st.lists(row(), max_size=7), st.lists(trees, min_size=1, max_size=4))
def test_masks_are_what_python_says_row_by_row(rows: list[dict[str, Any]], asked: list[Any]) -> None:
    index = hf.Index.build(passages=[{"text": "", "metadata": one} for one in rows], metadata_types=TYPES)
    for tree in asked:
        found = index.mask(as_filter(tree))
        assert found.dtype == np.bool_
        assert found.tolist() == [meets(one, tree) for one in rows], tree


def two() -> hf.Index:
    rows = [{"year": 2019, "tags": ["a"], "name": "x"}, {"year": 2024, "flag": True, "day": TIMES[0]}]
    return hf.Index.build(passages=[{"text": "", "metadata": one} for one in rows])


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (
            {"yr": 1},
            (
                "unknown",
                "yr",
                {
                    "columns": "the columns are year (int64), tags (strings), name (string), flag (bool), "
                    "day (timestamp)"
                },
            ),
        ),
        ({"year": "2019"}, ("type", "year", {"given": "2019"})),
        ({"year": True}, ("type", "year", {"given": True})),
        ({"year": 2019.0}, ("type", "year", {"given": 2019.0})),
        ({"year__any": [1]}, ("choice", "year", {"given": "any"})),
        (
            {"tags": "a"},
            ("choice", "tags", {"given": "eq"}),
        ),
        ({"tags__any": [1]}, ("type", "tags", {"allowed": "a string", "given": 1})),
        (
            {"flag__lt": True},
            ("choice", "flag", {"allowed": "flag__eq, flag__ne, flag__in, flag__exists", "given": "lt"}),
        ),
        (
            {"year__gte": 2020},
            ("choice", "year", {"given": "gte"}),
        ),
        ({"day__ge": "2024"}, ("type", "day", {"given": "2024"})),
        ({"name": 3}, ("type", "name", {"allowed": "a string", "given": 3})),
    ],
)
def test_a_filter_that_does_not_fit_the_columns_is_refused(
    conditions: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    with refused(InputError, *expected):
        two().mask(where(**conditions))


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, ("empty",)),
        ({"year": None}, ("missing", "year")),
        ({"year__in": 2019}, ("type", "year__in", {"allowed": "a list"})),
        ({"tags__any": "ab"}, ("type", "tags__any", {"allowed": "a list"})),
        ({"year__exists": 1}, ("type", "year__exists")),
    ],
)
def test_conditions_that_say_nothing_are_refused(conditions: dict[str, Any], expected: tuple[Any, ...]) -> None:
    with refused(InputError, *expected):
        where(**conditions)


def test_filters_are_joined_by_signs_alone() -> None:
    year = where(year=2019)
    with refused(InputError, "unsupported"):
        bool(year)
    with refused(InputError, "type"):
        _ = year & np.array([True])
    with refused(InputError, "type", given=hf.where(year=2019)):
        hf.dense_topk(np.ones((1, 2)), hf.Corpus.from_array(np.ones((2, 2))), 1, allow=year)
    with refused(InputError, "type", "allow", given="dict"):
        two().mask({"year": 2019})
    assert repr(~(year | where(name__in=["x"]))) == "~(where(year=2019) | where(name__in=('x',)))"


def test_a_name_with_two_lines_is_a_name_where_no_operator_follows() -> None:
    index = hf.Index.build(passages=[{"text": "", "metadata": {"a__b": 1, "__ge": 2, "year__ge": 3}}])
    assert index.mask(where(a__b=1, __ge=2, year__ge__eq=3)).tolist() == [True]


def test_equal_filters_are_one_and_masks_are_kept_but_not_all() -> None:
    index = two()
    mask = index.mask(where(year__ge=np.int64(2020)))
    assert where(year=1) != where(year=True)
    assert hash(where(year=1)) == hash(where(year=np.int32(1)))
    assert index.mask(where(year__ge=2020)) is mask
    assert not mask.flags.writeable
    for year in range(64):
        index.mask(where(year=year))
    assert index.mask(where(year__ge=2020)) is not mask
    assert index.mask(where(year__ge=2020)).tolist() == mask.tolist()


def test_recipes_take_filters_one_for_all_or_one_for_each_question() -> None:
    rows = [{"text": f"river {at}", "metadata": {"tenant": "ab"[at % 2]}} for at in range(4)]
    index = hf.Index.build(passages=rows, vectors=np.eye(4, dtype=np.float32))
    recipe = hf.recipes.HybridRRF(index)
    asked = np.ones((2, 4), np.float32)
    one = recipe.search(vectors=asked, allow=where(tenant="b"))
    assert [{hit.row for hit in found} for found in one] == [{1, 3}] * 2
    each = recipe.search(vectors=asked, allow=[where(tenant="a"), [3]])
    assert [{hit.row for hit in found} for found in each] == [{0, 2}, {3}]
    assert each.hits.ids.tolist() == recipe.search(vectors=asked, allow=[[0, 2], [3]]).hits.ids.tolist()
    for some in ([None, where(tenant="b")], [None, [1, 3]], [None, np.array([False, True, False, True])]):
        found = recipe.search(vectors=asked, allow=some)
        assert [{hit.row for hit in hits} for hits in found] == [{0, 1, 2, 3}, {1, 3}]
    every = recipe.search(vectors=asked, allow=[None, None])
    assert every.hits.ids.tolist() == recipe.search(vectors=asked).hits.ids.tolist()
