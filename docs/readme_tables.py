"""The tables of README.md, from result files; docs/tables.py puts them between their markers."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from figures import content

ROOT = Path(__file__).resolve().parents[1]
SPEED = ROOT / "bench" / "results" / "xeon-vnni-2-cores.jsonl"
DROP_INS = ROOT / "bench" / "results" / "drop-ins.jsonl"
QUALITY = ROOT / "experiments" / "results" / "side-by-side.json"
INSTALL = ROOT / "bench" / "results" / "install.json"
#: Rows that compare hopfuse with itself.
ITSELF = ("earlier-commit", "one-thread", "ppr-out", "plain-walk", "phase-graph")
NAMES = {
    "torch-sparse": "PyTorch, sparse",
    "torch-matmul": "PyTorch",
    "numpy-matmul": "NumPy",
    "faiss": "faiss, exact",
    "igraph": "igraph, a call for each question",
}
#: What README.md compares: a title, the case, the batch, and what people use today.
COMPARED = (
    ("Personalized PageRank, 1 question", "ppr-hotpotqa", 1, "igraph"),
    ("Personalized PageRank, 64 questions", "ppr-hotpotqa", 64, "igraph"),
    ("Exact top 10 of 200,000 vectors of 384 numbers, 1 question", "dense-200k", 1, "faiss"),
    ("Exact top 10 of 200,000 vectors of 384 numbers, 32 questions", "dense-200k", 32, "faiss"),
)


def speed(file: Path = SPEED) -> str:
    """Return hopfuse's times beside the strongest other library's, and beside what people use today."""
    lines = ["| | hopfuse | strongest other | | in wide use | |", "|---|---:|---|---:|---|---:|"]
    for title, case, batch, today in COMPARED:
        rows = [row for row in _timed(file, case, batch) if row["peer"] not in ITSELF]
        best = min(rows, key=lambda row: row["ratio"]["of_medians"])
        (common,) = (row for row in rows if row["peer"] == today)
        cells = [cell for row in (best, common) for cell in _against(row)]
        lines.append(f"| {title} | {_time(best['hopfuse']['median'])} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _timed(file: Path, case: str, batch: int) -> Iterator[dict[str, Any]]:
    return (
        row
        for row in content(file)
        if row["case"] == case and row["sizes"].get("batch") == batch and row["peer"] and row["status"] == "ok"
    )


def _against(row: dict[str, Any]) -> tuple[str, str]:
    name = NAMES.get(row["peer"], row["peer"])
    return f"{name}: {_time(row['peer_time']['median'])}", f"**{_digits(row['ratio']['of_medians'])}×**"


def _time(seconds: float) -> str:
    return f"{_digits(seconds)} s" if seconds >= 1 else f"{_digits(1e3 * seconds)} ms"


def _digits(value: float) -> str:
    """Return a number with two digits, or all before the point."""
    return f"{value:.1f}" if value < 9.95 else f"{value:,.0f}"


#: The sets of each kind, with the graphs over which they were searched.
KINDS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "Several hops": (("hotpotqa", "musique-train", "2wiki-dev300"), ("folder", "spacy", "words")),
    "Conversations": (("office-whole", "propellor-whole"), ("words",)),
    "One passage, graph of words": (
        (
            *("perl-equal", "perl-whole", "anarchism-whole", "debian-equal", "debian-whole"),
            *("words-whole", "manuals-whole", "manuals-equal"),
        ),
        ("words",),
    ),
    "One passage, spaCy's graph of names": (
        ("perl-equal", "debian-whole", "words-whole", "manuals-whole", "manuals-equal"),
        ("spacy",),
    ),
}
DENSE, PLAIN, DEFAULT = "dense", "plain-hybrid", "guided-walk+words"


def quality(file: Path = QUALITY) -> str:
    """Return recall@5 of dense search, a plain hybrid and the default, a row for each of two sets and each kind."""
    lines = ["| | questions | dense | plain hybrid | default | gain |", "|---|---:|---:|---:|---:|---:|"]
    for title, name, graph in (("hotpotqa", "hotpotqa", "folder"), ("debian-whole", "debian-whole", "words")):
        found = content(file)[name][graph]
        values = [found["means"][run]["recall@5"] for run in (DENSE, PLAIN, DEFAULT)]
        lines.append(f"| {title} | {found['questions']} | {_best_bold(values)} | {_gain(values[2] - values[1])} |")
    for kind, (sets, graphs) in KINDS.items():
        means = [content(file)[name][graph]["means"] for name in sets for graph in graphs]
        dense, plain, default = ([one[run]["recall@5"] for one in means] for run in (DENSE, PLAIN, DEFAULT))
        shown = _best_bold([statistics.fmean(values) for values in (dense, plain, default)])
        gains = sorted(a - b for a, b in zip(default, plain, strict=True))
        span = f"{_gain(statistics.fmean(gains))} ({_gain(gains[0])} to {_gain(gains[-1])})"
        lines.append(f"| {kind}: mean of {len(means)} indexes | | {shown} | {span} |")
    return "\n".join(lines)


def _best_bold(values: Sequence[float]) -> str:
    """Return cells of shares in percent, the best one bold."""
    return " | ".join(f"**{100 * one:.1f}**" if one == max(values) else f"{100 * one:.1f}" for one in values)


def _gain(difference: float) -> str:
    return f"{100 * difference:+.1f}".replace("-", "−")


def drop_in() -> str:
    """Return HippoRAG's own time for questions over graphs of three sizes, and its time with hopfuse."""
    lines = [
        "| Passages | Nodes | Edges | Questions | HippoRAG's own | accelerated | |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in content(DROP_INS):
        if row["case"].startswith("HippoRAG"):
            sizes = " | ".join(f"{row['sizes'][name]:,}" for name in ("passages", "nodes", "edges", "questions"))
            times = " | ".join(_time(1e-3 * row[name]) for name in ("own_ms", "ours_ms"))
            lines.append(f"| {sizes} | {times} | **{_digits(row['ratio'])}×** |")
    return "\n".join(lines)


def sizes() -> str:
    """Return the size of an installation, by extra."""
    found = content(INSTALL)["installed"]
    lines = ["| Installed | MB |", "|---|---:|"]
    lines += [
        f"| {'hopfuse and NumPy' if name == 'none' else f'with `{name}`'} | {mb:,.0f} |" for name, mb in found.items()
    ]
    return "\n".join(lines)
