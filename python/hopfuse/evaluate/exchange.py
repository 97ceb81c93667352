"""Convert judgements and runs from and to ir_datasets, ranx, BEIR and pytrec_eval, and write TREC files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import FLOAT32_MAX, WHOLE, check_length, is_real, wrong_type
from ..errors import InputError
from ..io.files import write_whole
from ..io.qrels import qrels_lines
from ..io.runs import ranked, run_lines
from ..types import Hits
from .passages import PassageNames
from .qrels import Qrels
from .runs import Run, run_of_rankings


def qrels_from(judgements: Any, names: PassageNames, *, queries: Any = None) -> Qrels:
    """Convert another library's judgements to Qrels.

    Parameters
    ----------
    judgements : mapping, iterable, or object
        ``{query: {passage: grade}}``, as BEIR and pytrec_eval have it; objects with ``query_id``, ``doc_id`` and
        ``relevance``, as ir_datasets' ``qrels_iter()`` gives them; a data set that has that method; an object with
        ``to_dict()``, such as ranx's Qrels.
    names : PassageNames
        Numbers the passages. Pass the same object to :func:`run_from` to read runs for these judgements.
    queries : mapping, iterable, or object, optional
        The text of each query: ``{query: text}``, objects with ``query_id`` and ``text``, or a data set with
        ``queries_iter()``.

    Returns
    -------
    Qrels
        Queries are in the order of their first judgement. Passages with a grade above 0 are relevant. A query without
        judgements, ``{query: {}}``, is one without relevant passages.

    Raises
    ------
    InputError
        ``judgements`` is something else, a pair is judged twice, or a grade is not an integer.

    References
    ----------
    MacAvaney et al., ir_datasets, SIGIR (2021). Bassani, ranx, ECIR (2022). Thakur et al., BEIR, NeurIPS (2021).

    Examples
    --------
    >>> from hopfuse.evaluate import PassageNames, qrels_from
    >>> qrels = qrels_from({"q1": {"docA": 2, "docB": 0}}, PassageNames(), queries={"q1": "Who?"})
    >>> qrels.ids, qrels.gold, qrels.grades, qrels.questions
    (('q1',), ((0,),), ((2,),), ('Who?',))
    """
    given = _columns(judgements, "judgements", "qrels_iter", "relevance")
    wrong = given.first_but(lambda kind: issubclass(kind, WHOLE) and not issubclass(kind, bool))
    if wrong is not None:
        raise wrong_type(given.values[wrong], given.field("judgements", wrong), "an integer")
    texts = _texts(queries)
    gold: list[list[int]] = [[] for _ in given.queries]
    grades: list[list[int]] = [[] for _ in given.queries]
    relevant = [at for at, grade in enumerate(given.values) if grade > 0]
    numbers = names.numbers([given.passages[at] for at in relevant]).tolist()
    for at, row, number in zip(relevant, given.row[relevant].tolist(), numbers, strict=True):
        gold[row].append(number)
        grades[row].append(int(given.values[at]))
    return Qrels(given.queries, gold, grades=grades, questions=[texts.get(query, "") for query in given.queries])


def run_from(scores: Any, ids: Sequence[str], names: PassageNames) -> Run:
    """Convert another library's run to a Run.

    Parameters
    ----------
    scores : mapping, iterable, or object
        ``{query: {passage: score}}``, as BEIR's retrievers and pytrec_eval have it; objects with ``query_id``,
        ``doc_id`` and ``score``, as ir_datasets' ``scoreddocs_iter()`` gives them; a data set that has that method; an
        object with ``to_dict()``, such as ranx's Run.
    ids : sequence of str
        The judgements' queries, in order, as for :func:`read_run`.
    names : PassageNames
        The object that the judgements were read with.

    Returns
    -------
    Run
        Ordered by score, higher first; passages of equal score stay in the order in which they are given. A query
        without hits, ``{query: {}}``, is in the run, with an empty list.

    Raises
    ------
    InputError
        ``scores`` is something else, a query lists a passage twice, a score is not finite in float32, or the run has
        none of the queries.

    Examples
    --------
    >>> from hopfuse.evaluate import PassageNames, run_from
    >>> run_from({"q1": {"docA": 0.5, "docB": 0.9}}, ["q1"], PassageNames()).hits.ids
    array([[0, 1]])
    """
    given = _columns(scores, "scores", "scoreddocs_iter", "score")
    wrong = given.first_but(lambda kind: issubclass(kind, Real) and not issubclass(kind, bool))
    if wrong is None:
        numbers = _floats(given.values)
        wrong = next(iter(np.flatnonzero(~(np.abs(numbers) <= FLOAT32_MAX)).tolist()), None)
    if wrong is not None:
        raise InputError(
            "range",
            given.field("scores", wrong),
            "{field} is {given!r}; it must be a finite number that float32 can hold",
            given=given.values[wrong],
        )
    return run_of_rankings(ranked(given.queries, given.row, given.passages, numbers), ids, names, "the run")


def qrels_dict(qrels: Qrels, names: PassageNames) -> dict[str, dict[str, int]]:
    """Return judgements as ``{query: {passage: grade}}``, which ``ranx.Qrels``, BEIR and pytrec_eval take.

    Qrels do not store passages that are not relevant, so these are absent; a gold passage without a grade has grade 1.

    Examples
    --------
    >>> from hopfuse.evaluate import PassageNames, qrels_dict, qrels_from
    >>> names = PassageNames()
    >>> qrels_dict(qrels_from({"q1": {"docA": 2}}, names), names)
    {'q1': {'docA': 2}}
    """
    return {
        query: {names.name(passage): grade for passage, grade in zip(gold, grades or [1] * len(gold), strict=True)}
        for query, gold, grades in zip(qrels.ids, qrels.gold, qrels.grades, strict=True)
    }


def run_dict(run: Run | Hits, ids: Sequence[str], names: PassageNames) -> dict[str, dict[str, float]]:
    """Return a run as ``{query: {passage: score}}``, best first, which ``ranx.Run``, BEIR and pytrec_eval take.

    Parameters
    ----------
    run : Run or Hits, B rows
    ids : sequence of str, B entries
        The queries; a query without hits has an empty mapping.
    names : PassageNames

    Raises
    ------
    InputError
        The number of queries is not the number of rows.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import PassageNames, run_dict
    >>> run_dict(hf.Hits([[1, 0]], [[0.5, 0.25]]), ["q1"], PassageNames(["docA", "docB"]))
    {'q1': {'docB': 0.5, 'docA': 0.25}}
    """
    hits = run.hits if isinstance(run, Run) else run
    check_length(len(ids), "ids", len(hits), "query")
    return {
        str(query): {names.name(passage): score for passage, score in hits.row(row)} for row, query in enumerate(ids)
    }


def write_run(
    path: str | PathLike[str], run: Run | Hits, ids: Sequence[str], names: PassageNames, *, tag: str = "hopfuse"
) -> None:
    """Write a run: ``.json`` is ``{query: {passage: score}}``, as BEIR and ranx read it, any other suffix a TREC run.

    The file is written whole or not at all. A TREC run has no line for a query without hits.

    Raises
    ------
    InputError
        As :func:`run_dict`; a name with white space for a TREC run.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import PassageNames, write_run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "run.txt")
    ...     write_run(path, hf.Hits([[1]], [[0.5]]), ["q1"], PassageNames(["docA", "docB"]))
    ...     path.read_text()
    'q1 Q0 docB 1 0.5 hopfuse\\n'
    """
    scores = run_dict(run, ids, names)
    _write(path, scores, lambda: run_lines(scores, tag))


def write_qrels(path: str | PathLike[str], qrels: Qrels, names: PassageNames) -> None:
    """Write judgements: ``.json`` is ``{query: {passage: grade}}``, as ranx reads it, any other suffix TREC qrels.

    Raises
    ------
    InputError
        A name with white space for TREC qrels.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from hopfuse.evaluate import PassageNames, qrels_from, write_qrels
    >>> names = PassageNames()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "qrels.txt")
    ...     write_qrels(path, qrels_from({"q1": {"docA": 2}}, names), names)
    ...     path.read_text()
    'q1 0 docA 2\\n'
    """
    grades = qrels_dict(qrels, names)
    _write(path, grades, lambda: qrels_lines(grades))


class _Columns(NamedTuple):
    """Judgements or a run: query ``queries[row[i]]`` has ``passages[i]`` with ``values[i]``."""

    queries: list[str]
    row: NDArray[np.int64]
    passages: list[str]
    values: list[Any]

    def first_but(self, accepted: Callable[[type], bool]) -> int | None:
        """Return where the first value is whose type is not accepted."""
        wrong = {kind for kind in set(map(type, self.values)) if not accepted(kind)}
        return next((at for at, value in enumerate(self.values) if type(value) in wrong), None) if wrong else None

    def field(self, name: str, at: int) -> str:
        return f"{name}[{self.queries[self.row[at]]!r}][{self.passages[at]!r}]"


def _columns(given: Any, name: str, method: str, value: str) -> _Columns:
    """Read any of the forms accepted."""
    if callable(getattr(given, method, None)):
        given = getattr(given, method)()
    elif not isinstance(given, Mapping) and callable(getattr(given, "to_dict", None)):
        given = given.to_dict()
    numbers: dict[str, int] = {}
    if isinstance(given, Mapping):
        for query, own in given.items():
            if not isinstance(own, Mapping):
                raise wrong_type(own, f"{name}[{query!r}]", f"{{passage: {value}}}")
        rows = [numbers.setdefault(str(query), len(numbers)) for query in given]
        row = np.repeat(np.array(rows, np.int64), np.array(list(map(len, given.values())), np.int64))
        keys = list(chain.from_iterable(given.values()))
        values = list(chain.from_iterable(own.values() for own in given.values()))
        is_distinct = set(map(type, keys)) <= {str} and len(numbers) == len(rows)
        found = _Columns(list(numbers), row, keys if is_distinct else list(map(str, keys)), values)
    else:
        triples = list(_triples(given, name, method, value))
        rows = [numbers.setdefault(query, len(numbers)) for query, _, _ in triples]
        passages, values = [passage for _, passage, _ in triples], [number for _, _, number in triples]
        found, is_distinct = _Columns(list(numbers), np.array(rows, np.int64), passages, values), False
    if not is_distinct:
        _check_pairs(found)
    return found


def _triples(given: Any, name: str, method: str, value: str) -> Iterator[tuple[str, str, Any]]:
    """Yield query, passage and value of objects."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise wrong_type(
            given,
            name,
            f"{{query: {{passage: {value}}}}}, objects with query_id, doc_id and {value}, or a data set with "
            f"{method}()",
        )
    for at, one in enumerate(given):
        try:
            yield str(one.query_id), str(one.doc_id), getattr(one, value)
        except AttributeError:
            raise wrong_type(one, f"{name}[{at}]", f"an object with query_id, doc_id and {value}") from None


