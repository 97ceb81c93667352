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

from ... import Index
from ..._validation import check_needs
from ...errors import InputError
from ...extract import QuestionMatcher
from ...io.npy import read_npy
from ...recipes import Hit
from ...report import printable
from ...report.text import shorten
from ..checks import check_rules
from ..console import json_text
from ..options import FILE, case_option, encoder_for, encoder_option, index_argument, k_option
from ..recipes import (
    BoundRecipe,
    answering_options,
    bind,
    check_given,
    check_names,
    language_model,
    recipe_options,
)

F = TypeVar("F", bound=Callable[..., Any])

#: Most characters of a text without --full.
TEXT = 160


class Answer(NamedTuple):
    """A recipe, its result for one question, and a language model's answer if there is one."""

    bound: BoundRecipe
    found: Any
    answer: str | None


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
    _, found, answer = ask(options)
    hits: list[Hit] = found[0]
    if as_json:
        rows = [{"rank": rank, **_fields(hit)} for rank, hit in enumerate(hits, 1)]
        click.echo(json_text({"question": question, "hits": rows} | ({} if answer is None else {"answer": answer})))
        return
    console = Console()
    for rank, hit in enumerate(hits, 1):
        line = Text.assemble(f"{rank}. {hit.score:.4f}  ", (printable(str(hit.id)), "cyan"), "  ")
        console.print(line.append(printable(hit.title), "bold"), soft_wrap=True, highlight=False)
        if hit.text:
            text = Text(printable(hit.text if full else shorten(" ".join(hit.text.split()), TEXT)))
            console.print(Padding(text, (0, 0, 0, 3), expand=False), highlight=False)
    if not hits:
        console.print("Nothing was found.")
    if answer is not None:
        console.print(Text(f"Answer: {printable(answer)}"), soft_wrap=True, highlight=False)


def _fields(hit: Hit) -> dict[str, Any]:
    fields = {name: getattr(hit, name) for name in ("id", "row", "score", "title", "text")}
    return fields | ({"metadata": hit.metadata} if hit.metadata else {})


def ask(options: Mapping[str, Any], *, trace: bool = False) -> Answer:
    """Run the search that the options of :func:`question_options` describe."""
    question, vectors, row = options["question"], options["vectors"], options["row"]
    check_needs("row", row, "vectors", vectors, "whose row it is")
    llm = language_model(options["recipe"], options["policy"], options)
    index = Index.open(options["directory"])
    encoder = encoder_for(index, options["encoder"], vectors)
    bound = bind(index, options, encoder=encoder, llm=llm)
    check_given(bound, vectors, options["encoder"] if encoder is None else encoder)
    check_names(bound)
    given = None if vectors is None else read_row(vectors, row or 0)
    entities: list[list[Any]] | None = None
    if bound.recipe.needs.entities:
        matcher = QuestionMatcher(index, case_sensitive=options["case_sensitive"])
        entities = [list(options["entities"]) or matcher.match([question], allow=bound.alone)[0]]
    if given is None and encoder is not None and not question.strip():
        raise InputError("empty", "question", "{field} is empty; give a question")
    found = bound.search([question], given, entities, options["k"], trace=trace)
    answer = bound.recipe.answer([question], found)[0] if options["answers"] else None  # type: ignore[attr-defined]
    return Answer(bound, found, answer)


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
