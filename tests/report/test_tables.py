"""Tables of an evaluation in a terminal, a page and JSON; text with control characters."""

import io
import json
import subprocess
import sys

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import MissingExtraError
from hopfuse.evaluate import PassageNames, Qrels, Run, evaluate, score_distributions, traces, wilson_interval
from hopfuse.report import (
    Row,
    Table,
    evaluation_tables,
    mean_tables,
    printable,
    query_tables,
    score_table,
    section_tables,
)
from judged_runs import METRICS, QRELS, RUNS
from refusals import refused


@pytest.fixture(scope="module")
def result():
    return evaluate(QRELS, RUNS, METRICS, baseline="dense")


def shown(tables, width):
    console = pytest.importorskip("rich.console")
    out = console.Console(width=width, record=True, file=io.StringIO())
    out.print(*(table.to_rich() for table in tables))
    return out.export_text()


def test_rich_tables_are_whole_at_80_columns(result):
    tables = evaluation_tables(result)
    # Five groups: of means, and, in two tables each, of comparisons.
    assert len(tables) == 15
    text = shown(tables, 80)
    assert "…" not in text
    assert "all: 6 queries" in text
    assert "1 hop: 1 query, against dense" in text
    low, high = wilson_interval(3, 4)
    rows = [line.split() for line in text.splitlines()]
    at = next(n for n, row in enumerate(rows) if row[:2] == ["last_hop@2", "dense"])
    assert rows[at + 1] == ["graph", "75.0", f"{100 * low:.1f}", "..", f"{100 * high:.1f}", "4"]
    compared = [row for row in rows if row[0:1] == ["last_hop@2"] and "+50.0" in row]
    assert compared[0] == ["last_hop@2", "4", "3", "1", "+50.0", "-50.0", "..", "+100.0", "0.62", "0.62"]
    assert ["last_hop@2", "3.00", "0.24", "..", "157.49", "-"] in rows


def test_odds_ratios_have_no_columns_if_no_metric_is_binary():
    tables = evaluation_tables(evaluate(QRELS, RUNS, ["mrr"], by_hops=False, baseline="dense"))
    assert [table.title.partition("dense")[2] for table in tables] == ["", "", ": detectable difference"]
    assert tables[2].columns == ("", "detects")


def test_names_are_shown_as_they_are_and_long_ones_cut_off_nothing():
    long = "a run with a name of [bold] many words, " * 3
    qrels = Qrels([str(i) for i in range(2000)], [[i] for i in range(2000)])
    rows = np.arange(2000)
    runs = {
        "base": hf.Hits(np.where(rows % 2, rows, rows + 5000)[:, None], np.ones((2000, 1))),
        long: hf.Hits(np.where(rows % 3, rows, rows + 5000)[:, None], np.ones((2000, 1))),
    }
    found = evaluate(qrels, runs, ["full_support@1", "recall@1"], baseline="base", by_hops=False)
    text = shown(evaluation_tables(found), 80)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("[bold]") == 3 * (2 + 2)  # in the means of two metrics, and in both tables of comparisons
    numbers = next(line for line in text.splitlines() if line.startswith("full_support@1") and " 2000 " in line)
    assert numbers.split()[-2:] == ["<0.0001", "<0.0001"]


def test_scores_and_queries_as_tables():
    names = PassageNames()
    passages = [names.number(f"passage {i}") for i in range(4)]
    qrels = Qrels(["x", "y", "z"], [passages[:1], passages[1:2], passages[2:3]], questions=["Who [really]?", "", ""])
    dense = Run(hf.Hits([[3, 0], [1, 3], [3, 0]], [[0.5, 0.25]] * 3))
    graph = Run(hf.Hits([[0, 3], [3, 1], [2, 0]], [[8.0, 4.0]] * 3))
    runs = {"dense": dense, "graph": graph}
    result = evaluate(qrels, runs, ["hit@1"], baseline="dense")
    tables = query_tables(result, traces(["x", "y", "z"], qrels, runs, names), show=1)
    text = shown(tables, 80)
    words = " ".join(text.split())
    assert "hit@1, won by graph against dense: 1 of 2" in words
    assert "hit@1, lost by graph against dense: 1 of 1" in words
    assert "x  Who [really]?" in text
    assert [line.split()[-2:] for line in text.splitlines() if "passage" in line] == [["2", "1"], ["1", "2"]]
    assert query_tables(result, {}, show=0) == []
    assert query_tables(evaluate(qrels, runs, ["hit@1"]), {}, show=3) == []
    scores = [line.split() for line in shown([score_table(score_distributions(qrels, runs))], 80).splitlines()]
    # Of dense: relevant 0.25, 0.5; others 0.5, 0.25, 0.5, 0.25.
    assert ["dense", "raw", "2", "0.375", "4", "0.375", "0.5"] in scores
    assert ["graph", "raw", "3"] in [row[:3] for row in scores]


def test_rich_tables_name_the_extra_where_rich_is_absent(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    with refused(MissingExtraError, "missing_extra"):
        evaluation_tables(result)[0].to_rich()


ESCAPES = "\x1b]0;pwned\x07\x1b[31mred"


def test_control_characters_are_written_out():
    assert printable(ESCAPES) == r"\x1b]0;pwned\x07\x1b[31mred"
    assert printable("a\tb\nc é “q” 中 🚀") == "a\tb\nc é “q” 中 🚀"
    every = "".join(map(chr, (*range(32), *range(127, 160))))
    assert not set(printable(every)) & (set(every) - set("\t\n"))
    assert printable("\u202eevil\ud800") == r"\u202eevil\ud800"


def test_no_table_steers_the_terminal():
    names = PassageNames(["a", "b"])
    names.set_title("a", ESCAPES)
    qrels = Qrels(["q"], [[0]], questions=[ESCAPES])
    runs = {"dense": Run(hf.Hits([[1]], [[0.5]]), [ESCAPES]), ESCAPES: Run(hf.Hits([[0]], [[0.5]]), ["x"])}
    found = evaluate(qrels, runs, ["hit@1"], baseline="dense")
    tables = [*evaluation_tables(found), score_table(score_distributions(qrels, runs))]
    tables += query_tables(found, traces(["q"], qrels, runs, names))
    tables += section_tables({ESCAPES: {ESCAPES: {ESCAPES: 1}}, "rows": [{"recipe": ESCAPES, "n": 1}]})
    text = shown(tables, 80)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert r"\x1b]0;pwned\x07\x1b[31mred" in text


def test_one_table_has_three_writers(result):
    (whole, *_) = mean_tables(result)
    assert json.loads(json.dumps(whole.to_dict()))["rows"][0][:2] == ["recall@2", "dense"]
    page = Table("<b>", ("run", "n"), (Row(("<script>",), "heading"), Row(("a & b", "1")))).to_html()
    assert "<script>" not in page
    assert page.count("&lt;script&gt;") == 1
    assert "<caption>&lt;b&gt;</caption>" in page
    assert '<tr class="heading">' in page
    assert "a &amp; b" in page


WITHOUT_JINJA = """
import sys
sys.modules["jinja2"] = None
from hopfuse.errors import MissingExtraError
from hopfuse.report import Row, Table
try:
    Table("runs", ("run",), (Row(("dense",)),)).to_html()
except MissingExtraError as error:
    print(error.code, error.values["package"])
"""


def test_without_jinja_the_extra_is_named():
    done = subprocess.run([sys.executable, "-c", WITHOUT_JINJA], capture_output=True, text=True, check=True)
    assert done.stdout == "missing_extra jinja2\n"
