"""``--option`` of ``score`` and ``explain``: the recipes' own arguments; what they do not have is refused."""

from __future__ import annotations

import json
from inspect import signature
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cli.cli_files import hopfuse, killed, read_jsonl, refused
from cli.recipe_files import QUESTION, by_hand, explaining, rows_of, scoring
from hopfuse.cli.recipe_choice import READS
from hopfuse.cli.recipe_settings import MADE_BY, option_names, read_settings
from hopfuse.errors import InputError
from hopfuse.fusion import RRF, Tsallis
from hopfuse.lexical import FTS5
from hopfuse.recipes import Ising

#: For each recipe: what --option is given, the recipe's own arguments, and its search's.
SAID: list[tuple[str, list[str], dict[str, Any], dict[str, Any]]] = [
    ("triple-hybrid", ["mode=graph", "hops=2"], {"hops": 2}, {"mode": "graph"}),
    ("triple-hybrid", ["repeats=true", "unit=words", "seeds=1"], {"repeats": True, "unit": "words", "seeds": 1}, {}),
    ("hybrid-rrf", ["weights=1,0,2", "rank_constant=5"], {"weights": [1, 0, 2], "rank_constant": 5}, {}),
    ("hybrid-rrf", ["fusion=convex", "exact_bonus=0.5"], {"fusion": "convex", "exact_bonus": 0.5}, {}),
    ("phase-graph", ["method=rrf", "method.rank_constant=3"], {"method": RRF(rank_constant=3)}, {}),
    ("phase-graph", ["method=condorcet"], {"method": "condorcet"}, {}),
    ("phase-graph", ["ties=mean", "temperature=0.5"], {"ties": "mean", "temperature": 0.5}, {}),
    ("phase-graph", ["method=linear", "calibration=z_score"], {"method": "linear", "calibration": "z_score"}, {}),
    ("phase-graph", ["ising=0.5", "ising.candidates=10"], {"ising": Ising(blend=0.5, candidates=10)}, {}),
    ("phase-graph", ["edge_weights.creation=0"], {"edge_weights": {"creation": 0}}, {}),
    ("policy-rag", ["edge_weights=0.1,0,0.9"], {}, {"edge_weights": [0.1, 0, 0.9]}),
    ("policy-rag", ["entity_threshold=0.95"], {"entity_threshold": 0.95}, {}),
]


def options(given: list[str]) -> list[str]:
    return [arg for one in given for arg in ("--option", one)]


@pytest.mark.parametrize(("recipe", "given", "made", "asked"), SAID)
def test_the_recipe_has_what_is_said(memory, said, tmp_path, recipe, given, made, asked) -> None:
    assert read_settings(recipe, given, READS[recipe]) == (made, asked)
    said(*scoring(memory, recipe, tmp_path / "out.jsonl", *options(given)))
    found, names = by_hand(memory, recipe, asked=asked, **made)
    assert [row["hits"] for row in read_jsonl(tmp_path / "out.jsonl")] == rows_of(found, names)
    trace = json.loads(said(*explaining(memory, recipe, *options(given), "--json")))
    assert trace == {"question": QUESTION, **json.loads(json.dumps(found.traces[0]))}
    assert said(*explaining(memory, recipe, *options(given))).startswith(QUESTION)


def test_they_change_what_is_found(memory) -> None:
    changed = 0
    for recipe, _, made, asked in SAID:
        changed += rows_of(*by_hand(memory, recipe, asked=asked, **made)) != rows_of(*by_hand(memory, recipe))
    assert changed >= len(SAID) - 3, "a threshold for names that are there, say, changes nothing"


def test_importance_is_read_from_a_file(memory, said, tmp_path) -> None:
    known = np.array([0.1, np.nan, 1.0])
    np.save(tmp_path / "a,b.npy", known)
    out = tmp_path / "out.jsonl"
    said(*scoring(memory, "hybrid-rrf", out, "--option", f"importance={tmp_path / 'a,b.npy'}"))
    assert [row["hits"] for row in read_jsonl(out)] == rows_of(*by_hand(memory, "hybrid-rrf", importance=known))


