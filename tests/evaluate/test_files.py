import json

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import FormatError, InputError, MissingExtraError
from hopfuse.evaluate import PassageNames, Qrels, read_qrels, read_run, write_qrels, write_run
from hopfuse.io import line_blocks
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused


def written(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def named(rows, names):
    return [[names.name(number) for number in row] for row in rows]


def ranking(run, names):
    return [[(names.name(i), s) for i, s in run.hits.row(b)] for b in range(len(run))]


def test_half_a_character_is_refused_with_its_line(tmp_path):
    whole = written(tmp_path, "t.jsonl", '{"id": "a", "title": "\\ud83d\\ude80 \\\\ud800"}\n')
    names = PassageNames()
    names.read_titles(whole)
    assert names.titles == {"a": "\U0001f680 \\ud800"}
    half = written(tmp_path, "h.jsonl", '{"id": "a", "title": "b"}\n{"id": "b", "title": "x\\uD800"}\n')
    with refused(FormatError, "syntax", given="\\ud800", place="h.jsonl, line 2"):
        names.read_titles(half)
    judged = written(tmp_path, "q.jsonl", '{"id": "\\udfff", "gold": ["a"]}\n')
    with refused(FormatError, "syntax", given="\\udfff", place="q.jsonl, line 1"):
        read_qrels(judged, names)
    run = written(tmp_path, "r.json", '{"q": {"\\udbff": 1.0}}')
    with refused(FormatError, "syntax", given="\\udbff", place="r.json"):
        read_run(run, ["q"], names)


# ---- Judgements -----------------------------------------------------------------------------------------------------


def test_trec_qrels(tmp_path):
    path = written(tmp_path, "qrels", "\ufeffq1 0 d1 1\nq1\t0  d2 0\r\n\nq2 0 d3 2\nq1 0 d4 3\nq3 0 d1 -1\n")
    names = PassageNames()
    q = read_qrels(path, names)
    assert q.ids == ("q1", "q2", "q3")
    assert named(q.gold, names) == [["d1", "d4"], ["d3"], []]
    assert q.grades == ((1, 3), (2,), ())
    assert q.num_hops.tolist() == [0, 0, 0]


def test_comments_and_names_with_other_white_space_than_trecs(tmp_path):
    comments = "# judged in 2024\n#\n#pool of depth 100\n#see 2 things then\n# pool of depth x\n"
    path = written(tmp_path, "qrels", f"{comments}q1 0 d\u00a01 1\n#2 0 d2 1\n{comments}")
    names = PassageNames()
    q = read_qrels(path, names)
    assert (q.ids, named(q.gold, names)) == (("q1", "#2"), [["d\u00a01"], ["d2"]])


def test_lines_of_runs_that_begin_with_a_sign_are_rows_if_all_fields_are(tmp_path):
    comments = "# Q0 d1 1 0.5 t\n#made on 2024 with 0.85 damping\n#q Q0 d1 first 0.5 t\n#q Q0 d1 1 best t\n#q 0\n"
    rows = "#q Q0 d1 1 0.5 t\nq1 Q0 d1 - 0.5 t\n#q2 0 d2 - 2 t more\n#\u00e9 q0 d1 1 1e-3 t\n"
    names = PassageNames()
    run = read_run(written(tmp_path, "run", comments + rows + comments), ["#q", "q1", "#q2", "#\u00e9"], names)
    assert [[name for name, _ in row] for row in ranking(run, names)] == [["d1"], ["d1"], ["d2"], ["d1"]]


def test_jsonl_by_number_or_by_name(tmp_path):
    rows = [
        {"id": 5, "gold": [7, "p9"], "hops": [["p9"], [7]], "last_hop": ["7"], "question": "?", "answer": "!"},
        {"id": "b", "gold": ["p9"], "hops": None},
    ]
    path = written(tmp_path, "q.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    names = PassageNames()
    q = read_qrels(path, names)
    assert q.ids == ("5", "b")
    assert named(q.gold, names) == [["7", "p9"], ["p9"]]
    assert named(q.last_hop, names) == [["7"], []]
    assert (q.num_hops.tolist(), q.questions, q.answers) == ([2, 0], ("?", ""), (("!",), ()))


@pytest.fixture
def beir(tmp_path):
    corpus = [{"_id": "d1", "title": "Ada", "text": "x"}, {"_id": "d2", "title": "", "text": "y"}]
    written(tmp_path, "corpus.jsonl", "".join(json.dumps(row) + "\n" for row in corpus))
    written(tmp_path, "queries.jsonl", '{"_id": "q1", "text": "Who?"}\n{"_id": "q2", "text": "When?"}\n')
    written(tmp_path, "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq2\td2\t1\nq1\td1\t2\nq1\td2\t0\n")
    return tmp_path


def test_a_beir_folder(beir):
    names = PassageNames()
    q = read_qrels(beir, names)
    assert (q.ids, named(q.gold, names), q.grades) == (("q2", "q1"), [["d2"], ["d1"]], ((1,), (2,)))
    assert q.questions == ("When?", "Who?")
    assert dict(names.titles) == {"d1": "Ada"}
    alone = read_qrels(beir / "qrels" / "test.tsv", PassageNames())
    assert (alone.ids, alone.grades) == (q.ids, q.grades)


def test_a_beir_folder_without_that_split_lists_its_splits(beir):
    with refused(InputError, "missing", "split"):
        read_qrels(beir, PassageNames(), split="dev")


@pytest.mark.parametrize(
    ("file", "text", "where", "error"),
    [
        (
            "qrels/test.tsv",
            "query-id\tcorpus-id\tscore\nq9\td1\t1\n",
            "qrels/test.tsv, line 2",
            ("unknown", "query-id", {"given": "q9"}),
        ),
        (
            "qrels/test.tsv",
            "query-id\tcorpus-id\tscore\nq1\td9\t1\n",
            "qrels/test.tsv, line 2",
            ("unknown", "corpus-id", {"given": "d9"}),
        ),
        (
            "qrels/test.tsv",
            "query-id\tcorpus-id\tscore\nq1 d1 1\n",
            "qrels/test.tsv, line 2",
            ("syntax", None, {"given": 1}),
        ),
        ("corpus.jsonl", '{"id": "d1"}\n', "corpus.jsonl, line 1", ("missing",)),
        ("queries.jsonl", '{"_id": null}\n', "queries.jsonl, line 1", ("type", "_id", {"given": None})),
    ],
)
def test_a_bad_beir_folder_is_named_by_file_and_line(beir, file, text, where, error):
    written(beir, file, text)
    with refused(FormatError, *error, place=f"{beir}/{where}"):
        read_qrels(beir, PassageNames())


@pytest.mark.parametrize(
    ("name", "text", "where", "error"),
    [
        ("q", "q1 0 d1 1\nq1 0 d2\n", "line 2", ("syntax", None, {"given": 3})),
        ("q", "q1 0 d1 1\nq1 0 d2 high\n", "line 2", ("type", "grade", {"given": "high"})),
        ("q", "# judged by two\nq1 0 d1\n", "line 2", ("syntax", None, {"given": 3})),
        ("q", f"q1 0 d1 {2**63}\n", None, ("range", "grades[0]", {"given": 2**63})),
        (
            "q",
            "q1 0 d1 1\nq2 0 d1 1\nq1 0 d1 0\n",
            "line 3",
            ("duplicate", None, {"query": "q1", "passage": "d1", "line": 1}),
        ),
        (
            "q.jsonl",
            '{"id": "a", "gold": [1]}\n{"id": "a", "gold": [2]}',
            "line 2",
            ("duplicate", "id", {"given": "a", "line": 1}),
        ),
        (
            "q.jsonl",
            '{"id": 1, "gold": [1]}\n{"id": "1", "gold": [2]}',
            "line 2",
            ("duplicate", "id", {"given": "1", "line": 1}),
        ),
        ("q.jsonl", '{"id": [[2]], "gold": [1]}', "line 1", ("type", "id", {"given": [[2]]})),
        ("q.jsonl", '{"id": null, "gold": [1]}', "line 1", ("type", "id", {"given": None})),
        ("q.jsonl", '{"id": "a", "gold": {"1": 1}}', "line 1", ("type", "gold", {"given": {"1": 1}})),
        ("q.jsonl", '{"id": "a", "gold": [1.5]}', "line 1", ("type", "gold[0]", {"given": 1.5})),
        ("q.jsonl", '{"id": "a", "gold": [1], "hops": 3}', "line 1", ("type", "hops", {"given": 3})),
        (
            "q.jsonl",
            '{"id": "a", "gold": [1], "hops": [2]}',
            "line 1",
            ("type", "hops[0]", {"given": 2}),
        ),
        ("q.jsonl", '{"id": "a", "gold": [1], "last_hop": [2]}', "line 1", ("unknown", "last_hop")),
        ("q.jsonl", '{"id": "a", "gold": [1, "1"]}', "line 1", ("duplicate", "gold")),
        ("q.jsonl", '{"id": "a", "gold": [1]', "line 1", ("syntax",)),
    ],
)
def test_bad_judgements_are_named_by_file_and_line(tmp_path, name, text, where, error):
    path = written(tmp_path, name, text)
    with refused(FormatError, *error, place=f"{path}, {where}" if where else str(path)):
        read_qrels(path, PassageNames())


def test_a_file_that_is_not_text_is_named(tmp_path):
    (tmp_path / "q").write_bytes(b"q1 0 d1 1\n\xff\xfe\n")
    with refused(FormatError, "syntax", place="q, line 2"):
        read_qrels(tmp_path / "q", PassageNames())


def test_the_judgements_of_the_real_files_are_those_by_number(data_folder):
    path = data_folder / "hotpotqa" / "queries.jsonl"
    names, by_number = PassageNames(), Qrels.read_jsonl(path)
    by_name = read_qrels(path, names)
    assert by_name.ids == by_number.ids
    assert by_name.answers == by_number.answers
    assert [[int(p) for p in row] for row in named(by_name.gold, names)] == [list(row) for row in by_number.gold]


def test_titles_of_passages(tmp_path):
    names = PassageNames()
    names.read_titles(
        written(tmp_path, "p.jsonl", '{"id": 3, "title": "Ada", "text": "."}\n{"id": "x", "title": null}\n')
    )
    assert dict(names.titles) == {"3": "Ada"}
    assert len(names) == 0
    with refused(FormatError, "type", "title"):
        names.read_titles(written(tmp_path, "p.jsonl", '{"id": 3, "title": 4}\n'))


# ---- Runs -----------------------------------------------------------------------------------------------------------

TREC = "q1 Q0 d2 2 0.5 t\nq1 Q0 d1 1 0.5 t\nq1 Q0 d3 3 0.75 t\nq9 Q0 d1 1 2 t\nq2 Q0 d1 1 -1e-3 t\n"


def test_a_trec_run_is_ordered_by_score_then_rank(tmp_path):
    names = PassageNames()
    run = read_run(written(tmp_path, "run", TREC), ["q2", "q1", "q3"], names)
    assert ranking(run, names) == [
        [("d1", pytest.approx(-1e-3))],
        [("d3", 0.75), ("d1", 0.5), ("d2", 0.5)],
        [],
    ]
    assert (run.num_missing, run.num_unjudged, run.answers) == (1, 1, None)


def test_a_trec_run_is_read_as_trec_eval_reads_it(tmp_path):
    text = (
        "\ufeff# run of 2024, by hand\n#\n"
        "q1 Q0 d1 - 0.5 t more fields 7\n"
        "\n \t \r\n"
        "q1\tQ0  d\u00a02 1.0 0.5 t\r\n"
        "q2 Q0 \u2003d3 2.0 0.5 t\n"
        "q2 Q0 d4 1.0 0.5 t\n"
        "#3 Q0 d5 1 0.5 t\n"
        "q2 Q0 d6 first 0.75 t"
    )
    names = PassageNames()
    run = read_run(written(tmp_path, "run", text), ["q1", "q2", "#3"], names)
    assert ranking(run, names) == [
        [("d1", 0.5), ("d\u00a02", 0.5)],  # a rank is no number: as in the file
        [("d6", 0.75), ("\u2003d3", 0.5), ("d4", 0.5)],
        [("d5", 0.5)],
    ]
    assert (run.num_missing, run.num_unjudged) == (0, 0)


@given(
    lines=st.lists(
        st.tuples(
            st.sampled_from(["q1", "q2", "q\u00e9", "#4"]),
            st.integers(0, 9),
            st.sampled_from(["1", "2.0", "-", "x", "inf", "3"]),
            st.sampled_from(["0.5", "1", "-2e-3", "1e2"]),
            st.sampled_from(["", " extra", " more fields"]),
            st.sampled_from(["\n", "\r\n", "\n\n", "\n# note\n", " \n#\n"]),
        ),
        max_size=12,
        unique_by=lambda one: one[:2],
    ),
    block=st.integers(1, 80),
)
def test_any_form_of_line_is_the_same_row(tmp_path_factory, lines, block):
    path = tmp_path_factory.getbasetemp() / "run"
    path.write_bytes("".join(f"{q} Q0 d{d} {rank} {s} t{more}{end}" for q, d, rank, s, more, end in lines).encode())
    assert b"".join(part for _, part in line_blocks(path, block)) == path.read_bytes()
    lines = [one for one in lines if one[0] != "#4" or one[2] != "x"]  # with a word as its rank, it is a comment
    expected = {}
    for at, (query, passage, rank, score, _, _) in enumerate(lines):
        ranks = [one[2] for one in lines if one[0] == query]
        is_ranked = not {"-", "x", "inf"}.intersection(ranks)
        order = (-float(score), float(rank) if is_ranked else 0.0, at)
        expected.setdefault(query, []).append((order, f"d{passage}"))
    names, ids = PassageNames(), list(expected) or ["q1"]
    if not lines:
        with refused(InputError, "missing"):
            read_run(path, ids, names)
        return
    run = read_run(path, ids, names)
    assert [[name for name, _ in row] for row in ranking(run, names)] == [
        [name for _, name in sorted(expected[query])] for query in ids
    ]


def test_a_long_run_is_read_in_blocks(tmp_path):
    rows = [(f"q{at % 7}", f"d{at}", 1 / (1 + at)) for at in range(60_000)]
    lines = [f"{query} Q0 {passage} {at} {score!r} t\n" for at, (query, passage, score) in enumerate(rows)]
    path = written(tmp_path, "run", "".join(lines))
    assert len(list(line_blocks(path))) > 1
    names = PassageNames()
    run = read_run(path, [f"q{at}" for at in range(7)], names)
    for at in range(7):
        assert [name for name, _ in ranking(run, names)[at]] == [f"d{one}" for one in range(at, 60_000, 7)]
    lines[59_999] = "q9 Q0 d1 1 none t\n"
    with refused(FormatError, "type", "score", given="none", place="run, line 60000"):
        read_run(written(tmp_path, "run", "".join(lines)), ["q1"], PassageNames())
    (tmp_path / "run").write_bytes("".join(lines[:-1]).encode() + b"q9 Q0 d\xff 1 1 t\n")
    with refused(FormatError, "syntax", place="run, line 60000"):
        read_run(tmp_path / "run", ["q1"], PassageNames())


ROWS = [
    {"id": "q1", "hits": [{"id": "d2", "score": 0.5}, {"id": "d1", "score": 0.5}, {"id": 3, "score": 1}]},
    {"id": "q2", "hits": [], "answer": "yes"},
]


def as_file(folder, suffix):
    if suffix == ".jsonl":
        return written(folder, "run.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS))
    if suffix == ".json":
        return written(folder, "run.json", json.dumps(ROWS))
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [{"answer": None, **row, "hits": [{**hit, "id": str(hit["id"])} for hit in row["hits"]]} for row in ROWS]
    parquet.write_table(arrow.Table.from_pylist(rows), folder / "run.parquet")
    return folder / "run.parquet"


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".parquet"])
def test_rows_as_score_writes_them(tmp_path, suffix):
    names = PassageNames()
    run = read_run(as_file(tmp_path, suffix), ["q1", "q2"], names)
    assert ranking(run, names) == [[("3", 1.0), ("d2", 0.5), ("d1", 0.5)], []]
    assert run.answers == [None, "yes"]
    assert (run.num_missing, run.num_unjudged) == (0, 0)


def test_a_json_object_by_query(tmp_path):
    names = PassageNames()
    run = read_run(written(tmp_path, "r.json", '{"q1": {"d1": 0.1, "d2": 3}}'), ["q1"], names)
    assert ranking(run, names) == [[("d2", 3.0), ("d1", pytest.approx(0.1))]]


def test_scores_that_float32_cannot_tell_apart_keep_their_order(tmp_path):
    names = PassageNames()
    assert [names.number(name) for name in ("low", "high")] == [0, 1]
    text = f"q1 Q0 low 1 {1.0!r} t\nq1 Q0 high 2 {1.0 + 1e-12!r} t\n"
    run = read_run(written(tmp_path, "run", text), ["q1"], names)
    assert [name for name, _ in ranking(run, names)[0]] == ["high", "low"]
    assert np.isfinite(run.hits.scores).all()


@pytest.mark.parametrize(
    ("name", "text", "where", "error"),
    [
        ("run", "q1 Q0 d1 1 0.5\n", "line 1", ("syntax", None, {"given": 5})),
        (
            "run",
            "q1 Q0 d1 1 0.5 t\nq1 Q0 d2 1 x t\n",
            "line 2",
            ("type", "score", {"given": "x", "passage": "d2", "query": "q1"}),
        ),
        ("run", "# a comment\n\nq1 Q0 d1 1 0.5 t\nq1 Q0 d2\n", "line 4", ("syntax", None, {"given": 3})),
        ("run", "q1 Q0 d1 1 2 t\nq2 Q0 d1 1 2 t\nq1 Q0 d2 2 1 t u\nq1 Q0 d1 3 1 t\n", "line 4", ("duplicate", "hits")),
        ("run", "q1 Q0 d1 1 nan t\n", "line 1", ("finite", "score")),
        ("run", "q1 Q0 d1 1 1e39 t\n", "line 1", ("finite", "score", {"given": 1e39})),
        (
            "run",
            "q1 Q0 d1 1 2 t\nq1 Q0 d1 2 1 t\n",
            "line 2",
            ("duplicate", "hits", {"given": "d1", "query": "q1"}),
        ),
        (
            "r.jsonl",
            '{"id": "q1", "hits": []}\n{"id": "q1", "hits": []}\n',
            "line 2",
            ("duplicate", "id", {"given": "q1"}),
        ),
        ("r.jsonl", '{"id": "q1"}\n', "line 1", ("missing",)),
        ("r.jsonl", '{"id": "q1", "hits": {}}\n', "line 1", ("type",)),
        ("r.jsonl", '{"id": "q1", "hits": ["d1"]}\n', "line 1", ("type", "hits", {"given": "d1"})),
        (
            "r.jsonl",
            '{"id": "q1", "hits": [{"id": "d1"}]}\n',
            "line 1",
            ("type", "score", {"given": None}),
        ),
        (
            "r.jsonl",
            '{"id": "q1", "hits": [{"id": "d1", "score": NaN}]}\n',
            "line 1",
            ("finite", "score"),
        ),
        (
            "r.jsonl",
            '{"id": "q1", "hits": [], "answer": 4}\n',
            "line 1",
            ("type", "answer", {"given": 4}),
        ),
        ("r.json", '[{"id": "q1", "hits": []}, 4]', "entry 1", ("type",)),
        ("r.json", '{"q1": ["d1"]}', None, ("type", None, {"query": "q1"})),
    ],
)
def test_bad_runs_are_named_by_file_and_line(tmp_path, name, text, where, error):
    path = written(tmp_path, name, text)
    with refused(FormatError, *error, place=f"{path}, {where}" if where else str(path)):
        read_run(path, ["q1"], PassageNames())


def test_json_that_is_not_a_run_is_refused(tmp_path):
    with refused(FormatError, "type", place="r.json"):
        read_run(written(tmp_path, "r.json", "4"), ["q1"], PassageNames())
    with refused(FormatError, "syntax", place="r.json"):
        read_run(written(tmp_path, "r.json", "{"), ["q1"], PassageNames())


def test_a_run_for_other_queries_is_refused(tmp_path):
    with refused(InputError, "missing"):
        read_run(written(tmp_path, "run", TREC), ["a"], PassageNames())
    with refused(InputError, "missing"):
        read_run(written(tmp_path, "empty", ""), ["a"], PassageNames())


def test_parquet_names_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with refused(MissingExtraError, "missing_extra", extra="arrow"):
        read_run(tmp_path / "run.parquet", ["a"], PassageNames())


def test_a_parquet_file_that_is_none(tmp_path):
    pytest.importorskip("pyarrow")
    with refused(FormatError, "syntax", place="run.parquet"):
        read_run(written(tmp_path, "run.parquet", "no"), ["a"], PassageNames())


@pytest.mark.parametrize(
    ("names", "error"),
    [
        ("abc", ("type", "names", {"given": "str"})),
        (None, ("type", "names", {"given": "NoneType"})),
        (["a", 1.5], ("type", "names[1]", {"given": "float"})),
    ],
)
def test_names_are_strings_or_integers(names, error):
    with refused(InputError, *error):
        PassageNames(names)


# ---- Written --------------------------------------------------------------------------------------------------------


def test_a_written_trec_run_is_read_back(tmp_path):
    names = PassageNames(["d1", "d2", "d3", "d9"])
    judged = Qrels(["q1", "q2"], [[0, 1], [2]], grades=[[2, 1], [1]])
    write_qrels(tmp_path / "qrels", judged, names)
    qrels = read_qrels(tmp_path / "qrels", PassageNames(["d1", "d2", "d3"]))
    assert (qrels.ids, qrels.gold, qrels.grades) == (judged.ids, judged.gold, judged.grades)
    write_run(tmp_path / "run", hf.Hits([[1, 3], [-1, -1]], [[0.1, 0.1], [-np.inf, -np.inf]]), judged.ids, names)
    assert (tmp_path / "run").read_text(encoding="utf-8").splitlines()[1].startswith("q1 Q0 d9 2 0.1")
    run = read_run(tmp_path / "run", judged.ids, names)
    assert [[name for name, _ in row] for row in ranking(run, names)] == [["d2", "d9"], []]


@pytest.mark.parametrize("name", ["", "a b", "a\n", "\u2003"])
def test_names_that_trec_cannot_write_are_refused(tmp_path, name):
    names, hits = PassageNames([name, "d"]), hf.Hits([[1]], [[1.0]])
    for write in (
        lambda: write_qrels(tmp_path / "qrels", Qrels(["q"], [[0]]), names),
        lambda: write_run(tmp_path / "run", hits, [name], names),
    ):
        with refused(InputError, "unsupported", given=name):
            write()
    assert list(tmp_path.iterdir()) == []
