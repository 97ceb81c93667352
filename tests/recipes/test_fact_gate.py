"""The gate of PolicyRAG: its rules one by one, and a language model in their place."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hopfuse.errors import InputError
from hopfuse.recipes import Policy
from hopfuse.recipes.policy_rag import FoundFact, judge, stems
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused


@dataclass
class Known:
    match: str = "exact"
    specificity: float = 0.5


def fact(number: int, head: int, relation: str, tail: int, score: float = 0.5) -> FoundFact:
    return FoundFact(number, head, relation, tail, score, f"e{head} {relation} e{tail}")


def kept_of(query: str, facts: Sequence[FoundFact], known: dict[int, Known], policy: Policy | None = None) -> list[int]:
    (row,) = judge(policy or Policy(), None, [query], [facts], [known])
    return [verdict.fact for verdict in row if verdict.kept]


def test_direct_facts_come_before_contextual_ones() -> None:
    facts = [fact(0, 1, "located in", 7, 0.9), fact(1, 1, "directed by", 8, 0.1)]
    assert kept_of("who directed it", facts, {1: Known()}) == [1]


def test_a_fact_that_joins_two_candidates_is_direct_and_has_no_bridge() -> None:
    facts = [fact(0, 1, "directed by", 7, 0.9), fact(1, 1, "met", 2, 0.1)]
    (row,) = judge(Policy(), None, ["who directed it"], [facts], [{1: Known(), 2: Known()}])
    assert [(v.fact, v.reason) for v in row] == [(1, "direct, no bridge"), (0, "direct, one bridge")]


def test_specific_before_generic_then_exact_before_alias_then_score() -> None:
    known = {1: Known(specificity=0.5), 2: Known(specificity=0.1), 3: Known("alias", 0.5)}
    facts = [fact(0, 2, "aaaa", 7), fact(1, 3, "bbbb", 7), fact(2, 1, "cccc", 7, 0.1), fact(3, 1, "dddd", 8, 0.2)]
    one = Policy(facts=replace(Policy().facts, keep=4))
    (row,) = judge(one, None, [""], [facts], [known])
    assert [v.fact for v in row if v.kept] == [3, 1, 0]
    assert row[3].fact == 2
    assert row[3].reason == "adds nothing to the kept facts"


def test_near_duplicates_are_one() -> None:
    facts = [fact(0, 1, "was directed by", 2, 0.9), fact(1, 2, "directed by", 1, 0.8), fact(2, 1, "acted with", 2, 0.7)]
    (row,) = judge(Policy(), None, ["directed acted"], [facts], [{1: Known()}])
    assert [(v.fact, v.kept) for v in row] == [(0, True), (2, True), (1, False)]
    assert row[2].reason == "near-duplicate of fact 0"


def test_relations_too_short_for_bigrams_are_told_apart() -> None:
    facts = [fact(0, 1, "父", 2, 0.9), fact(1, 1, "母", 2, 0.8), fact(2, 2, "父", 1, 0.7)]
    (row,) = judge(Policy().without("specificity"), None, ["谁"], [facts], [{1: Known(), 2: Known()}])
    assert {v.fact: v.reason for v in row if not v.kept} == {
        1: "adds nothing to the kept facts",
        2: "near-duplicate of fact 0",
    }


def test_the_limit() -> None:
    facts = [fact(n, n, "aaaa", 50 + n) for n in range(6)]
    (row,) = judge(Policy(), None, ["x"], [facts], [{n: Known() for n in range(6)}])
    assert [v.kept for v in row] == [True] * 4 + [False] * 2
    assert row[5].reason == "over the limit of 4"


def test_without_the_gate_all_stay_in_their_order() -> None:
    facts = [fact(0, 1, "aaaa", 2), fact(1, 1, "aaaa", 2)]
    (row,) = judge(Policy().without("gate"), None, ["x"], [facts], [{}])
    assert [(v.fact, v.kept, v.reason) for v in row] == [(0, True, "no gate"), (1, True, "no gate")]


@given(
    facts=st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from(["born in", "directed", "directed by", "met"]), st.integers(0, 5)),
        max_size=8,
        unique=True,
    ),
    known=st.dictionaries(st.integers(0, 5), st.builds(Known, st.sampled_from(["exact", "alias"]), st.floats(0.1, 1))),
    keep=st.integers(1, 5),
    seed=st.randoms(),
)
def test_the_kept_facts_suffice_and_are_minimal_in_the_order_of_choice(facts, known, keep, seed) -> None:
    rows = [fact(n, *row, 0.1 + n / 10) for n, row in enumerate(facts)]
    policy = Policy(facts=replace(Policy().facts, keep=keep))
    query = "who directed it and was born"
    (row,) = judge(policy, None, [query], [rows], [known])
    shuffled = list(rows)
    seed.shuffle(shuffled)
    assert (
        judge(policy, None, [query], [shuffled], [known])[0] == row
    )  # an answer depends on the facts, not their order
    assert sorted(v.fact for v in row) == list(range(len(rows)))
    kept = [v for v in row if v.kept]
    assert len(kept) <= keep
    covered: set[Any] = set()

    def covers(f: Any) -> set[Any]:
        text = f"e{f.head} {f.relation} e{f.tail}"
        return {end for end in (f.head, f.tail) if end in known} | (stems(query) & stems(text))

    for verdict in kept:
        assert not covers(verdict) <= covered
        covered |= covers(verdict)
    if len(kept) < keep:
        assert all(covers(v) <= covered for v in row)


class Chooser:
    """Answers each prompt with what a table has for its question, through the check it is given."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers, self.prompts = answers, list[str]()

    def ask(self, prompts: Sequence[str], schema: Any, /, *, check: Callable[[Any], Any]) -> list[Any]:
        assert schema["properties"]["keep"]["maxItems"] == LLM.facts.keep
        self.prompts += prompts
        return [check(json.loads(json.dumps(next(a for q, a in self.answers.items() if q in p)))) for p in prompts]


