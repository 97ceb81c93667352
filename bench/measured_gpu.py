"""The measurements of docs/gpu.md, from the report of ``python -m bench.first_gpu`` on a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "results" / "h200-first-gpu.json"
SIZES = {
    "small": "900 nodes, 4,000 edges; 600 vectors of 32 dimensions in float32",
    "musique": "72,000 nodes, 1,050,000 stored entries; 11,656 vectors of 4,096 dimensions in float32",
    "million": "1,000,000 nodes, 10,000,000 stored entries; 1,000,000 vectors of 1,024 dimensions in float16",
}
#: Kernels of a search by the part of the work; the rest are seeds, fusion and copies.
PARTS = {
    "passes": ("ppr_early", "ppr_pass", "ppr_seg", "ppr_walk"),
    "certificate": ("ppr_residual", "ppr_mass", "ppr_scale"),
    "ranking": ("ppr_rank", "ppr_scan", "ppr_finish"),
    "product": ("dense_product", "dense_score", "gemv", "void gemv", "sm80_xmma", "std::enable_if"),
}
#: The same by the parts of bench/gpu_kernels.py, of which the rest is "other".
FORMULA_PARTS = {
    "early passes": ("ppr_early",),
    "passes": ("ppr_pass", "ppr_seg", "ppr_walk"),
    "residual": ("ppr_residual",),
    "start, mass, scale": ("ppr_start", "ppr_mass", "ppr_scale"),
    "rank, finish": ("ppr_rank", "ppr_finish"),
    "product, select": (*PARTS["product"], "dense_select"),
}
SECTION = """# On GPUs: measured

This page is written by `python -m bench.roofline`; do not edit it by hand.

**One card has run hopfuse: an NVIDIA H200, with an earlier version.** Since then the host side was rewritten, in C++
over the driver's entry points, and most kernels have changed. **What is installed today has run on no GPU**, only on
the emulator of the tests, which compares every kernel with the CPU bit for bit. So all times here belong to the
earlier version, and whatever other pages say of GPUs was tested on the emulator. `hopfuse selftest` compares every
kernel with the CPU on your card, and a short form of it runs before the first answer.

## An NVIDIA H200

`python -m bench.first_gpu` ran on an {device} (compute capability 9.0, driver {driver}, {cores} processor cores) on
{day}, with the former host side, which used CuPy {cupy}. The report names commit {commit}, and its rows of single
calls name {call_commits}. It is [bench/results/h200-first-gpu.json](../bench/results/h200-first-gpu.json).

- Every answer had the CPU's bits: {checks} checks and {kernels} kernels of the self-test, {tests:,} tests marked `gpu`,
  600 answers of two threads, 200 of torch's streams, and the searches below.
- compute-sanitizer found nothing: memcheck and initcheck 0 errors, racecheck 0 hazards.
- Memory: {recordings}; a live one holds {held:g} MiB. Where memory ran out, {out_of_memory}.
- The first use compiled and loaded the kernels in {build_seconds:.1f} s ({build_cpu:.0f} s of CPU time).
- **What failed or was left out.** 40 files of tests lacked a package. One test failed, because it asked for every
  library of the CPU's benchmarks, which were not installed. The part `bench` was cut off when GPU time ran out.

Searches (a dense list, a walk, and their fusion, as one recording; random graphs and vectors), from arrays on the host
to arrays on the host, by CUDA events, medians of 20:

{searches}

{sizes}

Device time by part, in microseconds. *Nodes* counts a search's kernels and copies in the CUDA graph:

{parts}

Single calls, which are not recorded, beside libraries on the same GPU (`python -m bench --backend cuda`). Times are
medians of 15, copies of queries and answers included; *least* is the fastest. Each turn began after 0.15 s of rest, in
which an idle GPU lowers its clocks, so medians of short calls are longer. A call launched up to 160
kernels from Python and proved its answer, which took longer than the kernels. **Dense search was slower than PyTorch's,
and the proven best nodes of many queries took longer than the same walks by CuPy**, which stop at the same tolerance
and prove nothing. faiss, cuVS and cuGraph were not installed.

