"""The Python of docs/integrations.md runs as it stands there, but for the address of the server that it asks."""

from __future__ import annotations

import re
from pathlib import Path

import hopfuse as hf
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
ROWS = [
    {"id": name, "text": text, "metadata": {"tenant": "a"}}
    for name, text in (("ada", "Ada wrote notes on the engine."), ("babbage", "Babbage designed the engine."))
]


def run(adapter, url, **known):
    """Run the block of an adapter that asks a server, and then that which adds to a folder and deletes from it."""
    asking, adding = [one for one in BLOCKS if f"from hopfuse.adapters.{adapter} import" in one]
    assert "http://localhost:8080" in asking
    for text in (asking.replace("http://localhost:8080", url), adding):
        exec(compile(text, f"docs/integrations.md, {adapter}", "exec"), known)
    assert hf.Index.open("memory").num_passages == (1 if adapter == "langchain" else 0)
    return known


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    from adapters.frameworks import served

    for package in ("uvicorn", "ahocorasick", "httpx"):
        pytest.importorskip(package, reason=f"hopfuse serve and its client need {package}")
    folder = tmp_path_factory.mktemp("page") / "index"
    hf.Index.build(passages=ROWS).save(folder)
    with served(folder) as url:
        yield url


def test_langchain(address):
    pytest.importorskip("langchain_core", reason="needs the extra langchain")
    known = run("langchain", address)
    assert known["documents"][0].id == "babbage"
    assert known["rows"][0][0].id == "ada"
    assert [one.id for one in known["moved"]] == ["t1"]


def test_llama_index(address, tmp_path):
    pytest.importorskip("llama_index.core", reason="needs the extra llamaindex")
    from llama_index.core import MockEmbedding
    from llama_index.core.graph_stores import ChunkNode, SimplePropertyGraphStore
    from llama_index.core.schema import NodeWithScore, TextNode
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

    hf.Index.build(passages=ROWS).save(tmp_path / "index")
    store = SimplePropertyGraphStore()
    store.upsert_nodes([ChunkNode(id_=row["id"], text=row["text"]) for row in ROWS])
    known = run(
        "llama_index",
        address,
        filters=MetadataFilters(filters=[MetadataFilter(key="tenant", value="a")]),
        nodes_of_another=[NodeWithScore(node=TextNode(id_="ada", text="own"), score=0.5)],
        property_graph_store=store,
        embed_model=MockEmbedding(embed_dim=2),
    )
    assert known["nodes"][0].node_id == "babbage"
    assert known["fused"][0].text == "own"
    assert {node.node_id for node in known["walking"].retrieve("Who?")} == {"ada", "babbage"}
    assert [one.text for one in known["moved"]] == ["Ada moved to London."]


def test_haystack(address):
    pytest.importorskip("haystack", reason="needs the extra haystack")
    known = run("haystack", address, filters={"field": "meta.tenant", "operator": "==", "value": "a"})
    assert known["loaded"].run({"retriever": {"query": "engine designed"}})["retriever"]["documents"][0].id == "babbage"
    assert [one.id for one in known["moved"]] == ["t1"]


def test_dspy(address):
    dspy = pytest.importorskip("dspy", reason="needs the extra dspy")
    before = dspy.settings.rm
    known = run("dspy", address)
    try:
        assert known["retriever"]("Who designed the engine?").ids[0] == "babbage"
        assert known["moved"].ids == ["t1"]
        assert dspy.Retrieve(k=1)("Who designed the engine?").passages == [ROWS[1]["text"]]
    finally:
        dspy.configure(rm=before)
