"""From the options of ``hopfuse score`` to a plan: everything is checked before anything is created."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
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
from ..recipes import check_names, read_files
from .scorer import QueryScorer

#: What ``--queries`` may be for standard input: JSON lines.
STDIN = Path("-")
#: Options that are files, whose paths the plan has whole.
PATHS = ("vectors", "policy", "cache")


@contextmanager
def query_path(queries: Path) -> Iterator[Path]:
    """Yield the path of the queries; standard input is copied to a file, which lasts as long as the context."""
    if queries != STDIN:
        yield queries
        return
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "standard-input.jsonl")
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path


def input_files(queries: Path, options: Mapping[str, Any]) -> dict[str, Path | None]:
    """Return the files that a run reads, by the option that names them."""
    return {"--queries": None if queries == STDIN else queries, "--vectors": options["vectors"], **read_files(options)}


def scoring_of(options: Mapping[str, Any], recipe: str) -> dict[str, Any]:
    """Return the options of a plan as JSON: what its scorer is opened from, wherever it is opened."""
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
    """Return the plan of the options and its scorer; where the folder has a plan of the same, that one.

    Parameters
    ----------
    folder : Folder
    directory : Path
        The index.
    queries : Path
        Where they are now; with ``stdin`` they are to be kept in the folder.
    options : mapping
        Of recipes and of ``hopfuse score``.
    kind : str
        Of the parts.
    names : bool
        Ids have to be words without white space.
    part_rows : int, optional
    stdin : bool
    threads : int, optional

    Raises
    ------
    InputError
        What could not be scored, the first row of it that there is; nothing was created. A folder of another plan.
    """
    index = Index.open(directory)
    scorer = QueryScorer(index, {**options, "threads": threads}, queries)
    check_names(scorer.bound)
    files = {name: path for name, path in input_files(queries, options).items() if path is not None}
    inputs = fingerprints(files, folder.known())
    place = folder.path.resolve() / "queries.jsonl" if stdin else queries.resolve()
    inputs["--queries"]["path"] = str(place)
    plan = Plan(
        str(place),
        inputs,
        index_record(index, directory),
        scoring_of(options, scorer.bound.name),
        scorer.output(kind),
        versions={},
    )
    plan = replace(plan, versions=versions(plan.output))
    if folder.has_plan():
        before = folder.plan
        differ = before.differs(replace(plan, part_rows=part_rows or before.part_rows))
        if differ:
            raise InputError(
                f"{folder.path} holds an unfinished run with other {', '.join(differ)}; repeat that run, or drop it: "
                "--restart of hopfuse score, or another folder"
            )
        return before, scorer
    return with_rows(plan, queries, _checked(scorer, queries, names), part_rows), scorer


def _checked(scorer: QueryScorer, queries: Path, names: bool) -> int:
    """Return how many queries there are, all of which can be scored."""
    scorer.check_files()
    if names:
        scorer.check_names()

    def check(query: Query, where: str) -> None:
        scorer.check(query, where)
        if names:
            try:
                trec_name(query.id)
            except InputError as error:
                raise InputError(f"{where}, column 'id': {error}") from None

    return check_rows(queries, check)
