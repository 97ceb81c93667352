import json
import shlex

import numpy as np
import pytest
from cli.cli_files import EDGES, ENTITIES, TEXTS, about, hopfuse, read_jsonl, write_jsonl
from doors.shapes import SHAPES
from hopfuse import Index, ppr_topk
from hopfuse.diagnose import RANKINGS, error_correlation, paraphrase, rank_stability, rewritings, substitute_aliases
from hopfuse.encoders import WordLlamaEncoder
from hopfuse.errors import InputError
from hopfuse.evaluate import Qrels
from hopfuse.extract import Gazetteer, QuestionMatcher
from hopfuse.recipes import PhaseGraph
from refusals import refused as raises_refusal

#: What is said before the numbers of sections.
SAID = ("note", "verdict", "indication", "next", "faults")
# In the tiny index p4 has no edge, and so has Turing but for p5: components {p0, p1, p2, p3 and their entities},
# {p4}, {p5, Turing}.
QUESTIONS = [
    {"id": "connected", "text": "What of Ada?", "gold": ["p0", "p3"]},
    {"id": "apart", "text": "What of Turing?", "gold": ["p5", "p0"]},
    {"id": "seedless", "text": "What of nothing?", "gold": ["p4"]},
    {"id": "unjudged", "text": "What of London?"},
]


@pytest.fixture
def asked(index, files, tmp_path):
    unjudged = [{name: value for name, value in row.items() if name != "gold"} for row in QUESTIONS]
    write_jsonl(tmp_path / "questions.jsonl", unjudged)
    write_jsonl(tmp_path / "gold.jsonl", QUESTIONS[:3])
    np.save(tmp_path / "vectors.npy", np.load(files / "query_vectors.npy")[:4])
    inputs = ("--queries", tmp_path / "questions.jsonl", "--vectors", tmp_path / "vectors.npy")
    return ["diagnose", index, *inputs, "--k", 3]


def test_every_number_by_hand(asked, index, tmp_path):
    found = json.loads(hopfuse(*asked, "--qrels", tmp_path / "gold.jsonl", "--json").stdout)
    graph = Index.open(index).graph
    assert found["graph"] == {
        "passages": 6,
        "entities": 6,
        "components": 3,
        "nodes in the largest": 9 / 12,
        "passages without an edge": 1,
        "entities without an edge": 0,
    }
    # Ada is in p0 and p1 by edges, Engine in p0 and p1, London and Thames in two, Babbage and Turing in one.
    assert found["names"] == {"names": 6, "of a single passage": 3 / 6, "shared by several entities": 0}
    assert found["seeds"] == {
        "questions": 4,
        "with seeds": 3 / 4,
        "seeds of a question, median": 1.0,
        "passages of the rarest seed, median": 1.0,
        "all gold passages connected to a seed": 1 / 3,
    }
    assert (found["mass"]["walks"], found["mass"]["hubs"]) == (3, 1)
    local = found["local walks"]
    assert 0 < local["passes over the graph read, median"] <= local["passes read, 95th percentile"]
    assert local["ppr_topk walks locally"] is False  # a small graph
    assert 0 < found["mass"]["hubs' share of the mass, mean"] < 1
    # The walk for Turing has two nodes, the others at most nine.
    assert 1 <= found["mass"]["effective nodes, median"] <= 9
    assert [row["size"] for row in found["pools"]] == [5, 6]
    assert found["pools"][1] == {"size": 6, "dense": 0.0, "graph": (0 + 1 / 2 + 1) / 3, "either": 0.0}
    legs = found["legs"]
    assert legs["full_support@3 judged"] == 3
    assert legs["both"] + legs["dense alone"] + legs["graph alone"] + legs["neither"] == 3
    # Walks find p0 alone of Ada's component within 3 hits, or p0 and p3.
    ada = ppr_topk(graph, [{6: 1.0}], 3, candidates=np.arange(6)).ids[0].tolist()
    assert legs["both"] + legs["graph alone"] == int({0, 3} <= set(ada))


