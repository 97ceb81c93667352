"""Triples: numbers, incidence against a plain count, refusals."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

ROWS = st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("xy"), st.sampled_from("abcde")), max_size=20)


@given(rows=ROWS)
def test_every_entity_has_the_facts_that_it_is_an_end_of(rows: list[tuple[str, str, str]]) -> None:
    triples = hf.Triples(rows, list("edcbaf"))
    assert triples.entities == tuple("edcbaf")
    facts = list(dict.fromkeys(rows))
    assert len(triples) == len(facts)
    named = [(triples.entities[h], triples.relations[r], triples.entities[t]) for h, r, t in triples.rows.tolist()]
    assert named == facts
    for number, name in enumerate(triples.entities):
        own = triples.incident[triples.indptr[number] : triples.indptr[number + 1]].tolist()
        assert own == [at for at, (head, _, tail) in enumerate(facts) if name in (head, tail)]


def test_entities_come_as_the_facts_have_them() -> None:
    triples = hf.Triples([["b", "r", "a"], ["a", "s", "c"], ["b", "r", "a"]])
    assert triples.entities == ("b", "a", "c")
    assert triples.relations == ("r", "s")
    assert triples.rows.tolist() == [[0, 0, 1], [1, 1, 2]]
    assert triples.rows.dtype == np.int32
    assert hf.Triples([("a", "r", "b")], (name for name in "ab")).entities == ("a", "b")
    assert not any(array.flags.writeable for array in (triples.rows, triples.indptr, triples.incident))
    assert repr(hf.Triples([])) == "Triples(triples=0, entities=0, relations=0)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([("a", "r")],), r"row 0 is \('a', 'r'\); it must be \(head, relation, tail\)"),
        ((["arb"],), "row 0 is 'arb'"),
        (([("a", "r", 3)],), "must be strings"),
        (([("a", "r", "b")], ["a"]), r"'b' of \('a', 'r', 'b'\) is not among the entities"),
        (([("a", "r", "b")], ["a", "b", "a"]), "entities 0 and 2 are both 'a'"),
        (([("a", "r", "b")], "ab"), "sequence of strings"),
        (([], 5), "sequence of strings"),
        ((5,), "rows are a int"),
    ],
)
def test_bad_input_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        hf.Triples(*arguments)
