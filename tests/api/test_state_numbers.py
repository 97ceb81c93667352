"""Numbers that rows keep while a table changes, and tables by these numbers, which stay in proportion to the index."""

from __future__ import annotations

from pathlib import Path

import hopfuse as hf
import numpy as np
import pytest
from hopfuse._arrays.rows import LEAST_UNUSED, PartNumbers, StateNumbers
from hopfuse.index.numbers import entity_numbers, kept_facts, passage_numbers
from hypothesis import given
from hypothesis import strategies as st


@given(seed=st.integers(0, 10**6), size=st.integers(0, 8), steps=st.integers(1, 12))
def test_a_number_is_that_of_one_row_in_all_states(seed: int, size: int, steps: int) -> None:
    random, names = np.random.default_rng(seed), [f"{at}" for at in range(size)]
    states, count = [(StateNumbers.of_rows(size), list(names))], size
    for _ in range(steps):
        numbers, before = states[-1]
        after = [name for name in before if random.random() < 0.7]
        for _ in range(random.integers(0, 4)):
            after.insert(int(random.integers(len(after) + 1)), f"{count}")
            count += 1
        place = {name: row for row, name in enumerate(after)}
        rows = np.array([place.get(name, -1) for name in before], np.int64)
        later = numbers.continued(rows, len(after))
        assert later is not None
        fresh = later.since(numbers)
        assert fresh is not None
        assert sorted(after[later.get(number)] for number in fresh.tolist()) == sorted(set(after) - set(before))
        assert numbers.continued(rows, len(after)) is None or not fresh.size  # the numbers are given already
        states.append((later, after))
    known: dict[int, str] = {}
    for numbers, own in states:
        assert sorted(numbers.of(range(numbers.rows.size + 3))) == list(range(len(own)))
        for number in numbers.numbers().tolist():
            assert known.setdefault(number, own[numbers.get(number)]) == own[numbers.get(number)]
        part = PartNumbers(np.arange(0, len(own), 2), numbers)
        assert sorted(part.of(numbers.numbers().tolist())) == list(range((len(own) + 1) // 2))
    assert StateNumbers.of_rows(size).since(states[0][0]) is None


def test_numbers_begin_again_when_most_are_those_of_no_row() -> None:
    numbers, begun = StateNumbers.of_rows(10), 0
    for _ in range(5 * LEAST_UNUSED // 10):
        rows = np.full(10, -1)  # all are replaced
        later = numbers.continued(rows, 10)
        begun += later is None
        numbers = StateNumbers.of_rows(10) if later is None else later
        assert numbers.rows.size <= LEAST_UNUSED + 20
    assert begun == 4


@pytest.mark.parametrize("words", [True, False])
def test_tables_stay_in_proportion_to_an_index_whose_rows_are_replaced(words: bool, tmp_path: Path) -> None:
    pytest.importorskip("ahocorasick", reason="names are found by pyahocorasick")
    rows = [{"id": f"{at}", "text": f"Town {at} lies by river{at}"} for at in range(60)]
    if words:
        hf.Index.build(rows, reader="words").save(tmp_path)
    else:
        edges = [{"src": at, "dst": 60 + at} for at in range(60)]
        hf.Index.build(rows, entities=[f"Town {at}" for at in range(60)], graph=edges).save(tmp_path)
    questions = ["is town 7 by river 7", "river10 of town 10 002", "Town 3 step 40"]
    with hf.Index.open(tmp_path, writable=True) as live:
        matcher = hf.extract.QuestionMatcher(live.index)
        for step in range(60):
            with live.change() as change:
                change.replace_passages([{**row, "text": f"{row['text']} {step}"} for row in rows])
                if not words:
                    change.delete_entities(
                        [f"Town {at}" if step == 0 else f"Town {at} step {step}" for at in range(50)]
                    )
                    change.add_entities([f"Town {at} step {step + 1}" for at in range(50)])
            index = live.refresh()
            matcher = matcher.of_state(index)
            found = matcher.match(questions)
            if step % 10 == 9:
                assert found == hf.extract.QuestionMatcher(index).match(questions)
            assert passage_numbers(index).rows.size <= LEAST_UNUSED + 2 * 60
            assert entity_numbers(index).rows.size <= LEAST_UNUSED + 2 * index.num_entities


@pytest.mark.parametrize("changes", [1, 5, 120])
def test_an_entity_has_another_number_if_its_aliases_change(changes: int, tmp_path: Path) -> None:
    random = np.random.default_rng(changes)
    names = [f"name {at}" for at in range(300)]
    aliases = {at: [f"alias {at} {i}" for i in range(random.integers(0, 3))] for at in range(300)}
    hf.Index.build([{"text": "t"}], entities=names, aliases=aliases).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        for step in range(6):
            earlier, numbers = live.index, entity_numbers(live.index)
            before = dict(zip(earlier.entity_names, earlier.entity_aliases, strict=True))
            some = random.choice(sorted(before), changes, replace=False).tolist()
            with live.change() as change:
                for at, name in enumerate(some):
                    own = before[name]
                    if own and at % 3 == 0:  # as many characters as before
                        change.delete_aliases({name: [own[0]]})
                        change.add_aliases({name: [own[0][:-1] + "xyz"[step % 3]]})
                    elif at % 3 == 1 and 3 < at < 60:
                        change.delete_entities([name])
                    else:
                        change.add_aliases({name: [f"more {step} {at}"]})
                change.add_entities([f"new {step}"])
                change.add_aliases({f"new {step}": ["a", "b"]})
            index = live.refresh()
            later = entity_numbers(index)
            fresh = later.since(numbers)
            assert fresh is not None
            after = dict(zip(index.entity_names, index.entity_aliases, strict=True))
            changed = {name for name, own in after.items() if before.get(name) != own}
            assert {index.entity_names[later.get(number)] for number in fresh.tolist()} == changed
            assert len(changed) > changes // 3


def test_facts_of_states_that_have_nothing_in_common_are_all_new() -> None:
    facts = [{"head": "A", "relation": "r", "tail": "B", "passage": 0}]
    built = [hf.Index.build([{"text": "t"}], entities=["A", "B"], facts=facts) for _ in range(2)]
    assert kept_facts(*built).tolist() == [-1]
    assert kept_facts(hf.Index.build([{"text": "t"}]), built[0]).tolist() == []
