"""Changes that add what is missing, replace what is there, and touch only what a filter allows."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import hopfuse as hf
import pytest
from hopfuse.errors import InputError
from refusals import refused

ONLY = hf.where(tenant="x")


def passage(id: str, tenant: str | None = "x", **more: Any) -> dict[str, Any]:
    return {"id": id, "text": f"text of {id}", "metadata": {} if tenant is None else {"tenant": tenant, **more}}


@pytest.fixture
def live(tmp_path: Path) -> Any:
    """Passages x1 of the tenant x, y1 of y and z1 of nobody, each joined to Ada; in the log x2 and y2."""
    hf.Index.build(
        passages=[passage("x1", year=2020), passage("y1", "y"), passage("z1", None)],
        entities=["Ada", "Babbage"],
        graph=[{"src": at, "dst": 3, "type": "context"} for at in range(3)],
        facts=[{"head": "Ada", "relation": "knew", "tail": "Babbage", "passage": 1}],
    ).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        with live.change() as change:
            change.add_passages([passage("x2"), passage("y2", "y")])
        yield live


def ids(live: Any) -> list[Any]:
    return list(live.refresh().passage_ids)


def test_passages_are_added_or_replaced_by_their_ids(live: Any) -> None:
    with live.change() as change:
        change.add_passages([passage("x1"), passage("new")], replace=True)
    assert ids(live) == ["y1", "z1", "x2", "y2", "x1", "new"]
    assert live.index.graph.num_stored == 4  # the edge of the old x1 went with it
    with refused(InputError, "duplicate", "id", given="x1"), live.change() as change:
        change.add_passages([passage("x1")])


def test_missing_entities_are_added_once_by_threads_that_race(live: Any) -> None:
    def add(at: int) -> None:
        with live.change() as change:
            change.add_entities(["Ada", "Byron", "Byron", f"of {at}"], missing=True)

    threads = [threading.Thread(target=add, args=(at,)) for at in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = list(live.refresh().entity_names)
    assert sorted(names) == sorted(["Ada", "Babbage", "Byron", *(f"of {at}" for at in range(6))])
    with live.change() as change:
        change.delete_entities(["Ada"])
        change.add_entities(["Ada"], missing=True)
    assert list(live.refresh().entity_names) == [*names[1:], "Ada"]
    with refused(InputError, "duplicate", "names", given="Ada"), live.change() as change:
        change.add_entities(["Ada"])


def test_a_filter_admits_the_allowed_rows(live: Any) -> None:
    with live.change(only=ONLY) as change:
        change.delete_passages(["x2"])
        change.add_passages([passage("x1"), passage("x3", year=1)], replace=True)
        change.add_entities(["Byron", "Ada"], missing=True)
        change.add_edges(
            [
                {"src": ("passage", "x3"), "dst": ("entity", "Byron"), "type": "context"},
                {"src": ("entity", "Ada"), "dst": ("entity", "Byron"), "type": "context", "stated_by": "x1"},
            ]
        )
        change.add_facts([("Ada", "knew", "Byron", "x3")])
    assert ids(live) == ["y1", "z1", "y2", "x1", "x3"]
    assert list(live.index.facts.passages) == [0, 4]


def edge(a: Any, b: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"src": a, "dst": b, "type": "context", **more}]


ADA, BABBAGE = ("entity", "Ada"), ("entity", "Babbage")


@pytest.mark.parametrize(
    ("method", "given", "expected"),
    [
        ("add_passages", [passage("n", "y")], ("denied", "passages", {"given": "n"})),
        ("add_passages", [passage("n", None)], ("denied", "passages", {"given": "n"})),
        ("add_passages", [passage("n", colour="red")], ("denied", "passages", {"given": "colour", "id": "n"})),
        ("add_passages", [passage("n", year="red")], ("type", "metadata.year")),
        ("add_passages", [{"id": "n", "text": "t", "metadata": {"tenant": 3}}], ("type", "metadata.tenant")),
        ("add_passages", [passage("y1")], ("duplicate", "id", {"given": "y1"})),
        ("add_edges", edge(ADA, BABBAGE), ("denied", "edges[0]")),
        ("add_edges", edge(("passage", "x1"), ADA, type="new"), ("denied", "edges[0]")),
        ("delete_entities", ["Ada"], ("denied",)),
        ("delete_edges", edge(("passage", "x1"), ADA), ("denied",)),
        ("delete_facts", [("Ada", "knew", "Babbage")], ("denied",)),
        ("add_aliases", {"Ada": ["A"]}, ("denied",)),
        ("delete_aliases", {"Ada": ["A"]}, ("denied",)),
    ],
)
def test_a_filter_refuses_the_rest(live: Any, method: str, given: Any, expected: tuple[Any, ...]) -> None:
    before = live.refresh().seq
    with refused(InputError, *expected), live.change(only=ONLY) as change:
        getattr(change, method)(given)
    assert live.refresh().seq == before


@pytest.mark.parametrize("id", ["y1", "y2", "z1", "there is none"])
def test_a_hidden_row_counts_as_absent(live: Any, id: str) -> None:
    end = ("passage", id)
    for method, given in (
        ("delete_passages", [id]),
        ("replace_passages", [passage(id)]),
        ("add_edges", edge(end, ADA)),
        ("add_edges", edge(ADA, ADA, stated_by=id)),
        ("add_facts", [("Ada", "knew", "Ada", id)]),
    ):
        with refused(InputError, "unknown", given=id) as caught, live.change(only=ONLY) as change:
            getattr(change, method)(given)
        assert caught.value.values == {"given": id}
        assert caught.value.places == ()
    if id != "there is none":  # ids are distinct over all tenants, so this one is told
        with refused(InputError, "duplicate", "id", given=id), live.change(only=ONLY) as change:
            change.add_passages([passage(id)], replace=True)


@pytest.mark.parametrize("name", ["Byron", "byron", "there is none"])
def test_an_entity_of_other_passages_counts_as_absent(live: Any, name: str) -> None:
    with live.change() as change:
        change.add_entities(["Byron"])
        change.add_edges(edge(("passage", "y1"), ("entity", "Byron")))
    for method, given in (
        ("add_edges", edge(("passage", "x1"), ("entity", name))),
        ("add_edges", edge(ADA, ("entity", name), stated_by="x1")),
        ("add_facts", [("Ada", "knew", name, "x1")]),
    ):
        with refused(InputError, "unknown", given=name) as caught, live.change(only=ONLY) as change:
            getattr(change, method)(given)
        assert caught.value.values["count"] == "0 entities"
    for missing in (True, False):
        change = live.change(only=ONLY)
        change.add_entities([name], missing=missing)
        change.add_edges(edge(("passage", "x1"), ("entity", name)))
        change.preview()
    change.commit()
    with live.change(only=ONLY) as change:
        change.add_facts([("Ada", "knew", name, "x1")])
    with refused(InputError, "duplicate", "names", given=name), live.change(only=ONLY) as change:
        change.add_entities([name])


def test_what_is_no_filter_is_refused_at_once(live: Any) -> None:
    with refused(InputError, "type", "only", given="dict"):
        live.change(only={"tenant": "x"})


def test_a_filter_sees_what_was_committed_and_not_yet_read(live: Any) -> None:
    with live.change() as change:
        change.add_passages([passage("x1", "y", colour="red")], replace=True)
        change.add_edges([{"src": ("passage", "x2"), "dst": ADA, "type": "late"}])
    with refused(InputError, "unknown", given="x1"), live.change(only=ONLY) as change:
        change.delete_passages(["x1"])
    with live.change(only=ONLY) as change:
        change.add_passages([passage("x4", colour="blue")])
        change.add_edges(edge(("passage", "x4"), ADA, type="late"))
    assert ids(live)[-2:] == ["x1", "x4"]


def test_many_small_changes_take_no_more_memory_than_disk(tmp_path: Path) -> None:
    hf.Index.build(passages=[passage("x", year=0)]).save(tmp_path)
    log = tmp_path / "log-000000000001.hopfuse"
    with hf.Index.open(tmp_path, writable=True) as live:

        def added(first: int, last: int) -> tuple[int, int]:
            for at in range(first, last):
                with live.change() as change:
                    change.add_passages([passage(f"x{at}", year=at, late=at % 2)])
            gc.collect()
            return tracemalloc.get_traced_memory()[0], log.stat().st_size

        tracemalloc.start()
        try:
            before, after = added(0, 200), added(200, 400)
        finally:
            tracemalloc.stop()
        assert after[0] - before[0] < 1.5 * (after[1] - before[1])
        change = live.change()
        change.delete_passages(where=hf.where(year__ge=380) & hf.where(late=1))
        assert change.preview().passages == 10
