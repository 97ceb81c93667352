"""Write the lists and tables of README.md and docs/ that follow from pyproject.toml, the package and result files.

``python docs/tables.py`` rewrites what stands between their markers; tests/test_tables.py fails if that changes a page.
"""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import readme_tables
from hopfuse.recipes import RECIPES
from measured import MEASURED

ROOT = Path(__file__).resolve().parents[1]


def extras(project: dict[str, Any] | None = None) -> str:
    """Return a table of all extras, by ``[tool.hopfuse.extras]`` of pyproject.toml; those with one use share a row."""
    project = project or tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    said: dict[str, str] = project["tool"]["hopfuse"]["extras"]
    declared = project["project"]["optional-dependencies"]
    if set(said) != set(declared):
        raise ValueError(f"[tool.hopfuse.extras] and the extras differ in {sorted(set(said) ^ set(declared))}")
    names: dict[str, list[str]] = {}
    for name, text in said.items():
        names.setdefault(text, []).append(f"`{name}`")
    rows = [f"| {', '.join(of)} | {text} |" for text, of in names.items()]
    return "\n".join(["| Extra | What it is for |", "|---|---|", *rows])


def recipes(folder: str) -> str:
    """Return a table of the recipes, for a page from which ``folder`` leads to docs/."""
    lines = ["| Recipe | Class | Ranks | What it does |", "|---|---|---|---|"]
    for name, kind in RECIPES.items():
        page = f"{kind.__module__.split('.')[2].replace('_', '-')}.md"
        says = (kind.__doc__ or "").strip().splitlines()[0].rstrip(".")
        lines.append(f"| `{name}` | [{kind.__name__}]({folder}{page}) | {kind.ranks} | {says} |")
    return "\n".join(lines)


def local_walks() -> str:
    """Return a table of local walks that prove the order of 10 passages, from the rows of their bench."""
    text = (ROOT / "bench" / "results" / "local-walks.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    chosen = {"k": "10", "prove": "order", "damping": "0.5", "node weights": "0"}
    head = ["Graph", "entries", "proven", "entries read: median, 90 %", *TIMES]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    for row in rows:
        if all(row[name] == value for name, value in chosen.items()):
            times = [f"{_three(row[f'passes {name}'])} → {_three(row[f'auto {name}'])}" for name in TIMES.values()]
            read = f"{float(row['p50']):.2g}, {float(row['p90']):.2g}"
            cells = [row["graph"], f"{int(row['entries']):,}", f"{float(row['proven']):.0%}", read, *times]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _three(milliseconds: str) -> str:
    value = float(milliseconds)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


# ---- Scale -----------------------------------------------------------------------------------------------------------

#: Entries of a graph for a node, as generated graphs have them, and what is computed from it: entries, memory in GB.
ENTRIES_A_NODE = 8
MACHINES = ((7, 1), (8, 8), (9, 64), (10, 512))
#: Divided graphs: the exponent of the entries, and queries at once.
DIVIDED, DIVIDED_MACHINES = ((9, 8), (10, 8), (10, 32)), 16


def _memory() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "bench" / "results" / "memory-1e7.json").read_text(encoding="utf-8"))
    return found


def scale_memory() -> str:
    """Return what was measured of the memory of a graph with 10^7 entries."""
    of = _memory()
    nodes, entries = of["nodes"], of["stored_entries"]
    rows = [
        (
            "a stored entry: column and weight (4 and 4; no weight where all are 1; one more with edge types)",
            f"{of['array_bytes_an_entry']:.1f}",
            of["array_bytes_an_entry"] * entries,
        ),
        (
            "a node: row, degree, two orders (8 more for each edge type after the first)",
            f"{of['array_bytes_a_node']:.1f}",
            of["array_bytes_a_node"] * nodes,
        ),
        ("together", f"{of['graph_bytes'] / entries:.1f} an entry", of["graph_bytes"]),
        (
            "`Graph.from_edges` at its peak, edge list and graph included",
            f"{of['build_bytes_an_entry']:.0f} an entry",
            of["build_bytes_an_entry"] * entries,
        ),
    ]
    for batch, each in of["walk_bytes_a_node"].items():
        what = f"`ppr` of {batch.removeprefix('B=')} at its peak, with what it makes of the graph once and the scores"
        rows.append((what, f"{each:.0f} a node", each * nodes))
    lines = ["| | bytes | for 10⁷ entries |", "|---|---:|---:|"]
    return "\n".join([*lines, *(f"| {what} | {each} | {total / 1e6:,.0f} MB |" for what, each, total in rows)])


