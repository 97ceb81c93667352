"""``hopfuse sweep --sets``: choose options of a recipe on several sets of questions at once."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from .. import Index, Retriever
from ..diagnose import CachedEncoder
from ..encoders import open_encoder
from ..errors import InputError
from ..evaluate import JudgedSet, join_hits, sweep_sets
from ..evaluate.sweep import Options
from ..io.files import read_text, write_all
from ..io.queries import count_queries
from ..recipes import RECIPES
from ..report import printable, sets_tables
from ..types import Hits
from .config_options import assigned, listed, plain_value
from .judgements import JudgedQueries, judged_queries, qrels_files
from .outputs import check_outputs, strict_json
from .queries import QueryInputs
from .recipes import config_of

KEYS = ("index", "queries", "vectors", "qrels")
BATCH = 64
EXAMPLE = 'news = {index = "news-index", queries = "news.jsonl", vectors = "news.npy"}'


@dataclass(frozen=True)
class SetFiles:
    """The files of a set: index, questions, their vectors (None to encode them) and judgements."""

    index: Path
    queries: Path
    vectors: Path | None
    qrels: Path


def sweep_recipe(
    sets: Path,
    recipe: str | None,
    given: Sequence[str],
    metric: str,
    *,
    encoder: str | None,
    words: str | None,
    threads: int | None,
    k: int,
    out: Path | None,
    overwrite: bool,
) -> None:
    """Choose the options of a recipe with the least worst loss over the sets of a file, and print the results."""
    files = read_sets(sets)
    read = {f"sets: {name}.{key}": path for name, one in files.items() for key, path in _inputs(one).items()}
    check_outputs({"out": out}, {"sets": sets, **read}, overwrite=overwrite)
    with TemporaryDirectory() as cache:  # so that a text is encoded once, not for each trial
        model = None if encoder is None else CachedEncoder(open_encoder(encoder), Path(cache))
        given_ones: dict[str, Any] = {"encoder": model, "words": words, "threads": threads}
        made = {name: Retriever(Index.open(one.index), recipe, **given_ones) for name, one in files.items()}
        names = sorted({one.recipe.name for one in made.values()})
        if len(names) > 1:
            raise InputError(
                "missing",
                "recipe",
                "{field} is missing, and the sets' indexes have different defaults, {names}; give it",
                names=" and ".join(names),
            )
        trials = recipe_trials(names[0], given)
        systems = {name: _system(made[name], one, k) for name, one in files.items()}
        found = sweep_sets(systems, trials, baseline={}, metric=metric)
    console = Console()
    console.print(printable(str(found)), highlight=False, soft_wrap=True, markup=False)
    for table in sets_tables(found):
        console.print("", table.to_rich(), sep="\n")
    if out is not None:
        write_all({out: strict_json({"recipe": names[0], **found.to_dict()})})


def read_sets(path: Path) -> dict[str, SetFiles]:
    """Return the sets of a TOML file, one table each; paths are relative to the file's folder."""
    text = read_text(path, "sets")
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            "syntax", "sets", "{field}: {path} cannot be read as TOML: {error}", path=path, error=error
        ) from None
    if not tables:
        raise InputError(
            "empty", "sets", "{field}: {path} has no set; give tables such as {example}", path=path, example=EXAMPLE
        )
    made = {}
    for name, table in tables.items():
        paths = table if isinstance(table, dict) else {}
        if not {"index", "queries"} <= set(paths) <= set(KEYS) or not all(
            isinstance(one, str) for one in paths.values()
        ):
            raise InputError(
                "type",
                "sets",
                "{field}: {path} has the set {name} = {given!r}; give it the paths index, queries and any of "
                "vectors and qrels",
                path=path,
                name=name,
                given=table,
            )
        there = {key: path.parent / value for key, value in table.items()}
        made[name] = SetFiles(
            there["index"], there["queries"], there.get("vectors"), there.get("qrels", there["queries"])
        )
    return made


def recipe_trials(recipe: str, given: Sequence[str]) -> list[dict[str, Any]]:
    """Return every combination of the values of a recipe's options; those of repeated options are concatenated.

    Options that the others of a combination make irrelevant are left out of it. One that is left out of all is refused.

    Examples
    --------
    >>> recipe_trials("hybrid-rrf", ["weights=1,1,0.35", "weights=0,1,1"])
    [{'weights': '1,1,0.35'}, {'weights': '0,1,1'}]
    >>> recipe_trials("guided-walk", ["word_boost=0,2", "word_k=100,1000"])
    [{'word_boost': 0}, {'word_boost': 2, 'word_k': 100}, {'word_boost': 2, 'word_k': 1000}]
    """
    grid, refusals = dict[str, list[str]](), dict[str, InputError]()
    for name, text in assigned(given):
        grid.setdefault(name, []).extend(listed(RECIPES[recipe].Config, name, text))
    if not grid:
        raise InputError(
            "missing", "option", "{field} is missing; give {field} NAME=VALUE,VALUE, once for each option to try"
        )
    trials: list[dict[str, Any]] = []
    for row in product(*grid.values()):
        values, unread = _read_by(recipe, dict(zip(grid, row, strict=True)))
        trial = {name: plain_value(value) for name, value in values.items()}
        refusals |= unread
        if trial not in trials:
            trials.append(trial)
    for name in grid:
        if not any(name in trial for trial in trials):
            raise refusals[name]
    return trials


def _read_by(recipe: str, given: dict[str, str]) -> tuple[dict[str, str], dict[str, InputError]]:
    """Return the options that a recipe reads, and the errors of those that the others make irrelevant."""
    unread: dict[str, InputError] = {}
    while True:
        values = {name: value for name, value in given.items() if name not in unread}
        try:
            config_of(recipe, {"settings": [f"{name}={value}" for name, value in values.items()]})
        except InputError as error:
            if error.code != "unused" or error.field not in values:
                raise
            unread[error.field] = error
        else:
            return values, unread


def _inputs(files: SetFiles) -> dict[str, Path]:
    found = {"queries": files.queries, **qrels_files(files.qrels)}
    return found if files.vectors is None else {**found, "vectors": files.vectors}


def _system(retriever: Retriever, files: SetFiles, k: int) -> JudgedSet:
    """Return a set's judgements with a function that searches, given options of the recipe, some of its questions."""
    inputs = QueryInputs(files.vectors, count_queries(files.queries))
    judged = judged_queries(retriever.index, files.queries, files.qrels)
    for query, row, place in zip(judged.queries, judged.rows, judged.places, strict=True):
        inputs.check(retriever, query, row, place)

    def run(options: Options, rows: NDArray[np.int64]) -> Hits:
        settings = [f"{name}={value}" for name, value in options.items()]
        tried = retriever.variant(config=config_of(retriever.recipe.name, {"settings": settings}))
        parts = np.array_split(rows, max(1, -(-rows.size // BATCH)))
        return join_hits([_search(tried, judged, inputs, part.tolist(), k) for part in parts])

    return JudgedSet(run, judged.qrels)


def _search(retriever: Retriever, judged: JudgedQueries, inputs: QueryInputs, part: Sequence[int], k: int) -> Hits:
    asked = inputs.of([judged.queries[at] for at in part], [judged.rows[at] for at in part])
    return retriever.search(**asked, k=k).hits
