"""Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Return a table whose first ``words`` columns are text and the others numbers.

    Examples
    --------
    >>> print(table(["run", "mrr"], [["dense", "0.5"]]), end="")
    | run | mrr |
    | --- | ---: |
    | dense | 0.5 |
    """
    lines = [head, [*(["---"] * words), *(["---:"] * (len(head) - words))], *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
