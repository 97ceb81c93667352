"""Tables of pages from the CSV files that commands write with ``--out``, each with its command and machine beneath.

A file begins with comments: the command, the machine, the commit and the load of other programs
(``bench/result_file.py`` writes them). docs/tables.py puts the tables between their markers.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
Row = Mapping[str, str]


@dataclass(frozen=True)
class Results:
    """The rows of a file, and what its comments say."""

    rows: list[dict[str, str]]
    about: dict[str, str]

    @classmethod
    def read(cls, name: str) -> Results:
        """Return the file ``docs/results/NAME.csv``."""
        with (RESULTS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            lines = list(file)
        about = dict(line.removeprefix("# ").rstrip("\n").split(": ", 1) for line in lines if line.startswith("# "))
        return cls(list(csv.DictReader(line for line in lines if not line.startswith("#"))), about)

    def chosen(self, **of: str) -> list[dict[str, str]]:
        """Return the rows with these values."""
        return [row for row in self.rows if all(row[name] == value for name, value in of.items())]

    @property
    def source(self) -> str:
        """Return what to write beneath a table."""
        cpu, cores, _ = self.about["machine"].rsplit(", ", 2)
        used = self.about["cores that other programs used"]
        other = "" if used == "not known" else f", of which other programs used {float(used):.1f}"
        return f"`{self.about['command']}` on {cpu}, {cores}{other}."


def table(head: Mapping[str, Callable[[Row], str]], rows: list[dict[str, str]], words: int = 1) -> str:
    """Return a Markdown table: a column for each heading; the first ``words`` columns have text."""
    lines = [f"| {' | '.join(head)} |", "|---" * words + "|" + "---:|" * (len(head) - words)]
    return "\n".join([*lines, *(f"| {' | '.join(cell(row) for cell in head.values())} |" for row in rows)])


def text(name: str) -> Callable[[Row], str]:
    """Return a column of text."""
    return lambda row: row[name]


def number(name: str, form: str = ",.0f", unit: str = "", factor: float = 1.0) -> Callable[[Row], str]:
    """Return a column of numbers in a format, with a unit behind each; empty where there is none."""
    return lambda row: f"{factor * float(row[name]):{form}}{unit}" if row[name] else ""


def _digits(value: float) -> str:
    """Return a number with two digits, or all before the point."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _two_digits(name: str) -> Callable[[Row], str]:
    return lambda row: f"{float(format(float(row[name]), '.2g')):,.0f}"


# ---- docs/filters.md ------------------------------------------------------------------------------------------------


def filters() -> str:
    """Return the CPU time of compiling each filter."""
    found = Results.read("filters")
    rows = found.chosen(passages="1000000")
    shown = table({"filter over 1,000,000 passages": text("what"), "CPU, ms": number("ms", ".2f")}, rows)
    return f"{shown}\n\n{found.source}"


def isolated() -> str:
    """Return the CPU time of isolated searches of a tenant's passages."""
    found = Results.read("filters")
    rows = [row for row in found.rows if row["first of a tenant, ms"]]
    head = {
        "passages of 20 tenants": number("passages"),
        "recipe": text("what"),
        "everything, CPU ms": number("ms", ".1f"),
        "first search of a tenant": number("first of a tenant, ms", ".0f"),
        "later": number("later, ms", ".1f"),
    }
    return table(head, rows, 2)


# ---- docs/stores.md -------------------------------------------------------------------------------------------------


def stores() -> str:
    """Return how fast each store is read."""
    found = Results.read("stores")
    head = {
        "Store": text("store"),
        "CPU, s": number("CPU, s", ".2f"),
        "rows a second": _two_digits("rows a second"),
    }
    return f"{table(head, found.rows)}\n\n{found.source}"


# ---- docs/languages.md ----------------------------------------------------------------------------------------------


def phrases() -> str:
    """Return how many of 100 phrases are found, by language."""
    found = Results.read("phrases")
    head: dict[str, Any] = {
        "package `firefox-esr-l10n-…`": lambda row: row["package"].removeprefix("firefox-esr-l10n-"),
        "passages": number("passages"),
        "default over words": number("default"),
        **{name: number(name) for name in ("BM25", "FTS5", "FTS5 with trigrams")},
        "stems": text("stems"),
    }
    return f"{table(head, found.rows)}\n\n{found.source}"


def false_names() -> str:
    """Return how often a rule finds a name where none is meant, by language."""
    found = Results.read("false-names")
    names = ("names", "questions", "characters", "as whole words", "by a rule", "without counts")
    head: dict[str, Any] = {
        "package `firefox-esr-l10n-…`": lambda row: row["package"].removeprefix("firefox-esr-l10n-"),
        **{name: number(name) for name in names},
    }
    return f"{table(head, found.rows)}\n\n{found.source}"


# ---- docs/extraction.md ---------------------------------------------------------------------------------------------


def names() -> str:
    """Return what matchers find in questions typed in several manners, and how good walks from it are."""
    found = Results.read("names")
    head: dict[str, Any] = {name: text(name) for name in ("questions", "typed", "matcher")}
    head |= {name: number(name, ".1f") for name in ("precision", "recall", "last hop in 5", "with words")}
    return f"{table(head, found.rows, 3)}\n\n{found.source}"


