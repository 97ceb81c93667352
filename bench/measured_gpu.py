"""The measurements of docs/gpu.md, from reports of ``python -m bench.first_gpu`` on a GPU."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .first_gpu.parts import PARTS as RUN_PARTS
from .markdown import table

RESULTS = Path(__file__).parent / "results"
#: The report of the present host side and kernels, and that of an earlier version, for the parts that ran only then.
FILE, EARLIER = RESULTS / "h200-2026-11-29.json", RESULTS / "h200-first-gpu.json"
SIZES = {
    "small": "900 nodes, 4,000 edges; 600 vectors of 32 dimensions in float32",
    "musique": "72,000 nodes, 1,050,000 stored entries; 11,656 vectors of 4,096 dimensions in float32",
    "million": "1,000,000 nodes, 10,000,000 stored entries; 1,000,000 vectors of 1,024 dimensions in float16",
}
#: What is no kernel of a search: copies, clears, and calls of CUDA that the profiler lists.
COPIES = ("Memcpy", "Memset", "memset")
#: Kernels of a search by the part of the work.
PARTS = {
    "start": ("ppr_restart", "ppr_start"),
    "passes": ("ppr_early", "ppr_pass", "ppr_seg", "ppr_walk"),
    "certificate": ("ppr_residual", "ppr_mass", "ppr_scale"),
    "ranking": ("ppr_scan", "ppr_finish"),
    "dense list": ("dense_", "topk_"),
    "fusion": ("fuse_",),
    "copies": COPIES,
}
#: The same by the parts of bench/gpu_kernels.py, of which the rest is "other".
FORMULA_PARTS = {
    "early passes": ("ppr_early",),
    "passes": ("ppr_pass", "ppr_seg", "ppr_walk"),
    "residual": ("ppr_residual",),
    "start, mass, scale": ("ppr_start", "ppr_mass", "ppr_scale"),
    "rank, finish": ("ppr_scan", "ppr_finish"),
    "product, select": ("dense_product", "dense_score", "dense_scan", "dense_raise", "dense_select"),
}
#: Kernels that make a corpus's norms and codes, before the first search; launches of the profile that are shown.
OF_CORPUS, PROFILED_MICROSECONDS = ("dense_norms", "dense_encode_f"), 15
SECTOR = 32
SECTION = """# On GPUs: measured

This page is written by `python -m bench.roofline`; do not edit it by hand.

**One card has run hopfuse: an NVIDIA H200.** The present host side and most of the present kernels ran on it on
{day}, but not all checks: {absent} ran on {earlier_day} only, with an earlier version. No RTX card has run it. The
tests compare every kernel on an emulator with the CPU, bit for bit. `hopfuse selftest` does so on your card,
and a short form of it runs before the first answer.

## An NVIDIA H200

`python -m bench.first_gpu` ran on an {device} (compute capability 9.0, driver {driver}, {cores} processor cores), at
commit {commit}. The change that was not committed gave NVIDIA's profiler an option. The report is
[bench/results/{file}](../bench/results/{file}).

- **Equal bits.** The six recorded searches below, and the short self-test, which uses {loaded} of the {files} files of
  kernels, gave the CPU's bits.
- **racecheck** found 0 hazards in the short self-test.
- **initcheck failed**: it reported {uninitialised} reads of memory that nothing had written. Those that the report
  lists are in {reader}: a walk's start read the rank of a word without rows, and did not use it. The kernel has been
  changed since, and initcheck has not run on a card again.
- **What was skipped.** Walks beside CuPy, because the data of HotpotQA was not there; {missing}, which were not
  installed.
- The first use compiled and loaded the kernels in {build_seconds:.1f} s ({build_cpu:.1f} s of CPU time).

### Recorded searches

A dense list, a walk, and their fusion, as one recording, from arrays on the host to arrays on the host; random graphs
and vectors. Medians, of {in_a_row} one right after another, and of {rested} that each began after 0.15 s of rest.
*Earlier*: one right after another, by the earlier version. {clocks}

{searches}
{sizes}

Device time by part, in microseconds. *Nodes* counts a search's kernels and copies in the CUDA graph:

{parts}
### Dense lists beside PyTorch

Single calls, which are not recorded, on 200,000 vectors of 384 dimensions in float32, k = 10, copies of queries and
answers included, beside `matmul` and `topk` of torch {torch}. Medians; a ratio above 1 means that hopfuse is faster:

{calls}
In the earlier version the ratios after a rest were {earlier_ratios}.

### What the card gives

{rates}
Gathers read random rows, from a table of {near:.1f} MB that L2 holds or from one of {far:.0f} MB. The first-level
caches hold too little of either table to matter. {latency} A launch was timed from Python, so its time is the host's.

