"""What a policy needs of an index and of the recipe's other arguments."""

from __future__ import annotations

from typing import Any

from ..errors import InputError
from ..index import Index
from ._policy import Policy


def check_needs(policy: Any, index: Index, encoder: Any, llm: Any) -> Policy:
    """The policy, or the default; refused where something that it reads is not there."""
    policy = Policy() if policy is None else policy
    if not isinstance(policy, Policy):
        raise InputError(f"policy is a {type(policy).__name__}; give Policy.from_toml(text)")
    if index.graph is None:
        raise InputError("PolicyRAG needs an index with a graph; build it with graph=, or from a memory")
    if index.corpus is None and reads_vectors(policy):
        raise InputError("the index has no vectors: set seeds.passages = 0 and switches.dense_fallback = false")
    if policy.seeds.source != "entities" and (encoder is None or index.entity_corpus is None):
        raise InputError(
            f"the policy's seeds.source is {policy.seeds.source!r}, which needs encoder= and an index with "
            "entity_vectors=; give them, or 'entities'"
        )
    if policy.facts.gate == "llm" and policy.switches.gate and llm is None:
        raise InputError("the policy's gate is 'llm'; give llm=, such as hopfuse.connect.ChatEndpoint(...), or 'rules'")
    return policy


def passage_mass(policy: Policy) -> float:
    """What passages share of a restart, for each unit of entities."""
    return policy.seeds.passages if policy.switches.passage_nodes else 0.0


def reads_vectors(policy: Policy) -> bool:
    """Whether anything reads which passages are near a question."""
    return passage_mass(policy) > 0 or policy.switches.dense_fallback


def check_depth(k: int, policy: Policy) -> None:
    """Refuse lists longer than what is re-ranked."""
    if k > policy.reranking.pool:
        raise InputError(
            f"k is {k}, and the policy ranks {policy.reranking.pool} passages; ask for fewer, or raise reranking.pool"
        )
