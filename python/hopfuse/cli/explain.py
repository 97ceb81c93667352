"""``hopfuse explain``: one query, step by step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from .. import Index
from ..errors import InputError
from ..evaluate import policy_page
from .answering import answering_options, language_model
from .names import NameFinder
from .options import (
    FILE,
    case_option,
    encoder_option,
    index_option,
    lexical_options,
    make_encoder,
    recipe_options,
)
from .outputs import check_outputs, write_all
from .recipe_choice import check_read, make_chosen, recipe_choice
from .recipe_settings import setting_files, setting_option
from .recipe_trees import tree_of
from .vector_needs import check_source, encodes_more, why_unread
from .words import words_option


@click.command()
@index_option
@click.option("--query", required=True, help="The question.")
@click.option("--entity", "entities", multiple=True, help="A name in the question; by default those that are found.")
@encoder_option
@click.option("--vector", type=FILE, help="The question's vector, or rows of vectors: .npy.")
@click.option("--row", type=click.IntRange(min=0), help="Which row of --vector; by default 0.")
@click.option("--k", type=click.IntRange(min=1), default=10, show_default=True, help="Passages.")
@recipe_choice
@setting_option
@recipe_options()
@lexical_options
@words_option
@answering_options
@case_option
@click.option("--show", type=click.IntRange(min=1), default=5, show_default=True, help="Lines of each list.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole trace as JSON.")
@click.option("--trace", "trace_out", type=FILE, help="Write it to a .json, or as a page to an .html (of policy-rag).")
@click.option("--overwrite", is_flag=True, help="Replace the file of --trace where it exists.")
def explain(
    directory: Path,
    query: str,
    entities: tuple[str, ...],
    encoder: str | None,
    vector: Path | None,
    row: int | None,
    k: int,
    chosen: str,
    policy: Path | None,
    settings: tuple[str, ...],
    words: str | None,
    answers: bool,
    endpoint: str | None,
    model: str | None,
    cache: Path | None,
    concurrency: int | None,
    case_sensitive: bool,
    show: int,
    as_json: bool,
    trace_out: Path | None,
    overwrite: bool,
    **recipe: Any,
) -> None:
    """Show what one question finds, and why."""
    check_read(chosen)
    if row is not None and vector is None:
        raise InputError(f"--row is {row}, and there is no --vector; give the file of rows, or leave it out")
    read = {"--vector": vector, "--policy": policy, **setting_files(settings)}
    _check_trace(trace_out, chosen, read, overwrite=overwrite)
    asking = {"endpoint": endpoint, "model": model, "cache": cache, "concurrency": concurrency}
    llm = language_model(chosen, policy, answers=answers, **asking)
    index = Index.open(directory)
    unread = why_unread(chosen, index, policy, settings)
    check_source("--vector", vector, encoder, unread, encodes=encodes_more(chosen, index))
    vectors = None if vector is None else _read_vector(vector, row or 0)
    used = None if encoder is None else make_encoder(encoder)
    asked = make_chosen(chosen, index, used, policy, recipe, settings=settings, words=words, llm=llm)
    mentions = list(entities)
    if asked.reads_entities and not mentions:
        mentions = NameFinder(index, case_sensitive=case_sensitive).find([query])[0]
    found = asked.search([query], vectors, [mentions] if asked.reads_entities else None, k, explain=True)
    trace = {"question": query, **found.traces[0]}
    if answers:
        (trace["answer"],) = asked.answer([query], found)
    text = json.dumps(trace, indent=2, ensure_ascii=False)
    if trace_out is not None:
        write_all({trace_out: policy_page(trace) if trace_out.suffix == ".html" else text + "\n"})
    if as_json:
        click.echo(text)
    else:
        Console().print(tree_of(chosen, query, trace, show))
        if answers:
            Console().print(f"Answer: {trace['answer']}", highlight=False, soft_wrap=True, markup=False)


def _check_trace(out: Path | None, chosen: str, read: Mapping[str, Path | None], *, overwrite: bool) -> None:
    if out is None:
        return
    if out.suffix not in (".json", ".html"):
        raise InputError(f"--trace is {out.name!r}; its suffix must be .json or .html")
    if out.suffix == ".html" and chosen != "policy-rag":
        raise InputError(f"--trace: pages such as {out.name} are of policy-rag, and --recipe is {chosen}; give a .json")
    check_outputs({"--trace": out}, read, overwrite=overwrite)


def _read_vector(path: Path, row: int) -> NDArray[Any]:
    try:
        rows = np.atleast_2d(np.load(path, allow_pickle=False))
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"--vector: {path} cannot be read as an .npy array: {error}") from None
    if row >= len(rows):
        raise InputError(f"--row is {row}; {path} has the rows 0 .. {len(rows) - 1}")
    return np.asarray(rows[row : row + 1])
