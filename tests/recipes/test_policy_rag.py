"""PolicyRAG against its definition, written down again over the oracle; ablations, devices, traces, refusals."""

from __future__ import annotations

import json
import math
import pickle
import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise, assert_hits_wellformed
from hopfuse import reference
from hopfuse.errors import InputError
from hopfuse.extract import Gazetteer
from hopfuse.recipes import Policy, PolicyRAG
from hopfuse.recipes.policy_rag import FoundFact, judge
from hypothesis import given
from hypothesis import strategies as st
from recipes.policy_world import PASSAGES, PolicyWorld, WordVectors
from refusals import refused

SWITCHES = [
    "specificity",
    "gate",
    "synonym_edges",
    "relation_edges",
    "passage_nodes",
    "normalisation",
    "reranking",
    "dense_fallback",
]
POLICIES = {
    "entities alone": "version = 1\n[walk]\ncontext = 0\nrelation = 0.7\nsynonym = 0.3\n[seeds]\npassages = 0"
    "\n[projection]\nsource = 'entities'",
    "by the question": "version = 1\n[seeds]\nsource = 'question'\nnearest = 3\nmost = 2",
    "both": "version = 1\n[seeds]\nsource = 'both'\nlexical = 0.3\nembedding = 2.0\n[facts]\ncandidates = 12\nkeep = 2",
    "joint": "version = 1\n[walk]\nedge_type_norm = 'joint'\ndamping = 0.85\n[families]\nbirth = 3.0\ncreation = 0.0",
    "rows": "version = 1\n[projection]\nsource = 'entities'\nrow_normalised = true\nbeta = 1.0\ngamma = 1.0"
    "\n[reranking]\nhub_share = 0.1\nhub = 0.5",
    "all facts": "version = 1\n[facts]\nscope = 'all'\n[seeds]\npassages = 1.0\npassage_list = 4",
    "paper": Policy.paper().to_toml(),
}


NO_VECTORS = "version = 1\n[seeds]\npassages = 0\n[switches]\ndense_fallback = false"

world_of = lru_cache(PolicyWorld)