{calls}
"""


def section() -> str:
    """Return the section, in Markdown."""
    report = json.loads(FILE.read_text(encoding="utf-8"))
    parts = {part["name"]: part for part in report["parts"]}
    details = {name: part["details"] for name, part in parts.items()}
    rows = details["searches"]["rows"]
    card = details["build"]["card"]
    return SECTION.format(
        device=card["device"], driver=card["driver"], cupy=card["cupy"], cores=report["machine"]["cores"],
        day=report["began"][:10], commit=report["machine"]["commit"], tests=details["tests"]["outcomes"]["passed"],
        out_of_memory=parts["out_of_memory"]["about"], checks=details["selftest"]["checks"],
        kernels=len(details["selftest"]["kernels"]),
        recordings=parts["recordings"]["about"].split(" on cuda")[0],
        held=details["recordings"]["recording_bytes"] / 2**20,
        build_seconds=details["build"]["seconds"], build_cpu=details["build"]["cpu_seconds"],
        searches=_searches(rows), sizes=_sizes(), parts=_parts(rows),
        calls=_calls(details["bench"]["rows"]), call_commits=_call_commits(details["bench"]["rows"]),
    )  # fmt: skip


def searches_by_part() -> list[tuple[str, int, dict[str, float]]]:
    """Return size, batch and microseconds by part of each search."""
    report = json.loads(FILE.read_text(encoding="utf-8"))
    (rows,) = (part["details"]["rows"] for part in report["parts"] if part["name"] == "searches")
    found = []
    for row in rows:
        kernels = row["kernels"]
        taken = {name: _sum(kernels, starts) for name, starts in FORMULA_PARTS.items()}
        count, microseconds = kernels.get("dense_keep_u64", (0, 0.0))
        if count > 1:  # the first one selects, in place of dense_select_f32
            taken["product, select"] += microseconds / count
        everything = sum(microseconds for _, microseconds in kernels.values())
        taken["other"] = everything - sum(taken.values())
        taken["host and gaps"] = 1e3 * row["milliseconds"] - everything
        found.append((row["size"], row["batch"], taken))
    return found


def _sum(kernels: dict[str, list[float]], starts: tuple[str, ...]) -> float:
    return sum(taken for name, (_, taken) in kernels.items() if name.startswith(starts))


def _searches(rows: list[dict[str, Any]]) -> str:
    lines = ["| size | B | a search |", "| --- | --- | --- |"]
    lines += [f"| {row['size']} | {row['batch']} | {row['milliseconds']:.2f} ms |" for row in rows]
    return "\n".join(lines)


def _call_commits(rows: list[dict[str, Any]]) -> str:
    """Return the commits that the rows of single calls name."""
    changed = {True: " with uncommitted changes", False: ""}
    named = (f"{row['commit']}{changed[row['modified']]}" for row in rows if row["status"] == "ok")
    return ", ".join(dict.fromkeys(named))


def _sizes() -> str:
    return "\n".join(f"- *{name}*: {text}." for name, text in SIZES.items())


def _parts(rows: list[dict[str, Any]]) -> str:
    lines = [f"| size | B | {' | '.join(PARTS)} | all | nodes |", "| --- | --- |" + " --- |" * (len(PARTS) + 2)]
    for row in rows:
        kernels = row["kernels"]
        sums = [_sum(kernels, starts) for starts in PARTS.values()]
        cells = [*sums, sum(taken for _, taken in kernels.values())]
        nodes = round(sum(count for count, _ in kernels.values()))
        lines.append(f"| {row['size']} | {row['batch']} | {' | '.join(f'{cell:,.0f}' for cell in cells)} | {nodes} |")
    return "\n".join(lines)


def _calls(rows: list[dict[str, Any]]) -> str:
    lines = ["| case | B | library | hopfuse | least | its time | least | ratio |", "| --- |" + " --- |" * 7]
    for row in rows:
        if row["status"] == "ok" and row["peer"] is not None:
            times = [1e3 * row[side][name] for side in ("hopfuse", "peer_time") for name in ("median", "min")]
            cells = [row["case"], str(row["sizes"]["batch"]), row["peer"], *(f"{time:.2f} ms" for time in times)]
            lines.append(f"| {' | '.join(cells)} | {row['ratio']['of_medians']:.2f}x |")
    return "\n".join(lines)
