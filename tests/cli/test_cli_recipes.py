"""``--recipe`` of ``score`` and ``trace``, and ``hopfuse policy``: the results are the recipes' own."""

from __future__ import annotations

import json
import tomllib

import hopfuse as hf
import pytest
from cli.cli_files import about, read_jsonl
from cli.recipe_files import QUESTION, by_hand, explaining, rows_of, scoring, write_memory
from hopfuse.recipes import RECIPES, Policy
from hopfuse.report import arrow, policy_page


@pytest.mark.parametrize("recipe", RECIPES)
def test_scores_are_the_recipes_own(memory, output_of, tmp_path, recipe) -> None:
    output_of(*scoring(memory, recipe, tmp_path / "out.jsonl"))
    assert [row["hits"] for row in read_jsonl(tmp_path / "out.jsonl")] == rows_of(*by_hand(memory, recipe))


@pytest.mark.parametrize("recipe", RECIPES)
def test_traces_are_the_recipes_own(memory, output_of, tmp_path, recipe) -> None:
    out = tmp_path / "trace.json"
    shown = output_of(*explaining(memory, recipe, "--out", out))
    found, _ = by_hand(memory, recipe)
    trace = json.loads(json.dumps(found.traces[0]))
    assert json.loads(out.read_text()) == {"question": QUESTION, **trace}
    assert shown.startswith(QUESTION)
    first = trace["hits"][0]
    assert f"1. {first.get('title') or first.get('name')}  {first['score']:.4f}" in shown
    assert json.loads(output_of(*explaining(memory, recipe, "--json"))) == {"question": QUESTION, **trace}


def test_the_tree_of_a_policy_has_seeds_facts_and_paths(memory, output_of) -> None:
    shown = " ".join(output_of(*explaining(memory, "policy-rag")).split())
    trace = by_hand(memory, "policy-rag")[0].traces[0]
    assert "Alien (exact): align 1" in shown
    assert "Ridley Scott — directed → Alien" in shown
    assert trace["facts"][0]["reason"] in shown
    assert "from: Alien" in shown
    assert "—in→ passage “Alien”" in shown
    assert "←directed—" in shown or "—directed→" in shown
    assert "Alien and Ridley Scott by creation" in shown
    assert "Ridley Scott —directed→ Alien, fact 0, stated in Alien" in shown


def test_the_tree_of_a_guided_walk_has_seeds_and_weights(memory, output_of) -> None:
    shown = " ".join(output_of(*explaining(memory, "guided-walk", "--option", "second_mass=0.5")).split())
    trace = by_hand(memory, "guided-walk", second_mass=0.5)[0].traces[0]
    second, hit = trace["second_seeds"][0], trace["hits"][0]
    assert "Alien (exact): in 1 passage" in shown
    assert f"{second['name']} of {second['passages'][0]['title']}: share {second['share']:.3g}" in shown
    assert "Hits by guided walk: the first 3" in shown
    assert f"{hit['weight']:.3g}" in shown
    assert "from: Alien (named)" in shown
    seed, step = hit["paths"][0][:2]
    assert f"path {hit['paths'][0][-1]['strength']:.3g}: {seed['name']} {arrow(step)}" in shown


def test_the_tree_of_triples_has_the_triples_of_each_hit(memory, output_of) -> None:
    shown = output_of(*explaining(memory, "triple-hybrid"))
    hit = next(hit for hit in by_hand(memory, "triple-hybrid")[0].traces[0]["hits"] if hit["triple"])
    assert " — ".join(hit["triple"][part] for part in ("head", "relation", "tail")) in shown
    assert f"by {hit['by']}" in shown


def test_a_page_is_written(memory, output_of, tmp_path) -> None:
    out = tmp_path / "trace.html"
    output_of(*explaining(memory, "policy-rag", "--out", out))
    assert out.read_text() == policy_page(by_hand(memory, "policy-rag")[0].traces[0])


def test_a_policy_is_read(memory, output_of, tmp_path) -> None:
    (tmp_path / "p.toml").write_text('version = 1\n[switches]\nnormalisation = false\n[seeds]\nsource = "entities"\n')
    output_of(*scoring(memory, "policy-rag", tmp_path / "out.jsonl", "--policy", tmp_path / "p.toml"))
    found, _ = by_hand(memory, "policy-rag", Policy().without("normalisation"))
    rows = read_jsonl(tmp_path / "out.jsonl")
    assert [[hit["score"] for hit in row["hits"]] for row in rows] == [
        [score for _, score in found.hits.row(b)] for b in range(3)
    ]
    plain = by_hand(memory, "policy-rag")[0].hits.row(0)
    assert [hit["score"] for hit in rows[0]["hits"]] != [score for _, score in plain], "it changes something"


