"""PolicyRAG with a language model behind HTTP: gate and grounded answers, the model a plain reader of its prompts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hopfuse.recipes import Policy, PolicyRAG
from llm.chat_server import ChatServer
from recipes.policy_world import PolicyWorld

pytest.importorskip("openai", reason="openai is not installed: pip install 'hopfuse[llm]'")
from hopfuse.llm import ChatEndpoint


def reader(request: dict[str, Any]) -> dict[str, Any]:
    """Keeps facts that share a word with the question; answers with the tail of such a fact in the passages."""
    prompt = request["messages"][0]["content"]
    asked = re.search(r"Question: (.*)", prompt)
    assert asked is not None
    relation = re.search(r"who (.*?) [A-Z]", asked[1])
    assert relation is not None
    facts = re.findall(r"^(\d+)\. (.*)$", prompt, re.M)
    if facts:
        return {"keep": [int(number) for number, text in facts if relation[1] in text][:4]}
    told = re.search(rf"([A-Z]\w+ ?[A-Z]?\w*) {relation[1]} ([A-Z]\w+(?: [A-Z]\w+)?)", prompt.split("Question:")[0])
    return {"answer": "Not found in retrieved context" if told is None else told[2]}


@pytest.fixture
def endpoint() -> Iterator[tuple[ChatServer, ChatEndpoint]]:
    with ChatServer(reader) as server:
        yield server, ChatEndpoint(server.url, model="reader", api_key="none")


def test_a_model_gates_and_answers_from_the_passages_alone(endpoint: tuple[ChatServer, ChatEndpoint]) -> None:
    server, llm = endpoint
    world = PolicyWorld(2)
    policy = Policy.from_toml("version = 1\n[facts]\ngate = 'llm'\n[answers]\npassages = 3")
    recipe = PolicyRAG(world.index, policy, encoder=world.encoder, llm=llm)
    found = world.ask(recipe, k=5)
    for question, row in zip(world.questions, found.facts, strict=True):
        relation = re.search(r"who (.*?) [A-Z]", question)
        assert relation is not None
        texts = {verdict.fact: world.fact_texts[verdict.fact] for verdict in row}
        assert {v.fact for v in row if v.kept} <= {f for f, text in texts.items() if relation[1] in text}
        assert all(v.reason in ("kept by the model", "dropped by the model") for v in row)
    gated = len(server.requests)
    assert gated == sum(bool(row) for row in found.facts)
    answers = recipe.answer(world.questions, found)
    assert len(server.requests) == gated + len(answers)
    assert policy.answers.not_found in answers
    assert len(set(answers)) > 1
    for b, (answer, prompt) in enumerate(zip(answers, server.prompts()[gated:], strict=False)):
        read = [world.memory.texts[p] for p, _ in found.hits.row(b)[:3]]
        assert answer == policy.answers.not_found or any(answer in text for text in read)
        assert prompt.count("\n\n") >= 3
