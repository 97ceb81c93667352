"""The group of all commands, and how errors end the program."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence

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
    """Run a command; print an error of the library or the file system in one line, and exit with code 2.

    With ``HOPFUSE_ERRORS=json`` in the environment, the line is a JSON object with the keys error (the class), code,
    field and message, for programs.
    """
    words = sys.argv[1:] if args is None else list(args)
    try:
        app.main(args=words, prog_name="hopfuse")
    except (HopfuseError, OSError) as error:
        message = printable(" ".join(_message(error, _options(words)).split()))
        if os.environ.get("HOPFUSE_ERRORS") == "json":
            code, field = getattr(error, "code", "file"), getattr(error, "field", None)
            said = {"error": type(error).__name__, "code": code, "field": field, "message": message}
            click.echo(json.dumps(said), err=True)
        else:
            click.echo(f"hopfuse: {message}", err=True)
        sys.exit(2)


def _options(words: Sequence[str]) -> dict[str, str]:
    """Return how the command that runs spells its parameters, by their names in Python and by their own."""
    command: click.Command = app
    context = click.Context(app)
    for word in words:
        found = command.get_command(context, word) if isinstance(command, click.Group) else None
        if found is None:
            break
        command = found
    spelled: dict[str, str] = {}
    for one in command.params:
        shown = max(one.opts, key=len) if isinstance(one, click.Option) else one.make_metavar(context)
        spelled |= {str(one.name): shown, shown.lstrip("-").replace("-", "_"): shown}
    return spelled


def _message(error: HopfuseError | OSError, options: Mapping[str, str]) -> str:
    """Return what an error says; for the system's errors, the file and the reason without the number."""
    if isinstance(error, HopfuseError):
        return error.sentence(lambda name: _spelled(name, options))
    if error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def _spelled(field: str, options: Mapping[str, str]) -> str:
    """Return the option of a field, such as ``--fact-ends`` of ``fact_ends[3]``; other fields stay as they are."""
    name = re.match(r"\w*", field)
    assert name is not None
    return options.get(name[0], name[0]) + field[name.end() :]