def test_a_run_with_another_importance_is_not_taken_up(memory, tmp_path) -> None:
    known, out = tmp_path / "known.npy", tmp_path / "out.jsonl"
    args = scoring(memory, "hybrid-rrf", out, "--chunk", 1, "--option", f"importance={known}")
    np.save(known, [1.0, 0.2, 0.5])
    killed(("os", "replace", 3), *args)
    np.save(known, [0.0, 1.0, 0.5])
    assert "holds an unfinished run with other importance; repeat that run, or drop it with --restart" in refused(*args)
    hopfuse(*args, "--restart")
    known = np.array([0.0, 1.0, 0.5])
    assert [row["hits"] for row in read_jsonl(out)] == rows_of(*by_hand(memory, "hybrid-rrf", importance=known))


def test_entities_by_words(memory, said, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    files = ("--index", memory / "index", "--queries", memory / "queries.jsonl", "--out", out)
    said("score", *files, "--recipe", "triple-hybrid", "--option", "mode=lexical", "--words", "fts5")
    assert [[hit["id"] for hit in row["hits"]] for row in read_jsonl(out)] == [
        ["Alien"],
        ["Ridley Scott"],
        ["North Sea"],
    ]


def test_a_reranked_hit_says_what_it_was(memory, said) -> None:
    shown = said(*explaining(memory, "phase-graph", "--option", "ising=0.5"))
    assert "after reranking; fused 0." in shown
    shown = said(*explaining(memory, "phase-graph", "--option", "method=condorcet"))
    assert " of dense (rank 1)" in shown
    assert "probability" not in shown


@pytest.mark.parametrize("recipe", MADE_BY)
def test_every_argument_can_be_said_or_is_the_commands(recipe) -> None:
    """A new argument of a recipe is either an option of --option or given by the command itself."""
    given = {"index", "triples", "vectors", "fact_vectors", "encoder", "matcher", "lexical", "policy", "llm", "threads"}
    for name in set(signature(MADE_BY[recipe]).parameters) - given - READS[recipe]:
        part = {"edge_weights": "edge_weights.x=1", "method": "method=rrf"}.get(name, f"{name}=1")
        if name not in ("importance", "repeats"):
            assert name in read_settings(recipe, [part], READS[recipe]).made


@pytest.mark.parametrize(
    ("recipe", "given", "why"),
    [
        ("triple-hybrid", ["hop=2"], "triple-hybrid has no such option; allowed: calibration, graph_k, hops, mode,"),
        ("triple-hybrid", ["repeats=yes"], "--option repeats=yes: give true or false"),
        ("triple-hybrid", ["hops=1,2"], "--option hops=1,2: it takes one value"),
        ("triple-hybrid", ["hops=1", "hops=2"], "--option hops is given twice"),
        ("triple-hybrid", ["hops"], "--option is 'hops'; give a name and values, for instance --option mode=graph"),
        ("triple-hybrid", ["mode.x=1"], "triple-hybrid has no such option"),
        ("hybrid-rrf", ["lexical_k=3"], "there is an option for it; give --lexical-k"),
        ("hybrid-rrf", ["index=3"], "hybrid-rrf has no such option; allowed: entity_threshold, exact_bonus, fusion,"),
        ("hybrid-rrf", ["importance=no.npy"], "--option importance=no.npy: it cannot be read as an .npy array"),
        ("hybrid-rrf", ["weights=1,,2"], "--option weights is '1,,2'; give values with a comma between them"),
        ("phase-graph", ["alpha=0.5"], "there is an option for it; give --alpha"),
        ("phase-graph", ["edge_weights=2"], "allowed: calibration, edge_weights.TYPE, entity_threshold, ising,"),
        ("phase-graph", ["ising.coupling=2"], "given without ising.blend"),
        ("phase-graph", ["ising=0.1", "ising.blend=0.2"], "is given twice"),
        ("phase-graph", ["ising.heat=1"], "there is no such option; allowed: blend, coupling, temperature,"),
        ("phase-graph", ["method=rrf", "method.p=1"], "fusion method 'rrf' has no option 'p'; its options: rank_const"),
        (
            "triple-hybrid",
            ["graph_k=5", "mode=graph"],
            "graph_k: triple-hybrid does not read it with mode=graph; leave",
        ),
        ("triple-hybrid", ["mode=graph", "vector_k=5"], "vector_k: triple-hybrid does not read it with mode=graph"),
        (
            "triple-hybrid",
            ["mode=graph", "calibration=max"],
            "calibration: triple-hybrid does not read it with mode=graph",
        ),
        ("triple-hybrid", ["mode=vector", "hops=2"], "it out, or choose another mode"),
        ("triple-hybrid", ["mode=vector", "unit=words"], "unit: triple-hybrid does not read it with mode=vector"),
        ("triple-hybrid", ["mode=vector", "repeats=true"], "repeats: triple-hybrid does not read it with mode=vector"),
        ("triple-hybrid", ["mode=lexical", "seeds=2"], "seeds: triple-hybrid does not read it with mode=lexical"),
        (
            "hybrid-rrf",
            ["rank_constant=5", "fusion=convex"],
            "does not read it with fusion=convex; leave it out, or choose",
        ),
        ("policy-rag", ["llm=x"], "policy-rag has no such option; allowed: edge_weights, entity_threshold"),
    ],
)
def test_what_cannot_be_said_is_refused(recipe, given, why) -> None:
    with pytest.raises(InputError) as told:
        read_settings(recipe, given, READS[recipe])
    assert why in str(told.value)


def test_a_method_has_its_temperature_and_tuples() -> None:
    given = ["temperature=0.5", "method=tsallis", "method.q=0.5,1.5"]
    assert read_settings("phase-graph", given).made == {"method": Tsallis(q=(0.5, 1.5), temperature=0.5)}


#: TripleHybrid's options, each with a value that is not its default.
OTHERWISE = {"seeds": 1, "hops": 2, "unit": "words", "repeats": True, "vector_k": 1, "graph_k": 1, "calibration": "max"}


@pytest.mark.parametrize("mode", ["hybrid", "graph", "vector", "lexical"])
def test_what_a_mode_does_not_read_changes_nothing(memory, mode) -> None:
    """Options that are refused beside a mode leave what it finds, with its lists and traces, as it is."""
    names = hf.Index.open(memory / "index").entity_names
    same: dict[str, Any] = {"asked": {"mode": mode}, "lexical": FTS5.build(list(names))}
    plain, _ = by_hand(memory, "triple-hybrid", **same)
    for name, value in OTHERWISE.items():
        try:
            read_settings("triple-hybrid", [f"mode={mode}", f"{name}={str(value).lower()}"])
        except InputError:
            found, _ = by_hand(memory, "triple-hybrid", **same, **{name: value})
            assert found.traces == plain.traces, name
            assert found.lists.keys() == plain.lists.keys()
        else:
            assert mode in ("hybrid", "graph"), name
    assert set(OTHERWISE) == option_names("triple-hybrid", READS["triple-hybrid"]) - {"mode"}


def test_values_that_the_recipe_refuses_are_said_before_the_work(memory, refused_here, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    for recipe, given, why in (
        ("triple-hybrid", "mode=grahp", "mode is 'grahp'; allowed: hybrid, graph, vector, lexical"),
        ("policy-rag", "edge_weights=0.5,0.5", "edge_weights has shape (2,); give eta of relation, synonym, context"),
        ("phase-graph", "edge_weights.kin=0", "edge_weights has the type 'kin'; the graph has"),
        ("phase-graph", "method=borda3", "fusion method is 'borda3'"),
    ):
        assert why in refused_here(*scoring(memory, recipe, out, "--option", given))
    reading = ("--words is given, and triple-hybrid reads words with --option mode=lexical", "--words", "fts5")
    assert reading[0] in refused_here(*scoring(memory, "triple-hybrid", out, *reading[1:]))
    assert list(tmp_path.iterdir()) == []


def test_a_run_with_other_options_is_not_taken_up(memory, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    args = scoring(memory, "hybrid-rrf", out, "--chunk", 1)
    killed(("os", "replace", 3), *args, "--option", "rank_constant=5")
    assert "other options" in refused(*args)
    hopfuse(*args, "--option", "rank_constant=5")
    assert [row["hits"] for row in read_jsonl(out)] == rows_of(*by_hand(memory, "hybrid-rrf", rank_constant=5))
