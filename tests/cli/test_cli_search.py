"""``hopfuse search`` prints passages; ``--allow`` of ``search``, ``trace`` and ``score``."""

from __future__ import annotations

import json

import hopfuse as hf
import numpy as np
import pytest
from cli.cli_files import read_jsonl, write_jsonl
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
    shown = output_of("search", index, "Which river flows through London?", "--lexical", "fts5")
    assert shown.startswith("1. 0.1417  7  Thames\n   The Thames flows through London")
    assert "\n2. 0.0714  8  Ada\n" in shown
    found = json.loads(output_of("search", index, "river", "--lexical", "none", "-k", 1, "--json"))
    opened = hf.Index.open(index)
    (hit,) = HybridRRF(opened, encoder=WordLlamaEncoder(64)).search(["river"], k=1)[0]
    row = {name: getattr(hit, name) for name in ("id", "row", "score", "title", "text")}
    assert found == {"question": "river", "hits": [{"rank": 1, **row}]}
    assert "QUESTION is empty" in refused_here("search", index, " ")
    line = refused_here("search", index, "river", "--encoder", "wordllama")
    assert "the index was built with 'wordllama' (64 dimensions, normalised)" in line
    hf.Index.build(passages=CHUNKS, vectors=np.eye(2)).save(tmp_path / "mine")
    line = refused_here("search", tmp_path / "mine", "river", "--encoder", "wordllama:64")
    assert "the vectors of --encoder wordllama have 64 dimensions, those of the index 2: give the encoder" in line


def test_a_text_is_printed_in_part_or_in_full(output_of, refused_here, tmp_path) -> None:
    text = "The Thames\nflows " + "on and " * 60 + "on."
    hf.Index.build(passages=[{"text": text}]).save(tmp_path / "long")
    asked = ("search", tmp_path / "long", "Thames", "--lexical", "fts5")
    shown = " ".join(output_of(*asked).split())
    assert shown.endswith(" " + " ".join(text.split())[:159] + "…")
    assert " ".join(output_of(*asked, "--full").split()).endswith(" ".join(text.split()))
    assert json.loads(output_of(*asked, "--json"))["hits"][0]["text"] == text
    assert "--full is given with --json" in refused_here(*asked, "--json", "--full")


def test_text_cannot_steer_the_terminal(plain, output_of) -> None:
    for shown in (
        output_of("search", plain, "Which river is by London?", "--lexical", "fts5"),
        output_of("search", plain, "London", "--lexical", "fts5", "--json"),
        output_of("trace", plain, "London \x1b[31m", "--lexical", "fts5"),
    ):
        assert "Thames" in shown
        assert not any(ord(character) < 32 and character != "\n" for character in shown)


def test_nothing_is_found(plain, output_of) -> None:
    assert output_of("search", plain, "Who?", "--lexical", "fts5") == "Nothing was found.\n"


def test_a_recipe_that_an_index_cannot_run_names_one_that_it_can(plain, refused_here) -> None:
    line = refused_here("search", plain, "river", "--recipe", "phase-graph", "--encoder", "wordllama")
    assert "phase-graph cannot run on this index, which has no vectors (--encoder or --vectors) and no graph" in line
    assert "--recipe hybrid-rrf runs on it" in line
    assert "--allow-scope is given without --allow" in refused_here(
        "search", plain, "river", "--allow-scope", "results"
    )


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


def test_metadata_is_built_shown_and_filtered_by(output_of, refused_here, tmp_path) -> None:
    rows = [{**CHUNKS[0], "metadata": {"depth": 3, "tags": ["a", "b"]}}, {**CHUNKS[1], "metadata": {"day": NOON}}]
    built = ("build", write_jsonl(tmp_path / "chunks.jsonl", rows), "--metadata-type", "day=timestamp")
    output_of(*built, "--metadata-type", "depth=float64", "--out", tmp_path / "index")
    output_of(*built, "--reader", "words", "--out", tmp_path / "words")
    asked = ("London notes", "--lexical", "fts5", "--json")
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
        ("depth", "--where is 'depth'; give column=value"),
        ("deep=1", "no column 'deep' to filter by; the columns are day (timestamp), depth (float64), tags (strings)"),
        ("depth__gte=1", "'depth' is float64, and there is no operator 'gte' for it; allowed: depth__eq"),
        ("depth=x", "'x' must be a number"),
        ("depth__exists=1", "'1' must be true or false"),
        ("day=2024", "the filter has '2024'; give a time with a time zone"),
    ):
        assert message in refused_here("search", tmp_path / "index", *asked, "--where", option)
    assert "--metadata-type is 'day'; give column=type" in refused_here(
        "build", built[1], "--metadata-type", "day", "--out", tmp_path / "no"
    )
    assert "metadata: depth" in output_of("info", tmp_path / "index")


def test_a_stranger_is_refused(memory, refused_here, tmp_path) -> None:
    line = refused_here(*scoring(memory, "phase-graph", tmp_path / "out.jsonl", "--allow", "a,z"))
    assert "--allow names 1 passage that the index does not have, such as 'z'" in line
    assert list(tmp_path.iterdir()) == []


def test_words_are_sqlites(plain, output_of) -> None:
    index = hf.Index.open(plain)
    texts = index.texts_to_index()
    hits = HybridRRF(index, lexical=FTS5.build(texts)).search([QUESTION + " London"], k=10)[0]
    shown = json.loads(output_of("search", plain, QUESTION + " London", "--lexical", "fts5", "--json"))
    assert [hit["id"] for hit in shown["hits"]] == [hit.id for hit in hits] == [7]
