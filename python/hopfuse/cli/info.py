"""``hopfuse info``: what an index holds, or what runs on this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .. import Index, __version__
from .. import explain as explain_backends
from .machine import machine
from .options import DIRECTORY


@click.command()
@click.argument("directory", type=DIRECTORY, required=False)
@click.option("--verify", is_flag=True, help="Read and verify the whole index.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(directory: Path | None, verify: bool, as_json: bool) -> None:
    """Say what the index in DIRECTORY holds or, without one, what runs on this machine."""
    if directory is None:
        if verify:
            raise click.UsageError("--verify needs the DIRECTORY of an index")
        found, table = _machine_info(), machine_table(_machine_info())
    else:
        found = Index.open(directory, verify="full" if verify else "lazy").info()
        table = index_table(found)
    if as_json:
        click.echo(json.dumps(found, indent=2, default=list))
    else:
        Console().print(table)


def _machine_info() -> dict[str, Any]:
    return {"hopfuse": __version__, **machine(), **explain_backends()}


def machine_table(found: Mapping[str, Any]) -> Table:
    """The machine, the versions and the backends, a line each."""
    table = _lines("hopfuse on this machine")
    for key, value in found.items():
        if key != "backends":
            table.add_row("backend" if key == "auto" else key, _listed(value))
    for name, backend in found["backends"].items():
        for key, value in backend.items():
            if value not in (None, {}, []):
                table.add_row(f"{name}: {key.replace('_', ' ')}", _listed(value))
    return table


def index_table(found: Mapping[str, Any]) -> Table:
    """What an index holds, a line each."""
    table = _lines("Index")
    for key, value in found.items():
        if key not in ("graph", "lexical", "facts", "sections", "bytes"):
            table.add_row(
                key.replace("_", " ").removeprefix("num "), _listed(value if type(value) is int else str(value))
            )
    for part in ("graph", "lexical", "facts"):
        for key, value in (found[part] or {}).items():
            table.add_row(f"{part}: {key.replace('_', ' ')}", _listed(value))
    table.add_row("size", f"{found['bytes'] / 1e6:,.1f} MB")
    return table


def _lines(title: str) -> Table:
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    return table


def _listed(value: Any) -> Text:
    """As it is: square brackets, as extras have them, are no markup."""
    return Text(_plain(value))


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k}: {_plain(v)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return f"{value:,}" if type(value) is int else str(value)
