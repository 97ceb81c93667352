"""``diagnose`` refuses a policy that it cannot apply before any search."""

from __future__ import annotations

from importlib import import_module

import pytest
from cli.cli_files import about, write_jsonl

pytest.importorskip("wordllama", reason="stability encodes texts with WordLlama (extra demo)")

GATE = ('[facts]\ngate = "llm"', about("missing", "llm"))
POOL = ("[reranking]\npool = 5", about("limit", "k"))
BAD = ("[walk]\ndamping = 2", about("range", "walk.damping", given=2))
POLICIES = {"gate.toml": GATE, "pool.toml": POOL, "bad.toml": BAD}


def policy(folder, name, text):
    path = folder / name
    path.write_text(f"version = 1\n{text}\n", encoding="utf-8")
    return path


def stability(index, folder, *more):
    rows = write_jsonl(folder / "questions.jsonl", [{"id": "a", "text": "What is Ada?"}])
    asked = ("--queries", rows, "--encoder", "wordllama:64", "--stability", "policy-rag")
    return ("diagnose", index, *asked, "--k", 6, *more)


@pytest.mark.parametrize("name", [*POLICIES, "nothere.toml"])
def test_diagnose_reads_the_policy_before_it_searches(index, tmp_path, refused_here, name):
    path = tmp_path / name
    text, why = POLICIES.get(name, (None, about("missing", "policy")))
    path = path if text is None else policy(tmp_path, name, text)
    assert refused_here(*stability(index, tmp_path, "--policy", path)) == why


def test_diagnose_makes_every_recipe_before_it_searches(index, tmp_path, refused_here, monkeypatch):
    searched = []
    module = import_module("hopfuse.cli.diagnose")
    monkeypatch.setattr(module, "search_legs", lambda *asked, **options: searched.append(asked))
    scope = policy(tmp_path, "scope.toml", '[facts]\nscope = "all"')
    message = refused_here(*stability(index, tmp_path, "--stability", "phase-graph", "--policy", scope))
    assert message == about("missing", "fact_vectors")
    assert searched == []
