"""``hopfuse demo --recipe``: every recipe over every form of data that it can answer from, and what is refused."""

from __future__ import annotations

import os
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
    write_graph,
    write_metaqa,
    write_openie,
    write_types,
)
from hopfuse.cli import demo_contest, demo_timing, main
from hopfuse.cli.demo_atlas import answered_by_entities, answered_by_passages, atlas_index, atlas_triples
from hopfuse.cli.demo_contest import Job, on_folder
from hopfuse.cli.demo_folders import checked_folder, folder_questions
from hopfuse.cli.demo_metaqa import entity_texts, metaqa_index, metaqa_questions, metaqa_triples
from hopfuse.cli.demo_quality import score_questions
from hopfuse.cli.demo_stages import Stages
from hopfuse.cli.demo_timing import REPEATS
from hopfuse.evaluate import evaluate
from hopfuse.lexical import BM25
from rich.console import Console

for package in ("ahocorasick", "wordllama"):
    pytest.importorskip(package)

RANKINGS = {
    "phase-graph": ["dense", "graph", "RRF", "PhaseGraph"],
    "policy-rag": ["dense", "projected", "PolicyRAG"],
    "hybrid-rrf": ["dense", "words", "graph", "HybridRRF"],
    "triple-hybrid": ["vector", "graph", "hybrid, min_max", "TripleHybrid"],
}
BY_MENTION = ["dense", *RANKINGS["triple-hybrid"]]
OPTIONS = {"dense_k": 100, "graph_k": 30, "damping": 0.5, "threads": 1}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    work = tmp_path_factory.mktemp("data")
    made = {"graph": write_graph, "openie": write_openie, "metaqa": write_metaqa}
    return {kind: write(work / kind) for kind, write in made.items()}


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


def job(recipe, directory, questions=None):
    return Job(recipe, None, OPTIONS | {"alpha": 0.5, "consensus": 0.0, "passage_seeds": 0.0}, directory, questions)


def scores(recipe, path, directory):
    console = Console(quiet=True)
    contest = on_folder(job(recipe, directory), checked_folder(path), console, Stages(console))
    return contest, score_questions(contest, 256)


def test_numbers_are_the_recipes_own(folders, tmp_path) -> None:
    contest, scored = scores("policy-rag", folders["graph"], tmp_path / "index")
    index = hf.Index.open(tmp_path / "index")
    encoder = hf.encoders.WordLlamaEncoder()
    recipe = hf.recipes.PolicyRAG(index, encoder=encoder)
    asked = {"vectors": np.load(folders["graph"] / "query_emb.f16.npy"), "entities": [[film] for film in FILMS]}
    expected = recipe.search(list(contest.asked.texts), **asked, k=10).hits
    assert scored.runs["PolicyRAG"].ids.tolist() == expected.ids.tolist()
    found = evaluate(scored.runs, scored.asked.qrels, ["recall@2", "last_hop@5"], baseline="dense")
    assert found.estimate("dense", "recall@2").mean >= 0.5, "a question's own film is nearest"
    batches = score_questions(contest, 4)
    assert all(batches.runs[name].ids.tolist() == hits.ids.tolist() for name, hits in scored.runs.items())


def test_answers_of_triples_are_those_of_the_file(folders) -> None:
    triples = metaqa_triples(folders["metaqa"])
    assert list(triples.entities) == ENTITIES
    asked = metaqa_questions(folders["metaqa"], triples.entities)
    assert {name: int(held.sum()) for name, held in asked.groups.items()} == {
        "all": 13,
        "1 hop": 6,
        "2 hops": 6,
        "3 hops": 1,
    }
    at = asked.texts.index("Stalker was directed by whom")
    assert [triples.entities[e] for e in asked.qrels.gold[at]] == ["Andrei Tarkovsky"]
    assert asked.needs[-1] == "Alien, Blade Runner, Gladiator"
    assert asked.mentions[at] == ["Stalker"]
    assert asked.answers
    assert entity_texts(triples)[0] == "Alien. Alien directed by Ridley Scott"


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


