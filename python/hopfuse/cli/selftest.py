"""``hopfuse selftest`` and ``hopfuse bench``: compare a backend with the CPU, and run the benchmarks of a checkout."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from .. import SelfTest, backend_info
from .. import selftest as run_selftest
from ..errors import InputError


@click.command()
@click.option("--backend", default="cuda", show_default=True, help="Backend to test.")
@click.option("--quick", is_flag=True, help="Run only the checks that precede the first use of a GPU.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write JSON with the GPU, its driver, versions and memory, to attach to a bug report.",
)
def selftest(backend: str, quick: bool, as_json: bool, report: Path | None) -> None:
    """Compare every kernel of a backend with the CPU, bit for bit.

    The exit code is 1 if anything differs, and 2 if this machine cannot run the backend.
    """
    found = run_selftest(backend, quick)
    result = {**asdict(found), "passed": found.passed}
    if report is not None:
        report.write_text(json.dumps({**result, "machine": about_machine()}, indent=2) + "\n", encoding="utf-8")
    if as_json:
        click.echo(json.dumps(result, indent=2))
    else:
        Console().print(selftest_table(found))
        click.echo(verdict(found))
    if not found.passed:
        sys.exit(1)


def about_machine() -> dict[str, Any]:
    """Return the system, the versions, and each backend's description of its device, driver and kernels."""
    info = backend_info()
    return {
        "system": platform.platform(),
        "python": platform.python_version(),
        "hopfuse": version("hopfuse"),
        "auto": info["auto"],
        "backends": info["backends"],
    }


def selftest_table(found: SelfTest) -> Table:
    """Return a table with a row for each check."""
    table = Table(title=f"{found.backend} against cpu, bit for bit", title_justify="left")
    table.add_column("check", overflow="fold")
    for name in ("values", "differing", "cpu ms", f"{found.backend} ms"):
        table.add_column(name, justify="right")
    table.add_column("result")
    for check in found.checks:
        times = (f"{1e3 * seconds:.2f}" for seconds in (check.cpu_seconds, check.device_seconds))
        result = "equal" if check.equal else "[red]DIFFERS[/red]"
        table.add_row(check.name, f"{check.values:,}", f"{check.differing:,}", *times, result)
    return table


def verdict(found: SelfTest) -> str:
    """Return the line that ends the output."""
    if found.passed:
        return f"All {len(found.checks)} checks are equal."
    wrong = sum(not check.equal for check in found.checks)
    return f"{wrong} of {len(found.checks)} checks differ: do not use backend={found.backend!r} here, and report it."


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> None:
    """Check results, then time hopfuse beside other libraries.

    Runs in a checkout of hopfuse, or in a folder of one.

    \b
    hopfuse bench --quick                    run every case once on tiny inputs
    hopfuse bench --out rows.jsonl           measure everything (pip install -e '.[dev]' --group bench)
    hopfuse bench --case NAME ...            measure some cases
    hopfuse bench --report rows.jsonl        write docs/performance.md from measured rows
    hopfuse bench --plots DIR rows.jsonl     plot measured rows
    hopfuse bench -- --help                  show all ARGUMENTS, those of `python -m bench`

    The exit code is 1 if a result is wrong.
    """
    root = _checkout(Path.cwd())
    if root is None:
        raise InputError(
            "missing",
            None,
            "the benchmarks are in the sources, not in the installed package, and this folder is not in a checkout; "
            "change to a checkout, pip install -e '.[dev]' --group bench there, and run hopfuse bench again",
        )
    path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
    command = (sys.executable, "-P", "-m", "bench", *arguments)  # -P: nothing of this folder shadows a module
    sys.exit(subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=False).returncode)


def _checkout(folder: Path) -> Path | None:
    """Return the root of the checkout that a folder is in, or None."""
    marks = (Path("bench", "__main__.py"), Path("python", "hopfuse", "__init__.py"), Path("pyproject.toml"))
    return next((f for f in (folder, *folder.parents) if all((f / mark).is_file() for mark in marks)), None)
