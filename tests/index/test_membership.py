"""A filter finds the numbers of a list as ``np.isin`` does, and rows are deleted by later batches alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20)
FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 0.5, -0.5, 5e-324])


def colliding() -> list[int]:
    """Numbers of which two, or one and 0, have equal high bits times each small odd multiple of the golden ratio."""
    spread, whole = 0x9E3779B97F4A7C15, 2**64
    inverses = [pow(spread * odd % whole, -1, whole) for odd in range(1, 129, 2)]
    return [0] + [one - whole if one >= whole // 2 else one for one in inverses]


def masked(values: list[Any], wanted: list[Any]) -> list[bool]:
    """Which values of a column a filter finds."""
    kind = "float64" if isinstance([*values, *wanted, 0][0], float) else "int64"
    rows = [{"text": "", "metadata": {"n": value}} for value in values]
    index = hf.Index.build(passages=rows, metadata_types={"n": kind})
    return index.mask(hf.where(n__in=wanted)).tolist()


@given(data=st.data())
@pytest.mark.parametrize("values", [INTEGERS, FLOATS])
def test_it_finds_what_sorting_finds(data: Any, values: Any) -> None:
    wanted = data.draw(st.lists(values, max_size=40))
    column = data.draw(st.lists(values | st.sampled_from(wanted or [data.draw(values)]), max_size=40))
    if not column:
        wanted = []  # the type of a column without values is not that of the list
    assert masked(column, wanted) == np.isin(column, wanted).tolist()


@pytest.mark.parametrize("wide", [True, False])
def test_many_numbers_in_several_blocks(wide: bool) -> None:
    rng = np.random.default_rng(int(wide))
    size = 70_000  # a block has 65,536
    column = rng.integers(-(2**62), 2**62, size) if wide else rng.integers(0, 1500, size)
    rows = [{"text": "", "metadata": {"n": n, "x": float(n)}} for n in column.tolist()]
    index = hf.Index.build(passages=rows)
    for count in (1, 10, 100, 500, 5000):
        wanted = np.concatenate([rng.choice(column, count - 1), [7]])
        found = index.mask(hf.where(n__in=wanted.tolist()))
        assert np.array_equal(found, np.isin(column, wanted))
        found = index.mask(hf.where(x__in=[float(one) for one in wanted.tolist()]))
        assert np.array_equal(found, np.isin(column * 1.0, wanted * 1.0))


def test_numbers_that_no_multiplier_separates_are_found() -> None:
    numbers = colliding()
    others = [number ^ 1 for number in numbers]
    expected = np.isin(numbers + others, numbers).tolist()
    assert masked(numbers + others, numbers) == expected


def test_lists_of_many_values_and_of_none() -> None:
    rows = [{"n": at, "x": at / 2, "t": [f"g{at % 7}"], "b": at % 2 == 0} if at % 3 else {} for at in range(60)]
    index = hf.Index.build(passages=[{"text": "", "metadata": row} for row in rows])
    for column, values in (("n", range(0, 60, 2)), ("x", [0.0, 1, 2.5, 7, 9.5]), ("b", [True] * 30), ("n", [])):
        found = index.mask(hf.where(**{f"{column}__in": values}))
        assert found.tolist() == [column in row and row[column] in list(values) for row in rows]
    for tags in ([f"g{at}" for at in range(9)], ["g1", "none"], ["none"], []):
        found = index.mask(hf.where(t__any=tags))
        assert found.tolist() == ["t" in row and row["t"][0] in tags for row in rows]


@pytest.mark.parametrize("seed", range(6))
def test_rows_are_deleted_by_later_batches_alone(seed: int, tmp_path: Path) -> None:
    """A fact or an edge that a batch deletes may be stated again by the same batch and by later ones."""
    rng = np.random.default_rng(seed)
    names, relations = ["a", "b", "c"], ["r", "s"]
    rows = [{"id": "p", "text": ""}, {"id": "q", "text": ""}]
    seed_fact = {"head": "a", "relation": "r", "tail": "b", "passage": 0}
    index = hf.Index.build(passages=rows, entities=names, graph=[{"src": 2, "dst": 3, "type": "r"}], facts=[seed_fact])
    index.save(tmp_path)
    facts, edges = [("a", "r", "b", "p")], [("a", "b", "r")]

    def some(count: int) -> list[tuple[str, str, str]]:
        return [(str(rng.choice(names)), str(rng.choice(relations)), str(rng.choice(names))) for _ in range(count)]

    with hf.Index.open(tmp_path, writable=True) as live:
        for _ in range(12):
            known = [*dict.fromkeys(fact[:3] for fact in facts)]
            gone = [known[at] for at in np.flatnonzero(rng.random(len(known)) < 0.4)]
            ways = [*dict.fromkeys(edges)]
            cut = [ways[at] for at in np.flatnonzero(rng.random(len(ways)) < 0.4)]
            new = [(*one, str(rng.choice(["p", "q"]))) for one in some(int(rng.integers(0, 5)))]
            joined = [(min(h, t), max(h, t), r) for h, r, t in some(int(rng.integers(0, 5)))]
            with live.change() as change:
                change.delete_facts(gone)
                change.delete_edges([edge(*one) for one in cut])
                change.add_facts(new)
                change.add_edges([edge(*one) for one in joined])
            facts = [fact for fact in facts if fact[:3] not in gone] + new
            edges = [one for one in edges if one not in cut] + joined
            found = live.refresh()
            assert stated_facts(found) == expected_facts(facts)
            assert stated_edges(found) == {one: edges.count(one) for one in edges}


def edge(src: str, dst: str, kind: str) -> dict[str, Any]:
    return {"src": ("entity", src), "dst": ("entity", dst), "type": kind}


def stated_facts(index: hf.Index) -> list[tuple[tuple[str, str, str], list[str]]]:
    """Facts in their order, each with the passages that state it."""
    facts, ids, names = index.facts, list(index.passage_ids), list(index.entity_names)
    assert facts is not None
    found = []
    for at, (head, relation, tail) in enumerate(facts.rows.tolist()):
        passages = facts.passages[facts.indptr[at] : facts.indptr[at + 1]].tolist()
        found.append(((names[head], facts.relations[relation], names[tail]), [ids[one] for one in passages]))
    return found


def expected_facts(facts: list[tuple[str, str, str, str]]) -> list[tuple[tuple[str, str, str], list[str]]]:
    stated: dict[tuple[str, str, str], set[str]] = {}
    for head, relation, tail, passage in facts:
        stated.setdefault((head, relation, tail), set()).add(passage)
    return [(fact, sorted(passages)) for fact, passages in stated.items()]


def stated_edges(index: hf.Index) -> dict[tuple[str, str, str], float]:
    """The weight of each edge, which is how often it is stated."""
    assert index.graph is not None
    names, types = ["", "", *index.entity_names], index.graph.edge_type_names
    rows = zip(*(part.tolist() for part in index.graph.edges()), strict=True)
    return {(*sorted((names[src], names[dst])), types[kind]): weight for src, dst, weight, kind in rows}
