"""The plan of ``hopfuse score`` and its scorer, which check everything before anything is created."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from .. import Index
from ..errors import InputError
from ..io.qrels import trec_name
from ..io.queries import Query, count_queries
from ..offline import Folder, Output, Plan, check_rows
from ..offline.parts import Row
from ..offline.plan import fingerprints, index_record, open_index, versions, with_rows
from ..recipes import RECIPES, note_data
from .config_options import option_files
from .console import note
from .queries import QueryInputs
from .recipes import check_answers, language_model, open_retriever, read_files, search_options

#: The values of ``--with``.
EXTRAS = ("title", "text", "metadata", "legs")


def open_scorer(plan: Plan, threads: int | None) -> _QueryScorer:
    """Return the scorer of a plan that ``hopfuse score`` made."""
    return _QueryScorer(open_index(plan), {**plan.scoring, "threads": threads}, Path(plan.queries))


class _QueryScorer:
    """Turns queries into rows of the result.

    Parameters
    ----------
    index : Index
    options : mapping
        Options of ``hopfuse score``.
    queries : Path
        The file of the queries, which may have a column ``vector``.
    """

    def __init__(self, index: Index, options: Mapping[str, Any], queries: Path) -> None:
        self._index, self._with, self._answers = index, tuple(options["extras"]), options["answers"]
        self._retriever = open_retriever(index, options, llm=language_model(options))
        self._search = search_options(index, options)
        check_answers(self._retriever, options)
        self._legs = tuple(self._retriever.check(options["k"], per_document=options["per_document"]).lists)
        recipe, vectors = self._retriever.recipe, options["vectors"]
        self.recipe, self._ids = recipe.name, recipe.hit_ids(index)
        self._inputs = QueryInputs(None if vectors is None else Path(vectors), count_queries(queries))
        reads: dict[str, Callable[[int], Any]] = {
            "title": index.titles.__getitem__,
            "text": index.texts.__getitem__,
            "metadata": self._metadata,
        }
        self._columns = {name: read for name, read in reads.items() if name in self._with}
        if recipe.ranks != "passages" and self._columns:
            raise InputError(
                "unused",
                "with",
                "{field} is {given}, but the hits of {recipe} are {ranks}, which have none; leave it out",
                given=", ".join(self._columns),
                recipe=recipe.name,
                ranks=recipe.ranks,
            )
        if "metadata" in self._with and not index.metadata:
            raise InputError(
                "unused", "with", "{field} is {given}, but the index has none; leave it out", given="metadata"
            )

    def output(self, kind: Any) -> Output:
        """Return the columns of the rows, for files of this kind."""
        return Output(
            kind,
            whole_ids=any(isinstance(id, int) for id in self._ids[:1]),
            columns=tuple(name for name in self._columns if name != "metadata"),
            metadata=dict(self._index.metadata.types) if "metadata" in self._with else {},
            legs=self._legs if "legs" in self._with else (),
            answers=self._answers,
        )

    def check_names(self) -> None:
        """Refuse ids of hits that a TREC file cannot hold."""
        for id in self._ids:
            trec_name(str(id))

    def check(self, query: Query, row: int, where: str) -> None:
        """Refuse a query that cannot be scored; the error names its row, the column and the fix."""
        self._inputs.check(self._retriever, query, row, where)

    def score(self, queries: Sequence[Query], first: int) -> list[Row]:
        """Return rows of the result for the queries ``first``, ``first + 1``, ... of the file."""
        inputs = self._inputs.of(queries, range(first, first + len(queries)))
        found = self._retriever.search(**inputs, **self._search)
        rows = [{"id": query.id, "hits": self._hits(found, at)} for at, query in enumerate(queries)]
        for row, notes in zip(rows, found.notes, strict=True):
            row |= {"notes": note_data(notes)} if notes else {}
        if self._answers:
            for row, answer in zip(rows, self._retriever.answer(inputs["questions"], found), strict=True):
                row["answer"] = answer
        return list(rows)

    def _hits(self, found: Any, query: int) -> list[dict[str, Any]]:
        legs = {leg: dict(found.lists[leg].row(query)) for leg in self._legs} if "legs" in self._with else {}
        hits = []
        for row, score in found.hits.row(query):
            hit = {"id": self._ids[row], "score": score}
            hit |= {name: read(row) for name, read in self._columns.items()}
            hits.append(hit | ({"legs": {leg: scores.get(row) for leg, scores in legs.items()}} if legs else {}))
        return hits

    def _metadata(self, row: int) -> dict[str, Any]:
        """Return a passage's metadata as JSON values."""
        found = self._index.metadata.row(row)
        return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in found.items()}


