"""Which of a question's facts are kept: by rules, or by a language model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol

from ..errors import InputError
from ..types.label_sets import elements
from ._fact_search import Found
from ._policy import Policy

EXACT = ("exact", "given")


class Candidate(Protocol):
    """What the gate asks of an entity that may be a seed."""

    @property
    def match(self) -> str: ...
    @property
    def specificity(self) -> float: ...


class LanguageModel(Protocol):
    """What answers in JSON; :class:`hopfuse.connect.ChatEndpoint` is one."""

    def ask(self, prompts: Sequence[str], schema: Mapping[str, Any], /, *, check: Callable[[Any], Any]) -> list[Any]:
        """For each prompt ``check`` of the object that answers it; it raises ValueError where that will not do."""
        ...


def schema_of(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an object that has these properties and no others."""
    closed = {"required": list(properties), "additionalProperties": False}
    return {"type": "object", "properties": dict(properties), **closed}


class Verdict(NamedTuple):
    """A fact that the gate saw, and what it said."""

    fact: int
    head: int
    relation: str
    tail: int
    score: float
    kept: bool
    reason: str


def judge(
    policy: Policy,
    llm: LanguageModel | None,
    queries: Sequence[str],
    found: Sequence[Sequence[Found]],
    candidates: Sequence[Mapping[int, Candidate]],
) -> list[list[Verdict]]:
    """A verdict on each fact of each question: the kept ones first, in the order in which they were chosen."""
    if not policy.switches.gate:
        return [[_verdict(fact, True, "no gate") for fact in row] for row in found]
    if policy.facts.gate == "rules":
        return [_by_rules(policy, *each) for each in zip(queries, found, candidates, strict=True)]
    if llm is None:
        raise InputError("the policy's gate is 'llm'; give the recipe llm=, such as hopfuse.connect.ChatEndpoint(...)")
    return _by_model(policy, llm, queries, found)


def _by_rules(policy: Policy, query: str, found: Sequence[Found], candidates: Mapping[int, Candidate]) -> list[Verdict]:
    """Greedily, in the order of the rules: what is no duplicate and adds something, as long as there is room.

    A fact covers the candidates at its ends and the words of the question among its own. The set is sufficient when
    nothing that is left would add to what it covers.
    """
    asked = stems(query)
    kept, dropped, covered = list[Verdict](), list[Verdict](), set[Any]()
    for fact in sorted(found, key=lambda fact: _order(fact, asked, candidates)):
        same = next((one for one in kept if _is_duplicate(fact, one, policy.facts.duplicate)), None)
        covers = {end for end in (fact.head, fact.tail) if end in candidates} | (asked & stems(fact.text))
        if same is not None:
            dropped.append(_verdict(fact, False, f"near-duplicate of fact {same.fact}"))
        elif covers <= covered:
            dropped.append(_verdict(fact, False, "adds nothing to the kept facts"))
        elif len(kept) == policy.facts.keep:
            dropped.append(_verdict(fact, False, f"over the limit of {policy.facts.keep}"))
        else:
            kept.append(_verdict(fact, True, _why(fact, asked, candidates)))
            covered |= covers
    return kept + dropped


def _order(fact: Found, asked: frozenset[str], candidates: Mapping[int, Candidate]) -> tuple[Any, ...]:
    """Direct before contextual, few bridges, specific before generic, exact names before aliases, then the score."""
    ends = {fact.head, fact.tail}
    known = [candidates[end] for end in ends if end in candidates]
    specificity = sum(one.specificity for one in known)
    exact = sum(one.match in EXACT for one in known)
    return not _is_direct(fact, asked, candidates), len(ends) - len(known), -specificity, -exact, -fact.score, fact.fact


def _is_direct(fact: Found, asked: frozenset[str], candidates: Mapping[int, Candidate]) -> bool:
    """The question has a word of its relation, or both of its ends."""
    return bool(asked & stems(fact.relation)) or (fact.head in candidates and fact.tail in candidates)


def _why(fact: Found, asked: frozenset[str], candidates: Mapping[int, Candidate]) -> str:
    bridges = len({fact.head, fact.tail} - set(candidates))
    kind = "direct" if _is_direct(fact, asked, candidates) else "contextual"
    return f"{kind}, {'no bridge' if bridges == 0 else 'one bridge' if bridges == 1 else 'two bridges'}"


def _is_duplicate(fact: Found, kept: Verdict, bound: float) -> bool:
    """The same two ends, and relations whose bigrams' Dice coefficient is at least so large."""
    if {fact.head, fact.tail} != {kept.head, kept.tail}:
        return False
    a, b = (set(elements(relation, "bigrams", repeats=False)) for relation in (fact.relation, kept.relation))
    if not a or not b:
        return fact.relation.casefold() == kept.relation.casefold()
    return 2 * len(a & b) >= bound * (len(a) + len(b))


@lru_cache(maxsize=1 << 14)
def stems(text: str) -> frozenset[str]:
    """Words of four characters and more by their first five, lower case; numbers whole."""
    words = re.findall(r"\w+", text.lower())
    return frozenset(word if word.isdigit() else word[:5] for word in words if len(word) > 3 or word.isdigit())


def _by_model(
    policy: Policy, llm: LanguageModel, queries: Sequence[str], found: Sequence[Sequence[Found]]
) -> list[list[Verdict]]:
    """One call for all questions with as many facts, whose answers are checked alike."""
    chosen: dict[int, list[int]] = {}
    for size in sorted({len(row) for row in found} - {0}):
        asked = [b for b, row in enumerate(found) if len(row) == size]
        prompts = [_prompt(policy, queries[b], found[b]) for b in asked]
        schema = schema_of(keep={"type": "array", "items": {"type": "integer"}, "maxItems": policy.facts.keep})
        answers = llm.ask(prompts, schema, check=partial(_chosen, size, policy.facts.keep))
        chosen |= zip(asked, answers, strict=True)
    return [_sorted_out(row, chosen.get(b, [])) for b, row in enumerate(found)]


def _chosen(size: int, keep: int, answer: Mapping[str, Any]) -> list[int]:
    """Places of the facts whose numbers, from 1 on, are in ``keep``."""
    numbers = answer["keep"]
    if not all(1 <= number <= size for number in numbers):
        raise ValueError(f"keep is {numbers}; facts have the numbers 1 .. {size}")
    if len(set(numbers)) != len(numbers) or len(numbers) > keep:
        raise ValueError(f"keep has {len(numbers)} numbers; give at most {keep}, each once")
    return [number - 1 for number in numbers]


def _sorted_out(row: Sequence[Found], chosen: Sequence[int]) -> list[Verdict]:
    kept = [_verdict(row[at], True, "kept by the model") for at in chosen]
    return kept + [_verdict(fact, False, "dropped by the model") for at, fact in enumerate(row) if at not in chosen]


def _prompt(policy: Policy, query: str, row: Sequence[Found]) -> str:
    facts = "\n".join(f"{at + 1}. {fact.text}" for at, fact in enumerate(row))
    return fill(policy.answers.filter_prompt, question=query, facts=facts, keep=str(policy.facts.keep))


def fill(prompt: str, **parts: str) -> str:
    """The prompt with its places filled in, in one pass: what is filled in is not read again."""
    return re.sub(r"\{(\w+)\}", lambda place: parts.get(place[1], place[0]), prompt).strip()


def _verdict(fact: Found, kept: bool, reason: str) -> Verdict:
    return Verdict(fact.fact, fact.head, fact.relation, fact.tail, fact.score, kept, reason)
