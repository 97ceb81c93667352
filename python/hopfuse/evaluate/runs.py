"""Runs: the hits and answers of a system for the queries of a set of judgements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from .._validation import check_length, check_type
from ..errors import InputError
from ..io.runs import Rankings, read_run_file
from ..types import Hits
from ..types.hits import PAD_ID, PAD_SCORE
from .metrics import Texts
from .passages import PassageNames
from .qrels import Qrels, query_rows


@dataclass(frozen=True, eq=False)
class Run:
    """Ranked lists of a system and, if it answers questions, its answers.

    Parameters
    ----------
    hits : Hits
        B rows, in the order of the judgements' queries.
    answers : sequence of str or None, B entries, optional
        The system's answer to each query, None if it gave none.
    texts : sequence of str, or mapping of int to str, optional
        The text of each passage by id, for ``answer_supported@k``.
    baseline : Hits, B rows, optional
        The hits to compare with, for ``distractor_suppression@k``; by default those of the baseline of
        :func:`evaluate`.

    Raises
    ------
    InputError
        The number of answers, or of rows of the baseline, differs from that of hits.

    Attributes
    ----------
    num_missing : int
        Judged queries that the run's file lacks; their lists are empty.
    num_unjudged : int
        Queries of the run's file without judgements, which are left out.
    notes : sequence of str
        The first note of each judged query that has notes, such as the name of an entity that the index does not have.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Run
    >>> Run(hf.Hits([[3, 1]], [[0.9, 0.2]]), answers=["Ada Lovelace"])
    Run(queries=1, k=2, answers=1)
    """

    hits: Hits
    answers: Sequence[str | None] | None = None
    num_missing: int = 0
    num_unjudged: int = 0
    texts: Texts | None = None
    baseline: Hits | None = None
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.answers is not None:
            check_length(len(self.answers), "answers", len(self.hits), "query")
        if self.baseline is not None:
            check_type(self.baseline, "baseline", Hits, "Hits (of a Run, its hits)")
            check_length(len(self.baseline), "baseline", len(self.hits), "query")

    def take(self, rows: Sequence[int] | NDArray[np.int64] | NDArray[np.bool_]) -> Run:
        """Return the run on some queries, in the order of ``rows`` (positions, or a mask of shape (B,)).

        Examples
        --------
        >>> import hopfuse as hf
        >>> from hopfuse.evaluate import Run
        >>> len(Run(hf.Hits([[3], [1]], [[0.9], [0.2]])).take([1]))
        1
        """
        chosen = query_rows(rows, len(self))
        answers = None if self.answers is None else [self.answers[row] for row in chosen.tolist()]
        baseline = None if self.baseline is None else _take(self.baseline, chosen)
        return replace(self, hits=_take(self.hits, chosen), answers=answers, baseline=baseline)

    def __len__(self) -> int:
        return len(self.hits)

    def __repr__(self) -> str:
        answered = "" if self.answers is None else f", answers={sum(a is not None for a in self.answers)}"
        return f"Run(queries={len(self)}, k={self.hits.shape[1]}{answered})"


def _take(hits: Hits, rows: NDArray[np.int64]) -> Hits:
    return Hits.unchecked(hits.ids[rows], hits.scores[rows], hits.counts[rows])


def gold_ranks(hits: Hits, qrels: Qrels, query: int) -> dict[int, int | None]:
    """Return the rank of each gold passage of a query, from 1; None if the run does not have it.

    Parameters
    ----------
    hits : Hits
        B rows.
    qrels : Qrels
        Judgements of the same B queries.
    query : int
        The query's position.

    Returns
    -------
    dict of int to int or None
        By gold passage: hop by hop if the hops are known, else in the order given.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, gold_ranks
    >>> gold_ranks(hf.Hits([[8, 2, 5]], [[0.9, 0.5, 0.1]]), Qrels(["a"], [[5, 8, 1]]), 0)
    {5: 3, 8: 1, 1: None}
    """
    place = {passage: rank for rank, (passage, _) in enumerate(hits.row(query), 1)}
    by_hop = [passage for hop in qrels.hops[query] for passage in hop]
    return {passage: place.get(passage) for passage in (*by_hop, *qrels.gold[query])}


def join_hits(parts: Sequence[Hits]) -> Hits:
    """Concatenate the rows of several batches; narrower ones are padded.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import join_hits
    >>> join_hits([hf.Hits([[1]], [[0.5]]), hf.Hits([[2, 3]], [[0.7, 0.6]])]).ids
    array([[ 1, -1],
           [ 2,  3]])
    """
    shape = (sum(map(len, parts)), max(part.shape[1] for part in parts))
    ids, scores = np.full(shape, PAD_ID, np.int64), np.full(shape, PAD_SCORE, np.float32)
    counts = np.concatenate([part.counts for part in parts])
    first = 0
    for part in parts:
        rows = slice(first, first := first + len(part))
        ids[rows, : part.shape[1]], scores[rows, : part.shape[1]] = part.ids, part.scores
    return Hits.unchecked(ids, scores, counts)


def read_run(path: str | PathLike[str], ids: Sequence[str], names: PassageNames) -> Run:
    """Read a run for the queries ``ids``; the suffix decides the format.

    - ``.jsonl``, ``.parquet``: rows of "id" and "hits", a list of {"id": …, "score": …}, as
      ``hopfuse score`` writes them, with an optional "answer". ``.json``: a list of such rows, or an
      object {query: {passage: score}}.
    - any other file: a TREC run, ``query Q0 passage rank score tag``, separated by white space of ASCII. Further
      fields are ignored, as are blank lines and comments: ``#`` and a space, or another line that begins with ``#`` and
      is not a row.

    Lists are ordered by score, highest first. Passages of equal score keep the order of the file: of the
    ranks in a TREC run, else, or if a rank of the query is no number, of position. (trec_eval ignores the ranks and
    orders them by name.)

    Parameters
    ----------
    path : path
    ids : sequence of str
        The queries of the judgements, in order. Queries that the file lacks get an empty list; queries without
        judgements are left out. :class:`Run` has the number of each.
    names : PassageNames
        The names that the judgements were read with.

    Raises
    ------
    FormatError
        A line is malformed, a score is not a finite number, or a passage or query occurs twice; the error names file
        and line.
    InputError
        The file has none of the queries.
    MissingExtraError
        A Parquet file is given and pyarrow is not installed.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from hopfuse.evaluate import PassageNames, read_run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "run.txt")
    ...     _ = path.write_text("q1 Q0 docA 1 12.5 bm25\\nq1 Q0 docB 2 9.0 bm25\\n")
    ...     run = read_run(path, ["q1", "q2"], PassageNames())
    >>> run.hits.counts.tolist(), run.num_missing
    ([2, 0], 1)
    """
    return run_of_rankings(read_run_file(path), ids, names, str(path))


def run_of_rankings(rankings: Rankings, ids: Sequence[str], names: PassageNames, source: str) -> Run:
    """Return the rankings of the queries ``ids`` as a run; ``source`` names their origin in errors.

    Raises
    ------
    InputError
        None of the queries has a ranking.

    Examples
    --------
    >>> from hopfuse.evaluate import PassageNames
    >>> from hopfuse.io.runs import Rankings
    >>> found = Rankings(["q1"], [1], ["docA"], [0.5], {}, {})
    >>> run_of_rankings(found, ["q1"], PassageNames(), "a run").hits.counts
    array([1])
    """
    number = dict(zip(rankings.queries, range(len(rankings.queries)), strict=True))
    rows = np.array([number.get(query, -1) for query in ids], np.int64)
    missing = int(np.count_nonzero(rows < 0))
    if len(ids) and missing == len(ids):
        first = next(iter(rankings.queries), None)
        has = "no query" if first is None else f"queries such as {first!r}"
        raise InputError(
            "missing",
            None,
            "{source} has {has}, but none of the {count} judged ones, such as {query!r}; give their run",
            source=source,
            has=has,
            count=len(ids),
            query=ids[0],
        )
    answers = [rankings.answers.get(query) for query in ids]
    return Run(
        _hits(rankings, rows, names),
        None if all(answer is None for answer in answers) else answers,
        missing,
        len(rankings.queries) - (len(ids) - missing),
        notes=[rankings.notes[query] for query in ids if query in rankings.notes],
    )


def _hits(rankings: Rankings, rows: NDArray[np.int64], names: PassageNames) -> Hits:
    """Return the hits of these rows of the rankings; row -1 is empty."""
    sizes = np.array([*rankings.sizes, 0], np.int64)
    counts = sizes[rows]
    begins = (np.cumsum(sizes) - sizes)[rows]
    passages, scores = rankings.passages, np.array(rankings.scores)
    if not np.array_equal(rows, np.arange(len(rankings.sizes))):
        at = np.repeat(begins - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        passages, scores = list(map(passages.__getitem__, at.tolist())), scores[at]
    shape = (rows.size, int(counts.max(initial=0)))
    ids, padded = np.full(shape, PAD_ID, np.int64), np.full(shape, PAD_SCORE, np.float32)
    valid = np.arange(shape[1]) < counts[:, None]
    ids[valid], padded[valid] = names.numbers(passages), scores
    return Hits.unchecked(ids, padded, counts)