# ---- The plan --------------------------------------------------------------------------------------------------------

#: ``--queries -`` reads JSON lines from standard input.
STDIN = Path("-")
#: Options that name files, which the plan stores as absolute paths.
PATHS = ("vectors", "policy", "cache")


@contextmanager
def query_path(queries: Path) -> Iterator[Path]:
    """Yield the path of the queries; standard input is first copied to a temporary file."""
    if queries != STDIN:
        yield queries
        return
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "standard-input.jsonl")
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path


def input_files(queries: Path, options: Mapping[str, Any]) -> dict[str, Path | None]:
    """Return the files that a run reads, by option."""
    return {"queries": None if queries == STDIN else queries, "vectors": options["vectors"], **read_files(options)}


def scoring_of(options: Mapping[str, Any], recipe: str) -> dict[str, Any]:
    """Return the options that a plan stores as JSON, from which a scorer is made on any machine."""
    found = {**options, "recipe": recipe, "extras": list(options["extras"])}
    for name in PATHS:
        if found[name] is not None:
            found[name] = str(Path(found[name]).resolve())
    if found["allow"] is not None and Path(found["allow"]).is_file():
        found["allow"] = str(Path(found["allow"]).resolve())
    arrays = option_files(options["settings"], RECIPES[recipe].Config)
    moved = {
        f"{option.split()[-1]}={path}": f"{option.split()[-1]}={path.resolve()}" for option, path in arrays.items()
    }
    found["settings"] = [moved.get(one, one) for one in options["settings"]]
    return found


def planned(
    folder: Folder,
    directory: Path,
    queries: Path,
    options: Mapping[str, Any],
    *,
    kind: str,
    names: bool,
    part_rows: int | None,
    stdin: bool,
    threads: int | None = None,
) -> tuple[Plan, _QueryScorer]:
    """Return the plan of the options and its scorer; if the folder already has the same plan, return that one.

    Parameters
    ----------
    folder : Folder
    directory : Path
        The index.
    queries : Path
        The file of the queries; with ``stdin``, the folder will hold a copy.
    options : mapping
        Options of the recipe and of ``hopfuse score``.
    kind : str
        Format of the parts.
    names : bool
        Whether ids must be free of white space, as in a TREC run.
    part_rows : int, optional
    stdin : bool
    threads : int, optional

    Raises
    ------
    InputError
        A row that cannot be scored (the first one is named; nothing is created), or a folder that holds another plan.
    """
    index = Index.open(directory)
    scorer = _QueryScorer(index, {**options, "threads": threads}, queries)
    files = {name: path for name, path in input_files(queries, options).items() if path is not None}
    inputs = fingerprints(files, folder.known())
    place = folder.path.resolve() / "queries.jsonl" if stdin else queries.resolve()
    inputs["queries"]["path"] = str(place)
    plan = Plan(
        str(place),
        inputs,
        index_record(index, directory),
        scoring_of(options, scorer.recipe),
        scorer.output(kind),
        versions={},
    )
    plan = replace(plan, versions=versions(plan.output))
    if folder.has_plan():
        before = folder.plan
        differ = before.differs(replace(plan, part_rows=part_rows or before.part_rows))
        if differ:
            raise InputError(
                "exists",
                "out",
                "{field}: {path} holds an unfinished run with other {names}; finish that run, discard it with "
                "--restart of hopfuse score, or choose another folder",
                path=folder.path,
                names=", ".join(differ),
            )
        return before, scorer
    rows = _checked(scorer, queries, names)
    if not rows:
        note(f"{'Standard input' if stdin else queries} has no queries, so the result has no rows")
    return with_rows(plan, queries, rows, part_rows), scorer


def _checked(scorer: _QueryScorer, queries: Path, names: bool) -> int:
    """Check that all queries can be scored; return their number."""
    if names:
        scorer.check_names()
    numbers = count()

    def check(query: Query, where: str) -> None:
        scorer.check(query, next(numbers), where)
        if names:
            try:
                trec_name(query.id)
            except InputError as error:
                raise error.at(where, "id") from None

    return check_rows(queries, check)
