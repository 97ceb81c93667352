"""``hopfuse compare``: the table equals the recipes' own results; and the errors."""

import json

import hopfuse as hf
import numpy as np
import pytest
from cli.cli_files import about, hopfuse, refused, write_jsonl
from cli.recipe_files import words_here
from hopfuse.evaluate import Qrels, evaluate
from hopfuse.lexical import FTS5

PASSAGES, ENTITIES, DIM, QUESTIONS = 30, 12, 8, 40
RUNS = [
    "dense",
    "words",
    "plain-hybrid",
    "graph",
    "graph-else-dense",
    "guided-walk",
    "guided-walk+words",
    "phase-graph",
    "phase-graph+words",
    "hybrid-rrf",
    "hybrid-convex",
    "policy-rag",
]


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """An index, questions for it with judgements, and their vectors."""
    folder, draw = tmp_path_factory.mktemp("compare"), np.random.default_rng(5)
    names = [f"Entity{e}" for e in range(ENTITIES)]
    of = [draw.choice(ENTITIES, 2, replace=False) for _ in range(PASSAGES)]
    passages = [
        {"id": f"p{i}", "title": f"T{i}", "text": f"about {names[a]} and {names[b]}"} for i, (a, b) in enumerate(of)
    ]
    vectors = draw.standard_normal((PASSAGES, DIM)).astype(np.float32)
    edges = [{"src": i, "dst": PASSAGES + int(e)} for i, two in enumerate(of) for e in two]
    built = hf.Index.build(passages=passages, vectors=vectors, entities=names, graph=edges, metric="cosine")
    built.save(folder / "index")
    rows = []
    for q in range(QUESTIONS):
        gold = sorted(draw.choice(PASSAGES, 2, replace=False).tolist())
        mentioned = names[of[gold[0]][0]]
        rows.append(
            {
                "id": f"q{q}",
                "question": f"what of {mentioned}",
                "entities": [mentioned],
                "gold": [f"p{g}" for g in gold],
                "hops": [[f"p{g}"] for g in gold],
                "last_hop": [f"p{gold[1]}"],
            }
        )
    write_jsonl(folder / "queries.jsonl", rows)
    noise = draw.standard_normal((QUESTIONS, DIM))
    asked = np.array([vectors[int(row["gold"][0][1:])] for row in rows]) + noise
    np.save(folder / "vectors.npy", asked.astype(np.float32))
    return folder, rows


def command(folder, *more):
    files = ("--queries", folder / "queries.jsonl", "--vectors", folder / "vectors.npy")
    return ("compare", folder / "index", *files, *more)


def test_the_table_is_the_recipes_own(work, tmp_path):
    folder, rows = work
    out = tmp_path / "numbers.json"
    done = hopfuse(
        *command(
            folder,
            "--out",
            out,
            "--time",
            "--metrics",
            "recall@5, last_hop@10,mrr,recall@2,recall@10,full_support@10,last_hop@5,ndcg@10",
        )
    )
    found = json.loads(out.read_text())
    assert found["runs"] == RUNS
    index = hf.Index.open(folder / "index")
    asked = {"vectors": np.load(folder / "vectors.npy"), "entities": [row["entities"] for row in rows]}
    words = words_here([f"{row_title}\n{text}" for row_title, text in zip(index.titles, index.texts, strict=True)])
    texts = [row["question"] for row in rows]
    expected = {
        "dense": hf.dense_topk(asked["vectors"], index.corpus, 10),
        "plain-hybrid": hf.fuse(
            [words.search(texts, 100), hf.dense_topk(asked["vectors"], index.corpus, 100)], method="rrf", k=10
        ),
        "guided-walk": hf.recipes.GuidedWalk(index).search(**asked, k=10).hits,
        "guided-walk+words": hf.recipes.GuidedWalk(index, lexical=words).search(texts, **asked, k=10).hits,
        "phase-graph": hf.recipes.PhaseGraph(index).search(**asked, k=10).hits,
        "hybrid-rrf": hf.recipes.HybridRRF(index, lexical=words).search(texts, **asked, k=10).hits,
        "policy-rag": hf.recipes.PolicyRAG(index).search(texts, **asked, k=10).hits,
    }
    number = {f"p{i}": i for i in range(PASSAGES)}
    qrels = Qrels(
        [row["id"] for row in rows],
        [[number[g] for g in row["gold"]] for row in rows],
        [[[number[g]] for (g,) in row["hops"]] for row in rows],
        [[number[row["last_hop"][0]]] for row in rows],
    )
    by_hand = evaluate(qrels, expected, ["recall@5", "last_hop@10", "mrr"], baseline="dense")
    (whole,) = [group for group in found["groups"] if group["group"] == "all"]
    for run in expected:
        for metric in ("recall@5", "last_hop@10", "mrr"):
            assert whole["estimates"][run][metric]["mean"] == by_hand.estimate(run, metric).mean
            assert f"{100 * by_hand.estimate(run, metric).mean:.1f}" in done.stdout
    compared = by_hand.comparison("hybrid-rrf", "recall@5")
    assert whole["comparisons"]["hybrid-rrf"]["recall@5"]["wins"] == compared.wins
    assert all(ms > 0 for times in found["ms per query"].values() for ms in times.values())
    assert found["words"] == type(words).__name__
    assert f"Lexical: {found['words']}" in done.stdout
    memory = found["memory"]
    assert memory["process peak bytes"] > memory["index bytes"] > memory["index array bytes"] > 0
    assert set(memory["search peak bytes"]) == set(RUNS)
    assert all(peak > 0 for peak in memory["search peak bytes"].values())
    why = found["left out"]["triple-hybrid"]
    assert why == str(hf.recipes.TripleHybrid.missing(index))
    said = " ".join(done.stdout.split())
    assert f"triple-hybrid: {why.partition('encoder=')[0]}--encoder" in said, "as the command spells it"
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert "…" not in done.stdout


