"""``hopfuse explain``: one query, step by step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from .. import Index
from ..errors import InputError
from ..recipes import PhaseGraph
from .names import NameFinder
from .options import (
    FILE,
    case_option,
    encoder_option,
    index_option,
    lexical_options,
    make_encoder,
    recipe_arguments,
    recipe_options,
)
from .trace_tree import trace_tree


@click.command()
@index_option
@click.option("--query", required=True, help="The question.")
@click.option("--entity", "entities", multiple=True, help="A name in the question; by default those that are found.")
@encoder_option
@click.option("--vector", type=FILE, help="The question's vector, or rows of vectors: .npy.")
@click.option("--row", type=click.IntRange(min=0), default=0, show_default=True, help="Which row of --vector.")
@click.option("--k", type=click.IntRange(min=1), default=10, show_default=True, help="Passages.")
@recipe_options(alpha=0.7)
@lexical_options
@case_option
@click.option("--show", type=click.IntRange(min=1), default=5, show_default=True, help="Lines of each list.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole trace as JSON.")
def explain(
    directory: Path,
    query: str,
    entities: tuple[str, ...],
    encoder: str | None,
    vector: Path | None,
    row: int,
    k: int,
    case_sensitive: bool,
    show: int,
    as_json: bool,
    **recipe: Any,
) -> None:
    """Show what one question finds, and why."""
    if (vector is None) == (encoder is None):
        raise InputError("give --vector or --encoder, and not both: the question needs a vector")
    index = Index.open(directory)
    vectors = None if vector is None else _read_vector(vector, row)
    used = None if encoder is None else make_encoder(encoder)
    mentions = list(entities) or NameFinder(index, case_sensitive=case_sensitive).find([query])[0]
    phase_graph = PhaseGraph(index, encoder=used, **recipe_arguments(index, recipe))
    found = phase_graph.search([query], vectors=vectors, entities=[mentions], k=k, explain=True)
    assert found.traces is not None
    trace = {"question": query, **found.traces[0]}
    if as_json:
        click.echo(json.dumps(trace, indent=2, ensure_ascii=False))
    else:
        Console().print(trace_tree(query, trace, show))


def _read_vector(path: Path, row: int) -> NDArray[Any]:
    try:
        rows = np.atleast_2d(np.load(path, allow_pickle=False))
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"--vector: {path} cannot be read as an .npy array: {error}") from None
    if row >= len(rows):
        raise InputError(f"--row is {row}; {path} has the rows 0 .. {len(rows) - 1}")
    return np.asarray(rows[row : row + 1])
