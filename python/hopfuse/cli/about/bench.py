"""``hopfuse bench``: the benchmarks of a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

from ...errors import InputError


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> None:
    """Check results, then time hopfuse beside other libraries.

    Runs in a checkout of hopfuse, or in a folder of one.

    \b
    hopfuse bench --quick                    run every case once on tiny inputs
    hopfuse bench --out rows.jsonl           measure everything (pip install -e '.[bench]')
    hopfuse bench --case NAME ...            measure some cases
    hopfuse bench --report rows.jsonl        write docs/performance.md from measured rows
    hopfuse bench --plots DIR rows.jsonl     plot measured rows
    hopfuse bench -- --help                  show all ARGUMENTS, those of `python -m bench`

    The exit code is 1 if a result is wrong.
    """
    root = checkout(Path.cwd())
    if root is None:
        raise InputError(
            "missing",
            None,
            "the benchmarks are in the sources, not in the installed package, and this folder is not in a checkout; "
            "change to a checkout, pip install -e '.[bench]' there, and run hopfuse bench again",
        )
    path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
    command = (sys.executable, "-P", "-m", "bench", *arguments)  # -P: nothing of this folder shadows a module
    sys.exit(subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=False).returncode)


def checkout(folder: Path) -> Path | None:
    """Return the root of the checkout that a folder is in, or None."""
    marks = (Path("bench", "__main__.py"), Path("python", "hopfuse", "__init__.py"), Path("pyproject.toml"))
    return next((f for f in (folder, *folder.parents) if all((f / mark).is_file() for mark in marks)), None)