def test_questions_are_spread_over_all(folders, tmp_path) -> None:
    index = scores("phase-graph", folders["graph"], tmp_path / "index")[0].chosen.recipe.index
    asked = folder_questions(checked_folder(folders["graph"]), index).evenly(3)
    assert [FILMS[at] in asked.texts[i] for i, at in enumerate((0, 2, 4))] == [True] * 3
    assert asked.mentions == [[FILMS[at]] for at in (0, 2, 4)]
    assert len(asked.vectors) == len(asked.qrels) == 3
    assert asked.groups["2 hops"].tolist() == [True] * 3


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


def test_passages_describe_the_entities_of_triples(folders) -> None:
    triples = metaqa_triples(folders["metaqa"])
    index = metaqa_index(triples, hf.encoders.WordLlamaEncoder())
    assert list(index.titles) == list(index.entity_names) == ENTITIES
    scott = ENTITIES.index("Ridley Scott")
    assert index.texts[scott].startswith("Alien directed by Ridley Scott. Blade Runner directed by Ridley Scott. ")
    assert index.passage_frequency[scott] == 5, "its own, three films' and its town's"
    assert len(index.facts) == len(FACTS)
    stated = [some.tolist() for some in np.split(index.facts.passages, index.facts.indptr[1:-1])]
    assert stated == [sorted([ENTITIES.index(head), ENTITIES.index(tail)]) for head, _, tail in FACTS]


def test_a_text_of_triples_names_the_first_facts_alone() -> None:
    films = [f"film {at}" for at in range(30)]
    facts = [(film, "in language", "English") for film in films]
    index = metaqa_index(hf.Triples(facts, ["English", "alone", *films]), hf.encoders.WordLlamaEncoder())
    assert index.texts[0].count("in language") == 20
    assert list(index.texts)[1] == ""
    assert len(index.facts) == 30, "each film's passage states its own"
    passages = index.facts.passages[index.facts.indptr[29] :]
    assert [index.titles[p] for p in passages] == ["film 29"]


def test_entities_rank_the_passages_that_mention_them(folders, tmp_path) -> None:
    contest, scored = scores("triple-hybrid", folders["graph"], tmp_path / "index")
    index = hf.Index.open(tmp_path / "index")
    dense = hf.dense_topk(np.load(folders["graph"] / "query_emb.f16.npy"), index.corpus, 10)
    assert scored.runs["dense"].ids.tolist() == dense.ids.tolist()
    found = contest.search(range(len(FILMS)), len(ENTITIES)).hits
    for b in range(len(FILMS)):
        worth = dict.fromkeys(range(len(FACTS)), 0.0)
        for entity, score in found.row(b):
            for passage, (head, _, tail) in enumerate(FACTS):
                worth[passage] += max(score, 0) * (ENTITIES[entity] in (head, tail))
        first = scored.runs["TripleHybrid"].row(b)
        assert [score for _, score in first] == pytest.approx([worth[passage] for passage, _ in first], rel=1e-5)
    assert scored.runs["TripleHybrid"].ids.tolist() == contest.answer(range(len(FILMS)), 10).ids.tolist()


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


@pytest.mark.skipif(
    os.environ.get("HOPFUSE_TESTS") != "full", reason="embeds 45,000 names; run with HOPFUSE_TESTS=full"
)
def test_real_questions_have_the_figures_of_their_readme(data_folder, tmp_path) -> None:
    _, scored = scores("policy-rag", data_folder / "hotpotqa", tmp_path / "index")
    found = evaluate(scored.runs, scored.asked.qrels, ["recall@5", "last_hop@5", "last_hop@10"], baseline="dense")
    dense = [
        round(100 * found.estimate("dense", metric).mean, 1) for metric in ("recall@5", "last_hop@5", "last_hop@10")
    ]
    assert dense == [80.5, 58.9, 71.1]
    compared = found.comparison("PolicyRAG", "last_hop@10")
    assert compared.wins > 4 * compared.losses