LLM = Policy.from_toml("version = 1\n[facts]\ngate = 'llm'")


def test_a_model_chooses_among_numbered_facts() -> None:
    llm = Chooser({"who?": {"keep": [2]}, "where?": {"keep": []}})
    facts = [fact(4, 1, "met", 2), fact(9, 1, "saw", 3)]
    rows = judge(LLM, llm, ["who?", "where?", "when?"], [facts, facts[:1], []], [{}, {}, {}])
    assert [[(v.fact, v.kept, v.reason) for v in row] for row in rows] == [
        [(9, True, "kept by the model"), (4, False, "dropped by the model")],
        [(4, False, "dropped by the model")],
        [],
    ]
    assert len(llm.prompts) == 2  # a question without facts is not asked
    assert "1. e1 met e2\n2. e1 saw e3" in next(p for p in llm.prompts if "who?" in p)


@pytest.mark.parametrize("answer", [{"keep": [3]}, {"keep": [0]}, {"keep": [1, 1]}, {"keep": [1, 2, 1, 2, 1]}])
def test_invalid_answers_of_a_model_are_refused(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"keep"):
        judge(LLM, Chooser({"who?": answer}), ["who?"], [[fact(0, 1, "met", 2), fact(1, 1, "saw", 2)]], [{}])


def test_a_gate_by_model_needs_one() -> None:
    with refused(InputError, "missing", "llm", needed="llm"):
        judge(LLM, None, ["x"], [[]], [{}])


def test_inserted_text_is_not_substituted_again() -> None:
    prompt = '{question} {"keep": []} {other} {keep} {facts}'
    policy = replace(LLM, answers=replace(LLM.answers, filter_prompt=prompt))
    llm = Chooser({"{facts}": {"keep": []}})
    judge(policy, llm, ["{facts}"], [[fact(0, 1, "met", 2)]], [{}])
    assert llm.prompts == [f'{{facts}} {{"keep": []}} {{other}} {LLM.facts.keep} 1. e1 met e2']
