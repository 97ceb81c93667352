"""``docs/performance.md`` from recorded rows; the same rows give the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import bars
from .machine import QUIET_CORES
from .text import COLUMNS, SECTIONS, cells, place

Row = dict[str, Any]

INTRODUCTION = """# Performance

This page is written by `python -m bench --report {files}`; do not edit it by hand.
To measure on your machine, from a checkout with `pip install -e '.[dev]' --group bench` (pip 25.1 or later):

```
hopfuse bench --out rows.jsonl             # or, from the root of the checkout: python -m bench --out rows.jsonl
hopfuse bench --report rows.jsonl          # writes docs/performance.md
hopfuse bench --plots plots rows.jsonl     # plots them to the folder plots
```

Every case first checks its answers: hopfuse against the float64 oracle, then the peer against hopfuse. If an answer is
wrong, the case stops without timing it. Then hopfuse and one peer take turns in a new process, with the same number of
threads; before each timed call there is a rest and, for calls under 50 ms, an untimed call. Building a graph, an index
or a peer's structures is not timed. *on* is the device that hopfuse ran on, *ratio* the peer's median time over
hopfuse's, *of pairs* the median ratio of neighbouring turns, and *load* the number of cores that other programs used.

The speed-ups of adapters over the libraries' own code (HippoRAG, NetworkX, fast-graphrag) are in
[integrations.md](integrations.md); `python -m bench.drop_ins` measures them.
"""

NO_GPU = """\
**Nothing on this page was measured on a GPU**; [gpu.md](gpu.md) has measured and computed times. On a machine with a
GPU, `python -m bench --backend cuda` measures hopfuse beside whichever of faiss (`faiss-gpu-cu12`), cuVS (`cuvs-cu13`),
PyTorch, CuPy and cuGraph (`pylibcugraph-cu13`) are installed.
"""

GPU = """\
On a GPU, inputs and results are NumPy arrays, so copies to and from the device are included in the times, also those of
peers. Peers run on the CPU unless their remark says *on the GPU*.
"""

BARS = """\
A bar is a ratio or a time that hopfuse must reach. There is one for each kind of machine: processors that multiply
8-bit numbers with AVX2, and with AVX-512 VNNI. The *limit* is the ratio that hopfuse would reach on that machine if
its memory traffic were its only cost, at the bandwidths measured below. For a walk, that is the time to gather rows or
to read the rest in order, whichever is longer; for dense vectors, to read the 8-bit codes once or to multiply them; for
fusion, to read the lists once; other arithmetic is not counted. A walk counts as full passes, although its first passes
skip most of the graph. If the limit is below the bar, hopfuse must reach 70 % of the limit. `ppr-out` is hopfuse's own
`ppr` with `out=`, `earlier-commit` is hopfuse at the commit that the case names, and `one-thread` is hopfuse on one
thread; in `busy-` cases eight processes keep the cores busy meanwhile.
"""

BANDWIDTH = """\
`python -m bench --case limits` measures the bandwidth of {threads} threads together, in compiled loops that only
read. A pass of a walk gathers rows of 128 bytes, a node for 32 queries, from the level of memory that its state fits
in. The walk of one query gathers 4 bytes at a time, each of which moves a whole cache line. In the loops, a row's
frequency is inverse to its rank, so popular rows stay in nearer caches, as the hubs of a graph do; on machines
A and B all rows were equally likely. Rows of 16 to 64 bytes, for few queries, are slower than those of 128 bytes, but
the limits use the rate of the latter. A search multiplies every 8-bit code by that of each query. A large shared cache
is measured in parts. If a level appears more than once, it was measured in several runs, which differ because other
virtual machines share the cache; the bars use the last.
"""

VARIANTS = """\
`python -m bench --case variants` times several implementations of a plain pass over the hotpotqa graph, in turns, on
{threads} threads; *of the first* is the median ratio over turns. hopfuse uses those marked *kept*. A 16-bit state has
half the bytes, but its three significant digits are too few for a tol of 1e-6, so there is no such option.
"""

#: Sections of cases that do not call hopfuse: name, heading, text.
PROBED = (("limits", "Bandwidth", BANDWIDTH), ("variants", "Variants of a pass", VARIANTS))

DISTURBED = """**Rows with a load above {quiet} were measured on a busy machine, and would differ on a quiet one:**
threads that wait for each other at barriers lose far more time to other programs than a single thread does.
"""


def render(rows: Sequence[Row], *names: str) -> str:
    """Return the page, from the rows of the files ``names`` in bench/results."""
    ok = [row for row in rows if row["status"] == "ok"]
    measured = [row for row in ok if SECTIONS["hopfuse bench"][2](row)]
    absent = [row for row in rows if row["status"] != "ok"]
    parts = [INTRODUCTION.format(files=" ".join(f"bench/results/{name}" for name in names))]
    parts.append(GPU if any(row.get("device") for row in measured) else NO_GPU)
    if any(row["quick"] for row in ok):
        parts.append("**These rows are of the quick mode: inputs are tiny, and times are meaningless.**\n")
    if any((row["load"]["other_cores"] or 0.0) > QUIET_CORES for row in ok if not row["case"].startswith("busy-")):
        parts.append(DISTURBED.format(quiet=QUIET_CORES))
    parts.append(f"## Bars\n\n{BARS}\n{_table(bars.COLUMNS, bars.lines(ok))}\n")
    labels = _labels(ok)
    parts.append("## Machines\n\n" + "\n".join(_machines(measured, labels)))
    for name, heading, template in PROBED:
        for processor, label in labels.items():
            columns, shown, of_section = SECTIONS[name]
            found = [row for row in ok if of_section(row) and _processor(row) == processor]
            if found:
                where = f", on {label}" if label else ""
                text = template.format(threads=found[0]["threads"])
                parts.append(f"## {heading}{where}\n\n{text}\n{_table(columns, map(shown, found))}\n")
    for key in dict.fromkeys((row["case"], place(row), _processor(row)) for row in measured):
        rows_of = [row for row in measured if (row["case"], place(row), _processor(row)) == key]
        parts.append(_case(rows_of, labels[key[2]]))
    if absent:
        lines = [f"- {row['case']}, {row['peer'] or 'alone'}: {row['status']}: {row['reason']}" for row in absent]
        parts.append("## Not measured\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _labels(rows: Sequence[Row]) -> dict[str, str]:
    """Return the name of each processor in headings: machine A, B, ..., or nothing if there is only one."""
    processors = list(dict.fromkeys(_processor(row) for row in rows))
    return {name: f"machine {chr(ord('A') + at)}" if len(processors) > 1 else "" for at, name in enumerate(processors)}


def _machines(rows: Sequence[Row], labels: Mapping[str, str]) -> list[str]:
    """Return a paragraph for each machine, with the commits that were measured there and their cases."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        label = labels[_processor(row)]
        named = f"M{label[1:]}: {_machine(row)}" if label else _machine(row)
        cases = found.setdefault(named, {}).setdefault(_build(row), [])
        if row["case"] not in cases:
            cases.append(row["case"])
    return [
        "\n".join([machine, "", *(f"- {build}: {', '.join(cases)}." for build, cases in builds.items()), ""])
        for machine, builds in found.items()
    ]


