"""The parts of the HTML report: its tables, its figures, its lists of queries."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from html import escape
from typing import Any


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    soft: Container[int] = (),
    words: Container[str] = (),
) -> str:
    """An HTML table of escaped text, which scrolls by itself where it is too wide.

    The rows of ``soft`` are grey; the columns ``words`` are set as text, in lines.

    Examples
    --------
    >>> table("all", ["run"], [["a<b"]])
    '<div class="wide"><table><caption>all</caption><tr><th>run</th></tr><tr><td>a&lt;b</td></tr></table></div>'
    """
    kinds = [' class="text"' if column in words else "" for column in columns]
    head = "".join(f"<th{kind}>{escape(column)}</th>" for kind, column in zip(kinds, columns, strict=True))
    body = ""
    for at, row in enumerate(rows):
        cells = "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(kinds, row, strict=True))
        body += f'<tr class="soft">{cells}</tr>' if at in soft else f"<tr>{cells}</tr>"
    return f'<div class="wide"><table><caption>{escape(caption)}</caption><tr>{head}</tr>{body}</table></div>'


def figure(drawn: str, caption: str) -> str:
    """A plot that scrolls by itself where it is too wide, over its caption.

    Examples
    --------
    >>> figure("<svg></svg>", "before")
    '<figure><div class="wide"><svg></svg></div><figcaption>before</figcaption></figure>'
    """
    return f'<figure><div class="wide">{drawn}</div><figcaption>{escape(caption)}</figcaption></figure>'


def query_table(traces: Sequence[Mapping[str, Any]]) -> str:
    """Queries with their traces: question, hops, and each gold passage's rank and score in every run.

    Parameters
    ----------
    traces : sequence of mapping
        Of :func:`hopfuse.evaluate.query_trace`, all of the same runs.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import PassageNames, Qrels, Run, query_trace
    >>> names = PassageNames()
    >>> qrels = Qrels(["q1"], [[names.number("doc")]], questions=["Who?"])
    >>> names.number("x")
    1
    >>> runs = {"graph": Run(hf.Hits([[0]], [[1.0]])), "dense": Run(hf.Hits([[1]], [[1.0]]))}
    >>> "<td>1 <small>(1)</small></td><td>-</td>" in query_table([query_trace(0, runs, qrels, names)])
    True
    """
    if not traces:
        return "<p>None.</p>"
    head = '<th>query</th><th>hops</th><th class="text">gold passage</th>'
    runs = list(traces[0]["first"])
    ranks = "".join(f"<th>rank in {escape(run)}</th>" for run in runs)
    body = "".join(_query(trace, runs) for trace in traces)
    return f'<div class="wide"><table><tr>{head}{ranks}</tr>{body}</table></div>'


def _query(trace: Mapping[str, Any], runs: Sequence[str]) -> str:
    span = f' rowspan="{max(len(trace["gold"]), 1)}"'
    words = f"{escape(trace['question'])}<div><small>{escape(trace['id'])}</small></div>"
    first = f'<td class="text"{span}>{words}{_details(trace)}</td><td{span}>{trace["hops"] or "-"}</td>'
    lines = []
    for passage in trace["gold"]:
        hop = "" if passage["hop"] is None else f"hop {passage['hop']}: "
        found = "".join(_rank(passage["runs"][run]) for run in runs)
        lines.append(f'<td class="text">{escape(hop + _name(passage))}</td>{found}')
    lines = lines or ['<td class="text">none</td>' + "<td>-</td>" * len(runs)]
    return "".join(f"<tr>{first if not at else ''}{line}</tr>" for at, line in enumerate(lines))


def _details(trace: Mapping[str, Any]) -> str:
    parts = [
        f"<div><b>{escape(run)}</b>: {escape('; '.join(_name(hit) for hit in hits) or 'nothing')}</div>"
        for run, hits in trace["first"].items()
    ]
    answers = trace.get("answers", {})
    if answers:
        said = "; ".join(f"{run}: {answer if answer is not None else 'none'}" for run, answer in answers.items())
        accepted = "; ".join(trace["accepted"]) or "none"
        parts.append(f"<div><b>answers</b>: {escape(said)} <b>accepted</b>: {escape(accepted)}</div>")
    return f"<details><summary>first hits</summary>{''.join(parts)}</details>"


def _name(passage: Mapping[str, Any]) -> str:
    return passage["id"] if passage["title"] is None else f"{passage['id']}: {passage['title']}"


def _rank(found: Mapping[str, Any] | None) -> str:
    return "<td>-</td>" if found is None else f"<td>{found['rank']} <small>({found['score']:.4g})</small></td>"
