"""A policy that a command cannot follow to the end is refused before any work."""

from __future__ import annotations

import pytest
from cli.cli_files import write_jsonl
from cli.demo_folders import write_graph, write_metaqa
from hopfuse.cli import diagnose

pytest.importorskip("wordllama", reason="stability and the demo encode texts with WordLlama (extra demo)")

GATE = ('[facts]\ngate = "llm"', 'gate.toml has facts.gate = "llm", which needs a language model')
POOL = ("[reranking]\npool = 5", "pool.toml ranks 5 passages; ask for fewer, or raise its reranking.pool")
BAD = ("[walk]\ndamping = 2", "bad.toml: walk.damping is 2")
POLICIES = {"gate.toml": GATE, "pool.toml": POOL, "bad.toml": BAD}


def policy(folder, name, text):
    path = folder / name
    path.write_text(f"version = 1\n{text}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", POLICIES)
def test_the_demo_saves_nothing(tmp_path, refused_here, name):
    text, why = POLICIES[name]
    data, out = write_metaqa(tmp_path / "data"), tmp_path / "out"
    asked = ("demo", "--data", data, "--recipe", "policy-rag", "--policy", policy(tmp_path, name, text), "--out", out)
    assert why in refused_here(*asked)
    assert not out.exists()


def test_a_gate_that_is_switched_off_asks_no_model(tmp_path, said):
    text = '[facts]\ngate = "llm"\n[switches]\ngate = false'
    more = ("--recipe", "policy-rag", "--policy", policy(tmp_path, "off.toml", text), "--questions", 2, "--threads", 1)
    assert "switches.gate False" in said("demo", "--data", write_metaqa(tmp_path / "data"), *more)


def test_the_demo_needs_vectors_of_entities_for_seeds_by_vectors(tmp_path, refused_here, said):
    asked = ("demo", "--recipe", "policy-rag", "--policy", policy(tmp_path, "p.toml", '[seeds]\nsource = "both"'))
    asked += ("--out", tmp_path / "out", "--questions", 2, "--threads", 1)
    why = 'p.toml has seeds.source = "both", and there are no vectors of the entities here'
    assert why in refused_here(*asked)
    assert why in refused_here(*asked, "--data", write_metaqa(tmp_path / "metaqa"))
    assert not (tmp_path / "out").exists()
    assert "policy: seeds.source both" in said(*asked, "--data", write_graph(tmp_path / "graph"))


def stability(index, folder, *more):
    rows = write_jsonl(folder / "questions.jsonl", [{"id": "a", "text": "What is Ada?"}])
    asked = ("--questions", rows, "--encoder", "wordllama:64", "--stability", "policy-rag")
    return ("diagnose", index, *asked, "--k", 6, *more)


@pytest.mark.parametrize("name", [*POLICIES, "nothere.toml"])
def test_diagnose_reads_the_policy_before_the_index(tmp_path, refused_here, name):
    text, why = POLICIES.get(name, (None, "nothere.toml cannot be read as UTF-8 text"))
    path = tmp_path / name if text is None else policy(tmp_path, name, text)
    assert why in refused_here(*stability(tmp_path / "no index", tmp_path, "--policy", path))


def test_diagnose_asks_no_more_than_the_default_policy_ranks(tmp_path, refused_here):
    said = refused_here(*stability(tmp_path / "no index", tmp_path, "--k", 150))
    assert "--k is 150, and the default policy ranks 100 passages" in said


def test_diagnose_makes_every_recipe_before_it_searches(index, tmp_path, refused_here, monkeypatch):
    searched = []
    monkeypatch.setattr(diagnose, "search", lambda *asked: searched.append(asked))
    scope = policy(tmp_path, "scope.toml", '[facts]\nscope = "all"')
    said = refused_here(*stability(index, tmp_path, "--stability", "phase-graph", "--policy", scope))
    assert 'the policy has facts.scope = "all": give --encoder, and an index with facts' in said
    assert searched == []
