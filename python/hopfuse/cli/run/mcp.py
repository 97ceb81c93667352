"""``hopfuse mcp``: indexes as tools of the Model Context Protocol."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from ...recipes import RECIPES
from ..checks import check_rules
from ..options import FILE, encoder_option
from ..recipes import threads_option, words_option
from .serve import read_config, run_again


@click.command("mcp")
@click.argument("indexes", metavar="[INDEX | NAME=INDEX]...", nargs=-1)
@click.option("--config", "file", type=FILE, help="A TOML file: indexes, limits, keys; see docs/operate.md.")
@click.option("--recipe", type=click.Choice(tuple(RECIPES)), help="Recipe of searches.")
@encoder_option
@words_option
@click.option("--writable", is_flag=True, help="Accept changes of INDEX: the tool add_passage.")
@threads_option
@click.option("--http", is_flag=True, help="Serve at http://HOST:PORT/mcp, beside the endpoints of hopfuse serve.")
@click.option("--host", help="With --http: address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="With --http: port; 0 for any free one.  [default: 8080]")
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
    """Offer indexes to language models as tools, over MCP.

    The client starts this command and talks to it over standard input and output; if the file of --config has keys,
    HOPFUSE_KEY is the client's. With --http the command is a server that clients connect to. The tools search,
    explain_hit and add_passage have the same limits and rights as HTTP requests. See docs/serving.md.
    """
    from ...serve import run_stdio  # needs the extra serve

    given = {**options, "public": public, "http": http}
    check_rules(given, needs=[(name, "http", "which listens") for name in ("host", "port", "public")])
    about = {"recipe": recipe, "encoder": encoder, "words": options.pop("words"), "writable": writable or None}
    read = partial(read_config, indexes, file, about, {**options, "mcp": http})
    if http:
        run_again(read, public=public, file=file)
    else:
        run_stdio(read(), key=os.environ.get("HOPFUSE_KEY", ""))