### Profile

`ncu` on a search of *musique*, B = 32, that is not recorded: launches of {profiled} µs or more. Bytes are L2 sectors,
and what memory moved; shares are of the fastest gather from L2 and of the copy above. `ncu` runs each kernel alone with
empty caches, so times differ from those in a recording. *Occupancy*: warps on a multiprocessor, of the most that it
holds.

{profile}
The passes and `dense_rank_f32` reach three quarters of what the card gives. Most others are too small for the card: of
{multiprocessors} multiprocessors the first scan uses 16 (4,096 rows, 256 a block), `dense_encode_queries` 8, and
kernels with a block for each query 32.

## The same card, with an earlier version

On {earlier_day} the report was of commit {earlier_commit}, with a host side in Python over CuPy {cupy}, and its rows of
single calls name {call_commits}. It is [bench/results/{earlier_file}](../bench/results/{earlier_file}). **These facts
have not been measured with the present version**:

- Every answer had the CPU's bits: {checks} checks and {kernels} kernels of the self-test, {tests:,} tests marked `gpu`,
  600 answers of two threads, and 200 of torch's streams.
- memcheck found 0 errors.
- Memory: {recordings}; a live one holds {held:g} MiB. Where memory ran out, {out_of_memory}.
- **What failed or was left out.** 40 files of tests lacked a package. One test failed, because it asked for every
  library of the CPU's benchmarks, which were not installed. The part `bench` was cut off when GPU time ran out.
- Walks beside CuPy, which stops at the same tolerance and proves nothing. Medians of 15 after a rest, copies included:

