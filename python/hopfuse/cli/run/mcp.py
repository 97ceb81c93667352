"""``hopfuse mcp``: indexes as tools of language models' programs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ...errors import InputError
from ...recipes import RECIPES
from ..options import FILE, encoder_option
from ..recipes import LEGS
from .serve import Readers, read_config


@click.command("mcp")
@click.argument("indexes", metavar="[INDEX | NAME=INDEX]...", nargs=-1)
@click.option("--config", "file", type=FILE, help="A TOML file: indexes, limits, keys; see docs/serving.md.")
@click.option("--recipe", type=click.Choice(tuple(RECIPES)), help="Of searches.")
@encoder_option
@click.option("--lexical", type=click.Choice(LEGS), help="A list by words, as hopfuse search has it.")
@click.option("--writable", is_flag=True, help="Take changes of INDEX: the tool add_passage.")
@click.option("--threads", type=int, help="By default HOPFUSE_NUM_THREADS, else all processors.")
@click.option("--http", is_flag=True, help="Serve at http://HOST:PORT/mcp, with all that hopfuse serve has.")
@click.option("--host", help="With --http.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="With --http.  [default: 8080]")
@click.option("--public", is_flag=True, help="With --http: as of hopfuse serve.")
def mcp_command(
    indexes: Sequence[str],
    file: Path | None,
    recipe: str | None,
    encoder: str | None,
    writable: bool,
    http: bool,
    public: bool,
    **options: Any,
) -> None:
    """Offer INDEX to programs of language models as tools, by the Model Context Protocol; see docs/serving.md.

    A program that starts this command talks to it by its input and output; where the file has keys, HOPFUSE_KEY is the
    program's. With --http it is a server that programs reach by an address. The tools, search, explain_hit and
    add_passage, have the limits and rights of requests by HTTP.
    """
    from ...serve import run, run_stdio  # of the extra serve

    if not http and (public or options["host"] is not None or options["port"] is not None):
        raise InputError("--host, --port and --public are for --http; leave them out, or add it")
    about = {"recipe": recipe, "encoder": encoder, "lexical": options.pop("lexical"), "writable": writable or None}
    config = read_config(indexes, file, about, {**options, "mcp": http})
    if http:
        config.check_public(public)
        run(config, Readers())
    else:
        run_stdio(config, Readers(), os.environ.get("HOPFUSE_KEY", ""))
