"""``--model`` of ``score`` and ``explain``: the gate and the grounded answers over HTTP are the recipe's."""

from __future__ import annotations

import json
import re
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cli.cli_files import AS_DATA, about, hopfuse, killed, read_jsonl, run, said_error, write_jsonl
from cli.recipe_files import ASKED, QUESTION, by_hand, explaining, rows_of, scoring
from hopfuse.recipes import Policy, PolicyRAG
from llm.chat_server import ChatServer, failure

pytest.importorskip("openai", reason="openai is not installed: pip install 'hopfuse[llm]'")
from hopfuse.llm import ChatEndpoint

KEY = "sk-secret-2"
GATED = '[facts]\ngate = "llm"\n'
NOT_FOUND = Policy().answers.not_found


def reader(request: dict[str, Any]) -> dict[str, Any]:
    """A model that keeps facts with the question's verb, and answers with the director or the place of birth."""
    prompt = request["messages"][0]["content"]
    asked = re.search(r"Question: (.*)", prompt)
    assert asked is not None
    verb = next((word for word in ("directed", "born") if word in asked[1]), "?")
    facts = re.findall(r"^(\d+)\. (.*)$", prompt, re.M)
    if facts:
        return {"keep": [int(number) for number, text in facts if verb in text]}
    told = re.search(r"(\w+ \w+) directed", prompt.split("Question:")[0])
    return {"answer": told[1] if told is not None and verb == "directed" else NOT_FOUND}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def answered(memory: Any, url: str, text: str = "version = 1\n") -> tuple[Any, Any, list[str]]:
    """Return the recipe's result with this model, the names of its hits, and its answers."""
    index = hf.Index.open(memory / "index")
    recipe = PolicyRAG(index, Policy.from_toml(text), llm=ChatEndpoint(url, model="m"))
    texts = [text for text, _ in ASKED]
    asked = {"vectors": np.load(memory / "vectors.npy"), "entities": [names for _, names in ASKED]}
    found = recipe.search(texts, **asked, k=10)
    return found, index.passage_ids, recipe.answer(texts, found)


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_answers_are_the_recipes_and_eval_reads_them(memory, output_of, tmp_path, suffix) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    out, gold = tmp_path / f"out.{suffix}", tmp_path / "gold.jsonl"
    with ChatServer(reader) as server:
        asking = ("--endpoint", server.url, "--model", "m", "--answers", "--cache", tmp_path / "cache")
        output_of(*scoring(memory, "policy-rag", out, *asking, "--concurrency", 1, "--chunk", 2))
        first = len(server.requests)
        assert (set(server.keys), server.most_at_once) == ({KEY}, 1)
        output_of(*scoring(memory, "policy-rag", out, *asking, "--overwrite"))
        assert len(server.requests) == first == 3, "a question each, and none twice"
        found, names, answers = answered(memory, server.url)
    assert answers == ["Ridley Scott", NOT_FOUND, NOT_FOUND]
    if suffix == "jsonl":
        rows = read_jsonl(out)
        assert [row["hits"] for row in rows] == rows_of(found, names)
        assert [row["answer"] for row in rows] == answers
    write_jsonl(gold, [{"id": str(at), "gold": ["a"], "answer": "Scott"} for at in range(3)])
    output_of("eval", "--qrels", gold, "--run", f"llm={out}", "--metric", "answer_f1", "--out", tmp_path / "e.json")
    values = json.loads((tmp_path / "e.json").read_text())["per_query"]["values"]["llm"]["answer_f1"]
    assert values == pytest.approx([2 / 3, 0, 0])
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in written if KEY.encode() in path.read_bytes()]


def test_the_gate_is_the_models(memory, output_of, tmp_path) -> None:
    (tmp_path / "p.toml").write_text(f"version = 1\n{GATED}")
    with ChatServer(reader) as server:
        asking = ("--endpoint", server.url, "--model", "m", "--policy", tmp_path / "p.toml")
        output_of(*scoring(memory, "policy-rag", tmp_path / "out.jsonl", *asking))
        assert 1 <= len(server.requests) <= 3
        found, names, answers = answered(memory, server.url, f"version = 1\n{GATED}")
        rows = read_jsonl(tmp_path / "out.jsonl")
        assert [row["hits"] for row in rows] == rows_of(found, names)
        assert not any("answer" in row for row in rows)
        trace = json.loads(output_of(*explaining(memory, "policy-rag", *asking, "--answers", "--json")))
        shown = output_of(*explaining(memory, "policy-rag", *asking, "--answers"))
    assert {fact["reason"] for fact in trace["facts"]} <= {"kept by the model", "dropped by the model"}
    assert [fact["relation"] for fact in trace["facts"] if fact["kept"]] == ["directed"]
    assert (trace["question"], trace["answer"]) == (QUESTION, answers[0])
    assert "kept by the model" in shown
    assert shown.rstrip().endswith(f"Answer: {answers[0]}")