{walks}"""


class Report(NamedTuple):
    """A report: as a whole, its parts and their details by name."""

    whole: dict[str, Any]
    parts: dict[str, dict[str, Any]]

    def details(self, part: str) -> dict[str, Any]:
        found: dict[str, Any] = self.parts[part]["details"]
        return found


def read(file: Path) -> Report:
    whole = json.loads(file.read_text(encoding="utf-8"))
    return Report(whole, {part["name"]: part for part in whole["parts"]})


def section() -> str:
    """Return the section, in Markdown."""
    report, earlier = read(FILE), read(EARLIER)
    rows, rates, card = report.details("searches")["rows"], report.details("rates"), report.details("build")["card"]
    peers = [row for row in report.details("calls")["rows"] if row["status"] == "ok" and row["peer"] is not None]
    before = [row for row in earlier.details("bench")["rows"] if row["status"] == "ok" and row["peer"] is not None]
    return SECTION.format(
        day=report.whole["began"][:10], earlier_day=earlier.whole["began"][:10], absent=_absent(report),
        device=card["device"], driver=card["driver"], cores=report.whole["machine"]["cores"],
        commit=report.whole["machine"]["commit"].removesuffix("-dirty"), file=FILE.name,
        loaded=len(card["kernels"]), files=re.findall(r"compiling (\d+)", report.parts["build"]["output"])[0],
        **_initcheck(report.details("initcheck")), missing=_missing(report.details("calls")["rows"]),
        build_seconds=report.details("build")["seconds"], build_cpu=report.details("build")["cpu_seconds"],
        in_a_row=rows[0]["in_a_row"]["n"], rested=rows[0]["rested"]["n"], clocks=_clocks(report),
        searches=_searches(rows, earlier.details("searches")["rows"]), sizes=_sizes(), parts=_parts(rows),
        torch=peers[0]["versions"]["torch"], calls=_dense(peers), earlier_ratios=_ratios(before, peers),
        rates=_rates(rates), near=rates["latency of L2"]["table_bytes"] / 1e6,
        far=rates["latency of memory"]["table_bytes"] / 1e6, latency=_latency(rates["latency of memory"]),
        profiled=PROFILED_MICROSECONDS, profile=_profile(report.details("profiler")["launches"], rates),
        multiprocessors=rates["multiprocessors"], **_earlier(earlier, before),
    )  # fmt: skip


def _earlier(of: Report, calls: list[dict[str, Any]]) -> dict[str, Any]:
    details = {name: part["details"] for name, part in of.parts.items()}
    return {
        "earlier_commit": of.whole["machine"]["commit"],
        "cupy": details["build"]["card"]["cupy"],
        "earlier_file": EARLIER.name,
        "call_commits": _call_commits(details["bench"]["rows"]),
        "checks": details["selftest"]["checks"],
        "kernels": len(details["selftest"]["kernels"]),
        "tests": details["tests"]["outcomes"]["passed"],
        "recordings": of.parts["recordings"]["about"].split(" on cuda")[0],
        "held": details["recordings"]["recording_bytes"] / 2**20,
        "out_of_memory": of.parts["out_of_memory"]["about"],
        "walks": _walks(calls),
    }


def searches_by_part() -> list[tuple[str, int, dict[str, float]]]:
    """Return size, batch and microseconds by part of each search."""
    found = []
    for row in read(FILE).details("searches")["rows"]:
        kernels = row["kernels"]
        taken = {name: _sum(kernels, starts) for name, starts in FORMULA_PARTS.items()}
        if "dense_score_f32" in kernels:  # then the first dense_keep_u64 selects, in place of dense_select_f32
            count, microseconds = kernels["dense_keep_u64"]
            taken["product, select"] += microseconds / count
        everything = sum(spent for name, (_, spent) in kernels.items() if not name.startswith(COPIES))
        taken["other"] = everything - sum(taken.values())
        taken["host and gaps"] = 1e3 * row["milliseconds"] - everything
        found.append((row["size"], row["batch"], taken))
    return found


def milliseconds() -> dict[tuple[str, int], float]:
    """Return the measured milliseconds of each recorded search, by size and batch."""
    return {(row["size"], row["batch"]): row["milliseconds"] for row in read(FILE).details("searches")["rows"]}


def _sum(kernels: dict[str, list[float]], starts: tuple[str, ...]) -> float:
    return sum(taken for name, (_, taken) in kernels.items() if name.startswith(starts))


# ---- What ran --------------------------------------------------------------------------------------------------------


def _absent(report: Report) -> str:
    """Return the parts that are not in a report."""
    names = [f"`{part.name}`" for part in RUN_PARTS if part.name not in report.parts]
    return f"the parts {', '.join(names[:-1])} and {names[-1]}"


def _initcheck(details: dict[str, Any]) -> dict[str, str]:
    """Return the number of errors, and the kernels of those that the report has."""
    lines = details["first_lines"].splitlines()
    places = {line.split(" at ")[1].split("+")[0] for line in lines if " at " in line and "+0x" in line}
    return {"uninitialised": details["summaries"][0].split()[2], "reader": ", ".join(f"`{name}`" for name in places)}


def _missing(rows: list[dict[str, Any]]) -> str:
    """Return the libraries that were not installed."""
    names = {row["peer"]: None for row in rows if row["status"] == "skip" and "No module named" in row["reason"]}
    return ", ".join([*names][:-1]) + f" and {[*names][-1]}"


def _call_commits(rows: list[dict[str, Any]]) -> str:
    """Return the commits that the rows of single calls name."""
    changed = {True: " with uncommitted changes", False: ""}
    named = (f"{row['commit']}{changed[row['modified']]}" for row in rows if row["status"] == "ok")
    return ", ".join(dict.fromkeys(named))


def _clocks(report: Report) -> str:
    """Return what the clocks of multiprocessors were in all samples."""
    seen = list(_samples(report.whole))
    least, most = min(one["least"] for one in seen), max(one["most"] for one in seen)
    if least == most:
        return f"The multiprocessors ran at {most:,} MHz in every sample, also after rests."
    return f"The multiprocessors ran at {least:,} to {most:,} MHz."


def _samples(found: Any) -> Iterator[dict[str, Any]]:
    """Yield all samples of clocks in a report."""
    if isinstance(found, dict):
        if found.get("clocks"):
            yield found["clocks"]
        found = list(found.values())
    if isinstance(found, list):
        for inner in found:
            yield from _samples(inner)


# ---- Tables ----------------------------------------------------------------------------------------------------------


def _searches(rows: list[dict[str, Any]], before: list[dict[str, Any]]) -> str:
    earlier = {(row["size"], row["batch"]): row["milliseconds"] for row in before}
    head = ["size", "B", "earlier", "one after another", "after a rest", "earlier / now"]
    lines = []
    for row in rows:
        then, now = earlier[row["size"], row["batch"]], row["milliseconds"]
        rested = 1e3 * row["rested"]["median"]
        times = [f"{time:.2f} ms" for time in (then, now, rested)]
        lines.append([row["size"], str(row["batch"]), *times, f"{then / now:.1f}x"])
    return table(head, lines)


def _sizes() -> str:
    return "\n".join(f"- *{name}*: {text}." for name, text in SIZES.items())


def _parts(rows: list[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        kernels = row["kernels"]
        sums = [_sum(kernels, starts) for starts in PARTS.values()]
        nodes = round(sum(count for count, taken in kernels.values() if taken))
        cells = [*sums, sum(taken for _, taken in kernels.values())]
        lines.append([row["size"], str(row["batch"]), *(f"{cell:,.0f}" for cell in cells), str(nodes)])
    return table(["size", "B", *PARTS, "all", "nodes"], lines)


def _dense(rows: list[dict[str, Any]]) -> str:
    head = ["B", "one after another", "torch", "ratio", "after a rest", "torch", "ratio"]
    lines = []
    for row in rows:
        quick = [row["in_a_row"][side]["median"] for side in ("hopfuse", "peer")]
        slow = [row[side]["median"] for side in ("hopfuse", "peer_time")]
        cells = [*(f"{1e3 * time:.2f} ms" for time in quick), f"{quick[1] / quick[0]:.1f}x"]
        cells += [*(f"{1e3 * time:.2f} ms" for time in slow), f"{row['ratio']['of_medians']:.1f}x"]
        lines.append([str(row["sizes"]["batch"]), *cells])
    return table(head, lines)


def _ratios(before: Iterable[dict[str, Any]], now: Iterable[dict[str, Any]]) -> str:
    """Return the earlier ratios of the cases that were measured again."""
    measured = {(row["case"], row["peer"], row["sizes"]["batch"]) for row in now}
    again = [row for row in before if (row["case"], row["peer"], row["sizes"]["batch"]) in measured]
    return ", ".join(f"{row['ratio']['of_medians']:.2f}x" for row in again)


def _walks(rows: Iterable[dict[str, Any]]) -> str:
    head = ["case", "B", "library", "hopfuse", "its time", "ratio"]
    lines = []
    for row in rows:
        if row["case"].startswith("ppr"):
            times = [f"{1e3 * row[side]['median']:.2f} ms" for side in ("hopfuse", "peer_time")]
            cells = [row["case"], str(row["sizes"]["batch"]), row["peer"], *times]
            lines.append([*cells, f"{row['ratio']['of_medians']:.2f}x"])
    return table(head, lines)


def _rates(rates: dict[str, Any]) -> str:
    lines = [["a copy in memory, bytes read and written", f"{rates['copy']['gigabytes_per_second']:,.0f} GB/s"]]
    for name in ("L2", "memory"):
        of = rates[f"gathers from {name}"]
        row_bytes = ", ".join(str(one["row_bytes"]) for one in of)
        lines.append([
            f"gathers from {name}, rows of {row_bytes} bytes",
            ", ".join(f"{one['gigabytes_per_second']:,.0f}" for one in of) + " GB/s",
        ])  # fmt: skip
    lines.append(["a load from L2 that waits for the one before", f"{1e9 * rates['latency of L2']['seconds']:.0f} ns"])
    if has_memory_latency(rates["latency of memory"]):
        of = rates["latency of memory"]
        lines.append(["a load from memory that waits for the one before", f"{1e9 * of['seconds']:.0f} ns"])
    barrier = rates["barrier"]
    lines.append([f"a grid barrier of {barrier['blocks']} blocks", f"{1e6 * barrier['seconds']:.1f} µs"])
    lines.append(["a launch, of many in a row", f"{1e6 * rates['launch']['seconds_in_a_row']:.0f} µs"])
    return table(["rate", "measured"], lines)


def has_memory_latency(of: dict[str, Any]) -> bool:
    """Return whether the lines of a chain were new in each run."""
    return "lines" in of


def _latency(of: dict[str, Any]) -> str:
    if has_memory_latency(of):
        return "Each load of a chain is of a line of 128 bytes that was not read before."
    return (
        f"**The latency of memory is left out**: every timed run followed the same {of['loads']:,} links, which stayed "
        "in L2. The probe now reads new lines in each run, and has not run on a card since."
    )


def _profile(launches: list[dict[str, str]], rates: dict[str, Any]) -> str:
    best = max(one["gigabytes_per_second"] for one in rates["gathers from L2"])
    copied = rates["copy"]["gigabytes_per_second"]
    head = ["kernel", "µs", "L2, GB/s", "share", "memory, GB/s", "share", "occupancy", "registers"]
    lines = []
    for one in launches:
        nanoseconds = _number(one["gpu__time_duration.sum"])
        if nanoseconds < 1e3 * PROFILED_MICROSECONDS or one["kernel"].startswith(OF_CORPUS):
            continue
        near = SECTOR * _number(one["lts__t_sectors.sum"]) / nanoseconds
        far = _number(one["dram__bytes.sum"]) / nanoseconds
        occupancy = _number(one["sm__warps_active.avg.pct_of_peak_sustained_active"])
        cells = [f"{nanoseconds / 1e3:.0f}", f"{near:,.0f}", f"{near / best:.0%}", f"{far:,.0f}", f"{far / copied:.0%}"]
        registers = f"{_number(one['launch__registers_per_thread']):.0f}"
        lines.append([f"`{one['kernel']}`", *cells, f"{occupancy:.0f}%", registers])
    return table(head, lines)


def _number(metric: str) -> float:
    """Return the number of a metric with its unit."""
    return float(metric.split()[0].replace(",", ""))
