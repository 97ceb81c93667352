"""``hopfuse serve`` and ``hopfuse mcp``: indexes over HTTP, and as tools of the Model Context Protocol."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from ..recipes import RECIPES
from .options import FILE, check_rules, encoder_option
from .recipes import threads_option, words_option

if TYPE_CHECKING:
    from ..serve import ServeConfig


@click.command()
@click.argument("indexes", metavar="[INDEX | NAME=INDEX]...", nargs=-1)
@click.option("--config", "file", type=FILE, help="A TOML file: indexes, limits, keys; see docs/operate.md.")
@click.option("--recipe", type=click.Choice(tuple(RECIPES)), help="Recipe of requests that name none.")
@encoder_option
@words_option
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port; 0 for any free one.  [default: 8080]")
@click.option("--writable", is_flag=True, help="Accept changes of INDEX: POST /v1/passages.")
@click.option("--workers", type=click.IntRange(1, 256), help="Processes that serve the port.  [default: 1]")
@threads_option
@click.option(
    "--public", is_flag=True, help="With public = true in the file: allow other machines to connect without keys."
)
def serve(
    indexes: Sequence[str],
    file: Path | None,
    public: bool,
    recipe: str | None,
    encoder: str | None,
    writable: bool,
    **options: Any,
) -> None:
    """Serve searches of indexes over HTTP.

    Queries of concurrent requests are answered in batches. Each index has a name, by default that of its folder;
    requests that name none go to the first. "hopfuse serve key NAME" makes a key, and prints it with the lines to add
    to the file of --config. See docs/serving.md.
    """
    if indexes[:1] == ("key",):
        _print_key(indexes[1:])
        return

    about = {"recipe": recipe, "encoder": encoder, "words": options.pop("words"), "writable": writable or None}
    read = partial(read_config, indexes, file, about, options)
    run_again(read, public=public, file=file)


def run_again(read: Callable[[], ServeConfig], *, public: bool, file: Path | None) -> None:
    """Serve with a configuration, which is read again at SIGHUP if it has a file."""
    from ..serve import run

    def checked() -> ServeConfig:
        config = read()
        config.check_public(public)
        return config

    run(checked(), reread=None if file is None else checked)


def read_config(
    indexes: Sequence[str], file: Path | None, about: Mapping[str, Any], options: Mapping[str, Any]
) -> ServeConfig:
    """Return the configuration of a file, overridden by the command line.

    Parameters
    ----------
    indexes : sequence of str
        ``DIRECTORY`` or ``NAME=DIRECTORY``.
    file : Path, optional
    about : mapping
        Options of each index, None if not given.
    options : mapping
        Options of the server, None if not given.
    """
    from ..serve import ServeConfig

    changes: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    named = _named(indexes)
    if named:
        given = {key: value for key, value in about.items() if value is not None}
        changes["indexes"] = {name: {"path": path, **given} for name, path in named.items()}
    elif any(value is not None for value in about.values()):
        check_rules(
            about, needs=[(name, "indexes", "whose it is; else set it in the file of --config") for name in about]
        )
    if file is not None:
        return ServeConfig.load(file, changes)
    if named:
        return ServeConfig.read("", changes)
    raise InputError("missing", "indexes", "{field} is missing; give it, or {@config} with a file that names indexes")


def _print_key(names: Sequence[str]) -> None:
    """Make and print a key; to serve a folder called ``key``, give it as ``./key``."""
    from ..serve import new_key
    from ..serve.config import check_name, table_of

    if len(names) != 1:
        raise InputError("syntax", "indexes", "hopfuse serve key NAME makes a key for one caller; give one NAME")
    check_name(names[0], "indexes")
    key, digest = new_key()
    click.echo(f"The key, which is not stored: {key}", err=True)  # so that ">> serve.toml" does not store it either
    click.echo(f'\n[{table_of("keys", names[0])}]\nsha256 = "{digest}"\nrights = ["read"]')


def _named(given: Sequence[str]) -> dict[str, str]:
    """Return directories by name of index."""
    named: dict[str, str] = {}
    for one in given:
        name, equals, path = one.partition("=")
        if not equals:
            name, path = Path(one).resolve().name, one
        if name in named:
            raise InputError("duplicate", "indexes", "{field} has {name!r} twice; give NAME=INDEX", name=name)
        named[name] = str(Path(path).resolve())
    return named


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
    from ..serve import run_stdio

    given = {**options, "public": public, "http": http}
    check_rules(given, needs=[(name, "http", "which listens") for name in ("host", "port", "public")])
    about = {"recipe": recipe, "encoder": encoder, "words": options.pop("words"), "writable": writable or None}
    read = partial(read_config, indexes, file, about, {**options, "mcp": http})
    if http:
        run_again(read, public=public, file=file)
    else:
        run_stdio(read(), key=os.environ.get("HOPFUSE_KEY", ""))
