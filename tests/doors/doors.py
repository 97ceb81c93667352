"""Every way to search an index: what it can be asked, what it answers, and how it says what the retriever says."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, Literal

import hopfuse as hf
import numpy as np
from doors.answers import Answer, Note, Refusal
from doors.shapes import Question
from hopfuse.errors import HopfuseError
from hopfuse.io import Query


@dataclass(frozen=True)
class House:
    """The saved indexes, and what doors are asked through.

    Attributes
    ----------
    folder : Path
        Has the indexes, and files that doors read.
    url : str
        Of a server with an index for each shape and for each recipe that can run on it (:func:`index_name`).
    space : Space, optional
        Where a cluster of Ray runs.
    """

    folder: Path
    url: str = ""
    space: Any = None
    numbers: Any = field(default_factory=count)

    def path(self, shape: str) -> str:
        """Return the directory of the index of a shape."""
        return str(self.folder / shape)

    def new(self, suffix: str) -> Path:
        """Return a path for a file."""
        return self.folder / f"{next(self.numbers)}{suffix}"


#: The head of the cluster of Ray.
CLUSTER = "127.0.0.1:6398"
#: What a server needs.
SERVER = ("click", "rich", "starlette", "msgspec", "uvicorn", "httptools", "prometheus_client", "httpx", "mcp")
#: Asks the index of a shape by a recipe (None: the default) questions that have the same k; a Refusal is raised.
Ask = Callable[[House, str, str | None, Sequence[Question]], list[Answer]]


@dataclass(frozen=True)
class Door:
    """A way to search.

    Attributes
    ----------
    ask : callable
    takes : callable
        Whether it can be asked a question.
    shown : callable
        The retriever's answer as it shows it.
    named : bool
        Whether a request may name the recipe, else the server's configuration does.
    quick : bool
        Whether the quick tier asks it by all recipes, else by the default one.
    tier : {"quick", "full"}
        The tier that asks it.
    few : bool
        Whether it is asked by the default recipe alone, over two shapes.
    through : {"url", "space"}, optional
        The attribute of the house that it is asked through: a fixture.
    needs : sequence of str
        Modules that must be installed.
    """

    ask: Ask
    takes: Callable[[Question], bool] = lambda question: True
    shown: Callable[[Any], Any] = lambda answer: answer
    named: bool = True
    quick: bool = False
    tier: Literal["quick", "full"] = "quick"
    few: bool = False
    through: Literal["url", "space"] | None = None
    needs: Sequence[str] = ()

    @property
    def missing(self) -> list[str]:
        """What it needs and is not installed here."""
        needs = (*self.needs, *(SERVER if self.through == "url" else ()))
        return [name for name in needs if find_spec(name) is None]


def index_name(shape: str, recipe: str | None = None) -> str:
    """Return the name of a shape, as a recipe serves it, among a server's indexes."""
    return shape.replace(" ", "-") + ("" if recipe is None else f".{recipe}")


# ---- What doors do not say, or say in another way --------------------------------------------------------------------

#: The fields of errors: the place of a door that is replaced by the question's own field.
OF_BATCH = {
    r"questions(\[\d+\])?": "text",
    r"vectors(\[\d+\])?": "vector",
    r"entities\[\d+\]": "entities",
    r"allow(\[\d+\])?\.?": "",
}
OF_REQUEST = {r"queries\[\d+\]\.(allow\.?)?": ""}
OF_TOOL = {r"allow\.?": ""}
OF_DIFY = {r"query(\.text)?": "text"}
OF_INFERENCE = {r"(texts|queries)\[\d+\](\.text)?": "text"}
OF_COMMAND = {r"question": "text", r"vectors(\[\d+\])?": "vector", r"where\.?": ""}


def without_class(answer: Any) -> Any:
    """Return an error without its class, which Dify and the Open Inference Protocol do not have."""
    return replace(answer, kind=None) if isinstance(answer, Refusal) else answer


def as_shares(answer: Any) -> Any:
    """Return scores as Dify has them, as shares of the best one."""
    if isinstance(answer, Refusal):
        return without_class(answer)
    best = max((score for _, score in answer.hits), default=0.0)
    return Answer([(id, max(0.0, score / best) if best > 0 else 0.0) for id, score in answer.hits], answer.notes)