class Oracle:
    """The recipe's docstring and policy, question by question in float64; the gate is the recipe's own."""

    def __init__(self, world: PolicyWorld, policy: Policy, with_vectors: bool) -> None:
        self.world, self.policy, self.with_vectors = world, policy, with_vectors
        self.index, self.memory = world.index, world.memory
        self.p, self.e = self.index.num_passages, self.index.num_entities
        self.df = self.memory.document_frequency
        self.held = [sorted({int(e) for q, e in self.memory.mentions if q == p}) for p in range(self.p)]

    def candidate(self, question: str, asked: np.ndarray, entity: int, match: str) -> dict[str, Any]:
        rules, name = self.policy.seeds, self.memory.entities[entity]
        lexical = (
            1.0 if match in ("exact", "given") else float(reference.dice_scores([question], [name], [[0]], [0, 1])[0])
        )
        vector = self.world.encoder.encode_passages([name])[0].astype(np.float64)
        cosine = float(asked @ vector / math.sqrt((asked @ asked) * (vector @ vector))) if rules.embedding else 0.0
        spec = 1.0 / (1.0 + self.df[entity]) if self.policy.switches.specificity else 1.0
        return {
            "match": match,
            "specificity": spec,
            "weight": (rules.lexical * max(lexical, 0) + rules.embedding * max(cosine, 0)) * spec,
            "cosine": cosine,
        }

    def answer(self, b: int) -> tuple[dict[int, float], list[int], dict[int, float]]:
        """Seeds, kept facts and the score of each passage of the pool."""
        world, policy = self.world, self.policy
        question = world.questions[b]
        asked = world.encoder.encode_queries([question])[0].astype(np.float64)
        names = {name.casefold(): e for e, name in enumerate(self.memory.entities)}
        found: dict[int, dict[str, Any]] = {}
        if policy.seeds.source != "question":
            for mention in world.mentions[b]:
                entity = names[mention.casefold()] if isinstance(mention, str) else mention
                match = "exact" if isinstance(mention, str) else "given"
                found.setdefault(entity, self.candidate(question, asked, entity, match))
        if policy.seeds.source != "entities":
            every = {e: self.candidate(question, asked, e, "question") for e in range(self.e)}
            for e in sorted(every, key=lambda e: (-every[e]["cosine"], e))[: policy.seeds.nearest]:
                found.setdefault(e, every[e])
        facts = self.facts(question, asked, found)
        known = {e: _Known(c["match"], c["specificity"]) for e, c in found.items()}
        kept = [v for v in judge(policy, None, [question], [facts], [known])[0] if v.kept]
        for end in {end for v in kept for end in (v.head, v.tail)}:
            found.setdefault(end, self.candidate(question, asked, end, "fact"))
        scores = {end: [v.score for v in kept if end in (v.head, v.tail)] for end in found}
        order = sorted(
            (e for e in found if found[e]["weight"] > 0),
            key=lambda e: (-(np.mean(scores[e]) if scores[e] else -1.0), -found[e]["weight"], e),
        )[: policy.seeds.most]
        total = sum(found[e]["weight"] for e in order)
        seeds = {e: found[e]["weight"] / total for e in order}
        return seeds, [v.fact for v in kept], self.scores(question, asked, seeds, kept) if seeds else {}

    def facts(self, question: str, asked: np.ndarray, found: dict[int, Any]) -> list[FoundFact]:
        rules, scored = self.policy.facts, []
        for number, fact in enumerate(self.memory.facts):
            if rules.scope == "seeds" and fact.head not in found and fact.tail not in found:
                continue
            labels = [self.memory.entities[fact.head], fact.relation, self.memory.entities[fact.tail]]
            score = float(reference.dice_scores([question], labels, [[0, 1, 2]], [0, 1])[0])
            if self.with_vectors:
                vector = self.world.encoder.encode_passages([" ".join(labels)])[0].astype(np.float64)
                score = float(asked @ vector / math.sqrt((asked @ asked) * (vector @ vector)))
            if score <= 0:
                continue
            scored.append(FoundFact(number, fact.head, fact.relation, fact.tail, score, " ".join(labels)))
        return sorted(scored, key=lambda f: (-f.score, f.fact))[: rules.candidates]

    def scores(self, question: str, asked: np.ndarray, seeds: dict[int, float], kept: list[Any]) -> dict[int, float]:
        v = self.walk(asked, seeds)
        projected = self.project(v)
        pool = sorted((p for p in range(self.p) if projected[p] > 0), key=lambda p: (-projected[p], p))
        pool = pool[: self.policy.reranking.pool]
        rules, on = self.policy.reranking, self.policy.switches.reranking
        words = self.words(" ".join([question, *(self.world.fact_texts[f.fact] for f in kept)]))
        total = {}
        for p in pool:
            title = self.words(self.memory.titles[p])
            phi_title = len(title & words) / len(title) if title else 0.0
            phi_cov = sum(mass for e, mass in seeds.items() if e in self.held[p])
            weight = sum(f.score for f in kept)
            stated = sum(f.score for f in kept if p in self.memory.facts[f.fact].passages)
            phi_path = stated / weight if weight > 0 else 0.0
            hubs = [self.df[e] > rules.hub_share * self.p for e in self.held[p]]
            terms = (
                rules.title * phi_title + rules.coverage * phi_cov + rules.path * phi_path - rules.hub * np.mean(hubs)
            )
            total[p] = projected[p] / projected[pool[0]] + (terms if on else 0.0)
        return total

    def walk(self, asked: np.ndarray, seeds: dict[int, float]) -> np.ndarray:
        policy, on = self.policy, self.policy.switches
        start = np.zeros(self.p + self.e)
        for e, mass in seeds.items():
            start[self.p + e] += mass
        if policy.seeds.passages > 0 and on.passage_nodes:
            near = reference.dense_topk(
                asked[None], self.index.vectors, policy.seeds.passage_list, metric="cosine"
            ).row(0)
            low, high = near[-1][1], near[0][1]
            shares = {p: (s - low) / (high - low) for p, s in near}
            for p, share in shares.items():
                start[p] += policy.seeds.passages * share / sum(shares.values())
        eta = [
            policy.walk.relation if on.relation_edges else 0.0,
            policy.walk.synonym if on.synonym_edges else 0.0,
            policy.walk.context if on.passage_nodes else 0.0,
        ]
        src, dst, weight, kind = self.index.graph.edges()
        names = self.index.graph.edge_type_names
        new = [2 if names[k] == "context" else 1 if names[k] == "synonym" else 0 for k in kind]
        factor = [policy.families.get(names[k], 1.0) for k in kind]
        graph = hf.Graph.from_edges(
            src, dst, weight * factor, num_nodes=self.p + self.e, edge_type=new, edge_type_names=["r", "s", "c"]
        )
        options = {"edge_type_weights": eta, "edge_type_norm": policy.walk.edge_type_norm}
        return reference.ppr(graph, start[None], damping=policy.walk.damping, **options)[0]

    def project(self, v: np.ndarray) -> np.ndarray:
        policy, on = self.policy, self.policy.switches
        lengths = np.array([max(1, len(text.split())) for text in self.memory.texts])
        common = np.array([np.mean([1 + self.df[e] for e in held]) for held in self.held])
        u = np.zeros(self.p)
        for p, held in enumerate(self.held):
            nodes = [self.p + e for e in held] + ([p] if policy.walk.context > 0 and on.passage_nodes else [])
            if policy.projection.source == "passages" and on.passage_nodes:
                nodes = [p]
            u[p] = sum(v[node] for node in nodes) / (len(nodes) if policy.projection.row_normalised else 1)
        if not on.normalisation:
            return u
        beta, gamma = policy.projection.beta, policy.projection.gamma
        return u / ((lengths / lengths.mean()) ** beta * (common / common.mean()) ** gamma)

    @staticmethod
    def words(text: str) -> set[str]:
        return set(re.findall(r"\w+", text.casefold()))