def test_without_judgements_only_what_needs_none(asked):
    found = json.loads(hopfuse(*asked, "--json").stdout)
    assert set(found) == {*SAID, "graph", "names", "seeds", "mass", "local walks", "legs"}
    assert found["verdict"] is None
    assert set(found["legs"]) == {"overlap@3, mean"}
    assert "all gold passages connected to a seed" not in found["seeds"]


def test_tables(asked, tmp_path):
    output = " ".join(hopfuse(*asked, "--qrels", tmp_path / "gold.jsonl").stdout.split())
    assert output.startswith("Verdict on 3 judged questions, too few to decide: an indication only. Use ")
    for line in ("components", "with seeds", "entropy in bits, median", "correlation of errors", "gold lost, by size"):
        assert line in output
    assert "0.750" in output


def test_legs_that_always_agree_have_no_correlation():
    assert np.isnan(error_correlation(np.ones(3), np.ones(3)))


def test_questions_none_of_which_has_a_seed(asked, files, tmp_path):
    write_jsonl(tmp_path / "questions.jsonl", [{"id": "a", "text": "What of nothing?"}] * 4)
    found = json.loads(hopfuse(*asked, "--json").stdout)
    assert found["seeds"]["with seeds"] == 0
    assert found["mass"]["walks"] == 0
    assert "entropy in bits, median" not in found["mass"]
    assert found["legs"]["overlap@3, mean"] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--encoder", "wordllama"), about("conflict", "vectors", other="encoder")),
        (("--pool", 2), about("range", "k", given=3)),
        (("--qrels", "others"), about("missing", "qrels", count="4 questions", example="connected")),
        (("--qrels", "strange"), about("unknown", "qrels", count="1 gold passage", given="p99")),
    ],
)
def test_bad_questions_are_refused(refused_here, asked, tmp_path, change, message):
    write_jsonl(tmp_path / "others.jsonl", [{"id": "x", "gold": ["p1"]}])
    write_jsonl(tmp_path / "strange.jsonl", [{"id": "apart", "gold": ["p1", "p99"]}])
    change = (change[0], tmp_path / f"{change[1]}.jsonl") if change[0] == "--qrels" else change
    assert refused_here(*asked, *change) == message


def test_no_questions(refused_here, index, tmp_path):
    write_jsonl(tmp_path / "none.jsonl", [])
    np.save(tmp_path / "none.npy", np.zeros((0, 8), np.float32))
    inputs = ("--queries", tmp_path / "none.jsonl", "--vectors", tmp_path / "none.npy", "--k", 3)
    assert refused_here("diagnose", index, *inputs) == about("empty", "queries")


# ---- The verdict, over every shape of index -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    """The folder of an index of every shape, and of one without texts; two questions, without and with gold."""
    pytest.importorskip("wordllama", reason="the vectors are WordLlama's (extra demo)")
    folder = tmp_path_factory.mktemp("shapes")
    for shape, save in SHAPES.items():
        save(folder / shape)
    edges = [{"src": at, "dst": 3 + at % 2} for at in range(3)]
    empty = [{"id": f"p{at}", "text": ""} for at in range(3)]
    Index.build(passages=empty, vectors=np.eye(3), entities=["Ada", "London"], graph=edges).save(folder / "no texts")
    for name, ids in (("rows", (0, 4)), ("ids", ("p0", "p4"))):
        texts = ["Who wrote on the Engine of Babbage?", "Who read notes in Manchester?"]
        asked = [{"id": str(at), "text": text} for at, text in enumerate(texts)]
        write_jsonl(folder / f"{name}.jsonl", asked)
        write_jsonl(folder / f"{name} judged.jsonl", [{**q, "gold": [id]} for q, id in zip(asked, ids, strict=True)])
    write_jsonl(folder / "none judged.jsonl", [{"id": "q", "text": "Who is Ada?", "gold": ["p0"]}])
    return folder


