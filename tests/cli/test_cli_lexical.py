"""The lexical part on the command line: built, shown, fused, explained; and the errors."""

import json

import numpy as np
import pytest
from cli.cli_files import QUERIES, TEXTS, about, build_args, hopfuse, read_jsonl
from hopfuse import Index
from hopfuse.lexical import BM25
from hopfuse.recipes import GuidedWalk, PhaseGraph

pytest.importorskip("bm25s", reason="BM25 needs bm25s (extra text)")
pytest.importorskip("Stemmer", reason="the default stemmer is PyStemmer's (extra text)")

QUESTION = "Which river is by London?"


@pytest.fixture(scope="session")
def lexical_index(files, tmp_path_factory):
    directory = tmp_path_factory.mktemp("lexical") / "tiny"
    hopfuse(*build_args(files), "--lexical", "--out", directory)
    return directory


@pytest.fixture
def scoring(files, lexical_index):
    return ["score", lexical_index, *map(str, _inputs(files))]


def _inputs(files):
    return "--queries", files / "queries.jsonl", "--vectors", files / "query_vectors.npy"


def test_build_keeps_bm25_over_titles_and_texts(lexical_index):
    built = Index.open(lexical_index, verify="full")
    expected = BM25.build([f"{text.split()[0]}\n{text}" for text in TEXTS]).matrix
    assert built.lexical.terms == expected.terms
    assert np.array_equal(built.lexical.scores, expected.scores)


@pytest.mark.parametrize(("language", "stemmer", "some"), [("german", "german", True), ("plain", None, False)])
def test_build_takes_a_language(files, tmp_path, language, stemmer, some):
    hopfuse(*build_args(files), "--lexical", language, "--out", tmp_path / "index")
    found = Index.open(tmp_path / "index").info()["lexical"]
    assert (found["stemmer"], found["stopwords"] > 0) == (stemmer, some)


def test_none_leaves_it_out(files, tmp_path):
    hopfuse(*build_args(files), "--lexical", "none", "--out", tmp_path / "index")
    assert Index.open(tmp_path / "index").lexical is None


def test_info_describes_the_lexical_part(lexical_index, index):
    output = hopfuse("info", lexical_index, "--verify").stdout
    assert "lexical: stemmer" in output
    assert "lucene" in output
    assert json.loads(hopfuse("info", lexical_index, "--json").stdout)["lexical"]["terms"] > 10
    assert "lexical:" not in hopfuse("info", index).stdout


def test_score_fuses_three_lists(scoring, lexical_index, files, tmp_path):
    given = ["--recipe", "phase-graph", "--words", "--lexical-weight", 0.9, "--lexical-k", 3, "--k", 4, "--chunk", 71]
    hopfuse(*scoring, *given, "--out", tmp_path / "out.jsonl")
    opened = Index.open(lexical_index)
    rows = read_jsonl(files / "queries.jsonl")
    recipe = PhaseGraph(opened, lexical=BM25(opened.lexical), lexical_weight=0.9, lexical_k=3)
    named = [[name for name in opened.entity_names if name in row["text"]] for row in rows]
    found = recipe.search(
        [row["text"] for row in rows], vectors=np.load(files / "query_vectors.npy"), entities=named, k=4
    )
    assert [[hit["score"] for hit in row["hits"]] for row in read_jsonl(tmp_path / "out.jsonl")] == [
        [score for _, score in found.hits.row(q)] for q in range(QUERIES)
    ]
    hopfuse(*scoring, "--recipe", "phase-graph", "--out", tmp_path / "two.jsonl", "--k", 4)
    assert read_jsonl(tmp_path / "two.jsonl") != read_jsonl(tmp_path / "out.jsonl")


def test_explain_shows_the_third_list(lexical_index, files):
    ask = ["trace", lexical_index, QUESTION, "--vectors", files / "query_vectors.npy"]
    output = hopfuse(*ask, "--lexical-weight", 0.3).stdout
    assert "Lexical list of 2" in output
    assert " lexical 0." in output
    assert "Lexical list" not in hopfuse(*ask, "--lexical-weight", 0).stdout
    assert "Weight of direct retrieval" in hopfuse(*ask).stdout


