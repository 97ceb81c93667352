"""``hopfuse trace``: what one question finds, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ..._validation import check_suffix
from ...errors import InputError
from ...io.files import write_all
from ...recipes import Hit
from ...report import policy_page
from ..console import json_text
from ..files import check_outputs
from ..options import FILE
from ..recipes import read_files
from .search import ask, print_answer, print_notes, question_options
from .trees import has_page, tree_of


@click.command()
@question_options
@click.option("--show", type=click.IntRange(min=1), default=5, show_default=True, help="Lines per list to print.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole trace as JSON.")
@click.option("--out", type=FILE, help="Also write the trace to a .json, or (policy-rag only) a page to an .html.")
@click.option("--overwrite", is_flag=True, help="Replace the file of --out if it exists.")
def trace(show: int, as_json: bool, out: Path | None, overwrite: bool, **options: Any) -> None:
    """Show what QUESTION finds, and why."""
    if out is not None:
        _check_out(out, options, overwrite=overwrite)
    asked = ask(options, trace=True)
    traced = {"question": options["question"], **asked.found.traces[0], **asked.data()}
    if out is not None and out.suffix == ".html" and not has_page(traced):
        raise InputError(
            "unsupported",
            "out",
            "{field} is {given!r}, but only {@recipe} policy-rag has pages; give a .json",
            given=out.name,
        )
    text = json_text(traced)
    if out is not None:
        write_all({out: policy_page(traced) if out.suffix == ".html" else text + "\n"})
    if as_json:
        click.echo(text)
        return
    print_notes(asked)
    Console().print(tree_of(options["question"], _with_texts(traced, asked.found[0]), show))
    print_answer(asked)


def _with_texts(traced: Mapping[str, Any], found: Sequence[Hit]) -> Mapping[str, Any]:
    """Return a trace whose hits without a title have their text."""
    texts = {hit.id: hit.text for hit in found}
    hits = [{**hit, "text": texts.get(hit["id"])} if hit.get("title") == "" else hit for hit in traced["hits"]]
    return {**traced, "hits": hits}


def _check_out(out: Path, options: Mapping[str, Any], *, overwrite: bool) -> None:
    check_suffix(out, "out", ".json", ".html")
    check_outputs({"out": out}, {"vectors": options["vectors"], **read_files(options)}, overwrite=overwrite)