def scale_machines() -> str:
    """Return the memory of larger graphs, computed from the measured one."""
    of = _memory()
    lines = [
        "| stored entries | nodes | mapped graph | building it | walks, 8 at once | a machine of |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for power, machine in MACHINES:
        entries = 10.0**power
        nodes = entries / ENTRIES_A_NODE
        each = (of["graph_bytes"] / of["stored_entries"] * entries, of["build_bytes_an_entry"] * entries)
        sizes = (*each, of["walk_bytes_a_node"]["B=8"] * nodes)
        cells = [
            f"{10**power:,}",
            f"{nodes:,.0f}",
            *(f"{size / 1e9:.2g} GB" if size < 1e11 else f"{size / 1e9:.0f} GB" for size in sizes),
        ]
        lines.append(f"| {' | '.join(cells)} | {machine} GB |")
    return "\n".join(lines)


def scale_network() -> str:
    """Return the traffic and the arithmetic of a pass over a divided graph."""
    text = (ROOT / "bench" / "results" / "xeon-vnni-2-cores.jsonl").read_text(encoding="utf-8")
    (row,) = (
        row
        for row in map(json.loads, text.splitlines())
        if row["case"] == "ppr-1e8" and row["sizes"]["batch"] == DIVIDED[0][1]
    )
    one = row["pass"]["seconds"] / (row["sizes"]["stored_entries"] * row["sizes"]["batch"])
    lines = [
        "| entries | queries | received by each machine in a pass | at 10 Gbit/s | at 100 Gbit/s | "
        f"multiplying on {DIVIDED_MACHINES} machines of {row['machine']['cores']} cores |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for power, batch in DIVIDED:
        received = 4.0 * 10**power / ENTRIES_A_NODE * batch
        seconds = (received * 8 / 1e10, received * 8 / 1e11, one * 10**power * batch / DIVIDED_MACHINES)
        cells = [
            f"{10**power:,}",
            str(batch),
            f"{received / 1e9:.0f} GB",
            *(f"{value:.2g} s" if value < 100 else f"{value:.0f} s" for value in seconds),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


#: Columns of times: heading and name in the file.
TIMES = {"one question, median": "median ms", "mean": "mean ms", "95 %": "p95 ms", "64 questions": "B=64 ms"}
#: The lists of each page, by their markers.
LISTS: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"quality": readme_tables.quality, "speed": readme_tables.speed, "drop-in": readme_tables.drop_in},
    "docs/dependencies.md": {"sizes": readme_tables.sizes, "extras": extras},
    "docs/guides/hipporag.md": {"drop-in": readme_tables.drop_in},
    "docs/retriever.md": {"recipes": lambda: recipes("")},
    "docs/scale.md": {
        "scale-memory": scale_memory,
        "scale-machines": scale_machines,
        "scale-network": scale_network,
    },
    "docs/local-walks.md": {"local-walks": local_walks},
    **MEASURED,
}


def current(page: str) -> str:
    """Return a page with its lists as they should be."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, made in LISTS[page].items():
        begin, end = f"<!-- {name}: python docs/tables.py -->\n", f"\n<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        if text.count(begin) != 1 or rest.count(end) != 1:
            raise ValueError(f"{page} has no place for the list of {name}")
        text = before + begin + made() + end + rest.partition(end)[2]
    return text


if __name__ == "__main__":
    for page in LISTS:
        (ROOT / page).write_text(current(page), encoding="utf-8")
