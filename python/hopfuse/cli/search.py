"""``hopfuse search``: the passages that answer one question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from .. import Index
from .._validation import check_needs
from ..errors import InputError
from ..io.files import read_npy
from ..recipes import Hit, note_data
from ..report import printable
from ..report.text import shorten
from .console import json_text, note
from .naming import ArgumentNames
from .options import FILE, case_option, check_rules, encoder_option, index_argument, k_option
from .recipes import answering_options, check_answers, language_model, open_retriever, recipe_options, search_options

F = TypeVar("F", bound=Callable[..., Any])

#: Most characters of a text without --full.
TEXT = 160


class SearchOutput(NamedTuple):
    """The result of one question, its notes as JSON values, and a language model's answer if there is one."""

    found: Any
    notes: list[dict[str, Any]]
    answer: str | None

    def data(self) -> dict[str, Any]:
        """Return what ``--json`` prints beside the hits."""
        notes = {"notes": self.notes} if self.notes else {}
        return notes if self.answer is None else {**notes, "answer": self.answer}


def question_options(command: F) -> F:
    """Add the index, the question, and the options of a search for one question."""
    for add in (
        answering_options,
        case_option,
        recipe_options,
        k_option,
        click.option(
            "--row", type=click.IntRange(min=0), help="Row of --vectors that is the question's.  [default: 0]"
        ),
        click.option("--vectors", type=FILE, help="The question's vector, or rows of vectors: .npy."),
        encoder_option,
        click.option(
            "--entity",
            "entities",
            multiple=True,
            help="An entity in the question; may be given several times.  [default: those found in it]",
        ),
        click.argument("question"),
        index_argument,
    ):
        command = add(command)
    return command


@click.command()
@question_options
@click.option("--full", is_flag=True, help="Print whole texts.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with whole texts.")
def search(full: bool, as_json: bool, **options: Any) -> None:
    """Print the passages that best answer QUESTION.

    Each has its rank, score, id, title and the beginning of its text. The question is encoded by the encoder that the
    index was built with, unless --encoder names another.
    """
    check_rules({"full": full, "json": as_json}, excludes=[("full", "json", "which has whole texts")])
    question = options["question"]
    asked = ask(options)
    hits: list[Hit] = asked.found[0]
    if as_json:
        rows = [{"rank": rank, **_fields(hit)} for rank, hit in enumerate(hits, 1)]
        click.echo(json_text({"question": question, "hits": rows, **asked.data()}))
        return
    print_notes(asked)
    console = Console()
    for rank, hit in enumerate(hits, 1):
        line = Text.assemble(f"{rank}. {hit.score:.4f}  ", (printable(str(hit.id)), "cyan"), "  ")
        console.print(line.append(printable(hit.title), "bold"), soft_wrap=True, highlight=False)
        if hit.text:
            text = Text(printable(hit.text if full else shorten(" ".join(hit.text.split()), TEXT)))
            console.print(Padding(text, (0, 0, 0, 3), expand=False), highlight=False)
    if not hits:
        console.print("Nothing was found.")
    print_answer(asked)


def print_notes(asked: SearchOutput) -> None:
    """Print what was not used of the question on stderr."""
    for one in asked.notes:
        note(f"Note: {one['message']}")


def print_answer(asked: SearchOutput) -> None:
    """Print the language model's answer, if there is one."""
    if asked.answer is not None:
        Console().print(Text(f"Answer: {printable(asked.answer)}"), soft_wrap=True, highlight=False)


def _fields(hit: Hit) -> dict[str, Any]:
    fields = {name: getattr(hit, name) for name in ("id", "row", "score", "title", "text")}
    return fields | ({"metadata": hit.metadata} if hit.metadata else {})


def ask(options: Mapping[str, Any], *, trace: bool = False) -> SearchOutput:
    """Run the search that the options of :func:`question_options` describe."""
    question, vectors, row = options["question"], options["vectors"], options["row"]
    check_needs("row", row, "vectors", vectors, "whose row it is")
    llm, index = language_model(options), Index.open(options["directory"])
    retriever = open_retriever(index, options, llm=llm)
    check_answers(retriever, options)
    given = None if vectors is None else read_row(vectors, row or 0)
    entities = [list(options["entities"])] if options["entities"] else None
    inputs = {"vectors": given, "entities": entities, **search_options(index, options)}
    try:
        found = retriever.search(question, **inputs, trace=trace)
    except InputError as error:
        field = (error.field or "").replace("[0]", "", 1)
        raise error.about(_ARGUMENTS.get(field, field)) from None
    notes = [one.about(_ARGUMENTS.get(str(one.field))) for one in found.notes[0]]
    answer = retriever.answer(question, found)[0] if options["answers"] else None
    return SearchOutput(found, note_data(notes, ArgumentNames.here()), answer)


#: Arguments by the fields of notes and of errors.
_ARGUMENTS = {"text": "question", "questions": "question", "vector": "vectors"}


def read_row(path: Path, row: int) -> NDArray[Any]:
    """Return one row of the vectors in a file, of shape (1, d)."""
    rows = np.atleast_2d(read_npy(path, "vectors"))
    if row >= len(rows):
        raise InputError(
            "range",
            "row",
            "{field} is {given}; {path} has the rows 0 .. {last}",
            given=row,
            path=path,
            last=len(rows) - 1,
        )
    return np.asarray(rows[row : row + 1])
