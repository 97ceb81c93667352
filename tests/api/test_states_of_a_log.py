"""Earlier states of a log whose later batches were read together with them, or are read meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hopfuse as hf
from hopfuse.index.log.rows import CommonNumbers
from hopfuse.index.log.state import read_state


def test_each_state_has_its_aliases_whatever_was_read_after_it(tmp_path: Path) -> None:
    hf.Index.build(passages=[{"id": "a", "text": "x"}], entities=["Ada"], aliases={"Ada": ["A"]}).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        for method in ("delete_aliases", "add_aliases") * 3:
            with live.change() as change:
                getattr(change, method)({"Ada": ["A"]})
    together = read_state(hf.Index, tmp_path)
    together.rows()
    for count in range(7):
        assert list(together.at(count).snapshot().entity_aliases) == [("A",) if count % 2 == 0 else ()]


def test_a_matrix_is_made_while_another_thread_reads_later_terms(tmp_path: Path, monkeypatch: Any) -> None:
    index = hf.Index.build(passages=[{"id": "a", "text": "one two"}])
    index.with_lexical(hf.lexical.BM25.build(index.texts_to_index()).matrix).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        for id, text in (("b", "three"), ("c", "four five")):
            with live.change() as change:
                change.add_passages([{"id": id, "text": text}])
    state, ascending = read_state(hf.Index, tmp_path), CommonNumbers.ascending

    def read_later(numbers: CommonNumbers) -> Any:
        order = ascending(numbers)
        state.rows()
        return order

    monkeypatch.setattr(CommonNumbers, "ascending", read_later)
    first, last = state.at(1).snapshot().lexical, state.snapshot().lexical
    assert first is not None
    assert last is not None
    assert (first.terms, last.terms) == (("one", "three", "two"), ("five", "four", "one", "three", "two"))
