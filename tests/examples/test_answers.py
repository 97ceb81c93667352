"""examples/answers.py over HTTP: prompts, checked citations, questions without an answer, and failures."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import hopfuse as hf
import processes
import pytest
from hopfuse.llm import ChatEndpoint
from llm.chat_server import Answer, ChatServer, Reply, failure, in_turn

for package in ("openai", "jsonschema", "wordllama", "bm25s"):
    pytest.importorskip(package, reason="the example needs the extras demo and llm")

from examples import answers as example  # noqa: E402

ROOT = Path(__file__).parents[2]
CHUNKS = [
    {"id": "a", "title": "Babbage", "text": "Charles Babbage designed the Analytical Engine in London."},
    {"id": "b", "title": "Thames", "text": "The Thames flows through London."},
    {"id": "c", "title": "Seine", "text": "The Seine flows through Paris."},
]
RIVER = "Which river flows through London?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("answers") / "my-index"
    hf.Index.build(CHUNKS, reader="words", encoder="wordllama:64").save(path)
    return path


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], ChatServer]]:
    with ExitStack() as running:
        yield lambda answer: running.enter_context(ChatServer(answer))


def ask(folder: Path, server: ChatServer, *questions: str, k: int = 2, retries: int = 2) -> list[example.Answer]:
    model = ChatEndpoint(server.url, model="m", retries=retries)
    return example.answers(hf.Retriever.open(folder), model, questions, k=k)


def from_the_thames(request: dict[str, Any]) -> dict[str, Any]:
    """Answer as a model that reads the passages: cite the one about the Thames by its number."""
    prompt = request["messages"][-1]["content"]
    (number,) = re.findall(r"^\[(\d+)\] Thames$", prompt, re.MULTILINE)
    return {"answer": f"The Thames [{number}]."}


def test_the_program_prints_an_answer_and_the_passages_that_it_cites(folder, serve) -> None:
    server = serve(from_the_thames)
    command = [sys.executable, "examples/answers.py", str(folder), RIVER, "--endpoint", server.url, "--model", "m"]
    done = processes.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "HOPFUSE_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr
    question, answer, cited = done.stdout.splitlines()
    (number,) = re.findall(r"^The Thames \[(\d)\]\.$", answer)
    assert question == RIVER
    assert cited == f"  [{number}] Thames: The Thames flows through London."
    system, user = server.requests[0]["messages"]
    assert system == {"role": "system", "content": example.INSTRUCTIONS}
    assert user["content"].startswith("[1] ")
    assert f"\n\nQuestion: {RIVER}" in user["content"]


def test_a_citation_of_an_unknown_passage_is_refused_and_asked_again(folder, serve) -> None:
    server = serve(in_turn({"answer": "The Thames [1, 7]."}, {"answer": "The Thames."}, {"answer": "The Thames [2]."}))
    (answer,) = ask(folder, server, RIVER)
    assert answer.text == "The Thames [2]."
    assert list(answer.cited) == [2]
    second, third = server.prompts()[1:]
    assert "[7], and the passages are [1, 2]" in second
    assert "cites no passage" in third


def test_an_answer_that_cites_unknown_passages_to_the_end_is_not_given(folder, serve) -> None:
    server = serve(in_turn({"answer": "The Thames [3]."}))
    (answer,) = ask(folder, server, RIVER)
    assert len(server.requests) == 3
    assert (answer.text, answer.cited) == (None, {})
    assert "cites [3]" in answer.reason


def test_no_citations_are_zero_or_beyond_the_passages() -> None:
    given = range(1, 3)
    assert example.check_citations({"answer": "So [1][2], and [2, 1]."}, given) == "So [1][2], and [2, 1]."
    assert example.check_citations({"answer": None}, given) is None
    for text in ("So [0].", "So [1][3].", "So [1, 30].", "So.", "So [a].", "", " "):
        with pytest.raises(ValueError, match="answer"):
            example.check_citations({"answer": text}, given)


def test_a_model_may_say_that_the_passages_have_no_answer(folder, serve) -> None:
    (answer,) = ask(folder, serve(in_turn({"answer": None})), RIVER)
    assert answer == example.Answer(None, {}, "the passages do not have the answer")


def test_the_model_is_not_asked_where_nothing_was_found(serve) -> None:
    index = hf.Index.build([*CHUNKS, {"id": "d", "text": "A fourth."}], reader="words")  # words alone
    server = serve(from_the_thames)
    model = ChatEndpoint(server.url, model="m")
    found, lost = example.answers(hf.Retriever(index), model, [RIVER, "Xyzzy?"], k=3)
    assert found.text is not None
    assert lost == example.Answer(None, {}, "nothing was found")
    assert len(server.requests) == 1


def test_one_failure_leaves_the_other_answers(folder, serve) -> None:
    def answer(request: dict[str, Any]) -> Reply | dict[str, Any]:
        return Reply("") if "Paris" in request["messages"][-1]["content"].splitlines()[-1] else {"answer": "Yes [1]."}

    questions = (RIVER, "Which river flows through Paris?")
    answered, failed = ask(folder, serve(lambda request: answer(shortened(request))), *questions, retries=1)
    assert answered.text == "Yes [1]."
    assert failed.text is None
    assert "no usable answer after 2 requests" in failed.reason


def shortened(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request without what the endpoint appends to the question, or says of a wrong answer."""
    first = next(message for message in request["messages"] if message["role"] == "user")
    question = re.search(r"^Question: .*$", first["content"], re.MULTILINE)
    assert question is not None
    return {"messages": [{"role": "user", "content": question[0]}]}


def run_main(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["answers.py", *words, "--model", "m"])
    return example.main()


def test_an_endpoint_that_is_down_is_reported(folder, monkeypatch, capsys) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        assert run_main(monkeypatch, str(folder), RIVER, "--endpoint", url) == 1
    shown = capsys.readouterr()
    assert "No answer: " in shown.out
    assert "cannot be reached" in shown.out


def test_a_refused_key_or_a_missing_index_is_an_error(folder, tmp_path, serve, monkeypatch, capsys) -> None:
    server = serve(lambda request: failure(401, "no such key"))
    assert run_main(monkeypatch, str(folder), RIVER, "--endpoint", server.url) == 1
    assert "error: " in capsys.readouterr().err
    assert run_main(monkeypatch, str(tmp_path / "none"), RIVER, "--endpoint", server.url) == 1
    assert "error: " in capsys.readouterr().err


def test_the_program_of_the_guide_runs(folder, serve, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder.parent)
    page = (ROOT / "docs" / "guides" / "answers.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    server = serve(in_turn({"answer": "It is so [1]."}))
    assert "http://localhost:11434/v1" in program
    exec(compile(program.replace("http://localhost:11434/v1", server.url), "answers.md", "exec"), {})
    assert len(re.findall(r"^It is so \[1\]\. \['[abc]'\]$", capsys.readouterr().out, re.MULTILINE)) == 2
