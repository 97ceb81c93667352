"""Read the inputs of ``hopfuse build`` and ``add``: nodes, aliases, files of facts, and passages by ``--reader``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from .. import Index
from .._validation import check_suffix, counted
from ..errors import InputError
from ..extract import (
    EndpointReader,
    Extraction,
    SpacyReader,
    WordReader,
    build_memory,
    described,
    read_openie,
    read_triples,
)
from ..extract.added import AddedPassages
from ..extract.building import Built
from ..io.files import read_text
from ..io.json_lines import json_objects
from ..io.tsv import tsv_records
from .build_rules import FACT_READERS, WORDS, check_reader
from .console import note, progress_bar
from .options import DIRECTORY, FILE, endpoint_options, make_endpoint

F = TypeVar("F", bound=Callable[..., Any])
KINDS = ("passage", "entity")
LANGUAGE = "english"


class NodeFile(NamedTuple):
    """The number of nodes that are passages, and the names of the others in order."""

    passages: int
    entities: list[str]


def read_nodes(path: Path) -> NodeFile:
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
    return NodeFile(passages, entities)


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
        help="Read the passages, of a file or a store: words takes seconds and no model; spacy and endpoint find "
        "entities and facts. words may be combined with one of the others, or with --from FILE.",
    )(fact_reader_options(language(tagger(command))))


def fact_reader_options(command: F, share: str = "10") -> F:
    """Add the options of readers of facts, which :func:`make_fact_reader` takes; ``share`` may fail by default."""
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
            "them, without a vector, and of the rows of a store that may be left out; above it the command stops. One "
            f"may fail unless it is 0.  [default: {share}]",
        ),
        click.option(
            "--failed",
            type=FILE,
            help="Write the passages and rows that failed, each with the reason, to this file: .jsonl.",
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


# ---- A file of facts -------------------------------------------------------------------------------------------------

_OPENIE, _TRIPLES = (".json", ".jsonl"), (".tsv", ".nt", ".parquet")


class FactFile(NamedTuple):
    """A reader of facts in a file: OpenIE (``.json``, or ``.jsonl`` about passages), or triples."""

    path: Path

    def read(self, passages: Any, *, progress: Any = None) -> list[Extraction]:
        """Return the extractions of the file."""
        suffix = self.path.suffix.lower()
        if suffix == ".jsonl" and passages is None:
            raise InputError(
                "missing",
                "passages",
                "{@from} {file} has facts by passage id; give the file of the passages, {field}, too",
                file=self.path.name,
            )
        if suffix in _OPENIE:
            return read_openie(self.path, passages)
        check_suffix(self.path, "from", *_OPENIE, *_TRIPLES)
        return described(read_triples(self.path))

    def check(self, passages: Path | None) -> None:
        """Refuse passages beside a file that has its own, or whose facts become some."""
        if passages is not None and self.path.suffix.lower() != ".jsonl":
            raise InputError(
                "conflict",
                "passages",
                "{field} is given beside {@from} {file}, whose facts become the passages; leave it out",
                file=self.path.name,
            )


def report(built: Built) -> None:
    """Print what was found, left out and joined."""
    memory, joined = built.memory, built.joined
    out = ", ".join(f"{number:,} {reason}" for reason, number in memory.left_out.items())
    lines = []
    if memory.num_names or memory.words is None:
        lines += [
            f"{counted(len(memory.facts), 'fact')}; left out: {out}",
            f"{counted(len(memory.conflicts), 'conflict')} resolved by majority",
            f"Synonyms: {joined['abbreviated']:,} by abbreviation, {joined['similar']:,} by similarity",
        ]
    if memory.words is not None:
        lines.append(counted(len(memory.entities) - memory.num_names, "word"))
    lines += _spoken(built)
    if len(memory.sequence):
        lines.append(f"{counted(len(memory.sequence), 'pair of passages')} that follow each other")
    note("\n".join(lines))


def _spoken(built: Built) -> list[str]:
    """Return in which languages the text is, and how much of it no reader is for."""
    shares = built.languages.shares
    lines = [f"Languages: {', '.join(f'{language} {_percent(share)}' for language, share in shares.items()) or '?'}"]
    if built.language is not None:
        lines[0] += f"; words are read as {built.language} (--language)"
    if built.unread:
        unread = f"No reader is for {_percent(built.unread)} of the text"
        if built.language is not None:
            unread += f": its words are found, read as {built.language}"
        lines.append(f"{unread} (--language, --spacy-model)")
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share == 0 or share >= 0.005 else "< 1 %"


_Row = dict[str, Any]


# ---- Passages that are added -----------------------------------------------------------------------------------------


def added_reader(index: Index, options: Mapping[str, Any]) -> AddedPassages:
    """Return what reads added passages the way the index's own were read; ``options`` come from the command."""
    given = {**options, "reader": () if options["reader"] is None else (options["reader"],)}
    check_reader({**given, "language": None, "tagger": None})
    names = index.num_entities if index.words is None else index.words.first
    if given["reader"] and (index.graph is None or index.facts is None):
        raise InputError(
            "unused",
            "reader",
            "{field} finds entities and facts, but the index was built without them; leave it out, or build the "
            "index again with {field}",
        )
    if names and index.graph is not None and not given["reader"]:
        note(f"The index has {counted(names, 'entity')}, but none is read from these passages: see --reader")
    return AddedPassages(index, make_fact_reader(given) if given["reader"] else None)


def edges_between(rows: Sequence[_Row], batch: int) -> dict[int, list[dict[str, Any]]]:
    """Return edges between consecutive passages of a document that are in different batches, by the later batch."""
    places = build_memory(
        Extraction(row["id"], "", "", document=row.get("document"), position=row.get("position")) for row in rows
    ).sequence
    found: dict[int, list[dict[str, Any]]] = {}
    for a, b in places.tolist():
        if a // batch != b // batch:
            ends = {"src": ("passage", rows[a]["id"]), "dst": ("passage", rows[b]["id"])}
            found.setdefault(max(a, b) // batch, []).append({**ends, "type": "sequence"})
    return found
