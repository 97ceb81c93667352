"""Facts to choose from, and the gate, which selects those of a question by rules or by a language model."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..._validation import check_length
from ...types import Corpus, Facts
from ...types.label_sets import elements
from .._parts.facts import QueryFacts, facts_of
from .config import Policy
from .language_model import GATE, LanguageModel, chosen_facts, model_needed

_ScoredFacts = list[tuple[int, float]]


class FoundFact(NamedTuple):
    """A fact and its similarity to the question."""

    fact: int
    head: int
    relation: str
    tail: int
    score: float
    text: str


def facts_around(facts: Facts, entities: Sequence[Collection[int]]) -> QueryFacts:
    """Return the facts with one of a question's entities at an end: by question, ascending, each once."""
    query = np.repeat(np.arange(len(entities)), [len(row) for row in entities])
    found = facts_of(facts, query, np.array([e for row in entities for e in row], np.int64))
    _, first = np.unique(found.query * len(facts) + found.fact, return_index=True)
    return found.at(first)


def best_facts(around: QueryFacts, scores: NDArray[np.float32], batch: int, k: int) -> list[_ScoredFacts]:
    """Return the k best facts of each question, best first; the lower number is first where scores are equal."""
    rows = []
    for a, b in pairwise(around.indptr(batch).tolist()):
        order = a + np.argsort(-scores[a:b], kind="stable")[:k]
        rows.append(list(zip(around.fact[order].tolist(), scores[order].tolist(), strict=True)))
    return rows


def found_facts(facts: Facts, names: Sequence[str], scored: _ScoredFacts) -> list[FoundFact]:
    """Return the facts with scores above 0, with their names."""
    found = []
    for fact, score in scored:
        if score > 0:
            head, kind, tail = facts.rows[fact].tolist()
            relation = facts.relations[kind]
            found.append(FoundFact(fact, head, relation, tail, score, f"{names[head]} {relation} {names[tail]}"))
    return found


def fact_corpus(vectors: Any, num_facts: int) -> Corpus | None:
    """Return the vectors of all facts, compared by cosine."""
    if vectors is None:
        return None
    corpus = vectors if isinstance(vectors, Corpus) else Corpus.from_array(vectors, metric="cosine")
    check_length(len(corpus), "fact_vectors", num_facts, "fact")
    return corpus.with_metric("cosine")


EXACT = ("exact", "given")


class Candidate(Protocol):
    """A candidate seed, as the gate reads it."""

    @property
    def match(self) -> str: ...
    @property
    def specificity(self) -> float: ...


class GateDecision(NamedTuple):
    """The gate's decision on a fact."""

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
    found: Sequence[Sequence[FoundFact]],
    candidates: Sequence[Mapping[int, Candidate]],
) -> list[list[GateDecision]]:
    """Return a verdict on each fact of each question: the kept facts first, in the order of selection."""
    if not policy.switches.gate:
        return [[_verdict(fact, True, "no gate") for fact in row] for row in found]
    if policy.facts.gate == "rules":
        return [_by_rules(policy, *each) for each in zip(queries, found, candidates, strict=True)]
    if llm is None:
        raise model_needed(GATE)
    return _by_model(policy, llm, queries, found)


def _by_rules(
    policy: Policy, query: str, found: Sequence[FoundFact], candidates: Mapping[int, Candidate]
) -> list[GateDecision]:
    """Keep facts greedily, in the order of the rules, if they are no duplicates and cover something new.

    A fact covers the candidates at its ends, and the words of the question that it contains.
    """
    words = stems(query)
    kept, dropped, covered = list[GateDecision](), list[GateDecision](), set[Any]()
    for fact in sorted(found, key=lambda fact: _order(fact, words, candidates)):
        same = next((one for one in kept if _is_duplicate(fact, one, policy.facts.duplicate)), None)
        covers = {end for end in (fact.head, fact.tail) if end in candidates} | (words & stems(fact.text))
        if same is not None:
            dropped.append(_verdict(fact, False, f"near-duplicate of fact {same.fact}"))
        elif covers <= covered:
            dropped.append(_verdict(fact, False, "adds nothing to the kept facts"))
        elif len(kept) == policy.facts.keep:
            dropped.append(_verdict(fact, False, f"over the limit of {policy.facts.keep}"))
        else:
            kept.append(_verdict(fact, True, _why(fact, words, candidates)))
            covered |= covers
    return kept + dropped


def _order(fact: FoundFact, words: frozenset[str], candidates: Mapping[int, Candidate]) -> tuple[Any, ...]:
    """Return the sort key: direct facts first, then few bridges, specific ends, exact names, high scores."""
    ends = {fact.head, fact.tail}
    known = [candidates[end] for end in ends if end in candidates]
    specificity = sum(one.specificity for one in known)
    exact = sum(one.match in EXACT for one in known)
    return not _is_direct(fact, words, candidates), len(ends) - len(known), -specificity, -exact, -fact.score, fact.fact


def _is_direct(fact: FoundFact, words: frozenset[str], candidates: Mapping[int, Candidate]) -> bool:
    """Return whether the question contains a word of the fact's relation, or both ends are candidates."""
    return bool(words & stems(fact.relation)) or (fact.head in candidates and fact.tail in candidates)


def _why(fact: FoundFact, words: frozenset[str], candidates: Mapping[int, Candidate]) -> str:
    bridges = len({fact.head, fact.tail} - set(candidates))
    kind = "direct" if _is_direct(fact, words, candidates) else "contextual"
    return f"{kind}, {'no bridge' if bridges == 0 else 'one bridge' if bridges == 1 else 'two bridges'}"


def _is_duplicate(fact: FoundFact, kept: GateDecision, bound: float) -> bool:
    """Return whether two facts have the same ends, and relations whose Dice coefficient is at least ``bound``."""
    if {fact.head, fact.tail} != {kept.head, kept.tail}:
        return False
    a, b = (set(elements(relation, "bigrams", repeats=False)) for relation in (fact.relation, kept.relation))
    if not a or not b:
        return fact.relation.casefold() == kept.relation.casefold()
    return 2 * len(a & b) >= bound * (len(a) + len(b))


@lru_cache(maxsize=1 << 14)
def stems(text: str) -> frozenset[str]:
    """Return the first five characters of each word of four or more, in lower case, and all numbers in full."""
    words = re.findall(r"\w+", text.lower())
    return frozenset(word if word.isdigit() else word[:5] for word in words if len(word) > 3 or word.isdigit())


def _by_model(
    policy: Policy, llm: LanguageModel, queries: Sequence[str], found: Sequence[Sequence[FoundFact]]
) -> list[list[GateDecision]]:
    texts = [[fact.text for fact in row] for row in found]
    chosen = chosen_facts(llm, policy.answers.filter_prompt, policy.facts.keep, queries, texts)
    rows = []
    for row, places in zip(found, chosen, strict=True):
        kept = [_verdict(row[at], True, "kept by the model") for at in places]
        dropped = [_verdict(fact, False, "dropped by the model") for at, fact in enumerate(row) if at not in places]
        rows.append(kept + dropped)
    return rows


def _verdict(fact: FoundFact, kept: bool, reason: str) -> GateDecision:
    return GateDecision(fact.fact, fact.head, fact.relation, fact.tail, fact.score, kept, reason)
