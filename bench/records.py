"""The CSV files beside docs/performance.md: all that was measured."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import bars, limits, variants
from .machine import KINDS, is_best_cpu, kind
from .peers import PEERS
from .probes import PROBES
from .text import ACCESS, place

Row = dict[str, Any]
TIMINGS, TARGETS, LIMITS, VARIANTS = (
    f"results/performance-{name}.csv" for name in ("timings", "targets", "bandwidth", "passes")
)


def files(rows: Sequence[Row]) -> dict[str, str]:
    """Return the text of each file by its path below docs/, for rows that were measured."""
    found = {
        TIMINGS: [_timing(row) for row in rows if row["case"] not in PROBES],
        TARGETS: _targets(rows),
        LIMITS: [_limit(row) for row in rows if row["case"] == limits.CASE],
        VARIANTS: [_variant(row) for row in rows if row["case"] == variants.CASE],
    }
    return {path: _csv(lines) for path, lines in found.items() if lines}


def processor(row: Row) -> str:
    """Return the processor of a row, with its family and model, if known."""
    machine = row["machine"]
    return str(machine["cpu"]) + (f" (family/model {machine['family_model']})" if machine["family_model"] else "")


def _timing(row: Row) -> dict[str, Any]:
    peer, ratio, proofs = row["peer"], row["ratio"] or {}, row["gate"]
    sizes = " ".join(f"{name}={value}" for name, value in row["sizes"].items() if name != "batch")
    return {
        "case": row["case"], "data": row["data"], "sizes": sizes, "batch": row["sizes"]["batch"], "on": place(row),
        "threads": row["threads"], "isa": row.get("isa") or "", **_times("hopfuse", row["hopfuse"]), "peer": peer or "",
        "peer_threads": PEERS[peer].runs_on if peer else "", "peer_stops": PEERS[peer].stops if peer else "",
        **_times("peer", row["peer_time"]), "peer_queries": row["peer_timed_queries"] or "",
        "ratio": ratio.get("of_medians", ""), "ratio_of_pairs": ratio.get("of_pairs", ""),
        "turns": row["hopfuse"]["n"], "other_load": row["load"]["other_cores"],
        **_proof("oracle", proofs["oracle"]), "proven": proofs["oracle"].get("proven", ""),
        **_proof("peer", proofs["peer"]), "kernels": " ".join(row["kernels"]), "machine": processor(row),
        **_build(row), "remark": row["peer_note"] or "",
    }  # fmt: skip


def _times(side: str, taken: Mapping[str, float] | None) -> dict[str, Any]:
    return {f"{side}_{name}_s": taken[name] if taken else "" for name in ("median", "q1", "q3", "p95", "min")}


def _proof(against: str, proof: Mapping[str, Any] | None) -> dict[str, Any]:
    return {f"{against}_{name}": proof[name] if proof else "" for name in ("error", "tolerance", "queries")}


def _build(row: Row) -> dict[str, Any]:
    versions = " ".join(f"{name}={number}" for name, number in row["versions"].items() if number is not None)
    return {"commit": row["commit"] or "", "modified": row["modified"], "versions": versions}


def _targets(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return each target on each kind of machine that has rows."""
    measured = {kind(row["machine"]["flags"]) for row in rows if is_best_cpu(row)}
    found = []
    for line in bars.lines(rows):
        for at, name in enumerate(KINDS):
            if name in measured:
                value, _, verdict = line[2 + 2 * at].rpartition(": ")
                found.append({
                    "target": line[0].replace("`", ""), "processors": name, "at_least": line[1 + 2 * at],
                    "measured": value, "verdict": verdict,
                })  # fmt: skip
    return found


def _limit(row: Row) -> dict[str, Any]:
    rate = {name: row["rate"][name] for name in ("median", "q1", "q3")}
    return {
        "level": row["level"], "access": ACCESS[row["access"]], "array_bytes": row["sizes"]["array"] or "",
        "unit": "GB/s" if row["sizes"]["array"] else "10^9/s", **rate, "other_load": row["load"]["other_cores"],
        "machine": processor(row), **_build(row),
    }  # fmt: skip


def _variant(row: Row) -> dict[str, Any]:
    return {
        "lanes": row["sizes"]["lanes"], "variant": row["variant"], "kept": row["kept"],
        **_times("pass", row["pass"]), "of_first": row["of_kept"], "other_load": row["load"]["other_cores"],
        "machine": processor(row), **_build(row),
    }  # fmt: skip


def _csv(lines: Iterable[Mapping[str, Any]]) -> str:
    rows = list(lines)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
