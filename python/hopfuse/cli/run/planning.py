"""Make a plan from the options of ``hopfuse score``, checking everything before anything is created."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from ... import Index
from ...errors import InputError
from ...io.qrels import trec_name
from ...io.queries import Query
from ...offline import Folder, Plan, check_rows
from ...offline.files import fingerprints
from ...offline.plan import index_record, versions, with_rows
from ...recipes import RECIPES
from ..config_options import option_files
from ..console import note
from ..recipes import read_files
from .scorer import QueryScorer

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
) -> tuple[Plan, QueryScorer]:
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
    scorer = QueryScorer(index, {**options, "threads": threads}, queries)
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


def _checked(scorer: QueryScorer, queries: Path, names: bool) -> int:
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