def test_words_of_the_index_raise_weights_unless_they_are_left_out(lexical_index, files):
    ask = [lexical_index, QUESTION, "--vectors", files / "query_vectors.npy"]
    output = hopfuse("trace", *ask).stdout
    opened = Index.open(lexical_index)
    recipe = GuidedWalk(opened, lexical=BM25(opened.lexical))
    given = {"vectors": np.load(files / "query_vectors.npy")[:1], "entities": [["London"]], "trace": True}
    found = recipe.search([QUESTION], **given)
    assert f"Other words, which raise weights: {found.traces[0]['other_words'].strip()}" in output
    assert f"raised {max(hit['boost'] for hit in found.traces[0]['hits']):.3g} times by words" in output
    assert "raise weights" not in hopfuse("trace", *ask, "--words", "none").stdout
    for command in ("search", "trace"):
        shown = json.loads(hopfuse(command, *ask, "--json").stdout)
        assert [hit["score"] for hit in shown["hits"]] == [score for _, score in found.hits.row(0)]


@pytest.mark.parametrize(
    ("words", "question", "ids"),
    [
        ("fts5", "town", ["a"]),  # stems: towns
        ("fts5:unicode61", "town", []),
        ("fts5:unicode61", "towns", ["a"]),
        ("fts5:trigram", "ownship", ["b"]),
        ("fts5", "ownship", []),
    ],
)
def test_the_tokenizer_of_sqlite_is_chosen(tmp_path, output_of, words, question, ids):
    Index.build([{"id": "a", "text": "Two towns."}, {"id": "b", "text": "A township."}]).save(tmp_path / "index")
    search = ("search", tmp_path / "index", question, "--recipe", "hybrid-rrf", "--words", words, "--json")
    assert [hit["id"] for hit in json.loads(output_of(*search))["hits"]] == ids


def test_bad_lexical_options_are_refused(refused_here, scoring, index, files, tmp_path):
    out = ["--out", tmp_path / "out.jsonl"]
    plain = [*scoring, *out, "--recipe", "phase-graph"]
    assert refused_here(*plain, "--lexical-k", 5) == about("unused", "lexical_k", other="words")
    assert refused_here(*plain, "--lexical-weight", 0.3) == about("unused", "lexical_weight", other="words")
    unread = [*scoring, *out, "--lexical-weight", 0, "--lexical-k", 5]
    assert refused_here(*unread).field == "lexical_k"
    bare = [*scoring, *out, "--words", "none", "--option"]
    assert refused_here(*bare, "word_boost=1") == about("unused", "word_boost", other="words")
    assert refused_here(*scoring, *out, "--words", "--lexical-weight", -1) == about(
        "range", "lexical_weight", given=-1.0
    )
    build = [*build_args(files), "--out", tmp_path / "index", "--lexical"]
    assert refused_here(*build, "klingon") == about("choice", "lexical", given="klingon")
    assert not (tmp_path / "index").exists()


def test_a_query_without_text_has_no_words(refused_here, lexical_index, tmp_path):
    (tmp_path / "queries.jsonl").write_text('{"id": "q", "entities": ["London"]}\n', encoding="utf-8")
    np.save(tmp_path / "vectors.npy", np.ones((1, 8), np.float32))
    inputs = ["--queries", tmp_path / "queries.jsonl", "--vectors", tmp_path / "vectors.npy"]
    answers = []
    for given in ([], ["--words"], ["--words", "none"]):
        out = tmp_path / f"{len(answers)}.jsonl"
        hopfuse("score", lexical_index, *inputs, "--out", out, *given)
        answers.append(out.read_text(encoding="utf-8"))
    assert answers[0] == answers[1] == answers[2]
    both = ["--recipe", "hybrid-rrf", "--out", tmp_path / "out.jsonl"]
    assert refused_here("score", lexical_index, *inputs, *both) == about("missing", "text")