def test_triples_are_compared_where_the_index_has_facts_and_vectors_of_its_entities(work, tmp_path):
    folder, rows = work
    index, draw = hf.Index.open(folder / "index"), np.random.default_rng(7)
    names, passages = list(index.entity_names), list(index.texts)
    stated = [[name for name in names if f"{name} " in f"{text} "] for text in passages]
    facts = [(a, "stands beside", b, at) for at, (a, b) in enumerate(stated)]
    entity_vectors = draw.standard_normal((ENTITIES, DIM)).astype(np.float32)
    made = {
        "graph": index.graph,
        "entity_vectors": entity_vectors,
        "facts": hf.Facts.from_names(facts, names, PASSAGES),
        "metric": "cosine",
    }
    given = [{"id": f"p{i}", "title": f"T{i}", "text": text} for i, text in enumerate(passages)]
    built = hf.Index.build(passages=given, vectors=np.asarray(index.vectors), entities=names, **made)
    built.save(tmp_path / "index")
    files = ("--queries", folder / "queries.jsonl", "--vectors", folder / "vectors.npy")
    hopfuse("compare", tmp_path / "index", *files, "--out", tmp_path / "n.json")
    found = json.loads((tmp_path / "n.json").read_text())
    at = RUNS.index("guided-walk")
    assert found["runs"] == [*RUNS[:at], "triple-vector", "triple-graph", *RUNS[at:], "triple-hybrid"]
    assert found["left out"] == {}
    recipe = hf.recipes.TripleHybrid(built)
    entities = recipe.search([row["question"] for row in rows], vectors=np.load(folder / "vectors.npy"), k=100).hits
    right = []
    for b, row in enumerate(rows):
        of = {names[e]: max(score, 0.0) for e, score in entities.row(b)}
        scores = np.array([np.float32(sum(of.get(name, 0.0) for name in two)) for two in stated])
        best = np.argsort(-scores, kind="stable")[:10]
        right.append(sum(f"p{p}" in row["gold"] for p in best[scores[best] > 0]) / 2)
    (whole,) = [group for group in found["groups"] if group["group"] == "all"]
    assert whole["estimates"]["triple-hybrid"]["recall@10"]["mean"] == pytest.approx(np.mean(right), abs=0.01)


def test_sqlites_words_can_be_asked_for(work, tmp_path):
    folder, rows = work
    hopfuse(*command(folder, "--words", "fts5", "--metrics", "mrr", "--against", "mrr", "--out", tmp_path / "n.json"))
    found, index = json.loads((tmp_path / "n.json").read_text()), hf.Index.open(folder / "index")
    words = FTS5.build([f"{title}\n{text}" for title, text in zip(index.titles, index.texts, strict=True)])
    number = {f"p{i}": i for i in range(PASSAGES)}
    qrels = Qrels([row["id"] for row in rows], [[number[g] for g in row["gold"]] for row in rows])
    expected = evaluate(qrels, {"words": words.search([row["question"] for row in rows], 10)}, ["mrr"])
    (whole,) = [group for group in found["groups"] if group["group"] == "all"]
    assert found["words"] == "FTS5"
    assert whole["estimates"]["words"]["mrr"]["mean"] == expected.estimate("words", "mrr").mean


def test_questions_that_are_not_judged_are_left_out(work, tmp_path):
    folder, rows = work
    write_jsonl(tmp_path / "some.jsonl", [rows[7], rows[3]])
    hopfuse(*command(folder, "--qrels", tmp_path / "some.jsonl", "--out", tmp_path / "n.json"))
    found = json.loads((tmp_path / "n.json").read_text())
    (whole,) = [group for group in found["groups"] if group["group"] == "all"]
    assert whole["queries"] == 2


