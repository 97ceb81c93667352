"""``hopfuse demo --recipe``: every recipe over every form of data that it can answer from, and what is refused."""

from __future__ import annotations

import re
import sys
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cli.demo_folders import (
    ENTITIES,
    FACTS,
    FILMS,
    small_atlas,
    write_all,
    write_types,
)
from hopfuse.cli import demo_contest, demo_timing, main
from hopfuse.cli.demo_atlas import answered_by_entities, answered_by_passages, atlas_index, atlas_triples
from hopfuse.cli.demo_timing import REPEATS
from hopfuse.lexical import BM25

for package in ("ahocorasick", "wordllama"):
    pytest.importorskip(package)

RANKINGS = {
    "phase-graph": ["dense", "graph", "RRF", "PhaseGraph"],
    "policy-rag": ["dense", "projected", "PolicyRAG"],
    "hybrid-rrf": ["dense", "words", "graph", "HybridRRF"],
    "triple-hybrid": ["vector", "graph", "hybrid, min_max", "TripleHybrid"],
}
BY_MENTION = ["dense", *RANKINGS["triple-hybrid"]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("data"))


@pytest.fixture
def said(capsys):
    """What the demo prints; in this process."""

    def run(*args: Any) -> str:
        with pytest.raises(SystemExit) as left:
            main(["demo", "--threads", "1", *map(str, args)])
        out = capsys.readouterr()
        assert left.value.code == 0, out.err
        return str(out.out)

    return run


def assert_tables(said: str, rankings: list[str], count: int) -> None:
    assert f"all: {count}" in said
    found = re.findall(r"│   ([A-Za-z][^│]*?) +│ +(?:[\d.]+|-) │", said)
    assert list(dict.fromkeys(found)) == rankings
    assert [size for size, _ in timed(said)] == list(REPEATS)
    assert all(1 <= repeats <= REPEATS[size] for size, repeats in timed(said))
    assert re.search(r"\nIt needs .+\.\n", said)


def timed(said: str) -> list[tuple[int, int]]:
    rows = re.findall(r"│ +(\d+) │ +(\d+) │ +[\d.]+ │ +[\d.]+ \.\. [\d.]+ │ +[\d.]+ │ +[\d,]+ │", said)
    return [(int(size), int(repeats)) for size, repeats in rows]


@pytest.mark.parametrize("kind", ["graph", "openie", "metaqa"])
@pytest.mark.parametrize("recipe", RANKINGS)
def test_a_recipe_over_a_folder(said, folders, recipe, kind) -> None:
    shown = said("--recipe", recipe, "--data", folders[kind])
    by_mention = recipe == "triple-hybrid" and kind != "metaqa"
    assert_tables(shown, BY_MENTION if by_mention else RANKINGS[recipe], 13 if kind == "metaqa" else len(FILMS))
    assert ("hit@10" in shown) == (kind == "metaqa")
    assert ("last hop@10" in shown) == (kind != "metaqa")
    assert ("of the 100 best entities that it mentions" in " ".join(shown.split())) == by_mention


@pytest.mark.parametrize("recipe", RANKINGS)
def test_a_recipe_over_an_atlas(said, monkeypatch, recipe) -> None:
    monkeypatch.setattr(demo_contest, "build_atlas", small_atlas)
    shown = said("--recipe", recipe)
    entities = recipe == "triple-hybrid"
    assert_tables(shown, RANKINGS[recipe], len(FILMS) if entities else len(FILMS) + 1)
    assert ("1 questions are left out: their answers are no entities" in shown) == entities
    assert ("is removed now" in shown) == (not entities)
    assert "by alias: 1" in shown


def test_the_index_is_kept_with_its_facts(said, folders, tmp_path) -> None:
    said("--recipe", "policy-rag", "--data", folders["graph"], "--out", tmp_path / "index", "--questions", 2)
    index = hf.Index.open(tmp_path / "index")
    assert len(index.facts) == len(FACTS)
    assert list(index.entity_names) == ENTITIES


def test_a_policy_is_read_and_said(said, folders, tmp_path) -> None:
    (tmp_path / "p.toml").write_text("version = 1\n[walk]\ndamping = 0.75\n")
    more = ("--policy", tmp_path / "p.toml", "--questions", 2)
    assert "policy: walk.damping 0.75;" in said("--recipe", "policy-rag", "--data", folders["graph"], *more)


def test_an_atlas_is_asked_for_passages_and_for_entities() -> None:
    atlas = small_atlas()
    passages, entities = answered_by_passages(atlas), answered_by_entities(atlas)
    assert passages.qrels.gold[0] == (0, 6)
    assert len(entities) == len(passages) - 1
    assert [ENTITIES[gold] for (gold,) in entities.qrels.gold] == [FACTS[6 + at // 3][2] for at in range(6)]
    assert len(atlas_triples(atlas)) == len(FACTS)
    vectors = np.ones((len(FACTS), 2), np.float32)
    plain, told = (atlas_index(atlas, vectors, recipe) for recipe in ("phase-graph", "policy-rag"))
    assert plain.facts is None
    assert plain.graph.edge_type_names == ("context", "relation", "alias")
    assert len(told.facts) == len(FACTS)
    assert told.graph.edge_type_names == ("context", "relation", "synonym")


def test_bad_combinations_are_refused(refused_here, folders, tmp_path) -> None:
    (tmp_path / "bad.toml").write_text("version = 1\n[walk]\ndamping = 2\n")
    for args, why in (
        (("--data", write_types(tmp_path / "types")), "is no folder that the demo can read"),
        (
            ("--data", tmp_path),
            "passages with facts that a model extracted (passages.jsonl, queries.jsonl, openie.jsonl)",
        ),
        (("--recipe", "triple-hybrid", "--keep"), "triple-hybrid makes no index"),
        (
            ("--recipe", "triple-hybrid", "--data", folders["metaqa"], "--out", tmp_path / "o"),
            "makes no index of triples",
        ),
        (("--recipe", "hybrid-rrf", "--alpha", "0.5"), "--alpha is given, and hybrid-rrf does not read it"),
        (("--policy", tmp_path / "bad.toml"), "--policy is given, and phase-graph does not read it"),
        (("--recipe", "policy-rag", "--policy", tmp_path / "bad.toml"), "bad.toml: walk.damping is 2"),
    ):
        assert why in refused_here("demo", *args), args


def test_words_are_kept_in_the_index_where_there_is_bm25(said, folders, tmp_path, monkeypatch) -> None:
    run = ("--recipe", "hybrid-rrf", "--data", folders["openie"], "--out")
    monkeypatch.setitem(sys.modules, "bm25s", None)
    without = said(*run, tmp_path / "without")
    assert "words by FTS5" in without
    assert "BM25's packages are not installed" in without
    assert hf.Index.open(tmp_path / "without").lexical is None
    monkeypatch.undo()
    pytest.importorskip("bm25s")
    pytest.importorskip("Stemmer")
    shown = said(*run, tmp_path / "with")
    assert "words by BM25" in shown
    assert "not installed" not in shown
    index = hf.Index.open(tmp_path / "with")
    assert BM25(index.lexical).search(["Stalker"], 1).ids.tolist() == [[FILMS.index("Stalker")]]


def test_a_slow_recipe_is_timed_less(said, folders, monkeypatch) -> None:
    monkeypatch.setattr(demo_timing, "BUDGET", 0.0)
    shown = said("--data", folders["openie"])
    assert timed(shown) == [(1, 1)]
    assert "too long: batches of 8, 32, 128, 256." in " ".join(shown.split())