@pytest.mark.parametrize("shape", [*SHAPES, "no texts"])
def test_every_shape_has_a_verdict_and_an_indication(shapes, shape):
    kind = "rows" if shape == "texts" else "none" if shape == "no texts" else "ids"
    judged = shapes / f"{kind} judged.jsonl"
    found = json.loads(hopfuse("diagnose", shapes / shape, "--queries", judged, "--json").stdout)
    said, index = found["verdict"], Index.open(shapes / shape)
    ran = [one["ranking"] for one in said["rankings"]]
    assert set(ran) | set(said["left out"]) == {name for name, one in RANKINGS.items() if not one.detail}
    assert "words" in ran
    assert ("dense" in ran) == ("plain-hybrid" in ran) == (index.encoder is not None)
    assert said["use"] in ran
    assert (said["graph"] is not None) == (index.graph is not None)
    assert ("graph" in found) == (index.graph is not None)
    assert ("legs" in found) == (index.graph is not None and index.encoder is not None)
    assert (found["note"] is not None) == (shape == "no texts")
    assert ["Passages without text" in fault["what"] for fault in found["faults"]].count(True) == (shape == "no texts")
    plain = hopfuse("diagnose", shapes / shape, "--queries", judged).stdout
    lines = plain.splitlines()
    if shape == "no texts":
        assert lines.pop(0) == "Without the index's vectors: give --vectors FILE of the questions or --encoder."
        assert said["left out"]["dense"] == said["left out"]["guided-walk"]
        assert said["left out"]["dense"] == "nothing makes the vectors of the questions"
    assert lines[0].startswith(f"Verdict on {said['questions']} judged question")
    said_next = [line.removeprefix("Next: ") for line in plain.splitlines() if line.startswith("Next: ")]
    assert said_next == ([] if found["next"] is None else [found["next"]])
    for line in said_next:
        program, *words = shlex.split(line)
        assert program == "hopfuse"
        assert hopfuse(*words).stdout
    assert bool(said_next) == (found["note"] is None)  # nothing makes the vectors that a search would read
    if found["note"] is None:
        out = shapes / f"{shape} {said['questions']}.json"
        hopfuse("compare", shapes / shape, "--queries", judged, "--out", out, "--overwrite")
        compared = json.loads(out.read_text())
        assert set(compared["runs"]) | set(compared["left out"]) == set(RANKINGS)
    hinted = json.loads(hopfuse("diagnose", shapes / shape, "--json").stdout)
    assert hinted["verdict"] is None
    assert set(hinted["indication"]) - {"one passage", "two passages"} == {"lacks", "use"}
    assert "seeds" not in hinted


def test_the_next_command_reads_a_question_that_begins_as_an_option(shapes, tmp_path):
    write_jsonl(tmp_path / "asked.jsonl", [{"id": "q", "text": "-v: what of Babbage?", "gold": ["p0"]}])
    folder = next(shapes / shape for shape in SHAPES if shape != "texts")
    found = json.loads(hopfuse("diagnose", folder, "--queries", tmp_path / "asked.jsonl", "--json").stdout)
    assert "-v: what of Babbage?" in shlex.split(found["next"])
    assert hopfuse(*shlex.split(found["next"])[1:]).stdout


def test_an_indication_is_called_so(shapes, tmp_path):
    rows = [
        {"id": f"p{at}", "title": f"Town {at}", "text": f"It lies by the sea, {'and far ' * at} from here."}
        for at in range(12)
    ]
    Index.build(passages=rows).save(tmp_path / "towns")
    output = hopfuse("diagnose", tmp_path / "towns").stdout
    assert output.startswith("An indication, not a verdict: ")
    found = json.loads(hopfuse("diagnose", tmp_path / "towns", "--sample", 10, "--json").stdout)
    assert found["indication"]["one passage"]["questions"] == 10
    assert "This sample says nothing here" in " ".join(output.split())
    program, command, _, question, *more = shlex.split(found["next"])  # the default search
    assert (program, command, question[:5], more) == ("hopfuse", "search", "Town ", [])
    none = json.loads(hopfuse("diagnose", tmp_path / "towns", "--sample", 0, "--json").stdout)
    assert (none["indication"], none["next"]) == (None, None)


def test_questions_without_gold_are_described(shapes):
    output = hopfuse("diagnose", shapes / "all", "--queries", shapes / "ids.jsonl").stdout
    assert output.startswith("The questions of --queries have no gold, so they are not judged: they are used ")
    assert "An indication, not a verdict" in output
    assert "passages of the rarest seed, median" in output


