"""Rows of an earlier snapshot in a later one, by a history in plain Python."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

import hopfuse as hf
import numpy as np
import pytest

pytest.importorskip("bm25s", reason="the model's lexical part is BM25's (extra text)")

from index.live_model import Model, random_change


class Known(NamedTuple):
    """A snapshot, what each of its passages is told apart by, its entities, and the compactions before it."""

    index: hf.Index
    passages: list[int]
    entities: list[str]
    compactions: int


class Recorded:
    """A live index under random changes, and what its snapshots hold."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng, self.model, self.serial, self.compactions = np.random.default_rng(seed), Model(), [0], 0
        self.model.rebuilt().save(folder)
        self.live = hf.Index.open(folder, writable=True)
        self.reader = hf.Index.open(folder, live=True)

    def change(self, steps: int = 1) -> None:
        for _ in range(steps):
            with self.live.change() as change:
                random_change(self.model, self.rng, change, self.serial)

    def known(self, live: hf.LiveIndex[hf.Index] | None = None) -> Known:
        rows = [row["seed"] for row in self.model.passages.values()]
        index = (self.live if live is None else live).refresh()
        return Known(index, rows, self.model.names(), self.compactions)

    def compact(self) -> None:
        self.live.compact()
        self.compactions += 1


def expected(earlier: list[Any], later: list[Any]) -> list[int]:
    place = {value: at for at, value in enumerate(later)}
    return [place.get(value, -1) for value in earlier]


def check(earlier: Known, later: Known) -> None:
    found = later.index.rows_since(earlier.index)
    if later.compactions > earlier.compactions + 1:
        assert found is None
        return
    assert found is not None
    assert found.passages.tolist() == expected(earlier.passages, later.passages)
    assert found.entities.tolist() == expected(earlier.entities, later.entities)
    assert not found.passages.flags.writeable
    assert not found.entities.flags.writeable
    assert later.index.rows_since(earlier.index) is found


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_found_in_each_later_snapshot_up_to_one_compaction(seed: int, tmp_path: Path) -> None:
    history = Recorded(tmp_path, seed)
    with history.live:
        known = [history.known()]
        for step in range(16):
            history.change(1 + step % 3)
            if step in (5, 6, 12):
                history.compact()
            if step == 8:
                continue
            known.append(history.known())
            for earlier in known:
                check(earlier, known[-1])
            if known[-2].index.seq < known[-1].index.seq:
                assert known[-2].index.rows_since(known[-1].index) is None


def test_a_reader_finds_rows_over_a_compaction_that_it_read_up_to(tmp_path: Path) -> None:
    history = Recorded(tmp_path, 4)
    with history.live:
        history.change(4)
        first = history.known(history.reader)
        history.compact()
        second = history.known(history.reader)
        history.change(2)
        third = history.known(history.reader)
        history.change()
        history.compact()
        fourth = history.known(history.reader)
    check(first, second)
    check(first, third)
    check(second, third)
    assert third.index.seq < fourth.index.seq
    assert fourth.index.rows_since(third.index) is None  # the last change was never read from a log


def test_rows_that_came_during_a_compaction_are_found_after_it(tmp_path: Path, monkeypatch: Any) -> None:
    history, sync = Recorded(tmp_path, 5), os.fsync
    known: list[Known] = []

    def sync_after_changes(file: int) -> None:
        """Sync the new generation, or what is written beside it; the first time after changes."""
        if threading.current_thread() is not threading.main_thread() and len(known) == 1:
            known.append(history.known())
            history.change(3)
            known.append(history.known())
        sync(file)

    with history.live:
        history.change(3)
        known.append(history.known())
        monkeypatch.setattr(os, "fsync", sync_after_changes)
        history.compact()
        later = history.known()
    assert known[0].index.seq == known[1].index.seq < known[2].index.seq == later.index.seq
    for earlier in known:
        check(earlier, later._replace(compactions=1))


def test_snapshots_and_what_they_hold_are_released_when_later_ones_are_read(tmp_path: Path) -> None:
    history = Recorded(tmp_path, 7)
    held: list[weakref.ref[Any]] = []
    with history.live:
        for step in range(9):
            earlier = history.live.index
            history.change(1 + step % 2)
            if step == 5:
                history.compact()
            later = history.live.refresh()
            assert later.rows_since(earlier) is not None
            found = (later, later.lexical, later.metadata, later.facts, later.corpus, later.graph)
            held += map(weakref.ref, found)
            del earlier, later, found
            gc.collect()
            alive = {id(one) for ref in held if (one := ref()) is not None}
            assert len(alive) <= 12  # those of the last snapshot and of its generation
    assert len(held) == 54


