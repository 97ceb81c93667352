"""Files and readers of ``hopfuse build``: nodes, aliases, and the options of ``--reader``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from ...errors import InputError
from ...extract import EndpointReader, SpacyReader, WordReader
from ...io.files import read_text
from ...io.json_lines import json_objects
from ...io.tsv import tsv_records
from ..console import note, progress_bar
from ..options import DIRECTORY, FILE, endpoint_options, make_endpoint
from .rules import FACT_READERS, WORDS

F = TypeVar("F", bound=Callable[..., Any])
KINDS = ("passage", "entity")
LANGUAGE = "english"


class Nodes(NamedTuple):
    """The number of nodes that are passages, and the names of the others in order."""

    passages: int
    entities: list[str]


def read_nodes(path: Path) -> Nodes:
    """Read lines of node, kind and name, separated by tabs, without a header; nodes count from 0, passages first."""
    text = read_text(path, "nodes")
    lines = (line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")) if text else ()
    passages = 0
    entities: list[str] = []
    for node, (number, fields) in enumerate(tsv_records(enumerate(lines, 1))):
        if len(fields) != 3 or fields[0] != str(node) or fields[1] not in KINDS:
            raise InputError(
                "syntax",
                "nodes",
                "{field} is {given!r}; it must be {allowed}",
                given="\t".join(fields)[:80],
                allowed=f"{node}, {' or '.join(KINDS)} and a name, separated by tabs",
            ).at(f"{path}, line {number}")
        if fields[1] == "entity":
            entities.append(fields[2])
        elif entities:
            raise InputError("order", "nodes", "{field} has a passage after an entity; passages are nodes 0 .. P-1").at(
                f"{path}, line {number}"
            )
        else:
            passages += 1
    return Nodes(passages, entities)


def read_aliases(path: Path) -> dict[int | str, list[str]]:
    """Read aliases by entity from a .jsonl file; several rows of an entity are concatenated."""
    aliases: dict[int | str, list[str]] = {}
    try:
        for number, row in json_objects(path, ("entity", "aliases")):
            entity, names = row["entity"], row["aliases"]
            if isinstance(entity, bool) or not isinstance(entity, (int, str)) or not isinstance(names, list):
                raise InputError(
                    "type",
                    "aliases",
                    "{field} has the row {given}; entity must be a name or a number, aliases a list",
                    given=str(dict(row))[:80],
                ).at(f"{path}, line {number}")
            aliases.setdefault(entity, []).extend(names)
    except OSError as error:
        raise InputError(
            "missing", "aliases", "{field}: {path} cannot be read: {reason}", path=path, reason=error.strerror
        ) from None
    return aliases


def reader_options(command: F) -> F:
    """Add the options of ``--reader``; :func:`make_fact_reader` and :func:`make_word_reader` take them."""
    tagger = click.option(
        "--tagger", metavar="MODEL", help="With --reader words: lemmas from this spaCy model instead of stems."
    )
    language = click.option(
        "--language",
        metavar="NAME",
        help="With --reader words: language of stems and stop words, by name or code (French, fr), or none.  [default: "
        "the main language of the passages]",
    )
    return click.option(
        "--reader",
        type=click.Choice((WORDS, *sorted(FACT_READERS, reverse=True))),
        multiple=True,
        help="Read PASSAGES: words takes seconds and no model; spacy and endpoint find entities and facts. words may "
        "be combined with one of the others, or with --from.",
    )(fact_reader_options(language(tagger(command))))


def fact_reader_options(command: F) -> F:
    """Add the options of readers of facts; :func:`make_fact_reader` takes them."""
    options = (
        click.option(
            "--spacy-model",
            metavar="NAME",
            help="With --reader spacy: an installed model, or its folder.  [default: a small one of English]",
        ),
        click.option("--prompts", type=DIRECTORY, help="Folder of your own prompts: entities.txt, triples.txt."),
        click.option(
            "--skip-failed",
            type=float,
            metavar="PERCENT",
            help="Share of the passages that may fail, and are left without facts or, if --encoder endpoint refuses "
            "them, without a vector; above it the command stops. One may fail unless it is 0.  [default: 10]",
        ),
        click.option(
            "--failed", type=FILE, help="Write the passages that failed, each with the reason, to this file: .jsonl."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return endpoint_options("so that another run asks only what has no answer yet")(command)


def make_word_reader(options: Mapping[str, Any]) -> WordReader | None:
    """Return the reader of ``--reader words``, or None if it is not given."""
    if WORDS not in options["reader"]:
        return None
    language = options["language"] or LANGUAGE
    return WordReader(None if language == "none" else language, tagger=options["tagger"], **_share(options))


def guesses_language(options: Mapping[str, Any]) -> bool:
    """Return whether the language of words is the main one of the passages, because no option chooses it."""
    return options["language"] is None and options["tagger"] is None


def make_fact_reader(options: Mapping[str, Any]) -> SpacyReader | EndpointReader:
    """Return the reader of entities and facts that ``--reader`` names."""
    if "spacy" not in options["reader"]:
        return _endpoint_reader(options)
    model = () if options["spacy_model"] is None else (options["spacy_model"],)
    try:
        return SpacyReader(*model, **_share(options))
    except InputError as error:
        raise error.about("spacy_model") from None


def _share(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the argument of readers that ``--skip-failed`` gives, if it is given."""
    return {} if options["skip_failed"] is None else {"skip_failed": options["skip_failed"]}


@contextmanager
def reading_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar; yield a function that takes the number of passages read and the total."""
    with progress_bar() as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _endpoint_reader(options: Mapping[str, Any]) -> EndpointReader:
    if options["cache"] is None:
        note("Reading without --cache: if interrupted, every answer of the endpoint is lost")
    return EndpointReader(make_endpoint(options), prompts=options["prompts"], **_share(options))