class _Known:
    def __init__(self, match: str, specificity: float) -> None:
        self.match, self.specificity = match, specificity


def recipe_of(world: PolicyWorld, policy: Policy, with_vectors: bool = True) -> PolicyRAG:
    vectors = world.encoder.encode_passages(world.fact_texts) if with_vectors else None
    return PolicyRAG(world.index, policy, encoder=world.encoder, fact_vectors=vectors)


def assert_is_the_oracles(world: PolicyWorld, policy: Policy, with_vectors: bool) -> None:
    found = world.ask(recipe_of(world, policy, with_vectors), k=12)
    assert_hits_wellformed(found.hits)
    oracle = Oracle(world, policy, with_vectors)
    for b in range(len(world.questions)):
        seeds, kept, scores = oracle.answer(b)
        assert found.seeds[b] == pytest.approx(seeds, abs=1e-6)
        assert [v.fact for v in found.facts[b] if v.kept] == kept
        if not seeds:
            continue
        best = sorted(scores, key=lambda p: (-scores[p], p))[:12]
        row = found.hits.row(b)
        assert [score for _, score in row] == pytest.approx([scores[p] for p in best], abs=1e-5)
        for (passage, _), expected in zip(row, best, strict=True):
            assert passage == expected or abs(scores[passage] - scores[expected]) < 1e-5


@pytest.mark.parametrize("seed", range(3))
def test_it_equals_its_composition_over_the_oracle(variant: str, seed: int) -> None:
    assert_is_the_oracles(PolicyWorld(seed), Policy(), with_vectors=seed != 1)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_equals_the_oracle(name: str) -> None:
    assert_is_the_oracles(PolicyWorld(7), Policy.from_toml(POLICIES[name]), with_vectors=True)
    if name != "all facts":  # which are searched by vectors
        assert_is_the_oracles(PolicyWorld(8), Policy.from_toml(POLICIES[name]), with_vectors=False)


@pytest.mark.parametrize("switch", SWITCHES)
def test_every_ablation_equals_the_oracle(switch: str) -> None:
    for policy in (Policy(), Policy.paper()):
        assert_is_the_oracles(world_of(5), policy.without(switch), True)


def test_every_switch_changes_something() -> None:
    world = PolicyWorld(5)
    policy = replace(Policy.paper(), facts=replace(Policy().facts, candidates=12))
    whole = world.ask(recipe_of(world, policy), k=12)
    for switch in SWITCHES:
        other = world.ask(recipe_of(world, policy.without(switch)), k=12)
        assert not np.array_equal(other.hits.scores, whole.hits.scores), switch


