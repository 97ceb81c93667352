"""The group of all commands, and how errors end the program."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from .. import __version__
from ..errors import HopfuseError
from ..report import printable
from .build import build
from .change import add, compact, delete, follow, log_command, merge_command, snapshot
from .compare import compare
from .diagnose import diagnose
from .eval import evaluate_runs
from .failures import leave_with, wants_json
from .info import info
from .naming import ArgumentNames, usage_error
from .policy import policy
from .score import score
from .search import search
from .selftest import bench, selftest
from .serve import mcp_command, serve
from .sweep import sweep_command
from .trace import trace


class _Sections(click.Group):
    """A group whose help lists its commands in sections."""

    def make_context(self, *given: Any, **more: Any) -> click.Context:
        with _as_data():
            return super().make_context(*given, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _as_data():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = formatter.width - 6 - max(map(len, self.commands))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(str(one.name), one.get_short_help_str(width)) for one in commands])


@contextmanager
def _as_data() -> Iterator[None]:
    """Raise Click's errors as the library's, if they are printed for programs."""
    try:
        yield
    except click.UsageError as error:
        if not wants_json():
            raise
        raise usage_error(error) from None


@click.group(cls=_Sections, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="hopfuse", message="%(prog)s %(version)s")
def app() -> None:
    """Score many questions at once over a knowledge graph and a dense corpus."""


SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Build": (build,),
    "Change": (add, delete, merge_command, follow, compact, snapshot, log_command),
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

    Warnings are printed in one line too, without the place in the code.

    With ``HOPFUSE_ERRORS=json`` in the environment, the line is a JSON object for programs: ``{"error": {"class",
    "code", "field", "message", "values", "places"}}``, as in an answer of ``hopfuse serve``.
    """
    words = sys.argv[1:] if args is None else list(args)
    try:
        with _plain_warnings():
            app.main(args=words, prog_name="hopfuse")
    except (HopfuseError, OSError) as error:
        leave_with(error, ArgumentNames(app, words))


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print warnings as the command's errors are printed."""
    own = warnings.formatwarning
    warnings.formatwarning = lambda message, *_: f"hopfuse: {printable(' '.join(str(message).split()))}\n"
    try:
        yield
    finally:
        warnings.formatwarning = own