def test_rankings_that_are_skipped_and_vectors_of_a_file(shapes, tmp_path):
    index = Index.open(shapes / "vectors and graph")
    np.save(tmp_path / "q.npy", np.asarray(index.vectors)[[0, 4]])
    asked = ("--queries", shapes / "ids judged.jsonl", "--vectors", tmp_path / "q.npy")
    found = json.loads(hopfuse("diagnose", index.directory, *asked, "--skip", "guided-walk", "--json").stdout)
    assert "guided-walk" not in [one["ranking"] for one in found["verdict"]["rankings"]]
    program, command, *words = shlex.split(found["next"])
    assert (program, command, words[0]) == ("hopfuse", "score", str(index.directory))
    words[words.index("--out") + 1] = str(tmp_path / "run.jsonl")
    hopfuse(command, *words)
    assert [row["id"] for row in read_jsonl(tmp_path / "run.jsonl")] == ["0", "1"]


def test_judgements_of_some_rows_only_are_refused(refused_here, shapes, tmp_path):
    rows = [{"id": "a", "text": "Who?", "gold": ["p0"]}, {"id": "b", "text": "What?"}]
    asked = ("--queries", write_jsonl(tmp_path / "q.jsonl", rows))
    assert refused_here("diagnose", shapes / "all", *asked).places == [f"{tmp_path / 'q.jsonl'}, line 2"]


def test_gold_of_the_questions_that_the_index_lacks_is_that_of_queries(refused_here, shapes, tmp_path):
    asked = write_jsonl(tmp_path / "q.jsonl", [{"id": "a", "text": "Who?", "gold": ["p99"]}])
    wrong = about("unknown", "queries", count="1 gold passage", given="p99")
    assert refused_here("diagnose", shapes / "all", "--queries", asked) == wrong
    write_jsonl(asked, [{"id": "a", "text": "Who?", "gold": []}])
    assert refused_here("diagnose", shapes / "all", "--queries", asked) == about("missing", "queries", example="a")


@pytest.mark.parametrize("option", ["qrels", "vectors", "stability"])
def test_options_of_questions_need_questions(refused_here, shapes, files, option):
    value = {"qrels": files / "queries.jsonl", "vectors": files / "vectors.npy", "stability": "phase-graph"}[option]
    refusal = refused_here("diagnose", shapes / "all", f"--{option}", value)
    assert refusal == about("unused", option, other="queries")


# ---- Stability ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    """An index of texts that have WordLlama's vectors, and questions without mentions; Ada has another name."""
    pytest.importorskip("wordllama", reason="the texts' vectors are WordLlama's (extra demo)")
    encoder, folder = WordLlamaEncoder(64), tmp_path_factory.mktemp("spoken")
    first = len(TEXTS)
    edges = [{"src": first + a, "dst": first + b, "type": "relation"} for a, b in ((0, 1), (1, 2), (3, 4))]
    edges += [{"src": a, "dst": b, "type": "context"} for a, b in EDGES]
    index = Index.build(
        passages=[{"id": f"p{at}", "text": text} for at, text in enumerate(TEXTS)],
        vectors=encoder.encode_passages(TEXTS),
        entities=ENTITIES,
        aliases={"Ada": ["Countess of Lovelace"]},
        graph=edges,
        facts=[{"head": "Babbage", "relation": "built", "tail": "Engine", "passage": 1}],
    )
    index.save(folder / "index")
    rows = [{"id": "a", "text": "What is Ada?", "gold": ["p0"]}, {"id": "b", "text": "Babbage", "gold": ["p1"]}]
    return index, write_jsonl(folder / "questions.jsonl", rows), encoder


def stable(spoken, *recipes):
    folder = spoken[1].parent
    named = [part for recipe in recipes for part in ("--stability", recipe)]
    asked = ("--queries", spoken[1], "--encoder", "wordllama:64", "--k", 3)
    return ["diagnose", folder / "index", *asked, "--qrels", spoken[1], *named]