@pytest.mark.emulator
def test_the_cuda_kernels_give_the_same_bits(emulated: Any) -> None:
    recipe, world = recipe_of(PolicyWorld(3), Policy()), PolicyWorld(3)
    expected = world.ask(recipe, k=9, trace=True)
    runtime = emulated()
    runtime.launches.clear()
    result = world.ask(recipe, k=9, trace=True)
    assert {"ppr", "project"} <= {kernel.split("_")[0] for kernel, _, _ in runtime.launches}
    for name, right in {"hits": expected.hits, **expected.lists}.items():
        hits = result.hits if name == "hits" else result.lists[name]
        for part, array in vars(right).items():
            assert_bitwise(getattr(hits, part), array, f"{part} of {name}")
    assert result.seeds == expected.seeds
    assert result.facts == expected.facts
    assert result.traces == expected.traces


def test_a_question_is_answered_alone_as_in_its_batch() -> None:
    world = PolicyWorld(4)
    recipe = recipe_of(world, Policy())
    whole = world.ask(recipe, k=8)
    for b, question in enumerate(world.questions):
        alone = recipe.search([question], entities=[world.mentions[b]], k=8)
        assert_bitwise(alone.hits.ids[0], whole.hits.ids[b])
        assert_bitwise(alone.hits.scores[0], whole.hits.scores[b])


@pytest.mark.parametrize("policy", [Policy(), Policy.paper()], ids=["default", "paper"])
def test_a_trace_says_where_each_score_comes_from(policy: Policy) -> None:
    world, passages = world_of(4), policy.seeds.passages / (1 + policy.seeds.passages)
    recipe = recipe_of(world, policy)
    found = world.ask(recipe, k=8, trace=True)
    assert json.loads(json.dumps(found.traces)) == found.traces
    for b, trace in enumerate(found.traces):
        shares = {seed["entity"]: seed["share"] for seed in trace["seeds"] if seed["share"] > 0}
        assert shares == pytest.approx(found.seeds[b])
        assert [fact["fact"] for fact in trace["facts"]] == [verdict.fact for verdict in found.facts[b]]
        assert [(hit["passage"], hit["score"]) for hit in trace["hits"]] == found.hits.row(b)
        if not found.seeds[b]:
            assert trace["ranked_by"] == "vectors"
            continue
        assert sum(seed["mass"] for seed in trace["passage_seeds"]) == pytest.approx(passages)
        pool = dict(found.lists["pool"].row(b))
        for hit in trace["hits"]:
            assert hit["projected"] == pool[hit["passage"]]
            assert sum(part["score"] for part in hit["attribution"]) == pytest.approx(hit["projected"], rel=1e-5)
            assert sum(hit["terms"].values()) == pytest.approx(hit["score"], abs=1e-6)
            names = {("entity", entity) for entity in shares}
            names |= {(seed["kind"], seed["number"]) for seed in trace["passage_seeds"]}
            assert 1 <= len(hit["paths"]) <= 3
            for path in hit["paths"]:
                assert (path[0]["kind"], path[0]["number"]) in names
                assert path[-1]["kind"] == "entity" or path[-1]["number"] == hit["passage"]


@pytest.mark.parametrize(("norm", "source"), [("per_type", "entities"), ("joint", "entities"), ("joint", "passages")])
def test_an_attribution_is_the_walk_of_one_seed_alone(norm: str, source: str) -> None:
    """By the dense solution of y = d P'y + (1 - d) s for each seed, without its normalisation."""
    world = PolicyWorld(9)
    policy = Policy.paper().without("normalisation")
    walk, projection = replace(policy.walk, edge_type_norm=norm), replace(policy.projection, source=source)
    policy = replace(policy, walk=walk, projection=projection)
    found = world.ask(recipe_of(world, policy), k=5, trace=True)
    oracle, d = Oracle(world, policy, True), policy.walk.damping
    p = transitions(oracle, norm)
    for b, trace in enumerate(found.traces):
        starts = {world.index.num_passages + e: share for e, share in found.seeds[b].items()}
        mass = {node: share / 3 for node, share in starts.items()}
        mass |= {seed["number"]: seed["mass"] for seed in trace["passage_seeds"]}
        y = {n: np.linalg.solve(np.eye(len(p)) - d * p.T, (1 - d) * m * np.eye(len(p))[n]) for n, m in mass.items()}
        norm_of_all = sum(map(np.sum, y.values()))
        for hit in trace["hits"] if starts else []:
            held = oracle.held[hit["passage"]] if source == "entities" else []
            nodes = [hit["passage"], *(world.index.num_passages + e for e in held)]
            for part in hit["attribution"]:
                node = part["number"] + (world.index.num_passages if part["kind"] == "entity" else 0)
                assert part["score"] == pytest.approx(y[node][nodes].sum() / norm_of_all, rel=1e-4, abs=1e-7)


