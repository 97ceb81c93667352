"""The counts of ``python -m bench.counted`` as a section of docs/gpu.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: Written by ``python -m bench.counted``.
COUNTED = Path(__file__).resolve().parent / "results" / "counted.json"
COLUMNS = ("kernel", "launches", "asked by threads", "asked once", "by its comment", "once / comment")

SECTION = """\
## PhaseGraph, counted

Bytes of global memory that the kernels of a search load and store, as the emulator's build `count` counts them, for
{nodes:,} nodes, {stored:,} stored entries with weights, {vectors:,} vectors of {dim} dimensions, pools of {dense_k}
and {graph_k}, k = {k}. `python -m bench.counted` writes them to `bench/results/counted.json`. It is the second search
of a batch, which replays what the first one recorded.

- *asked by threads*: every load and store of every thread. *asked once*: without what neighbours of a thread ask for
  at the same address again, which a device serves with one request; `bench/moved.py` has how much that is, from each
  kernel's source, and nothing where it is not derived. Neither knows of caches.
- *by its comment*: the formula above the kernel in `kernels/cuda`, for all launches. A batch of 1 takes 4 lanes; those
  without a query gather nothing.
- The matrix product of the dense leg is the platform's (cuBLAS), and is not counted. No row of this graph is longer
  than a segment of 64 entries.
- {passes} passes are recorded, for the worst restart; *nothing left* are those after the last query's end, whose
  threads read one number each.
- On so small a graph, numbers that all threads of a kernel read show in the ratios of small kernels and of B = 1.
  Kernels above 1.3 times their comment, and launches with nothing left, ask for {small:.1%} of all bytes at B = {most}.

A pass without residuals at B = {most} asks for **{ratio:.3f} times** nnz (4 + w) + 4 nnz B + 4 n B for each of its
two streams (w = 4): {once:,} bytes of {bar:,}. The bar is 1.15.
"""


def section(counts: list[dict[str, Any]]) -> str:
    """The tables, a batch size each; the last one is the largest."""
    last = counts[-1]
    search = last["search"]
    once = pass_bytes(last)
    text = SECTION.format(
        **search,
        most=search["batch"],
        passes=sum(row["launches"] for row in last["kernels"] if row["kernel"].startswith("ppr_pass")),
        small=small_share(last),
        once=once,
        bar=last["bar"],
        ratio=once / last["bar"],
    )
    return "\n".join([text, *(f"B = {count['search']['batch']}:\n\n{_table(count['kernels'])}\n" for count in counts)])


def read() -> list[dict[str, Any]]:
    """The committed counts."""
    counts: list[dict[str, Any]] = json.loads(COUNTED.read_text(encoding="utf-8"))
    return counts


def pass_bytes(count: dict[str, Any]) -> int:
    """Asked once by a pass without residuals."""
    (row,) = [row for row in count["kernels"] if row["kernel"] == "ppr_pass"]
    return int(row["once"]) // int(row["launches"])


def small_share(count: dict[str, Any]) -> float:
    """The part of all that is asked once which kernels ask for whose count is more than 1.3 times their comment's."""
    total = sum(row["once"] for row in count["kernels"])
    return float(sum(row["once"] for row in count["kernels"] if row["once"] > 1.3 * row["stated"]) / total)


def _table(rows: list[dict[str, Any]]) -> str:
    lines = [COLUMNS, ["---"] * len(COLUMNS)]
    for row in rows:
        stated = [f"{row['stated']:,}", f"{row['once'] / row['stated']:.2f}"] if row["stated"] else ["–", "–"]
        lines.append([f"`{row['kernel']}`", str(row["launches"]), f"{row['asked']:,}", f"{row['once']:,}", *stated])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
