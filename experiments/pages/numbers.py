"""Figures as pages and tables show them, and claims that fail if the results stop supporting them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

SIGNIFICANCE = 0.05


def percent(share: float | None) -> str:
    """Return a share in percent, empty if there is none.

    Examples
    --------
    >>> percent(0.8056), percent(None)
    ('80.6', '')
    """
    return "" if share is None or share != share else f"{100 * share:.1f}"


def points(difference: float) -> str:
    """Return a difference of shares in percentage points, with its sign.

    Examples
    --------
    >>> points(0.054), points(-0.0004)
    ('+5.4', '+0.0')
    """
    return f"{round(100 * difference, 1) + 0.0:+.1f}"


def size(difference: float) -> str:
    """Return how large a difference is in percentage points, without its sign."""
    return f"{abs(100 * difference):.1f}"


def csv_of(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as comma-separated values.

    Examples
    --------
    >>> csv_of(["run", "mrr"], [["dense", 0.5]])
    'run,mrr\\ndense,0.5\\n'
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


class ClaimError(ValueError):
    """A sentence says what the recorded results do not."""


@dataclass(frozen=True)
class Comparisons:
    """The comparisons of a question about fusion, from which sentences take their figures.

    Attributes
    ----------
    rows : sequence of mapping
        As :func:`experiments.fusion.design.answer` makes them; p is corrected over all of them.
    """

    rows: Sequence[Mapping[str, Any]]

    def row(self, first: str, second: str, folder: str, metric: str) -> Mapping[str, Any]:
        """Return one comparison."""
        asked = (first, second, folder, metric)
        (found,) = (c for c in self.rows if (c["first"], c["second"], c["folder"], c["metric"]) == asked)
        return found

    def better(self, first: str, second: str, folder: str, metric: str = "ndcg@10") -> str:
        """Return by how many points the first arm is better; raise ClaimError unless that is significant."""
        return self._significant(self.row(first, second, folder, metric), 1)

    def worse(self, first: str, second: str, folder: str, metric: str = "ndcg@10") -> str:
        """Return by how many points the first arm is worse; raise ClaimError unless that is significant."""
        return self._significant(self.row(first, second, folder, metric), -1)

    def _significant(self, c: Mapping[str, Any], sign: int) -> str:
        if c["p_holm"] >= SIGNIFICANCE or c["difference"] * sign <= 0:
            raise ClaimError(f"{c['first']} and {c['second']} do not differ so: {c}")
        return size(c["difference"])

    def undecided(self, firsts: Sequence[str] | None = None, folders: Sequence[str] | None = None) -> str:
        """Return which difference in ndcg@10 would probably have been found in each of some comparisons, by folder.

        ``firsts`` and ``folders`` restrict the comparisons. Raise ClaimError if any of them is significant.
        """
        rows = [
            c
            for c in self.rows
            if (firsts is None or c["first"] in firsts) and (folders is None or c["folder"] in folders)
        ]
        if not rows or any(c["p_holm"] < SIGNIFICANCE for c in rows):
            raise ClaimError(f"{firsts or 'some'} differ from others on {folders or 'some folder'}")
        largest: dict[str, float] = {}
        for c in rows:
            if c["metric"] == "ndcg@10" and c["detects"] is not None:
                largest[c["folder"]] = max(c["detects"], largest.get(c["folder"], 0.0))
        return " and ".join(f"{size(value)} on {folder}" for folder, value in largest.items())