def test_a_killed_run_asks_only_what_is_left(memory, tmp_path) -> None:
    out, whole = tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
    with ChatServer(reader) as server:
        asking = ("--endpoint", server.url, "--model", "m", "--answers", "--part-rows", 1)
        killed(("os", "replace", 4), *scoring(memory, "policy-rag", out, *asking))
        asked = len(server.requests)
        hopfuse(*scoring(memory, "policy-rag", out, *asking))
        assert len(server.requests) - asked < 3
        hopfuse(*scoring(memory, "policy-rag", whole, *asking))
    assert out.read_bytes() == whole.read_bytes()


def test_another_model_does_not_go_on_with_the_run(memory, refused_here, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    with ChatServer(reader) as server:
        asking = ("--endpoint", server.url, "--answers", "--part-rows", 1)
        killed(("os", "replace", 4), *scoring(memory, "policy-rag", out, *asking, "--model", "m"))
        asked = len(server.requests)
        assert refused_here(*scoring(memory, "policy-rag", out, *asking, "--model", "n")) == about(
            "exists", "out", names="model"
        )
        assert refused_here(*scoring(memory, "policy-rag", out)) == about(
            "exists", "out", names="answers, endpoint, model, output"
        )
        assert len(server.requests) == asked


def test_a_wrong_key_is_one_line(memory, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    with ChatServer(lambda request: failure(401, f"Incorrect API key provided: {KEY}")) as server:
        asking = ("--endpoint", server.url, "--model", "m", "--answers", "--concurrency", 1)
        done = run(*scoring(memory, "policy-rag", out, *asking), env=AS_DATA)
        assert len(server.requests) == 1
    refusal = said_error(done)
    assert (refusal.kind, refusal.code) == ("EndpointError", "reply")
    assert KEY not in done.stderr
    assert not out.exists()


def test_options_that_exclude_each_other_are_refused_before_a_request(
    memory, refused_here, tmp_path, monkeypatch
) -> None:
    out, gated = tmp_path / "out.jsonl", tmp_path / "p.toml"
    gated.write_text(f"version = 1\n{GATED}")
    off = tmp_path / "off.toml"
    off.write_text(f"version = 1\n{GATED}[switches]\ngate = false\n")
    with ChatServer(reader) as server:
        model = ("--endpoint", server.url, "--model", "m")
        for recipe, args, why in (
            ("policy-rag", model, about("unused", "model")),
            ("policy-rag", (*model, "--policy", off), about("unused", "model")),
            ("policy-rag", ("--answers",), about("unused", "answers", other="model")),
            ("policy-rag", ("--policy", gated), about("missing", "llm")),
            ("policy-rag", ("--endpoint", server.url, "--answers"), about("unused", "endpoint", other="model")),
            ("policy-rag", ("--cache", tmp_path / "c"), about("unused", "cache", other="model")),
            ("policy-rag", ("--concurrency", 2), about("unused", "concurrency", other="model")),
            ("policy-rag", (*model, "--answers", "--concurrency", 0), about("range", "concurrency", given=0)),
            ("policy-rag", ("--endpoint", "localhost", "--model", "m", "--answers"), about("syntax", "base_url")),
            ("policy-rag", (*model, "--answers", "--option", "hops=2"), about("unknown", "hops", recipe="policy-rag")),
            ("policy-rag", (*model, "--answers", "--k", 10**6), about("limit", "k")),
            ("phase-graph", (*model, "--answers"), about("unused", "llm", recipe="phase-graph")),
            ("hybrid-rrf", ("--cache", tmp_path / "c"), about("unused", "cache", other="model")),
        ):
            assert refused_here(*scoring(memory, recipe, out, *args)) == why, args
            assert refused_here(*explaining(memory, recipe, *args)) == why, args
        monkeypatch.delenv("OPENAI_API_KEY")
        keyless = scoring(memory, "policy-rag", out, "--model", "m", "--answers")
        assert refused_here(*keyless) == about("missing", "api_key")
        assert server.requests == []
    assert not out.exists()
    assert rows_of(*by_hand(memory, "policy-rag"))[0], "without a model there are passages all the same"
