"""The measurements of docs/gpu.md, from the report of ``python -m bench.first_gpu`` on a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: What has changed since the commit that was measured.
NEWER = """the host side, in C++ over the driver's entry points (`kernels/device`); the kernels of a walk's start, first
passes, passes, slices and certificates; those of its best nodes and of settling; those of 8-bit codes, products,
queries and candidates of dense lists; those of fusion and of covers"""
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

This page is written by `python -m bench.roofline`; do not edit it by hand. [gpu-formulas.md](gpu-formulas.md) has times
that are computed, for other cards and for kernels that have not run on one.

**What has run on a card.** The kernels of commit {commit} ran on an H200: walks in one launch with their grid barriers,
products of 16-bit vectors by tensor cores, and recordings among them. **What is newer has run on the emulator alone**:
{newer}.
The last commit before is tagged `cupy-host`. `hopfuse selftest` compares every kernel with the CPU on your card, and a
short form of it runs before the first answer.

## An NVIDIA H200

All of this section is of the former host side, which used CuPy, and of the kernels then.

`python -m bench.first_gpu` ran on an {device} (compute capability 9.0, driver {driver}, CuPy {cupy}, {cores} processor
cores) on {day} at commit {commit}, and its report is bench/results/h200-first-gpu.json. The kernels have
run on no other kind of GPU.

- Every answer had the CPU's bits: {checks} checks and {kernels} kernels of the self-test, {tests:,} tests marked `gpu`,
  600 answers of two threads, 200 of torch's streams, and the searches below.
- compute-sanitizer found nothing: memcheck and initcheck 0 errors, racecheck 0 hazards.
- {recordings}; {out_of_memory}.
- The first use compiled and loaded the kernels in {build_seconds:.1f} s ({build_cpu:.0f} s of processors).
- **What failed or was left out.** 40 files of tests lacked a package. One test failed, because it asked for every
  library of the CPU's benchmarks, which were not installed; it no longer does, and has not run on a GPU since. The
  part `bench` ended with the time on the machine.

Searches (a dense list, a walk, and their fusion, as one recording; random graphs and vectors), from arrays on the host
to arrays on the host, by CUDA events, medians of 20. *before*: the first version, on the same kind of GPU, with the
vectors of *million* in float32.

{searches}

{sizes}

Device time by part, in microseconds, with the number of graph nodes (kernels and copies) of a search:

{parts}

Single calls, which are not recorded, beside libraries on the same GPU (`python -m bench --backend cuda`; medians of 15,
copies of queries and answers included). *least* is the fastest of the 15: each turn began after 0.15 s of rest, in
which an idle GPU lowers its clocks, so medians of short calls are up to 1.75 times as long. A call launched up to 160
kernels from Python and proved its answer, which took longer than the kernels: **dense search was slower than PyTorch's,
and the proven best nodes of many queries took longer than the same walks by CuPy.** faiss, cuVS and cuGraph were not
installed.

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
        recordings=parts["recordings"]["about"].replace("on cuda", "of memory"),
        build_seconds=details["build"]["seconds"], build_cpu=details["build"]["cpu_seconds"],
        searches=_searches(report["before"], rows), sizes=_sizes(), parts=_parts(rows),
        calls=_calls(details["bench"]["rows"]), newer=NEWER,
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


def _searches(before: list[dict[str, Any]], rows: list[dict[str, Any]]) -> str:
    lines = ["| size | B | before | now |", "| --- | --- | --- | --- |"]
    for old, new in zip(before, rows, strict=True):
        lines.append(
            f"| {new['size']} | {new['batch']} | {old['milliseconds']:.2f} ms | {new['milliseconds']:.2f} ms |"
        )
    return "\n".join(lines)


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