def test_stability_is_rank_stability_of_the_recipe(spoken):
    index, questions, encoder = spoken
    rows = json.loads(hopfuse(*stable(spoken, "phase-graph", "policy-rag", "hybrid-rrf"), "--json").stdout)["stability"]
    ways = [(row["recipe"], row["rewriting"]) for row in rows]
    assert ways == [(r, w) for r in ("phase-graph", "policy-rag", "hybrid-rrf") for w in ("paraphrases", "other names")]
    texts = [row["text"] for row in read_jsonl(questions)]
    matcher = Gazetteer(list(index.entity_names), {0: ["Countess of Lovelace"]})
    recipe = PhaseGraph(index, encoder=encoder, matcher=matcher)
    qrels = Qrels(["a", "b"], [[0], [1]])
    made = {"paraphrases": paraphrase(texts), "other names": substitute_aliases(texts, index)}
    assert made["other names"].rewritten == ("What is Countess of Lovelace?", "Babbage")
    for row, rewriting in zip(rows[:2], made.values(), strict=True):
        found = rank_stability(lambda asked, _: recipe.search(asked, k=3).hits, rewriting, k=3, qrels=qrels)
        assert row["questions"] == found.num_changed
        means = {name: estimate.mean for name, estimate in found.summary().items()}
        assert {name: row[name] for name in means} == pytest.approx(means)


def test_mentions_that_are_given_follow_the_question(spoken):
    index = spoken[0]
    texts = ["What is Ada?", "Who is it?", "Ada?"]
    found = QuestionMatcher(index).match(["Ada?"])[0]
    made = rewritings(texts, index, [[0], ["London"], [*found, 0]])["other names"]
    assert (made.rewritten[0], made.entities, made.rewritten_entities) == (
        "What is Countess of Lovelace?",
        [["Ada"], ["London"], ["Ada"]],
        [["Countess of Lovelace"], ["London"], ["Countess of Lovelace"]],
    )
    with raises_refusal(InputError, "unknown", "entities[1]", given=9, allowed="0 .. 5"):
        rewritings(["Who?", "What?"], index, [[], [9]])


def test_the_command_rewrites_the_mentions_of_the_questions(spoken, tmp_path, refused_here):
    index, _, encoder = spoken
    rows = [{"id": "a", "text": "What is Ada?", "entities": ["Thames"]}, {"id": "b", "text": "Babbage"}]
    questions = write_jsonl(tmp_path / "q.jsonl", rows)
    given = stable((index, spoken[1], encoder), "phase-graph")
    given[given.index("--queries") + 1] = questions
    found = json.loads(hopfuse(*given, "--json").stdout)["stability"]
    texts, mentions = [row["text"] for row in rows], [["Thames"], ["Babbage"]]
    recipe = PhaseGraph(index, encoder=encoder)

    def search(asked, entities):
        return recipe.search(asked, entities=entities, k=3).hits

    for row, rewriting in zip(found, rewritings(texts, index, mentions).values(), strict=True):
        stability = rank_stability(search, rewriting, k=3, qrels=Qrels(["a", "b"], [[0], [1]]))
        assert row["questions"] == stability.num_changed
        means = {name: estimate.mean for name, estimate in stability.summary().items()}
        assert {name: row[name] for name in means} == pytest.approx(means)
    write_jsonl(questions, [rows[0], {"id": "b", "text": "Who?", "entities": [9]}])
    assert refused_here(*given) == about("unknown", "entities[1][0]", given=9)


def test_the_table_of_stability_and_questions_that_nothing_rewrites(spoken, tmp_path):
    folder = spoken[1].parent
    questions = write_jsonl(tmp_path / "q.jsonl", [{"id": "a", "text": "5 men"}])
    asked = ("--queries", questions, "--encoder", "wordllama:64", "--k", 3, "--stability", "phase-graph")
    output = hopfuse("diagnose", folder / "index", *asked).stdout
    rows = [line.split() for line in output.splitlines() if "phase-graph" in line]
    assert rows[1] == ["phase-graph", "other", "names", "0", "-", "-", "-"]
    assert rows[0][:3] == ["phase-graph", "paraphrases", "1"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ("--stability", "phase-graph"),
            about("conflict", "stability", other="vectors"),
        ),
        (("--policy", "policy.toml"), about("unused", "policy", other=["stability policy-rag"])),
    ],
)
def test_the_inputs_that_stability_needs(refused_here, asked, more, message):
    assert refused_here(*asked, *more) == message
