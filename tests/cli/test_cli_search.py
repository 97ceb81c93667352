"""``hopfuse search`` prints passages; ``--allow`` of ``search``, ``trace`` and ``score``."""

from __future__ import annotations

import json

import hopfuse as hf
import numpy as np
import pytest
from cli.cli_files import about, read_jsonl, write_jsonl
from cli.recipe_files import ASKED, QUESTION, explaining, scoring
from hopfuse.lexical import FTS5
from hopfuse.recipes import HybridRRF, PhaseGraph

NOON = "2024-05-01T12:00:00Z"
CHUNKS = [
    {"id": 7, "title": "Thames", "text": "The Thames flows through London to the \x1b]0;owned\x07\x1b[31msea."},
    {"id": 8, "title": "Ada", "text": "Ada wrote notes on the Engine."},
]


@pytest.fixture
def plain(tmp_path):
    """Return an index of only two passages."""
    hf.Index.build(passages=CHUNKS).save(tmp_path / "plain")
    return tmp_path / "plain"


def test_the_encoder_of_the_index_is_loaded_by_its_name(output_of, refused_here, tmp_path) -> None:
    pytest.importorskip("wordllama")
    from hopfuse.encoders import WordLlamaEncoder

    chunks, index = write_jsonl(tmp_path / "chunks.jsonl", CHUNKS), tmp_path / "index"
    output_of("build", chunks, "--encoder", "wordllama:64", "--out", index)
    shown = output_of("search", index, "Which river flows through London?", "--words", "fts5")
    assert shown.startswith("1. 0.3000  7  Thames\n   The Thames flows through London")
    assert "\n2. 0.1429  8  Ada\n" in shown
    found = json.loads(output_of("search", index, "river", "--words", "none", "-k", 1, "--json"))
    opened = hf.Index.open(index)
    (hit,) = HybridRRF(opened, encoder=WordLlamaEncoder(64)).search(["river"], k=1)[0]
    row = {name: getattr(hit, name) for name in ("id", "row", "score", "title", "text")}
    assert found == {"question": "river", "hits": [{"rank": 1, **row}]}
    line = refused_here("search", index, "river", "--encoder", "wordllama")
    assert line == about("conflict", "encoder")
    hf.Index.build(passages=CHUNKS, vectors=np.eye(2)).save(tmp_path / "mine")
    line = refused_here("search", tmp_path / "mine", "river", "--encoder", "wordllama:64")
    assert line == about("shape", "encoder", given=64)


def test_a_text_is_printed_in_part_or_in_full(output_of, refused_here, tmp_path) -> None:
    text = "The Thames\nflows " + "on and " * 60 + "on."
    hf.Index.build(passages=[{"text": text}]).save(tmp_path / "long")
    asked = ("search", tmp_path / "long", "Thames", "--words", "fts5")
    shown = " ".join(output_of(*asked).split())
    assert shown.endswith(" " + " ".join(text.split())[:159] + "…")
    assert " ".join(output_of(*asked, "--full").split()).endswith(" ".join(text.split()))
    assert json.loads(output_of(*asked, "--json"))["hits"][0]["text"] == text
    assert refused_here(*asked, "--json", "--full") == about("conflict", "full", other="json")


def test_text_cannot_steer_the_terminal(plain, output_of) -> None:
    for shown in (
        output_of("search", plain, "Which river is by London?", "--words", "fts5"),
        output_of("search", plain, "London", "--words", "fts5", "--json"),
        output_of("trace", plain, "London \x1b[31m", "--words", "fts5"),
    ):
        assert "Thames" in shown
        assert not any(ord(character) < 32 and character != "\n" for character in shown)


def test_nothing_is_found(plain, output_of) -> None:
    assert output_of("search", plain, "Who?", "--words", "fts5") == "Nothing was found.\n"


def test_a_recipe_that_an_index_cannot_run_is_refused(plain, refused_here) -> None:
    pytest.importorskip("wordllama", reason="the encoder is WordLlama")
    line = refused_here("search", plain, "river", "--recipe", "phase-graph", "--encoder", "wordllama")
    assert line == about("missing", "index", recipe="PhaseGraph", allowed=["corpus", "graph"])
    assert refused_here("search", plain, "river", "--allow-scope", "results") == about("unused", "allow_scope")


@pytest.mark.parametrize("scope", ["isolated", "results"])
def test_only_allowed_passages_are_found(memory, output_of, tmp_path, scope) -> None:
    index = hf.Index.open(memory / "index")
    vectors, names = np.load(memory / "vectors.npy"), [names for _, names in ASKED]
    asked = {"vectors": vectors, "entities": names, "allow": ["a", "c"], "allow_scope": scope}
    expected = PhaseGraph(index).search([text for text, _ in ASKED], **asked)
    (tmp_path / "ids.txt").write_text("a\nc\n", encoding="utf-8")
    for number, allow in enumerate(("a,c", tmp_path / "ids.txt")):
        out = tmp_path / f"{number}.jsonl"
        output_of(*scoring(memory, "phase-graph", out, "--allow", allow, "--allow-scope", scope))
        rows = [[{"id": hit.id, "score": hit.score} for hit in hits] for hits in expected]
        assert [row["hits"] for row in read_jsonl(out)] == rows
    trace = json.loads(
        output_of(*explaining(memory, "phase-graph", "--allow", "a,c", "--allow-scope", scope, "--json"))
    )
    assert {hit["id"] for hit in trace["hits"]} <= {"a", "c"}


