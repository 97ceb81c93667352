"""``docs/performance.md`` from recorded rows; the same rows give the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import bars
from .machine import QUIET_CORES
from .text import COLUMNS, SECTIONS, cells, place

Row = dict[str, Any]

INTRODUCTION = """# Performance

Written by `python -m bench --report {files}` from the rows there; do not edit it here.
To measure on your machine, from a checkout with the extra `bench` installed:

```
hopfuse bench --out rows.jsonl             # or, from its root: python -m bench --out rows.jsonl
hopfuse bench --report rows.jsonl          # writes docs/performance.md
hopfuse bench --plots plots rows.jsonl     # draws them into the folder plots
```

Every case first proves its answers: hopfuse against the float64 oracle, then the peer against hopfuse; a wrong answer
stops the case untimed. hopfuse and one peer then take turns in a fresh process of their own, with the same number of
threads, after a rest and (for calls under 50 ms) an untimed call in each turn. Building a graph, an index or a peer's
structure is not timed. *on* is what hopfuse ran on, *ratio* the peer's median over hopfuse's, *of pairs* the median
over neighbouring turns, *load* the cores that other programs took meanwhile.

The table of what adapters gain over the libraries' own code (HippoRAG, NetworkX, fast-graphrag) is in
[integrations.md](integrations.md); `python -m bench.drop_ins` measures it.
"""

NO_GPU = """\
**Nothing on this page was measured on a GPU.** `python -m bench --backend cuda` does that where there is one, beside
what is installed there of faiss (`faiss-gpu-cu12`), cuVS (`cuvs-cu13`), PyTorch, CuPy and cuGraph
(`pylibcugraph-cu13`); [gpu.md](gpu.md) has what can be computed.
"""

GPU = """\
Rows on a GPU take NumPy arrays and give NumPy arrays: the copies there and back are in the times, of peers too. Peers
are on the CPU but for those whose remark says *on the GPU*.
"""

BARS = """\
What hopfuse is held to, computed from the rows, on each kind of machine: processors that multiply 8-bit numbers with
AVX2, and with AVX-512 VNNI. The *limit* is what the ratio would be on that machine if hopfuse took no
longer than the bytes that it moves take at the ceilings below (for dense vectors: to read the codes once from where
they fit, or to multiply them, whichever is longer; for fusion: to read the lists once; other arithmetic is not in it).
A walk counts as full passes, though its first ones skip most of the graph. Where the limit itself is below the bar,
hopfuse is held to 70 % of it. `ppr-out` is hopfuse's own `ppr` into an array that is there already, `earlier-commit`
hopfuse as it was at the commit that the case names, `one-thread` hopfuse itself on one thread while eight processes
keep the cores busy (`busy-` cases).
"""

CEILINGS = """\
`python -m bench --case limits`: what {threads} threads read together, in compiled loops that do nothing else. A pass of
a walk gathers rows of 128 bytes, a node for 32 queries, out of the level that its state fits in; the walk of one query
gathers 4 bytes at a time, and a whole line of the cache moves for them. Here every row is as likely as another; a
graph's popular nodes stay in nearer caches, so that a walk may gather faster than this. Rows of 16 to 64 bytes, for few
queries, come slower than those of 128, whose rate is taken for them. A search multiplies every code of 8 bits with each
query's. A level that stands here more than once was measured in several runs: a shared cache gives
what others leave of it, and the bars are held against the last.
"""

TRIED = """\
`python -m bench --case variants`: a plain pass over the hotpotqa graph written in several ways, in turns, {threads}
threads; *of the first* is the median over turns. hopfuse has the ways that are marked *kept*. A 16-bit state takes half
of the bytes, but with its three digits a walk does not come to a tol of 1e-6, so there is no such option.
"""

#: Sections of what is measured without a call of hopfuse: name, heading, text.
PROBED = (("limits", "Ceilings", CEILINGS), ("variants", "What was tried", TRIED))

DISTURBED = """**Rows with a load above {quiet} were measured on a busy machine; a quiet one gives others:**
threads that meet at barriers lose far more to other programs than a single thread does.
"""


def render(rows: Sequence[Row], *names: str) -> str:
    """The page, from the rows of the files ``names`` in bench/results."""
    ok = [row for row in rows if row["status"] == "ok"]
    measured = [row for row in ok if SECTIONS["hopfuse bench"][2](row)]
    absent = [row for row in rows if row["status"] != "ok"]
    parts = [INTRODUCTION.format(files=" ".join(f"bench/results/{name}" for name in names))]
    parts.append(GPU if any(row.get("device") for row in measured) else NO_GPU)
    if any(row["quick"] for row in ok):
        parts.append("**These rows are of the quick mode: tiny inputs, times without meaning.**\n")
    if any((row["load"]["other_cores"] or 0.0) > QUIET_CORES for row in ok if not row["case"].startswith("busy-")):
        parts.append(DISTURBED.format(quiet=QUIET_CORES))
    parts.append(f"## Bars\n\n{BARS}\n{_table(bars.COLUMNS, bars.lines(ok))}\n")
    labels = _labels(ok)
    parts.append("## Measured on\n\n" + "\n".join(_machines(measured, labels)))
    for name, heading, said in PROBED:
        for processor, label in labels.items():
            columns, shown, of_section = SECTIONS[name]
            found = [row for row in ok if of_section(row) and _processor(row) == processor]
            if found:
                where = f", on {label}" if label else ""
                text = said.format(threads=found[0]["threads"])
                parts.append(f"## {heading}{where}\n\n{text}\n{_table(columns, map(shown, found))}\n")
    for key in dict.fromkeys((row["case"], place(row), _processor(row)) for row in measured):
        rows_of = [row for row in measured if (row["case"], place(row), _processor(row)) == key]
        parts.append(_case(rows_of, labels[key[2]]))
    if absent:
        lines = [f"- {row['case']}, {row['peer'] or 'alone'}: {row['status']}: {row['reason']}" for row in absent]
        parts.append("## Not measured\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _labels(rows: Sequence[Row]) -> dict[str, str]:
    """Return what headings call each processor: machine A, B, ...; nothing where there is one."""
    processors = list(dict.fromkeys(_processor(row) for row in rows))
    return {name: f"machine {chr(ord('A') + at)}" if len(processors) > 1 else "" for at, name in enumerate(processors)}


def _machines(rows: Sequence[Row], labels: Mapping[str, str]) -> list[str]:
    """Return a paragraph for each machine, and below it the commits that were measured there, with their cases."""
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
        *_distinct(_proof(row) for row in rows),
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


def _proof(row: Row) -> str:
    gate = row["gate"]
    against = f"; {row['peer']} against hopfuse: {_found(gate['peer'])}" if gate["peer"] else ""
    return f"- Gate, B = {row['sizes']['batch']}: hopfuse against the oracle: {_found(gate['oracle'])}{against}."


def _found(proof: dict[str, Any]) -> str:
    found = f"error {proof['error']:.1e} of {proof['tolerance']:.1e} allowed, {proof['queries']} queries"
    return found if "proven" not in proof else f"{found}, {proof['proven']:.0%} of all lists proven"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(map(_line, [columns, ["---"] * len(columns), *rows]))


def _line(parts: Iterable[str]) -> str:
    return f"| {' | '.join(parts)} |"


def _distinct(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