def without_sentences(answer: Any) -> Any:
    """Return notes without their sentences, in which a command names its own arguments."""
    if isinstance(answer, Refusal):
        return answer
    return Answer(answer.hits, [note._replace(sentence=None) for note in answer.notes])


def as_sentences(answer: Any) -> Any:
    """Return notes as sentences."""
    if isinstance(answer, Refusal):
        return answer
    return Answer(answer.hits, [Note(None, None, note.sentence) for note in answer.notes])


def with_text_ids(answer: Any) -> Any:
    """Return ids as strings, as documents of frameworks have them, and notes as sentences."""
    if isinstance(answer, Refusal):
        return answer
    return as_sentences(Answer([(str(id), score) for id, score in answer.hits], answer.notes))


def in_documents(answer: Any) -> Any:
    """Return the same, with notes in the metadata of documents: there are none without documents."""
    shown = with_text_ids(answer)
    return shown if isinstance(shown, Refusal) or shown.hits else Answer([], [])


# ---- Python ----------------------------------------------------------------------------------------------------------


def column(values: Sequence[Any]) -> list[Any] | None:
    """Return values of questions, None if no question has one."""
    return None if all(value is None for value in values) else list(values)


def filters(questions: Sequence[Question]) -> Any:
    """Return the filters of questions for Python."""
    return column([None if one.allow is None else hf.where(**one.allow) for one in questions])


@cache
def opened(path: str, recipe: str | None) -> hf.Retriever:
    """Return a retriever over a saved index."""
    return hf.Retriever.open(path, recipe)


def retriever(house: House, shape: str, recipe: str | None, questions: Sequence[Question]) -> list[Answer]:
    """``hopfuse.Retriever``, one search of all questions."""
    try:
        found = opened(house.path(shape), recipe).search(
            column([one.text for one in questions]),
            vectors=column([one.vector for one in questions]),
            entities=column([one.entities for one in questions]),
            allow=filters(questions),
            k=questions[0].k,
        )
    except HopfuseError as error:
        raise Refusal.of(error, OF_BATCH) from error
    return [Answer.of(hits, notes) for hits, notes in zip(found, found.notes, strict=True)]


def scorer(house: House, shape: str, recipe: str | None, questions: Sequence[Question]) -> list[Answer]:
    """``hopfuse.offline``'s scorer over a retriever."""
    from hopfuse.offline import RetrieverScorer

    rows = [Query(str(at), one.text, one.entities, one.vector) for at, one in enumerate(questions)]
    try:
        scored = RetrieverScorer(opened(house.path(shape), recipe), k=questions[0].k).score(rows, 0)
    except HopfuseError as error:
        raise Refusal.of(error, OF_BATCH) from error
    return [Answer.read(row) for row in scored]


# ---- The command line ------------------------------------------------------------------------------------------------


def command(*args: Any, space: Any = None) -> str:
    """Return what a command prints, which is run here or in a space."""
    from cli.cli_files import AS_DATA, run_here  # needs click

    words = (sys.executable, "-m", "hopfuse", *args)
    done = run_here(*args, env=AS_DATA) if space is None else space.run(*words, **AS_DATA)
    if done.returncode == 0:
        return done.stdout
    raise Refusal.read(json.loads(done.stderr.strip().splitlines()[-1])["error"], OF_COMMAND)


def conditions(allow: Mapping[str, Any] | None) -> list[str]:
    """Return conditions as options."""
    return [text for name, value in (allow or {}).items() for text in ("--where", f"{name}={value}")]


def search(
    house: House, shape: str, recipe: str | None, questions: Sequence[Question], *, name: str = "search"
) -> list[Answer]:
    """``hopfuse search --json``, once for each question."""
    answers = []
    for one in questions:
        args: list[Any] = [name, house.path(shape), one.text, "--json", "--k", one.k, *conditions(one.allow)]
        if recipe is not None:
            args += ["--recipe", recipe]
        if one.vector is not None:
            path = house.new(".npy")
            np.save(path, one.vector)
            args += ["--vectors", path]
        args += [text for name in one.entities or () for text in ("--entity", name)]
        said = json.loads(command(*args))
        for hit in said["hits"]:
            hit.setdefault("id", hit.get("name"))  # an entity in a trace
        answers.append(without_sentences(Answer.read(said, OF_COMMAND)))
    return answers