def transitions(oracle: Oracle, norm: str) -> np.ndarray:
    """P of the policy's weights, dense."""
    n = oracle.p + oracle.e
    src, dst, weight, kind = oracle.index.graph.edges()
    names = oracle.index.graph.edge_type_names
    w = np.zeros((3, n, n))
    for a, b, x, k in zip(src, dst, weight, kind, strict=True):
        t = 2 if names[k] == "context" else 1 if names[k] == "synonym" else 0
        w[t, a, b] += x
        w[t, b, a] += x if a != b else 0.0
    eta = np.array(oracle.policy.edge_type_weights)
    if norm == "joint":
        whole = np.tensordot(eta, w, 1)
        return whole / np.maximum(whole.sum(1, keepdims=True), 1e-300)
    return np.tensordot(eta, w / np.maximum(w.sum(2, keepdims=True), 1e-300), 1)


def test_edge_weights_of_a_question() -> None:
    world = PolicyWorld(4)
    recipe = recipe_of(world, Policy.paper())
    eta = np.tile([0.6, 0.2, 0.2], (6, 1))
    assert_bitwise(world.ask(recipe, edge_weights=eta).hits.scores, world.ask(recipe).hits.scores)
    eta[3] = [0.9, 0.0, 0.1]
    changed, alone = world.ask(recipe, edge_weights=eta), world.ask(recipe, edge_weights=[0.9, 0.0, 0.1])
    assert_bitwise(changed.hits.scores[3], alone.hits.scores[3])
    assert_bitwise(changed.hits.scores[:3], world.ask(recipe).hits.scores[:3])
    for wrong, field in (
        ([-0.1, 0.2, 0.2], "edge_weights[5, 0]"),
        ([0.5, 0.5, 0.5], "edge_weights"),
        ([np.nan, 0.2, 0.2], "edge_weights[5, 0]"),
    ):
        with refused(InputError, "range", field):
            world.ask(recipe, edge_weights=np.vstack([eta[:5], [wrong]]))
    without = recipe_of(world, Policy.paper().without("synonym_edges"))
    with refused(InputError, "conflict", "edge_weights", type="synonym"):
        world.ask(without, edge_weights=[0.5, 0.1, 0.1])
    with refused(InputError, "shape", "edge_weights", given=(2,)):
        world.ask(recipe, edge_weights=[0.5, 0.5])


def test_an_alias_of_many_entities_is_not_a_seed() -> None:
    index = hf.Index.build(
        passages=[{"text": "one"}, {"text": "two"}],
        entities=["Ann Lee", "Bo Lee", "Cy Lee"],
        aliases={0: ["Lee"], 1: ["Lee"], 2: ["Lee", "Cyrus"]},
        graph=[{"src": 0, "dst": 2}, {"src": 0, "dst": 3}, {"src": 1, "dst": 4}],
    )
    text = "version = 1\n[seeds]\npassages = 0\nambiguous = 2\n[switches]\ndense_fallback = false"
    recipe = PolicyRAG(index, Policy.from_toml(text))
    found = recipe.search(["who is Lee?", "who is Cyrus?"], entities=[["Lee"], ["Cyrus"]], k=2, trace=True)
    assert found.seeds == [{}, {2: 1.0}]
    assert [seed["alias_ok"] for seed in found.traces[0]["seeds"]] == [False] * 3
    assert found.hits.counts.tolist() == [0, 1]


