import json

import numpy as np
import pytest
from cli.cli_files import about, hopfuse
from cli.recipe_files import explaining as recipe_explaining
from hopfuse import Index
from hopfuse.recipes import GuidedWalk, PhaseGraph

QUESTION = "Which river is by Londinium?"


@pytest.fixture
def explaining(index, files):
    return ["trace", index, QUESTION, "--vectors", files / "query_vectors.npy", "--recipe", "phase-graph"]


def test_json_is_the_recipes_trace(explaining, index, files):
    found = json.loads(hopfuse(*explaining, "--row", 4, "--json").stdout)
    vectors = np.load(files / "query_vectors.npy")[4:5]
    expected = PhaseGraph(Index.open(index)).search(vectors=vectors, entities=[["Londinium"]], trace=True)
    assert found == {"question": QUESTION, **json.loads(json.dumps(expected.traces[0]))}


def test_without_a_recipe_it_is_the_guided_walk(index, files):
    vectors = files / "query_vectors.npy"
    found = json.loads(hopfuse("trace", index, QUESTION, "--vectors", vectors, "--row", 4, "--json").stdout)
    expected = GuidedWalk(Index.open(index)).search(vectors=np.load(vectors)[4:5], entities=[["Londinium"]], trace=True)
    assert found == {"question": QUESTION, **json.loads(json.dumps(expected.traces[0]))}


def test_tree_shows_seeds_lists_and_contributions(explaining):
    output = hopfuse(*explaining, "--show", 2).stdout
    assert output.startswith(QUESTION)
    assert "London (alias, asked for as 'Londinium')" in output
    assert "Dense list of 6" in output
    assert "Graph list of" in output
    fused = output[output.index("Fused: the first 2") :]
    assert "1. " in fused
    assert "2. " in fused
    assert "3. " not in fused
    assert " graph 0." in fused
    said = "Weight of direct retrieval: 0.14; the rarest name, London, is in 2 passages: the walk leads"
    assert said in " ".join(output.replace("│", " ").split())


def test_given_names_replace_those_in_the_text(explaining):
    output = hopfuse(*explaining, "--entity", "Turing").stdout
    assert "Turing (exact)" in output
    assert "London (alias" not in output


def test_a_question_that_names_nothing(index, files):
    vector = files / "query_vectors.npy"
    output = hopfuse("trace", index, "Which [b]river[/b]?", "--vectors", vector, "--recipe", "phase-graph").stdout
    assert "none: the graph list is empty" in output
    assert "Which [b]river[/b]?" in output


def test_a_trace_does_not_replace_what_is_read(refused_here, explaining, memory, tmp_path):
    policy, known = tmp_path / "policy.json", tmp_path / "known.json"
    policy.write_text("version = 1\n", encoding="utf-8")
    with open(known, "wb") as file:
        np.save(file, np.ones(3))
    for other, path, args in (
        ("policy", policy, recipe_explaining(memory, "policy-rag", "--policy", policy)),
        ("option importance", known, recipe_explaining(memory, "hybrid-rrf", "--option", f"importance={known}")),
    ):
        before = path.read_bytes()
        refusal = refused_here(*args, "--out", path, "--overwrite")
        assert refusal == about("conflict", "out", other=other, file=path)
        assert path.read_bytes() == before


def test_bad_questions_and_vectors_are_refused(refused_here, explaining, index, files):
    assert refused_here(*explaining, "--row", 300) == about("range", "row", last=299)
    no_rows = ("trace", index, QUESTION, "--encoder", "wordllama", "--row", 0)
    assert refused_here(*no_rows) == about("unused", "row", other="vectors")
    assert refused_here("trace", index, QUESTION) == about("missing", "encoder")
    bad = ["trace", index, QUESTION, "--vectors", files / "queries.jsonl"]
    assert refused_here(*bad) == about("syntax", "vectors")


@pytest.mark.parametrize("recipe", ["guided-walk", "phase-graph", "hybrid-rrf"])
def test_a_passage_without_a_title_is_shown_by_its_id_in_every_list(tmp_path, recipe):
    """Ids differ from the rows, so that neither can be confused with the other."""
    passages = [{"id": f"p-{at}", "text": f"Passage {at} of London."} for at in range(3)]
    graph = [{"src": at, "dst": 3} for at in range(3)]
    Index.build(passages=passages, vectors=np.eye(3), entities=["London"], graph=graph).save(tmp_path / "index")
    np.save(tmp_path / "vector.npy", np.ones((1, 3)))
    options = ["--vectors", tmp_path / "vector.npy", "--recipe", recipe, "--words", "none"]
    output = hopfuse("trace", tmp_path / "index", "London?", *options).stdout
    listed = [line.split("score")[0].split()[-1] for line in output.splitlines() if "  score " in line]
    assert len(listed) >= 6
    assert set(listed) == {"p-0", "p-1", "p-2"}
    assert "text: Passage 0 of London." in output
