"""``docs/performance.md``, its charts and its CSV files from recorded rows; the same rows give the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from . import bars, chart, compared, records, series
from .cases import BESIDE_BEST_ISA, FEW_WALKS
from .machine import QUIET_CORES
from .markdown import table
from .peers import PEERS
from .text import place, seconds, times

Row = dict[str, Any]

PAGE, RATIOS, BATCHES = "performance.md", "performance-ratios.svg", "performance-batches.svg"

INTRODUCTION = """# Performance

hopfuse beside the fastest other code for the same answers. This page is written by
`python -m bench --report {files}`; do not edit it by hand.

## How it was measured

**Answers first.** hopfuse's answers are compared with the float64 oracle, and the other library's with hopfuse's. A
wrong answer stops the case. Then both take turns in a process of their own. Times are medians of the turns, and a
*ratio* is the other's median over hopfuse's: above 1, hopfuse is faster. Building graphs, indexes and other libraries'
structures is not timed.

**Threads.** hopfuse runs on {threads} threads, and so does whatever can. *Its threads* says what the other runs on:
`1` where it has no threads (igraph, SciPy's sparse products), `{threads} and 1` where its product has and the rest does
not (NumPy's argpartition).

**Tolerance.** Walks have damping 0.5, unless a row says otherwise, and an L1 error of at most 10⁻⁶, which hopfuse
proves for each of them. A table below says where each library stops. Dense search is exact everywhere.

**Data.** The hotpotqa and musique graphs are made from these data sets, and the atlas graph comes with the examples.
Vectors, lists and generated graphs are random. A walk restarts at five weighted nodes, unless a row says otherwise.
"""

NO_GPU = """
**Nothing on this page was measured on a GPU**; [gpu.md](gpu.md) has what was.
"""

GPU = """
On a GPU, inputs and results are NumPy arrays, so all times include copies to and from the device. Libraries run on
the CPU unless their remark in the CSV file says *on the GPU*.
"""

QUICK = """
**These rows are of the quick mode: inputs are tiny, and times are meaningless.**
"""

#: Mark of times that were measured on a busy machine.
BUSY = " \\*"
DISTURBED = """
**Times with \\* were measured on a busy machine:** other programs used more than {quiet} cores. Threads that wait for
each other lose more by that than a single thread.
"""

STRONGEST = """
### {section}

"""

WALKS = """
**All libraries on the hotpotqa graph.** igraph is what many use today. It takes one question per call, on one thread,
and always solves to a far smaller error in float64, so its ratio is not for equal work. *Scaled*: timed on some of the
questions.

"""

SEARCHES = """
**All libraries on 200,000 × 384.** faiss is `IndexFlatIP` of its CPU wheel, which was slower here than a product by
NumPy or PyTorch.

"""

#: Sections with a table of all libraries of a case.
LIBRARIES = {"Personalized PageRank": ("ppr-hotpotqa", WALKS), "Dense search": ("dense-200k", SEARCHES)}

REMARKS = {
    "Personalized PageRank": (
        "{faster}For the best 100, the others compute all scores and sort them; none proves an order. {sizes}\n"
    ),
    "Dense search": (
        "A *raw array* is searched without a `Corpus`, as NumPy does. The *first search* makes the 8-bit codes that "
        "later ones read.\n"
    ),
    "Fusion and the rest": (
        "ranx takes dictionaries of strings, which are made beforehand; it returns all documents, and was timed on "
        "250 of 10,000 queries. The file of timings has every fusion method. NumPy's fusion, weights and Dice scores "
        "were written for this comparison, and so was *HippoRAG 2's retrieval*, from the formulas of its paper; "
        "[integrations.md](integrations.md) measures HippoRAG's own code.\n"
    ),
}

WHOLE = """
### Whole searches, small calls and a large graph

No other library has these recipes. Questions of hotpotqa over {sizes}; vectors are given, and the best 10 passages
returned.

"""

ITSELF = """
### hopfuse beside itself

What a proof, weights or a recipe cost, and what a second thread gains. Below 1, the form that is named first is slower.

"""

OTHER_SETS = """
### Held to other instructions

hopfuse with `HOPFUSE_ISA`, on the same processor. *Beside the best* is its time with the best instructions, measured in
turns, over its time with these. Other libraries choose their own instructions.

"""

SLOWER = """
## Where another library is faster

"""

NOT_SLOWER = "None of the libraries was faster in any case.\n"

MISSED = """
## What was missed

The project's own targets that the rows miss. The *limit* is the ratio at which memory would be busy all the time, at
the bandwidths in [{bandwidth}]({bandwidth}).

"""

UNKNOWN = "The cause is not known."
#: Why a target of a case and a batch is missed.
WHY = {
    ("ppr-hotpotqa", 1): "Two threads that share one walk wait for states that the other wrote a moment ago.",
    ("ppr-hotpotqa", 64): "The walk is near the limit of memory.",
    ("ppr-hotpotqa-085", 64): "Damping 0.85 takes more passes, and lengthens hopfuse's walk more than igraph's solver.",
    ("ppr-weighted-hotpotqa", 32): "Each query has degrees of its own, which take a gather over the graph.",
    ("ppr-topk-10", 64): "A proof takes a float64 pass over the graph, and more passes for lists that it leaves open.",
    ("ppr-topk-100-set", 64): "As before; more lists of 100 are left open.",
    ("ppr-topk-100", 64): (
        "As before; neighbours in long lists differ by less than float32's error, so some orders stay unproven."
    ),
    ("dense-200k", 1): UNKNOWN,
    ("dense-200k", 256): UNKNOWN,
}

FILES = """
## Everything else

| file | rows |
| --- | --- |
{listed}

To measure on your machine, from a checkout with `pip install -e '.[dev]' --group bench` (pip 25.1 or later):

```
hopfuse bench --out rows.jsonl             # or, from the root of the checkout: python -m bench --out rows.jsonl
hopfuse bench --report rows.jsonl          # writes this page, its charts and these files
hopfuse bench --plots plots rows.jsonl     # plots by matplotlib, the roofline among them
```
"""

ABOUT_FILES = {
    records.TIMINGS: "every pair: times with quartiles, ratio, threads, load, checks, kernels, commit, versions",
    records.TARGETS: "every target, with what was measured and the limit",
    records.LIMITS: "bandwidth by level of memory and access",
    records.VARIANTS: "other implementations of a pass over the hotpotqa graph",
}

#: Cases whose graph, or index, the page describes.
GRAPHS = ("ppr-hotpotqa", "ppr-musique", "ppr-atlas")
INDEXED = ("phasegraph-hotpotqa", "guided-walk")
#: Cases of the chart, each with its smallest and its largest batch.
CHARTED = {
    "ppr-hotpotqa": "PPR, all scores",
    "ppr-topk-hotpotqa": "PPR, proven best 100",
    "dense-200k": "dense, 200,000 × 384",
    "dense-11k-4096": "dense, 11,656 × 4,096",
    "dense-raw-200k": "dense, raw array",
    "fusion": "Boltzmann fusion",
    "project": "project",
    "similarity": "similarity weights",
    "dice": "Sørensen-Dice",
}


def files(rows: Sequence[Row], *names: str) -> dict[str, str]:
    """Return the page, its charts and its CSV files, by their path below docs/."""
    measured = [row for row in rows if row["status"] == "ok"]
    return {PAGE: render(rows, *names), **charts(measured), **records.files(measured)}


def render(rows: Sequence[Row], *names: str) -> str:
    """Return the page, from the rows of the files ``names`` in bench/results."""
    measured = [row for row in rows if row["status"] == "ok"]
    timed = [row for row in measured if "hopfuse" in row]
    threads = max((row["threads"] for row in timed), default=1)
    given = " ".join(f"bench/results/{name}" for name in names)
    parts = [INTRODUCTION.format(files=given, threads=threads), GPU if _devices(timed) else NO_GPU]
    if any(row["quick"] for row in measured):
        parts.append(QUICK)
    tables: list[str] = []
    for machine in dict.fromkeys(map(_machine, timed)):
        tables += _of_machine([row for row in timed if _machine(row) == machine], machine)
    if any(BUSY in part for part in tables):
        parts.append(DISTURBED.format(quiet=QUIET_CORES))
    parts += [*tables, _missed(measured), _files(measured), _absent(rows)]
    return "".join(parts)


def charts(rows: Sequence[Row]) -> dict[str, str]:
    """Return the charts for which there are rows, by path."""
    found, lines = {}, _batches(rows)
    if ratios := _ratios(rows):
        found[RATIOS] = chart.bars("Time of the fastest other library, in times of hopfuse's", ratios)
    if lines:
        found[BATCHES] = chart.lines(
            "Personalized PageRank on the hotpotqa graph", "questions in a call", "milliseconds per question", lines
        )
    return found


def _of_machine(rows: Sequence[Row], machine: str) -> list[str]:
    """Return the tables of one machine."""
    parts = [f"\n## On {machine}\n\n{_builds(rows)}"]
    held, rows = [row for row in rows if row.get("isa")], [row for row in rows if not row.get("isa")]
    drawn = charts(rows) if not _devices(rows) else {}
    if RATIOS in drawn:
        parts.append(f"\n![How many times as long the fastest other library takes, by operation]({RATIOS})\n")
    if BATCHES in drawn:
        parts.append(f"\n![Milliseconds per question of a walk, by questions in a call]({BATCHES})\n")
    for section in compared.SECTIONS:
        found = list(compared.strongest(rows, section))
        if not found:
            continue
        parts.append(STRONGEST.format(section=section) + _strongest(found))
        parts.append("\n" + REMARKS[section].format(sizes=_graphs(rows), faster=_faster(rows)))
        case, text = LIBRARIES.get(section, ("", ""))
        if libraries := _libraries(rows, case):
            parts.append(text + libraries)
    if whole := _whole(rows):
        parts.append(WHOLE.format(sizes=_collection(rows)) + whole)
    if found := list(compared.itself(rows)):
        parts.append(ITSELF + _itself(found))
    if held:
        parts.append(OTHER_SETS + _other_sets(held))
    every = [found for section in compared.SECTIONS for found in compared.strongest(rows, section)]
    slower = [found for found in every if found.row["ratio"]["of_medians"] < 1.0]
    if every:
        parts.append(SLOWER + (_slower(slower) if slower else NOT_SLOWER))
    return parts


# ---- Tables ----------------------------------------------------------------------------------------------------------


def _strongest(found: Iterable[compared.Found]) -> str:
    head = ["", "fastest other", "also measured", "queries", "hopfuse", "its time", "its threads", "ratio"]
    rows = [
        [
            of.what, compared.label(of.row["peer"]), ", ".join(of.others) or "-", f"{of.row['sizes']['batch']:,}",
            _own(of.row), _theirs(of.row), compared.threads(of.row), times(of.row["ratio"]["of_medians"]),
        ]
        for of in found
    ]  # fmt: skip
    return table(head, _without_repeats(rows), words=3)


def _libraries(rows: Sequence[Row], case: str) -> str:
    """Return the table of all libraries of a case: where each one stops, and its ratio in each batch."""
    batches = compared.by_batch(rows, case)
    named = dict.fromkeys(row["peer"] for _, of in batches for row in of if row["peer"])
    lines = []
    for name in (name for name in named if not PEERS[name].own):
        of = [next((row for row in rows if row["peer"] == name), None) for _, rows in batches]
        first = next(row for row in of if row is not None)
        ratios = [_scaled(row) if row else "-" for row in of]
        lines.append([compared.label(name), PEERS[name].stops or "float32", compared.threads(first), *ratios])
    at_once = [f"ratio, {batch:,} at once" for batch, _ in batches]
    return table(["library", "arithmetic, and where it stops", "threads", *at_once], lines, words=2) if lines else ""


def _whole(rows: Sequence[Row]) -> str:
    lines = []
    for case, what in compared.WHOLE.items():
        for batch, (row, *_) in compared.by_batch(rows, case):
            lines.append([what, str(batch), _own(row), seconds(row["hopfuse"]["p95"])])
    return table(["", "questions", "median", "95th percentile"], _without_repeats(lines)) if lines else ""


def _itself(found: Iterable[compared.Found]) -> str:
    rows = [
        [
            of.what, f"{of.row['sizes']['batch']:,}", _own(of.row), _theirs(of.row),
            times(of.row["ratio"]["of_medians"]) + _proven(of.row),
        ]
        for of in found
    ]  # fmt: skip
    return table(["", "queries", "time", "beside", "ratio"], _without_repeats(rows))


def _other_sets(rows: Sequence[Row]) -> str:
    """Return the table of rows with an ISA: beside hopfuse on the best one, and beside the fastest other library."""
    lines = []
    for isa in dict.fromkeys(row["isa"] for row in rows):
        of_isa = [row for row in rows if row["isa"] == isa]
        for case in BESIDE_BEST_ISA:
            for batch, of in compared.by_batch(of_isa, case):
                best = next((row for row in of if row["peer"] == "best-isa"), None)
                other = compared.fastest(of)
                beside = times(best["ratio"]["of_medians"]) if best else "-"
                library = [compared.label(other["peer"]), _theirs(other)] if other else ["-", "-"]
                ratio = times(other["ratio"]["of_medians"]) if other else "-"
                what = f"{compared.name(case)}, `{isa}`"
                lines.append([what, f"{batch:,}", _own(other or of[0]), beside, *library, ratio])
    head = ["", "queries", "hopfuse", "beside the best", "fastest other", "its time", "ratio"]
    return table(head, _without_repeats(lines))


def _slower(found: Iterable[compared.Found]) -> str:
    return "".join(
        f"- {of.what}, {of.row['sizes']['batch']:,} at once: {compared.label(of.row['peer'])} takes {_theirs(of.row)}, "
        f"hopfuse {_own(of.row)}.\n"
        for of in found
    )


def _missed(rows: Sequence[Row]) -> str:
    """Return the targets that are missed, but for those against earlier commits, which are in the file."""
    lines = [
        f"- {miss.what}: {miss.measured}, for a target of {miss.held}. {WHY.get((miss.case, miss.batch), UNKNOWN)}\n"
        for miss in bars.missed(rows)
        if "earlier-commit" not in miss.what
    ]
    return MISSED.format(bandwidth=records.LIMITS) + "".join(lines) if lines else ""


def _files(rows: Sequence[Row]) -> str:
    written = records.files(rows)
    return FILES.format(
        listed="\n".join(f"| [{name}]({name}) | {about} |" for name, about in ABOUT_FILES.items() if name in written)
    )


def _absent(rows: Sequence[Row]) -> str:
    lines = [
        f"- {row['case']}, {row['peer'] or 'alone'}: {row['status']}: {row['reason']}\n"
        for row in rows
        if row["status"] != "ok"
    ]
    return "\n## Not measured\n\n" + "".join(lines) if lines else ""


# ---- Cells -----------------------------------------------------------------------------------------------------------


def _own(row: Row) -> str:
    return seconds(row["hopfuse"]["median"]) + (BUSY if _is_disturbed(row) else "")


def _theirs(row: Row) -> str:
    return seconds(row["peer_time"]["median"])


def _scaled(row: Row) -> str:
    is_scaled = row["peer_timed_queries"] != row["sizes"]["batch"]
    return times(row["ratio"]["of_medians"]) + (", scaled" if is_scaled else "")


def _proven(row: Row) -> str:
    proven = row["gate"]["oracle"].get("proven", 1.0)
    return "" if proven == 1.0 else f", {proven:.0%} of the lists proven"


def _without_repeats(lines: Iterable[list[str]]) -> list[list[str]]:
    """Return the lines with a first cell only where it differs from the one above."""
    found: list[list[str]] = []
    before = None
    for line in lines:
        found.append(["" if line[0] == before else line[0], *line[1:]])
        before = line[0]
    return found


def _faster(rows: Sequence[Row]) -> str:
    """Warn that few libraries were measured in most cases, if in the case of all libraries another one is fastest."""
    of_all = [of for of in compared.strongest(rows, "Personalized PageRank") if of.row["case"] == GRAPHS[0]]
    if not of_all or of_all[-1].row["peer"] in FEW_WALKS:
        return ""
    few, fastest = " and ".join(map(compared.label, FEW_WALKS)), compared.label(of_all[-1].row["peer"])
    return f"Where only {few} were measured, faster code may exist: on the hotpotqa graph it is {fastest}. "


def _graphs(rows: Sequence[Row]) -> str:
    """Return the sizes of the graphs that have names."""
    sizes = {row["data"]: row["sizes"] for row in rows if row["case"] in GRAPHS and "nodes" in row["sizes"]}
    return " ".join(
        f"The {name} graph has {of['nodes']:,} nodes and {of['stored_entries']:,} stored entries."
        for name, of in sizes.items()
    )


def _collection(rows: Sequence[Row]) -> str:
    """Return the sizes of the index that recipes search."""
    found = next((row["sizes"] for row in rows if row["case"] in INDEXED), None)
    if found is None:
        return "its passages"
    return f"{found['passages']:,} passages of {found['dim']} dimensions and {found['entities']:,} entities"


# ---- Machines --------------------------------------------------------------------------------------------------------


def _machine(row: Row) -> str:
    """Return the device, or the processor, with its cores and system."""
    machine = row["machine"]
    where = f"{machine['cores']} cores, {machine['system']}"
    return (
        f"{place(row)}, beside {records.processor(row)}" if row.get("device") else f"{records.processor(row)}, {where}"
    )


def _builds(rows: Sequence[Row]) -> str:
    """Return the versions and commits that the rows were measured with."""
    row = rows[-1]
    versions = row["versions"]
    named = ", ".join(f"{name} {versions[name]}" for name in ("python", "numpy") if versions.get(name))
    commits = dict.fromkeys(
        f"{row['commit'] or 'not recorded'}" + (" with uncommitted changes" if row["modified"] else "") for row in rows
    )
    flags = ", ".join(row["machine"]["flags"][-3:])
    device = _device(row["device"]) if row.get("device") else ""
    return (
        f"{device}Measured at commits {', '.join(commits)} ({named}); the processor's newest instructions: {flags}.\n"
    )


def _device(device: dict[str, str]) -> str:
    named = {
        "compute capability": "compute_capability", "driver for": "driver", "runtime": "runtime", "CuPy": "cupy"
    }  # fmt: skip
    known = [f"{what} {device[key]}" for what, key in named.items() if key in device]
    return f"GPU: {', '.join([device['device'], *known])}.\n"


def _devices(rows: Sequence[Row]) -> bool:
    return any(row.get("device") for row in rows)


def _is_disturbed(row: Row) -> bool:
    return (row["load"]["other_cores"] or 0.0) > QUIET_CORES and not row["case"].startswith("busy-")


# ---- Charts ----------------------------------------------------------------------------------------------------------


def _ratios(rows: Sequence[Row]) -> dict[str, float]:
    """Return the ratio to the fastest other library in the smallest and the largest batch of each charted case."""
    on_host = [row for row in series.timed(rows) if not row["quick"]]
    strongest = [of for section in compared.SECTIONS for of in compared.strongest(on_host, section)]
    found = {}
    for case, name in CHARTED.items():
        of_case = [of.row for of in strongest if of.row["case"] == case]
        for row in of_case[:1] + of_case[1:][-1:]:
            batch = row["sizes"]["batch"]
            found[f"{name}, {batch:,} at once: {compared.label(row['peer'])}"] = float(row["ratio"]["of_medians"])
    return found


def _batches(rows: Sequence[Row]) -> series.Lines:
    """Return the milliseconds per question of walks on the hotpotqa graph, by batch."""
    shown = {"hopfuse": "ppr-batches", "scipy": "ppr-batches", "torch-sparse": "ppr-hotpotqa", "igraph": "ppr-hotpotqa"}
    found = {}
    for name, case in shown.items():
        line = series.by_batch(rows, case).get(name)
        if line is not None:
            found[compared.label(name)] = [(batch, 1e3 * taken / batch) for batch, taken in line]
    return found if "hopfuse" in found else {}