def test_the_strongest_match_counts_and_others_change_nothing() -> None:
    """Four bear the alias Lee: too many, whoever else is named, and whoever finds it."""
    index = hf.Index.build(
        passages=[{"text": "one"}, {"text": "two"}],
        entities=["Ann Lee", "Bo Lee", "Cy Lee", "Di Lee"],
        aliases={key: ["Lee"] for key in range(4)},
        graph=[{"src": e % 2, "dst": 2 + e} for e in range(4)],
    )
    text = "version = 1\n[seeds]\npassages = 0\n[switches]\ndense_fallback = false"
    recipe = PolicyRAG(
        index, Policy.from_toml(text), matcher=Gazetteer(index.entity_names, {key: ["Lee"] for key in range(4)})
    )
    mentions = [["Lee"], ["Ann Lee"], ["Ann Lee", "Lee"], ["Lee", "Ann Lee"]]
    found = recipe.search(["who?"] * 4, entities=mentions, k=2)
    assert found.seeds == [{}, {0: 1.0}, {0: 1.0}, {0: 1.0}]
    matched = recipe.search(["who is Lee?", "who is Ann Lee?"], k=2, trace=True)
    assert matched.seeds == [{}, {0: 1.0}]
    assert [seed["match"] for seed in matched.traces[1]["seeds"]] == ["exact"]
    assert {seed["match"] for seed in matched.traces[0]["seeds"]} == {"alias"}


def test_a_seed_that_no_passage_mentions_leaves_the_ranking_to_the_vectors() -> None:
    index = hf.Index.build(
        passages=[{"text": "one"}, {"text": "two"}],
        vectors=np.eye(2),
        entities=["Ada", "Orphan", "Bob"],
        graph=[{"src": 0, "dst": 2}, {"src": 1, "dst": 4}],
    )
    text = "version = 1\n[seeds]\npassages = 0\n[walk]\ndamping = 0\n[projection]\nsource = 'entities'"
    recipe = PolicyRAG(index, Policy.from_toml(text))
    found = recipe.search(["Orphan?", "Ada?"], vectors=np.eye(2), entities=[["Orphan"], ["Ada"]], k=2, trace=True)
    assert found.hits.ids[0].tolist() == [0, 1]
    assert [trace["ranked_by"] for trace in found.traces] == ["vectors", "policy"]
    assert found.traces[1]["hits"][0]["paths"][0][-1]["name"] == "Ada"  # without damping no walk leaves its seed


def test_facts_have_vectors_where_entities_have_none() -> None:
    world = PolicyWorld(1)
    vectors = world.encoder.encode_passages(world.memory.texts)
    index = world.memory.index(vectors=vectors, metric="cosine")
    recipe = PolicyRAG(index, encoder=world.encoder, fact_vectors=world.encoder.encode_passages(world.fact_texts))
    assert any(verdict.kept for row in world.ask(recipe, k=3).facts for verdict in row)


def test_questions_are_encoded_once_and_only_for_what_reads_them() -> None:
    world = PolicyWorld(1)
    encoded = []

    class Counting(WordVectors):
        def encode_queries(self, texts: Any) -> Any:
            encoded.append(list(texts))
            return super().encode_queries(texts)

    world.ask(PolicyRAG(world.index, encoder=Counting()), k=3)
    assert encoded.count(world.questions) == 1
    text = "version = 1\n[seeds]\npassages = 0\n[switches]\ndense_fallback = false"
    found = PolicyRAG(world.index, Policy.from_toml(text)).search(world.questions, entities=world.mentions, k=3)
    assert found.hits.counts.any()  # without any vectors


