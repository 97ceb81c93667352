"""A recipe's options have one meaning in Python, on the command line, as JSON and as TOML; so have their errors."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import hopfuse as hf
import pytest
from cli.recipe_files import scoring
from hopfuse.errors import InputError
from hopfuse.fusion import METHODS, RRF, Tsallis
from hopfuse.recipes import RECIPES, Policy, apply_options
from refusals import check_error, refused

Options = Mapping[str, Any]


def in_python(recipe: str, options: Options, memory: Path) -> Any:
    kind: Any = RECIPES[recipe]
    return kind(hf.Index.open(memory / "index"), **options).config


def as_json(recipe: str, options: Options, memory: Path) -> Any:
    return apply_options(RECIPES[recipe].Config(), json.loads(json.dumps(options)), recipe)


def as_toml(recipe: str, options: Options, memory: Path) -> Any:
    text = "".join(toml(options))
    if recipe == "policy-rag":
        return Policy.from_toml(f"version = 1\n{text}")
    return apply_options(RECIPES[recipe].Config(), tomllib.loads(text), recipe)


def texts(options: Options, before: str = "") -> Iterator[str]:
    """Yield each option as ``NAME=VALUE``; a fusion method's name is its field's value."""
    for name, value in options.items():
        path = before.removesuffix(".") if name == "name" else f"{before}{name}"
        if isinstance(value, Mapping):
            yield from texts(value, f"{path}.")
        elif isinstance(value, list):
            yield f"{path}={','.join(map(str, value))}"
        else:
            yield f"{path}={value if isinstance(value, str) else json.dumps(value)}"


def toml(options: Options) -> Iterator[str]:
    """Yield the lines of a TOML file, tables last."""
    for name, value in sorted(options.items(), key=lambda one: isinstance(one[1], Mapping)):
        if isinstance(value, Mapping):
            yield from (f"[{name}]\n", *toml(value))
        else:
            yield f"{name} = {json.dumps(value)}\n"


Door = Callable[[str, Options, Path], Any]
DOORS: list[Door] = [in_python, as_json, as_toml]

WRONG: list[tuple[str, Options, tuple[str, str]]] = [
    ("phase-graph", {"speed": 1}, ("unknown", "speed")),
    ("phase-graph", {"walk": {"speed": 1}}, ("unknown", "walk")),
    ("phase-graph", {"damping": 2.0}, ("range", "damping")),
    ("phase-graph", {"damping": "much"}, ("range", "damping")),
    ("phase-graph", {"damping": {"x": 1}}, ("range", "damping")),
    ("phase-graph", {"graph_k": 0}, ("range", "graph_k")),
    ("phase-graph", {"graph_k": 2.5}, ("range", "graph_k")),
    ("phase-graph", {"graph_k": [1, 2]}, ("range", "graph_k")),
    ("phase-graph", {"dense_fallback": "maybe"}, ("type", "dense_fallback")),
    ("phase-graph", {"dense_fallback": 1}, ("type", "dense_fallback")),
    ("phase-graph", {"ties": "odd"}, ("choice", "ties")),
    ("phase-graph", {"calibration": "odd"}, ("choice", "calibration")),
    ("phase-graph", {"temperature": "hot"}, ("range", "temperature")),
    ("phase-graph", {"method": "borda3"}, ("choice", "method")),
    ("phase-graph", {"method": {"name": "borda3", "p": 1}}, ("choice", "method")),
    ("phase-graph", {"method": {"name": "rrf", "p": 1}}, ("unknown", "method.p")),
    ("phase-graph", {"method": {"rank_constant": 1}}, ("unknown", "method.rank_constant")),
    ("phase-graph", {"method": {"name": "rrf", "rank_constant": -1}}, ("range", "method.rank_constant")),
    ("phase-graph", {"method": "max", "alpha": 0.5}, ("unused", "alpha")),
    ("phase-graph", {"edge_weights": 2}, ("type", "edge_weights")),
    ("phase-graph", {"edge_weights": [1, 2]}, ("type", "edge_weights")),
    ("phase-graph", {"edge_weights": {"kin": -1}}, ("range", "edge_weights.kin")),
    ("phase-graph", {"edge_weights": {"kin": "much"}}, ("range", "edge_weights.kin")),
    ("hybrid-rrf", {"weights": 1}, ("type", "weights")),
    ("hybrid-rrf", {"weights": [1, 2]}, ("length", "weights")),
    ("hybrid-rrf", {"weights": [1, -1, 2]}, ("range", "weights[1]")),
    ("hybrid-rrf", {"weights": [1, "a", 2]}, ("range", "weights[1]")),
    ("hybrid-rrf", {"fusion": "convex", "rank_constant": 9}, ("unused", "rank_constant")),
    ("guided-walk", {"word_boost": 0, "word_k": 10}, ("unused", "word_k")),
    ("guided-walk", {"lexical_weight": 0, "lexical_k": 10}, ("unused", "lexical_k")),
    ("triple-hybrid", {"mode": "vector", "hops": 2}, ("unused", "hops")),
    ("triple-hybrid", {"mode": {"x": "graph"}}, ("choice", "mode")),
    ("policy-rag", {"stroll": {"speed": 1}}, ("unknown", "stroll")),
    ("policy-rag", {"walk": 3}, ("type", "walk")),
    ("policy-rag", {"walk": {"speed": 1}}, ("unknown", "walk.speed")),
    ("policy-rag", {"walk": {"damping": 1.0}}, ("range", "walk.damping")),
    ("policy-rag", {"walk": {"edge_type_norm": "per_type"}}, ("range", "walk")),
    ("policy-rag", {"switches": {"gate": 1}}, ("type", "switches.gate")),
    ("policy-rag", {"facts": {"gate": "maybe"}}, ("choice", "facts.gate")),
    ("policy-rag", {"families": 3}, ("type", "families")),
    ("policy-rag", {"families": {"kin": -1}}, ("range", "families.kin")),
]


@pytest.mark.parametrize(("recipe", "options", "refusal"), WRONG, ids=repr)
def test_a_wrong_value_has_one_code_and_field(
    memory: Path,
    refused_here: Any,
    tmp_path: Path,
    recipe: str,
    options: Options,
    refusal: tuple[str, str],
) -> None:
    for door in DOORS:
        with pytest.raises(InputError) as caught:
            door(recipe, options, memory)
        check_error(caught.value, InputError, *refusal)
    given = [arg for text in texts(options) for arg in ("--option", text)]
    said = refused_here(*scoring(memory, recipe, tmp_path / "out.jsonl", *given))
    assert (said.kind, said.code, said.field) == ("InputError", *refusal)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("recipe", "options", "made"),
    [
        ("phase-graph", {"method": "rrf", "alpha": 0.5}, {"method": "rrf", "alpha": 0.5}),
        ("phase-graph", {"method": {"name": "rrf", "rank_constant": 3}}, {"method": RRF(rank_constant=3)}),
        (
            "phase-graph",
            {"method": {"name": "tsallis", "q": [0.5, 1.5]}},
            {"method": Tsallis(q=(0.5, 1.5))},
        ),
        ("phase-graph", {"edge_weights": {"creation": 0}}, {"edge_weights": {"creation": 0.0}}),
        ("hybrid-rrf", {"weights": [1, 0, 2], "dense_fallback": False}, {"weights": (1.0, 0.0, 2.0)}),
    ],
    ids=repr,
)
def test_a_value_has_one_meaning(memory: Path, door: Door, recipe: str, options: Options, made: dict[str, Any]) -> None:
    config = door(recipe, options, memory)
    assert {name: getattr(config, name) for name in made} == made


@pytest.mark.parametrize("door", DOORS)
def test_sections_of_a_policy(memory: Path, door: Door) -> None:
    given = {"walk": {"damping": 0.75}, "switches": {"gate": False}, "families": {"birth": 2}}
    policy = door("policy-rag", given, memory)
    assert (policy.walk.damping, policy.walk.synonym, policy.switches.gate) == (0.75, Policy().walk.synonym, False)
    assert policy.families == {"birth": 2.0}


def test_a_mapping_changes_only_the_keys_that_it_has() -> None:
    first = apply_options(Policy(), {"walk": {"damping": 0.75}, "families": {"kin": 2.0}}, "policy-rag")
    second = apply_options(first, {"walk": {"synonym": 0.5}, "families": {"award": 3.0}}, "policy-rag")
    assert (second.walk.damping, second.walk.synonym) == (0.75, 0.5)
    assert second.families == {"kin": 2.0, "award": 3.0}
    config = RECIPES["phase-graph"].Config(method=Tsallis(q=2.0, temperature=0.5))
    assert apply_options(config, {"method": {"q": 3.0}}, "phase-graph").method == Tsallis(q=3.0, temperature=0.5)
    assert apply_options(config, {"method": {"name": "rrf"}}, "phase-graph").method == "rrf"


def test_options_of_a_variant_change_those_of_its_retriever(memory: Path) -> None:
    index = hf.Index.open(memory / "index")
    first = hf.Retriever(index, "hybrid-rrf", words="fts5", rank_constant=9, weights=[1, 0, 2])
    second = first.variant(fusion="convex")
    assert second.recipe.config == replace(first.recipe.config, fusion="convex")
    with refused(InputError, "unused", "rank_constant"):
        second.variant(rank_constant=5)


ODD: list[Any] = [None, True, -1, 0, 10**400, 1.5, "", "odd", [], [[1]], [1, "a", None], {}, {"a": 1}, {"a": {}}]


@pytest.mark.parametrize("recipe", RECIPES)
def test_any_value_of_json_is_taken_or_refused(recipe: str) -> None:
    config: Any = RECIPES[recipe].Config()
    for name in (f.name for f in fields(config)):
        values = [*ODD, {"name": 3}, {"name": {}, "p": 1}]
        if is_dataclass(part := getattr(config, name)):
            values += [{f.name: value} for f in fields(part) for value in ODD]
        if name == "method":
            values += [{"name": m, f.name: v} for m, kind in METHODS.items() for f in fields(kind) for v in ODD]
        for value in values:
            with suppress(InputError):
                assert type(apply_options(config, {name: value}, recipe)) is type(config)
