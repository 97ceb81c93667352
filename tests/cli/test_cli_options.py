"""``--option NAME=VALUE``: fields of the recipes' configs, by their types; and the errors."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from cli.cli_files import AS_DATA, about, hopfuse, killed, read_jsonl, refused, run
from cli.recipe_files import QUESTION, by_hand, explaining, rows_of, scoring
from hopfuse.fusion import RRF, Tsallis
from hopfuse.recipes import Policy

#: For each recipe: what --option is given, and the fields of its config.
GIVEN: list[tuple[str, list[str], dict[str, Any]]] = [
    ("triple-hybrid", ["mode=graph", "hops=2"], {"mode": "graph", "hops": 2}),
    ("triple-hybrid", ["repeats=true", "unit=words", "seeds=1"], {"repeats": True, "unit": "words", "seeds": 1}),
    ("hybrid-rrf", ["weights=1,0,2", "rank_constant=5"], {"weights": (1.0, 0.0, 2.0), "rank_constant": 5}),
    ("hybrid-rrf", ["fusion=convex", "exact_bonus=0.5"], {"fusion": "convex", "exact_bonus": 0.5}),
    ("phase-graph", ["method=rrf", "method.rank_constant=3"], {"method": RRF(rank_constant=3)}),
    ("phase-graph", ["method=condorcet", "alpha=0.4"], {"method": "condorcet", "alpha": 0.4}),
    ("phase-graph", ["method.temperature=0.5", "ties=mean"], {"temperature": 0.5, "ties": "mean"}),
    ("phase-graph", ["temperature=0.5"], {"temperature": 0.5}),
    (
        "phase-graph",
        ["method=tsallis", "method.q=0.5,1.5", "method.temperature=0.5"],
        {"method": Tsallis(q=(0.5, 1.5), temperature=0.5)},
    ),
    ("phase-graph", ["method=linear", "calibration=z_score"], {"method": "linear", "calibration": "z_score"}),
    ("phase-graph", ["edge_weights.creation=0"], {"edge_weights": {"creation": 0}}),
]


WORDS = {"triple-hybrid": "none", "hybrid-rrf": "fts5", "guided-walk": "fts5"}


def options(given: list[str]) -> list[str]:
    return [arg for one in given for arg in ("--option", one)]


@pytest.mark.parametrize(("recipe", "given", "made"), GIVEN)
def test_the_recipe_has_what_is_given(memory, output_of, tmp_path, recipe, given, made) -> None:
    output_of(*scoring(memory, recipe, tmp_path / "out.jsonl", *options(given)))
    found, names = by_hand(memory, recipe, **made)
    assert [row["hits"] for row in read_jsonl(tmp_path / "out.jsonl")] == rows_of(found, names)
    trace = json.loads(output_of(*explaining(memory, recipe, *options(given), "--json")))
    assert trace == {"question": QUESTION, **json.loads(json.dumps(found.traces[0]))}
    assert output_of(*explaining(memory, recipe, *options(given))).startswith(QUESTION)


def test_they_change_what_is_found(memory) -> None:
    changed = sum(
        rows_of(*by_hand(memory, recipe, **made)) != rows_of(*by_hand(memory, recipe)) for recipe, _, made in GIVEN
    )
    assert changed >= len(GIVEN) - 3


def test_keys_of_a_policy(memory, output_of, refused_here, tmp_path) -> None:
    given = options(["walk.damping=0.75", "switches.gate=false", "families.birth=2"])
    output_of(*scoring(memory, "policy-rag", tmp_path / "out.jsonl", *given))
    policy = Policy.from_toml("version = 1\n[walk]\ndamping = 0.75\n[switches]\ngate = false\n[families]\nbirth = 2.0")
    assert [row["hits"] for row in read_jsonl(tmp_path / "out.jsonl")] == rows_of(
        *by_hand(memory, "policy-rag", policy)
    )
    wrong = scoring(memory, "policy-rag", tmp_path / "no.jsonl", *options(["walk.speed=1"]))
    assert refused_here(*wrong) == about("unknown", "walk.speed")


def test_importance_is_read_from_a_file(memory, output_of, tmp_path) -> None:
    known = np.array([0.1, np.nan, 1.0])
    np.save(tmp_path / "a,b.npy", known)
    out, given = tmp_path / "out.jsonl", f"importance={tmp_path / 'a,b.npy'}"
    output_of(*scoring(memory, "hybrid-rrf", out, "--option", given))
    assert [row["hits"] for row in read_jsonl(out)] == rows_of(*by_hand(memory, "hybrid-rrf", importance=known))


def test_a_run_with_another_importance_is_not_taken_up(memory, tmp_path) -> None:
    known, out = tmp_path / "known.npy", tmp_path / "out.jsonl"
    args = scoring(memory, "hybrid-rrf", out, "--chunk", 1, "--option", f"importance={known}")
    np.save(known, [1.0, 0.2, 0.5])
    killed(("os", "replace", 3), *args)
    np.save(known, [0.0, 1.0, 0.5])
    assert refused(*args) == about("exists", "out", names="importance")
    hopfuse(*args, "--restart")
    known = np.array([0.0, 1.0, 0.5])
    assert [row["hits"] for row in read_jsonl(out)] == rows_of(*by_hand(memory, "hybrid-rrf", importance=known))


def test_a_run_with_other_options_is_not_taken_up(memory, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    args = scoring(memory, "hybrid-rrf", out, "--chunk", 1)
    killed(("os", "replace", 3), *args, "--option", "rank_constant=9")
    assert refused(*args) == about("exists", "out", names="settings")
    hopfuse(*args, "--option", "rank_constant=9")
    assert [row["hits"] for row in read_jsonl(out)] == rows_of(*by_hand(memory, "hybrid-rrf", rank_constant=9))


def test_entities_by_words(memory, output_of, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    files = (memory / "index", "--queries", memory / "queries.jsonl", "--out", out)
    output_of("score", *files, "--recipe", "triple-hybrid", "--option", "mode=lexical", "--words", "fts5")
    first = [[hit["id"] for hit in row["hits"]] for row in read_jsonl(out)]
    assert first == [["Alien"], ["Ridley Scott"], ["North Sea"]]


@pytest.mark.parametrize(
    ("recipe", "given", "why"),
    [
        ("triple-hybrid", ["hop=2"], about("unknown", "hop", recipe="triple-hybrid")),
        ("triple-hybrid", ["repeats=yes"], about("type", "repeats", given="yes")),
        ("triple-hybrid", ["hops=1,2"], about("range", "hops", given="1,2")),
        ("triple-hybrid", ["hops=1", "hops=2"], about("duplicate", "hops")),
        ("triple-hybrid", ["hops"], about("syntax", "option", given="hops")),
        ("triple-hybrid", ["mode.x=1"], about("choice", "mode")),
        ("triple-hybrid", ["mode=grahp"], about("choice", "mode", given="grahp")),
        ("hybrid-rrf", ["index=3"], about("unknown", "index", recipe="hybrid-rrf")),
        ("hybrid-rrf", ["importance=no.npy"], about("missing", "importance", given="no.npy")),
        ("hybrid-rrf", ["weights=1,,2"], about("range", "weights[1]", given="")),
        ("phase-graph", ["edge_weights=2"], about("type", "edge_weights", given="str")),
        ("phase-graph", ["edge_weights.kin=much"], about("range", "edge_weights.kin", given="much")),
        ("phase-graph", ["alpha=2"], about("range", "alpha", given=2.0)),
        ("phase-graph", ["method=borda3"], about("choice", "method", given="borda3")),
        ("phase-graph", ["method=rrf", "method.p=1"], about("unknown", "method.p", method="rrf")),
    ],
)
def test_invalid_input_is_refused(memory, refused_here, tmp_path, recipe, given, why) -> None:
    assert refused_here(*scoring(memory, recipe, tmp_path / "out.jsonl", *options(given))) == why
    assert list(tmp_path.iterdir()) == []


def test_values_are_checked_before_the_work(memory, refused_here, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    for recipe, given, why in (
        ("triple-hybrid", "mode=grahp", about("choice", "mode")),
        ("phase-graph", "edge_weights.kin=0", about("unknown", "edge_weights", given="kin")),
        ("policy-rag", "reranking.pool=5", about("limit", "k")),
    ):
        assert refused_here(*scoring(memory, recipe, out, "--option", given)) == why
    assert refused_here(*scoring(memory, "triple-hybrid", out, "--words", "fts5")) == about(
        "unused", "words", recipe="triple-hybrid"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("recipe", "given"),
    [
        ("triple-hybrid", ["mode=vector", "hops=2"]),
        ("triple-hybrid", ["graph_k=5", "mode=graph"]),
        ("hybrid-rrf", ["fusion=convex", "rank_constant=10"]),
        ("guided-walk", ["word_boost=0", "word_k=10"]),
    ],
)
def test_an_option_that_another_leaves_unread_is_refused(memory, refused_here, tmp_path, recipe, given) -> None:
    out = tmp_path / "out.jsonl"
    refusal = refused_here(*scoring(memory, recipe, out, *options(given)))
    assert (refusal.code, refusal.values["recipe"]) == ("unused", recipe)
    for one in given:
        done = run(*scoring(memory, recipe, out, *options([one]), "--words", WORDS[recipe], "--overwrite"), env=AS_DATA)
        assert f'"field": "{one.partition("=")[0]}"' not in done.stderr