def trace(house: House, shape: str, recipe: str | None, questions: Sequence[Question]) -> list[Answer]:
    """``hopfuse trace --json``, once for each question."""
    return search(house, shape, recipe, questions, name="trace")


def score(
    house: House, shape: str, recipe: str | None, questions: Sequence[Question], *engine: str, space: Any = None
) -> list[Answer]:
    """``hopfuse score``, a run for all questions with the same filter."""
    answers: dict[int, Answer] = {}
    for allow in {str(one.allow): one.allow for one in questions}.values():
        own = [at for at, one in enumerate(questions) if one.allow == allow]
        path, out = house.new(".jsonl"), house.new(".jsonl")
        path.write_text("".join(f"{json.dumps(_row(at, questions[at]))}\n" for at in own), encoding="utf-8")
        args = ["--queries", path, "--out", out, "--k", questions[0].k, *conditions(allow), *engine]
        command("score", house.path(shape), *args, *([] if recipe is None else ["--recipe", recipe]), space=space)
        for line in out.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            answers[int(row["id"])] = Answer.read(row, OF_COMMAND)
    return [answers[at] for at in range(len(questions))]


def _row(number: int, one: Question) -> dict[str, Any]:
    given = {"text": one.text, "entities": one.entities, "vector": None if one.vector is None else one.vector.tolist()}
    return {"id": number} | {name: value for name, value in given.items() if value is not None}


def ray(house: House, shape: str, recipe: str | None, questions: Sequence[Question]) -> list[Answer]:
    """``hopfuse score`` by an actor of Ray."""
    return score(house, shape, recipe, questions, "--engine", "ray", "--address", CLUSTER, space=house.space)


# ---- A server --------------------------------------------------------------------------------------------------------


def http(house: House, shape: str, recipe: str | None, questions: Sequence[Question]) -> list[Answer]:
    """A search as JSON."""
    import httpx

    queries = [_row(at, one) | ({} if one.allow is None else {"allow": one.allow}) for at, one in enumerate(questions)]
    for one in queries:
        del one["id"]
    body = {"index": index_name(shape), "recipe": recipe, "k": questions[0].k, "fields": [], "queries": queries}
    return _results(httpx.post(f"{house.url}/v1/search", json=body, timeout=60).json(), OF_REQUEST)


def _results(said: dict[str, Any], places: Mapping[str, str]) -> list[Answer]:
    if "error" in said:
        raise Refusal.read(said["error"], places)
    return [Answer.read(one) for one in said["results"]]


