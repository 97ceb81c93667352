"""``docs/performance.md`` from recorded rows; the same rows give the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .machine import QUIET_CORES
from .text import COLUMNS, cells

Row = dict[str, Any]

INTRODUCTION = """# Performance

Written by `python -m bench --report bench/results/{name}` from the rows in that file; do not edit it here.
To measure on your machine, from the root of a checkout with the extra `dev` installed:

```
python -m bench --out rows.jsonl
python -m bench --report rows.jsonl
```

Every case first proves its answers: hopfuse against the float64 oracle, then the peer against hopfuse; a wrong answer
stops the case untimed. hopfuse and one peer then take turns in a fresh process of their own, with the same number of
threads, after a rest and (for calls under 50 ms) an untimed call in each turn. Building a graph, an index or a peer's
structure is not timed. *ratio* is the peer's median over hopfuse's, *of pairs* the median over neighbouring turns,
*other load* the cores that other programs took meanwhile.
"""

DISTURBED = """**Rows with an other load above {quiet} were measured on a busy machine; a quiet one gives others:**
threads that meet at barriers lose far more to other programs than a single thread does.
"""


def render(rows: Sequence[Row], name: str) -> str:
    """The page, from the rows of the file ``name``."""
    measured = [row for row in rows if row["status"] == "ok"]
    absent = [row for row in rows if row["status"] != "ok"]
    parts = [INTRODUCTION.format(name=name)]
    if any(row["quick"] for row in measured):
        parts.append("**These rows are of the quick mode: tiny inputs, times without meaning.**\n")
    if any((row["load"]["other_cores"] or 0.0) > QUIET_CORES for row in measured):
        parts.append(DISTURBED.format(quiet=QUIET_CORES))
    for setting in _distinct(_setting(row) for row in measured):
        parts.append(f"## Measured on\n\n{setting}\n")
    parts.extend(_case(case, measured) for case in _distinct(row["case"] for row in measured))
    if absent:
        lines = [f"- {row['case']}, {row['peer'] or 'alone'}: {row['status']}: {row['reason']}" for row in absent]
        parts.append("## Not measured\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _setting(row: Row) -> str:
    machine, versions = row["machine"], row["versions"]
    known = {name: versions.get(name) or "not recorded" for name in ("hopfuse", "python", "numpy", "compiler")}
    model = f" (family/model {machine['family_model']})" if machine["family_model"] else ""
    changed = ", with uncommitted changes to the library" if row["modified"] else ""
    return (
        f"{machine['cpu']}{model}, {machine['cores']} cores, {machine['system']}; {row['threads']} threads.\n"
        f"Vector instructions: {' '.join(machine['flags']) or 'not recorded'}.\n"
        f"Commit {row['commit'] or 'not recorded'}{changed}; "
        + ", ".join(f"{name} {version}" for name, version in known.items())
        + "."
    )


def _case(case: str, measured: Sequence[Row]) -> str:
    rows = [row for row in measured if row["case"] == case]
    first = rows[0]
    sizes = ", ".join(f"{key.replace('_', ' ')} {value:,}" for key, value in first["sizes"].items() if key != "batch")
    lines = [
        f"## {case}",
        "",
        f"{first['data']} data: {sizes}. `python -m bench --case {case}`, "
        f"{first['hopfuse']['n']} turns; kernels {', '.join(f'`{name}`' for name in first['kernels'])}.",
        "",
        _line(COLUMNS[1:]),
        _line(["---"] * (len(COLUMNS) - 1)),
        *(_line(cells(row)[1:]) for row in rows),
        "",
        *_distinct(_remark(row) for row in rows if row["peer"]),
        *_distinct(_proof(row) for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _remark(row: Row) -> str:
    version = ", ".join(
        f"{name} {number}" for name, number in row["versions"].items() if name not in ("python", "hopfuse", "compiler")
    )
    note = f": {row['peer_note']}" if row["peer_note"] else ""
    return f"- {row['peer']}, B = {row['sizes']['batch']} ({version}){note}."


def _proof(row: Row) -> str:
    gate = row["gate"]
    against = f"; {row['peer']} against hopfuse: {_found(gate['peer'])}" if gate["peer"] else ""
    return f"- Gate, B = {row['sizes']['batch']}: hopfuse against the oracle: {_found(gate['oracle'])}{against}."


def _found(proof: dict[str, Any]) -> str:
    return f"error {proof['error']:.1e} of {proof['tolerance']:.1e} allowed, {proof['queries']} queries"


def _line(parts: Iterable[str]) -> str:
    return f"| {' | '.join(parts)} |"


def _distinct(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
