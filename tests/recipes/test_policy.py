"""The policy file: every key documented, checked and kept by a round trip."""

from __future__ import annotations

import tomllib
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hopfuse.errors import InputError
from hopfuse.recipes import Policy, PolicyRAG
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

SECTIONS = [f.name for f in fields(Policy) if f.name != "families"]
KEYS = [(name, f) for name in SECTIONS for f in fields(getattr(Policy(), name))]


def test_the_defaults_are_a_file_that_reads_back() -> None:
    policy = Policy()
    assert Policy.from_toml(policy.to_toml()) == policy == Policy.from_toml("version = 1")


@pytest.mark.parametrize(("section", "f"), KEYS, ids=lambda part: getattr(part, "name", part))
def test_every_key_of_the_file_stands_below_its_explanation(section: str, f) -> None:
    lines = Policy().to_toml().split(f"\n[{section}]\n")[1].splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"{f.name} = "))
    meant = f.metadata["doc"].splitlines()
    comments = []
    while at > 0 and lines[at - 1].startswith("#"):
        at -= 1
        comments.insert(0, lines[at].removeprefix("# "))
    assert len(meant[0]) > 10
    assert comments[: len(meant)] == meant


@given(
    damping=st.floats(0, 0.999),
    keep=st.integers(1, 10**6),
    gate=st.booleans(),
    text=st.text(st.characters(exclude_categories=("Cs",)), min_size=1).filter(str.strip),
    families=st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))), st.floats(0, 1e9)),
)
def test_any_policy_survives_a_round_trip(damping, keep, gate, text, families) -> None:
    policy = Policy()
    policy = replace(
        policy,
        walk=replace(policy.walk, damping=damping),
        facts=replace(policy.facts, keep=keep),
        switches=replace(policy.switches, gate=gate),
        answers=replace(
            policy.answers,
            not_found=text,
            prompt=f'{{question}}{text}"{{passages}}',
            filter_prompt="{question}{facts}" + text,
        ),
        families=families,
    )
    assert Policy.from_toml(policy.to_toml()) == policy


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("version = 1\n[walk", ("syntax", "policy")),
        ("", ("version", "version")),
        ("version = 2", ("version", "version")),
        ("version = true", ("version", "version")),
        ("version = 1.0", ("version", "version")),
        ("version = 1\n[seeds]\npassages = 1" + "0" * 400, ("range", "seeds.passages")),
        ("version = 1\n[stroll]\n", ("unknown", "stroll")),
        ("version = 1\nwalk = 3", ("type", "walk")),
        ("version = 1\nfamilies = 3", ("type", "families")),
        ("version = 1\n[families]\nkinship = -1.0", ("range", "families.kinship")),
        ("version = 1\n[walk]\nspeed = 1", ("unknown", "walk.speed")),
        ("version = 1\n[walk]\ndamping = 1.0", ("range", "walk.damping")),
        ("version = 1\n[walk]\ndamping = nan", ("range", "walk.damping")),
        ("version = 1\n[walk]\ndamping = true", ("range", "walk.damping")),
        ("version = 1\n[facts]\nkeep = 2.0", ("range", "facts.keep")),
        ("version = 1\n[facts]\ngate = 'maybe'", ("choice", "facts.gate")),
        ("version = 1\n[switches]\ngate = 1", ("type", "switches.gate")),
        ("version = 1\n[answers]\nnot_found = ' '", ("empty", "answers.not_found")),
        ("version = 1\n[answers]\nprompt = '{question}'", ("missing", "answers.prompt")),
        ("version = 1\n[walk]\nedge_type_norm = 'per_type'", ("range", "walk")),
        ("version = 1\n[walk]\nrelation = 0\nsynonym = 0\ncontext = 0", ("zero", "walk")),
        ("version = 1\n[walk]\ncontext = 0", ("conflict", "seeds.passages")),
        ("version = 1\n[walk]\ncontext = 0\n[seeds]\npassages = 0", ("conflict", "projection.source")),
        ("version = 1\n[seeds]\nlexical = 0\nembedding = 0", ("zero", "seeds")),
    ],
)
def test_a_file_that_is_no_policy_is_refused(text: str, refusal: tuple[str, str]) -> None:
    with refused(InputError, *refusal):
        Policy.from_toml(text)


def test_weights_of_a_joint_walk_may_exceed_one() -> None:
    assert Policy.from_toml("version = 1\n[walk]\nrelation = 1\nsynonym = 1\ncontext = 1").walk.relation == 1.0


def test_the_papers_policy_reads_entities_and_reranks_by_all_but_hubs() -> None:
    policy = Policy.paper()
    assert Policy.from_toml(policy.to_toml()) == policy == PolicyRAG.paper()
    assert policy.edge_type_weights == (0.6, 0.2, 0.2)
    assert policy.walk.edge_type_norm == "per_type"
    assert not policy.reads_passages
    assert {name for name, weight in policy.term_weights.items() if weight} == {"title", "coverage", "path"}
    assert not any(Policy().term_weights.values())


def test_switches_by_name() -> None:
    policy = Policy().without("gate", "synonym_edges")
    assert not policy.switches.gate
    assert not policy.switches.synonym_edges
    assert policy.switches.reranking
    with refused(InputError, "unknown", "switches", given="gates"):
        Policy().without("gates")


def test_a_section_of_another_kind_is_refused() -> None:
    with refused(InputError, "type", "walk", given="dict"):
        Policy(walk={"damping": 0.5})  # type: ignore[arg-type]


def test_the_file_has_nothing_but_its_sections() -> None:
    assert set(tomllib.loads(Policy().to_toml())) == {"version", "families", *SECTIONS}


@pytest.mark.parametrize(
    ("families", "refusal"),
    [
        (None, ("type", "families")),
        ({3: 1.0}, ("type", "families")),
        ({"kin": 1e300}, ("range", "families.kin")),
        ({"kin": "1"}, ("range", "families.kin")),
    ],
)
def test_families_map_names_to_weights(families, refusal: tuple[str, str]) -> None:
    with refused(InputError, *refusal):
        Policy(families=families)


def test_a_path_is_not_read_as_text() -> None:
    with refused(InputError, "type", "policy"):
        Policy.from_toml(Path("policy.toml"))  # type: ignore[arg-type]