def test_no_rows_are_found_in_another_index(tmp_path: Path) -> None:
    history = Recorded(tmp_path, 6)
    with history.live:
        history.change(3)
        index = history.known().index
        again = hf.Index.open(tmp_path)
        built = history.model.rebuilt()
    assert again.rows_since(index) is None
    assert index.rows_since(again) is None
    assert built.rows_since(index) is None
    assert index.rows_since(built) is None
    found = again.rows_since(again)
    assert found is not None
    assert found.passages.tolist() == list(range(again.num_passages))


def test_a_saved_index_does_not_continue_what_it_replaces(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "The sea."}]
    hf.Index.build(passages=rows).save(tmp_path)
    reader = hf.Index.open(tmp_path, live=True)
    earlier = reader.index
    hf.Index.build(passages=rows).save(tmp_path)
    assert reader.refresh().rows_since(earlier) is None


def test_a_copy_of_another_index_does_not_continue_what_it_replaces(tmp_path: Path) -> None:
    """Both directories are at the same seq, but their changes differ."""
    for name, text in (("one", "The sea."), ("two", "A river.")):
        hf.Index.build(passages=[{"id": "a", "text": "The sea."}]).save(tmp_path / name)
        with hf.Index.open(tmp_path / name, writable=True) as live, live.change() as change:
            change.add_passages([{"id": name, "text": text}])
    reader = hf.Index.open(tmp_path / "one", live=True)
    earlier = reader.index
    hf.Index.open(tmp_path / "two").copy_to(tmp_path / "one")
    later = reader.refresh()
    assert list(later.passage_ids) == ["a", "two"]
    assert later.rows_since(earlier) is None


@pytest.mark.parametrize("seed", range(2))
def test_ids_are_found_in_each_snapshot_whatever_later_ones_add(seed: int, tmp_path: Path) -> None:
    one = Recorded(tmp_path, seed)
    seen: list[tuple[hf.Index, list[Any]]] = []
    for step in range(30):
        one.change()
        index = one.known().index
        seen = [*seen[-6:], (index, list(index.passage_ids))]
        known = {id for _, ids in seen for id in ids}
        for state, ids in seen:
            rows = {id: row for row, id in enumerate(ids)}
            assert [state.find(id) for id in known] == [rows.get(id, -1) for id in known]
            assert state.rows_of(ids).tolist() == list(range(len(ids)))
        if step % 10 == 9:
            one.compact()


def test_a_change_reads_the_ids_that_it_adds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hf.Index.build(passages=[{"id": f"p{at}", "text": "t"} for at in range(300)]).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        first = live.index
        assert first.find("p7") == 7
        with live.change() as change:
            change.add_passages([{"id": "p7", "text": "u"}, {"id": "new", "text": "v"}], replace=True)
        later = live.refresh()
        read: list[int] = []
        column = type(later.passage_ids)
        original = column.__getitem__
        monkeypatch.setattr(column, "__getitem__", lambda own, at: (read.append(at), original(own, at))[1])
        monkeypatch.setattr(column, "__iter__", lambda own: (_ for _ in ()).throw(AssertionError("all were read")))
        assert [later.find("p7"), later.find("p8"), later.find("new"), later.find("none")] == [299, 7, 300, -1]
        assert sorted(read) == [299, 300]
        assert [first.find("p7"), first.find("new")] == [7, -1]


def test_an_id_that_is_replaced_at_every_turn_is_found_by_its_latest_passage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hf.Index.build(passages=[{"id": f"p{at}", "text": "t"} for at in range(60)]).save(tmp_path)
    looked: list[int] = []
    numbers = resolve_name("hopfuse._arrays.rows:StateNumbers")
    get = numbers.get
    monkeypatch.setattr(numbers, "get", lambda own, number: (looked.append(number), get(own, number))[1])
    with hf.Index.open(tmp_path, writable=True) as live:
        states = [live.index]
        for at in range(50):
            assert states[-1].find("p7") == (59 if at else 7)
            with live.change() as change:
                change.replace_passages([{"id": "p7", "text": f"turn {at}"}])
            states.append(live.refresh())
        looked.clear()
        assert states[-1].find("p7") == 59
        assert looked == [109]
        assert [state.find("p7") for state in states] == [7, *[59] * 50]


def test_a_lineage_may_be_forgotten_while_it_is_read() -> None:
    """Another thread's compaction does so, between two reads of the same attribute."""
    lineage: Any = resolve_name("hopfuse.index.log.lineage:Lineage")
    earlier, rows = lineage(), resolve_name("hopfuse.index.log.lineage:RowMaps")(np.arange(2), np.arange(1))

    class Forgotten(lineage):  # type: ignore[misc]
        reads = 0

        @property
        def _before(self) -> Any:
            self.reads += 1
            return (earlier, np.array([1, 0]), np.array([0])) if self.reads == 1 else None

        @_before.setter
        def _before(self, value: Any) -> None:
            assert value is None

    found = Forgotten().slots_of(earlier, rows)
    assert found is not None
    assert found.passages.tolist() == [1, 0]
