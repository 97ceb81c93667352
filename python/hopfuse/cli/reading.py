"""Plain passages for ``hopfuse build --from``: who reads them, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from ..errors import InputError
from ..extract import EndpointReader, Extraction, SpacyReader
from .endpoint import DETAILS, endpoint_options, make_endpoint
from .options import DIRECTORY
from .progress import progress_bar

F = TypeVar("F", bound=Callable[..., Any])


def reader_options(command: F) -> F:
    """Those of plain passages; :func:`read_passages` takes them."""
    prompts = click.option("--prompts", type=DIRECTORY, help="Prompts of your own: entities.txt and triples.txt.")
    command = endpoint_options("so that an interrupted build goes on")(prompts(command))
    return click.option(
        "--reader",
        type=click.Choice(("spacy", "endpoint")),
        help="With --from, rows of id, title, text (.jsonl, .tsv, .parquet): who finds their facts.",
    )(command)


def read_passages(source: Path, options: Mapping[str, Any]) -> list[Extraction]:
    """What ``--reader`` finds in the passages of a file."""
    reader = _reader(options)
    if options["reader"] == "endpoint" and options["cache"] is None:
        told = "Reading without --cache: an interruption loses every answer of the endpoint"
        Console(stderr=True).print(told, soft_wrap=True, highlight=False)
    with progress_bar() as progress:
        task = progress.add_task("Reading", total=None)
        return reader.read(source, progress=lambda done, total: progress.update(task, completed=done, total=total))


def check_reader(options: Mapping[str, Any]) -> None:
    """Refuse options of the endpoint where none reads, and an endpoint without a model."""
    if options["reader"] != "endpoint":
        for name in ("model", *DETAILS, "prompts"):
            if options[name] is not None:
                raise InputError(f"--{name} is given without --reader endpoint, whose option it is")
    elif options["model"] is None:
        raise InputError("--reader endpoint needs --model, the name of a language model there")


def _reader(options: Mapping[str, Any]) -> SpacyReader | EndpointReader:
    if options["reader"] == "spacy":
        return SpacyReader()
    return EndpointReader(make_endpoint(options), prompts=options["prompts"])
