"""The files and readers that an index is built from, apart from tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from ...errors import InputError
from ...extract import EndpointReader, Extraction, SpacyReader, WordReader
from ...io.json_lines import json_objects
from ..console import note, progress_bar
from ..options import DIRECTORY, ENDPOINT_OPTIONS, endpoint_options, make_endpoint

F = TypeVar("F", bound=Callable[..., Any])
KINDS = ("passage", "entity")
WORDS, FACT_READERS, LANGUAGE = "words", frozenset(("spacy", "endpoint")), "english"


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
    """Add the options of ``--reader``; :func:`read_passages` and :func:`make_word_reader` take them."""
    tagger = click.option(
        "--tagger", metavar="MODEL", help="With --reader words: lemmas by this spaCy model, no stems."
    )
    language = click.option(
        "--language",
        metavar="NAME",
        help=f"With --reader words: whose stems and stop words, or none.  [default: {LANGUAGE}]",
    )
    return click.option(
        "--reader",
        "readers",
        type=click.Choice((WORDS, *sorted(FACT_READERS, reverse=True))),
        multiple=True,
        help="Read PASSAGES: their words, in seconds and by no model, or entities and facts. Words may stand beside "
        "one of the others, or beside --from.",
    )(endpoint_reader_options(language(tagger(command))))


def endpoint_reader_options(command: F) -> F:
    """Add the options of a reader that asks a language model; :func:`make_fact_reader` takes them."""
    prompts = click.option("--prompts", type=DIRECTORY, help="Prompts of your own: entities.txt and triples.txt.")
    return endpoint_options("so that what was interrupted goes on")(prompts(command))


def check_reader(options: Mapping[str, Any]) -> None:
    """Refuse two readers of facts, options of one that does not read, and an endpoint without a model."""
    if set(options["readers"]) >= FACT_READERS:
        raise InputError("--reader is given for spacy and for endpoint, which both find facts; choose one")
    if WORDS not in options["readers"]:
        for name in ("language", "tagger"):
            if options[name] is not None:
                raise InputError(f"--{name} is given without --reader words, whose option it is")
    if "endpoint" not in options["readers"]:
        for name in ("model", *ENDPOINT_OPTIONS, "prompts"):
            if options[name] is not None:
                raise InputError(f"--{name} is given without --reader endpoint, whose option it is")
    elif options["model"] is None:
        raise InputError("--reader endpoint needs --model, the name of a language model there")


def make_word_reader(options: Mapping[str, Any]) -> WordReader | None:
    """Return the reader of ``--reader words``; None where it is not given."""
    if WORDS not in options["readers"]:
        return None
    language = options["language"] or LANGUAGE
    return WordReader(None if language == "none" else language, tagger=options["tagger"])


def read_passages(passages: Path, options: Mapping[str, Any]) -> list[Extraction]:
    """Return what a reader of facts finds in the passages of a file."""
    reader = make_fact_reader(options)
    with reading_bar("Reading") as progress:
        return reader.read(passages, progress=progress)


def make_fact_reader(options: Mapping[str, Any]) -> SpacyReader | EndpointReader:
    """Return the reader of entities and facts that ``--reader`` names."""
    return SpacyReader() if "spacy" in options["readers"] else _endpoint_reader(options)


@contextmanager
def reading_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar; what is yielded takes how many passages are read, of how many."""
    with progress_bar() as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _endpoint_reader(options: Mapping[str, Any]) -> EndpointReader:
    if options["cache"] is None:
        note("Reading without --cache: an interruption loses every answer of the endpoint")
    return EndpointReader(make_endpoint(options), prompts=options["prompts"])
