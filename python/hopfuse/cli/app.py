"""The group of all commands, and how errors end the program."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from .. import __version__
from ..errors import HopfuseError
from ..report import printable
from .about.bench import bench
from .about.info import info
from .about.selftest import selftest
from .build.command import build
from .change.commands import add, compact, delete, log_command
from .change.follow import follow
from .diagnose.compare import compare
from .diagnose.diagnose import diagnose
from .evaluate.eval import evaluate_runs
from .evaluate.sweep import sweep_command
from .run.mcp import mcp_command
from .run.policy import policy
from .run.score import score
from .run.search import search
from .run.serve import serve
from .run.trace import trace


class _Sections(click.Group):
    """A group whose help lists its commands in sections."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = formatter.width - 6 - max(map(len, self.commands))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(str(one.name), one.get_short_help_str(width)) for one in commands])


@click.group(cls=_Sections, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="hopfuse", message="%(prog)s %(version)s")
def app() -> None:
    """Score many questions at once over a knowledge graph and a dense corpus."""


SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Build": (build,),
    "Change": (add, delete, follow, compact, log_command),
    "Run": (search, trace, score, serve, mcp_command, policy),
    "Evaluate": (evaluate_runs, sweep_command),
    "Diagnose": (diagnose, compare),
    "About": (info, selftest, bench),
}
for section in SECTIONS.values():
    for command in section:
        app.add_command(command)


def run(args: Sequence[str] | None) -> None:
    """Run a command; print an error of the library or the file system in one line, and exit with code 2."""
    try:
        app.main(args=None if args is None else list(args), prog_name="hopfuse")
    except (HopfuseError, OSError) as error:
        click.echo(f"hopfuse: {printable(' '.join(_message(error).split()))}", err=True)
        sys.exit(2)


def _message(error: HopfuseError | OSError) -> str:
    """Return what an error says; for the system's errors, the file and the reason without the number."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
