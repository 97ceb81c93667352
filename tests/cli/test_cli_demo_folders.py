"""What a demo makes of folders: an index or triples, questions with what answers them, and rankings of both."""

from __future__ import annotations

import os

import hopfuse as hf
import numpy as np
import pytest
from cli.demo_folders import ENTITIES, FACTS, FILMS, write_all
from hopfuse.cli.demo_contest import Job, on_folder
from hopfuse.cli.demo_folders import checked_folder, folder_questions
from hopfuse.cli.demo_metaqa import entity_texts, metaqa_index, metaqa_questions, metaqa_triples
from hopfuse.cli.demo_quality import score_questions
from hopfuse.cli.demo_stages import Stages
from hopfuse.evaluate import evaluate
from rich.console import Console

for package in ("ahocorasick", "wordllama"):
    pytest.importorskip(package)

OPTIONS = {"dense_k": 100, "graph_k": 30, "damping": 0.5, "threads": 1}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("data"))


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


def test_questions_are_spread_over_all(folders, tmp_path) -> None:
    index = scores("phase-graph", folders["graph"], tmp_path / "index")[0].chosen.recipe.index
    asked = folder_questions(checked_folder(folders["graph"]), index).evenly(3)
    assert [FILMS[at] in asked.texts[i] for i, at in enumerate((0, 2, 4))] == [True] * 3
    assert asked.mentions == [[FILMS[at]] for at in (0, 2, 4)]
    assert len(asked.vectors) == len(asked.qrels) == 3
    assert asked.groups["2 hops"].tolist() == [True] * 3


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
