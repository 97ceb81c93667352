"""The state of an index's source: kept with the rows that were read of it, whatever happens in between."""

from __future__ import annotations

from pathlib import Path

from hopfuse import Index, where
from hopfuse.errors import InputError
from refusals import refused


def test_a_state_is_kept_in_the_generation_and_in_the_batch_of_a_change(tmp_path: Path) -> None:
    plain = Index.build(passages=[{"id": "a", "text": "Ada wrote."}])
    assert plain.source is None
    assert plain.with_source("é 1").with_source(None).arrays().keys() == plain.arrays().keys()
    plain.with_source("é 1").save(tmp_path)
    assert Index.open(tmp_path, verify="full").source == "é 1"
    with Index.open(tmp_path, writable=True) as live:
        with live.change() as change:
            change.add_passages([{"id": "b", "text": "Babbage built."}])
        assert live.refresh().source == "é 1"
        with live.change() as change:
            change.set_source("2")
        with live.change() as change:
            change.set_source("3")
            change.delete_passages(["a"])
        index = live.refresh()
        assert (index.source, list(index.passage_ids), index.seq) == ("3", ["b"], 3)
        live.compact()
        assert live.index.source == "3"
        with live.change() as change:
            change.set_source("4")
    assert Index.open(tmp_path, verify="full").source == "4"


def test_a_change_that_fails_keeps_the_state(tmp_path: Path) -> None:
    Index.build(passages=[{"id": "a", "text": "Ada wrote."}]).with_source("1").save(tmp_path)
    with Index.open(tmp_path, writable=True) as live:
        change = live.change()
        change.set_source("2")
        change.add_passages([{"id": "a", "text": "again"}])
        with refused(InputError, "duplicate", "id"):
            change.commit()
        assert live.refresh().source == "1"
        with refused(InputError, "denied", "state"):
            live.change(only=where(tenant="a")).set_source("2")
        with refused(InputError, "type", "state", allowed="a string", given="int"):
            live.change().set_source(2)  # type: ignore[arg-type]
    with refused(InputError, "type", "state", given="int"):
        Index.build(passages=[]).with_source(2)  # type: ignore[arg-type]


def test_many_edges_are_deleted_at_once(tmp_path: Path) -> None:
    names = [f"e{i}" for i in range(40)]
    edges = [{"src": a, "dst": b, "type": kind} for a in range(40) for b in range(a) for kind in ("x", "y")]
    Index.build(passages=[], entities=names, graph=edges).save(tmp_path)
    gone = [edge for at, edge in enumerate(edges) if at % 3 == 1]
    with Index.open(tmp_path, writable=True) as live:
        with live.change() as change:
            change.delete_edges(
                {"src": ("entity", names[e["dst"]]), "dst": ("entity", names[e["src"]]), "type": e["type"]}
                for e in gone
            )
        graph = live.refresh().graph
    assert graph is not None
    wanted = Index.build(passages=[], entities=names, graph=[e for at, e in enumerate(edges) if at % 3 != 1]).graph
    assert wanted is not None
    assert {n: a.tolist() for n, a in graph.to_arrays().items()} == {
        n: a.tolist() for n, a in wanted.to_arrays().items()
    }
