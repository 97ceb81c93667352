"""The parts of the HTML report: its style, its tables, its lists of queries."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..types import Hits
from .passage_names import PassageNames
from .qrels import Qrels
from .ranks import gold_ranks

STYLE = """
:root { color-scheme: light dark; --won: #2a7; --lost: #c44; --one: #27c; --two: #999; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; margin: 0.6em 0 1.4em; font-size: 13px; }
caption { text-align: left; font-weight: 600; padding: 0.2em 0; }
th, td { border-bottom: 1px solid #8886; padding: 0.2em 0.7em; text-align: right; vertical-align: top; }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
svg { width: 100%; max-width: 760px; height: auto; font-size: 11px; }
svg text { fill: currentColor; }
svg .axis { stroke: currentColor; }
svg .won { fill: var(--won); }
svg .lost { fill: var(--lost); }
svg polyline { fill: none; stroke-width: 1.5; }
svg polyline.series0 { stroke: var(--one); }
svg polyline.series1 { stroke: var(--two); }
svg text.series0 { fill: var(--one); }
svg text.series1 { fill: var(--two); }
"""


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An HTML table of escaped text.

    Examples
    --------
    >>> table("all", ["run"], [["a<b"]])
    '<table><caption>all</caption><tr><th>run</th></tr><tr><td>a&lt;b</td></tr></table>'
    """
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{body}</table>"


def query_table(
    rows: Sequence[int], ours: Hits, theirs: Hits, runs: tuple[str, str], qrels: Qrels, names: PassageNames
) -> str:
    """Queries by position: id, question, hops, and each gold passage's rank in both runs.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import PassageNames, Qrels
    >>> names = PassageNames()
    >>> qrels = Qrels(["q1"], [[names.number("doc")]], questions=["Who?"])
    >>> made = query_table([0], hf.Hits([[0]], [[1.0]]), hf.Hits([[5]], [[1.0]]), ("graph", "dense"), qrels, names)
    >>> "<td>1</td><td>-</td>" in made
    True
    """
    if not rows:
        return "<p>None.</p>"
    head = "".join(
        f"<th{kind}>{escape(name)}</th>"
        for name, kind in (
            ("query", ""),
            ("question", ' class="text"'),
            ("hops", ""),
            ("gold passage", ' class="text"'),
            *((f"rank in {run}", "") for run in runs),
        )
    )
    body = "".join(_query(row, ours, theirs, qrels, names) for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _query(row: int, ours: Hits, theirs: Hits, qrels: Qrels, names: PassageNames) -> str:
    mine, other = gold_ranks(ours, qrels, row), gold_ranks(theirs, qrels, row)
    hops = int(qrels.num_hops[row])
    first = [qrels.ids[row], qrels.questions[row], str(hops) if hops else "-"]
    if not mine:
        return f'<tr><td>{escape(first[0])}</td><td class="text">{escape(first[1])}</td><td>{first[2]}</td></tr>'
    lines = []
    for passage in mine:
        name = names.name(passage)
        title = names.titles.get(name)
        shown = name if title is None else f"{name}: {title}"
        cells = (*first, shown, _rank(mine[passage]), _rank(other[passage]))
        kinds = ("", ' class="text"', "", ' class="text"', "", "")
        lines.append("".join(f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(cells, kinds, strict=True)))
        first = ["", "", ""]
    return "".join(f"<tr>{line}</tr>" for line in lines)


def _rank(rank: int | None) -> str:
    return "-" if rank is None else str(rank)
