"""``hopfuse info``: what an index holds, or what runs on this machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .. import Index, Retriever, __version__, backend_info
from ..report import printable
from .console import json_text
from .options import DIRECTORY

#: The most rows that the table lists of what an index lacks.
_PRINTED = 10


@click.command()
@click.argument("directory", type=DIRECTORY, required=False)
@click.option("--verify", is_flag=True, help="Read the whole index and verify its checksums.")
@click.option(
    "--search", is_flag=True, help="Also say how the index is searched by default, what that lacks and what it costs."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(directory: Path | None, verify: bool, search: bool, as_json: bool) -> None:
    """Describe an index, or this machine and its backends.

    DIRECTORY is the index; without it, the machine is described.
    """
    said = None
    if directory is None:
        if verify or search:
            raise click.UsageError(f"--{'verify' if verify else 'search'} needs the DIRECTORY of an index")
        found = {"hopfuse": __version__, **machine(), **backend_info()}
        table = machine_table(found)
    else:
        index = Index.open(directory, verify="full" if verify else "lazy")
        found, said = index.info() | _lacking(index), Retriever(index).describe() if search else None
        table = index_table(found)
    if as_json:
        click.echo(json_text(found if said is None else {**found, "search": said.data()}))
        return
    Console().print(table)
    if said is not None:
        click.echo(printable(str(said)))


def _lacking(index: Index) -> dict[str, Any]:
    """Return what an index that follows a store lacks of its rows, if anything."""
    if index.source is None:
        return {}
    from ..stores.postgres import failures_of

    listed = [{**one._asdict(), "key": _listed_key(one.key)} for one in failures_of(index)]
    return {"failures": listed} if listed else {}


def _listed_key(key: Any) -> Any:
    """Return the key of a row as JSON has it: columns and values as an object."""
    return dict(key) if isinstance(key, tuple) else key


def machine_table(found: Mapping[str, Any]) -> Table:
    """Return a table of the machine, the versions and the backends."""
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
    """Return a table of what an index holds."""
    table = _lines("Index")
    for key, value in found.items():
        if key not in ("encoder", "graph", "words", "lexical", "facts", "metadata", "sections", "bytes", "failures"):
            table.add_row(
                key.replace("_", " ").removeprefix("num "), _listed(value if type(value) in (int, list) else str(value))
            )
    for part in ("encoder", "graph", "words", "lexical", "facts", "metadata"):
        for key, value in (found[part] or {}).items():
            table.add_row(f"{part}: {key.replace('_', ' ')}", _listed(value))
    table.add_row("size", f"{found['bytes'] / 1e6:,.1f} MB")
    failures = found.get("failures", ())
    for one in failures[:_PRINTED]:
        table.add_row(f"lacks {one['lacks']}", _listed(f"{one['table']} {_key(one['key'])}: {one['reason']}"))
    if len(failures) > _PRINTED:
        table.add_row("lacks", f"{len(failures) - _PRINTED:,} more (--json)")
    return table


def _lines(title: str) -> Table:
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    return table


def _listed(value: Any) -> Text:
    """Return a value as text; square brackets, as in ``hopfuse[gpu]``, are not markup."""
    return Text(printable(_plain(value)))


def _key(key: Any) -> str:
    """Return the key of a row, whose numbers are ids and no counts."""
    return ", ".join(f"{name}: {value}" for name, value in key.items()) if isinstance(key, Mapping) else str(key)


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k}: {_plain(v)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return f"{value:,}" if type(value) is int else str(value)


def machine(*packages: str) -> dict[str, Any]:
    """Return the processor, usable cores, memory, system, and versions of Python, NumPy and the named packages.

    Examples
    --------
    >>> from hopfuse.cli.info import machine
    >>> list(machine())
    ['processor', 'cores', 'memory', 'system', 'python', 'numpy']
    """
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        **{package: _version(package) for package in packages},
    }


def _processor() -> str:
    """Return the processor's name if the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    except (AttributeError, ValueError, OSError):
        return "unknown"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