def test_facts_have_vectors_where_there_is_an_encoder(output_of, tmp_path) -> None:
    pytest.importorskip("wordllama")
    encoder = hf.encoders.WordLlamaEncoder(64)
    folder = write_memory(tmp_path, encoder)
    index = hf.Index.open(folder / "index")
    vectors = encoder.encode_passages(index.facts.texts(index.entity_names))
    assert vectors.shape == (len(index.facts), 64) == (3, 64)
    (folder / "p.toml").write_text('version = 1\n[facts]\nscope = "all"\n')
    files = (folder / "index", "--encoder", "wordllama:64", "--recipe", "policy-rag")
    found = {}
    for scope, more in (("seeds", ()), ("all", ("--policy", folder / "p.toml"))):
        policy = Policy.from_toml(f'version = 1\n[facts]\nscope = "{scope}"\n')
        own, names = by_hand(folder, "policy-rag", policy, encoder=encoder, fact_vectors=vectors)
        out = folder / f"{scope}.jsonl"
        output_of("score", *files, "--queries", folder / "queries.jsonl", "--out", out, *more)
        assert [row["hits"] for row in read_jsonl(out)] == rows_of(own, names)
        found[scope] = json.loads(output_of("trace", *files, QUESTION, "--entity", "Alien", *more, "--json"))
        assert found[scope]["facts"] == json.loads(json.dumps(own.traces[0]["facts"]))
        nearest = vectors @ encoder.encode_queries([QUESTION])[0]
        scores = [fact["score"] for fact in found[scope]["facts"]]
        assert all(min(abs(nearest - score)) < 1e-5 for score in scores), "cosines, not Dice coefficients"
    relations = {scope: {fact["relation"] for fact in trace["facts"]} for scope, trace in found.items()}
    assert {"directed", "lies by"} <= relations["all"], "facts away from the candidates are seen, too"
    assert "lies by" not in relations["seeds"]


def test_inputs_that_a_recipe_does_not_read_are_refused(memory, refused_here, tmp_path) -> None:
    out, html = tmp_path / "o.jsonl", tmp_path / "t.html"
    (tmp_path / "llm.toml").write_text('version = 1\n[facts]\ngate = "llm"\n')
    (tmp_path / "all.toml").write_text('version = 1\n[facts]\nscope = "all"\n')
    (tmp_path / "bad.toml").write_text("version = 1\n[walk]\ndamping = 2\n")
    for args, why in (
        (scoring(memory, "policy-rag", out, "--alpha", 0.5), about("unknown", "alpha", recipe="policy-rag")),
        (scoring(memory, "phase-graph", out, "--policy", html), about("missing", "policy")),
        (scoring(memory, "policy-rag", out, "--words"), about("unused", "words", recipe="policy-rag")),
        (scoring(memory, "policy-rag", out, "--graph-k", 5), about("unknown", "graph_k")),
        (
            scoring(memory, "phase-graph", out, "--policy", tmp_path / "llm.toml"),
            about("type", "config", given="Policy"),
        ),
        (scoring(memory, "triple-hybrid", out, "--case-sensitive"), about("unused", "names", recipe="triple-hybrid")),
        (scoring(memory, "triple-hybrid", out, "--per-document", 1), about("unsupported", "per_document")),
        (scoring(memory, "triple-hybrid", out, "--strict"), about("unused", "entities")),
        (explaining(memory, "triple-hybrid", "--entity", "a", "--strict"), about("unused", "entities")),
        (explaining(memory, "phase-graph", "--out", html), about("unsupported", "out", given="t.html")),
        (scoring(memory, "policy-rag", out, "--k", 150), about("limit", "k", given=150)),
        (explaining(memory, "policy-rag", "--out", tmp_path / "t.txt"), about("choice", "out")),
        (
            scoring(memory, "policy-rag", out, "--policy", tmp_path / "llm.toml"),
            about("missing", "llm"),
        ),
        (scoring(memory, "policy-rag", out, "--policy", tmp_path / "all.toml"), about("missing", "fact_vectors")),
        (
            scoring(memory, "policy-rag", out, "--policy", tmp_path / "bad.toml"),
            about("range", "walk.damping", given=2),
        ),
        (scoring(memory, "policy-rag", out, "--policy", tmp_path / "no.toml"), about("missing", "policy")),
    ):
        assert refused_here(*args) == why, args
    assert not out.exists()
    assert not html.exists()


def test_triples_need_facts_and_vectors(index, files, refused_here, tmp_path) -> None:
    given = (
        "--queries",
        files / "queries.jsonl",
        "--vectors",
        files / "query_vectors.npy",
        "--out",
        tmp_path / "o.jsonl",
    )
    line = refused_here("score", index, *given, "--recipe", "triple-hybrid")
    assert line == about("missing", "index", recipe="TripleHybrid", allowed=["facts", "entity_corpus"])


def test_the_default_policy_is_printed_and_written(output_of, refused_here, tmp_path) -> None:
    text = output_of("policy")
    assert text == Policy().to_toml()
    assert tomllib.loads(text)["version"] == 1
    assert output_of("policy", "--paper") == Policy.paper().to_toml()
    output_of("policy", "--out", tmp_path / "policy.toml")
    assert (tmp_path / "policy.toml").read_text() == text
    assert refused_here("policy", "--out", tmp_path / "policy.toml") == about("exists", "out")
    assert refused_here("policy", "--overwrite") == about("unused", "overwrite", other="out")
    assert output_of("policy", "--check", tmp_path / "policy.toml").endswith(
        "0 of its values differ from the defaults.\n"
    )


def test_an_edited_policy_is_checked(output_of, refused_here, tmp_path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("version = 1\n[walk]\ndamping = 0.75\n[switches]\ngate = false\n[families]\nkinship = 2\n")
    lines = output_of("policy", "--check", path).splitlines()
    assert lines[:3] == [
        "walk.damping = 0.75, by default 0.85",
        "switches.gate = False, by default True",
        "families.kinship = 2, by default 1.0",
    ]
    assert "3 of its values differ" in lines[3]
    path.write_text("version = 1\n[walk]\nspeed = 1\n")
    assert refused_here("policy", "--check", path) == about("unknown", "walk.speed")
    assert refused_here("policy", "--check", path, "--out", tmp_path / "o.toml") == about("conflict", "out")
    assert refused_here("policy", "--check", path, "--paper") == about("conflict", "paper", other="check")
