import json
import re
from html.parser import HTMLParser
from importlib import import_module

import pytest
from cli.cli_files import about, hopfuse, refused, write_jsonl
from hopfuse.errors import InputError
from hopfuse.evaluate import in_test_half, mcnemar_exact

QUERIES = [
    {"id": f"q{i}", "gold": [i, f"x{i}"], "hops": [[i], [f"x{i}"]] if i % 2 else [], "question": f"What is <{i}>?"}
    for i in range(40)
]
for row in QUERIES[1::2]:
    row["last_hop"] = row["hops"][1]


def hits(*passages):
    return [{"id": str(p), "score": 1 - at / 10} for at, p in enumerate(passages)]


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Judgements, a dense run that finds one gold passage, and a TREC run that finds both for three of four queries."""
    folder = tmp_path_factory.mktemp("eval")
    write_jsonl(folder / "queries.jsonl", QUERIES)
    dense = [{"id": row["id"], "hits": hits(at, "y", "z")} for at, row in enumerate(QUERIES)]
    write_jsonl(folder / "dense.jsonl", [*dense, {"id": "stranger", "hits": hits("y")}])
    lines = []
    for at, row in enumerate(QUERIES[:-1]):
        for rank, passage in enumerate((f"x{at}", at, "y") if at % 4 else ("y", "z", "w"), 1):
            lines.append(f"{row['id']} Q0 {passage} {rank} {1 / rank} graph\n")
    (folder / "graph.run").write_text("".join(lines), encoding="utf-8")
    return folder


def arguments(judged):
    runs = ("--run", f"dense={judged / 'dense.jsonl'}", "--run", f"graph={judged / 'graph.run'}")
    return ["eval", "--qrels", judged / "queries.jsonl", *runs]


METRICS = ("--metric", "full_support@3", "--metric", "mrr", "--metric", "last_hop@3")


def test_numbers_tables_and_files(judged, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    outputs = ("--out", tmp_path / "r.json", "--html", tmp_path / "r.html")
    output = hopfuse(*arguments(judged), *METRICS, "--baseline", "dense", *outputs).stdout
    assert output.startswith("40 queries\n20 queries without a known last hop: left out of last_hop@3\n")
    assert "dense has 1 query without judgements; they are left out" in output
    assert "graph lacks 1 of 40 queries; they count as empty" in output
    for title in ("all: 40 queries", "hops unknown: 20 queries", "2 hops: 20 queries", "against dense"):
        assert title in output
    found = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    whole, _, two_hops = found["groups"]
    # 30 of 40 queries have i % 4 != 0, and the last of them is not in the graph's file.
    assert whole["estimates"]["graph"]["full_support@3"]["mean"] == 29 / 40
    compared = whole["comparisons"]["graph"]["full_support@3"]
    assert (compared["wins"], compared["losses"], compared["p_value"]) == (29, 0, mcnemar_exact(29, 0))
    assert two_hops["estimates"]["graph"]["last_hop@3"] == whole["estimates"]["graph"]["last_hop@3"]
    assert found["won"]["graph"]["full_support@3"] == [f"q{i}" for i in range(39) if i % 4]
    assert found["lost"]["graph"]["mrr"] == [*(f"q{i}" for i in range(39) if i % 4 == 0), "q39"]
    assert found["per_query"]["values"]["graph"]["last_hop@3"][0] is None
    assert found["files"]["graph"] == {"file": str(judged / "graph.run"), "missing": 1, "unjudged": 0}
    assert found["queries_without_last_hop"] == 20


class Page(HTMLParser):
    """A parser that records elements left open, references to other files, and the number of each element."""

    def __init__(self, text):
        super().__init__()
        self.open, self.refers, self.seen = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.refers += [value for name, value in attrs if name in ("src", "href", "srcset", "data")]
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_complete_and_needs_no_other_file(judged, tmp_path):
    write_jsonl(tmp_path / "passages.jsonl", [{"id": 5, "title": "Five & <six>"}])
    page = ("--html", tmp_path / "r.html", "--passages", tmp_path / "passages.jsonl")
    hopfuse(*arguments(judged), *METRICS, "--baseline", "dense", *page)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    page = Page(text)
    assert (page.open, page.refers) == ([], [])
    assert not {"script", "link", "img", "iframe", "object"} & set(page.seen)
    assert "http" not in text
    assert "url(" not in text
    assert "What is &lt;3&gt;?" in text
    assert "graph, full_support@3: 29 won, 0 lost" in text
    # Two distributions of each run, and a plot for each of three metrics: 29 won, 11 lost of mrr, 19 last hops won.
    assert page.seen.count("svg") == 2 * 2 + 3
    assert text.count("raw scores; AUC") == text.count("after pit, query by query; AUC") == 2
    assert len(re.findall(r"<title>q\d+: \+", text)) == 29 + 0 + 19
    assert len(re.findall(r"<title>q\d+: -", text)) == 0 + 11 + 0
    row = r'<td class="text" rowspan="2">What is &lt;5&gt;\?<div><small>q5</small></div>(.*?)</tr>(.*?)</tr>'
    won = re.search(row, text, re.DOTALL)
    assert "<b>graph</b>: x5; 5: Five &amp; &lt;six&gt;; y" in won[1]
    ranks = [re.findall(r"<td[^>]*>(.*?)</td>", line)[-3:] for line in won.groups()]
    assert ranks[0] == ["hop 1: 5: Five &amp; &lt;six&gt;", "1 <small>(1)</small>", "2 <small>(0.5)</small>"]
    assert ranks[1] == ["hop 2: x5", "-", "1 <small>(1)</small>"]


def test_scores_and_traces_in_table_and_json(judged, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    args = (*METRICS, "--baseline", "dense", "--scores", "max", "--show", 2, "--out", tmp_path / "r.json")
    output = hopfuse(*arguments(judged), *args).stdout
    assert "…" not in output
    assert max(map(len, output.splitlines())) <= 80
    assert "full_support@3, won by graph against dense: 2 of 29" in " ".join(output.split())
    assert "q1  What is <1>?\n" in re.sub(" +\n", "\n", output)
    found = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert set(found["scores"]["dense"]) == {"raw", "max"}
    assert sum(found["scores"]["dense"]["raw"]["relevant"]) == 40
    assert found["scores"]["graph"]["raw"]["auc"] < 1
    lists = [found[kind]["graph"][metric] for kind in ("won", "lost") for metric in found["metrics"]]
    assert set(found["traces"]) == {query for queries in lists for query in queries}
    assert found["traces"]["q5"]["gold"][1] == {
        "id": "x5",
        "title": None,
        "hop": 2,
        "runs": {"dense": None, "graph": {"rank": 1, "score": 1.0}},
    }


@pytest.mark.parametrize("split", ["tune", "test"])
def test_a_half_of_the_queries(judged, tmp_path, split):
    hopfuse(*arguments(judged), "--metric", "hit@1", "--split", split, "--out", tmp_path / "r.json")
    ids = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["per_query"]["ids"]
    every = [row["id"] for row in QUERIES]
    assert ids == [i for i, test in zip(every, in_test_half(every), strict=True) if test == (split == "test")]


def test_score_writes_a_run(scoring, files, tmp_path):
    hopfuse(*scoring, "--out", tmp_path / "out.jsonl", "--k", 3)
    write_jsonl(tmp_path / "gold.jsonl", [{"id": f"q{i}", "gold": [f"p{i % 6}"]} for i in range(20)])
    args = ("--run", f"fused={tmp_path / 'out.jsonl'}", "--metric", "recall@3", "--out", tmp_path / "r.json")
    output = hopfuse("eval", "--qrels", tmp_path / "gold.jsonl", *args).stdout
    assert "fused has 280 queries without judgements" in output
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()[:20]]
    expected = [float(f"p{i % 6}" in [hit["id"] for hit in row["hits"]]) for i, row in enumerate(rows)]
    found = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert found["per_query"]["values"]["fused"]["recall@3"] == expected
    assert 0 < sum(expected) < 20


def test_grades_and_queries_without_relevant_passages(tmp_path):
    (tmp_path / "qrels").write_text("a 0 d 3\na 0 e 1\nb 0 d 1\nc 0 e 0\n")
    (tmp_path / "run").write_text("a Q0 e 1 2 t\na Q0 d 2 1 t\nb Q0 d 1 1 t\nc Q0 d 1 1 t\n")
    command = ("eval", "--qrels", tmp_path / "qrels", "--run", f"r={tmp_path / 'run'}", "--overwrite")
    metrics = ("--metric", "precision@2", "--metric", "r_precision", "--metric", "ndcg", "--out", tmp_path / "r.json")
    figures = {}
    for level, without in ((1, "skip"), (1, "zero"), (2, "skip"), (2, "zero")):
        output = hopfuse(*command, *metrics, "--relevance-level", level, "--without-gold", without).stdout
        counts = "count 0 for them" if without == "zero" else "leave them out"
        least = " of grade 2 or above" if level == 2 else ""
        assert f"{level} have no relevant passage{least}; ranking metrics {counts}" in output
        found = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
        assert (found["relevance_level"], found["without_gold"], found["queries_without_gold"]) == (
            level,
            without,
            level,
        )
        rows = found["groups"][0]["estimates"]["r"]
        figures[level, without] = [rows[name]["mean"] for name in ("precision@2", "r_precision")] + [rows["ndcg"]["n"]]
    assert figures == {
        (1, "skip"): [0.75, 1.0, 2],
        (1, "zero"): [0.5, pytest.approx(2 / 3), 3],
        (2, "skip"): [0.5, 0.0, 2],
        (2, "zero"): [pytest.approx(1 / 6), 0.0, 3],
    }


def test_answers(tmp_path):
    write_jsonl(tmp_path / "gold.jsonl", [{"id": "a", "gold": ["d"], "answer": "The Thames"}])
    write_jsonl(tmp_path / "run.jsonl", [{"id": "a", "hits": hits("d"), "answer": "river Thames"}])
    runs = ("--run", f"r={tmp_path / 'run.jsonl'}")
    answered = ("--metric", "answer_f1", "--metric", "answer_em", "--out", tmp_path / "r.json")
    hopfuse("eval", "--qrels", tmp_path / "gold.jsonl", *runs, *answered)
    estimates = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["groups"][0]["estimates"]["r"]
    assert (estimates["answer_f1"]["mean"], estimates["answer_em"]["mean"]) == (pytest.approx(2 / 3), 0.0)


def test_answers_are_judged_unasked_and_are_part_of_the_traces(tmp_path):
    write_jsonl(tmp_path / "gold.jsonl", [{"id": "a", "gold": ["d"], "answer": "The Thames"}])
    write_jsonl(tmp_path / "one.jsonl", [{"id": "a", "hits": hits(*"dvwxyzabce"), "answer": "sea"}])
    write_jsonl(tmp_path / "two.jsonl", [{"id": "a", "hits": hits(*"vwxyzabced"), "answer": "Thames"}])
    runs = ("--run", f"one={tmp_path / 'one.jsonl'}", "--run", f"two={tmp_path / 'two.jsonl'}", "--baseline", "one")
    page = ("--out", tmp_path / "r.json", "--html", tmp_path / "r.html")
    output = hopfuse("eval", "--qrels", tmp_path / "gold.jsonl", *runs, *page).stdout
    found = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert found["metrics"][-2:] == ["answer_em", "answer_f1"]
    assert found["won"]["two"]["answer_em"] == ["a"]
    assert (found["traces"]["a"]["answers"], found["traces"]["a"]["accepted"]) == (
        {"one": "sea", "two": "Thames"},
        ["The Thames"],
    )
    assert "two answers 'Thames', accepted 'The Thames'" in output
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<b>answers</b>: one: sea; two: Thames <b>accepted</b>: The Thames" in text


def test_a_beir_folder(tmp_path):
    write_jsonl(tmp_path / "run.jsonl", [{"id": "a", "hits": hits("d")}])
    runs = ("--run", f"r={tmp_path / 'run.jsonl'}")
    (tmp_path / "beir" / "qrels").mkdir(parents=True)
    write_jsonl(tmp_path / "beir" / "corpus.jsonl", [{"_id": "d", "title": "Thames & sea", "text": "."}])
    write_jsonl(tmp_path / "beir" / "queries.jsonl", [{"_id": "a", "text": "Which?"}])
    (tmp_path / "beir" / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\na\td\t1\n", encoding="utf-8")
    write_jsonl(tmp_path / "none.jsonl", [{"id": "a", "hits": []}, {"id": "b", "hits": hits("d")}])
    both = (*runs, "--run", f"none={tmp_path / 'none.jsonl'}", "--baseline", "r", "--metric", "mrr")
    hops = ("--metric", "last_hop@5", "--metric", "last_hop_recall@5", "--metric", "hops_recovered@5")
    page = ("--html", tmp_path / "r.html", "--beir-split", "dev")
    output = hopfuse("eval", "--qrels", tmp_path / "beir", *both, *hops, *page).stdout
    assert "1 query without a known last hop: left out of last_hop@5, last_hop_recall@5\n" in output
    assert "1 query without known hops: left out of hops_recovered@5\n" in output
    assert "hops unknown" not in output
    assert "\nmrr, lost by none against r: 1 of 1\n" in output  # the title is wider than its table
    assert "d: Thames &amp; sea" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_files_are_not_overwritten_unasked(judged, tmp_path):
    (tmp_path / "r.json").write_text("mine", encoding="utf-8")
    args = (*arguments(judged), "--metric", "mrr", "--out", tmp_path / "r.json")
    assert refused(*args) == about("exists", "out")
    assert (tmp_path / "r.json").read_text(encoding="utf-8") == "mine"
    hopfuse(*args, "--overwrite")
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["metrics"] == ["mrr"]


def test_the_report_never_replaces_what_is_read_or_itself(refused_here, judged, tmp_path):
    titles = write_jsonl(tmp_path / "titles.jsonl", [{"id": 5, "title": "Five"}])
    (tmp_path / "link.run").symlink_to(judged / "graph.run")
    before = {path: path.read_bytes() for path in (titles, *judged.iterdir())}
    args = (*arguments(judged), "--metric", "mrr", "--passages", titles, "--overwrite")
    same = (tmp_path / "r", judged / ".." / judged.name / "dense.jsonl", tmp_path / "link.run")
    for changes, message in (
        (("--out", same[0], "--html", same[0]), about("conflict", "html", other="out", file=same[0])),
        (("--out", judged / "queries.jsonl"), about("conflict", "out", other="qrels")),
        (("--html", same[1]), about("conflict", "html", other="run dense")),
        (("--html", same[2]), about("conflict", "html", other="run graph")),
        (("--out", titles), about("conflict", "out", other="passages")),
    ):
        assert refused_here(*args, *changes) == message
    beir = tmp_path / "beir"
    (beir / "qrels").mkdir(parents=True)
    run = ("--run", f"dense={judged / 'dense.jsonl'}", "--overwrite", "--beir-split", "dev")
    for part in ("corpus.jsonl", "queries.jsonl", "qrels/dev.tsv"):
        line = refused_here("eval", "--qrels", beir, *run, "--out", beir / part)
        assert line == about("conflict", "out", other=f"qrels ({part})")
    assert {path: path.read_bytes() for path in before} == before
    assert not same[0].exists()


def test_a_missing_folder_is_refused_first(refused_here, judged, tmp_path):
    out = tmp_path / "nowhere" / "r.html"
    line = refused_here(*arguments(judged), "--run", "third=unread.run", "--html", out)
    assert line == about("missing", "html")


@pytest.mark.parametrize("command", ["eval", "sweep"])
def test_json_needs_a_page(refused_here, judged, tmp_path, monkeypatch, command):
    def fails(*_, **__):
        raise InputError("failed", None, "no page can be made")

    monkeypatch.setattr(import_module("hopfuse.cli.judgements"), "evaluation_page", fails)
    args = (command, *arguments(judged)[1:], "--metric", "mrr", "--baseline", "dense")
    assert refused_here(*args, "--out", tmp_path / "r.json", "--html", tmp_path / "r.html") == about("failed")
    assert list(tmp_path.iterdir()) == []


def test_half_a_character_in_a_title_is_one_line(refused_here, judged, tmp_path):
    titles = tmp_path / "titles.jsonl"
    titles.write_text('{"id": "5", "title": "\\ud800"}\n', encoding="utf-8")
    args = (*arguments(judged), "--metric", "mrr", "--baseline", "dense", "--passages", titles)
    assert refused_here(*args, "--html", tmp_path / "r.html") == about("syntax", None, given="\\ud800", place="line 1")
    assert list(tmp_path.iterdir()) == [titles]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--run", "dense"), about("syntax", "run", given="dense")),
        (("--run", "graph=other"), about("duplicate", "run", name="graph")),
        (("--run", "third=nowhere.run"), about("missing")),
        (("--baseline", "bm25"), about("choice", "baseline", given="bm25")),
        (("--metric", "bpref"), about("choice", "metric", given="bpref")),
        (("--metric", "answer_em"), about("missing", "answers")),
    ],
)
def test_bad_runs_and_judgements_are_refused(refused_here, judged, change, message):
    assert refused_here(*arguments(judged), *change) == message


def test_a_bad_file_is_named_with_its_line(refused_here, judged, tmp_path):
    (tmp_path / "bad.run").write_text("q1 Q0 d 1 0.5 t\nq1 Q0 e 2\n", encoding="utf-8")
    line = refused_here("eval", "--qrels", judged / "queries.jsonl", "--run", f"bad={tmp_path / 'bad.run'}")
    assert line == about("syntax", None, given=4, place="line 2")