def atlas_questions() -> str:
    """Return how many questions over the atlas are answered."""
    found = Results.read("atlas-questions")
    named = {"drawn_questions.jsonl": "drawn from facts", "newcomer_questions.jsonl": "written down"}
    head: dict[str, Any] = {
        "questions over the atlas": lambda row: named.get(row["questions"], row["questions"]),
        **{name: number(name) for name in ("number", "default", "dense", "BM25", "plain hybrid")},
    }
    return f"{table(head, found.rows)}\n\n{found.source}"


# ---- docs/live.md ---------------------------------------------------------------------------------------------------


def live() -> str:
    """Return what searches of a changed index cost in terms of a static one's, and the memory of snapshots."""
    found = Results.read("live")
    lines = ["| 100,000 passages with 384 components, 8 million words for BM25, a million edges | |", "|---|---:|"]
    for what in ("10 % added", "10 % added and 10 % deleted"):
        one, many = (
            float(_only(found, what=f"{what}: a search, of a static index's", questions=count)["value"])
            for count in ("1", "32")
        )
        lines.append(
            f"| {what}: a search of 1 and of 32, in terms of a static index's CPU time | {one:.2f}×, {many:.2f}× |"
        )
    for what in ("10 % added", "10 % added and 10 % deleted"):
        first = _only(found, what=f"{what}: memory of a snapshot")
        more = _only(found, what=f"{what}: memory of the next one beside it")
        beside = (
            f"beside a generation of {first['MiB of the generation']} MiB and a log of {first['MiB of the log']} MiB"
        )
        lines.append(
            f"| {what}: memory of a snapshot {beside}, and of the next one | {float(first['value']):.0f} MiB, "
            f"{float(more['value']):.0f} MiB |"
        )
    first, later = (
        float(_only(found, what=f"{which} after 100 passages")["value"])
        for which in ("first refresh", "later refreshes")
    )
    lines.append(
        f"| CPU time of a refresh after 100 passages: the first, later ones | {first:.0f} ms, {later:.0f} ms |"
    )
    return "\n".join([*lines, "", found.source])


def live_turns() -> str:
    """Return what a turn of a memory takes, by the memory's size."""
    found = Results.read("turns")
    http = {row["turns"]: row["http"] for row in found.rows if row["http"]}
    rows = [row | {"http": http.get(row["turns"], "")} for row in found.rows if row["add"]]
    head = {
        "turns": number("turns"),
        "add and commit": number("add", ".1f", " ms"),
        "refresh": number("refresh", ".1f", " ms"),
        "searcher": number("searcher", ".1f", " ms"),
        "a question": number("search", ".1f", " ms"),
        "the same, index that does not change": number("static", ".1f", " ms"),
        "over HTTP, wall time": number("http", ".0f", " ms"),
    }
    return f"{table(head, rows, words=0)}\n\n{found.source}"


def live_logs() -> str:
    """Return the CPU time to open an index, by the length of its log."""
    found = Results.read("live")
    lines = [
        "| passages of the generation | commits in the log | log | open, CPU "
        "| in terms of reading the log and its checksum | open and merge, CPU |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for row in found.chosen(what="opened"):
        size = {name: row[name] for name in ("passages", "commits")}
        ratio = _only(found, what="opened, of reading the log and its checksum", **size)
        merged = _only(found, what="opened and merged", **size)
        lines.append(
            f"| {int(row['passages']):,} | {int(row['commits']):,} | {_digits(int(row['bytes']) / 1e6)} MB "
            f"| {_digits(float(row['value']))} ms | {_digits(float(ratio['value']))}× "
            f"| {_digits(float(merged['value']))} ms |"
        )
    return "\n".join(lines)


def _only(found: Results, **of: str) -> dict[str, str]:
    (row,) = found.chosen(**of)
    return row


# ---- docs/integrations.md -------------------------------------------------------------------------------------------


def networkx() -> str:
    """Return NetworkX's own times, and those of the same calls by hopfuse."""
    lines = (ROOT / "bench" / "results" / "drop-ins.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["case"].startswith("NetworkX")]
    shown = ["| calls | NetworkX's own | by hopfuse | ratio | largest difference |", "|---|---:|---:|---:|---:|"]
    for row in rows:
        times = f"{row['own_ms']:,.0f} ms | {_digits(row['ours_ms'])} ms | {row['ratio']:.0f}×"
        shown.append(f"| {row['case']} | {times} | {row['difference']:.0e} |")
    machine = rows[0]["machine"]
    busy = ", which other programs shared" if rows[0]["busy"] else ""
    command = "HOPFUSE_NUM_THREADS=1 python -m bench.drop_ins networkx --out bench/results/drop-ins.jsonl"
    return "\n".join([*shown, "", f"`{command}` on {machine['cpu']}, {machine['cores']} cores{busy}."])


#: The tables of each page, by their markers.
MEASURED: dict[str, dict[str, Callable[[], str]]] = {
    "docs/integrations.md": {"networkx": networkx},
    "docs/live.md": {"live": live, "logs": live_logs, "turns": live_turns},
    "docs/filters.md": {"filters": filters, "isolated": isolated},
    "docs/stores.md": {"stores": stores},
    "docs/languages.md": {"phrases": phrases, "false-names": false_names},
    "docs/extraction.md": {"names": names, "atlas-questions": atlas_questions},
}