def test_candidates_by_the_question_need_no_mentions() -> None:
    world = PolicyWorld(1)
    policy = Policy.from_toml(POLICIES["by the question"])
    found = recipe_of(world, policy).search(world.questions, k=3)
    assert all(found.seeds)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"config": "policy.toml"}, ("type", "config")),
        ({"config": Policy.from_toml("version = 1\n[facts]\ngate = 'llm'")}, ("missing", "llm")),
        ({"config": Policy.from_toml("version = 1\n[seeds]\nsource = 'both'")}, ("missing", "encoder")),
        ({"config": Policy(families={"context": 2.0})}, ("unknown", "families")),
        ({"config": Policy(families={"synonym": 2.0})}, ("unknown", "families")),
        ({"fact_vectors": np.ones((3, 16))}, ("length", "fact_vectors")),
        ({"config": Policy.from_toml(POLICIES["all facts"])}, ("missing", "fact_vectors")),
        ({"config": Policy(families={"friendship": 2.0})}, ("unknown", "families")),
        ({"config": Policy().without("relation_edges", "synonym_edges", "passage_nodes")}, ("conflict", "switches")),
        ({"entity_threshold": 2.0}, ("unknown", "entity_threshold")),
        ({"seeds": {"threshold": 2.0}}, ("range", "seeds.threshold")),
    ],
)
def test_refusals(options: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        PolicyRAG(PolicyWorld(1).index, **options)


def test_an_index_must_have_what_the_policy_needs() -> None:
    with refused(InputError, "missing", "index"):
        PolicyRAG(hf.Index.build(passages=[{"text": "one"}]))
    bare = hf.Index.build(passages=[{"text": "one"}], graph=[{"src": 0, "dst": 1}])
    with refused(InputError, "missing", "index"):
        PolicyRAG(bare)
    joined = hf.Index.build(
        passages=[{"text": "one"}, {"text": "two"}], graph=[{"src": 0, "dst": 1}], vectors=np.eye(2)
    )
    assert PolicyRAG.missing(joined) is not None
    with refused(InputError, "unsupported", "graph", source=0, target=1):
        PolicyRAG(joined)


def test_searches_of_nothing_and_of_what_is_not_there() -> None:
    world = PolicyWorld(1)
    recipe = recipe_of(world, Policy())
    assert recipe.search([], entities=[]).hits.ids.shape == (0, 10)
    with refused(InputError, "missing", "entities"):
        recipe.search(world.questions)
    with refused(InputError, "length", "entities", given=1):
        recipe.search(world.questions, entities=[[]])
    with refused(InputError, "limit", "k", given=101):
        world.ask(recipe, k=101)
    with refused(InputError, "range", "k", given=-1):
        world.ask(recipe, k=-1)
    assert world.ask(recipe, k=100).hits.shape == (6, world.index.num_passages)
    with refused(InputError, "missing", "queries"):
        recipe.search(None, entities=world.mentions)
    with refused(InputError, "missing", "llm"):
        recipe.answer(world.questions, world.ask(recipe))


def taken(found: Any, b: int, passages: list[int], entities: list[int], facts: list[int]) -> tuple[Any, ...]:
    """Hits, pool, seeds and verdicts of a question, by the numbers of the whole index."""
    lists = [[(passages[p], score) for p, score in hits.row(b)] for hits in (found.hits, *found.lists.values())]
    seeds = {entities[e]: share for e, share in found.seeds[b].items()}
    return lists, seeds, [(facts[v.fact], v.score, v.kept, v.reason.split(" of fact")[0]) for v in found.facts[b]]


def explained(hit: dict[str, Any]) -> tuple[list[float], list[Any]]:
    """A hit's numbers, and the names that its attribution and its paths have; no numbers of the index."""
    shares = [part for part in hit.get("attribution", []) if part["kind"] == "entity"]
    steps = [step for path in hit.get("paths", []) for step in path]
    facts = [(fact["relation"], fact["num_passages"]) for step in steps for fact in step.get("facts", [])]
    scores = [*hit.get("terms", {}).values(), *(one["score"] for one in shares), *(one["strength"] for one in steps)]
    return scores, [*(one["name"] for one in shares), *((step["kind"], step["edge"]) for step in steps), *facts]


@given(
    seed=st.integers(0, 9),
    share=st.floats(0.2, 0.9),
    name=st.sampled_from(["default", "by the question", "both", "rows", "all facts", "paper"]),
    with_vectors=st.booleans(),
)
def test_an_isolated_answer_is_that_of_an_index_of_the_passages_alone(seed, share, name, with_vectors) -> None:
    world, texts = world_of(seed), {**POLICIES, "default": "version = 1"}
    policy, mask = Policy.from_toml(texts[name]), np.random.default_rng(seed).random(PASSAGES) < share
    mask[seed] = True
    index, *numbers = world.alone(mask)
    names = [mention if isinstance(mention, str) else world.memory.entities[mention] for mention in world.mentions[0]]
    ask: dict[str, Any] = {"entities": [names, *[[m for m in row if isinstance(m, str)] for row in world.mentions[1:]]]}
    by_facts = with_vectors or policy.facts.scope == "all"
    vectors = world.encoder.encode_passages(world.fact_texts) if by_facts else None
    whole = PolicyRAG(world.index, policy, encoder=world.encoder, fact_vectors=vectors)
    own = None if vectors is None else vectors[numbers[2]].reshape(-1, vectors.shape[1])
    alone = PolicyRAG(index, policy, encoder=world.encoder, fact_vectors=own if own is None or len(own) else None)
    ask = ask if whole.needs.entities else {}
    found = whole.search(world.questions, **ask, k=8, allow=mask, trace=True)
    expected = alone.search(world.questions, **ask, k=8, trace=True)
    everything = [list(range(PASSAGES)), list(range(world.index.num_entities)), list(range(len(world.memory.facts)))]
    for b, question in enumerate(world.questions):
        mine, theirs = taken(found, b, *everything), taken(expected, b, *numbers)
        assert mine[2] == theirs[2], question
        assert mine[1] == theirs[1], question
        for one, other in zip(mine[0], theirs[0], strict=True):
            assert one == other, question
        for one, other in zip(found.traces[b]["hits"], expected.traces[b]["hits"], strict=True):
            (scores, shown), (right, expected_to_show) = explained(one), explained(other)
            assert shown == expected_to_show, question
            assert scores == pytest.approx(right, rel=1e-12), question


def test_results_alone_are_restricted() -> None:
    """The pool is the whole's without what is not allowed, and the seeds are the whole's."""
    world = PolicyWorld(4)
    policy = Policy.from_toml("version = 1\n[seeds]\npassages = 0\n[walk]\ndamping = 0.7")
    recipe, mask = recipe_of(world, policy), np.arange(PASSAGES) % 3 > 0
    whole, found = world.ask(recipe), world.ask(recipe, allow=mask, allow_scope="results")
    assert found.seeds == whole.seeds
    assert found.facts == whole.facts
    for b in range(len(world.questions)):
        kept = [(p, score) for p, score in whole.lists["pool"].row(b) if mask[p]]
        assert found.lists["pool"].row(b) == kept
        assert all(mask[p] for p, _ in found.hits.row(b))


def test_each_question_may_have_its_own_passages() -> None:
    world, draw = PolicyWorld(4), np.random.default_rng(3)
    masks = draw.random((6, PASSAGES)) < 0.5
    masks[1], masks[5] = masks[0], False
    recipe = recipe_of(world, Policy())
    eta = np.tile([0.5, 0.2, 0.2], (6, 1)) * np.linspace(0.4, 1, 6)[:, None]
    for scope in ("isolated", "results"):
        found = world.ask(recipe, allow=masks, allow_scope=scope, edge_weights=eta, trace=True)
        for b, question in enumerate(world.questions):
            one: dict[str, Any] = {"allow": masks[b], "allow_scope": scope, "edge_weights": eta[b], "trace": True}
            alone = recipe.search([question], entities=[world.mentions[b]], **one)
            assert alone.hits.row(0) == found.hits.row(b)
            assert alone.traces == [found.traces[b]]
            assert (alone.seeds, alone.facts) == ([found.seeds[b]], [found.facts[b]])
            assert all(masks[b, p] for p, _ in found.hits.row(b))
        assert found.hits.counts[5] == 0
    nothing = recipe.search([], entities=[], allow=np.zeros((0, PASSAGES), bool))
    assert nothing.hits.shape == (0, 10)


def test_the_inputs_that_it_needs() -> None:
    world = PolicyWorld(4)
    assert recipe_of(world, Policy()).needs == hf.recipes.Needs(vectors=True, texts=True, entities=True, facts=True)
    policy = Policy.from_toml(POLICIES["by the question"])
    assert not recipe_of(world, policy).needs.entities
    bare = hf.Index.build(passages=[{"text": "one"}], graph=[{"src": 0, "dst": 1}], entities=["Ada"])
    lacks = PolicyRAG.missing(bare)
    assert lacks is not None
    assert lacks.allowed == ("corpus",)
    assert PolicyRAG.missing(bare, Policy.from_toml(NO_VECTORS)) is None
    needs = PolicyRAG(bare, Policy.from_toml(NO_VECTORS)).needs
    assert needs == hf.recipes.Needs(texts=True, entities=True)


def test_a_recipe_survives_pickling(tmp_path: Path) -> None:
    world = PolicyWorld(4)
    world.index.save(tmp_path / "index")
    index, vectors = hf.Index.open(tmp_path / "index"), world.encoder.encode_passages(world.fact_texts)
    recipe = PolicyRAG(index, Policy().without("gate"), encoder=world.encoder, fact_vectors=vectors)
    again = pickle.loads(pickle.dumps(recipe))
    assert again.config == recipe.config
    assert_bitwise(world.ask(again).hits.scores, world.ask(recipe).hits.scores)