def test_rankings_can_be_chosen_and_times_are_asked_for(work, tmp_path):
    folder, _ = work
    numbers = ("--metrics", "mrr", "--against", "mrr", "--out", tmp_path / "n.json", "--overwrite")
    for more, runs in (
        (("--only", "graph", "--only", "policy-rag"), ["dense", "graph", "policy-rag"]),
        (("--skip", "words", "--skip", "policy-rag"), [run for run in RUNS if run not in ("words", "policy-rag")]),
        (("--only", "graph", "--skip", "graph"), ["dense"]),
    ):
        done = hopfuse(*command(folder, *more, *numbers))
        found = json.loads((tmp_path / "n.json").read_text())
        assert found["runs"] == runs
        assert "ms per query" not in found
        assert "search peak bytes" not in found["memory"]
        assert "ms, alone" not in done.stdout


def test_runs_of_other_systems_are_judged_beside_the_rankings(work, tmp_path):
    folder, rows = work
    out, run = tmp_path / "numbers.json", tmp_path / "mine.trec"
    lines = [
        f"{row['id']} Q0 {p} {rank} {9 - rank} x" for row in rows[1:] for rank, p in enumerate(["p?", *row["gold"]], 1)
    ]
    run.write_text("\n".join(lines), encoding="utf-8")
    more = ("--only", "graph", "--time", "--metrics", "mrr,recall@5,hit@1", "--against", "hit@1", "--out", out)
    output = hopfuse(*command(folder, "--run", f"mine={run}", *more)).stdout
    found = json.loads(out.read_text())
    assert found["runs"] == ["dense", "graph", "mine"]
    values = {"mrr": [0.0, *[0.5] * 39], "recall@5": [0.0, *[1.0] * 39], "hit@1": [0.0] * 40}
    assert found["per_query"]["values"]["mine"] == values
    assert "p: McNemar's exact test, not corrected" in output
    assert set(found["ms per query"]) == {"dense", "graph"}
    assert f"mine lacks 1 of {QUESTIONS} queries" in output
    named = refused(*command(folder, "--run", f"graph={run}", "--only", "graph"))
    assert named == about("duplicate", "runs", given="graph")


def test_a_cache_without_an_encoder_is_refused(work):
    folder, _ = work
    assert refused(*command(folder, "--cache", folder / "cache")) == about("unused", "cache", other="encoder")


@pytest.mark.parametrize("option", ["--queries", "--vectors", "--qrels"])
def test_an_input_file_is_not_overwritten(work, tmp_path, refused_here, option):
    folder, rows = work
    files = {"--queries": folder / "queries.jsonl", "--vectors": folder / "vectors.npy"}
    files |= {"--qrels": write_jsonl(tmp_path / "gold.jsonl", rows[:3])}
    before = files[option].read_bytes()
    given = (part for pair in files.items() for part in pair)
    message = refused_here("compare", folder / "index", *given, "--out", files[option], "--overwrite")
    assert message == about("conflict", "out", other=option.lstrip("-"))
    assert files[option].read_bytes() == before


@pytest.mark.parametrize("part", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_no_part_of_a_beir_folder_is_replaced(work, tmp_path, refused_here, part):
    folder, _ = work
    (tmp_path / "beir" / "qrels").mkdir(parents=True)
    read = tmp_path / "beir" / part
    read.write_text("kept", encoding="utf-8")
    message = refused_here(*command(folder, "--qrels", tmp_path / "beir", "--out", read, "--overwrite"))
    assert message == about("conflict", "out", other=f"qrels ({part})", file=read)
    assert read.read_text(encoding="utf-8") == "kept"


def test_an_invalid_comparison_is_refused(work, tmp_path):
    folder, rows = work
    out = tmp_path / "n.json"
    assert refused(*command(folder, "--against", "map", "--out", out)) == about("choice", "against", given="map")
    write_jsonl(tmp_path / "other.jsonl", [{**rows[0], "id": "nobody"}])
    assert refused(*command(folder, "--qrels", tmp_path / "other.jsonl", "--out", out)) == about("missing", "qrels")
    write_jsonl(tmp_path / "stranger.jsonl", [{"id": "q0", "gold": ["p999"]}])
    assert refused(*command(folder, "--qrels", tmp_path / "stranger.jsonl", "--out", out)) == about(
        "unknown", "qrels", given="p999"
    )
    texts = tmp_path / "texts"
    hf.Index.build(passages=[{"id": f"p{at}", "text": "a"} for at in range(PASSAGES)]).save(texts)
    files = ("--queries", folder / "queries.jsonl", "--vectors", folder / "vectors.npy")
    assert refused("compare", texts, *files) == about("unused", "vectors")
    np.save(tmp_path / "short.npy", np.zeros((QUESTIONS, DIM - 1), np.float32))
    short = ("--queries", folder / "queries.jsonl", "--vectors", tmp_path / "short.npy")
    message = refused("compare", folder / "index", *short)
    assert message == about("shape", "vectors[0]", given=7, allowed=8)
    assert not out.exists()
    out.write_text("kept")
    assert refused(*command(folder, "--out", out)) == about("exists", "out")
    assert out.read_text() == "kept"
