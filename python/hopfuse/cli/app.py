"""The program ``hopfuse``: its commands, and how it fails."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from .. import __version__
from ..errors import HopfuseError
from .bench import bench
from .build import build
from .compare import compare
from .demo import demo
from .diagnose import diagnose
from .eval import evaluate_runs
from .explain import explain
from .info import info
from .policy import policy
from .score import score
from .selftest import selftest
from .sweep import sweep_runs


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="hopfuse", message="%(prog)s %(version)s")
def app() -> None:
    """Score many questions at once over a knowledge graph and a dense corpus."""


_ASKING = (demo, build, score, compare, policy)
_JUDGING = (evaluate_runs, sweep_runs, diagnose, explain)
for command in (*_ASKING, *_JUDGING, info, selftest, bench):
    app.add_command(command)


def run(args: Sequence[str] | None) -> None:
    """Run a command; errors of the library and of the file system become one line and exit code 2."""
    try:
        app.main(args=None if args is None else list(args), prog_name="hopfuse")
    except (HopfuseError, OSError) as error:
        click.echo(f"hopfuse: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
