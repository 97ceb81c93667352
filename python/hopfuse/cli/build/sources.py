"""The files and readers that an index is built from, apart from tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from ...errors import InputError
from ...extract import EndpointReader, Extraction, SpacyReader
from ...io.json_lines import json_objects
from ..console import note, progress_bar
from ..options import DIRECTORY, ENDPOINT_OPTIONS, endpoint_options, make_endpoint

F = TypeVar("F", bound=Callable[..., Any])
KINDS = ("passage", "entity")


class Nodes(NamedTuple):
    """Return how many nodes are passages, and the names of the others in their order."""

    passages: int
    entities: list[str]


def read_nodes(path: Path) -> Nodes:
    """Read lines of node, kind and name, separated by tabs, without a header.

    Raises
    ------
    InputError
        A line of another form, a node that is not its line's number from 0, a passage behind an entity.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--nodes: {path} cannot be read as UTF-8 text: {error}") from None
    lines = text.removesuffix("\n").split("\n") if text else []
    passages = 0
    entities: list[str] = []
    for node, line in enumerate(lines):
        fields = line.removesuffix("\r").split("\t")
        if len(fields) != 3 or fields[0] != str(node) or fields[1] not in KINDS:
            raise InputError(
                f"{path}, line {node + 1} is {line[:80]!r}; it must be {node}, {' or '.join(KINDS)} and a name, "
                "separated by tabs"
            )
        if fields[1] == "entity":
            entities.append(fields[2])
        elif entities:
            raise InputError(f"{path}, line {node + 1} is a passage behind an entity; passages are nodes 0 .. P-1")
        else:
            passages += 1
    return Nodes(passages, entities)


def read_aliases(path: Path) -> dict[int | str, list[str]]:
    """Read other names by entity from a .jsonl file; the rows of one entity are put together."""
    aliases: dict[int | str, list[str]] = {}
    try:
        for number, row in json_objects(path, ("entity", "aliases")):
            entity, names = row["entity"], row["aliases"]
            if isinstance(entity, bool) or not isinstance(entity, (int, str)) or not isinstance(names, list):
                raise InputError(
                    f"{path}, line {number} is {str(dict(row))[:80]}; entity must be a name or a number, aliases a list"
                )
            aliases.setdefault(entity, []).extend(names)
    except OSError as error:
        raise InputError(f"--aliases: {path} cannot be read: {error.strerror}") from None
    return aliases


def reader_options(command: F) -> F:
    """Add the options of ``--reader``; :func:`read_passages` takes them."""
    prompts = click.option("--prompts", type=DIRECTORY, help="Prompts of your own: entities.txt and triples.txt.")
    command = endpoint_options("so that an interrupted build goes on")(prompts(command))
    return click.option(
        "--reader", type=click.Choice(("spacy", "endpoint")), help="Extract entities and facts from PASSAGES."
    )(command)


def check_reader(options: Mapping[str, Any]) -> None:
    """Refuse options of the endpoint where none reads, and an endpoint without a model."""
    if options["reader"] != "endpoint":
        for name in ("model", *ENDPOINT_OPTIONS, "prompts"):
            if options[name] is not None:
                raise InputError(f"--{name} is given without --reader endpoint, whose option it is")
    elif options["model"] is None:
        raise InputError("--reader endpoint needs --model, the name of a language model there")


def read_passages(passages: Path, options: Mapping[str, Any]) -> list[Extraction]:
    """Return what ``--reader`` finds in the passages of a file."""
    reader = SpacyReader() if options["reader"] == "spacy" else _endpoint_reader(options)
    with progress_bar() as progress:
        task = progress.add_task("Reading", total=None)
        return reader.read(passages, progress=lambda done, total: progress.update(task, completed=done, total=total))


def _endpoint_reader(options: Mapping[str, Any]) -> EndpointReader:
    if options["cache"] is None:
        note("Reading without --cache: an interruption loses every answer of the endpoint")
    return EndpointReader(make_endpoint(options), prompts=options["prompts"])