def test_passages_that_are_valid_at_a_time_are_found(output_of, refused_here, tmp_path) -> None:
    for name, ends, at, wrong in (("years", (2010, 2020), "2020", "new"), ("times", (NOON, NOON), NOON, "2020")):
        spans = [{"valid_from": ends[0], "valid_to": ends[1]}, {"valid_from": ends[1]}, {}]
        rows = [{"id": id, "text": f"river {id}", "metadata": span} for id, span in zip("abc", spans, strict=True)]
        types = {} if name == "years" else dict.fromkeys(("valid_from", "valid_to"), "timestamp")
        hf.Index.build(passages=rows, metadata_types=types).save(tmp_path / name)
        given = ("search", tmp_path / name, "river", "--words", "fts5", "--json")
        found = json.loads(output_of(*given, "--at", at))
        assert sorted(hit["id"] for hit in found["hits"]) == ["b", "c"]
        assert [hit["id"] for hit in json.loads(output_of(*given, "--at", at, "--allow", "a,b"))["hits"]] == ["b"]
        assert refused_here(*given, "--at", wrong) == about("type", "at", given=wrong)
    hf.Index.build(passages=[{"id": "a", "text": "river"}]).save(tmp_path / "plain")
    assert refused_here("search", tmp_path / "plain", "river", "--words", "fts5", "--at", "3") == about("missing", "at")


def test_metadata_is_built_shown_and_filtered_by(output_of, refused_here, tmp_path) -> None:
    rows = [{**CHUNKS[0], "metadata": {"depth": 3, "tags": ["a", "b"]}}, {**CHUNKS[1], "metadata": {"day": NOON}}]
    built = ("build", write_jsonl(tmp_path / "chunks.jsonl", rows), "--metadata-type", "day=timestamp")
    output_of(*built, "--metadata-type", "depth=float64", "--out", tmp_path / "index")
    output_of(*built, "--reader", "words", "--out", tmp_path / "words")
    asked = ("London notes", "--words", "fts5", "--json")
    for index, depth in (("index", 3.0), ("words", 3)):
        shown = json.loads(output_of("search", tmp_path / index, *asked, "--recipe", "hybrid-rrf"))["hits"]
        by_id = {hit["id"]: hit["metadata"] for hit in shown}
        assert by_id == {7: {"depth": depth, "tags": ["a", "b"]}, 8: {"day": "2024-05-01T12:00:00+00:00"}}
    for conditions, ids in (
        (["depth__ge=2"], [7]),
        (["tags__any=b,z"], [7]),
        (["tags__none="], [7]),
        (["day__lt=2025-01-01T00:00:00Z"], [8]),
        (["depth__exists=false", "day__exists=TRUE"], [8]),
        (["depth__ge=2", "day__exists=true"], []),
    ):
        options = [part for one in conditions for part in ("--where", one)]
        shown = json.loads(output_of("search", tmp_path / "index", *asked, *options))["hits"]
        assert [hit["id"] for hit in shown] == ids, conditions
    for option, message in (
        ("depth", about("syntax", "where", given="depth")),
        (
            "deep=1",
            about(
                "unknown",
                "deep",
                given="deep",
                columns="the columns are day (timestamp), depth (float64), tags (strings)",
            ),
        ),
        ("depth__gte=1", about("choice", "depth", column="depth", kind="float64", given="gte")),
        ("depth=x", about("type", "depth")),
        ("depth__exists=1", about("type", "depth__exists", given="1")),
        ("day=2024", about("type", "day", given="2024")),
    ):
        assert refused_here("search", tmp_path / "index", *asked, "--where", option) == message
    assert refused_here("build", built[1], "--metadata-type", "day", "--out", tmp_path / "no") == about(
        "syntax", "metadata_types", given="day"
    )
    assert "metadata: depth" in output_of("info", tmp_path / "index")


def test_a_stranger_is_refused(memory, refused_here, tmp_path) -> None:
    line = refused_here(*scoring(memory, "phase-graph", tmp_path / "out.jsonl", "--allow", "a,z"))
    assert line == about("unknown", "allow", count="1 passage")
    assert list(tmp_path.iterdir()) == []


def test_words_are_sqlites(plain, output_of) -> None:
    index = hf.Index.open(plain)
    texts = index.texts_to_index()
    hits = HybridRRF(index, lexical=FTS5.build(texts)).search([QUESTION + " London"], k=10)[0]
    shown = json.loads(output_of("search", plain, QUESTION + " London", "--words", "fts5", "--json"))
    assert [hit["id"] for hit in shown["hits"]] == [hit.id for hit in hits] == [7]