def arrow(house: House, shape: str, recipe: str | None, questions: Sequence[Question]) -> list[Answer]:
    """A search as an Arrow stream."""
    import httpx
    import pyarrow as pa

    kind = "application/vnd.apache.arrow.stream"
    names = pa.list_(
        pa.int64() if any(isinstance(e, int) for q in questions for e in q.entities or ()) else pa.string()
    )
    types = {"text": pa.string(), "vector": pa.list_(pa.float32()), "entities": names}
    table = pa.table({name: pa.array([getattr(one, name) for one in questions], own) for name, own in types.items()})
    about = {"index": index_name(shape), "recipe": recipe, "k": questions[0].k, "fields": []}
    table = table.replace_schema_metadata({b"hopfuse": json.dumps(about).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body, headers = sink.getvalue().to_pybytes(), {"content-type": kind}
    said = httpx.post(f"{house.url}/v1/search", content=body, headers=headers, timeout=60)
    if said.status_code != 200:
        raise Refusal.read(said.json()["error"], OF_REQUEST)
    found = pa.ipc.open_stream(said.content).read_all()
    notes = json.loads(found.schema.metadata[b"hopfuse"]).get("notes", [[]] * len(questions))
    return [
        replace(Answer.read({"hits": [], "notes": own}), hits=list(zip(row["id"], row["score"], strict=True)))
        for row, own in zip(found.to_pylist(), notes, strict=True)
    ]


def mcp(house: House, shape: str, recipe: str | None, questions: Sequence[Question]) -> list[Answer]:
    """The tool ``search``, a call for each question."""
    import mcp as protocol

    async def call() -> list[Any]:
        async with protocol.Client(f"{house.url}/mcp", mode="auto") as client:
            return [await client.call_tool("search", _tool_arguments(shape, recipe, one)) for one in questions]

    answers = []
    for said in asyncio.run(call()):
        if said.is_error:
            raise Refusal.read(said.structured_content["error"], OF_TOOL)
        answers.append(Answer.read(said.structured_content))
    return answers


def _tool_arguments(shape: str, recipe: str | None, one: Question) -> dict[str, Any]:
    given = {"text": one.text, "entities": one.entities, "allow": one.allow, "k": one.k}
    return {name: value for name, value in given.items() if value is not None} | {"index": index_name(shape, recipe)}


def dify(house: House, shape: str, recipe: str | None, questions: Sequence[Question]) -> list[Answer]:
    """Dify's request, once for each question."""
    import httpx

    answers = []
    for one in questions:
        setting = {"top_k": one.k, "score_threshold": 0.0}
        body = {"knowledge_id": index_name(shape, recipe), "query": one.text, "retrieval_setting": setting}
        said = httpx.post(f"{house.url}/retrieval", json=body, timeout=60).json()
        if "records" not in said:
            raise Refusal.read(said, OF_DIFY)
        hits = [{"id": row["metadata"]["id"], "score": row["score"]} for row in said["records"]]
        answers.append(Answer.read({**said, "hits": hits}))
    return answers


def inference(house: House, shape: str, recipe: str | None, questions: Sequence[Question]) -> list[Answer]:
    """A request of the Open Inference Protocol."""
    import httpx

    texts = {"name": "texts", "shape": [len(questions)], "datatype": "BYTES", "data": [one.text for one in questions]}
    body = {"inputs": [texts], "parameters": {"k": questions[0].k}}
    said = httpx.post(f"{house.url}/v2/models/{index_name(shape, recipe)}/infer", json=body, timeout=60).json()
    if "error" in said:
        raise Refusal.read(said, OF_INFERENCE)
    values = {one["name"]: np.reshape(np.array(one["data"], object), one["shape"]) for one in said["outputs"]}
    notes = json.loads(said.get("parameters", {}).get("notes", "null")) or [[]] * len(questions)
    return [
        replace(Answer.read({"hits": [], "notes": own}), hits=list(zip(ids[:size], scores[:size], strict=True)))
        for ids, scores, size, own in zip(values["ids"], values["scores"], values["counts"], notes, strict=True)
    ]


# ---- Frameworks ------------------------------------------------------------------------------------------------------


def open_searcher(house: House, shape: str, recipe: str | None) -> Any:
    """Return what the adapters of all frameworks search with."""
    from hopfuse.adapters.searcher import Searcher

    return Searcher(house.path(shape), recipe=recipe)


def open_client(house: House, shape: str, recipe: str | None) -> Any:
    """Return the same over the server."""
    from hopfuse.adapters.searcher import Searcher

    return Searcher(house.url, index=index_name(shape), recipe=recipe)


def framework(ask: Callable[[Any, Sequence[Question]], list[Answer]], opened: Any = open_searcher) -> Ask:
    """Return a door that a framework asks over a searcher."""

    def asking(house: House, shape: str, recipe: str | None, questions: Sequence[Question]) -> list[Answer]:
        try:
            return ask(opened(house, shape, recipe), questions)
        except HopfuseError as error:
            raise Refusal.of(error, OF_REQUEST | OF_BATCH) from error

    asking.__doc__ = ask.__doc__
    return asking


def by_searcher(searches: Any, questions: Sequence[Question]) -> list[Answer]:
    """What the adapters of all frameworks search with, here or over the server."""
    texts, allow = [one.text for one in questions], [one.allow for one in questions]
    rows = searches.search(texts, k=questions[0].k, allow=allow)
    return [Answer.of(row, row.notes) for row in rows]


searcher = framework(by_searcher)
remote = framework(by_searcher, open_client)


@framework
def langchain(searches: Any, questions: Sequence[Question]) -> list[Answer]:
    """LangChain's retriever, as a batch."""
    from hopfuse.adapters.langchain import HopfuseRetriever

    texts, allow = [one.text for one in questions], [one.allow for one in questions]
    rows = HopfuseRetriever(source=searches, k=questions[0].k).batch(texts, allow=allow)
    return [_document(row, lambda one: (one.id, one.metadata["score"], one.metadata)) for row in rows]


@framework
def llama_index(searches: Any, questions: Sequence[Question]) -> list[Answer]:
    """LlamaIndex's retriever, once for each question."""
    from hopfuse.adapters.llama_index import HopfuseRetriever

    answers = []
    for one in questions:
        found = HopfuseRetriever(searches, similarity_top_k=one.k, allow=one.allow).retrieve(one.text)
        answers.append(_document(found, lambda node: (node.node.id_, node.score, node.node.metadata)))
    return answers


@framework
def haystack(searches: Any, questions: Sequence[Question]) -> list[Answer]:
    """Haystack's component, once for each question."""
    from hopfuse.adapters.haystack import HopfuseRetriever

    component = HopfuseRetriever(searches)
    answers = []
    for one in questions:
        conditions = [
            {"field": f"meta.{name.partition('__')[0]}", "operator": ">=" if "__ge" in name else "==", "value": value}
            for name, value in (one.allow or {}).items()
        ]
        filters = {"operator": "AND", "conditions": conditions} if conditions else None
        found = component.run(one.text, top_k=one.k, filters=filters)
        answers.append(Answer([(hit.id, hit.score) for hit in found["documents"]], _sentences(found["notes"])))
    return answers


@framework
def dspy(searches: Any, questions: Sequence[Question]) -> list[Answer]:
    """DSPy's retriever, one call with all questions."""
    from hopfuse.adapters.dspy import HopfuseRetriever

    texts, allow = [one.text for one in questions], [one.allow for one in questions]
    made = HopfuseRetriever(searches, k=questions[0].k)(texts, allow=allow)
    return [Answer(list(zip(one.ids, one.scores, strict=True)), _sentences(one.notes)) for one in made]


def _document(found: Sequence[Any], read: Callable[[Any], tuple[str, float, Mapping[str, Any]]]) -> Answer:
    """Return the answer in documents, of which each has the notes."""
    rows = [read(one) for one in found]
    notes = [_sentences(about.get("hopfuse_notes", ())) for _, _, about in rows]
    if any(one != notes[0] for one in notes):
        raise AssertionError(f"documents of one question have other notes: {notes}")
    return Answer([(id, score) for id, score, _ in rows], notes[0] if notes else [])


def _sentences(notes: Sequence[str]) -> list[Note]:
    return [Note(None, None, one) for one in notes]


# ---- All -------------------------------------------------------------------------------------------------------------


def _has_text(one: Question) -> bool:
    return one.text is not None


def _text_only(one: Question) -> bool:
    return one.given <= {"text", "allow"} and _has_text(one)


def _names(one: Question) -> bool:
    """Return whether a question's entities are given by name."""
    return all(isinstance(name, str) for name in one.entities or ())


def _for_search(one: Question) -> bool:
    """Return whether ``hopfuse search`` can be asked a question."""
    return _has_text(one) and _names(one) and one.entities != []


COMMAND = ("click", "rich")
DOORS: dict[str, Door] = {
    "Retriever": Door(retriever, quick=True),
    "offline": Door(scorer, lambda one: one.allow is None),
    "search": Door(search, _for_search, without_sentences, needs=COMMAND),
    "trace": Door(trace, _for_search, without_sentences, needs=COMMAND),
    "score": Door(score, quick=True, needs=COMMAND),
    "Ray": Door(ray, tier="full", few=True, through="space", needs=(*COMMAND, "ray")),
    "HTTP": Door(http, quick=True, through="url"),
    "Arrow": Door(arrow, lambda one: _names(one) and one.allow is None, through="url", needs=("pyarrow",)),
    "MCP": Door(mcp, lambda one: _has_text(one) and _names(one) and one.vector is None, named=False, through="url"),
    "Dify": Door(dify, lambda one: _text_only(one) and one.allow is None, as_shares, named=False, through="url"),
    "inference": Door(inference, lambda one: one.given == {"text"}, without_class, named=False, through="url"),
    "Searcher": Door(searcher, _text_only),
    "Client": Door(remote, _text_only, through="url"),
    "LangChain": Door(langchain, _text_only, in_documents, needs=("langchain_core",)),
    "LlamaIndex": Door(llama_index, _text_only, in_documents, needs=("llama_index",)),
    "Haystack": Door(haystack, _text_only, with_text_ids, needs=("haystack",)),
    "DSPy": Door(dspy, _text_only, as_sentences, needs=("dspy",)),
}