def _processor(row: Row) -> str:
    machine = row["machine"]
    return str(machine["cpu"]) + (f" (family/model {machine['family_model']})" if machine["family_model"] else "")


def _machine(row: Row) -> str:
    machine = row["machine"]
    return (
        f"{_processor(row)}, {machine['cores']} cores, {machine['system']}; {row['threads']} threads.\n"
        f"Vector instructions: {' '.join(machine['flags']) or 'not recorded'}." + _device(row.get("device"))
    )


def _build(row: Row) -> str:
    versions = row["versions"]
    known = {name: versions.get(name) or "not recorded" for name in ("hopfuse", "python", "numpy", "compiler")}
    changed = ", with uncommitted changes to the library" if row["modified"] else ""
    named = ", ".join(f"{name} {version}" for name, version in known.items())
    return f"commit {row['commit'] or 'not recorded'}{changed} ({named})"


def _device(device: dict[str, str] | None) -> str:
    if device is None:
        return ""
    named = {
        "compute capability": "compute_capability", "driver for": "driver", "runtime": "runtime", "CuPy": "cupy"
    }  # fmt: skip
    known = [f"{what} {device[key]}" for what, key in named.items() if key in device]
    return f"\nGPU: {', '.join([device['device'], *known])}."


def _case(rows: Sequence[Row], label: str) -> str:
    """Return the section of a case on one machine."""
    first = rows[0]
    sizes = ", ".join(f"{key.replace('_', ' ')} {value:,}" for key, value in first["sizes"].items() if key != "batch")
    on_device = f" --backend {first['backend']}" if first.get("device") else ""
    heading = f"## {first['case']}"
    if on_device:
        heading += f", on {place(first)}"
    elif label:
        heading += f", on {label}"
    lines = [
        heading,
        "",
        f"{first['data']} data: {sizes}. `python -m bench --case {first['case']}{on_device}`, "
        f"{first['hopfuse']['n']} turns; kernels {', '.join(f'`{name}`' for name in first['kernels'])}.",
        "",
        _table(COLUMNS[1:], (cells(row)[1:] for row in rows)),
        "",
        *_distinct(_remark(row) for row in rows if row["peer"]),
        *_distinct(_check(row) for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _remark(row: Row) -> str:
    version = ", ".join(
        f"{name} {number}"
        for name, number in row["versions"].items()
        if name not in ("python", "hopfuse", "compiler") and number is not None
    )
    note = f": {row['peer_note']}" if row["peer_note"] else ""
    return f"- {row['peer']}, B = {row['sizes']['batch']} ({version}){note}."


def _check(row: Row) -> str:
    gate = row["gate"]
    against = f"; {row['peer']} against hopfuse: {_error(gate['peer'])}" if gate["peer"] else ""
    return f"- Check, B = {row['sizes']['batch']}: hopfuse against the oracle: {_error(gate['oracle'])}{against}."


def _error(proof: dict[str, Any]) -> str:
    queries = "1 query" if proof["queries"] == 1 else f"{proof['queries']} queries"
    found = f"error {proof['error']:.1e} of {proof['tolerance']:.1e} allowed, {queries}"
    return found if "proven" not in proof else f"{found}, {proof['proven']:.0%} of all lists proven"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(map(_line, [columns, ["---"] * len(columns), *rows]))


def _line(parts: Iterable[str]) -> str:
    return f"| {' | '.join(parts)} |"


def _distinct(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