def _check_pairs(given: _Columns) -> None:
    seen = set()
    for pair in zip(given.row.tolist(), given.passages, strict=True):
        if pair in seen:
            raise InputError(
                "duplicate",
                "query",
                "{field} {query!r} has passage {passage!r} twice; give each passage once",
                query=given.queries[pair[0]],
                passage=pair[1],
            )
        seen.add(pair)


def _floats(values: list[Any]) -> NDArray[np.float64]:
    """Return real numbers as float64; those beyond it become infinite."""
    try:
        return np.array(values, np.float64)
    except OverflowError:
        return np.array([float(one) if is_real(one) else np.inf for one in values])


def _texts(queries: Any) -> dict[str, str]:
    if queries is None:
        return {}
    if callable(getattr(queries, "queries_iter", None)):
        queries = queries.queries_iter()
    if isinstance(queries, Mapping):
        return {str(query): str(text) for query, text in queries.items()}
    try:
        return {str(one.query_id): str(one.text) for one in queries}
    except (AttributeError, TypeError):
        raise wrong_type(
            queries, "queries", "{query: text}, objects with query_id and text, or a data set with queries_iter()"
        ) from None


def _write(path: str | PathLike[str], content: Any, lines: Callable[[], str]) -> None:
    text = json.dumps(content, ensure_ascii=False) if Path(path).suffix == ".json" else lines()
    write_whole(Path(path), lambda file: file.write(text.encode("utf-8")))
